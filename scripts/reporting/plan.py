"""Finds the jobs that Snakemake plans, from its summary of the files that jobs make."""

import csv
import io
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from study import paths
from study.configuration.config import ConfigError, read_yaml

# One job of such a rule makes all of the rule's files in a folder.
ONE_PER_FOLDER = ("provenance", "report", "ledger", "exact_losses", "spending", "recommendations")


class Planned(NamedTuple):
    """One planned job.

    experiment: the folder of results that the job writes to (an experiment's, data or audit; "" for
    other places). path: the job's path below the rule's folder. file: the job's first file.
    pending: whether the job is still to run. missing: whether `file` is missing.
    """

    rule: str
    experiment: str
    path: str
    file: str
    pending: bool
    missing: bool


def configuration(configfiles=()):
    """(configuration, its files). Overlays are merged as Snakemake merges them.

    This process then uses the configuration's folder of results.
    """
    config, files = merged(configfiles)
    paths.use(str(config.get("results", paths.results())))
    return config, files


def merged(configfiles=()):
    """As `configuration`, without an effect on this process."""
    from snakemake.utils import update_config

    own = [path for path in [Path("config/config.yaml")] if path.exists()]
    config = {}
    for path in (*own, *configfiles):
        update_config(config, read_yaml(path))
    return config, [*configfiles, *own]


def planned(configfiles=(), targets=(), start="."):
    """`Planned` for every job that the targets need, done or not. Raises ValueError.

    start: the folder in which Snakemake is started, for a run in this folder.
    """
    try:
        configuration(configfiles)
    except ConfigError as error:
        raise ValueError(error) from None
    command = [sys.executable, "-m", "snakemake", *paths.snakefile(start)]
    command += ["--nolock", "--summary"]
    if configfiles:
        command += ["--configfile", *configfiles]
    done = subprocess.run([*command, "--", *targets], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip().splitlines()[-1] if done.stderr else "no plan")
    seen = set()
    for row in csv.DictReader(io.StringIO(done.stdout), delimiter="\t"):
        # The summary has one line per file, and does not say which job makes the file. The files of one job
        # have one name with several suffixes, or are all files that their rule makes in a folder.
        path = Path(row["output_file"])
        name = path.parent if row["rule"] in ONE_PER_FOLDER else path.with_suffix("")
        if (row["rule"], name) not in seen:
            seen.add((row["rule"], name))
            experiment, rest = (
                paths.split(path) if path.is_relative_to(paths.results()) else ("", ())
            )
            below = "/".join(rest[1:])
            if not rest:
                experiment = ""
            yield Planned(
                *(row["rule"], experiment, below, str(path)),
                pending=row["plan"] != "no update",
                missing=row["date"] == "-",
            )
