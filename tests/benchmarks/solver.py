"""Milliseconds per private fit, beside scikit-learn's solvers and the arithmetic that cannot be saved.

    python tests/benchmarks/solver.py [repetitions]

One run, one thread, the same data for all; what is compared takes turns, and the least of the
repetitions counts. Times are the processor's, which other work on the machine disturbs less than the
clock's. Prints a table and writes results/benchmarks/solver.csv.

    newton        restarts of objective perturbation solved together, or one alone
    floor         two matrix products and one exponential per row and restart, in double precision
    scikit-learn  LogisticRegression: the non-private fit, to a like gradient norm

    passes        over all rows, on average over the restarts
    over floor    milliseconds over those of the floor, times the passes
    over newton   milliseconds over those of the slowest of the restarts solved together
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import csv
import sys
import time
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from dp.data import normalise_rows, simulate_separable
from dp.noise import l2_laplace
from dp.solvers import minimise

LAMBDA = 0.01
COLUMNS = ("problem", "what", "restarts", "passes", "gradient_norm", "milliseconds")
COLUMNS += ("over_floor", "over_newton")


def narrow(rng):
    """Chaudhuri and Monteleoni's separable data: uniform on the sphere, margin 0.03."""
    return simulate_separable(14000, 10, 0.03, rng)[:2]


def wide(rng):
    """As many rows and columns as the MNIST digits 4 and 9, with eigenvalues that decay as theirs."""
    n, d = 11791, 784
    X = (rng.standard_normal((n, d)) + 2) * np.arange(1, d + 1) ** -0.75
    X = normalise_rows(X @ np.linalg.qr(rng.standard_normal((d, d)))[0])
    score = (X - X.mean(axis=0)) @ rng.standard_normal(d)
    return X, np.where(score + 0.1 * score.std() * rng.standard_normal(n) > 0, 1, -1)


def gradient_norm(X, y, w):
    return np.linalg.norm(LAMBDA * w - X.T @ (y * expit(-y * (X @ w))) / len(X))


def scikit_learn(X, y, solver, tolerance):
    model = LogisticRegression(
        C=1 / (len(X) * LAMBDA), fit_intercept=False, solver=solver, tol=tolerance, max_iter=1000
    )
    return lambda: {"gradient_norm": gradient_norm(X, y, model.fit(X, y).coef_[0])}


def newton(X, y, linear):
    def run():
        _, info = minimise(X, y, LAMBDA, linear)
        if (info.status != "ok").any():
            raise RuntimeError("a restart did not converge: its time means nothing")
        return {"passes": info.iterations.mean(), "gradient_norm": info.gradient_norm.max()}

    return run


def floor(X, restarts, rows=256):
    """z = X W, e^z and X'z in blocks that stay in the cache, of rows that are ready for use."""
    blocks = [np.asfortranarray(X[k : k + rows]) for k in range(0, len(X), rows)]
    W = np.ones((X.shape[1], restarts))

    def run():
        gradient = np.zeros_like(W)
        for block in blocks:
            z = block @ W
            np.exp(z, out=z)
            gradient += block.T @ z
        return {"passes": 1}

    return run


def measure(calls, repetitions):
    """name -> (least seconds, what the call returned), in turns; the first turn warms up."""
    least, returned = dict.fromkeys(calls, np.inf), {}
    for turn in range(repetitions + 1):
        for name, call in calls.items():
            start = time.process_time()
            returned[name] = call()
            seconds = time.process_time() - start
            least[name] = min(least[name], seconds) if turn else np.inf
    return {name: (least[name], returned[name]) for name in calls}


def compare(problem, X, y, epsilons, restarts, repetitions, rng):
    """The lines of one problem's table."""
    calls = {("floor", restarts): floor(X, restarts)}
    together = []
    for epsilon in epsilons:
        linear = l2_laplace(X.shape[1], 2 / epsilon, restarts, rng)
        together.append((f"newton, epsilon {epsilon}", restarts))
        calls[together[-1]] = newton(X, y, linear)
        calls[f"newton, epsilon {epsilon}", 1] = newton(X, y, linear[:1])
    for solver in ("newton-cholesky", "lbfgs"):
        calls[f"scikit-learn, {solver}", 1] = scikit_learn(X, y, solver, 1e-9)
    found = measure(calls, repetitions)
    each = {call: 1e3 * found[call][0] / call[1] for call in calls}
    slowest = max(each[call] for call in together)
    for call in calls:
        info = found[call][1]
        line = dict.fromkeys(COLUMNS, "") | dict(zip(COLUMNS, (problem, *call), strict=False))
        line |= info | {"milliseconds": each[call], "over_newton": each[call] / slowest}
        if call in together:
            line["over_floor"] = each[call] / (each["floor", restarts] * info["passes"])
        yield line


def text(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    rng = np.random.default_rng(2008)
    lines = [
        *compare("14000 x 10", *narrow(rng), (0.1, 0.005), 200, repetitions, rng),
        *compare("11791 x 784", *wide(rng), (10.0, 0.1), 24, min(repetitions, 3), rng),
    ]
    table = [COLUMNS, *([text(line[column]) for column in COLUMNS] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    path = ROOT / "results" / "benchmarks" / "solver.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows(table)


if __name__ == "__main__":
    main()
