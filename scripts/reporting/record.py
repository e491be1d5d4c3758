"""Reads and writes the records in config/record/: verdicts of runs too long to repeat.

A record belongs to a source or, for recommendations, to an experiment. Its folder has tables as the run
wrote them, and `run.json`: commit, date, machine, overlays, processor hours, the digests that tell whether
the record is stale (`reporting.stale`), and digests of a sample of the run's files.
"""

import hashlib
import textwrap
from collections import Counter
from pathlib import Path
from types import MappingProxyType

from checks import by_source, verdicts
from reporting import readings
from study import facts, paths
from study.jobs import cost
from study.jobs.files import read_csv, read_json, write_csv, write_json

FOLDER = paths.HOME / "config/record"
SECTIONS = ("published", "claims", "defects")
OPEN = (
    *(verdicts.NOT_TESTED, verdicts.NOT_RUN, verdicts.NOT_DECIDED, verdicts.NOT_JUDGED),
    *(verdicts.UNDECIDED, verdicts.TOO_WIDE),
)
MARKS = ("<!-- recorded, by scripts/tools/record.py -->", "<!-- end -->")
WHY = {
    "settings": "its settings have changed",
    "data": "its data have changed",
    "code": "the code of its cells has changed",
    "judge": "the code that judges has changed",
}
NOTHING = MappingProxyType({})  # no record is stale


def files():
    """The records' files; none in a study, which has other settings."""
    return [] if paths.in_study() else sorted(FOLDER.glob("*/*"))


def names():
    return sorted({path.parent.name for path in files()})


def run(name):
    return read_json(FOLDER / name / "run.json")


def read(table, name=None):
    """Rows of a table in all records or in one: strings by column, and `record`, `commit` and `date`."""
    rows = []
    for known in names():
        path = FOLDER / known / f"{table}.csv"
        if name in (None, known) and path.exists():
            made = run(known)
            origin = {"record": known, "commit": made["commit"], "date": made["date"]}
            rows += [row | origin for row in read_csv(path)]
    return rows


def name_of(experiment):
    own = experiment.recommends
    return experiment.name if own else experiment.source or experiment.name


def write(name, experiments, variants, configfile, digests):
    """Replace a record by the finished results of these experiments.

    variants: the experiments and their readings. digests: of `reporting.stale`.
    """
    tables = _tables(experiments)
    # Of several experiments, the one that finished last names the commit.
    provenances = [read_json(paths.PROVENANCE(experiment=each.name)) for each in experiments]
    made = max(provenances, key=lambda each: each["written"])
    for table in ("verdicts", "recommendations", "regret"):
        path = FOLDER / name / f"{table}.csv"
        if rows := tables.get(table):
            write_csv(path, [*rows[0]], (row.values() for row in rows))
        else:
            path.unlink(missing_ok=True)
    write_json(
        FOLDER / name / "run.json",
        {
            "experiments": [each.name for each in experiments],
            "commit": (made["commit"] or "")[:12] + "+" * bool(made["uncommitted_changes"]),
            "date": made["written"][:10],
            "machine": f"{made['machine']} {made['system'].partition('-')[0]}",
            "configfile": configfile,
            "processor_hours": round(_seconds(variants) / 3600, 4),
            "digests": digests,
            "sample": {path: digest(paths.results(path)) for path in sampled(variants)},
        },
    )


def _seconds(variants):
    logs = [
        log
        for variant in variants
        for log in Path(paths.results(variant.folder)).glob("logs/**/*.log")
    ]
    return sum(took.cpu for took in map(cost.read, logs) if took)


def _tables(experiments):
    """Name of a table -> its rows on these experiments."""
    chosen = {experiment.name for experiment in experiments}
    tables = {"verdicts": []}
    for source in dict.fromkeys(filter(None, (e.source for e in experiments))):
        decided = {e.name: _decided(e) for e in experiments if e.source == source}
        rows = by_source.rows(facts.read(source), decided)
        tables["verdicts"] += [row for row in rows if row["experiment"] in chosen]
    if any(e.recommends for e in experiments):
        # Imported here because it loads pandas, which the workflow must be able to start without.
        from reporting.recommendations import NOT_BEATEN

        # Methods that are beaten would make the record several times as large.
        for table, place in (("recommendations", paths.RECOMMENDATIONS), ("regret", paths.ACROSS)):
            rows = read_csv(place()) if Path(place()).exists() else []
            tables[table] = [
                row
                for row in rows
                if row["experiment"] in chosen and row.get("standing", NOT_BEATEN) == NOT_BEATEN
            ]
    return tables


def _decided(experiment):
    return {
        section: read_csv(path)
        for section in SECTIONS
        if Path(path := paths.VERDICTS(experiment=experiment.name, section=section)).exists()
    }


def sampled(variants):
    """Files below the results folder: per method and data set, the run whose path has the smallest digest.

    An experiment without runs has its prepared data instead.
    """
    chosen = {}
    for variant in variants:
        for cell in variant.cells():
            path = str(Path(variant.run_path(cell)).relative_to(paths.results()))
            key = variant.axis(), cell.dataset, cell.method
            chosen[key] = min(chosen.get(key, path), path, key=_digest_of_text)
        for dataset in variant.datasets if not variant.sweeps else ():
            path = str(Path(paths.DATA(dataset=dataset)).relative_to(paths.results()))
            chosen[variant.axis(), dataset] = path
    return sorted(set(chosen.values()))


def _digest_of_text(text):
    return hashlib.sha256(text.encode()).hexdigest()


