"""Writes the verdicts of a finished run into config/record/, for the reports of shorter runs.

    python scripts/tools/record.py veldhuizen hoseinpour [--configfile config/real.yaml]

The program refuses outdated results. After a code edit that should not change any number, use

    python scripts/tools/record.py --confirm [veldhuizen]

This command reruns a recorded sample of cells in another folder. If results are byte-identical, it renews
the stamps of the cells' code and data. If settings or verdict code have changed, a new run is needed.
"""

import shlex
import subprocess
import sys
from pathlib import Path

import home

from reporting import record, stale
from reporting.plan import configuration, planned
from study import paths
from study.configuration.config import ConfigError
from study.jobs import script

CONFIRMED = "results-confirmed"


def main():
    parser = home.run_arguments(__doc__)
    parser.add_argument("--confirm", action="store_true", help="run a sample of stale cells again")
    parser.add_argument("--cores", default="all", help="for --confirm")
    parser.set_defaults(configfile=["config/real.yaml"])
    arguments = parser.parse_args()
    try:
        confirm(arguments) if arguments.confirm else write(arguments)
    except (ConfigError, ValueError) as error:
        sys.exit(f"error: {error}")
    readme()


def write(arguments):
    if not arguments.targets:
        raise ValueError("name the experiments that have run")
    configfile = " ".join(arguments.configfile)
    known = stale.stampers(configfile, arguments.targets)
    configuration(arguments.configfile)  # sets the results folder
    targets = [*arguments.targets]
    # Recommendations exist only for listed experiments.
    listed = stale.loaded(configfile)[0]["experiments"]
    if any(known[name].experiment.values.get("recommends") for name in known if name in listed):
        targets.append(paths.RECOMMENDATIONS())
    jobs = planned(arguments.configfile, targets, home.START)
    pending = [job.file for job in jobs if job.pending]
    if pending:
        raise ValueError(f"{len(pending)} jobs are still to run, such as {pending[0]}")
    for name in arguments.targets:
        stamper = known[name]
        rows = [
            row | (stamper.stamps(row) if row["section"] != "run" else {})
            for row in record.made_by(stamper.experiment, stamper.all, configfile)
        ]
        file = record.file_of(stamper.experiment)
        others = [row for row in record.read(file) if row["experiment"] != name]
        record.write(file, [*others, *rows])
        print(f"{record.FOLDER / file}.csv: {len(rows)} lines of {name}")


def confirm(arguments):
    """Renew the stamps of code and data if rerunning a sample of cells reproduces the recorded bytes."""
    old = set(stale.digests())
    rows = [
        row
        for row in record.read()
        if row["experiment"] in (arguments.targets or [row["experiment"]])
    ]
    for configfile, name in sorted({(row["configfile"], row["experiment"]) for row in rows}):
        own = [row for row in rows if (row["configfile"], row["experiment"]) == (configfile, name)]
        if not old.intersection(row[stamp] for row in own for stamp in ("code", "data")):
            continue
        sample = [row for row in own if row["section"] == "cells"]
        agree = rerun(configfile, sample, arguments.cores)
        print(f"{name}: {agree} of {len(sample)} cells have the recorded bytes")
        if not sample or agree < len(sample):
            continue
        known = stale.stampers(configfile, [name])[name]
        file, renewed = record.file_of(known.experiment), 0
        lines = record.read(file)
        for row in lines:
            if row["experiment"] == name and row["section"] != "run":
                now = known.stamps(row)
                renewed += any(row[stamp] != now[stamp] for stamp in ("code", "data"))
                row |= {stamp: now[stamp] for stamp in ("code", "data")}
        record.write(file, lines)
        print(f"{name}: {renewed} lines renewed")


def rerun(configfile, sample, cores):
    paths.use(CONFIRMED)
    files = [record.run_path(row) for row in sample]
    command = [sys.executable, "-m", "snakemake", *paths.snakefile(home.START), "--quiet"]
    command += ["--cores", cores, "--configfile", *configfile.split()]
    command += ["--config", f"results={CONFIRMED}", "--keep-going", "--", *files]
    if files and subprocess.run(command, check=False).returncode:
        print(f"failed: {shlex.join(command)}", file=sys.stderr)
    return sum(
        Path(file).exists() and record.digest(Path(file).read_bytes()) == row["bytes"]
        for file, row in zip(files, sample, strict=True)
    )


def readme():
    path = paths.HOME / "README.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(record.in_document(text), encoding="utf-8")


if __name__ == "__main__":
    script.run(main, job=False)
