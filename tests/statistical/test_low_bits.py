"""Low-order bits break float mechanisms, and reveal nothing about releases on a lattice."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dp.mechanisms import MECHANISMS
from dp.noise import gaussian, laplace
from dp.seeds import generator
from dp_audit import low_bits
from dp_release import lattice, models, norm_models, rows
from dp_release.norm_noise import Body
from lattices import from_floats

EPSILON, DELTA, D = 0.1, 1e-6, 50


def test_the_constants_are_the_ziggurats():
    """The last layer ends where the tail begins, and layers have equal areas under the normal curve."""
    W = low_bits.ziggurat()
    r, area = 3.6541528853610088, 0.00492867323399
    ends = np.sort(W[1:]) * low_bits.BITS
    assert ends[-1] == pytest.approx(r, rel=1e-14)
    heights = np.exp(-(ends**2) / 2)
    assert np.allclose(ends[1:] * (heights[:-1] - heights[1:]), area, rtol=1e-9)
    assert W[0] * low_bits.BITS == pytest.approx(area / heights[-1], rel=1e-9)


@pytest.mark.parametrize(
    "law, possible", list(low_bits.POSSIBLE.items()), ids=["gaussian", "laplace"]
)
def test_what_was_drawn_is_possible(law, possible):
    rng = generator(111, law.__name__)
    for scale in (0.01, 1.0, 300.0):
        centre = rng.standard_normal(20)
        released = centre + law(20, scale, 200, rng)
        own = possible(released, centre, scale).mean()
        other = possible(released, centre + 1e-3 * rng.standard_normal(20), scale).mean()
        assert own == 1.0 if law is gaussian else own > 0.97
        assert other < own
    assert laplace in low_bits.POSSIBLE


def test_the_most_that_privacy_allows():
    assert low_bits.allowed(0.1) == pytest.approx(math.exp(0.1) / (1 + math.exp(0.1)))
    assert low_bits.allowed(0.0, 0.3) == pytest.approx(0.65)
    actual = low_bits.Found(0.6, 0.525, 10_000)
    assert actual.broken and not actual._replace(right=0.54).broken


def test_the_attack_breaks_output_perturbation_in_floats():
    mechanism = MECHANISMS["output_perturbation_gaussian"]
    attack = low_bits.attack(mechanism, EPSILON, DELTA, 200, generator(112))
    assert attack.right >= 0.9 and attack.broken
    assert low_bits.attack(MECHANISMS["output_perturbation"], 1.0, 0.0, 2, generator(0)) is None


@pytest.mark.parametrize(
    ("kind", "trials"),
    [
        *(("output", 60), ("objective", 60), ("norm", 60)),
        *(pytest.param(kind, 500, marks=pytest.mark.slow) for kind in ("objective", "norm")),
    ],
)
def test_the_attack_does_not_break_releases_on_a_lattice(kind, trials):
    """The attack uses the float mechanism's neighbours, and knows both minimisers and the noise scale."""
    sides = [from_floats(*data) for data in low_bits.neighbours(columns=D)]
    n = low_bits.ROWS
    if kind == "output":
        plan = models.output_perturbation_gaussian(n, D, EPSILON, DELTA, low_bits.LAMBDA)
    elif kind == "objective":
        plan = models.objective_perturbation(n, D, EPSILON, DELTA)
    else:
        plan = norm_models.weights_alone(n, Body(D), Fraction(1), EPSILON)
    noise, centres = plan.noises["weights"], []
    for V, y in sides:
        X, labels = rows.bounded(V, y, False)
        centre = low_bits.FITS["l2"](X, labels, plan.problem.lam, tolerance=1e-12)[0][0]
        centres.append(centre)
    right = 0
    for side, (V, y) in enumerate(sides):
        released = [
            models.release(plan, V, y, bytes([side]) + trial.to_bytes(31, "big"))
            for trial in range(trials)
        ]
        for each in released[:3]:
            assert all(isinstance(k, int) for k in each.parts["weights"])
        weights = np.array([each.floats("weights") for each in released])
        guesses = low_bits.guesses(weights, centres, _deviation(noise))
        right += int((guesses == side).sum())
    actual = low_bits.Found(right / (2 * trials), low_bits.allowed(EPSILON, DELTA), 2 * trials)
    assert not actual.broken, actual


def _deviation(noise):
    if isinstance(noise, lattice.Noise):
        return float(noise.deviation)
    return math.sqrt(noise.variances[0])


def test_rounded_centres_are_all_that_a_release_shows():
    plan = models.output_perturbation_gaussian(low_bits.ROWS, D, 1.0, DELTA, low_bits.LAMBDA)
    noise, key = plan.noises["weights"], bytes(32)
    results = []
    for V, y in (from_floats(*data) for data in low_bits.neighbours(columns=D)):
        z = noise.draw(models.Stream(key, "weights"))
        released = models.release(plan, V, y, key).parts["weights"]
        results.append(
            np.array([(a - b) * float(noise.spacing) for a, b in zip(released, z, strict=True)])
        )
    apart = np.linalg.norm(results[0] - results[1])
    moved = 2 / (low_bits.ROWS * low_bits.LAMBDA)
    assert 0 < apart <= moved
    assert float(noise.mu) * float(noise.deviation) >= moved + D**0.5 * float(
        lattice.spacing(noise.step)
    )
