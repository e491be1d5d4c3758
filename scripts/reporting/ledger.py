"""Builds the page's privacy ledger: a picture for each family, with each mechanism's worst attack."""

import json
import math
import re
from collections import Counter
from pathlib import Path

from dp.mechanisms import MECHANISMS
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
# First words of verdicts, from worst to best; "" stands for all other verdicts.
VERDICTS = ("exceeds", "refutes", "more than claimed", "", "consistent")
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
    """The section's content; `families` is empty if nothing was audited."""
    path, profiles = Path(paths.LEDGER()), Path(paths.PROFILES())
    attacks = read_csv(path) if path.exists() else []
    by_mechanism = {}
    for attack in attacks:
        by_mechanism.setdefault(attack["mechanism"], []).append(attack)
    worst_first = sorted(by_mechanism.values(), key=lambda group: _order(min(group, key=_order)))
    picture = dots.scaled([entry(group) for group in worst_first], log=True)
    families = {name: [] for name in FAMILIES}
    for row in picture["rows"]:
        families[row["family"]].append(row)
    files = {path: "every attack at every epsilon, with its reasons"}
    files |= {Path(place()): what for place, what in OTHERS.items()}
    return {
        "families": [(name, picture | {"rows": own}) for name, own in families.items() if own],
        "columns": COLUMNS,
        "attacks": [line(attack) for attack in attacks],
        "profiles": packing.picture(profiles) if profiles.exists() else "",
        "summary": summary(by_mechanism),
        "files": [(p.name, packing.table(p), what) for p, what in files.items() if p.exists()],
    }


def family(mechanism):
    parts = MECHANISMS.module(mechanism).split(".") if mechanism in MECHANISMS else ()
    families = (name for name, files in FAMILIES.items() if {*files} & {*parts})
    return next(families, [*FAMILIES][-2])


def entry(group):
    """A mechanism's line in the picture, for its attack with the worst verdict."""
    worst = min(group, key=_order)
    known = {kind: worst[column] for kind, column in NUMBERS.items() if worst.get(column)}
    marks = {kind: float(text) for kind, text in known.items()}
    ends = [marks[kind] for kind in ("claimed", "proven") if kind in marks]
    replay = worst["replay"].partition(":")[0]
    said = [f"{kind} {dots.brief(text)}" for kind, text in known.items()]
    said.append(REPLAY.get(replay, f"replay {replay}"))
    broken = any(attack.get("low_bits", "").startswith("broken") for attack in group)
    return {
        "family": family(worst["mechanism"]),
        "name": _name(worst, variant(group)),
        "verdict": _brief(worst),
        "text": ", ".join(said) + "; broken by low-order bits" * broken,
        "why": why(worst, len(group)),
        "marks": marks,
        "bar": (min(ends), max(ends)) if ends else None,
    }


def _brief(attack):
    return re.split(":|, not caught", attack["verdict"])[0]


def summary(by_mechanism):
    counted = Counter(_brief(min(group, key=_order)) for group in by_mechanism.values())
    return ", ".join(f"{verdict} ({count})" for verdict, count in counted.most_common())


def variant(attacks):
    """The options that are in all attacks with a mechanism's worst verdict and in no other attack on it.

    "" means that the verdict concerns the whole mechanism.
    """
    worst = min(attacks, key=_order)["verdict"]
    alike, others = [], []
    for attack in attacks:
        options = json.loads(attack.get("arguments") or "{}")
        settings = {f"{name}: {value}" for name, value in options.items()}
        (alike if attack["verdict"] == worst else others).append(settings)
    if not others:
        return ""
    return ", ".join(sorted(set.intersection(*alike) - set.union(*others)))


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
    verdict = attack["verdict"]
    known = [k for k, words in enumerate(VERDICTS) if words and verdict.startswith(words)]
    claimed = _number(attack["epsilon_claimed"])
    factors = [_number(attack[f"epsilon_{kind}"]) / claimed for kind in ("audited", "proven")]
    beyond = [-factor if factor > 1 + 1e-3 else 0.0 for factor in factors]
    rank = known[0] if known else VERDICTS.index("")
    agrees = not attack["replay"].startswith(VERDICTS[:2])
    return rank, agrees, *beyond, abs(math.log(_number(attack["epsilon"])))


def _number(text):
    """The number in a cell; 1e-9 for 0 or an empty cell, so ratios and logarithms are finite."""
    return float(text or 0) or 1e-9
