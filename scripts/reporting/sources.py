"""Builds a card per source: its printed numbers and claims, how many hold, and its methods' privacy."""

import math

from checks import statements, verdicts
from checks.verdicts import AGAIN
from dp_privacy.accounting import LOOKED
from plots import style
from reporting import dots, readings, record
from study import canonical
from study import facts as source_file

# Columns that are scaled to the source's unit.
SCALED = ("published", "ours", "prediction_low", "prediction_high", "read_ours")
SCALED += ("read_low", "read_high")
SECTIONS = ("claims", "defects")
UNREASONED = (verdicts.NOT_JUDGED, verdicts.NOT_DECIDED)  # verdicts shown without a reason
ELSEWHERE = "No experiment of this report decides it."
# Outcome, as `record.outcome` names it -> (mark in a table, style, meaning).
OUTCOMES = {
    "as stated": ("✓", "good", "our number agrees with the printed one"),
    "under a reading": (
        "✓*",
        "mild",
        "it agrees only under one reading of the source, whose number is shown",
    ),
    "not reproduced": ("✗", "bad", "it agrees under no reading that we tried"),
    verdicts.TOO_WIDE: ("↔", "open", "it agrees, but our interval is too wide to tell"),
    verdicts.UNDECIDED: (
        "?",
        "open",
        "our interval ends too near to settle it, or our model without noise is not the source's: each "
        "says which",
    ),
    verdicts.NOT_EXCLUDED: ("=", "open", "all values that we tried of a setting tie"),
    verdicts.CALIBRATED: ("∘", "plain", "our settings were chosen to match it"),
    verdicts.NOT_TESTED: (
        "·",
        "plain",
        "we lack the source's data, its protocol, or a result that a check needs",
    ),
    verdicts.AS_A_DEFECT: ("→", "plain", "a defect is about this number, and is judged instead"),
    verdicts.NOT_RUN: ("-", "plain", "this run does not decide it"),
}


def cards(gathered, experiments, stale=None):
    """A card per source; the sources of these experiments come first.

    gathered: a list of `reporting.collect.Gathered`. experiments: their page content, in the same order.
    stale: see `reporting.stale.changed`; with None, cards do not use the records.
    """
    entries = []
    for key in source_file.files():
        source = source_file.read(key)
        own = [
            (part, shown)
            for part, shown in zip(gathered, experiments, strict=True)
            if shown["source"] == source.key
        ]
        rows = _statements(source, experiments)
        judged = {"results": [], "other numbers": []}
        for _, shown in own:
            both = [
                row for section in ("published", "claims") for row in shown["verdicts"][section]
            ]
            for row in readings.once(both):
                is_result = readings.kind_of(row) in readings.RESULTS
                judged["results" if is_result else "other numbers"].append(row)
        defects = [row for row in rows if row["section"] == "defects" and row["counted"] != AGAIN]
        recorded = None
        if stale is not None:
            recorded = record.beside(key, {e["name"]: e["verdicts"] for _, e in own}, stale)
            before = recorded["rows"] if recorded else []
            before = [row for row in before if row["section"] != "defects"]
            judged["recorded before"] = record.once(before)
        entries.append(
            {
                "key": source.key,
                "short": source.short,
                "cited": source.cited or key.replace("_", " "),
                "link": source.link,
                "experiments": [(shown["name"], shown["title"]) for _, shown in own],
                "open": bool(own),
                "recorded": recorded,
                "data": data([part for part, _ in own]),
                "rows": rows,
                "defects": (sum(row["verdict"] == "shown" for row in defects), len(defects)),
                "bars": [(what, _bar(r)) for what, r in judged.items() if r],
                "results": _bar(judged["results"]),
                "privacy": privacy([part for part, _ in own]),
                "tables": [t for part, shown in own for t in _tables(part, shown, source)],
                "readings": [
                    (shown["title"], shown["readings"]) for _, shown in own if shown["readings"]
                ],
                "figure": _headline(source, [shown for _, shown in own]),
            }
        )
    return sorted(entries, key=lambda card: not card["open"])


def _headline(source, shown):
    """The figure that the source names, or the first figure of its largest experiment."""
    drawn = {figure["id"]: figure for e in shown for figure in e["figures"] if figure["data"]}
    most = max(shown, key=lambda e: e["cells"], default={"figures": ()})
    first = next((figure["id"] for figure in most["figures"] if figure["data"]), None)
    return drawn.get((source.headline or "").replace("/", "-"), drawn.get(first))


