"""The l2 mechanism's divergence against known values, spherical caps and quadrature with many digits."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import gamma

from dp_privacy import l2
from dp_privacy.l2 import L2
from dp_privacy.profiles import (
    Curve,
    Gaussian,
    approximate,
    compose,
    gaussian_profile,
    losses,
)
from reference import VECTORS


def of_caps(e, m, d):
    """P(L > e) - e^e Q(L > e), with a Gamma radius and the share of directions in a spherical cap.

    L > e means ||b + v|| > ||b|| + e (s = 1). Under Q, b + v has the law of b under P.
    """

    def cap(t):  # the share of directions whose cosine exceeds t
        t = np.clip(t, -1, 1)
        half = betainc((d - 1) / 2, 0.5, 1 - t * t) / 2
        return np.where(t > 0, half, 1 - half)

    def integral(share, start, bend):
        """Of share(r) times the density of the radius r. At `bend`, the share is not smooth."""
        far = max(gamma.isf(1e-20, d), 2 * bend)
        ends = np.unique([start, bend, *(bend + (far - bend) * np.geomspace(1e-9, 1, 40))])
        x, w = np.polynomial.legendre.leggauss(40)
        width = np.diff(ends)[:, None] / 2
        r = ends[:-1, None] + width * (x + 1)
        return (width * w * gamma.pdf(r, d) * share(r)).sum()

    p = integral(lambda r: cap((e * e + 2 * r * e - m * m) / (2 * r * m)), 0.0, (m - e) / 2)
    middle = (m + e) / 2  # no smaller radius has such a loss under Q
    q = integral(lambda r: cap((m * m + 2 * r * e - e * e) / (2 * r * m)), middle, middle)
    return p - math.exp(e) * q


@pytest.mark.parametrize(
    ("d", "m", "e"),
    [
        *(
            (2, 0.7, 0.5),
            (3, 1.6, 1.0),
            (3, 2.0, 0.0),
            (5, 4.0, 0.5),
            (10, 1.2, 1.0),
            (20, 6.0, 4.0),
        ),
        *((50, 2.0, 1.0), (50, 5.0, 0.0), (200, 3.0, 1.0), (1000, 30.0, 4.0)),
    ],
)
def test_spherical_caps_give_the_same(d, m, e):
    assert l2.delta(e, m, d) == pytest.approx(of_caps(e, m, d), rel=1e-6, abs=1e-13)


@pytest.mark.parametrize(
    ("d", "m", "gap"),
    [
        *((3, 90.0, 40.0), (4, 1e-3, 1e-3), (17, 0.01, 1e-3), (41, 100.0, 100.0), (120, 0.1, 0.02)),
        pytest.param(2, 1e-3, 1e-11, marks=pytest.mark.slow),
    ],
)
def test_quadrature_with_many_digits_gives_the_same(d, m, gap):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(25):
        m, nu = mp.mpf(m), mp.mpf(d) / 2 - 1
        e, z = m - mp.mpf(gap), m / 2
        last = mp.acos(e / m)

        def moment(k):  # the integral over xi of (xi^2 - 1)^(k - 1/2) e^(-z xi)
            return mp.gamma(k + 0.5) / mp.sqrt(mp.pi) * (2 / z) ** k * mp.besselk(k, z)

        def density(t):
            powers = mp.sin(t) ** (d - 2) * mp.exp(z * mp.cos(t))
            return powers * (moment(nu + 1) + moment(nu) * mp.sin(t) ** 2)

        def integrand(t):
            return density(t) * (1 - mp.exp(e - m * mp.cos(t)))

        def bessel(k):  # the integral over all t of sin^(2k) t e^(z cos t)
            return mp.gamma(k + 0.5) * mp.sqrt(mp.pi) * (2 / z) ** k * mp.besseli(k, z)

        total = moment(nu + 1) * bessel(nu) + moment(nu) * bessel(nu + 1)
        first = mp.asin(mp.sin(last) * mp.exp(-(100 + m) / max(d - 2, 1))) if d > 12 else mp.mpf(0)
        points = [first + (last - first) * k / 12 for k in range(13)]
        size = integrand(first + (last - first) * 11 / 12)  # mpmath's tolerance is absolute
        integral = mp.quad(lambda t: integrand(t) / size, points, method="gauss-legendre")
        expected = float(size / total * integral)
        m, e = float(m), float(e)
    # e and m are rounded to floats, which matters where their difference is tiny.
    rounding = d * 2.0**-52 * m / gap
    exact = min(1.0, expected * (1 + l2.MARGIN))
    assert l2.delta(e, m, d) == pytest.approx(exact, rel=2e-12 + rounding)


@pytest.mark.parametrize("case", VECTORS["l2"]["cases"], ids=lambda case: case["function"])
def test_reference_values_by_spherical_caps(case):
    """The vectors' own source had 40 digits. Here, `of_caps` has those of floats."""
    at = case["inputs"]
    d, expected = at["d"], case["expected"]
    if case["function"] == "composed_delta" or d == 1:
        return  # other tests have a second method for these
    if case["function"] == "delta":
        assert of_caps(at["e"], at["m"], d) == pytest.approx(expected, rel=1e-6, abs=1e-13)
        return
    assert of_caps(at["epsilon"], 1 / expected, d) == pytest.approx(at["delta"], rel=1e-4)


