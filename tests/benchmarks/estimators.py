"""Compares this project's private models with other libraries', at equal epsilon, in accuracy and CPU time.

    python tests/benchmarks/estimators.py [fits]                15 minutes

Rows are simulated, with public bounds of -1 and 1. Classes have five columns, or three numbers, a sex and
one of seven wards. Their peer is diffprivlib's LogisticRegression with default regularisation. Numbers have
one column, the maximum that their peer, OpenDP's LinearRegression, accepts. Each fit gets its own rows, and
its error is measured on 50,000 other rows. Guarantees are for replace-one, and pure: delta is 0.

Forms of objective perturbation with the noise of a norm make several draws per fit, in floating point. Then
a release follows, with lattice noise, a Hessian for intervals, and delta = 1e-6.

The other libraries are left out unless the environment of `peers.py` exists.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # must precede numpy's import

import contextlib
import functools
import importlib
import io
import json
import math
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
PEERS = ROOT / ".venv-peers" / "bin" / "python"
EPSILONS, DELTA, TEST, DRAWS, RELEASES = (0.1, 0.5, 1.0, 4.0), 1e-6, 50_000, 5, 5
TASKS = (
    ("classes", 3000, 5),
    ("classes", 20000, 5),
    ("categories", 6000, 11),
    ("numbers", 3000, 1),
    ("numbers", 20000, 1),
)
WARDS = (0.3, 0.2, 0.15, 0.13, 0.1, 0.07, 0.05)
# The form that is judged, then others.
RULE = "by rule"
CLIP, RATE = {"clip": 0.75}, {"offset": "paid"}
FORMS = {
    "classes": {
        RULE: CLIP,
        "l2": {"body": "ball"},
        "l2, clip": CLIP | {"body": "ball"},
        "box": {"body": "box"},
        "box, clip": CLIP | {"body": "box"},
        "offset": RATE,
        "offset, clip": RATE | CLIP,
    },
    "numbers": {RULE: {"loss": "log_cosh"}, "l2": {"loss": "log_cosh", "body": "ball"}},
}
FORMS["categories"] = FORMS["classes"] | {
    "hull": {"body": "hull"},
    "hull, clip": CLIP | {"body": "hull"},
}


def simulate(task, n, d, seed):
    rng = np.random.default_rng([seed, n, d])
    X = rng.uniform(-1, 1, (n, d))
    if task == "categories":
        X[:, 3] = np.sign(X[:, 3])
        X[:, 4:] = np.eye(len(WARDS))[rng.choice(len(WARDS), n, p=WARDS)]
        score = X @ np.concatenate([np.linspace(2, 0.4, 4), np.linspace(-1.5, 0.6, len(WARDS))])
    else:
        score = X @ np.linspace(2, 0.4, d) - 0.3
    if task != "numbers":
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-score)), 1, -1)
    return X, np.clip(0.3 * score + 0.2 * rng.standard_normal(n), -1, 1)


@functools.cache
def unseen(task, d):
    return simulate(task, TEST, d, seed=10**6)


def errors(task, weights, intercepts, d):
    """Mean log loss or, for regression, root mean squared error on unseen rows, of each of many models."""
    X, y = unseen(task, d)
    scores = X @ np.reshape(weights, (-1, d)).T + np.ravel(intercepts)
    if task != "numbers":
        return np.mean(np.logaddexp(0, -y[:, None] * scores), axis=0)
    return np.sqrt(np.mean((scores - y[:, None]) ** 2, axis=0))


def largest_norm(task, d):
    """The largest Euclidean norm of a row: of the wards' columns, one is 1."""
    return math.sqrt(5 if task == "categories" else d)


def without_privacy(task, n, d, seed):
    from sklearn.linear_model import LinearRegression, LogisticRegression

    model = LinearRegression() if task == "numbers" else LogisticRegression(C=np.inf, max_iter=1000)
    X, y = simulate(task, n, d, seed)
    model.fit(X, y)
    return errors(task, model.coef_, model.intercept_, d)


def perturbed(task, n, d, epsilon, seed, options):
    """Errors of draws of one form.

    A column of ones is the intercept, unless the wards' columns add up to it.
    """
    from dp.mechanisms import MECHANISMS
    from dp.seeds import generator

    X, y = simulate(task, n, d, seed)
    blocks, bound = [], largest_norm(task, d)
    if task == "categories":
        blocks = [list(range(4, d))]
    else:
        X, bound = np.column_stack([X, np.ones(n)]), math.sqrt(d + 1)
    columns = X.shape[1]
    asked = {"epsilon": epsilon, "bound": bound, "column_bounds": [1.0] * columns, **options}
    asked |= {"blocks": blocks} if blocks else {}
    mechanism = MECHANISMS["knorm_objective_perturbation"]
    lam = mechanism.rule_lambda(n, columns, delta=0.0, **asked)
    rng = generator(seed, "estimators", task, n)
    found = mechanism.release(X, y, rng=rng, restarts=DRAWS, lam=lam, **asked)
    intercepts = np.zeros(DRAWS) + found.info.get("intercept", 0.0)
    if not blocks:
        intercepts += found.weights[:, d]
    return errors(task, found.weights[:, :d], intercepts, d)


