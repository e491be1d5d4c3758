"""Reads and writes the record in config/record/: verdicts of runs too long to repeat.

Each file belongs to a source or, for recommendations, to an experiment. It has the lines of the source's
table of verdicts, with date, machine and stamps (`checks.stamps`). It also has digests of a sample of
cells, and the total CPU seconds of each run.
"""

import hashlib
import textwrap
from collections import Counter
from pathlib import Path

from checks import by_source, verdicts
from study import facts, paths
from study.canonical import epsilon
from study.jobs import cost
from study.jobs.files import read_csv, read_json, write_csv

FOLDER = paths.HOME / "config/record"
SECTIONS = ("published", "claims", "defects")
MADE = ("commit", "date", "machine", "configfile")
COLUMNS = (*by_source.KEY, *by_source.NUMBERS, "seconds", "bytes", *by_source.STAMPS, *MADE)
OPEN = (
    *(verdicts.NOT_TESTED, verdicts.NOT_RUN, verdicts.NOT_DECIDED, verdicts.NOT_JUDGED),
    *(verdicts.UNDECIDED, verdicts.TOO_WIDE),
)
MARKS = ("<!-- recorded, by scripts/tools/record.py -->", "<!-- end -->")
WHY = {
    "settings": "its settings have changed",
    "code": "the code of its cells has changed",
    "judge": "the code that judges has changed",
    "data": "its data have changed",
}


def files():
    """The record's files; none in a study, which has other settings."""
    return [] if paths.in_study() else sorted(FOLDER.glob("*.csv"))


def read(name=None):
    """Lines of the record, as dictionaries of strings: all, or those of one file."""
    rows = [row for path in files() if name in (None, path.stem) for row in read_csv(path)]
    # A column that is younger than a file is empty in it.
    return [dict.fromkeys(COLUMNS, "") | row for row in rows]


def write(name, rows):
    """Write the lines of one file, sorted, so that an update changes only the lines of changed results."""
    rows = sorted(rows, key=lambda row: (row["experiment"], row["section"]))
    write_csv(FOLDER / f"{name}.csv", COLUMNS, ([row[key] for key in COLUMNS] for row in rows))


def file_of(experiment):
    own = experiment.values.get("recommends")
    return experiment.name if own else experiment.values.get("source") or experiment.name


def made_by(experiment, own, configfile):
    """The record's lines for one experiment's finished results, without stamps.

    own: the experiment and its readings.
    """
    name = experiment.name
    made = read_json(paths.PROVENANCE(experiment=name))
    common = {
        "experiment": name,
        "commit": (made["commit"] or "")[:12] + "+" * bool(made["uncommitted_changes"]),
        "date": made["written"][:10],
        "machine": f"{made['machine']} {made['system'].partition('-')[0]}",
        "configfile": configfile,
    }
    seconds = {_at(row): row["cpu_seconds"] for row in read_csv(paths.TIMING(experiment=name))}
    lines = [_run(own), *_decided(experiment), *_sample(own)]
    if experiment.values.get("recommends") and Path(paths.RECOMMENDATIONS()).exists():
        lines += _recommended(name)
    return [
        dict.fromkeys(COLUMNS, "") | {"seconds": seconds.get(_at(line), "")} | line | common
        for line in lines
    ]


def _at(row):
    return tuple(row.get(key, "") for key in ("dataset", "method", "train_size", "epsilon"))


def _run(own):
    costs = [
        cost.read(log)
        for experiment in own
        for log in Path(paths.results(experiment.folder)).glob("logs/**/*.log")
    ]
    return {"section": "run", "seconds": round(sum(took.cpu for took in costs if took))}


def _decided(experiment):
    if "source" not in experiment.values:
        return []
    decided = {
        section: read_csv(path)
        for section in SECTIONS
        if Path(path := paths.VERDICTS(experiment=experiment.name, section=section)).exists()
    }
    rows = by_source.rows(facts.read(experiment.source), {experiment.name: decided})
    columns = (*by_source.KEY, *by_source.NUMBERS)
    return [{k: row[k] for k in columns} for row in rows if row["experiment"] == experiment.name]


def _sample(own):
    """Yield one cell per method and data set: the cell whose path has the smallest digest."""
    chosen = {}
    for experiment in own:
        for cell in experiment.cells():
            below = Path(experiment.run_path(cell)).relative_to(paths.results())
            candidates = chosen.setdefault((cell.dataset, cell.method), {})
            candidates[digest(str(below).encode())] = experiment, cell
    for candidates in chosen.values():
        experiment, cell = candidates[min(candidates)]
        took = cost.read(experiment.run_log(cell))
        yield {
            "section": "cells",
            "id": experiment.folder,
            **cell._asdict(),
            "epsilon": epsilon(cell.epsilon),
            "seconds": took.cpu if took else "",
            "bytes": digest(Path(experiment.run_path(cell)).read_bytes()),
        }