def data(parts):
    names, reasons = {}, {}
    for part in parts:
        for dataset in part.data():
            names.setdefault(dataset["kind"] or "not prepared", {})[dataset["title"]] = None
        datasets = part.experiment.datasets
        if datasets and all(name in part.stand_ins for name in datasets):
            reasons |= dict.fromkeys(part.stand_ins[name] for name in datasets)
    said = [f"Data {kind}: {'; '.join(titles)}." for kind, titles in names.items()]
    return " ".join([*said, *(f"{reason[0].upper()}{reason[1:]}." for reason in reasons)])


def outcome(verdict):
    """The key in OUTCOMES of a verdict on a printed number or claim."""
    name = record.outcome({"verdict": verdict})
    return name if name in OUTCOMES else verdicts.NOT_RUN


def look(name):
    """The style of an outcome."""
    return OUTCOMES[name if name in OUTCOMES else verdicts.NOT_RUN][1]


def _bar(rows):
    counted = dict.fromkeys(OUTCOMES, 0)
    for row in rows:
        counted[outcome(row["verdict"])] += 1
    return [
        (name, count, round(100 * count / len(rows), 2), OUTCOMES[name][1])
        for name, count in counted.items()
        if count
    ]


def privacy(parts):
    """Sentences on the claimed and proven epsilon of the source's private methods.

    A method counts as the source's if a printed number is compared with it. Cells whose lambda is not the
    published one are left out. If preparation or tuning looked at the private rows, a sentence names
    these steps instead of an epsilon.
    """
    worst, unproven, spoilt = {}, {}, {}
    for part in parts:
        frame, methods = part.frame, part.experiment.methods
        printed = part.experiment.published.values()
        own = {row.method for spec in printed for row in spec.rows}
        if "epsilon_proven" not in frame or frame.empty:
            continue
        names = {label: look["label"] for label, look in style.looks(methods).items()}
        for row in frame[frame["epsilon_claimed"].notna()].to_dict("records"):
            method = row["method"]
            if method not in own or not methods[method].private or not row["epsilon_claimed"] > 0:
                continue
            if _of_another_lambda(part.experiment, row):
                continue
            steps, looked, _ = str(row.get("reason", "")).partition(LOOKED)
            if looked:
                spoilt[steps] = None
            elif math.isnan(row["epsilon_proven"]):
                unproven[names[method]] = None
            else:
                epsilons = (float(row["epsilon_proven"]), float(row["epsilon_claimed"]))
                before = worst.get(names[method], (0.0, 1.0))
                worst[names[method]] = max(before, epsilons, key=lambda pair: pair[0] / pair[1])
    held = [name for name, (proven, claimed) in worst.items() if proven <= claimed * (1 + 1e-9)]
    more = [
        f"{name} (claimed {dots.brief(claimed)}, "
        + ("without a finite epsilon)" if math.isinf(proven) else f"proven {dots.brief(proven)})")
        for name, (proven, claimed) in worst.items()
        if name not in held
    ]
    kinds = {
        "Proven as claimed: {}.": held,
        "Less private than claimed: {}.": more,
        "Claimed, not proven: {}.": list(unproven),
        "No method has a finite epsilon on rows whose preparation looked at them: {}.": [
            steps.replace("_", " ") for steps in spoilt
        ],
    }
    return [text.format("; ".join(items)) for text, items in kinds.items() if items]


def _of_another_lambda(experiment, row):
    published, own = experiment.lambda_published, row.get("lambda", math.nan)
    return isinstance(published, float) and abs(own - published) > 1e-9 * published


