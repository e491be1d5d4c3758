"""readings.csv: every printed value and claim of an experiment as stated, and under each reading."""

from collections import Counter

from checks import statements
from checks.published import compare
from checks.results import Results
from checks.verdicts import matches
from study.configuration import needs
from study.configuration.experiment import Cell

AS_STATED = "as stated"
COLUMNS = (
    *("section", "id", "reading", "open", "concerned", "published_at", "dataset", "method"),
    *("train_size", "epsilon", "quantity", "published", "ours", "prediction_low"),
    *("prediction_high", "distance", "holds", "reason"),
)


class Read(Results):
    """Results of a reading: its own cells, and the main experiment's if the reading changes nothing."""

    def __init__(self, reading, main):
        import pandas as pd  # 0.6 s to import

        self.own = set(reading.cells())
        self.main, self.reading = main, reading
        frames = []
        if self.own:
            frames.append(Results(reading).frame)
        shared = needs.cells(reading.plain()) - self.own
        keys = [Cell(*key) for key in main.frame[[*Cell._fields]].itertuples(index=False)]
        frames.append(main.frame.loc[[key in shared for key in keys]])
        super().__init__(reading.plain(), pd.concat(frames, ignore_index=True))

    def run_path(self, cell):
        return (self.reading if cell in self.own else self.main.experiment).run_path(cell)


def confront(experiment, readings, source, stand_ins):
    """Rows of readings.csv. readings: as `study.configuration.readings` derives them."""
    main = Results(experiment)
    decided = needs.decided(experiment, readings)
    yield from _rows(main, decided, source, stand_ins, AS_STATED, "", None)
    for reading in readings:
        about = reading.reading
        results = Read(reading, main)
        own = (reading.published, reading.claims)
        yield from _rows(results, own, source, stand_ins, about["label"], about["open"], experiment)


def most_telling_first(rows):
    """Rows of readings.csv (text) of the readings alone, sorted by how many printed values and claims each
    reading explains. If several agree with a value, its verdict then names the one that explains most."""
    rows = [row for row in rows if row["reading"] != AS_STATED]
    explained = Counter(
        row["reading"]
        for row in rows
        if row["concerned"] == "yes" and (matches(row["distance"]) or row["holds"] == "yes")
    )
    return sorted(rows, key=lambda row: -explained[row["reading"]])


def _rows(results, decided, source, stand_ins, label, left_open, main):
    """Rows of one reading. decided: names of comparisons, and of claims. main: the experiment as stated,
    which shows what a reading concerns; None if the reading is that experiment."""
    experiment = results.experiment
    shown = {"reading": label, "open": left_open}
    comparisons = {name: experiment.published[name] for name in decided[0]}
    agrees = {}
    for row in compare(results, source, comparisons, stand_ins):
        agrees[row["id"]] = matches(row.get("distance"))
        concerned = main is None or _concerns_value(results, main, row)
        yield row | shown | {"section": "published", "concerned": _yes(concerned)}
    for name in decided[1]:
        checks = experiment.claims[name]["checks"]
        outcome = statements.join([statements.run(results, check) for check in checks])
        given = experiment.claims[name].get("given")
        if not agrees.get(given, True):
            outcome = statements.Outcome(None, f"{statements.ANOTHER_MODEL}: {outcome.decided_by}")
        left_out = _data_sets(checks).difference(experiment.datasets)
        if left_out:
            why = f"this reading is not about {', '.join(sorted(left_out))}"
            outcome = statements.Outcome(None, why)
        concerned = main is None or _concerns_claim(results, main, name)
        yield shown | {
            "section": "claims",
            "id": name,
            "concerned": _yes(concerned),
            "holds": {True: "yes", False: "no", None: ""}[outcome.holds],
            "reason": outcome.decided_by,
        }


def _data_sets(checks):
    named = [check["options"].get("datasets") or [] for check in checks]
    return {name for each in named for name in ([each] if isinstance(each, str) else each)}


def _yes(truth):
    return "yes" if truth else "no"


def _concerns_value(results, main, row):
    """Whether a reading compares a printed value with a different cell from the main experiment's, or
    with a table or analysis of its own."""
    name, number = row["id"].split("/")[:2]
    if name not in needs.comparisons(main):
        return True
    theirs = needs.items(main, name)[int(number)]
    ours = needs.items(results.experiment, name)[int(number)]
    return ours != theirs or ours in results.own


def _concerns_claim(results, main, name):
    """Whether a reading decides a claim from different cells, or from a table or analysis of its own. Fewer
    of the same cells are not different."""
    if name not in needs.claims(main):
        return True
    ours, theirs = (needs.of_claim(each, name) for each in (results.experiment, main))
    return bool(ours & results.own) or not ours <= theirs
