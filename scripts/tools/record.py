"""Writes the verdicts of finished runs into config/record/, for the reports of shorter runs.

    python scripts/tools/record.py veldhuizen veldhuizen_file [--configfile config/real.yaml]

The program refuses outdated results, and less than all experiments of an existing record. After a code edit
that should not change any number, use

    python scripts/tools/record.py --confirm [veldhuizen_2020]

This command reruns a recorded sample in another folder. If the files are byte-identical, it renews the
record's digests of code and data. If settings or the code of verdicts have changed, a new run is needed.
On another kind of processor last digits differ, above all of gradient norms near 0, so that nothing
can be renewed.
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
from study.jobs.files import write_json

CONFIRMED = "results-confirmed"
CONFIRMABLE = {"code", "data"}


def main():
    parser = home.run_arguments(__doc__)
    parser.add_argument("--confirm", action="store_true", help="rerun a sample of stale records")
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
    names = sorted(set(arguments.targets))
    config, experiments, datasets = stale.loaded(configfile, names)
    if unknown := [name for name in names if name not in experiments]:
        raise ValueError(f"no experiment is called {', '.join(unknown)}")
    configuration(arguments.configfile)  # sets the results folder
    groups = {}
    for name in names:
        groups.setdefault(record.name_of(experiments[name]), []).append(name)
    for group, own in groups.items():
        known = record.run(group)["experiments"] if group in record.names() else []
        if lost := [name for name in known if name not in own]:
            raise ValueError(f"the record {group} has {', '.join(lost)} too: name all of them")
    targets = [*names]
    # Recommendations exist only for listed experiments.
    listed = [name for name in names if name in config.experiments]
    if any(experiments[name].recommends for name in listed):
        targets.append(paths.RECOMMENDATIONS())
    pending = [j.file for j in planned(arguments.configfile, targets, home.START) if j.pending]
    if pending:
        raise ValueError(f"{len(pending)} jobs are still to run, such as {pending[0]}")
    for group, own in groups.items():
        record.write(
            group,
            [experiments[name] for name in own],
            stale.variants(own, experiments),
            configfile,
            stale.digests(own, config, experiments, datasets),
        )
        print(f"{record.FOLDER / group}: {', '.join(own)}")


def confirm(arguments):
    """Renew the digests of code and data if rerunning the sample reproduces the recorded bytes."""
    if unknown := set(arguments.targets).difference(record.names()):
        raise ValueError(f"no record is called {', '.join(sorted(unknown))}")
    for name, what in stale.changed().items():
        if name not in (arguments.targets or [name]):
            continue
        if not CONFIRMABLE.issuperset(what):
            why = record.why_stale(name, {name: what})
            print(f"{name}: a new run is needed, since {why}")
            continue
        run = record.run(name)
        loaded = stale.loaded(run["configfile"], run["experiments"])
        wanted = record.sampled(stale.variants(run["experiments"], loaded[1]))
        if lacking := sorted({*wanted}.difference(run["sample"])):
            print(f"{name}: a new run is needed, since the sample has no {lacking[0]}")
            continue
        agree, of = rerun(run, arguments.cores), len(run["sample"])
        print(f"{name}: {agree} of {of} files have the recorded bytes")
        if agree < of:
            print(
                f"{name}: a new run is needed; or confirm it on the record's kind of processor, since "
                "last digits differ on another"
            )
        else:
            run["digests"] = stale.digests(run["experiments"], *loaded)
            write_json(record.FOLDER / name / "run.json", run)


def rerun(run, cores):
    """The number of files of a record's sample that a rerun makes with the recorded bytes."""
    paths.use(CONFIRMED)
    files = {paths.results(path): digest for path, digest in run["sample"].items()}
    command = [sys.executable, "-m", "snakemake", *paths.snakefile(home.START), "--quiet"]
    command += ["--cores", cores, "--configfile", *run["configfile"].split()]
    command += ["--config", f"results={CONFIRMED}", "--keep-going", "--", *files]
    if subprocess.run(command, check=False).returncode:
        print(f"failed: {shlex.join(command)}", file=sys.stderr)
    made = [file for file in files if Path(file).exists()]
    return sum(record.digest(file) == files[file] for file in made)


def readme():
    path = record.FOLDER / "README.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(record.in_document(text), encoding="utf-8")


if __name__ == "__main__":
    script.run(main, job=False)
