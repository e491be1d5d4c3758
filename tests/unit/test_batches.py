import math

import numpy as np
import pytest

from checks.prediction import Protocol, predict
from dp.mechanisms import MECHANISMS
from dp_privacy.accounting import gaussian_epsilon
from dp_privacy.errors import Refused
from study.data.preparation import Table, prepare

ROWS = np.random.default_rng(4).uniform(-1, 1, (30, 3))
LABELS = np.where(ROWS @ [1.0, -2.0, 0.5] > 0, 1, -1)
LAPLACE, GAUSSIAN = MECHANISMS["functional_laplace"], MECHANISMS["functional_gaussian"]
ADAM = {"solver": "adam", "lam": 1e-6, "bound": 2.0}


def by_hand(batches, rate=0.001):
    """Adam, as in its paper, from zero weights on each batch's summed squared loss."""
    w, mean, square = np.zeros(3), np.zeros(3), np.zeros(3)
    for step, (X, y) in enumerate(batches, start=1):
        gradient = 2 * X.T @ (X @ w - y) + 2e-6 * len(X) * w
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        w = w - rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return w


def test_without_noise_it_is_adam_on_shuffled_batches():
    options = {"epochs": 3, "batch_size": 8, "batches": "shuffled"}
    mechanism, rng = MECHANISMS["noiseless_linear"], np.random.default_rng(9)
    arguments = {"solver": "adam", "lam": 1e-6, "bound": 2.0} | options
    actual = mechanism.release(ROWS, LABELS, rng=np.random.default_rng(9), **arguments).weights[0]
    batches = []
    for _ in range(3):
        order = rng.permutation(30)
        batches += [(ROWS[o], LABELS[o]) for o in np.split(order, [8, 16, 24])]
    assert actual == pytest.approx(by_hand(batches), abs=1e-12)
    whole = mechanism.release(ROWS, LABELS, rng=rng, **arguments | {"batch_size": 30}).weights
    all_rows = ADAM | {"epochs": 3, "batch_size": 30}
    assert whole == pytest.approx(mechanism.release(ROWS, LABELS, rng=rng, **all_rows).weights)


def test_noise_once_moves_all_steps_alike_and_noise_per_batch_averages_out():
    arguments = ADAM | {"epsilon": 0.001, "restarts": 300, "batches": "shuffled", "batch_size": 3}
    size = {
        noise: np.abs(
            LAPLACE.release(
                ROWS, LABELS, rng=np.random.default_rng(1), noise=noise, **arguments
            ).weights
        ).mean()
        for noise in ("once", "per_batch")
    }
    # With noise drawn once, 100 steps of 0.001 add up. With noise per batch, they are a random walk.
    assert size["once"] > 0.05 > 0.04 > size["per_batch"] > 0.001


def test_what_is_proven_of_batches():
    def proven(mechanism, **options):
        return mechanism.guarantee(30, 3, epsilon=0.5, **ADAM | options)

    batches = {"batches": "shuffled", "epochs": 4}
    assert proven(LAPLACE).epsilon == 0.5
    assert proven(LAPLACE, noise="per_batch", **batches).epsilon == 2.0
    assert "disjoint" not in proven(LAPLACE).reason
    once = proven(LAPLACE, **batches)
    assert math.isinf(once.epsilon) and "same noise" in once.reason
    delta = {"delta": 1e-5}
    actual = proven(GAUSSIAN, noise="per_batch", **batches, **delta)
    one = GAUSSIAN.release(
        ROWS, LABELS, rng=np.random.default_rng(1), epsilon=0.5, **ADAM, **delta, restarts=1
    ).info["scale"]
    sensitivity = 2 * (2.0**2 + 1)  # 2 alpha (R^2 + t^2), alpha = t = 1
    assert actual.epsilon == pytest.approx(gaussian_epsilon(one / 2, 1e-5, sensitivity))
    assert math.isinf(proven(GAUSSIAN, **batches, **delta).epsilon)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"noise": "per_batch"}, "needs batches"),
        ({"batches": "shuffled", "solver": "exact"}, "are for the solver 'adam'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, problem):
    with pytest.raises(Refused, match=problem):
        LAPLACE.guarantee(30, 3, epsilon=1.0, **ADAM | options)


def test_min_max_fits_its_training_rows_and_clips_the_others():
    X = np.array([[0.0, 7, 2], [4, 7, 3], [1, 7, 6], [9, 8, 4]])
    table = Table(X, np.ones(4), ("a", "b", "c"), train_rows=3)
    actual, record = prepare(table, [("min_max", {})])
    assert actual.X.tolist() == [[-1, 0, -1], [1, 0, -0.5], [-0.5, 0, 1], [1, 1, 0]]
    assert record[0]["private_rows"] and actual.coordinate_bound == 1
    assert actual.bound == pytest.approx(math.sqrt(3))


def test_draws_that_folds_share_do_not_average_out():
    rng = np.random.default_rng(3)
    shared = 0.1 * rng.normal(size=(1, 400)) + 0.001 * rng.normal(size=(5, 1))
    draws = np.broadcast_to(shared, (5, 400))
    actual = predict(draws, Protocol(5, 1, shared=True), rng, paired=True)
    low, high = actual.interval
    assert high - low == pytest.approx(2 * 1.96 * 0.1, rel=0.15)
    # folds of one draw differ only in their rows
    assert actual.sd == pytest.approx(0.001, rel=1)
