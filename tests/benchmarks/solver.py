"""Milliseconds per private fit, beside one fit of scikit-learn's solvers, measured in one run.

    .venv/bin/python tests/benchmarks/solver.py

n = 14,000, d = 10, lambda = 0.01, 200 restarts to a certified gradient norm of 1e-9, one thread.
Writes results/benchmarks/solver.csv.
"""

import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import numpy as np
from sklearn.linear_model import LogisticRegression

from dp.data import simulate_separable
from dp.noise import l2_laplace
from dp.solvers import minimise
from study.files import write_csv

N, D, LAM, RESTARTS, REPEATS = 14_000, 10, 0.01, 200, 5


def seconds(function):
    """Processor time of one thread, the least of a few repeats: other work on the machine counts little."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def main():
    rng = np.random.default_rng(20081208)
    X, y, _ = simulate_separable(N, D, 0.03, rng)
    rows = []
    for solver, tolerance in (("newton-cholesky", 1e-9), ("lbfgs", 1e-9)):
        model = LogisticRegression(
            C=1 / (N * LAM), fit_intercept=False, solver=solver, tol=tolerance, max_iter=1000
        )
        took = seconds(lambda model=model: model.fit(X, y))
        rows.append((f"scikit-learn {solver}, one fit", "", 1000 * took))
    best = min(row[2] for row in rows)
    start, _ = minimise(X, y, LAM)
    for epsilon in (0.1, 0.005):
        linear = l2_laplace(D, 2 / epsilon, RESTARTS, rng)
        for name, initial in (("from zero", None), ("from the non-private fit", start[0])):
            _, info = minimise(X, y, LAM, linear=linear, initial=initial)
            if set(info.status) != {"ok"}:
                sys.exit("some restarts were not certified: nothing is to be compared")
            took = seconds(
                lambda linear=linear, initial=initial: minimise(
                    X, y, LAM, linear=linear, initial=initial
                )
            )
            rows.append((f"private fits, {name}", epsilon, 1000 * took / RESTARTS))
    table = [(*row, best / row[2]) for row in rows]
    print(f"{'':34} {'epsilon':>8} {'ms per fit':>11} {'times the best':>15}")
    for name, epsilon, milliseconds, ratio in table:
        print(f"{name:34} {epsilon!s:>8} {milliseconds:11.3f} {ratio:15.1f}")
    write_csv(
        ROOT / "results/benchmarks/solver.csv",
        ("what", "epsilon", "milliseconds_per_fit", "times_scikit_learns_best"),
        table,
    )


if __name__ == "__main__":
    main()
