import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.robust.norms import HuberT
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from dp.evaluation import regression
from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp.solvers.newton import minimise
from dp_audit import audit
from dp_privacy import intervals
from study.jobs.summary import summarise


@pytest.fixture(scope="module")
def rows():
    """Rows in the unit ball with a constant last column; heavy-tailed targets, clipped to [-1, 1]."""
    rng = generator(1, "statsmodels")
    X = np.column_stack([rng.standard_normal((1500, 5)), np.ones(1500)])
    X /= np.linalg.norm(X, axis=1).max()
    y = X @ rng.standard_normal(6) + 0.1 * rng.standard_t(2, 1500)
    return X, np.clip(y, -1, 1)


@pytest.mark.parametrize("lam", [1e-6, 1e-3, 0.1])
def test_ridge_regression(rows, lam):
    X, y = rows
    reference = sm.OLS(y, X).fit_regularized(alpha=lam, L1_wt=0).params
    np.testing.assert_allclose(minimise(X, y, lam, loss="squared")[0][0], reference, atol=1e-6)


def test_least_squares_and_its_r2(rows):
    X, y = rows
    reference = sm.OLS(y, X).fit()
    release = MECHANISMS["nonprivate"].release(
        X, y, epsilon=np.inf, lam=1e-9, loss="squared", restarts=1
    )
    np.testing.assert_allclose(release.weights[0], reference.params, atol=1e-4)
    actual = regression(reference.params[None], X, y, unit=10.0)
    assert actual["r2"][0] == pytest.approx(reference.rsquared, rel=1e-12)
    assert actual["mse"][0] == pytest.approx(100 * reference.ssr / len(y), rel=1e-12)
    assert actual["mae"][0] == pytest.approx(10 * np.abs(reference.resid).mean(), rel=1e-12)


@pytest.mark.parametrize("t", [0.5, 1.345, 4.0])
def test_huber_by_reweighting(rows, t):
    """At a fixed scale s, RLM's losses are 1/s^2 times this project's with tau = t s."""
    X, y = rows
    reference = sm.RLM(y, X, M=HuberT(t)).fit(update_scale=False, tol=1e-13, maxiter=1000)
    loss = {"huber_residual": {"tau": t * reference.scale}}
    W, info = minimise(X, y, 1e-9, loss=loss)
    assert info.status[0] == "ok"
    np.testing.assert_allclose(W[0], reference.params, atol=1e-5)


def test_logistic_regression(rows):
    X, y = rows
    reference = sm.Logit((y > 0).astype(int), X).fit(disp=0, tol=1e-12).params
    actual = minimise(X, np.where(y > 0, 1, -1), 1e-10)[0][0]
    np.testing.assert_allclose(actual, reference, rtol=1e-4)


@pytest.mark.parametrize("family", [1, 7, 120])
def test_bounds_of_a_family_are_bonferronis(family):
    level = audit.of_each(0.95, family)
    for own in (0.999 * 0.05 / family, 1.001 * 0.05 / family):
        p = np.append(own, np.full(family - 1, 0.9))
        rejected = multipletests(p, alpha=0.05, method="bonferroni")[0][0]
        assert (own <= 1 - level) == rejected


@pytest.mark.parametrize(("count", "trials"), [(0, 50), (3, 50), (49, 50), (50, 50), (700, 90_000)])
def test_clopper_pearson_bounds_of_an_attack(count, trials):
    low, high = proportion_confint(count, trials, alpha=2 * 0.01, method="beta")
    assert intervals.least_share(count, trials, 0.99) == pytest.approx(low, rel=1e-9)
    assert intervals.largest_share(count, trials, 0.99) == pytest.approx(high, rel=1e-9)


def test_intervals_are_students_over_folds():
    rng = generator(2, "statsmodels")
    fold = np.repeat(np.arange(6), 9)
    r2 = rng.normal(size=6)[fold] - 3 + 0.1 * rng.normal(size=54)
    draws = pd.DataFrame({"fold": fold, "restart": np.tile(np.arange(9), 6), "r2": r2})
    summary = summarise(draws.assign(excess_risk=np.nan, gradient_norm=np.nan, status="ok"))
    means = DescrStatsW(draws.groupby("fold")["r2"].mean())
    assert summary["r2_mean"] == pytest.approx(means.mean)
    assert (summary["r2_low"], summary["r2_high"]) == pytest.approx(means.tconfint_mean())
    assert summary["r2_low"] < 0  # R^2 may leave [0, 1]
