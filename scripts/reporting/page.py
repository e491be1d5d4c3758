"""Renders the `Gathered` parts of experiments as one page, with workflow/report/report.html.j2."""

import functools
import itertools
import json
import math
import re

import jinja2

from checks import verdicts
from plots import style
from reporting import (
    answers,
    costs,
    figure_verdicts,
    headlines,
    ledger,
    packing,
    paper,
    readings,
    road,
    sources,
)
from reporting.record import recommended as recorded
from study import paths
from study.canonical import epsilon
from study.configuration.experiment import data_name

TEMPLATES = paths.HOME / "workflow/report"
MOST = 8_000_000  # bytes; a phone cannot open a larger page
TITLE = "Differentially private linear models: published results, regenerated and checked"
GOOD = (
    *("inside", "equal to the printed precision", "reproduced"),
    *("shown", "complete", "ok", "holds", "consistent with the claim"),
)
BAD = (
    *("off", "not reproduced", "not shown", "partial", "not run", "failed", "violated"),
    *("refutes the claim", "exceeds what is proven"),
)
PLAIN = ("nothing is claimed", verdicts.NOT_JUDGED, verdicts.NOT_DECIDED)

HEADINGS = {
    "dataset": "data set",
    "train_size": "training rows",
    "error_mean": "error",
    "error_low": "from",
    "error_high": "to",
    "error_sd": "sd of draws",
    "log_loss_mean": "log loss",
    "auc_mean": "AUC",
    "mse_mean": "squared error",
    "mae_mean": "absolute error",
    "r2_mean": "R\u00b2",
    "deviance_mean": "deviance",
    "d2_mean": "D\u00b2",
    "epsilon_claimed": "claimed epsilon",
    "epsilon_proven": "proven epsilon",
    "epsilon_audited": "audited epsilon",
    "delta_proven": "proven delta",
    "cpu_seconds": "CPU seconds",
    "cpu_seconds_median": "median of CPU seconds",
    "cpu_seconds_max": "most CPU seconds",
    "peak_mb": "peak memory, MB",
}
KEY = "[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+"  # matches keys of several words
UNMISTAKABLE = ("nonprivate", "adassp")  # one-word keys that are not English words
KEYS = ("dataset", "method", "other", "mechanism", "experiment")  # columns that contain keys


