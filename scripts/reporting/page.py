"""The page: what `Gathered` found, laid out by workflow/report/report.html.j2."""

import json
import math
from collections import Counter
from pathlib import Path

import jinja2

from checks import statements, verdicts
from reporting import costs, ledger, readings
from study import facts as source_file
from study import paths
from study.canonical import epsilon

TEMPLATES = paths.HOME / "workflow/report"
TITLE = "Differentially private linear models: published results, regenerated and checked"
GOOD = (
    *("inside", "equal to the printed precision", "reproduced"),
    *("shown", "complete", "ok", "holds", "consistent with the claim"),
)
BAD = (
    *("off", "not reproduced", "not shown", "partial", "not run", "failed", "violated"),
    *("refutes the claim", "exceeds what is proven"),
)
PLAIN = ("nothing is claimed",)
PUBLISHED = (
    *("dataset", "method", "train_size", "epsilon", "quantity", "published", "ours", "difference"),
    *(
        "verdict",
        "distance",
        "prediction interval",
        "readings",
        "luck",
        "implied epsilon",
        "reason",
    ),
)
STATEMENTS = {
    "claims": ("Claims", "what the source says"),
    "defects": ("Defects", "what is wrong, as our computation shows it"),
}


def render(gathered, seed, shows):
    """The whole page as text. gathered: list of `reporting.collect.Gathered`; shows: what the page says
    of itself, see `study.jobs.records.page`."""
    jobs = costs.measured()
    experiments = [_experiment(part, jobs) for part in gathered]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=lambda name: name is None or name.endswith(".j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"short": short, "words": words, "badge_class": badge_class}
    environment.tests["numeric"] = numeric
    partial = [e for e in experiments if e["status"] != "complete"]
    return environment.get_template("report.html.j2").render(
        title=TITLE,
        seed=seed,
        shows=json.dumps(shows),
        configuration=shows["configuration"],
        experiments=experiments,
        partial="; ".join(f"{e['name']}: {e['status']}" for e in partial) + "." if partial else "",
        facts=_facts(gathered),
        rule=verdicts.RULE,
        ledger=ledger.ledger(),
        sources=_sources(experiments),
        costs={"columns": costs.COLUMNS, "rows": list(costs.per_rule(jobs))},
    )


def short(value):
    """A value for readers: floats at four significant digits, nothing for None and NaN."""
    number = _float(value)
    if number is None or isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
        return "" if value is None else value
    if math.isnan(number):
        return ""
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return f"{number:.4g}"


def numeric(value):
    return _float(value) is not None


def _float(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def words(name):
    return str(name).replace("_", " ")


def badge_class(text):
    head = str(text).partition(":")[0]
    head = "not reproduced" if head.startswith("not reproduced") else head
    if head in GOOD:
        return "good"
    return "bad" if head in BAD else "plain" if head in PLAIN else "mild"


def _experiment(part, jobs):
    experiment = part.experiment
    found = {section: part.verdicts(section) for section in ("published", "claims", "defects")}
    columns, rows = part.cell_table()
    data = part.data()
    kinds = [d["kind"] + (" (stand-in)" if d["stand_in"] else "") for d in data]
    return {
        "name": experiment.name,
        "title": experiment.title,
        "source": experiment.values.get("source"),
        "status": part.status,
        "cells": len(part.cells),
        "replicates": _replicates(experiment),
        "restarts": experiment.values.get("restarts"),
        "data": [list(entry.values()) for entry in data],
        "data_kinds": ", ".join(dict.fromkeys(filter(None, kinds))),
        "changes": part.changes(),
        "gaps": [
            (cell.dataset, cell.method, cell.train_size, epsilon(cell.epsilon), why)
            for cell, why in part.gaps
        ],
        "figures": part.figures(),
        "tables": part.tables(),
        "cell_columns": columns,
        "cell_rows": rows,
        "published": _published(experiment, found["published"]),
        "readings": readings.heat_map(experiment, Path(readings.path_of(experiment))),
        "verdicts": found,
        "statements": [
            {"section": section, "title": title, "what": what, "rows": _statements(found[section])}
            for section, (title, what) in STATEMENTS.items()
            if found[section]
        ],
        "counts": {section: _counts(rows) for section, rows in found.items()},
        "cpu_seconds": sum(job.cpu for job in jobs if job.experiment == experiment.name),
        "downloads": part.downloads(),
    }


def _replicates(experiment):
    for name in ("folds", "simulations"):
        if experiment.values.get(name):
            return f"{experiment.values[name]} {name}"
    return "no repetition"


def _statements(rows):
    return [{column: row.get(column, "") for column in statements.COLUMNS} for row in rows]


def _counts(rows):
    counted = Counter(row["verdict"] for row in rows)
    return ", ".join(f"{count} {verdict}" for verdict, count in counted.most_common())


def _published(experiment, rows):
    """One table per comparison, without the columns that are empty in it."""
    tables = []
    for name, spec in experiment.values.get("published", {}).items():
        own = [_comparison(row) for row in rows if row["comparison"] == name]
        columns = [c for c in PUBLISHED if any(row.get(c) for row in own)]
        tables.append(
            {
                "title": spec["title"],
                "note": spec.get("note", ""),
                "columns": columns,
                "rows": [[row.get(column, "") for column in columns] for row in own],
            }
        )
    return tables


def _comparison(row):
    """A row of published.csv for readers: intervals beside their values."""

    def interval(name):
        ends = [short(row.get(f"{name}_{end}") or "") for end in ("low", "high")]
        return f"[{ends[0]}, {ends[1]}]" if all(ends) else ""

    return row | {
        "published": short(row["published"]),
        "ours": f"{short(row.get('ours') or '')} {interval('ours')}".strip(),
        "prediction interval": interval("prediction"),
        "implied epsilon": row.get("implied", ""),
    }


def _facts(gathered):
    """What the experiments ran with; what differs between them is listed per experiment."""
    records = {part.experiment.name: part.provenance() for part in gathered}
    facts = []
    for key in ("commit", "python", "system", "host", "written"):
        by_value = {}
        for name, record in records.items():
            value = record.get(key)
            if key == "commit" and value and record.get("uncommitted_changes"):
                value += " with uncommitted changes"
            by_value.setdefault(value or "not recorded", []).append(name)
        if len(by_value) == 1:
            facts.append((key, next(iter(by_value))))
        else:
            facts.append((key, "; ".join(f"{v} ({', '.join(n)})" for v, n in by_value.items())))
    versions = {}
    for record in records.values():
        for package, version in record.get("packages", {}).items():
            versions.setdefault(package, {})[version] = None
    text = ", ".join(f"{package} {' / '.join(found)}" for package, found in versions.items())
    return [*facts, ("packages", text or "not recorded")]


def _sources(experiments):
    """Every claim and defect of every source, with the verdict of the experiment that decides it."""
    decided = {}
    for experiment in experiments:
        for section in STATEMENTS:
            for row in experiment["verdicts"][section]:
                decided[row["id"]] = row
    found = []
    for path in source_file.files().values():
        source = source_file.read(path.stem)
        rows = []
        for section in STATEMENTS:
            for name, entry in source.statements(section).items():
                row = decided.get(name)
                why = "" if row else "no experiment of this report decides it"
                rows.append(
                    {
                        "id": name,
                        "verdict": row["verdict"] if row else statements.NOT_TESTED,
                        "says": entry.get("says") or entry["what"],
                        "link": bool(row),
                        "why": row["decided_by"]
                        if row and row["verdict"] == statements.NOT_TESTED
                        else why,
                    }
                )
        found.append(
            {
                "key": source.key,
                "short": source.short,
                "rows": rows,
                "summary": _counts(rows),
                "conclusions": readings.conclusions(
                    *(
                        [
                            row
                            for experiment in experiments
                            if experiment["source"] == source.key
                            for row in experiment["verdicts"][section]
                        ]
                        for section in ("published", "claims")
                    )
                ),
                "open": any(row["link"] for row in rows),
            }
        )
    return found
