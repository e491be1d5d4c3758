"""Finds planned jobs from Snakemake's summary of output files."""

import csv
import io
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from study import paths
from study.configuration.config import ConfigError, read_yaml

# Rules whose job writes all of the rule's files in a folder.
ONE_PER_FOLDER = (
    *("provenance", "report", "ledger", "exact_losses", "spending", "recommendations"),
    "headlines",
)


class Planned(NamedTuple):
    """A planned job.

    experiment: the output's folder of results, such as an experiment's or "data"; "" if it has none.
    path: the output's path below the rule's folder.
    file: the job's first output file.
    pending: whether the job must still run.
    """

    rule: str
    experiment: str
    path: str
    file: str
    pending: bool
    missing: bool


def configuration(configfiles=()):
    """Return (configuration as Snakemake merges it, its files), and set the folder of results."""
    config, files = merged(configfiles)
    paths.use(str(config.get("results", paths.results())))
    return config, files


def merged(configfiles=()):
    """Like `configuration`, but without setting the results folder."""
    from snakemake.utils import update_config

    own = [path for path in [Path("config/config.yaml")] if path.exists()]
    config = {}
    for path in (*own, *configfiles):
        update_config(config, read_yaml(path))
    return config, [*configfiles, *own]


def planned(configfiles=(), targets=(), start="."):
    """Yield a `Planned` for every job that the targets need, finished or not. Raises ValueError.

    start: the folder where Snakemake is started.
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
        # The summary lists files but not their jobs. Files of one job share their name
        # without suffix or, for rules in ONE_PER_FOLDER, their folder.
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
