import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dp_audit import exact_losses
from dp_privacy import accounting, composition
from dp_privacy.accounting import REPLACE_ONE, Guarantee, gaussian_delta


def guarantee(epsilon, delta=0.0, adjacency=REPLACE_ONE):
    return Guarantee(epsilon, epsilon, delta, adjacency, "because")


@pytest.mark.parametrize("steps", [1, 10, 400])
def test_gaussian_steps_are_one_gaussian(steps):
    """T Gaussian steps cost as much as one at sqrt(T) times the sensitivity (Dong, Roth, Su, cor. 2)."""
    epsilon = composition.gaussian_steps(5.0, steps, 1e-5)
    assert gaussian_delta(5.0, epsilon, 2 * math.sqrt(steps)) == pytest.approx(1e-5, rel=1e-6)
    half = composition.gaussian_steps(5.0, steps, 1e-5, adjacency="add-remove")
    assert gaussian_delta(5.0, half, math.sqrt(steps)) == pytest.approx(1e-5, rel=1e-6)


def test_poisson_sampling_amplifies_and_is_continuous():
    full = composition.gaussian_steps(4.0, 10, 1e-5)
    nearly = composition.gaussian_steps(4.0, 10, 1e-5, sampling=0.9999)
    assert nearly == pytest.approx(full, rel=2e-3)
    assert composition.gaussian_steps(4.0, 10, 1e-5, sampling=0.01) < full / 10
    with pytest.raises(ValueError, match="sampling"):
        composition.gaussian_steps(4.0, 10, 1e-5, sampling=0.0)
    with pytest.raises(ValueError, match="adjacency"):
        composition.gaussian_steps(4.0, 10, 1e-5, adjacency="zero-out")


def test_laplace_profile():
    """For one coordinate, delta = 1 - e^((epsilon - ratio)/2), with ratio = sensitivity/scale.

    For many coordinates, the profile is nearly that of normal noise.
    """
    actual = composition.laplace_coordinates_delta(1, 1.5, [0.5, 1.0, 1.5])
    assert actual == pytest.approx([-math.expm1(-0.5), -math.expm1(-0.25), 0.0], abs=1e-4)
    for epsilon, delta in zip(
        (0.5, 1.0, 2.0),
        composition.laplace_coordinates_delta(784, 1.0, (0.5, 1.0, 2.0)),
        strict=True,
    ):
        normal = norm.cdf(0.5 - epsilon) - math.exp(epsilon) * norm.cdf(-0.5 - epsilon)
        assert delta == pytest.approx(normal, abs=0.004)


def test_redrawing_until_bounded_costs_more_than_epsilon():
    """The reference uses a two-dimensional grid of the accepted coefficients' densities."""
    for epsilon in (0.1, 1.0, 3.0):
        s = 4 / epsilon
        actual = exact_losses.redrawn_functional_loss(epsilon)
        assert epsilon < actual <= 2 * epsilon
        quadratic, linear = np.meshgrid(np.linspace(1e-6, 3, 301), np.linspace(-4, 4, 401))

        def log_density(x, y, s=s, quadratic=quadratic, linear=linear):
            loss = -(np.abs(quadratic - x * x) + np.abs(linear + 2 * y * x)) / s
            mass = quad(
                lambda q: math.exp(-abs(q - x * x) / s) / (2 * s), 0, 60 * s, points=[x * x]
            )
            return loss - math.log(mass[0])

        other = log_density(1.0, 1)
        largest = max(np.abs(log_density(x, -1) - other).max() for x in np.linspace(0, 1, 41))
        assert largest == pytest.approx(actual, rel=1e-3)


def test_exact_rows():
    settings = {
        "delta": 1e-5,
        "objective_perturbation": [[0.1, 1], [0.1, 140]],
        "gaussian_tilt": [[0.1, 1], [1, 1], [0.1, 0.5], [1, 0.5]],
        "classical_gaussian": [1, 10],
        "redrawn_functional": [1],
        "laplace_coordinates": [1],
        "laplace_dimension": 784,
        "found_bounds": [[0.1, 1], [1, 5]],
    }
    rows = [
        dict(zip(exact_losses.COLUMNS, row, strict=True)) for row in exact_losses.rows(**settings)
    ]
    values = {
        (r["mechanism"], r["epsilon_claimed"], r["setting"][:15], r["what"][:16]): r for r in rows
    }
    assert values["objective_perturbation_cm08", 0.1, "n lambda = 1, R", "supremum over al"]
    printed = [r["epsilon"] for r in rows if r["mechanism"] == "objective_perturbation_cm08"]
    assert printed == pytest.approx([0.2495, 0.2989, 0.0526, 0.1], abs=5e-5)
    repaired = [r for r in rows if r["mechanism"] == "objective_perturbation"]
    assert all(r["epsilon"] <= r["epsilon_claimed"] for r in repaired)
    tilts = [
        r["delta"] / 1e-5 for r in rows if r["what"].startswith("delta at the claimed epsilon when")
    ]
    removed, added = tilts[::2], tilts[1::2]
    assert removed[:2] == pytest.approx([1, 1], abs=2e-4) and max(added) < 1 + 2e-4
    assert all(1.24 < share < 1.39 for share in removed[2:])
    gaussian = [r["epsilon"] for r in rows if r["what"].startswith("epsilon at this delta")]
    assert gaussian == pytest.approx([0.751, 10.394], abs=5e-4)
    assert max(r["epsilon"] for r in rows if r["mechanism"] == "laplace_coordinates") == 28
    found = [r["delta"] for r in rows if r["mechanism"] == "bounds that a release finds"]
    assert found == pytest.approx([1e-5, 1e-5], rel=1e-4)
    half = exact_losses.noisy_counts_delta(1, 5, math.sqrt(10) / accounting.gaussian_mu(1, 1e-5))
    assert half > 50 * 1e-5  # noise for the change of two counts of each column


def test_noisy_counts_are_summed_over_all_releases():
    """One column on coarse lattices: the sum over its four counts, one by one."""
    for sigma, points, epsilon in ((1.5, 1, 0.5), (0.8, 2, 1.0), (2.0, 1, 0.0)):
        s = sigma * points
        x = np.arange(-20, 21)
        p, q = (np.exp(-((x - moved) ** 2) / (2 * s * s)) for moved in (0, points))
        laws = (np.outer(a, b).ravel() / p.sum() ** 2 for a, b in ((p, q), (q, p)))
        law, other = (np.outer(each, each) for each in laws)
        expected = np.maximum(law - math.exp(epsilon) * other, 0).sum()
        actual = exact_losses.noisy_counts_delta(epsilon, 1, sigma, points)
        assert actual == pytest.approx(expected, rel=1e-6)


def test_nothing_is_proven_after_an_unproven_part():
    unproven = accounting.unproven(guarantee(0.1, 1e-6))
    void = accounting.after_preparation(unproven, ["standardise"])
    assert math.isinf(void.epsilon) and "none proven" in void.reason
