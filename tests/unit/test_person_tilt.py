"""Exact densities of minimisers whose data sets differ in several rows do not exceed the bounds."""

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dp.mechanisms import MECHANISMS
from dp.proofs import gaussian_tilt, person_tilt
from dp.seeds import generator
from dp_privacy.errors import Refused
from dp_privacy.profiles import gaussian_profile

DELTA = 1e-3
TAU = 0.5


def slopes(loss, x, y, w):
    """Slope times direction, and curvature, of a row at points w (.., 2): written down again."""
    x = np.asarray(x, dtype=float)
    z = w @ x
    if loss == "logistic":
        s = 1 / (1 + np.exp(np.clip(y * z, -700, 700)))
        return -(s * y)[..., None] * x, s * (1 - s)
    u = np.tanh((y - z) / TAU)
    return -(TAU * u)[..., None] * x, 1 - u * u


def log_density(loss, rows, w, sigma, Lambda, pull):
    """Up to a constant. rows: (x, y, weight). pull: the gradient of other rows, which have no curvature."""
    b = -Lambda * w - pull
    H = np.broadcast_to(Lambda * np.eye(2), (*w.shape, 2)).copy()
    for x, y, weight in rows:
        gradient, curvature = slopes(loss, x, y, w)
        b = b - weight * gradient
        H = H + (weight * curvature)[..., None, None] * np.outer(x, x)
    det = H[..., 0, 0] * H[..., 1, 1] - H[..., 0, 1] ** 2
    return -(b**2).sum(-1) / (2 * sigma**2) + np.log(det)


def masses(loss, first, second, sigma, Lambda, pull, points=(401, 201)):
    """The probabilities of a grid's cells for the two data sets."""
    total = sum(weight for *_, weight in first) + sum(weight for *_, weight in second)
    k = 1.0 if loss == "logistic" else TAU
    reach = (9 * sigma + k * total + 1) / Lambda
    across = np.linspace(-reach, reach, points[0])
    along = np.linspace(-reach, reach, points[1])
    w = np.stack(np.meshgrid(across, along, indexing="ij"), axis=-1) - np.asarray(pull) / Lambda
    cell = (across[1] - across[0]) * (along[1] - along[0]) / (2 * math.pi * sigma**2)
    p, q = (log_density(loss, rows, w, sigma, Lambda, pull) for rows in (first, second))
    return cell * np.exp(p), cell * np.exp(q)


def excess(p, q, e):
    return float(np.maximum(p - math.exp(e) * q, 0).sum())


def exact(loss, first, second, e, sigma, Lambda, pull):
    """delta(e) of the two data sets, and the mass of the first on the grid."""
    p, q = masses(loss, first, second, sigma, Lambda, pull)
    return excess(p, q, e), float(p.sum())


def at(degrees, y=1.0):
    angle = math.radians(degrees)
    return (math.sin(angle), math.cos(angle)), y


@cache
def sigma_of(loss, epsilon, most):
    k = 1.0 if loss == "logistic" else TAU
    return most * gaussian_tilt.sigma_where_free(epsilon, DELTA, 1.0, k, loss=loss)