def drawn_losses(m, d, draws, rng):
    b = rng.standard_normal((draws, d))
    b *= (rng.gamma(d, size=draws) / np.linalg.norm(b, axis=1))[:, None]
    moved = np.linalg.norm(b + m * np.eye(d)[0], axis=1)
    return moved - np.linalg.norm(b, axis=1)


@pytest.mark.parametrize(("d", "m", "mu", "e"), [(1, 0.8, 0.4, 0.9), (4, 1.5, 0.5, 1.0)])
def test_composition_with_a_gaussian_release_by_draws(d, m, mu, e):
    rng = np.random.default_rng(11)
    draws = 400_000
    loss = drawn_losses(m, d, draws, rng) + mu * mu / 2 + mu * rng.standard_normal(draws)
    gain = np.maximum(-np.expm1(e - loss), 0)
    error = gain.std() / math.sqrt(draws)
    assert l2.composed_delta(e, m, d, mu) == pytest.approx(gain.mean(), abs=4 * error)


@pytest.mark.parametrize("d", [1, 2, 60])
@pytest.mark.parametrize(("m", "mu"), [(0.05, 0.003), (0.8, 0.1), (3.0, 0.9), (0.3, 2.0)])
def test_composition_is_the_integral_of_the_profile(d, m, mu):
    """E delta(e - L) over the Gaussian loss L, where the other order is E G(e - L) over the l2 loss."""
    curve = Curve(L2(m, d).delta, kinks=(-m, m))
    both, integrated = compose(L2(m, d), Gaussian(mu)), compose(curve, Gaussian(mu))
    for e in (-0.4, 0.0, 0.4 * m, m, m + mu, m + 4 * mu):
        expected = float(integrated.delta(e))
        assert float(both.delta(e)) == pytest.approx(expected, rel=1e-5, abs=1e-25)
        assert l2.composed_delta(e, m, d, mu) == float(both.delta(e))
        assert l2.delta(e, m, d) <= l2.composed_delta(e, m, d, mu) * (1 + 1e-9)
    assert float(compose(L2(m, d), Gaussian(1e-6)).delta(0.5 * m)) == pytest.approx(
        l2.delta(0.5 * m, m, d), rel=1e-4
    )


def test_composition_by_convolution():
    """Against losses on a grid: those of the l2 mechanism, of a Gaussian, and their sums."""
    pytest.importorskip("dp_accounting")
    both = losses(L2(0.6, 4), 1e-3).compose(losses(Gaussian(0.2), 1e-3))
    for e in (0.1, 0.7, 1.1):
        on_grid = both.get_delta_for_epsilon(e)  # rounded up
        assert l2.composed_delta(e, 0.6, 4, 0.2) <= on_grid * (1 + 1e-9)
        assert l2.composed_delta(e, 0.6, 4, 0.2) == pytest.approx(on_grid, rel=1e-3)


def test_a_kink_is_integrated_around():
    """A pure release and a narrow Gaussian one: the mean over both losses in closed form."""
    for pure, mu in itertools.product((0.1, 1.0, 3.0), (0.003, 0.05, 0.3)):
        both = compose(approximate(pure), Gaussian(mu))
        for e in (pure / 2, pure, pure + 3 * mu, pure + 5 * mu):
            g = [gaussian_profile(mu, e + sign * pure) for sign in (-1, 1)]
            expected = (math.exp(pure) * g[0] + g[1]) / (1 + math.exp(pure))
            assert expected * (1 - 1e-9) <= both.delta(e) <= expected * (1 + 1e-5) + 1e-30


