"""Paths that Snakemake rules and their jobs share.

The workflow's code, schemas and configuration are below HOME. Paths of a study's files and of results are
relative to Snakemake's working directory.
"""

import os
from itertools import chain
from pathlib import Path
from typing import NamedTuple

_CHECKOUT = Path(__file__).resolve().parents[2]
HOME = Path() if Path.cwd() == _CHECKOUT else _CHECKOUT
# Jobs read folders from these environment variables. If a folder were a rule's parameter, changing it would
# rerun all jobs.
HOME_VARIABLE = "DP_HOME"
VARIABLE = "DP_RESULTS"
RAW = "data/raw"  # downloads, shared by all folders of results


def in_study():
    """Whether the working directory is a study's folder."""
    return Path() != HOME


def source_of(path):
    """The source whose folder in config/sources contains the file; None for other files."""
    return path.parent.name if path.parent.parent.name == "sources" else None


def configuration(*patterns):
    """Files in config/ that match the patterns, shipped files first."""
    folders = [HOME / "config", *([Path("config")] if in_study() else [])]
    return [
        path for folder in folders for pattern in patterns for path in sorted(folder.glob(pattern))
    ]


def snakefile(start="."):
    """Snakemake's arguments for the Snakefile in `start`, or else the workflow's own."""
    here = filter(Path.exists, (Path(start, "Snakefile"), Path(start, "workflow/Snakefile")))
    return ["--snakefile", str(next(here, HOME / "Snakefile"))]


if in_study() and Path("mechanisms").is_dir():
    os.environ["DP_MECHANISMS"] = "mechanisms"  # see `dp.mechanisms`


def use(folder):
    """Make `folder` the root of results, for this process and its children."""
    os.environ[VARIABLE] = folder


def results(*parts):
    """A path below the root of results, or the root itself."""
    return "/".join((os.environ.get(VARIABLE, "results"), *filter(None, parts)))


class _Wildcards(dict):
    def __missing__(self, name):
        return f"{{{name}}}"


class Place(NamedTuple):
    """The place of one kind of file. A call returns a path; missing values stay wildcards.

    folder: the folder of an experiment or a reading, or a shared one (data, audit). part: a folder below
    `folder`. name: the file's name without suffix.
    """

    folder: str
    part: str
    name: str
    suffix: str = "csv"

    def __call__(self, suffix=None, /, **values):
        name = f"{self.name}.{suffix or self.suffix}"
        return results(self.folder, self.part, name).format_map(_Wildcards(values))

    def log(self, suffix=None, /, **values):
        """The log of the job that makes the file. suffix: distinguishes jobs whose files share a name."""
        name = f"{self._stem(suffix)}.log"
        return results(self.folder, "logs", self.part, name).format_map(_Wildcards(values))

    def _stem(self, suffix=None):
        suffix = suffix or (self.suffix if "{" in self.suffix else None)
        return f"{self.name}.{suffix}" if suffix else self.name


# Prepared rows (npz), and the preparation's record (json).
DATA = Place("data", "", "{dataset}", "npz")

FIT = Place("{experiment}", "fits", "{dataset}/{fit}/n={size}", "npz")
RUN = Place("{experiment}", "runs", "{dataset}/{method}/n={size}/eps={epsilon}")
# The chosen settings (json), and the error of every candidate (csv).
TUNED = Place("{experiment}", "tuned", "{dataset}")
SEARCH = Place("{experiment}", "searches", "{search}/{dataset}/n={size}/eps={epsilon}", "json")
ANALYSIS = Place("{experiment}", "analyses", "{name}", "{suffix}")
TABLE = Place("{experiment}", "tables", "{name}")
FIGURE = Place("{experiment}", "figures", "{name}", "png")
GUARANTEES = Place("{experiment}", "", "guarantees")
CELLS = Place("{experiment}", "", "results")
# Printed numbers next to ours, under every reading.
COMPARED = Place("{experiment}", "", "compared", "json")
VERDICTS = Place("{experiment}", "", "{section}")  # section: published, claims or defects
READINGS = Place("{experiment}", "", "readings")
TIMING = Place("{experiment}", "", "timing")
PROVENANCE = Place("{experiment}", "", "provenance", "json")
CONFIGURATION = Place("{experiment}", "", "configuration", "json")
# The configuration to which the folder of results belongs: see `study.jobs.records`.
MADE = Place("", "logs", "made", "json")

ATTACK = Place("audit", "runs", "{mechanism}/{label}/eps={epsilon}")
ATTACKS = Place("audit", "", "{mechanism}")
LEDGER = Place("audit", "", "ledger")  # also png and pdf
PROFILES = Place("audit", "", "profiles", "png")
HELD = Place("audit", "claims", "held")  # made only if nothing refutes a study's own mechanisms
EXACT = Place("audit", "", "exact")
REPLAY = Place("audit", "", "replay")
SPENDING = Place("audit", "", "spending")
AUDITED_CELLS = Place("audit", "", "cells")

BY_SOURCE = Place("verdicts", "", "{source}")

REPORT = Place("", "", "report", "html")
# The report of a partial run that shows less than REPORT.
PARTIAL_REPORT = Place("", "", "report-partial", "html")
# What a run shows until it makes REPORT.
SO_FAR = Place("", "", "so-far", "html")
COSTS = Place("", "", "costs")
FORECASTS = Place("", "", "forecasts", "json")
RECOMMENDATIONS = Place("", "", "recommendations")
ACROSS = Place("", "", "regret")  # regret of competing methods across data sets, as csv and png

# The three pictures of the first screens, and the numbers in their sentences.
HEADLINES = Place("headlines", "", "headlines", "json")
HEADLINE = Place("headlines", "", "{picture}", "png")


def reading(experiment, label):
    return f"{experiment}/readings/{label}"


def split(path):
    """(folder of the experiment or reading, remaining parts) of a path below the root of results."""
    parts = Path(path).relative_to(results()).parts
    depth = 3 if parts[1:2] == ("readings",) else 1
    return "/".join(parts[:depth]), parts[depth:]


def logs():
    """Yield (log, folder, path below the folder's logs without .log) for every job's log."""
    root = Path(results())
    below = (root.glob(f"{folder}/logs/**/*.log") for folder in ("*", reading("*", "*")))
    for path in sorted(chain(*below)):
        folder, (_, *rest) = split(path.with_suffix(""))
        yield path, folder, "/".join(rest)


def log_of(file):
    folder, rest = split(Path(file).with_suffix(".log"))
    return results(folder, "logs", *rest)