@pytest.mark.parametrize("most", [2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bound_is_nearly_reached_and_too_small_without_the_factor(most, epsilon):
    """All slopes are near 1, and both persons' rows nearly opposite."""
    sigma = sigma_of("logistic", epsilon, most)
    least = person_tilt.least_regularisation(epsilon, most)
    old, new = ([(*at(sign * 85), 1.0)] * most for sign in (1, -1))
    # far along the bisector, where slopes are 1 up to e^-20
    pull = (0.0, 250 * least)
    delta, mass = exact("logistic", old, new, epsilon, sigma, least, pull)
    assert mass == pytest.approx(1, abs=1e-3)
    assert 0.9 * DELTA < delta <= DELTA * (1 + 1e-3)
    one = sigma_of("logistic", epsilon, 1)
    delta, _ = exact("logistic", old, new, epsilon, one, least, pull)
    assert delta > 5 * DELTA, "with the noise of one row, the person is not protected"


@pytest.mark.parametrize("loss", ["logistic", "log_cosh"])
@pytest.mark.parametrize("share", [1.0, 0.2])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.5, 0.3, 0.2)])
def test_no_pair_exceeds_the_bound(loss, share, weights):
    """share: of the threshold of Lambda. Below it, bound (b) holds where (a) need not."""
    rng = generator(301, loss, str(share), str(weights))
    most, epsilon = max(sum(weights), 1.0), 1.0
    sigma = sigma_of(loss, epsilon, most)
    Lambda = share * person_tilt.least_regularisation(epsilon, most, loss)
    k = 1.0 if loss == "logistic" else TAU
    m, r = k / sigma, 1 / Lambda
    for trial in range(6):
        spread = (0.0, 3.0, 30.0, 180.0)[trial % 4]
        old = [(*at(85 + spread * rng.uniform(-1, 1)), w) for w in weights]
        mirror = [(*at(-85 + spread * rng.uniform(-1, 1)), w) for w in weights]
        others = ([(*at(-85), most)] if most == 1 else mirror, mirror, [])
        new = others[trial % 3]
        if loss == "log_cosh":
            old, new = (
                [(x, 30.0 * rng.choice([-1, 1]), w) for x, _, w in each] for each in (old, new)
            )
        pull = (0.0, rng.choice([0.0, 3.0, 30.0, 200.0]) * Lambda)
        p, q = masses(loss, old, new, sigma, Lambda, pull)
        assert [p.sum(), q.sum()] == pytest.approx([1, 1], abs=2e-3)
        for e in (0.2 * epsilon, epsilon, 2 * epsilon):
            bound = float(person_tilt.replacement(e, m, r, most, loss))
            delta = max(excess(p, q, e), excess(q, p, e))
            assert delta <= bound * (1 + 2e-3) + 1e-6, (trial, e)


def test_far_below_the_threshold_the_jacobian_must_be_paid_for():
    """The rows are curved where they are: more than the Gaussian bound, less than bound (b)."""
    most, epsilon = 2, 1.0
    sigma = sigma_of("logistic", epsilon, most)
    Lambda = 0.15 * person_tilt.least_regularisation(epsilon, most)
    old, new = ([(*at(sign * 80), 1.0)] * most for sign in (1, -1))
    delta, mass = exact("logistic", old, new, epsilon, sigma, Lambda, (0.0, 200 * Lambda))
    assert mass == pytest.approx(1, abs=1e-3)
    assert delta > 2 * float(gaussian_profile(2 * most / sigma, epsilon))
    assert delta <= float(person_tilt.replacement(epsilon, 1 / sigma, 1 / Lambda, most))


def test_the_chain_of_unequal_steps_is_exact_for_normals():
    rng = generator(302)
    for _ in range(20):
        steps = rng.uniform(0.01, 0.5, rng.integers(2, 9))
        t = np.append(0.0, np.cumsum(steps))
        M, e = t[-1], rng.uniform(0, 3)
        parts = steps * ((t[1:] + t[:-1]) / 2 - (M / 2 - e / M))
        before = np.append(0.0, np.cumsum(parts)[:-1])
        assert parts.sum() == pytest.approx(e)
        costs = [float(gaussian_profile(m, x)) for m, x in zip(steps, parts, strict=True)]
        assert np.exp(before) @ costs == pytest.approx(float(gaussian_profile(M, e)), rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "log_cosh"])
