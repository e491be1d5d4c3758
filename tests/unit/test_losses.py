"""Losses against finite differences, their own suprema, and huge margins."""

import math

import numpy as np
import pytest

from dp import losses

ALL = [
    losses.get("logistic"),
    losses.get("huber"),
    losses.get("huber", h=0.1),
    losses.get("squared"),
]
GRID = np.linspace(-12, 12, 4801)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_derivatives_are_those_of_the_value(loss):
    z, step = np.random.default_rng(1).uniform(-6, 6, 400), 1e-6
    slope = (loss.value(z + step) - loss.value(z - step)) / (2 * step)
    assert loss.derivative(z) == pytest.approx(slope, abs=1e-8)
    # the Huber hinge's second derivative jumps at 1 - h and 1 + h: away from there
    kinks = [1 - loss.h, 1 + loss.h] if loss.name == "huber" else []
    z = z[[all(abs(x - kink) > 1e-3 for kink in kinks) for x in z]]
    bend = (loss.derivative(z + step) - loss.derivative(z - step)) / (2 * step)
    assert loss.curvature(z) == pytest.approx(bend, abs=1e-7)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_stated_constants_are_the_suprema(loss):
    if math.isfinite(loss.kappa):
        assert np.abs(loss.derivative(GRID)).max() == pytest.approx(loss.kappa, abs=1e-4)
    else:
        assert np.abs(loss.derivative(1e6)) > 1e5
    assert loss.curvature(GRID).max() == pytest.approx(loss.c, rel=1e-4)
    assert np.abs(loss.derivative(GRID)).max() <= loss.kappa
    assert loss.curvature(GRID).max() <= loss.c * (1 + 1e-12)


def test_logistic_values():
    z = np.array([-3.0, 0.0, 2.0])
    loss = losses.get("logistic")
    assert loss.value(z) == pytest.approx(np.log(1 + np.exp(-z)))
    assert loss.derivative(z) == pytest.approx(-1 / (1 + np.exp(z)))
    assert loss.curvature(z) == pytest.approx(np.exp(z) / (1 + np.exp(z)) ** 2)


def test_huber_hinge_is_the_hinge_outside_its_band():
    loss = losses.get("huber", h=0.25)
    assert loss.value([-4.0, 0.5, 1.5, 9.0]) == pytest.approx([5.0, 0.5, 0.0, 0.0])
    assert loss.value(1.0) == pytest.approx(0.25 / 4)


def test_squared_loss_is_the_regression_loss_for_signs():
    y, score = np.array([1, -1, 1]), np.array([0.3, 0.3, -2.0])
    assert losses.get("squared").value(y * score) == pytest.approx((y - score) ** 2 / 2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["logistic", "huber"])
def test_huge_margins(name):
    loss = losses.get(name)
    z = np.array([-1e300, -800.0, 800.0, 1e300])
    assert loss.derivative(z) == pytest.approx([-1, -1, 0, 0])
    assert loss.curvature(z) == pytest.approx(0)
    assert loss.value(z[1:3]) == pytest.approx([800 + (name == "huber"), 0])


def test_unknown_loss_names_the_nearest():
    with pytest.raises(ValueError, match="logistic"):
        losses.get("logistc")
