"""Thirty-two small programs with a claim: 16 with faults that others reported, 16 sound ones.

Each is a function (X, y, rng), written from a description. `origin` names who reported or tests such a
fault. Noise is drawn around the value that it hides, rng.laplace(value, scale), so that tools which look at
the value before noise see it, too.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.stats

from dp_audit.small_pairs import Domain
from dp_privacy.accounting import ADD_REMOVE, gaussian_sigma

E, D = 1.0, 1e-5
SUM = gaussian_sigma(E, D, 2.0)  # noise on a sum of rows, which replacing a row moves by at most 2
HALF = math.log1p(0.5 * math.expm1(E))
UNIT = Domain()


class Claim(NamedTuple):
    """A program, its claim, the records that the claim is for, and whose fault or proof it is."""

    run: Callable
    epsilon: float
    delta: float
    origin: str
    domain: Domain = UNIT

    @property
    def name(self) -> str:
        return self.run.__name__


FAULTS, SOUND = [], []


def fault(origin, delta=0.0, **domain):
    def register(run):
        FAULTS.append(Claim(run, E, delta, origin, Domain(**domain)))
        return run

    return register


def sound(origin, delta=0.0, epsilon=E):
    def register(run):
        SOUND.append(Claim(run, epsilon, delta, origin))
        return run

    return register


def clipped(X):
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))


# ---- faults


@fault("smartnoise-sdk 622; a test of dp-recorder", D, bound=10.0)
def raw_rows_after_clipping(X, y, rng):
    assert (np.linalg.norm(clipped(X), axis=1) <= 1 + 1e-9).all()
    return rng.normal(X.sum(axis=0), SUM)


@fault("diffprivlib 106; a test of dp-recorder")
def classes_of_the_rows(X, y, rng):
    return [float(rng.laplace((y == label).sum(), 2 / E)) for label in np.unique(y)]


@fault("opendp 2938, diffprivlib 80; a test of dp-recorder", missing=True)
def a_missing_cell_passes_the_clip(X, y, rng):
    return rng.laplace(np.clip(X[:, 0], -1, 1).sum(), 2 / E)


@fault("smartnoise-sdk 128; a test of dp-recorder")
def a_sensitivity_of_zero(X, y, rng):
    columns = used = X.shape[1]
    return rng.laplace(X[:, 0].sum(), 2 * (columns - used) / E)


@fault("a test of dp-recorder")
def budget_twice(X, y, rng):
    return rng.laplace(X[:, 0].sum(), 2 / E), rng.laplace(y.sum(), 2 / E)


@fault("tests of dp-recorder and DP-Auditorium", adjacency=ADD_REMOVE)
def exact_size_of_a_mean(X, y, rng):
    return rng.laplace(np.clip(X[:, 0], -1, 1).sum(), 1 / E) / len(X)


def scores(X):
    """Forty queries, half of which grow with the first column's sum, and half of which fall."""
    total = X[:, 0].sum()
    return np.repeat([total, -total], 20)


@fault("a test of DP-Auditorium; Lyu, Su, Li 2017, algorithm 3")
def threshold_with_its_noisy_answers(X, y, rng):
    threshold, answers = float(rng.laplace(0.0, 4 / E)), []
    for score in scores(X):
        noisy = float(rng.laplace(score, 4 / E))
        answers.append(noisy if noisy >= threshold else -1000.0)
        if noisy >= threshold:
            break
    return answers + [-2000.0] * (40 - len(answers))


@fault("a test of DP-Auditorium; Lyu, Su, Li 2017, algorithm 5")
def threshold_for_exact_scores(X, y, rng):
    return scores(X) >= float(rng.laplace(0.0, 4 / E))


@fault("a test of DP-Auditorium; Lyu, Su, Li 2017, algorithm 6")
def threshold_without_a_limit(X, y, rng):
    threshold = float(rng.laplace(0.0, 4 / E))
    return [float(rng.laplace(score, 4 / E)) >= threshold for score in scores(X)]


@fault("diffprivlib 105")
def squares_by_the_lower_bound(X, y, rng):
    lower, upper = 0.0, 1.0
    assert lower < upper
    return rng.laplace((np.clip(X, lower, upper) ** 2).sum(axis=0), lower**2 / E)


@fault("opendp 2931", bound=5.0)
def a_record_of_several_lines(X, y, rng):
    lines = (1 + np.floor(np.linalg.norm(X, axis=1))).sum()
    return rng.laplace(lines, 1 / E)


@fault("opacus 571 and 819", D, adjacency=ADD_REMOVE)
def divided_by_the_batch(X, y, rng):
    batch = max(1, int(0.3 * len(X)))
    return rng.normal(clipped(X).sum(axis=0), SUM) / batch


@fault("jax 3646", D)
def one_key_for_two_values(X, y, rng):
    drawn = rng.normal(0.0, 100 * SUM, X.shape[1])
    return X.sum(axis=0) + drawn, (X * y[:, None]).sum(axis=0) + drawn


def tilted(X, y, rng, scale):
    tilt = np.asarray(rng.normal(0.0, scale, X.shape[1]))

    def objective(w):
        margins = -y * (X @ w)
        return np.logaddexp(0, margins).sum() + 5 * w @ w + tilt @ w

    def gradient(w):
        return X.T @ (-y / (1 + np.exp(y * (X @ w)))) + 10 * w + tilt

    return scipy.optimize.minimize(objective, np.zeros(X.shape[1]), jac=gradient).x


@fault("dp-statsmodels, Logit", D)
def errors_of_the_raw_rows(X, y, rng):
    w = tilted(X, y, rng, 20.0)
    share = 1 / (1 + np.exp(-X @ w))
    information = X.T @ (X * (share * (1 - share))[:, None]) + 0.1 * np.eye(len(w))
    return w, np.sqrt(np.diag(np.linalg.inv(information)))