def released(task, n, d, epsilon, seed):
    """The error of a release for classes or numbers."""
    from dp_release.estimators import PrivateClassifier, PrivateRegressor
    from dp_release.request import PUBLIC_EXAMPLE

    X, y = simulate(task, n, d, seed)
    kind = PrivateRegressor if task == "numbers" else PrivateClassifier
    with tempfile.TemporaryDirectory() as folder:
        model = kind(
            "benchmark",
            book=Path(folder, "book"),
            budget={"epsilon": epsilon, "delta": DELTA},
            n_rows=n,
            columns=(-1, 1),
            target=(-1, 1) if task == "numbers" else [-1, 1],
            unit="one row is one record",
            epsilon=epsilon,
            delta=DELTA,
            premise=PUBLIC_EXAMPLE,
            spend=True,
        )
        with contextlib.redirect_stdout(io.StringIO()):
            model.preview(X, y)
        model.fit(X, y)
    return errors(task, model.coef_, model.intercept_, d)


def theirs(task, n, d, epsilon, seed):
    """The error of diffprivlib's logistic regression or OpenDP's private Theil-Sen line."""
    X, y = simulate(task, n, d, seed)
    if task != "numbers":
        models = importlib.import_module("diffprivlib.models")
        model = models.LogisticRegression(epsilon=epsilon, data_norm=largest_norm(task, d))
        model.fit(X, y)
        return errors(task, model.coef_, model.intercept_, d)
    opendp = importlib.import_module("opendp.prelude")
    lines = importlib.import_module("opendp.extras.sklearn.linear_model")
    opendp.enable_features("contrib", "honest-but-curious", "idealized-numerics")

    def made(scale):
        return lines.LinearRegression(opendp.max_divergence(), [(-1, 1)], (-1, 1), scale=scale)

    # OpenDP counts a replacement as distance two: a removal and an addition.
    scale = opendp.binary_search(lambda s: made(s).measurement.map(2) <= epsilon, (1e-3, 1e3))
    model = made(scale).fit(X, y)
    return errors(task, model.coef_, model.intercept_, d)


def measured(fit, fits, *at):
    """Mean error, its standard error over fits, and CPU seconds per fit."""
    start = time.process_time()
    means = [float(np.mean(fit(*at, seed))) for seed in range(fits)]
    seconds = (time.process_time() - start) / fits
    return float(np.mean(means)), float(np.std(means, ddof=1) / math.sqrt(fits)), seconds


def of_peers(fits):
    """(task, rows, columns, epsilon) -> what `measured` returns, by the peers' environment."""
    if not PEERS.exists():
        print(f"no {PEERS.relative_to(ROOT)}: diffprivlib and OpenDP are left out")
        return {}
    words = [PEERS, __file__, str(fits), "theirs"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {tuple(at): values for at, values in json.loads(done.stdout.splitlines()[-1])}


def shown(name, values):
    mean, error, seconds = values
    return f"{name} {mean:.4f} +- {error:.4f} ({seconds:.3f} s)"


def main():
    warnings.simplefilter("ignore")
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    cells = [(*task, epsilon) for task in TASKS for epsilon in EPSILONS]
    if "theirs" in sys.argv:
        print(json.dumps([(at, measured(theirs, fits, *at)) for at in cells]))
        return
    peers, judged = of_peers(fits), []
    for at in cells:
        task, n, d, epsilon = at
        print(f"{task}, {n} x {d}, epsilon {epsilon:g}")
        print(f"    {shown('without privacy', measured(without_privacy, 2, task, n, d))}")
        for name, options in FORMS[task].items():
            values = measured(lambda *a, o=options: perturbed(*a, o), fits, *at)
            if name == RULE and at in peers:
                margin = 2 * math.hypot(values[1], peers[at][1])
                judged.append((values[0] - peers[at][0] <= margin, at))
            print(f"    {shown(name, values)}", flush=True)
        if task != "categories":
            print(f"    {shown('release, delta 1e-6', measured(released, RELEASES, *at))}")
        if at in peers:
            print(f"    {shown('peer', peers[at])}", flush=True)
    if judged:
        worse = [at for as_good, at in judged if not as_good]
        good = len(judged) - len(worse)
        print(f"{RULE}: not worse than the peer by over two errors in {good} of {len(judged)}")
        print(f"worse in: {worse}")


if __name__ == "__main__":
    main()
