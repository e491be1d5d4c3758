import math

import numpy as np
import pytest

from dp.proofs import selection
from dp_privacy.profiles import Curve, Gaussian, approximate, gaussian_profile, symmetric

MEANS = {
    "logarithmic": (1.5, 3.0, 20.0),
    "geometric": (1.5, 3.0, 20.0),
    "poisson": (0.5, 3.0, 20.0),
}
CASES = [(law, mean) for law in selection.LAWS for mean in MEANS[law]]


def hockey_stick(p, q, epsilon):
    return np.maximum(p - np.exp(np.asarray(epsilon)[..., None]) * q, 0).sum(-1)


def profile_of(p, q):
    return Curve(
        symmetric(lambda e: np.maximum(hockey_stick(p, q, e), hockey_stick(q, p, e))),
    )


def generating(law, mean, z):
    p, z = selection.parameter(law, mean), np.asarray(z, dtype=float)
    if law == "poisson":
        return np.exp(p * (z - 1))
    if law == "geometric":
        return p * z / (1 - (1 - p) * z)
    return np.log1p(-(1 - p) * z) / math.log(p)


def best_of(p, law, mean):
    """Each point's probability of being the best of K draws, worst point first; then P(K = 0)."""
    F = generating(law, mean, np.concatenate([[0.0], np.minimum(np.cumsum(p), 1.0)]))
    return np.append(np.diff(F), F[0])


def pairs(points=7, count=9):
    rng = np.random.default_rng(3)
    for k in range(count):
        p = rng.dirichlet(np.ones(points))
        tilt = np.exp(rng.uniform(-0.6, 0.6, points) if k % 2 else np.linspace(-0.5, 0.5, points))
        if k % 3 == 2:
            tilt[-1] *= 6  # a rare, better point with a large loss
            p[-1] *= 0.01
            p /= p.sum()
        q = p * tilt
        yield p, q / q.sum()


def selection_delta(profile, law, mean, epsilon):
    """delta by the profile bound: `mean` times the profile's delta at epsilon - cost, at most 1."""
    delta = profile.delta(np.asarray(epsilon - selection.cost(profile, law, mean)))
    return np.minimum(1.0, mean * np.asarray(delta))[()]


@pytest.mark.parametrize(("law", "mean"), CASES)
def test_brute_force(law, mean):
    closest = 0.0
    for p, q in pairs():
        profile = profile_of(p, q)
        selected = best_of(p, law, mean), best_of(q, law, mean)
        for epsilon in (0.0, 0.5, 1.5):
            exact = max(
                hockey_stick(selected[0], selected[1], epsilon),
                hockey_stick(selected[1], selected[0], epsilon),
            )
            bound = selection_delta(profile, law, mean, epsilon)
            assert exact <= bound + 1e-12
            closest = max(closest, exact / max(bound, 1e-12))
    assert closest > 0.15, "the bound is not far from what happens"


@pytest.mark.parametrize(("law", "mean"), CASES)
def test_the_laws_are_those_drawn(law, mean):
    rng = np.random.default_rng(11)
    runs = np.array([selection.draw(law, mean, rng) for _ in range(10_000)])
    assert runs.mean() == pytest.approx(mean, abs=5 * runs.std() / 100)
    for z in (0.7, 0.9):
        values = z**runs
        actual = generating(law, mean, z)
        assert actual == pytest.approx(values.mean(), abs=5 * values.std() / 100 + 1e-12)
    step = 1e-6
    slope = (1 - generating(law, mean, 1 - step)) / step
    assert slope == pytest.approx(mean, rel=1e-3)
    assert generating(law, mean, 1.0) == pytest.approx(1)
    if law != "poisson":
        assert runs.min() >= 1


def test_best_of_k_by_simulation():
    rng = np.random.default_rng(2)
    p = np.array([0.5, 0.3, 0.2])
    law, mean = "geometric", 3.0
    exact = best_of(p, law, mean)
    counts = np.zeros(3)
    for _ in range(20_000):
        counts[rng.choice(3, size=selection.draw(law, mean, rng), p=p).max()] += 1
    assert counts / 20_000 == pytest.approx(exact[:3], abs=0.015)


def test_an_exact_score_on_private_rows_is_not_covered():
    """If the base ignores the data (0-DP), selection by an exact private score is not even (1, 0.2)-DP."""
    points, law, mean = 50, "logarithmic", 500.0
    p = np.full(points, 1 / points)
    base = profile_of(p, p)
    assert selection_delta(base, law, mean, 0.01) == 0
    last_best = best_of(p, law, mean)
    first_best = np.append(last_best[:points][::-1], last_best[-1])  # data in reverse order
    assert hockey_stick(last_best, first_best, 1.0) > 0.2