def _tables(part, shown, source):
    """The source's tables in their printed layout, with our numbers in every cell."""
    tables = []
    for name, spec in part.experiment.published.items():
        cells = {}
        for row in shown["verdicts"]["published"]:
            if row["comparison"] == name:
                cells.setdefault(row["published_at"], []).append(row)
        if not cells:
            continue
        titles = columns_of(source, spec.values)
        grid, columns, implied = {}, {}, {}
        for at, rows in cells.items():
            *line, column = at.removeprefix(spec.values).strip("/").split("/")
            column = (
                titles[int(column)] if column.isdigit() and int(column) < len(titles) else column
            )
            columns[column] = None
            line = ", ".join(part for part in line if part != "rows")
            percent = spec.quantity == "accuracy_percent"
            grid.setdefault(line, {})[column] = cell(rows, shown["names"], 100 if percent else 1)
            for row in filter(_is_implied, rows):
                place = f"{line}, {column}".replace("_", " ")
                implied.setdefault(row["cause"], []).append(f"{place}: {row['implied']}")
        tables.append(
            {
                "title": spec.title,
                "note": spec.note or "",
                "implied": list(implied.items()),
                "compared": any(number["ours"] for own in grid.values() for number in own.values()),
                "columns": [column.replace("_", " ") for column in columns],
                "rows": [
                    (line.replace("_", " "), [own.get(column) for column in columns])
                    for line, own in grid.items()
                ],
            }
        )
    return tables


def _is_implied(row):
    """Whether a printed number is not tested, but would be ours at some epsilon."""
    return row["verdict"] == verdicts.NOT_TESTED and row.get("implied_epsilon")


def columns_of(source, path):
    table = source.look_up(path)
    return table.get("columns", ()) if isinstance(table, dict) else ()


def cell(rows, names, scale=1):
    """{printed, ours, default, says, outcome, implied} of one printed number.

    ours: our number, or that of the reading that the verdict names; then, `default` is our number with the
    settings as we take them. The outcome is that of the first mean or, without means, of the first standard
    deviation. implied: the epsilon at which ours would be the printed number, if it is not tested.
    rows: the number's rows of published.csv. scale: 100 if the source prints percentages, because
    published.csv has fractions.
    """
    rows = [
        row | {key: float(row[key]) * scale for key in SCALED if row.get(key) not in (None, "")}
        for row in rows
    ]
    spreads = [row for row in rows if "standard deviation" in row["quantity"]]
    values = [row for row in rows if row not in spreads] or spreads
    printed, ours, read = (
        _spread(values[0], spreads, key) for key in ("published", "ours", "read_ours")
    )
    known = outcome(values[0]["verdict"])
    said = {}  # sentence -> the numbers that it describes
    for row in (*values, *spreads):
        number = _between(row, "ours", "prediction")
        if row.get("read_ours"):
            number = f"{_between(row, 'read_ours', 'read')}, and by default {number}"
        what = "standard deviation, " * (row in spreads) + names.get(row["method"], row["method"])
        reason = f": {row['reason']}" if row.get("reason") else ""
        said.setdefault(f"{number}; {row['verdict']}{reason}.", []).append(what)
    return {
        "printed": printed,
        "ours": read or ours,
        "default": ours if read else "",
        "says": " ".join(
            [
                f"Printed {printed}.",
                *(f"Ours ({'; '.join(of)}): {text}" for text, of in said.items()),
            ]
        ).replace("_", " "),
        "outcome": known,
        "implied": values[0]["implied"] if _is_implied(values[0]) else "",
    }


def _between(row, key, ends):
    number = dots.brief(row.get(key))
    ends = [dots.brief(row.get(f"{ends}_{end}")) for end in ("low", "high")]
    run = f"; a run of the source's size gives {ends[0]} to {ends[1]}" * all(ends)
    return f"{number or 'none'}{run}"


def _spread(row, spreads, key):
    # A source's own digits are kept.
    spell = canonical.number if key == "published" else dots.brief
    text, beside = spell(row.get(key)), [s for s in spreads if s["method"] == row["method"]]
    other = spell(beside[0].get(key)) if beside and beside[0] is not row else ""
    return f"{text} ± {other}" if text and other else text


def _statements(source, experiments):
    decided = {
        row["id"]: row
        for experiment in experiments
        for section in SECTIONS
        for row in experiment["verdicts"][section]
    }
    because = {
        row["id"]: row["decided_by"]
        for experiment in experiments
        for row in experiment["statements"]
    }
    return [
        {
            "id": name,
            "section": section,
            "verdict": (verdict := decided.get(name, {}).get("verdict", statements.NOT_TESTED)),
            "in_short": verdict if section == "defects" else outcome(verdict),
            "counted": statements.counted(entry),
            "where": entry.where or "",
            "shown_in": entry.shown_in or (),
            "says": entry.says,
            "size": entry.size or "",
            "why": "" if verdict in UNREASONED else because.get(name, ELSEWHERE),
        }
        for section in SECTIONS
        for name, entry in source.statements(section).items()
    ]