@pytest.mark.parametrize("mu", [0.09, 0.13, 0.6])
def test_the_composition_against_quadrature(loss, mu):
    """E delta(epsilon - L), piece by piece."""
    most, epsilon = 3, 1.0
    for share in (0.3, 1.0, 2.0):
        Lambda = share * person_tilt.least_regularisation(epsilon, most, loss)
        m, r = 0.22 / (2 * most), 1 / Lambda
        one = person_tilt.profile(m, r, most, loss)
        paid, free = person_tilt.kinks(m, r, most, loss)

        def integrand(z, one=one):
            return float(one.delta(epsilon - mu**2 / 2 - mu * z)) * norm.pdf(z)

        at = sorted((epsilon - mu**2 / 2 - x) / mu for x in (-free, -paid, 0, paid, free))
        ends = [-12.0, *[min(max(x, -12.0), 12.0) for x in at], 12.0]
        pieces = [
            quad(integrand, a, b, epsabs=1e-15, epsrel=1e-9, limit=200)[0]
            for a, b in pairwise(ends)
            if b > a
        ]
        actual = person_tilt.composed_delta(epsilon, m, mu, r, most, loss)
        # the Gaussian bound outside [-e0, e0] is counted in full, so the result may be slightly larger
        assert sum(pieces) * (1 - 1e-7) <= actual <= sum(pieces) * 1.1 + 1e-12


@pytest.mark.parametrize("most", [1, 2, 3, 10])
def test_noise_is_that_of_one_row_times_the_rows(most):
    """The Gaussian tilt's numbers at epsilon 1, delta 1e-6: 8.44936 a row."""
    sigma, _ = person_tilt.with_output_noise(1.0, 1e-6, 10 * most, most, output=1e-4)
    assert sigma == pytest.approx(8.44936 * most, rel=1e-5)
    assert person_tilt.least_regularisation(1.0, most) == 2 * most
    assert person_tilt.least_regularisation(1.0, most, "log_cosh") == 4 * most


@pytest.mark.parametrize("loss", ["logistic", "log_cosh"])
def test_calibration_is_private_and_not_larger_than_needed(loss):
    for most in (1, 3):
        for epsilon in (0.1, 1.0, 8.0):
            lam = person_tilt.rule_lambda(1, 4, epsilon, 1e-6, most, TAU, loss, 20.0, 0.55)
            s, mu = person_tilt.with_output_noise(epsilon, 1e-6, lam, most, TAU, loss, 0.55)
            delta = person_tilt.composed_delta(epsilon, TAU / s, mu, 1 / lam, most, loss)
            assert 0.999e-6 < delta <= 1e-6
            alone = gaussian_tilt.sigma_where_free(epsilon, 1e-6, 1.0, TAU, loss=loss) * most
            assert 1 <= s * math.sqrt(1 - 0.55**2) / alone < 1.02


def test_other_losses_are_refused():
    for loss in ("huber", "clipped_logistic"):
        with pytest.raises(ValueError, match="several rows per person"):
            person_tilt.profile(0.1, 0.1, 2, loss)


@pytest.mark.parametrize("bound", [1.0, 3.0])
@pytest.mark.parametrize("loss", ["logistic", {"log_cosh": {"tau": 0.25}}])
def test_the_mechanism_protects_people(loss, bound):
    mechanism = MECHANISMS["gaussian_objective_perturbation"]
    settings = {"epsilon": 1.0, "delta": 1e-6, "bound": bound, "loss": loss}
    plans = {}
    for most in (1, 4):
        lam = mechanism.rule_lambda(5000, 6, most=most, **settings)
        plans[most] = mechanism.plan(5000, 6, lam=lam, most=most, **settings)
        stated = mechanism.guarantee(5000, 6, lam=lam, most=most, **settings)
        assert stated.profile.delta(1.0) <= 1e-6 * (1 + 1e-9)
    assert plans[4].scale / plans[1].scale == pytest.approx(4, rel=1e-4)
    assert "all records of a person, of which there are 4" in stated.reason
    times = 1 if loss == "logistic" else 2
    assert lam * 5000 == pytest.approx(bound**2 * 16 * times)


def test_what_is_not_proven_for_people_is_refused():
    mechanism = MECHANISMS["gaussian_objective_perturbation"]
    settings = {"epsilon": 1.0, "delta": 1e-6, "lam": 0.01, "most": 2}
    for more in ({"adjacency": "add-remove"}, {"clip": 0.75}):
        with pytest.raises(Refused, match="several records per person"):
            mechanism.guarantee(5000, 6, **settings, **more)
    for name in (
        "noise_aware_logistic",
        "guarded_objective_perturbation",
        "dp_gd",
        "output_perturbation",
    ):
        assert "most" not in MECHANISMS[name].options