def test_event_bounds_agree_between_forms():
    z = np.geomspace(1e-9, 1, 40)
    curve = Curve(lambda e: gaussian_profile(0.4, e))
    exact = selection.event_bounds(Gaussian(0.4))(z)
    actual = selection.event_bounds(curve)(z)
    assert (actual >= exact * (1 - 1e-9)).all()
    assert actual == pytest.approx(exact, rel=1e-3)
    for g in (0.3, 0.02):
        assert selection.largest_ratio(curve, g) == pytest.approx(
            selection.largest_ratio(Gaussian(0.4), g), rel=1e-3
        )
        dense = np.geomspace(1e-9, 1, 200_001)
        ratio = (g + (1 - g) * selection.event_bounds(Gaussian(0.4))(dense)) / (g + (1 - g) * dense)
        assert selection.largest_ratio(Gaussian(0.4), g) == pytest.approx(ratio.max(), rel=1e-9)


def test_pure_bases_cost_at_most_two_or_three_times():
    """With many runs, costs approach 2 or 3 times epsilon (Papernot, Steinke, corollary 3)."""
    for law, times in (("logarithmic", 2), ("geometric", 3)):
        few, many = (
            selection.profile_epsilon(approximate(0.5), law, mean, 1e-9) for mean in (2.0, 1e4)
        )
        assert few < many <= times * 0.5 * 1.01
        assert many > 0.9 * times * 0.5


@pytest.mark.parametrize("law", selection.LAWS)
def test_the_better_of_both_bounds_and_its_inverse(law):
    profile = Gaussian(0.2)
    ways = [
        way(profile, law, 5.0, 1e-6)
        for way in (selection.profile_epsilon, selection.renyi_bound_epsilon)
    ]
    assert selection.selection_epsilon(profile, law, 5.0, 1e-6) == min(ways)
    assert selection.renyi_bound_epsilon(approximate(0.5), law, 5.0, 1e-6) == math.inf
    mu = selection.base_mu(law, 5.0, 1.0, 1e-6)
    total = selection.selection_epsilon(Gaussian(mu), law, 5.0, 1e-6)
    assert total <= 1 and total == pytest.approx(1, rel=1e-6)
    actual = selection.profile_epsilon(profile, law, 5.0, 1e-6)
    assert selection_delta(profile, law, 5.0, actual) == pytest.approx(1e-6, rel=1e-6)


def test_refusals():
    with pytest.raises(ValueError, match="law"):
        selection.parameter("fixed", 3.0)
    with pytest.raises(ValueError, match="mean above 1"):
        selection.parameter("geometric", 1.0)


@pytest.mark.parametrize(("law", "mean"), CASES)
def test_what_an_exact_score_costs(law, mean):
    """The bound holds even if the other data set ranks the points at random or in reverse."""
    rng = np.random.default_rng(4)
    cost, closest = selection.cost_of_exact_score(law, mean), 0.0
    for p, q in pairs():
        profile = profile_of(p, q)
        for order in (np.arange(len(p))[::-1], rng.permutation(len(p))):
            mine, other = best_of(p, law, mean), np.empty(len(p) + 1)
            other[[*order, -1]] = best_of(q[order], law, mean)
            for epsilon in (0.0, 0.5, cost):
                exact = hockey_stick(mine, other, epsilon)
                assert exact <= mean * profile.delta(epsilon - cost) + 1e-12
            closest = max(closest, np.log(mine[:-1] / other[:-1]).max() / cost)
    assert closest > 0.3, "the bound is not far from what happens"
    assert cost > selection.cost(Gaussian(0.1), law, mean)


@pytest.mark.parametrize(("mu", "mean"), [(0.3, 3), (5, 1e6), (14, 1e9), (8, 1e18), (0.5, 1e20)])
def test_the_largest_ratio_is_found_at_any_probability(mu, mean):
    from scipy.special import ndtr, ndtri

    g = selection.parameter("logarithmic", mean)
    z = np.exp(-np.geomspace(1e-6, 688, 400_001))
    expected = ((g + (1 - g) * ndtr(ndtri(z) + mu)) / (g + (1 - g) * z)).max()
    actual = selection.largest_ratio(Gaussian(mu), g)
    assert actual >= expected * (1 - 1e-12)
    assert actual == pytest.approx(expected, rel=1e-6)
