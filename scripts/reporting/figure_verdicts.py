"""What the page says beside a source's figure: verdicts on the claims and printed numbers in it."""

from collections import Counter

from reporting import readings, record
from study.configuration import kinds
from study.configuration.options import Comparison, named

NOTHING = "no claim or printed number of its source is about it"


def of_claims(cards):
    """Page's id of a figure -> [(id of a claim that it shows, outcome)], from the sources' cards."""
    shown = {}
    for row in (row for card in cards for row in card["rows"]):
        for figure in row["shown_in"]:
            name = figure.replace("/", "-")
            shown.setdefault(name, []).append((row["id"], row["in_short"]))
    return shown


def of_numbers(experiment, spec, rows):
    """How many of the printed means in a figure have each outcome, in words; "" if it shows none.

    rows: of published.csv. A number counts once, for the first method that is compared with it.
    """
    chosen = named(kinds.FIGURES[spec.kind].options, spec.options, Comparison)
    datasets, methods = spec.datasets or experiment.datasets, spec.methods or experiment.methods
    own = [
        row
        for row in rows
        if row["comparison"] in chosen
        and row["dataset"] in ("", *datasets)
        and row["method"] in ("", *methods)
        and readings.kind_of(row) == readings.MEANS
    ]
    counted = Counter(record.outcome(row) for row in readings.once(own))
    return ", ".join(f"{count} {outcome}" for outcome, count in counted.most_common())
