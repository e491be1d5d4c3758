"""Measures CPU seconds and memory of private-fit jobs on ten thousand to a hundred million rows.

    python tests/benchmarks/growth.py [largest [columns]]

10000000 rows and 10 columns, the defaults, take 2 minutes and 1.1 GB of disk. 100000000 rows take ten
times as much, and 13 GB of memory to simulate.

The jobs' scripts prepare simulated data, fit, and run objective perturbation (epsilon 0.1, lambda 0.01,
50 restarts), each in its own process with one thread. The data have n training rows and n/3 test rows. Jobs
on few rows run many simulations, so startup hardly counts. Each time is the minimum of a few runs, minus
the startup time, which is the minimum on 100 rows. A table is printed and written to
results/benchmarks/growth.csv:

    seconds            CPU seconds of the run job per simulation
    passes             the solver's passes over the training rows, averaged over the restarts
    ns_per_row         nanoseconds per training row and restart (ns_per_pass: the same per pass)
    fit_seconds        CPU seconds of the fit job per simulation; each computes one minimiser
    memory_mb          peak memory of the run job: the data file's size (data_mb) plus the rest
                       (beside_data_mb)
    fit_beside_data_mb peak memory of the fit job, minus the data file's size

The last line is the largest ns_per_row divided by the smallest: 1 for linear growth.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # must precede numpy's import

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
# training rows -> (simulations per job, runs)
SIZES = {10**4: (200, 4), 10**5: (20, 4), 10**6: (2, 4), 10**7: (1, 2), 10**8: (1, 1)}
RESTARTS, EPSILON, LAMBDA = 50, 0.1, 0.01
COLUMNS = ("n", "seconds", "passes", "ns_per_row", "ns_per_pass", "fit_seconds", "memory_mb")
COLUMNS += ("data_mb", "beside_data_mb", "fit_beside_data_mb")


def job(name, *arguments):
    """CPU seconds and peak memory in bytes."""
    command = [sys.executable, SCRIPTS / "job.py", name, *map(str, arguments)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{name} failed: {said.read().decode()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def least(costs):
    """The minimum time, which is least sensitive to other load, and the maximum memory."""
    seconds, memory = zip(*costs, strict=True)
    return min(seconds), max(memory)


def jobs(folder, n, columns, simulations, runs):
    """The costs of the fit and run jobs, the file's size and the number of passes."""
    rows = next(rows for rows in range(4 * n // 3, 2 * n) if rows - rows // 4 == n)
    npz, meta, fit = (folder / f"{n}{suffix}" for suffix in (".npz", ".json", ".fit.npz"))
    entry = {
        "source": {"simulate": "separable", "rows": rows, "columns": columns, "margin": 0.03},
        "steps": [{"row_norm": {}}],
    }
    out = ["--out-npz", npz, "--out-json", meta]
    job("prepare", "--dataset", "rows", "--entry", json.dumps(entry), "--seed", 1, *out)
    common = ["--data", npz, "--meta", meta, "--experiment", "growth", "--dataset", "rows"]
    common += ["--simulations", simulations, "--train-size", n, "--seed", 1, "--lam", LAMBDA]
    fitted = least([job("fit", *common, "--fit", "l2", "--out", fit) for _ in range(runs)])
    common += ["--method", "objective_perturbation", "--mechanism", "objective_perturbation"]
    common += ["--epsilon", EPSILON, "--restarts", RESTARTS, "--fit", fit]
    ran = least([job("run", *common, "--out", folder / f"{n}.csv") for _ in range(runs)])
    result = npz.stat().st_size, passes(npz, fit, n, columns)
    npz.unlink()
    return fitted, ran, *result


def passes(npz, fit, n, columns):
    """Mean passes over the rows per restart, with noise drawn as in the run job."""
    sys.path.insert(0, str(SCRIPTS))
    from dp.mechanisms import MECHANISMS
    from dp.noise import l2_laplace
    from dp.solvers.newton import minimise
    from study.data.prepared import Prepared

    X, y = Prepared(npz).floats(np.arange(n), in_blocks=True)
    plan = MECHANISMS["objective_perturbation"].plan(n, columns, epsilon=EPSILON, lam=LAMBDA)
    linear = l2_laplace(columns, plan.scale, RESTARTS, np.random.default_rng(1))
    with np.load(fit) as arrays:
        start = arrays["weights"][0, 0]
    _, info = minimise(X, y, LAMBDA + plan.ridge, linear, initial=start, tolerance=1e-9 / 2)
    return info.iterations.mean()


def main():
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 10**7
    columns = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    table, per_row = [COLUMNS], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (fit_start, _), (run_start, _), *_ = jobs(folder, 100, columns, 1, 15)
        print(f"start: fit {fit_start:.2f} s, run {run_start:.2f} s, taken off")
        print("  ".join(COLUMNS), flush=True)
        for n in (n for n in SIZES if n <= largest):
            simulations, runs = SIZES[n]
            (fit_seconds, fit_memory), (seconds, memory), size, taken = jobs(
                folder, n, columns, simulations, runs
            )
            seconds = (seconds - run_start) / simulations
            each = 1e9 * seconds / n / RESTARTS
            per_row.append(each)
            fit_seconds = (fit_seconds - fit_start) / simulations
            costs = (seconds, taken, each, each / taken, fit_seconds)
            sizes = (memory, size, memory - size, fit_memory - size)
            row = (n, *(f"{v:.3g}" for v in costs), *(f"{v / 1e6:.0f}" for v in sizes))
            table.append(row)
            cells = (str(cell).ljust(len(c)) for cell, c in zip(row, COLUMNS, strict=True))
            print("  ".join(cells).rstrip(), flush=True)
    print(f"largest over least ns_per_row {max(per_row) / min(per_row):.2f}")
    path = ROOT / "results" / "benchmarks" / "growth.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    main()
