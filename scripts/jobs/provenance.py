"""Records the seconds and memory of a run's jobs, and its host, versions and commit."""

import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version

from study import paths
from study.canonical import epsilon
from study.configuration.experiment import Experiment
from study.jobs import cost, script
from study.jobs.files import write_csv, write_json

PACKAGES = ("snakemake", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "seaborn")


def main():
    parser = script.parser(__doc__, seed=True)
    parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
    parser.add_argument("--out-timing", required=True, help=".csv")
    parser.add_argument("--out-json", required=True)
    arguments = parser.parse_args()

    experiment, study = arguments.experiment, paths.in_study()
    rows = []
    for cell in experiment.cells():
        took = cost.read(paths.log_of(experiment.run_path(cell)))
        rows.append(
            (
                *(cell.dataset, cell.method, cell.train_size, epsilon(cell.epsilon)),
                *((took.wall, took.cpu, took.peak_mb) if took else ("", "", "")),
            )
        )
    write_csv(
        arguments.out_timing,
        ("dataset", "method", "train_size", "epsilon", "seconds", "cpu_seconds", "peak_mb"),
        rows,
    )
    write_json(
        arguments.out_json,
        {
            "experiment": experiment.name,
            "seed": arguments.seed,
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
            "host": platform.node(),
            "machine": platform.machine(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "interpreter": sys.executable,
            "packages": {package: version(package) for package in PACKAGES},
            **commit(paths.HOME),
            **({f"study_{key}": value for key, value in commit(".").items()} if study else {}),
            "configuration": experiment.settings(),
        },
    )


def commit(folder):
    """A folder's commit, and whether files differ from it; None outside a checkout."""

    def git(*words):
        words = ["git", "-C", folder, *words]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    try:
        head, status = git("rev-parse", "HEAD"), git("status", "--porcelain")
    except FileNotFoundError:
        head = status = None
    return {"commit": head, "uncommitted_changes": None if status is None else bool(status)}
