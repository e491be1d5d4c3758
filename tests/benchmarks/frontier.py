"""Times each frontier mechanism, a textbook program for it, and the minimum arithmetic.

    python tests/benchmarks/frontier.py [mechanism ...]         3 minutes

All programs take turns on the same rows (20,000 x 10, norms at most 1), with epsilon 1, delta 1e-6 and one
thread. The table shows median CPU milliseconds per release. A mechanism makes 24 releases at once. Few
mechanisms are in a library, so the textbook programs compute one release by the papers' formulas in numpy
and scipy. The column "floor" times only the arithmetic of 24 releases: matrix products, exponentials, and
linear systems.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # must precede numpy's import

import math
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from dp.descents import poisson
from dp.mechanisms import MECHANISMS

N, D, DRAWS, TURNS = 20_000, 10, 24, 3
EPSILON, DELTA = 1.0, 1e-6


def rows(rng):
    X = rng.standard_normal((N, D))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1) / 2.5)[:, None] * 2.5
    score = X @ rng.standard_normal(D)
    noise = rng.standard_normal(N)
    return X, np.where(score + 0.3 * noise > 0, 1, -1), np.clip(score + 0.1 * noise, -1, 1)


def certified(X, y, lam, tilt=None):
    """Minimiser of the tilted logistic objective, by L-BFGS to a gradient norm of about 1e-9."""
    n = len(y)
    tilt = np.zeros(X.shape[1]) if tilt is None else tilt / n

    def objective(w):
        z = y * (X @ w)
        gradient = X.T @ (-y * expit(-z)) / n + lam * w + tilt
        return np.logaddexp(0, -z).mean() + lam / 2 * w @ w + tilt @ w, gradient

    settings = {"maxiter": 1000, "gtol": 1e-9, "ftol": 1e-16}
    return minimize(
        objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options=settings
    ).x


def tilted(X, y, p, rng):
    return certified(X, y, p["lam"], p["scale"] * rng.standard_normal(D)) + rng.standard_normal(D)


def perturbed(X, y, p, rng):
    return certified(X, y, p["lam"]) + rng.standard_normal(D)


def mean_gradient(X, y, w, clip):
    each = (-y * expit(-y * (X @ w)))[:, None] * X
    return (each / np.maximum(1, np.linalg.norm(each, axis=1) / clip)[:, None]).mean(axis=0)


def descent(X, y, p, rng):
    w = np.zeros(D)
    for _ in range(p["iterations"]):
        w -= p["rate"] * (mean_gradient(X, y, w, 1.0) + 1e-3 * rng.standard_normal(D))
    return w


def preconditioned(X, y, p, rng):
    H = X.T @ X / 4 / N + 1e-3 * np.eye(D)
    w = np.zeros(D)
    for _ in range(p["iterations"]):
        gradient = mean_gradient(X, y, w, 1.0) + 1e-3 * rng.standard_normal(D)
        w -= np.linalg.solve(H, gradient)
    return w


def newton(X, y, p, rng):
    w = np.zeros(D)
    for _ in range(p["iterations"]):
        gradient = mean_gradient(X, y, w, 1.0) + 1e-3 * rng.standard_normal(D)
        z = np.maximum(np.abs(X @ w), 1e-6)
        H = (X * (np.tanh(z / 2) / (2 * z))[:, None]).T @ X / N + 1e-2 * np.eye(D)
        w -= np.linalg.solve(H, gradient) + 1e-3 * rng.standard_normal(D)
    return w


def stochastic(X, y, p, rng):
    w = np.zeros(D)
    for _ in range(p["iterations"]):
        chosen = np.flatnonzero(rng.random(N) < p["sampling"])
        gradient = mean_gradient(X[chosen], y[chosen], w, 1.0)
        w -= p["rate"] * (gradient + 1e-3 * rng.standard_normal(D))
    return w


def boosted(X, y, p, rng):
    A = X.T @ X + np.eye(D)
    w = np.zeros(D)
    for _ in range(p["iterations"]):
        moment = np.clip(y - X @ w, -0.25, 0.25) @ X + rng.standard_normal(D)
        w += np.linalg.solve(A, moment)
    return w


def mixed(X, y, p, rng):
    """Draw a new sketch of all rows at each step, as in the paper."""
    w, k = np.zeros(D), 6 * D
    for _ in range(p["iterations"]):
        S = rng.standard_normal((k, N)) @ X / math.sqrt(k)
        moment = np.clip(y - X @ w, -0.25, 0.25) @ X + rng.standard_normal(D)
        w += np.linalg.solve(S.T @ S + np.eye(D), moment)
    return w


def sufficient(X, y, p, rng):
    noise = np.triu(rng.standard_normal((D, D)))
    A = X.T @ X + noise + np.triu(noise, 1).T
    ridge = max(0.0, 10 - np.linalg.eigvalsh(A)[0])
    return np.linalg.solve(A + ridge * np.eye(D), X.T @ y + rng.standard_normal(D))


def deep(X, y, p, rng):
    """Fit each part of the rows by least squares, and choose a fit by its depth, as in the paper."""
    m = p["models"]
    parts = np.array_split(rng.permutation(N)[: m * (N // m)], m)
    points = np.array([np.linalg.lstsq(X[part], y[part], rcond=None)[0] for part in parts])
    points.sort(axis=0)
    volumes = [np.log(points[m - 1 - i] - points[i]).sum() for i in range(m // 2)]
    return points[int(np.argmax(volumes))]


# ---- the floor


def products(X, y, passes, exponential=True):
    W, Z = np.ones((D, DRAWS)), np.empty((N, DRAWS))
    for _ in range(passes):
        np.matmul(X, W, out=Z)
        if exponential:
            np.exp(Z, out=Z)
        W = 1e-9 * (X.T @ Z)


def floor_of_newton(X, y, passes):
    products(X, y, passes)
    for _ in range(passes * DRAWS):
        (X * y[:, None]).T @ X


def floor_of_models(X, y, models):
    for _ in range(DRAWS):
        A = X[: models * (N // models)].reshape(models, -1, D)
        np.linalg.solve(A.transpose(0, 2, 1) @ A + np.eye(D), np.ones((models, D, 1)))


def floor_of_batches(X, y, steps, sampling):
    rng = np.random.default_rng(0)
    for _ in range(steps):
        for _, rows, _ in poisson.batches(N, DRAWS, sampling, rng):
            part = X[rows]
            np.exp(part @ np.ones(D)) @ part


# mechanism -> (whether it is a regression, its settings, the textbook program, that
# program's settings, the floor)
def cases():
    lam = MECHANISMS["gaussian_objective_perturbation"].rule_lambda(
        N, D, epsilon=EPSILON, delta=DELTA
    )
    steps, sampling = 100, 0.05
    return {
        "gaussian_objective_perturbation": (
            *(False, {"lam": lam}, tilted, {"lam": lam, "scale": 10}),
            lambda X, y, info: products(X, y, round(passes(info))),
        ),
        "output_perturbation_gaussian": (*(False, {"lam": lam}, perturbed, {"lam": lam}, None),),
        "dp_gd": (
            *(False, {"iterations": steps, "learning_rate": 1.0}, descent),
            *({"iterations": steps, "rate": 1.0}, lambda X, y, info: products(X, y, steps)),
        ),
        "preconditioned_gd": (
            *(False, {"iterations": 10}, preconditioned, {"iterations": 10}),
            lambda X, y, info: products(X, y, 10),
        ),
        "dp_newton": (
            *(False, {"iterations": 15}, newton, {"iterations": 15}),
            lambda X, y, info: floor_of_newton(X, y, 15),
        ),
        "dp_sgd_poisson": (
            *(False, {"iterations": steps, "sampling": sampling}, stochastic),
            {"iterations": steps, "sampling": sampling, "rate": 2.0},
            lambda X, y, info: floor_of_batches(X, y, steps, sampling),
        ),
        "boosted_adassp": (
            *(True, {}, boosted, {"iterations": 10}),
            lambda X, y, info: products(X, y, 10, exponential=False),
        ),
        "iterative_hessian_mixing": (
            *(True, {"iterations": 10}, mixed, {"iterations": 10}),
            lambda X, y, info: products(X, y, 10, exponential=False),
        ),
        "adassp": (True, {}, sufficient, {}, lambda X, y, info: X.T @ X),
        "tukey_em": (
            *(True, {"models": 1000}, deep, {"models": 1000}),
            lambda X, y, info: floor_of_models(X, y, 1000),
        ),
    }


def passes(info):
    """Mean passes over the rows per restart, or 8 if not reported."""
    return float(np.mean(info.get("iterations", 8)))


def processor(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def main():
    X, labels, targets = rows(np.random.default_rng(1))
    print(f"{'mechanism':34}{'ms':>8}{'textbook':>10}{'ratio':>7}{'floor':>8}{'over it':>8}")
    chosen = sys.argv[1:]
    for name, (numbers, settings, textbook, its, floor) in cases().items():
        if chosen and name not in chosen:
            continue
        y = targets if numbers else labels
        ours, peers, floors = [], [], []
        for turn in range(TURNS + 1):  # the first turn only fills caches
            rng = np.random.default_rng(turn)
            arguments = {"epsilon": EPSILON, "delta": DELTA, **settings}
            used, release = processor(
                lambda: MECHANISMS[name].release(X, y, restarts=DRAWS, rng=rng, **arguments)  # noqa: B023
            )
            ours.append(used / DRAWS)
            peers.append(processor(lambda: textbook(X, y.astype(float), its, rng))[0])  # noqa: B023
            if floor:
                floors.append(processor(lambda: floor(X, y, release.info))[0] / DRAWS)  # noqa: B023
        mine, peer = (1e3 * statistics.median(each[1:]) for each in (ours, peers))
        line = f"{name:34}{mine:8.2f}{peer:10.2f}{peer / mine:7.1f}"
        if floor:
            least = 1e3 * statistics.median(floors[1:])
            line += f"{least:8.2f}{mine / least:8.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
