"""Under add-remove, n is either the number of records, taken as public, or stated."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp_audit import audit
from dp_audit.pairs import Pair
from dp_privacy.accounting import ADD_REMOVE
from dp_privacy.errors import Refused

# Options with which n matters, by mechanism.
TAKERS = {
    "dp_sgd_poisson": {"sampling": 0.5, "iterations": 2},
    "dp_gd": {"iterations": 3},
    "preconditioned_gd": {"lam": 0.1},
    "dp_newton": {"iterations": 2, "lam": 0.1},
    "adassp": {"lam": 0.1},
    "boosted_adassp": {"iterations": 2, "lam": 0.1},
    "iterative_hessian_mixing": {"iterations": 2, "lam": 0.1},
    "gaussian_objective_perturbation": {"lam": 0.1},
    "knorm_objective_perturbation": {"lam": 0.1},
    "mean_direction": {"rate": 0.5},
    "guarded_objective_perturbation": {"lam": 0.1, "guard": 0.001},
    "softmax_objective_perturbation": {"lam": 0.1, "classes": 2},
}
ASKED = {"epsilon": 1.0, "delta": 1e-6, "adjacency": ADD_REMOVE}


def rows(n=40, d=3):
    rng = generator(1, "public n")
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] > 0, 1, -1)


# With these options, mechanisms that refuse more than `public_n` records, which no solver is certified for.
REFUSE_MORE = {
    *("gaussian_objective_perturbation", "guarded_objective_perturbation"),
    *("knorm_objective_perturbation", "softmax_objective_perturbation"),
}


def release(name, X, y, **options):
    arguments = ASKED | TAKERS[name] | options
    y = np.where(y > 0, 1, 0) if "classes" in arguments else y
    return MECHANISMS[name].release(X, y, restarts=4, rng=generator(2), **arguments).weights


def test_every_mechanism_with_an_adjacency_takes_it_or_says_why_not():
    without = {"output_perturbation_gaussian", "noise_aware_logistic", "noise_aware_log_cosh"}
    without |= {"noise_aware_boosted"}
    both = {name for name in MECHANISMS if "adjacency" in MECHANISMS[name].options}
    assert both - without == set(TAKERS)
    assert {name for name in MECHANISMS if "public_n" in MECHANISMS[name].options} == set(TAKERS)


@pytest.mark.parametrize("name", TAKERS)
def test_reasons_say_what_n_is_taken_for(name):
    mechanism, settings = MECHANISMS[name], ASKED | TAKERS[name]
    premise = mechanism.guarantee(40, 3, **settings).reason
    assert "n is the number of records, taken as public" in premise
    stated = mechanism.guarantee(40, 3, **settings, public_n=50)
    assert "n is 50, a number that was stated" in stated.reason
    other = mechanism.guarantee(49, 3, **settings, public_n=50)
    assert other.reason == stated.reason, "the number of records decides nothing"
    replaced = settings | {"adjacency": "replace-one"}
    assert "; n is" not in mechanism.guarantee(40, 3, **replaced).reason
    with pytest.raises(Refused, match="leave it out"):
        mechanism.guarantee(40, 3, **replaced, public_n=50)


@pytest.mark.parametrize("name", TAKERS)
def test_the_reason_promises_no_number_of_records_that_a_release_refuses(name):
    """A neighbour of 40 records has 41: where `public_n` = 40 refuses it, that is a premise."""
    X, y = rows(41)
    reason = MECHANISMS[name].guarantee(40, 3, **ASKED, **TAKERS[name], public_n=40).reason
    any_number = "whatever the number of records is" in reason
    assert any_number != ("neighbours have at most 40 records" in reason)
    assert release(name, X[:40], y[:40], public_n=40).shape
    if any_number:
        assert release(name, X, y, public_n=40).shape
    else:
        with pytest.raises(Refused, match="at least their number"):
            release(name, X, y, public_n=40)
    assert any_number == (name not in REFUSE_MORE)


def test_a_guarded_mechanism_promises_what_its_chosen_model_does():
    name, options = "guarded_objective_perturbation", {"lam": 0.1, "guard": 1e6, "public_n": 40}
    X, y = rows(41)
    reason = MECHANISMS[name].guarantee(40, 3, **ASKED, **options).reason
    assert "whatever the number of records is" in reason and "at most 40" not in reason
    assert release(name, X, y, **options).shape


@pytest.mark.parametrize("name", TAKERS)
def test_n_is_what_is_stated_in_all_that_is_released(name):
    """40 records with n stated as 50 give the same release as these records and 10 rows of zeros.

    The zeros' label is -1, since `mean_direction` counts the label 1. Sampled batches depend on the
    rows, so `dp_sgd_poisson` needs sampling probability 1.
    """
    X, y = rows()
    options = {"sampling": 1.0} if name == "dp_sgd_poisson" else {}
    padded = np.vstack([X, np.zeros((10, 3))]), np.append(y, -np.ones(10))
    expected = release(name, *padded, **options)
    actual = release(name, X, y, public_n=50, **options)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-9)
    assert not np.allclose(release(name, X, y, **options), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["boosted_adassp", "iterative_hessian_mixing"])
def test_where_n_is_not_used_the_reason_says_so(name):
    X, y = rows()
    reason = MECHANISMS[name].guarantee(40, 3, **ASKED, lam=0.0).reason
    assert reason.endswith("; n is not used")
    options = TAKERS[name] | {"lam": 0.0}
    np.testing.assert_allclose(
        release(name, X, y, **options), release(name, X, y, **options, public_n=90)
    )


def spread_epsilon(d, ratio, delta):
    """Exact epsilon at delta between N(0, I) and N(0, ratio^2 I) in d dimensions, by the squared norm."""
    log, slope = d * math.log(ratio), 0.5 * (1 - ratio**-2)

    def over(epsilon):
        t = (epsilon + log) / slope  # where the density ratio wide/narrow is e^epsilon
        wide = chi2.sf(t / ratio**2, d) - math.exp(min(0, epsilon + chi2.logsf(t, d)))
        s = (log - epsilon) / slope
        narrow = chi2.cdf(s, d) - math.exp(min(0, epsilon + chi2.logcdf(s / ratio**2, d)))
        return max(wide, narrow)

    low, high = 0.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) > delta else (low, middle)
    return high


def test_poisson_batches_reveal_the_number_of_records_unless_n_is_stated():
    """All gradients are nearly 0, so releases are noise divided by n/2.

    With many columns, its spread by itself costs far more than the claimed epsilon of 1.
    """
    assert spread_epsilon(10_000, 129 / 128, 1e-6) == pytest.approx(5.599, abs=1e-3)
    assert spread_epsilon(625, 33 / 32, 1e-6) > 5.5
    assert spread_epsilon(8, 129 / 128, 1e-6) < 0.2
    X, y = np.full((33, 625), 1e-9), np.ones(33, dtype=np.int8)

    def statistic(*_, **__):
        return lambda weights: {"size": np.linalg.norm(weights, axis=1)}

    pair = Pair(((X, y), (X[1:], y[1:])), {"lam": 0.0, "bound": 1.0}, "n", statistic)
    settings = {"delta": 1e-6, "trials": 800, "sampling": 0.5, "iterations": 2}
    settings |= {"adjacency": ADD_REMOVE}

    def revealed(**options):
        arguments = settings | options
        return audit.attack("dp_sgd_poisson", pair, 1.0, rng=generator(3), **arguments)["epsilon"]

    assert revealed() > 1.0
    assert revealed(public_n=33) < 0.6


def test_a_guarantee_that_takes_n_as_public_is_not_for_pairs_of_two_sizes():
    options = {"adjacency": ADD_REMOVE, "sampling": 0.5, "iterations": 2}
    for check in (audit.guarantee, audit.check):
        with pytest.raises(Refused, match="takes n as public"):
            check("dp_sgd_poisson", "one_batch_more", 1.0, 1e-6, **options)
        check("dp_sgd_poisson", "one_batch_more", 1.0, 1e-6, **options, public_n=129)


def test_the_last_iterate_and_more_records_than_are_certified_are_refused():
    X, y = rows()
    with pytest.raises(Refused, match="composition"):
        release("dp_gd", X, y, public_n=40, accounting="last_iterate", lam=0.1)
    with pytest.raises(Refused, match="at least their number"):
        release("gaussian_objective_perturbation", X, y, public_n=39)