def run_path(row):
    size = row["train_size"]
    where = {key: row[key] for key in ("dataset", "method", "epsilon")}
    return paths.RUN(experiment=row["id"], size=size, **where)


def _recommended(name):
    # Imported here because it loads pandas, which the workflow must be able to start without.
    from reporting.recommendations import NOT_BEATEN

    for row in read_csv(paths.RECOMMENDATIONS()):
        if row["experiment"] == name and row["standing"] == NOT_BEATEN:
            ends = {end: row[f"kept_{end}"] for end in ("low", "high")}
            where = f"{row['regime']}, {row['adjacency']}"
            gain = {"quantity": "gain kept", "ours": row["kept"], "verdict": row["standing"]}
            at = dict(zip(("dataset", "method", "train_size", "epsilon"), _at(row), strict=True))
            yield {"section": "recommendations", "id": where, **at, **gain, **ends}
    for row in read_csv(paths.ACROSS()):
        if row["experiment"] == name:
            yield {
                "section": "regret",
                "id": f"{row['regime']}, {row['adjacency']}",
                "method": row["method"],
                "quantity": f"share of the gain lost, {row['shared_data_sets']} data sets",
                "ours": row["shared_regret"],
                **{end: row[f"shared_regret_{end}"] for end in ("low", "high")},
                "verdict": f"not beaten in {row['shared_not_beaten']} of {row['shared_questions']}",
            }


def recommended(stale):
    return answers(read(), stale)


def why_stale(row, stale):
    """Why a line is stale; "" if not. stale: recorded digests that have changed."""
    return " and ".join(text for stamp, text in WHY.items() if row[stamp] in stale)


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
    recorded = [row for row in read() if tuple(row[key] for key in by_source.KEY) in undecided]
    recorded += [
        row
        for row in read(source)
        if row["experiment"] not in decided and row["section"] in SECTIONS
    ]
    if not recorded:
        return None
    return {
        "sentence": f"Not decided by this run; {sentence(recorded, stale)}",
        "rows": [row | {"stale": why_stale(row, stale)} for row in recorded],
    }


def sentence(rows, stale=()):
    data = sorted({row["dataset"].replace("_", " ") for row in rows if row["dataset"]})
    at = sorted({f"{row['commit']} on {row['date']}" for row in rows})
    counted = Counter(map(outcome, once(rows)))
    said = ", ".join(f"{count} {name}" for name, count in counted.most_common())
    old = Counter(filter(None, (why_stale(row, stale) for row in rows)))
    return (
        f"recorded{' with ' * bool(data)}{', '.join(data)} at {'; '.join(at)}. Of "
        f"{counted.total()} values, claims and defects: {said}."
        + "".join(f" {count} lines are stale, since {why}." for why, count in old.items())
    )


def answers(rows, stale=()):
    """One sentence per experiment and regime, on the method with the smallest regret."""
    groups = {}
    for row in rows:
        if row["section"] == "regret" and row["ours"]:
            groups.setdefault((row["experiment"], row["id"]), []).append(row)
    said = []
    for (name, where), group in groups.items():
        best = min(group, key=lambda row: float(row["ours"]))
        sets = best["quantity"].removeprefix("share of the gain lost, ")
        if best["low"]:  # a single data set has no interval
            sets = f"{100 * float(best['low']):.1f} to {100 * float(best['high']):.1f} %, {sets}"
        old = why_stale(best, stale)
        said.append(
            f"{name.replace('_', ' ')} ({where}), recorded at {best['commit']} on {best['date']}: "
            f"{best['method'].replace('_', ' ')} loses least, {100 * float(best['ours']):.1f} % of the "
            f"gain ({sets}), and is {best['verdict']} comparisons"
            + (f"; stale, since {old}." if old else ".")
        )
    return said


def in_document(text):
    """A document with the text between its two marks replaced by the record's summary."""
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    said = []
    for path in files():
        rows = read(path.stem)
        counted = [row for row in rows if row["section"] in SECTIONS]
        hours = sum(float(row["seconds"]) for row in rows if row["section"] == "run") / 3600
        text = [sentence(counted)] * bool(counted) + answers(rows)
        line = f"- `{path.stem}`, {hours:.2g} processor hours: {' '.join(text)}"
        said.append(textwrap.fill(line, 120, subsequent_indent="  ", break_long_words=False))
    return "\n".join([before + MARKS[0], *said, MARKS[1] + after])


def once(rows):
    """The first row of each recorded statement and printed number."""
    unique = {}
    for row in rows:
        if row["section"] in SECTIONS:
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


def digest(content):
    return hashlib.sha256(content).hexdigest()[:12]
