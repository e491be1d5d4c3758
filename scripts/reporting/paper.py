"""What a source's card says beside its bars and tables: headline, failures, what is open, and the run."""

from checks import verdicts
from reporting import readings, sources
from study import facts

UNCHECKED = (verdicts.NOT_TESTED, verdicts.NOT_RUN, verdicts.NOT_DECIDED, verdicts.NOT_JUDGED)


def page(card, gathered, experiments):
    """{headline, terms, failed, original, stated, unstated, choices, unchecked, run} of a source's card.

    card: of `sources.cards`. gathered: a list of `reporting.collect.Gathered`. experiments: their page
    content, in the same order.
    """
    source, rows = facts.read(card["key"]), card["rows"]
    both = zip(gathered, experiments, strict=True)
    own = [(part, shown) for part, shown in both if shown["source"] == source.key]
    numbers = _numbers(own)
    claims = [row for row in rows if row["id"] in source.headline_claims]
    figures = {str(key): text for key, text in (source.figures or {}).items()}
    stated, unstated = told(source.settings or {})
    return {
        "headline": {"claims": claims, "number": _headline_number(source, own)},
        "terms": terms(source, claims),
        "failed": [*_failed_statements(source, rows), *_failed_numbers(source, numbers)],
        "original": figures.get(source.headline_original or "", ""),
        "stated": stated,
        "unstated": unstated,
        "choices": [
            choice(name, entry, source.stated.get(name, {}))
            for part, _ in own
            for name, entry in part.experiment.readings.items()
        ],
        "unchecked": unchecked(rows, numbers),
        "run": _run(own),
    }


def choice(name, reading, stated):
    """{name, open, main, stated: [(value, what the text says for it)], against: values that contradict it}.

    reading: an entry of an experiment's `readings`. stated: value -> what the text says; with {}, the
    source leaves the choice open.
    """
    values = [reading.main, *reading.others]
    return {
        "name": name.replace("_", " "),
        "open": reading.open,
        "main": facts.in_words(reading.main),
        "stated": [(facts.in_words(value), said) for value, said in stated.items()],
        "against": [facts.in_words(value) for value in values if value not in stated]
        if stated
        else [],
    }


def _numbers(own):
    """[(comparison, names of methods, row of published.csv)] of each printed number, once."""
    found = []
    for part, shown in own:
        for row in readings.once(shown["verdicts"]["published"]):
            found.append((part.experiment.published[row["comparison"]], shown["names"], row))
    return found


def _headline_number(source, own):
    """{title, printed, ours, default, says, outcome} of the headline's number, or None."""
    for part, shown in own:
        beside = [
            row
            for row in shown["verdicts"]["published"]
            if row["published_at"] in (source.headline_number, _parent(source.headline_number))
        ]
        if beside:
            spec = part.experiment.published[beside[0]["comparison"]]
            number = sources.cell(beside, shown["names"], _scale(spec))
            return {"title": spec.title, "of": _of(source, spec, beside[0])} | number
    return None


def _scale(spec):
    return 100 if spec.quantity == "accuracy_percent" else 1


def _of(source, spec, row):
    """Which number of its table it is, such as "real, algorithm 1"."""
    at = row["published_at"].removeprefix(spec.values).strip("/").split("/")
    columns = sources.columns_of(source, spec.values)
    named = [columns[int(p)] if p.isdigit() and int(p) < len(columns) else p for p in at]
    return ", ".join(part for part in named if part not in ("", "rows")).replace("_", " ")


def _parent(path):
    """The path of the pair of a mean and its standard deviation."""
    return (path or "").rpartition("/")[0]


def terms(source, claims):
    """What the verdicts are called elsewhere, in a sentence.

    ACM says *replicated* if others obtain the main results without what the authors supplied, and
    ReScience C calls such work a replication. Only what holds as stated is called so, and only without
    the authors' program.
    """
    if source.program:
        return f"The authors' program: {source.program}."
    none = "We know of no program by the authors, and ours is independent."
    if claims and all(row["in_short"] == "as stated" for row in claims):
        none += (
            " In the terms of ACM and ReScience C its headline claims are replicated, though not each "
            "printed number; ACM gave no badge."
        )
    return none


def _failed_statements(source, rows):
    """Claims that fail, charges that are not shown, and defects that stand for printed numbers."""
    of_numbers = {entry.id for entry in source.defects if entry.numbers}
    prefixes = {"not reproduced": "", "not shown": "our charge is not shown: "}
    for row in rows:
        outcome = row["in_short"]
        if outcome == "shown" and row["id"] in of_numbers:
            yield {"id": row["id"], "text": f"printed: {row['says']}", "why": row["why"]}
        elif outcome in prefixes:
            text = prefixes[outcome] + row["says"]
            yield {"id": row["id"], "text": text, "why": row["why"]}


def _failed_numbers(source, numbers):
    for spec, names, row in numbers:
        if sources.outcome(row["verdict"]) == "not reproduced":
            number = sources.cell([row], names, _scale(spec))
            spread = ", standard deviation" * ("standard deviation" in row["quantity"])
            what = f"{spec.title}, {_of(source, spec, row)}{spread}"
            text = f"{what}: printed {number['printed']}, ours {number['ours']}"
            yield {"id": "", "text": text, "why": number["says"]}


def told(settings):
    """([(what, text)] that a source states, [what] it is known not to state) of its settings."""
    stated, unstated = [], []
    for key, value in settings.items():
        name = str(key).replace("_", " ")
        if value is None:
            unstated.append(name)
        else:
            stated.append((name, _text(value)))
    return stated, unstated


def _text(value):
    if isinstance(value, dict):
        said = (f"{str(key).replace('_', ' ')}: {_text(inner)}" for key, inner in value.items())
        return "; ".join(said)
    if isinstance(value, list):
        return ", ".join(_text(inner) for inner in value)
    return "not stated" if value is None else str(value)


def unchecked(rows, numbers):
    """[{id, text, why}] of statements, and of all printed numbers with one reason, without a verdict."""
    groups, values = {}, {}
    for _, _, row in numbers:
        if row["verdict"] in UNCHECKED:
            reason = row.get("cause") or row["reason"]
            if value := row.get("cause_value"):
                values.setdefault(reason, {})[value] = None
            groups[reason] = groups.get(reason, 0) + 1
    listed = [
        {"id": row["id"], "text": row["says"], "why": row["why"] or row["verdict"]}
        for row in rows
        if row["verdict"] in UNCHECKED
    ]
    for reason, count in groups.items():
        which = f": {', '.join(values[reason])}" if reason in values else ""
        counted = f"{count} printed number{'s' if count > 1 else ''}"
        listed.append({"id": "", "text": counted, "why": f"{reason}{which}".replace("_", " ")})
    return listed


def _run(own):
    """{names, minutes, dates, commits} of the runs of a source's experiments; minutes are a processor's."""
    made = [part.provenance() for part, _ in own]
    return {
        "names": " ".join(part.experiment.name for part, _ in own),
        "minutes": sum(shown["cpu_seconds"] for _, shown in own) / 60,
        "dates": sorted({each["written"][:10] for each in made if each.get("written")}),
        "commits": sorted({each["commit"][:12] for each in made if each.get("commit")}),
    }
