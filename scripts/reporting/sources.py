"""One card per source: what it printed and claimed, what of that holds, and how private its methods are."""

import math
from collections import Counter

from checks import statements, verdicts
from plots import style
from reporting import readings, record
from study import facts as source_file

LOOKED = " looked at the private rows"  # in reasons, after the names of such steps
SECTIONS = ("claims", "defects")
OUTCOMES = ("as stated", "under a reading", "under none tried", "undecided", "not tested")


def cards(gathered, experiments, stale=()):
    """A card for every source, first those that these experiments regenerate.

    gathered: a list of `reporting.collect.Gathered`. experiments: what the page shows of each, in the same
    order. stale: digests of the record that are not those of today.
    """
    found = []
    for key in source_file.files():
        source = source_file.read(key)
        own = [
            (part, shown)
            for part, shown in zip(gathered, experiments, strict=True)
            if shown["source"] == source.key
        ]
        rows = _statements(source, experiments)
        judged = {kind: [] for kind in readings.KINDS}
        for part, shown in own:
            both = [
                row for section in ("published", "claims") for row in shown["verdicts"][section]
            ]
            for row in readings.once(both, readings.again(part.experiment)):
                judged[readings.kind_of(row)].append(row)
        defects = sum(row["verdict"] == "shown" for row in rows)
        most = max((shown for _, shown in own), key=lambda e: e["cells"], default={"figures": ()})
        found.append(
            {
                "key": source.key,
                "short": source.short,
                "name": source.key.replace("_", " ").title(),
                "experiments": [(shown["name"], shown["title"]) for _, shown in own],
                "open": bool(own),
                "recorded": record.beside(key, {e["name"]: e["verdicts"] for _, e in own}, stale),
                "rows": rows,
                "summary": counts(rows),
                "outcomes": OUTCOMES,
                "counts": [
                    (what, *map(_outcomes(r).get, OUTCOMES)) for what, r in judged.items() if r
                ],
                "conclusions": [
                    *standing_in([part for part, _ in own]),
                    *readings.conclusions(judged),
                    *(
                        [f"Defects of the source that computation shows: {defects}."]
                        * bool(defects)
                    ),
                    *privacy([part for part, _ in own]),
                ],
                "figure": next((figure for figure in most["figures"] if figure["data"]), None),
            }
        )
    return sorted(found, key=lambda card: not card["open"])


def standing_in(parts):
    """A sentence for each reason why all data of some experiment of a source decide nothing about it."""
    found = {}
    for part in parts:
        names = part.experiment.datasets
        if names and all(name in part.stand_ins for name in names):
            found |= dict.fromkeys(part.stand_ins[name] for name in names)
    return [f"{reason[0].upper()}{reason[1:]}." for reason in found]


def counts(rows):
    """How many rows have each verdict, in words."""
    counted = Counter(row["verdict"] for row in rows)
    return ", ".join(f"{count} {verdict}" for verdict, count in counted.most_common())


def _outcomes(rows):
    counted = dict.fromkeys(OUTCOMES, 0)
    for row in rows:
        verdict = row["verdict"]
        if verdict == verdicts.REPRODUCED:
            counted["as stated"] += 1
        elif verdict.startswith(f"{verdicts.REPRODUCED} if"):
            counted["under a reading"] += 1
        elif verdict.startswith(verdicts.NOT_REPRODUCED):
            counted["under none tried"] += 1
        elif verdict in (verdicts.TOO_WIDE, verdicts.UNDECIDED, verdicts.NOT_EXCLUDED):
            counted["undecided"] += 1
        else:
            counted["not tested"] += 1
    return counted


def privacy(parts):
    """A sentence about what the private methods of a source's experiments claim, and what is proven.

    A cell whose rows were prepared or tuned without privacy has no epsilon, whatever its method is. It
    counts against what prepared the rows, and not against the method. Cells at another lambda than the one
    that the source published say nothing about the source.
    """
    worst, spoilt, unproven = {}, {}, {}
    for part in parts:
        frame, methods = part.frame, part.experiment.methods
        if "epsilon_proven" not in frame or frame.empty:
            continue
        names = {label: look["label"] for label, look in style.looks(methods).items()}
        for row in frame[frame["epsilon_claimed"].notna()].to_dict("records"):
            steps, looked, _ = str(row.get("reason", "")).partition(LOOKED)
            if not methods[row["method"]]["private"] or not row["epsilon_claimed"] > 0:
                continue
            if _of_another_lambda(part.experiment, row):
                continue
            if looked:
                spoilt.setdefault(steps, {})[names[row["method"]]] = None
            elif math.isnan(row["epsilon_proven"]):
                unproven[names[row["method"]]] = None
            else:
                factor = float(row["epsilon_proven"]) / float(row["epsilon_claimed"])
                found = worst.get(names[row["method"]], (0.0,))
                if factor > found[0]:
                    at = (row["epsilon_claimed"], row["epsilon_proven"])
                    worst[names[row["method"]]] = (factor, *map(float, at))
    said = [
        f"Where {steps} looked at the private rows, no method has a finite epsilon: "
        f"{'; '.join(names)}."
        for steps, names in spoilt.items()
    ]
    if not worst and not unproven:
        return [" ".join(said)] * bool(said)
    held = [name for name, (factor, *_) in worst.items() if factor <= 1 + 1e-9]
    none = [name for name, (factor, *_) in worst.items() if math.isinf(factor)]
    more = [
        f"{name} (claimed {claimed:.3g}, proven {proven:.3g} at worst)"
        for name, (factor, claimed, proven) in worst.items()
        if 1 + 1e-9 < factor < math.inf
    ]
    rest, count = " on other rows" * bool(spoilt), len(worst.keys() | unproven.keys())
    said.append(
        f"{len(held)} of {count} private methods as they ran here{rest} hold what they claim."
    )
    said += [f"More epsilon than claimed is needed by {'; '.join(more)}."] * bool(more)
    said += [f"No finite epsilon, in some cell, have {'; '.join(none)}."] * bool(none)
    said += [f"Claimed, not proven: {'; '.join(unproven)}."] * bool(unproven)
    return [" ".join(said)]


def _of_another_lambda(experiment, row):
    """Whether a cell's lambda is not the one number that the source published."""
    published, own = experiment.values.get("lambda_published"), row.get("lambda", math.nan)
    return isinstance(published, float) and abs(own - published) > 1e-9 * published


def _statements(source, experiments):
    """Every claim and defect of a source, with the verdict of the experiment that decides it."""
    decided = {
        row["id"]: row
        for experiment in experiments
        for section in SECTIONS
        for row in experiment["verdicts"][section]
    }
    rows = []
    for section in SECTIONS:
        for name, entry in source.statements(section).items():
            row = decided.get(name)
            why = "" if row else "no experiment of this report decides it"
            if row and row["verdict"] == statements.NOT_TESTED:
                why = row["decided_by"]
            rows.append(
                {
                    "id": name,
                    "verdict": row["verdict"] if row else statements.NOT_TESTED,
                    "says": entry.get("says") or entry["what"],
                    "link": bool(row),
                    "why": why,
                }
            )
    return rows
