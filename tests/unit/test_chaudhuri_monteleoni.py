import math

import numpy as np
import pandas as pd
import pytest

from checks.results import Missing, Results
from sources.chaudhuri_monteleoni_2008 import checks, excess_risk
from study.configuration.experiment import Experiment


def test_the_ratio_of_the_lemmas_is_one_at_a_third():
    """The ratio of 8/lambda to 2 (1 + lambda)/lambda^2 is 4 lambda/(1 + lambda)."""
    arguments = {"first": "cm08_lemma_4", "second": "cm08_lemma_3", "at_most": 1}
    below = checks.bound_ratio(None, lambdas=[0.01, 0.333], **arguments)
    assert below.holds and below.number == pytest.approx(4 * 0.333 / 1.333)
    assert not checks.bound_ratio(None, lambdas=[0.01, 0.334], **arguments).holds


def test_theorems_against_numbers_written_out():
    arguments = {"norm": 2.0, "loss": 0.25, "epsilon": 0.1, "delta": 0.1}
    log = math.log(10 / 0.1)
    assert excess_risk.cm08_theorem_4(10, **arguments) == pytest.approx(10 * log * 2 / 0.025)
    assert excess_risk.cm08_theorem_5(10, **arguments) == pytest.approx(10 * log * 4 / 0.0125)
    least = arguments | {"epsilon": 1e6}
    assert excess_risk.cm08_theorem_5(10, **least) == excess_risk.cm08_theorem_4(10, **least) == 64


def test_a_lower_bound_is_found(monkeypatch):
    arguments = {"norms": [1], "losses": [0.1], "epsilons": [1], "dimensions": [5], "delta": 0.1}
    assert checks.never_lower(None, **arguments).holds
    monkeypatch.setattr(excess_risk, "cm08_theorem_5", lambda **values: 0.0)
    assert not checks.never_lower(None, **arguments).holds


LAMBDAS = (1.0, 0.1, 0.01)


class Made(Results):
    """Errors on five folds. `curves` gives a method's error at each lambda; folds add noise."""

    def __init__(self, curves, noise):
        rows = [
            ("a", f"{name}_{k}", 9, 0.1, lam) for name in curves for k, lam in enumerate(LAMBDAS)
        ]
        columns = ["dataset", "method", "train_size", "epsilon", "lambda"]
        super().__init__(Experiment("made", {}), pd.DataFrame(rows, columns=columns))
        rng = np.random.default_rng(1)
        self.of = {
            f"{name}_{k}": error + noise * rng.standard_normal((1, 5, 1))
            for name, errors in curves.items()
            for k, error in enumerate(errors)
        }

    def draws(self, cell, column):
        return self.of[cell.method]


def degrades(low, noise=0.001):
    made = Made({"low": low, "high": (0.2, 0.3, 0.5), "none": (0.1, 0.1, 0.05)}, noise)
    names = {key: [f"{name}_{k}" for k in range(3)] for key, name in GROUPS.items()}
    return checks.degrades_less(made, **names)


def falls(costs, noise=0.001):
    """The verdict if privacy costs this much at lambda 1, 0.1 and 0.01."""
    without = (0.1, 0.1, 0.05)
    errors = [cost + error for cost, error in zip(costs, without, strict=True)]
    made = Made({"private": errors, "none": without}, noise)
    named = {
        "private": ["private_2", "private_1", "private_0"],
        "without": ["none_2", "none_1", "none_0"],
    }
    return checks.cost_falls(made, **named)


def test_what_privacy_costs_falls_with_lambda_or_not():
    assert falls((0.1, 0.2, 0.4)).holds
    assert falls((0.4, 0.2, 0.1)).holds is False
    assert falls((0.2, 0.2, 0.2), noise=0.05).holds is None
    # The error falls, but only because it does without privacy, too.
    assert falls((0.2, 0.2, 0.25)).number == pytest.approx(-0.025, abs=0.003)


def test_a_norm_of_one_and_no_less_allows_the_loss_of_section_5():
    least = math.log(1 + 1 / math.e)
    assert checks.least_loss(None, norms=[0.99], rows=100, at_least=least).holds
    assert not checks.least_loss(None, norms=[1.01], rows=100, at_least=least).holds


def test_one_row_moves_the_minimiser_no_farther_than_corollary_2_allows():
    # With n lambda large, all weights are near 0, where the loss has the slope 1/2. The row changes its
    # label, so the minimiser moves by nearly 1/(n lambda), half of the bound.
    actual = checks.minimiser_moves(None, n=200, lambdas=[1.0], at_most=1)
    assert actual.holds and actual.number == pytest.approx(0.5, abs=0.01)
    assert not checks.minimiser_moves(None, n=200, lambdas=[1.0], at_most=0.4).holds


GROUPS = {"first": "low", "second": "high", "without": "none"}


def test_what_degrades_less_as_lambda_falls():
    actual = degrades((0.2, 0.22, 0.25))
    # at the three lambdas, privacy adds 0.1, 0.12 and 0.2 to "low", and 0.1, 0.2 and 0.45 to "high"
    assert actual.holds and actual.number == pytest.approx(-0.08, abs=0.005)
    assert degrades((0.2, 0.35, 0.6)).holds is False
    assert degrades((0.2, 0.3, 0.5), noise=0.05).holds is None
    with pytest.raises(Missing):
        checks.degrades_less(
            Made({"low": (0.2, 0.2, 0.2)}, 0.001), first=["low_0"], second=["x"], without=["y"]
        )