def render(gathered, seed, shows, stale=None, outdated=()):
    """The page's HTML, without the largest downloads if it would exceed MOST bytes.

    shows: the page's metadata, from `study.jobs.records.page`. stale: see `sources.cards`. outdated: see
    `answers.answers`.
    """
    jobs = costs.measured()
    experiments = [_experiment(part, jobs) for part in gathered]
    cards = sources.cards(gathered, experiments, stale)
    for card in (card for card in cards if card["open"]):
        card["paper"] = paper.page(card, gathered, experiments)
    smaller = [part.experiment.name for part in gathered if part.smaller]
    recommended = answers.answers(smaller, outdated)
    if recommended:
        recommended["downloads"] = [(p.name, packing.table(p)) for p in recommended.pop("files")]
    own = recommended["questions"] if recommended else []
    audited = ledger.ledger()
    _link(cards, audited, gathered)
    _number_figures(cards, audited, experiments)
    _judge_figures(cards, experiments)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=lambda name: name is None or name.endswith(".j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"short": short, "words": words, "badge_class": badge_class}
    environment.filters |= {"heading": heading}
    environment.tests["numeric"] = numeric
    partial = [e for e in experiments if e["status"] != "complete"]
    lay_out = functools.partial(
        environment.get_template("report.html.j2").render,
        title=TITLE,
        seed=seed,
        shows=json.dumps(shows),
        configuration=shows["configuration"],
        experiments=experiments,
        partial=bool(partial),
        facts=_facts(gathered),
        rule=verdicts.RULE,
        outcomes=sources.OUTCOMES,
        answers=recommended,
        headlines=[] if paths.in_study() else headlines.section(),
        recorded=[] if stale is None else recorded(stale),
        road=road.road(),
        questions=answers.shipped() if paths.in_study() else own,
        smaller=[e for e in experiments if e["smaller"]],
        command=command(shows["configuration"]),
        wanted=" ".join(e["name"] for e in partial),
        ledger=audited,
        sources=cards,
        costs={"columns": costs.COLUMNS, "rows": list(costs.per_rule(jobs))},
    )
    text = lay_out()
    beyond = len(text.encode()) - MOST
    return lay_out() if beyond > 0 and _leave_out(experiments, beyond) else text


def _link(cards, audited, gathered):
    """Link each card to the ledger's rows of its private methods, and each row to its cards."""
    rows = {row["mechanism"]: row for row in (*audited["picture"]["rows"], *audited["others"])}
    for row in rows.values():
        row["cards"] = []
    for card in cards:
        own = {
            method.mechanism
            for part in gathered
            if part.experiment.source == card["key"]
            for method in part.experiment.methods.values()
            if method.private
        }
        card["ledger"] = [(name, row["name"]) for name, row in rows.items() if name in own]
        for name, _ in card["ledger"]:
            rows[name]["cards"].append((card["key"], card["short"]))


def _leave_out(experiments, beyond):
    """Remove the largest downloads, at least `beyond` bytes in total; return whether there were any."""
    files = [(len(data), e, name) for e in experiments for name, data in e["downloads"]]
    for size, e, name in sorted(files, key=lambda file: -file[0]):
        if beyond <= 0:
            break
        e["downloads"] = [file for file in e["downloads"] if file[0] != name]
        e["left_out"].append(name)
        beyond -= size
    return bool(files)


def command(configuration):
    """The command that runs this configuration, without `--cores` or targets."""
    study = f'-s "${paths.HOME_VARIABLE}"/Snakefile' if paths.in_study() else ""
    return " ".join(filter(None, ("snakemake", study, configuration)))


def short(value):
    """A value for the page: floats with four significant digits, keys as words, "" for None and NaN."""
    number = _float(value)
    if isinstance(value, str) and re.fullmatch(KEY, value):
        return words(value)
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


def heading(column):
    return HEADINGS.get(column, words(column))


def named(text, names):
    """Replace the keys in a sentence by names, except one-word keys that may be ordinary words.

    names: key -> name. Data sets need no entry.
    """

    def name(match):
        key = match.group()
        return names.get(key) or data_name(key)

    text = re.sub(r"\btables/([\w/.]+\w)", lambda path: path[1].replace("/", ", "), str(text))
    return re.sub(rf"(?<![\w.])(?:{'|'.join(UNMISTAKABLE)}|{KEY})(?!\w|\.\w)", name, text)


def _named_table(columns, rows, names):
    at = [k for k, column in enumerate(columns) if column in KEYS]
    for row in rows:
        row = list(row)
        for k in at:
            row[k] = names.get(row[k], row[k])
        yield row


def _number_figures(cards, audited, experiments):
    numbers = itertools.count(1)
    for card in cards:
        if card["figure"]:
            card["figure"] |= {"number": next(numbers), "in_card": True}
    audited["number"] = next(numbers) if audited["profiles"] else None
    for figure in (figure for experiment in experiments for figure in experiment["figures"]):
        if not figure.get("in_card"):
            figure |= {"number": next(numbers), "in_card": False}


def _judge_figures(cards, experiments):
    """Give each figure of a source the claims that it shows, with their outcomes."""
    claims = figure_verdicts.of_claims(card for card in cards if card["open"])
    for experiment in experiments:
        for figure in experiment["figures"]:
            figure["claims"] = [
                (name, outcome, sources.look(outcome))
                for name, outcome in claims.get(figure["id"], ())
            ]
            judged = figure["claims"] or figure["printed"]
            beside = experiment["source"] and not judged
            figure["beside"] = figure_verdicts.NOTHING if beside else ""


def badge_class(text):
    head = str(text).partition(":")[0]
    head = "not reproduced" if head.startswith("not reproduced") else head
    if head in GOOD:
        return "good"
    return "bad" if head in BAD else "plain" if head in PLAIN else "mild"


def _experiment(part, jobs):
    experiment = part.experiment
    sections = {section: part.shown(section) for section in ("published", "claims", "defects")}
    columns, rows = part.cell_table()
    data = part.data()
    looks = style.looks(experiment.methods)
    methods = {label: look["label"] for label, look in looks.items()}
    datasets = {name: data_name(name) for name in experiment.all_datasets()}
    names = datasets | methods
    kinds = [d["kind"] + (" (stand-in)" if d["stand_in"] else "") for d in data]
    return {
        "name": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "status": part.status,
        "cells": len(part.cells),
        "replicates": _replicates(experiment),
        "restarts": experiment.restarts,
        "data": [list(e.values())[1:] for e in data],
        "methods": [
            (methods[label], style.name(method.mechanism), _settings(method))
            for label, method in experiment.methods.items()
        ],
        "data_kinds": ", ".join(dict.fromkeys(filter(None, kinds))),
        "changes": part.changes(),
        "gaps": [
            (names[cell.dataset], names[cell.method], cell.train_size, epsilon(cell.epsilon), why)
            for cell, why in part.gaps
        ],
        "figures": [
            figure
            | {"id": f"{experiment.name}-{figure['name']}"}
            | {
                "printed": figure_verdicts.of_numbers(
                    experiment, experiment.figures[figure["name"]], sections["published"]
                )
            }
            for figure in part.figures()
        ],
        "tables": [
            table | {"rows": list(_named_table(table["columns"], table["rows"], names))}
            for table in part.tables()
        ],
        "cell_columns": columns,
        "cell_rows": list(_named_table(columns, rows, names)),
        "names": names,
        "readings": None if part.smaller else readings.shown(experiment),
        "smaller": part.smaller,
        "verdicts": sections,
        "statements": [
            {"id": row["id"], "decided_by": because(row, names)}
            for section in ("claims", "defects")
            for row in sections[section]
        ],
        "cpu_seconds": sum(job.cpu for job in jobs if job.experiment == experiment.name),
        "downloads": part.downloads(),
        "left_out": [],
    }


def _replicates(experiment):
    for name in ("folds", "simulations"):
        if getattr(experiment, name):
            return f"{getattr(experiment, name)} {name}"
    return "no repetition"


def _settings(method):
    said = [f"{words(key)} {words(value)}" for key, value in method.options.items()]
    said += [f"delta {method.delta}"] if method.delta else []
    said += [] if method.lambda_ is None else [f"lambda {method.lambda_}"]
    return ", ".join(said)


def because(row, names):
    text = named(row["decided_by"], names).strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _facts(gathered):
    """Provenance of the experiments; values that differ are listed with their experiments."""
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
            listed = (f"{v} ({', '.join(map(words, n))})" for v, n in by_value.items())
            facts.append((key, "; ".join(listed)))
    versions = {}
    for record in records.values():
        for package, version in record.get("packages", {}).items():
            versions.setdefault(package, {})[version] = None
    text = ", ".join(f"{package} {' / '.join(numbers)}" for package, numbers in versions.items())
    return [*facts, ("packages", text or "not recorded")]