@fault("dp-statsmodels, PanelOLS", D)
def residuals_of_the_raw_rows(X, y, rng):
    d = X.shape[1]
    gram = np.asarray(rng.normal(X.T @ X, 2 * SUM)) + 50 * np.eye(d)
    weights = np.linalg.solve(gram, np.asarray(rng.normal(X.T @ y, 2 * SUM)))
    return weights, ((y - X @ weights) ** 2).mean()


@fault("pipelines with a scaler; AdaSSP's experiments", D)
def scaled_by_the_rows(X, y, rng):
    Z = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    return rng.normal(clipped(Z).sum(axis=0), SUM)


# ---- sound programs


@sound("a sum: replacing a row moves it by at most 2", D)
def gaussian_sum(X, y, rng):
    return rng.normal(X.sum(axis=0), SUM)


@sound("d sums, which move by at most 2 sqrt(d) in L1 together")
def numbers_one_by_one(X, y, rng):
    scale = 2 * math.sqrt(X.shape[1]) / E
    return [float(rng.laplace(X[:, j].sum(), scale)) for j in range(X.shape[1])]


@sound("functions of a noisy count")
def after_noise(X, y, rng):
    noisy = float(rng.laplace((y > 0).sum(), 1 / E))
    return round(noisy), max(0.0, min(noisy, 10.0)), noisy > 3


@sound("counts of disjoint cells, which move by at most 2 in L1")
def histogram(X, y, rng):
    return rng.laplace([(X[:, 0] > 0.5).sum(), (X[:, 0] <= 0.5).sum()], 2 / E)


@sound("N(0, SUM^2) as a sum over records, of which only the total is released", D)
def noise_of_many(X, y, rng):
    n = len(X)
    return sum(np.asarray(rng.normal(row, SUM / math.sqrt(n))) for row in X)


@sound("N(0, SUM^2) in two parts, of which only the total is released", D)
def noise_in_two_parts(X, y, rng):
    first = rng.normal(X.sum(axis=0), SUM / math.sqrt(2))
    return rng.normal(np.asarray(first), SUM / math.sqrt(2))


@sound("four steps, composed as Gaussian DP", D)
def noisy_descent(X, y, rng):
    w, scale = np.zeros(X.shape[1]), gaussian_sigma(E, D, 2 * math.sqrt(4))
    for _ in range(4):
        gradient = -(X.T @ (y / (1 + np.exp(y * (X @ w)))))
        w = w - 0.1 * np.asarray(rng.normal(gradient, scale))
    return w


@sound("every record is in one of two disjoint batches", D)
def one_epoch(X, y, rng):
    w = np.zeros(X.shape[1])
    for batch in np.array_split(rng.permutation(len(X)), 2):
        total = (X[batch] * y[batch][:, None]).sum(axis=0)
        w = w - 0.1 * np.asarray(rng.normal(total, SUM))
    return w


@sound("the noisy maximum (Dwork, Roth 2014, claim 3.9)")
def noisy_maximum(X, y, rng):
    return int(np.argmax(rng.laplace(np.repeat(np.abs(X).sum(axis=0), 20), 2 / E)))


@sound("the sparse vector technique (Dwork, Roth 2014, algorithm 1); a test of DP-Auditorium")
def above_threshold(X, y, rng):
    score, threshold = (X**2).sum(), float(rng.laplace(3.0, 2 / E))
    return next((k for k in range(40) if rng.laplace(score - k / 10, 4 / E) >= threshold), -1)


@sound("the exponential mechanism; a test of DP-Auditorium")
def gumbel_choice(X, y, rng):
    return int((E / 2 * np.abs(X).sum(axis=0) + rng.gumbel(size=X.shape[1])).argmax())


@sound("amplification by sampling half (Balle, Barthe, Gaboardi 2018, theorem 11)", D / 2, HALF)
def half_of_the_rows(X, y, rng):
    rows = rng.permutation(len(X))[: len(X) // 2]
    return rng.normal(X[rows].sum(axis=0), SUM)


@sound("smooth sensitivity of the median (Nissim, Raskhodnikova, Smith 2007)", D)
def smooth_median(X, y, rng):
    x = np.sort(np.clip(np.abs(X[:, 0]), 0, 1))
    n, m, beta = len(x), len(x) // 2, E / (2 * math.log(2 / D))
    padded, at = np.concatenate([np.zeros(n + 1), x, np.ones(n + 1)]), m + n + 1
    local = [
        max(padded[at + t] - padded[at + t - k - 1] for t in range(k + 2)) for k in range(n + 1)
    ]
    size = max(math.exp(-k * beta) * each for k, each in enumerate(local))
    return rng.laplace(x[m], 2 * size / E)


@sound("objective perturbation with Gaussian noise, for Lambda = 10", D)
def tilted_fit(X, y, rng):
    w = tilted(X, y, rng, 20.0)
    return w, np.exp(w), np.round(w, 2)


@sound("randomised response")
def randomised_response(X, y, rng):
    flips = rng.random(len(y)) < 1 / (1 + math.exp(E))
    return np.where(flips, -y, y).mean()


@sound("three steps on Poisson batches, with noise for all rows", D)
def sampled_descent(X, y, rng):
    w = np.zeros(X.shape[1])
    for _ in range(3):
        batch = rng.random(len(X)) < 0.5
        total = (X[batch] * y[batch][:, None]).sum(axis=0)
        w = w - 0.1 * np.asarray(rng.normal(total, 2 * SUM))
    return w
