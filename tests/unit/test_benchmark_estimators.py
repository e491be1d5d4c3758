"""Benchmark estimators in scikit-learn's own tools, against the mechanism that they call."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from dp.estimators import BenchmarkClassifier, BenchmarkRegressor
from dp.mechanisms import MECHANISMS
from dp_privacy.errors import Refused


def rows(n=3000, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform([0, -5], [100, 5], (n, 2))
    return X, np.where(X[:, 0] / 100 + X[:, 1] / 10 > rng.uniform(0, 1, n), "yes", "no")


BOUNDS = [(0, 100), (-5, 5)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [BenchmarkClassifier(bounds=(-10, 10)), BenchmarkRegressor(bounds=(-10, 10), target=(-10, 10))],
)
def test_checks_of_scikit_learn(model):
    actual = check_estimator(model, on_fail=None)
    failed = {e["check_name"]: str(e["exception"]) for e in actual if e["status"] == "failed"}
    assert not failed
    assert sum(each["status"] == "passed" for each in actual) > 40


def test_a_search_compares_epsilons_and_mechanisms():
    X, y = rows()
    model = BenchmarkClassifier(bounds=BOUNDS, random_state=3)
    grid = [
        {"epsilon": [0.001, 10.0]},
        {"mechanism": ["dp_gd"], "options": [{"steps": "rule"}], "epsilon": [10.0]},
    ]
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=3).fit(X, y)
    tiny, large, descent = search.cv_results_["mean_test_score"]
    assert tiny < large and descent > tiny
    assert search.best_estimator_.guarantee_.epsilon == 10.0
    again = cross_val_score(model.set_params(epsilon=10.0), X, y, cv=3, scoring="neg_log_loss")
    assert again.mean() == large  # the seed fixes the noise


def test_the_weights_are_those_of_the_mechanism_in_the_columns_own_units():
    X, y = rows()
    model = BenchmarkClassifier(2.0, bounds=BOUNDS, random_state=3).fit(X, y)
    # The same by hand: columns on [-1, 1] and a constant, divided by sqrt(3).
    design = np.column_stack([X[:, 0] / 50 - 1, X[:, 1] / 5, np.ones(len(X))]) / np.sqrt(3)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    mechanism = MECHANISMS["knorm_objective_perturbation"]
    asked = {"epsilon": 2.0, "delta": 0.0, "clip": 0.75, "column_bounds": [1 / np.sqrt(3)] * 3}
    lam = mechanism.rule_lambda(*design.shape, **asked)
    rng = np.random.default_rng(seed)
    (weights,) = mechanism.release(
        design, np.where(y == "yes", 1, -1), lam=lam, rng=rng, **asked
    ).weights
    assert model.decision_function(X) == pytest.approx(design @ weights, rel=1e-9)
    assert X @ model.coef_[0] + model.intercept_ == pytest.approx(design @ weights, abs=1e-9)
    assert model.guarantee_.epsilon == 2.0
    # Cells beyond the bounds count as the bound, in learning and in predictions.
    assert model.decision_function([[900.0, 0.0]]) == model.decision_function([[100.0, 0.0]])


def test_a_number_is_learnt_in_its_own_units():
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 10, (4000, 2))
    y = 3 * X[:, 0] - X[:, 1] + 7
    model = BenchmarkRegressor(20.0, bounds=(0, 10), target=(-10, 40), random_state=1)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.9
    fitted = model.fit(X, y)
    inside = X @ fitted.coef_ + fitted.intercept_
    assert fitted.predict(X) == pytest.approx(np.clip(inside, -10, 40), abs=1e-9)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [(None, "state bounds"), ((1, 0), "low below high"), ([(0, 1)] * 3, "each of the 2 columns")],
)
def test_public_bounds_must_be_stated(bounds, said):
    X, y = rows(50)
    with pytest.raises(Refused, match=said):
        BenchmarkClassifier(bounds=bounds).fit(X, y)
    with pytest.raises(Refused, match="state target"):
        BenchmarkRegressor(bounds=(0, 1)).fit(X, X[:, 0])


def test_steps_that_learn_from_rows_are_allowed_in_a_benchmark():
    X, y = rows()
    model = make_pipeline(StandardScaler(), BenchmarkClassifier(bounds=(-3, 3), random_state=1))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.6
