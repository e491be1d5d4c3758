"""Measures how the workflow plans and aggregates an experiment of 20,000 cells.

    python tests/benchmarks/scale.py [cells]

In a temporary copy of the project, it measures `snakemake -n` (at most 60 s and 600 MB), the longest path
(at most 200 characters), and the computation of guarantees and the aggregation of run files (each at most
60 s and 1 GB). The exit status is 1 if the memory, a path, or the smaller of wall-clock and CPU seconds
exceeds its limit.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from project import Project
from study.configuration.config import load, read_yaml
from study.configuration.experiment import data_path
from study.jobs.files import write_csv

LIMITS = {"plan": (60, 600), "aggregate": (60, 1000)}
LONGEST_PATH = 200
DRAWS = (5, 50)  # folds and restarts of a run file


def experiment(cells):
    """Configuration of cm08 with two methods, ten sizes, and as many epsilons as `cells` requires."""
    epsilons = [round(0.001 * (k + 1), 3) for k in range(cells // 20)]
    sizes = [1000 * (k + 1) for k in range(10)]
    return {
        "experiments": ["cm08"],
        "audit": {"enabled": False},
        "settings": {
            "cm08": {
                "datasets": ["cm08_separable"],
                "restarts": DRAWS[1],
                "lambda": 0.01,
                "methods": {"objective_perturbation_cm08": None},
                "sweeps": {
                    "learning": {"train_sizes": sizes, "epsilons": [0.1]},
                    "epsilon": {"train_sizes": sizes, "epsilons": epsilons},
                    "table": None,
                },
                "analyses": {"excess_risk": None},
                "tables": {"figure_1": {"sweep": "epsilon"}},
                "figures": {"figure_2a": None, "figure_2b": None, "figure_2d": None},
                "published": None,
                "claims": None,
                "defects": None,
            }
        },
    }


def measured(project, *command):
    """Wall-clock and CPU seconds, peak MB and standard output of a Python command."""
    code = (
        "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode;"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=sys.stderr);"
        "sys.exit(code)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, sys.executable, *command],
        cwd=project.folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stderr[-3000:] + done.stdout[-3000:])
    cpu, peak = map(float, done.stderr.splitlines()[-1].split())
    return wall, cpu, peak, done.stdout


def run_files(project, study):
    rng = np.random.default_rng(0)
    folds, restarts = DRAWS
    for cell in study.cells():
        draws = restarts if study.methods[cell.method].private else 1
        errors = rng.random((folds, draws, 3))
        rows = [
            (fold, draw, *errors[fold, draw], "ok")
            for fold in range(folds)
            for draw in range(draws)
        ]
        columns = ("fold", "restart", "error", "excess_risk", "gradient_norm", "status")
        write_csv(project / study.run_path(cell), columns, rows)


def main():
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        project = Project.copy(Path(folder, "project"))
        overlay = experiment(cells)
        project.write("large.yaml", yaml.safe_dump(overlay))
        os.chdir(project.folder)
        from snakemake.utils import update_config

        config = read_yaml("config/config.yaml")
        update_config(config, overlay)
        study = load(config, ["config/config.yaml"])[1]["cm08"]
        paths = [study.run_path(cell) for cell in study.cells()]
        over = []

        options = ("-n", "-q", "--configfile", "large.yaml")
        *plan, output = measured(project, "-m", "snakemake", *options)
        report(f"snakemake -n, {len(paths)} cells", plan, LIMITS["plan"], over)
        print("  ", " ".join(output.split()[-2:]), "jobs planned")
        longest = max(map(len, paths))
        print(f"longest path of a cell: {longest} characters")
        over += ["a path"] if longest > LONGEST_PATH else []

        run_files(project, study)
        # Guarantees need only the description of the data, so no data are simulated.
        meta = {"private_rows": [], "columns": ["x"] * 10, "bound": 1.0}
        Path(data_path("cm08_separable", "json")).parent.mkdir(parents=True, exist_ok=True)
        Path(data_path("cm08_separable", "json")).write_text(json.dumps(meta))
        words, stated = ("--experiment", study.to_json()), "results/cm08/guarantees.csv"
        *guarantees, _ = measured(project, "scripts/job.py", "guarantees", *words, "--out", stated)
        report(f"guarantees, {len(paths)} cells", guarantees, LIMITS["aggregate"], over)
        words += ("--guarantees", stated, "--seed", "1", "--out", "results/cm08/results.csv")
        *aggregation, _ = measured(project, "scripts/job.py", "aggregate", *words)
        report(f"aggregate, {len(paths)} run files", aggregation, LIMITS["aggregate"], over)
    if over:
        sys.exit(f"over the limit: {', '.join(over)}")


def report(what, usage, limits, over):
    wall, cpu, peak = usage
    print(f"{what}: {wall:.1f} s, processor {cpu:.1f} s, {peak:.0f} MB (limits: {limits})")
    if min(wall, cpu) > limits[0] or peak > limits[1]:
        over.append(what)


if __name__ == "__main__":
    main()
