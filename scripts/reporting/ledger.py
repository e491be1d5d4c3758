"""The privacy ledger for the page: one line per mechanism, with its attacks below and reasons folded."""

import json
import math
import re
from functools import cache
from pathlib import Path

from plots import style
from reporting import packing
from reporting.collect import read_table
from study import paths
from study.configuration.experiment import data_name

OTHERS = (
    (paths.EXACT, "Losses from densities, which no number of releases resolves"),
    (
        paths.AUDITED_CELLS,
        "Every cell of every results table: claimed, proven, and what attacks found",
    ),
    (
        paths.SPENDING,
        "What each experiment's methods spend, tuning and preparation included, each cell alone",
    ),
)
# Verdicts by their first words, the worst first. Other verdicts come in between.
VERDICTS = ("exceeds", "refutes", "more than claimed", "", "consistent")
NUMBERS = {
    "claimed": "epsilon_claimed",
    "proven": "epsilon_proven",
    "audited": "epsilon_audited",
    "exact on pair": "epsilon_pair",
}
COLUMNS = ("mechanism", "verdict", "replay", "attack", "epsilon", *NUMBERS)


def ledger():
    """What the page's section shows; `rows` are empty if nothing was audited."""
    path = Path(paths.LEDGER())
    if not path.exists():
        return {"rows": ()}
    names, rows = read_table(path)
    attacks = [dict(zip(names, row, strict=True)) for row in rows]
    by_mechanism = {}
    for attack in attacks:
        by_mechanism.setdefault(attack["mechanism"], []).append(attack)
    figure, profiles = Path(paths.LEDGER("png")), Path(paths.PROFILES())
    return {
        "columns": (*COLUMNS, "attacks", "why"),
        "rows": [
            [*line(worst := min(group, key=_order), variant(group)), len(group), why(worst)]
            for group in by_mechanism.values()
        ],
        "attack_columns": (*COLUMNS, "why"),
        "attacks": [[*line(attack), why(attack)] for attack in attacks],
        "data": packing.table(path),
        "figure": packing.picture(figure) if figure.exists() else "",
        "profiles": packing.picture(profiles) if profiles.exists() else "",
        "summary": summary(by_mechanism),
        "others": [
            (caption, Path(place()).name, *_named(*read_table(place())), packing.table(place()))
            for place, caption in OTHERS
            if Path(place()).exists()
        ],
    }


def summary(by_mechanism):
    """Sentences about the worst verdict of each mechanism."""
    worst = [(min(group, key=_order), variant(group)) for group in by_mechanism.values()]

    def those(*words):
        return [_name(a, options) for a, options in worst if a["verdict"].startswith(words)]

    refuted, beyond = those("refutes", "exceeds"), those("more than claimed")
    said = [
        f"Of {len(worst)} mechanisms that were attacked, "
        f"{len(those('consistent'))} are consistent with what they claim in every attack."
    ]
    if refuted:
        said.append(f"Attacks refute the claims of {len(refuted)}: {'; '.join(refuted)}.")
    unproven = those("claimed, not proven")
    if unproven:
        said.append(
            f"Claimed, not proven, and refuted by no attack: {len(unproven)} ({'; '.join(unproven)})."
        )
    if beyond:
        said.append(
            f"Proofs give more than is claimed of {len(beyond)} that no attack caught: "
            f"{'; '.join(beyond)}."
        )
    broken = [
        style.name(name)
        for name, group in by_mechanism.items()
        if any(attack.get("low_bits", "").startswith("broken") for attack in group)
    ]
    if broken:
        said.append(
            f"All these programs draw in floating point. An attack on low-order bits breaks "
            f"{len(broken)} of them, whatever is proven for real numbers: {'; '.join(broken)}."
        )
    return said


def variant(attacks):
    """The options that all attacks with a mechanism's worst verdict have, and none of the others.

    "" if there are none: then the mechanism itself has the verdict, and not only a variant of it.
    """
    worst = min(attacks, key=_order)["verdict"]
    alike, others = [], []
    for attack in attacks:
        options = json.loads(attack.get("arguments") or "{}")
        found = {f"{name}: {value}" for name, value in options.items()}
        (alike if attack["verdict"] == worst else others).append(found)
    if not others:
        return ""
    return ", ".join(sorted(set.intersection(*alike) - set.union(*others)))


def _name(attack, options):
    return style.name(attack["mechanism"]) + f" (only with {options})" * bool(options)


def _named(columns, rows):
    """The same table with names in place of keys."""
    names = {
        "mechanism": style.name,
        **dict.fromkeys(("experiment", "method"), lambda key: key.replace("_", " ")),
        "dataset": cache(data_name),
    }
    rows = [
        [names.get(column, str)(value) for column, value in zip(columns, row, strict=True)]
        for row in rows
    ]
    return columns, rows


def line(attack, options=""):
    """One attack in the order of COLUMNS. options: of the mechanism's variant that it is about, if any."""
    return [
        _name(attack, options),
        re.split(":|, not caught", attack["verdict"])[0],
        attack["replay"].partition(":")[0],
        attack["attack"].replace("_", " "),
        attack["epsilon"],
        *(attack[column] for column in NUMBERS.values()),
    ]


def why(attack):
    return (
        f"{attack['verdict']}: {attack['reason']} ({attack['adjacency']}). "
        f"The pair: {attack['pair_reason']}."
        + f" Low-order bits: {attack.get('low_bits')}."
        * bool(attack.get("low_bits"))
    )


def _order(attack):
    """Sort key: the worst verdict first; then the largest factor by which an attack, or else a proof,
    exceeds the claim; then the epsilon nearest to 1, as in the figure."""
    verdict = attack["verdict"]
    known = [k for k, words in enumerate(VERDICTS) if words and verdict.startswith(words)]
    claimed = _number(attack["epsilon_claimed"])
    factors = [_number(attack[f"epsilon_{kind}"]) / claimed for kind in ("audited", "proven")]
    beyond = [-factor if factor > 1 + 1e-3 else 0.0 for factor in factors]
    rank = known[0] if known else VERDICTS.index("")
    return rank, *beyond, abs(math.log(_number(attack["epsilon"])))


def _number(text):
    """A positive number. A cell without one counts as a tiny number, and so does 0."""
    return float(text or 0) or 1e-9
