"""Measures times of lattice releases (private in finite precision), float mechanisms, and parsing.

    python tests/benchmarks/lattice.py                      1 minute

The releases are plain objective perturbation, and `noise_aware_logistic`, which also releases a Hessian and
scores. Both set lambda by `rule_lambda`, at epsilon 1 and delta 1e-6, on simulated rows with one thread.
The float mechanisms use the same settings, and their default tolerance. Parsed lines contain ten or twenty
numbers. Times are CPU seconds. The exit status is 1 if a release exceeds its limit in `SIZES`.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # must precede numpy's import

import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp_release import models, rows
from dp_release.draws import Stream
from lattices import from_floats

SIZES = {(20_000, 20): 2.0, (100_000, 20): 10.0, (1_000_000, 50): 90.0}  # rows, columns: limit in s
LINES = 100_000


def simulated(n, d):
    rng = generator(1, "lattice", n, d)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True) * np.float32(1.00001)
    score = X @ rng.standard_normal(d, dtype=np.float32) * 3
    return X, np.where(score + rng.logistic(size=n) > 0, 1, -1)


def timed(function, *arguments, **named):
    start = time.process_time()
    result = function(*arguments, **named)
    return time.process_time() - start, result


def floats(X, y, plan, robust):
    name = "gaussian_objective_perturbation" if robust is None else "noise_aware_logistic"
    options = {} if robust is None else {"robust": robust}
    settings = {"epsilon": 1.0, "delta": 1e-6, "lam": plan.problem.lam} | options
    return timed(MECHANISMS[name].release, X, y, rng=generator(2), **settings)[0]


def parsing(columns):
    rng = generator(3, "parsing")
    table = np.round(rng.uniform(-3, 103, (LINES, columns)), 3)
    lines = [
        ",".join(map(str, row)).encode() + b"," + b"01"[k % 2 :][:1] for k, row in enumerate(table)
    ]
    fields = [rows.Number(f"x{k}", 0, 100) for k in range(columns)]
    schema = rows.Schema([*fields, rows.Category("y", ("0", "1"))], "y")
    return LINES / timed(schema.rows, lines, LINES)[0]


def draw_all(plan):
    for noise in (plan.tilt.noise, *plan.noises.values()):
        noise.draw(Stream(bytes(32), "a"))


def main():
    models.noise_aware_logistic(10, 2, 1.0, 1e-6)  # imports modules, before timing
    print("rows       columns  release       tau      s on a lattice  of that draws  s in floats")
    late = False
    for (n, d), limit in SIZES.items():
        X, y = simulated(n, d)
        V, labels = from_floats(X, y)
        for title, robust in (("plain", None), ("noise-aware", True)):
            beside = () if robust is None else ("hessian", "scores")
            plan = models.objective_perturbation(n, d, 1.0, 1e-6, statistics_beside=beside)
            seconds, _ = timed(models.release, plan, V, labels, bytes(32))
            drawing, _ = timed(draw_all, plan)
            float_seconds = floats(X, y, plan, robust)
            print(
                f"{n:<10,} {d:<8} {title:<13} {plan.tolerance:<8.1e} {seconds:<15.2f} {drawing:<14.2f} "
                f"{float_seconds:.2f}",
                flush=True,
            )
            late |= seconds > limit
    for columns in (10, 20):
        print(f"parsing: {parsing(columns):,.0f} lines of {columns} numbers in a second")
    if late:
        sys.exit("over the limit")


if __name__ == "__main__":
    main()
