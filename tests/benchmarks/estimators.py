"""Compares this project's releases with other libraries', at equal epsilon, in accuracy and CPU time.

    python tests/benchmarks/estimators.py [fits]                2 minutes

Rows are simulated, with public bounds of -1 and 1. Classification has five columns; its peer is
diffprivlib's LogisticRegression with default regularisation. Regression has one column, the maximum that
its peer, OpenDP's LinearRegression, accepts. Each fit gets its own rows, and its error is measured on
50,000 other rows. Guarantees are for replace-one. This project uses lattice noise and delta = 1e-6; the
peers use delta = 0.

The other libraries are left out unless the environment of `peers.py` exists.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # must precede numpy's import

import contextlib
import importlib
import io
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
EPSILONS, DELTA, TEST = (0.1, 0.5, 1.0, 4.0), 1e-6, 50_000
TASKS = {"classes": ((3000, 5), (20000, 5)), "numbers": ((3000, 1), (20000, 1))}


def simulate(task, n, d, seed):
    rng = np.random.default_rng([seed, n, d])
    X = rng.uniform(-1, 1, (n, d))
    score = X @ np.linspace(2, 0.4, d) - 0.3
    if task == "classes":
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-score)), 1, -1)
    return X, np.clip(0.3 * score + 0.2 * rng.standard_normal(n), -1, 1)


def error(task, weights, intercept, d):
    """Mean log loss or, for regression, root mean squared error on unseen rows."""
    X, y = simulate(task, TEST, d, seed=10**6)
    score = X @ np.ravel(weights) + np.ravel(intercept)
    if task == "classes":
        return np.mean(np.logaddexp(0, -y * score))
    return np.sqrt(np.mean((score - y) ** 2))


def ours(task, X, y, epsilon):
    """Weights and intercept of a release or, if epsilon is None, of the non-private minimiser."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from sklearn.linear_model import LinearRegression, LogisticRegression

    from dp_release.estimators import PrivateClassifier, PrivateRegressor
    from dp_release.request import PUBLIC_EXAMPLE

    if epsilon is None:
        model = LogisticRegression(C=np.inf) if task == "classes" else LinearRegression()
        model.fit(X, y)
        return model.coef_, model.intercept_
    kind = PrivateClassifier if task == "classes" else PrivateRegressor
    with tempfile.TemporaryDirectory() as folder:
        model = kind(
            "benchmark",
            book=Path(folder, "book"),
            budget={"epsilon": epsilon, "delta": DELTA},
            n_rows=len(X),
            columns=(-1, 1),
            target=[-1, 1] if task == "classes" else (-1, 1),
            unit="one row is one record",
            epsilon=epsilon,
            delta=DELTA,
            premise=PUBLIC_EXAMPLE,
            spend=True,
        )
        with contextlib.redirect_stdout(io.StringIO()):
            model.preview(X, y)
        model.fit(X, y)
    return model.coef_, model.intercept_


def theirs(task, X, y, epsilon):
    """Weights and intercept of diffprivlib's logistic regression or OpenDP's private Theil-Sen line."""
    if task == "classes":
        models = importlib.import_module("diffprivlib.models")
        model = models.LogisticRegression(epsilon=epsilon, data_norm=float(np.sqrt(X.shape[1])))
        model.fit(X, y)
        return model.coef_, model.intercept_
    opendp = importlib.import_module("opendp.prelude")
    lines = importlib.import_module("opendp.extras.sklearn.linear_model")
    opendp.enable_features("contrib", "honest-but-curious", "idealized-numerics")

    def made(scale):
        return lines.LinearRegression(opendp.max_divergence(), [(-1, 1)], (-1, 1), scale=scale)

    # OpenDP counts a replacement as distance two: a removal and an addition.
    scale = opendp.binary_search(lambda s: made(s).measurement.map(2) <= epsilon, (1e-3, 1e3))
    model = made(scale).fit(X, y)
    return model.coef_, model.intercept_


def measured(fit, fits):
    """[task, rows, columns, epsilon, mean error, CPU seconds per fit] of every task, size and epsilon."""
    warnings.simplefilter("ignore")
    lines = []
    for task, sizes in TASKS.items():
        for n, d in sizes:
            for epsilon in (None, *EPSILONS) if fit is ours else EPSILONS:
                errors, start = [], time.process_time()
                for seed in range(1 if epsilon is None else fits):
                    errors.append(
                        float(error(task, *fit(task, *simulate(task, n, d, seed), epsilon), d))
                    )
                seconds = (time.process_time() - start) / len(errors)
                lines.append([task, n, d, epsilon, statistics.mean(errors), seconds])
    return lines


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    if "theirs" in sys.argv:
        print(json.dumps(measured(theirs, fits)))
        return
    peers = {}
    if PEERS.exists():
        words = [PEERS, __file__, str(fits), "theirs"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        peers = {tuple(line[:4]): line[4:] for line in json.loads(done.stdout.splitlines()[-1])}
    else:
        print(f"no {PEERS.relative_to(ROOT)}: diffprivlib and OpenDP are left out")
    print("task      rows   columns  epsilon  error: ours  theirs   seconds per fit: ours  theirs")
    for task, n, d, epsilon, mean, seconds in measured(ours, fits):
        other = peers.get((task, n, d, epsilon), ("", ""))
        shown = [f"{value:.4f}" if value != "" else "" for value in other]
        name = "none" if epsilon is None else f"{epsilon:g}"
        print(
            f"{task:8} {n:6} {d:8} {name:>8} {mean:12.4f}  {shown[0]:>7} {seconds:22.3f}  {shown[1]:>7}"
        )


if __name__ == "__main__":
    main()
