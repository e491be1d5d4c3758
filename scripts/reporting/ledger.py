"""Builds the page's privacy ledger: mechanisms' worst attacks and proofs, the worst as a picture."""

import json
import math
import re
from collections import Counter
from pathlib import Path

from dp.mechanisms import MECHANISMS
from dp_privacy.accounting import LOOKED
from plots import style
from reporting import dots, packing
from study import paths
from study.jobs.files import read_csv

# Family -> files in dp/mechanisms. The second-to-last family has all other mechanisms.
FAMILIES = {
    "Forms as their authors printed or ran them": ("published",),
    "Noise on the solution": (
        *("output_perturbation", "laplace", "lasso", "elastic_net_output_perturbation"),
        "output_sgd",
    ),
    "Noise on the objective": (
        *("objective_perturbation", "gaussian_objective_perturbation", "functional"),
        "knorm_objective_perturbation",
    ),
    "Noise on gradients": ("gradient_descent", "sgd", "poisson_sgd", "second_order"),
    "Noise on moments": (
        *("sufficient_statistics", "boosted_adassp", "iterative_hessian_mixing"),
        *("noise_aware", "noise_aware_boosted"),
    ),
    "Selection, sampling and others": (),
    "Without privacy": ("nonprivate",),
}
# Further files to download -> what they contain.
OTHERS = {
    paths.EXACT: "losses from densities, which no number of releases resolves",
    paths.AUDITED_CELLS: "every cell of every results table: claimed, proven, and what attacks found",
    paths.SPENDING: "what methods spend, tuning and preparation included",
}
DRAWN = 15  # number of mechanisms in the picture
RELEASED = "_released"  # end of the names of programs that authors released
# First words of verdicts, from worst to best; "" stands for all other verdicts.
VERDICTS = ("exceeds", "refutes", "more than claimed", "", "consistent")
BEYOND = VERDICTS[2] + " by proof"
WORSE = VERDICTS[:3]  # less private than claimed
NUMBERS = {
    "claimed": "epsilon_claimed",
    "proven": "epsilon_proven",
    "replayed": "epsilon_replay",
    "attacked": "epsilon_audited",
    "exact": "epsilon_pair",
}
# Finding of a replay with frozen noise -> what the ledger says about it.
REPLAY = {
    "holds": "the replay agrees",
    "refutes the claim": "the replay refutes the claim",
    "not additive": "not replayed, since its noise is not added",
    "without noise": "not replayed, since it has no noise",
    "exceeds if every noisy value is released": "the replay exceeds the claim if no noisy value is hidden",
    "draws from a generator that the replay does not see": "not replayed, since it uses another generator",
}
COLUMNS = ("mechanism", "verdict", "replay", "attack", "epsilon", *NUMBERS)


def ledger():
    """The section's content. picture: of the worst mechanisms, without rows if nothing was audited."""
    path, profiles = Path(paths.LEDGER()), Path(paths.PROFILES())
    attacks = read_csv(path) if path.exists() else []
    by_mechanism = {}
    for attack in attacks:
        by_mechanism.setdefault(attack["mechanism"], []).append(attack)
    cells = proven_cells()
    groups = [(group, cells.get(name, [])) for name, group in by_mechanism.items()]
    worst_first = sorted(
        groups, key=lambda pair: (_rank(_verdict(*pair)), _order(min(pair[0], key=_order)))
    )
    rows = [entry(*pair) for pair in worst_first]
    files = {path: "every attack at every epsilon, with its reasons"}
    files |= {Path(place()): what for place, what in OTHERS.items()}
    return {
        "picture": dots.scaled(rows[:DRAWN], log=True),
        "others": rows[DRAWN:],
        "columns": COLUMNS,
        "attacks": [line(attack) for attack in attacks],
        "profiles": packing.picture(profiles) if profiles.exists() else "",
        "summary": summary(groups),
        "files": [(p.name, packing.table(p), what) for p, what in files.items() if p.exists()],
    }


def proven_cells():
    """Mechanism -> its cells in this run that claim an epsilon and have a proof of the mechanism alone.

    If a step before the mechanism voids a cell's guarantee, the cell says nothing about the mechanism.
    """
    path, cells = Path(paths.AUDITED_CELLS()), {}
    for cell in read_csv(path) if path.exists() else ():
        claimed, proven = (
            float(cell[f"epsilon_{kind}"] or "nan") for kind in ("claimed", "proven")
        )
        if 0 < claimed < math.inf and not math.isnan(proven) and LOOKED not in cell["reason"]:
            cells.setdefault(cell["mechanism"], []).append(cell)
    return cells


def _factor(row):
    """The factor by which the proven epsilon of a cell or attack exceeds the claimed one."""
    return _number(row["epsilon_proven"]) / _number(row["epsilon_claimed"])


def _beyond(cells):
    return [cell for cell in cells if _factor(cell) > 1 + 1e-9]


def _verdict(group, cells):
    """The worst verdict of a mechanism's attacks, unless the proof of some cell is worse."""
    verdict = _brief(min(group, key=_order))
    return BEYOND if _beyond(cells) and _rank(BEYOND) < _rank(verdict) else verdict


def family(mechanism):
    parts = MECHANISMS.module(mechanism).split(".") if mechanism in MECHANISMS else ()
    families = (name for name, files in FAMILIES.items() if {*files} & {*parts})
    return next(families, [*FAMILIES][-2])


