import math

import numpy as np
import pytest

from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp_privacy.accounting import gaussian_mu
from dp_privacy.errors import Refused

OUTPUT_SGD = MECHANISMS["output_sgd"]
DELTA = 1e-6


def moved(X, y, X_other, y_other, **options):
    """The largest distance between the two sides' last weights, and the bound on it.

    Both sides have the same row order.
    """
    settings = {"epsilon": 1.0, "delta": DELTA, "restarts": 50} | options
    sides = (
        OUTPUT_SGD.release(*side, rng=generator(1), **settings)
        for side in ((X, y), (X_other, y_other))
    )
    one, other = sides  # both releases draw the same noise
    apart = np.linalg.norm(one.weights - other.weights, axis=1).max()
    return apart, one.info["scale"] * gaussian_mu(1.0, DELTA)


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_a_flipped_label_moves_the_weights_by_the_bound_at_most(lam):
    """The record is alone on its axis, where weights stay near 0, so each slope is half the maximum."""
    X, y = np.zeros((40, 2)), np.ones(40)
    X[0, 0], X[1:, 1] = 1.0, 1.0
    options = {"lam": lam, "epochs": 3, "batch": 5, "learning_rate": 1e-3 if lam == 0 else 0.5}
    apart, bound = moved(X, y, X, np.concatenate([[-1.0], y[1:]]), **options)
    assert apart <= bound
    # With lambda, later batches shrink a record's effect.
    assert apart == pytest.approx(bound / 2, rel=0.01 if lam == 0 else 0.2)


def test_no_pair_of_records_moves_them_by_more():
    rng, closest = np.random.default_rng(2), 0.0
    for _ in range(40):
        X = rng.standard_normal((12, 2)) * 3
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        y = rng.choice([-1.0, 1.0], 12)
        other, labels = X.copy(), y.copy()
        other[0], labels[0] = -X[0] * rng.uniform(0.5, 1), y[0]
        options = {"epochs": 4, "batch": 4, "learning_rate": float(rng.choice([0.1, 8.0]))}
        apart, bound = moved(X, y, other, labels, **options)
        assert apart <= bound
        closest = max(closest, apart / bound)
    assert closest > 0.3


def test_the_noise_is_the_bound_over_mu():
    X, y = np.full((100, 1), 1e-9), np.ones(100)
    options = {"epochs": 2, "batch": 10, "bound": 2.0, "lam": 0.1, "learning_rate": 0.5}
    release = OUTPUT_SGD.release(
        X, y, epsilon=2.0, delta=DELTA, restarts=20_000, rng=generator(3), **options
    )
    # Each of ten batches per pass multiplies distances by 0.95.
    bound = 2 * 0.5 * 2.0 / 10 * (1 + 0.95**10)
    assert release.info["scale"] == pytest.approx(bound / gaussian_mu(2.0, DELTA))
    assert release.weights.std() == pytest.approx(release.info["scale"], rel=0.02)
    guarantee = OUTPUT_SGD.guarantee(100, 1, epsilon=2.0, delta=DELTA, **options)
    assert guarantee.profile.mu == gaussian_mu(2.0, DELTA) and guarantee.epsilon == 2.0


def test_it_learns():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((2000, 3)) / 4
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X[:, 0] + 0.05 * rng.standard_normal(2000) > 0, 1, -1)
    release = OUTPUT_SGD.release(X, y, epsilon=4.0, delta=DELTA, restarts=5, rng=generator(5))
    assert (np.sign(X @ release.weights.T) == y[:, None]).mean() > 0.9


def test_a_step_that_drives_points_apart_is_refused():
    settings = {"epsilon": 1.0, "delta": DELTA}
    OUTPUT_SGD.guarantee(100, 2, learning_rate=8.0, **settings)
    with pytest.raises(Refused, match="smaller learning_rate"):
        OUTPUT_SGD.guarantee(100, 2, learning_rate=8.1, **settings)
    with pytest.raises(Refused, match="smaller learning_rate"):
        OUTPUT_SGD.guarantee(100, 2, learning_rate=8.0, lam=0.1, **settings)
    assert math.isfinite(OUTPUT_SGD.guarantee(100, 2, lam=0.1, **settings).epsilon)