def digest(path):
    """Twelve hexadecimal digits of a file's content."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


def recommended(stale):
    return answers(read("regret"), stale)


def why_stale(name, stale):
    """Why a record is stale; "" if not. stale: see `reporting.stale.changed`."""
    return " and ".join(WHY[what] for what in stale.get(name, ()))


def instead(source, rows):
    """(rows, further): a source's rows of this run, with the recorded row in place of one left open.

    further: recorded rows of which this run has none, because they are of other data or sizes. They are
    shown, but what is counted are this run's. Each row has `date`: "" if it is of this run.
    """
    recorded = {_at(row): row for row in read("verdicts", source)}
    own = [(row, recorded.pop(_at(row), None)) for row in rows]
    chosen = [
        other | {"counted": row.get("counted", "")}
        if other and row["verdict"] in OPEN and not _older(other)
        else row | {"date": ""}
        for row, other in own
    ]
    return chosen, [*recorded.values()]


def _older(row):
    """Whether a recorded verdict says that a number fails, by rules older than its record's format.

    They let numbers fail for settings that their source does not state.
    """
    return "counted" not in row and row["verdict"].startswith(verdicts.NOT_REPRODUCED)


def _at(row):
    return tuple(row[key] for key in by_source.KEY)


def beside(source, decided, stale):
    """Recorded verdicts on those values and statements of a source that this run leaves open, or None.

    decided: experiment -> section -> rows of this run's verdicts. stale: see `why_stale`.
    """
    undecided = {
        by_source.key_of(row, section, name)
        for name, sections in decided.items()
        for section, rows in sections.items()
        for row in rows
        if row["verdict"] in OPEN
    }
    rows = read("verdicts")
    recorded = [row for row in rows if _at(row) in undecided]
    recorded += [row for row in read("verdicts", source) if row["experiment"] not in decided]
    if not recorded:
        return None
    return {
        "sentence": f"Not decided by this run; {sentence(recorded, stale)}",
        "rows": [row | {"stale": why_stale(row["record"], stale)} for row in recorded],
    }


def sentence(rows, stale=NOTHING):
    data = sorted({row["dataset"].replace("_", " ") for row in rows if row["dataset"]})
    at = sorted({f"{row['commit']} on {row['date']}" for row in rows})
    old = sorted({row["record"] for row in rows}.intersection(stale))
    return (
        f"recorded{' with ' * bool(data)}{', '.join(data)} at {'; '.join(at)}. {counts(once(rows))}"
        + "".join(f" The record {name} is stale, since {why_stale(name, stale)}." for name in old)
    )


def counts(rows):
    """How many results, other numbers and defects there are, and their outcomes, in one sentence.

    rows: each statement and printed number once.
    """
    groups = {"results": Counter(), "other numbers": Counter(), "defects": Counter()}
    for row in rows:
        if row.get("section") == "defects":
            name = "defects"
        else:
            name = "results" if readings.kind_of(row) in readings.RESULTS else "other numbers"
        groups[name][outcome(row)] += 1
    said = [
        f"{found.total():,} {name}: {', '.join(f'{count} {word}' for word, count in found.most_common())}"
        for name, found in groups.items()
        if found
    ]
    return f"Of {'; of '.join(said)}."


def answers(rows, stale=NOTHING):
    """One sentence per experiment and regime, on the method with the smallest regret.

    rows: of regret.csv, with their record.
    """
    groups = {}
    for row in rows:
        if row["shared_regret"]:
            where = f"{row['regime']}, {row['adjacency']}"
            groups.setdefault((row["experiment"], where), []).append(row)
    said = []
    for (name, where), group in groups.items():
        best = min(group, key=lambda row: float(row["shared_regret"]))
        ends = [best[f"shared_regret_{end}"] for end in ("low", "high")]
        sets = f"{best['shared_data_sets']} data sets"
        if all(ends):  # a single data set has no interval
            sets = f"{100 * float(ends[0]):.1f} to {100 * float(ends[1]):.1f} %, {sets}"
        said.append(
            f"{name.replace('_', ' ')} ({where}), recorded at {best['commit']} on {best['date']}: "
            f"{best['method'].replace('_', ' ')} loses least, {100 * float(best['shared_regret']):.1f} "
            f"% of the gain ({sets}), and is not beaten in {best['shared_not_beaten']} of "
            f"{best['shared_questions']} comparisons"
            + (f"; stale, since {why}." if (why := why_stale(best["record"], stale)) else ".")
        )
    return said


def in_document(text):
    """A document with the text between its two marks replaced by the records' summary."""
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    said = []
    for name in names():
        counted = read("verdicts", name)
        text = [sentence(counted)] * bool(counted) + answers(read("regret", name))
        line = f"- `{name}`, {run(name)['processor_hours']:.2g} processor hours: {' '.join(text)}"
        said.append(textwrap.fill(line, 120, subsequent_indent="  ", break_long_words=False))
    return "\n".join([before + MARKS[0], *said, MARKS[1] + after])


def once(rows):
    """The first row of each recorded statement and printed number that is counted."""
    unique = {}
    for row in rows:
        if row.get("counted") == verdicts.AGAIN:
            continue
        printed = row["id"].partition(" ")[2] or row["id"]
        unique.setdefault((printed, "standard deviation" in row["quantity"]), row)
    return list(unique.values())


def outcome(row):
    verdict = row["verdict"]
    if verdict in (verdicts.REPRODUCED, "shown"):
        return "as stated" if verdict == verdicts.REPRODUCED else "shown"
    if verdict.startswith(verdicts.REPRODUCED):
        return "under a reading"
    return "not reproduced" if verdict.startswith(verdicts.NOT_REPRODUCED) else verdict
