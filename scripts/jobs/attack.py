"""Attacks a mechanism on one pair of neighbours: writes claimed, proven and audited epsilon."""

import json
import math

from dp.seeds import generator
from dp_audit import audit, low_bits, pairs, replay
from dp_privacy.errors import Refused
from study import canonical
from study.jobs import script
from study.jobs.files import write_csv

COLUMNS = (
    *("mechanism", "attack", "pair", "n", "d", "arguments", "epsilon", "delta"),
    *("epsilon_claimed", "epsilon_proven", "delta_proven", "epsilon_audited", "epsilon_pair"),
    *("replay", "epsilon_replay", "found_also_by"),
    *("verdict", "statistic", "p_low", "q_high", "trials", "confidence", "family"),
    *("adjacency", "reason", "pair_reason", "no_epsilon_pair", "seed", "low_bits"),
    *("profile_epsilon", "profile_delta", "audited_delta", "audited_epsilon"),
)
# The deltas at which attacks bound epsilon if a profile is proven. Smaller deltas need more releases.
DELTAS = (0.001, 0.01, 0.03, 0.1, 0.2, 0.4)
POINTS = 25  # points of the proven curve
RELEASES = 300  # releases per data set in the attack on low-order bits
DECIDED = 50_000  # releases per data set where no number of them can refute the claim


def main():
    parser = script.parser(__doc__, seed=True)
    parser.add_argument("--mechanism", required=True)
    parser.add_argument("--label", required=True, help="the attack's name, an axis of the seed")
    parser.add_argument("--attack", type=json.loads, required=True, help="its settings, JSON")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--found-also-by", default="", help="who else has shown this, with a place")
    parser.add_argument("--out", required=True, help=".csv, one row")
    arguments = parser.parse_args()

    attack, epsilon = arguments.attack, arguments.epsilon
    mechanism, pair = audit.find(arguments.mechanism), pairs.find(attack["pair"])
    replayed, guarantee = replay.of_mechanism(
        mechanism, pair, epsilon, attack["delta"], **attack["options"]
    )
    settings = dict(pair.arguments) | attack["options"]
    known = settings | {"epsilon": epsilon, "delta": attack["delta"]}
    on_pair, unknown = exact(mechanism, pair, known)
    trials = releases(attack["trials"], on_pair, guarantee)
    axes = ("audit", arguments.mechanism, arguments.label)
    audited = audit.attack(
        *(mechanism, pair, epsilon),
        delta=attack["delta"],
        trials=trials,
        confidence=audit.of_each(attack["confidence"], attack["family"]),
        deltas=DELTAS if guarantee.profile else (),
        rng=generator(arguments.seed, *axes),
        **attack["options"],
    )
    row = {
        **{key: attack[key] for key in ("pair", "delta", "confidence", "family")},
        **{key: audited[key] for key in ("statistic", "p_low", "q_high")},
        "trials": trials,
        "mechanism": arguments.mechanism,
        "attack": arguments.label,
        "n": pair.size[0],
        "d": pair.size[1],
        "arguments": json.dumps(settings, sort_keys=True),
        "epsilon": canonical.epsilon(epsilon),
        "epsilon_claimed": guarantee.claimed_epsilon,
        "epsilon_proven": guarantee.epsilon,
        "delta_proven": guarantee.delta,
        "epsilon_audited": audited["epsilon"],
        "epsilon_pair": on_pair,
        "replay": replay.verdict(replayed, guarantee),
        "epsilon_replay": replayed.epsilon,
        "found_also_by": arguments.found_also_by,
        "verdict": verdict(audited["epsilon"], guarantee),
        "adjacency": guarantee.adjacency,
        "reason": guarantee.reason,
        "pair_reason": pair.reason,
        "no_epsilon_pair": unknown,
        "seed": arguments.seed,
        "low_bits": bits(mechanism, known, generator(arguments.seed, "low bits", *axes[1:])),
        **profiles(guarantee, audited["at_deltas"]),
    }
    write_csv(arguments.out, COLUMNS, [[row[column] for column in COLUMNS]])


def releases(trials, on_pair, guarantee):
    """The number of releases of each data set: at most `DECIDED` if the attack cannot refute anything.

    on_pair: the supremum of the privacy loss on the pair. If it is at most the claimed and the proven
    epsilon, a bound above them is an error, whatever the number of releases. The rule depends on no
    release, so the bound keeps its confidence. It leaves out mechanisms with a profile, whose bounds a
    figure shows.
    """
    stated = guarantee.epsilon, guarantee.claimed_epsilon
    decided = guarantee.profile is None and all(on_pair <= epsilon for epsilon in stated)
    return min(trials, DECIDED) if decided else trials


def profiles(guarantee, audited):
    """The proven curve delta(epsilon) and the audited points, as lists of numbers; "" without a profile.

    All audited points of a row hold simultaneously, with the confidence of the row's bound.
    """
    if guarantee.profile is None:
        return dict.fromkeys(COLUMNS[-4:], "")
    reach = min(2 * max(guarantee.epsilon, guarantee.claimed_epsilon), 50.0)
    epsilons = [reach * k / (POINTS - 1) for k in range(POINTS)]
    curve = [float(guarantee.profile.delta(epsilon)) for epsilon in epsilons]
    lists = (epsilons, curve, DELTAS, audited)
    return {
        column: " ".join(map(canonical.number, numbers))
        for column, numbers in zip(COLUMNS[-4:], lists, strict=True)
    }


def exact(mechanism, pair, settings):
    """(supremum of the privacy loss on this pair, "") or, if unknown, (NaN, the reason)."""
    if pair.exact is None:
        return math.nan, "of this pair no density is known"
    try:
        return pair.exact(pair, mechanism, **settings), ""
    except pairs.Unsuited as error:
        return math.nan, str(error)


def bits(mechanism, settings, rng):
    # The attack on low-order bits chooses neighbours, lam and bound itself.
    names = {"epsilon", "delta", *mechanism.options}
    settings = {name: value for name, value in settings.items() if name in names}
    if math.isinf(settings["epsilon"]):
        return "not tried: no epsilon is claimed"
    try:
        result = low_bits.attack(mechanism, trials=RELEASES, rng=rng, **settings)
    except Refused as error:
        return f"not tried: {error}"
    if result is None:
        return "not tried: it attacks weights plus a normal or Laplace draw each, which proves nothing here"
    return (
        f"{'broken' if result.broken else 'not broken here'}: {100 * result.right:.1f} % of "
        f"{result.trials} releases were assigned to the right data set; "
        f"the proof allows {100 * result.allowed:.1f} %"
    )


def verdict(audited, guarantee):
    if audited > guarantee.epsilon:
        return "exceeds what is proven: a fault of the proof, the code or the auditor"
    if math.isinf(guarantee.claimed_epsilon):
        return "nothing is claimed"
    if audited > guarantee.claimed_epsilon:
        return "refutes the claim"
    if math.isnan(guarantee.epsilon):
        return "claimed, not proven: this attack does not refute it"
    if guarantee.epsilon > guarantee.claimed_epsilon * (1 + 1e-9):
        return "more than claimed by proof, not caught by this attack"
    return "consistent with the claim"