def test_one_coordinate_is_the_laplace_mechanism():
    for m in (0.01, 1.0, 30.0):
        for e in np.linspace(0, m, 7):
            # P(b < x) - e^e Q(b < x) at the point where the loss falls to e
            expected = 1 - math.exp((e - m) / 2)
            assert expected <= l2.delta(e, m, 1) + 1e-16
            assert l2.delta(e, m, 1) == pytest.approx(expected, abs=1e-15, rel=2 * l2.MARGIN)
    x = np.linspace(-60, 60, 2_400_001)
    p, q = np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x + 1.3)) / 2
    for e in (-0.7, 0.0, 0.4):
        expected = np.maximum(p - math.exp(e) * q, 0).sum() * (x[1] - x[0])
        assert l2.delta(e, 1.3, 1) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 60, 1000])
def test_shape(d):
    """D falls from 1 to 0, is convex in e^e, grows with m, and reflects."""
    m = 2.0
    e = np.linspace(-2.5, 2.5, 101)
    values = np.array([l2.delta(x, m, d) for x in e])
    assert (np.diff(values) <= 0).all() and values[-1] == 0
    for x in (0.3, 1.1):
        reflected = 1 - math.exp(-x) + math.exp(-x) * l2.delta(x, m, d)
        assert l2.delta(-x, m, d) == pytest.approx(reflected, rel=1e-14)
    slopes = np.diff(values) / np.diff(np.exp(e))
    assert (np.diff(slopes) >= -1e-9).all()
    assert l2.delta(0.5, 1.9, d) < l2.delta(0.5, 2.0, d) < l2.delta(0.5, 2.1, d)


@pytest.mark.parametrize("d", [1, 2, 3, 30, 1000])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.5, 0.999])
def test_scales_keep_their_delta_and_are_hardly_larger_than_needed(d, delta):
    for epsilon in (1e-50, 1e-9, 1e-3, 1.0, 10.0, 50.0, 51.0, 1e6):
        m = 1.0 / l2.scale(d, epsilon, delta, 1.0)
        assert epsilon * (1 - 1e-15) <= m
        if m > l2.LARGEST * (1 - 1e-9) or epsilon > 50:
            continue
        assert l2.delta(epsilon, m, d) <= delta
        larger = epsilon + (m - epsilon) * (1 + 1e-8) + 1e-15 * m  # a few roundings of m
        if larger < l2.LARGEST:
            assert l2.delta(epsilon, larger, d) > delta * (1 - 1e-6)


def test_pure_privacy():
    assert l2.scale(7, 0.5, 0.0, 3.0) == pytest.approx(6.0, rel=1e-15)
    assert l2.scale(7, 0.5, 0.0, 3.0) >= 6.0
    assert l2.delta(0.5, 0.5, 7) == 0.0
    assert l2.scale(7, 80.0, 1e-6, 3.0) == pytest.approx(3 / 80)


@pytest.mark.parametrize(
    ("function", "arguments", "match"),
    [
        (l2.delta, (1.0, 1.5, 0), "whole number"),
        (l2.delta, (1.0, 1.5, 2.5), "whole number"),
        (l2.delta, (1.0, 1.5, 1001), "whole number"),
        (l2.delta, (1.0, 101.0, 2), "m must lie"),
        (l2.delta, (1.0, math.nan, 2), "m must lie"),
        (l2.delta, (math.nan, 1.0, 2), "e must be"),
        (l2.scale, (0, 1.0, 1e-6, 1.0), "whole number"),
        (l2.scale, (3, 0.0, 1e-6, 1.0), "epsilon must be"),
        (l2.scale, (3, math.nan, 1e-6, 1.0), "epsilon must be"),
        (l2.scale, (3, 1.0, 1.0, 1.0), "delta one in"),
        (l2.scale, (3, 1.0, -0.1, 1.0), "delta one in"),
        (l2.scale, (3, 1.0, 1e-6, 0.0), "sensitivity"),
        (l2.scale, (3, 1.0, 1e-6, math.inf), "sensitivity"),
    ],
)
def test_what_is_refused(function, arguments, match):
    with pytest.raises(ValueError, match=match):
        function(*arguments)
