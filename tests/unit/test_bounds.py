"""The papers' bounds on excess risk hold for draws of the noise."""

import numpy as np
import pytest

from dp.evaluation import regularised_risk
from dp.mechanisms import MECHANISMS
from dp.rows import simulate_unseparable
from sources.chaudhuri_monteleoni_2008.excess_risk import cm08_lemma_3, cm08_lemma_4


def test_values_by_hand():
    # d = 10, delta = 0.1: (d log(d/delta))^2 = (10 log 100)^2 = 2120.76
    common = {"lam": 0.01, "epsilon": 0.1, "delta": 0.1}
    assert cm08_lemma_3(14000, 10, **common) == pytest.approx(2 * 2120.759 * 1.01 / 14**2, rel=1e-6)
    assert cm08_lemma_4(14000, 10, **common) == pytest.approx(
        8 * 2120.759 / (0.01 * 1400**2), rel=1e-6
    )
    with pytest.raises(ValueError, match="0 < delta < 1"):
        cm08_lemma_3(14000, 10, lam=0.01, epsilon=0.1, delta=1.0)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("output_perturbation", cm08_lemma_3), ("objective_perturbation_cm08", cm08_lemma_4)],
)
def test_bounds_hold_and_are_not_vacuous_by_mistake(name, bound):
    rng = np.random.default_rng(5)
    X, y, _ = simulate_unseparable(400, 3, 0.1, 0.2, rng)
    lam, epsilon, delta = 0.1, 1.0, 0.1
    release = MECHANISMS[name].release(X, y, epsilon=epsilon, lam=lam, restarts=500, rng=rng)
    best = MECHANISMS["nonprivate"].release(X, y, lam=lam).weights
    excess = regularised_risk(release.weights, X, y, lam) - regularised_risk(best, X, y, lam)
    limit = bound(400, 3, lam=lam, epsilon=epsilon, delta=delta)
    assert (excess <= limit).mean() >= 1 - delta
    # The lemmas are loose: 1 + lam in place of 1/4 + lam, 8 in place of 4, and a union bound on the
    # norm's tail. So the bounds may be up to 200 times the quantile.
    assert 1 < limit / np.quantile(excess, 1 - delta) < 200