def entry(group, cells=()):
    """A mechanism's line in the picture: its attack with the worst verdict, and its worst proof.

    cells: those of `proven_cells`. If their worst proof exceeds its claim by a larger factor than the
    attack's does, the line shows this claim and proof.
    """
    worst, verdict = min(group, key=_order), _verdict(group, cells)
    known = {kind: worst[column] for kind, column in NUMBERS.items() if worst.get(column)}
    beyond = _beyond(cells)
    if beyond:
        # Of equally bad cells, the one whose claim is nearest to the attack's.
        cell = max(beyond, key=lambda cell: (_factor(cell), -_apart(cell, worst)))
        if not _factor(worst) >= _factor(cell):  # also if the attack claims nothing
            known |= {kind: cell[NUMBERS[kind]] for kind in ("claimed", "proven")}
    marks = {kind: float(text) for kind, text in known.items()}
    ends = [marks[kind] for kind in ("claimed", "proven") if kind in marks]
    replay = worst["replay"].partition(":")[0]
    said = [f"{kind} {dots.brief(text)}" for kind, text in known.items()]
    said += [f"{len(beyond)} of {len(cells)} cells of this run prove more than is claimed"] * bool(
        beyond
    )
    said.append(REPLAY.get(replay, f"replay {replay}"))
    broken = any(attack.get("low_bits", "").startswith("broken") for attack in group)
    return {
        "mechanism": worst["mechanism"],
        "what": "released program" if worst["mechanism"].endswith(RELEASED) else "mechanism",
        "family": family(worst["mechanism"]),
        "name": _name(worst, variant(group, cells)),
        "verdict": verdict,
        "text": ", ".join(said) + "; broken by low-order bits" * broken,
        "why": why(worst, len(group)) + (_why_beyond(cell) if beyond else ""),
        "marks": marks,
        "bar": (min(ends), max(ends)) if ends else None,
    }


def _apart(cell, attack):
    numbers = (_number(row["epsilon_claimed"]) for row in (cell, attack))
    return abs(math.log(next(numbers) / next(numbers)))


def _why_beyond(cell):
    proven = dots.brief(cell["epsilon_proven"])
    return (
        f" The worst cell of this run, {cell['experiment']}, {cell['dataset']}, {cell['method']}, n = "
        f"{cell['train_size']}, claims {dots.brief(cell['epsilon_claimed'])}, and "
        + (f"{proven} is proven" if proven != "none" else "no finite epsilon is proven")
        + f": {cell['reason']}."
    )


def _brief(attack):
    return re.split(":|, not caught", attack["verdict"])[0]


def summary(groups):
    """How many mechanisms have each verdict. groups: [(its attacks, its cells)]."""
    counted = Counter(_verdict(*pair) for pair in groups)
    return ", ".join(f"{verdict} ({count})" for verdict, count in counted.most_common())


def variant(attacks, cells=()):
    """The options that all attacks and cells with a mechanism's worst verdict have, and few others of it.

    Few are less than half: an option may break a claim at large epsilons and keep it at small ones. ""
    means that the verdict concerns the whole mechanism.
    """
    worst = _verdict(attacks, cells)
    told = [(_brief(attack), attack.get("arguments")) for attack in attacks]
    told += [(BEYOND if _beyond([cell]) else "", cell["options"]) for cell in cells]
    alike, others = [], []
    for verdict, arguments in told:
        options = json.loads(arguments or "{}")
        settings = {f"{name}: {value}" for name, value in options.items()}
        (alike if verdict == worst else others).append(settings)
    if not others:
        return ""
    common = set.intersection(*alike)
    return ", ".join(
        sorted(
            option for option in common if 2 * sum(option in own for own in others) < len(others)
        )
    )


def _name(attack, options):
    options = options.replace("_", " ")
    return style.name(attack["mechanism"]) + f" (only with {options})" * bool(options)


def line(attack):
    return [
        *(style.name(attack["mechanism"]), _brief(attack), attack["replay"].partition(":")[0]),
        *(attack["attack"].replace("_", " "), attack["epsilon"]),
        *(attack.get(column, "") for column in NUMBERS.values()),
    ]


def why(attack, count):
    low = attack.get("low_bits")
    return (
        f"The worst of {count} attacks, {attack['attack'].replace('_', ' ')} at epsilon "
        f"{attack['epsilon']}: {attack['verdict']}. Proof ({attack['adjacency']}): {attack['reason']}. "
        f"Pair: {attack['pair_reason']}." + f" Low-order bits: {low}." * bool(low)
    )


def _order(attack):
    """Sort key that puts the worst attack first.

    Ties are broken by whether the replay refutes the claim, then by the factor by which the audited epsilon
    exceeds the claim (largest first), then by that of the proven epsilon, then by |log epsilon|.
    """
    claimed = _number(attack["epsilon_claimed"])
    factors = [_number(attack[f"epsilon_{kind}"]) / claimed for kind in ("audited", "proven")]
    beyond = [-factor if factor > 1 + 1e-3 else 0.0 for factor in factors]
    agrees = not attack["replay"].startswith(VERDICTS[:2])
    rank = _rank(attack["verdict"])
    return rank, agrees, *beyond, abs(math.log(_number(attack["epsilon"])))


def _rank(verdict):
    known = [k for k, words in enumerate(VERDICTS) if words and verdict.startswith(words)]
    return known[0] if known else VERDICTS.index("")


def _number(text):
    """The number in a cell; 1e-9 for 0 or an empty cell, so ratios and logarithms are finite."""
    return float(text or 0) or 1e-9
