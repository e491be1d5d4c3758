import math

import numpy as np
import pytest

from dp.proofs import quadratics
from dp_privacy import sensitivities
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE

D = 3


def record(rng, bound, label_bound=1.0):
    """A row of norm at most `bound` and a label, both often at an end of their range."""
    x = rng.normal(size=D)
    size = bound * (1.0 if rng.random() < 0.7 else rng.random())
    y = label_bound * (rng.choice([-1, 1]) if rng.random() < 0.7 else rng.uniform(-1, 1))
    return x * size / np.linalg.norm(x), y


def search(distance, bound, label_bound=1.0, adjacency=REPLACE_ONE, starts=20, steps=250, seed=0):
    """The largest distance(x, y, z, u) found by ever smaller random moves from random starts."""
    rng = np.random.default_rng(seed)
    best = 0.0

    def clipped(x, y):
        norm = np.linalg.norm(x)
        return x * min(1.0, bound / norm) if norm else x, float(
            np.clip(y, -label_bound, label_bound)
        )

    for _ in range(starts):
        point = [*record(rng, bound, label_bound), *record(rng, bound, label_bound)]
        if adjacency == ADD_REMOVE:
            point[2], point[3] = np.zeros(D), 0.0
        value = distance(*point)
        for k in range(steps):
            scale = 0.5 ** (k / 25)
            moved = [part + scale * bound * rng.normal(size=np.shape(part)) for part in point]
            x, y = clipped(*moved[:2])
            z, u = clipped(*moved[2:]) if adjacency == REPLACE_ONE else point[2:]
            actual = distance(x, y, z, u)
            if actual > value:
                point, value = [x, y, z, u], actual
        best = max(best, value)
    return best


@pytest.mark.parametrize(
    ("bound", "label_bound", "adjacency"),
    [
        *((1.0, 1.0, REPLACE_ONE), (1.0, 3.0, REPLACE_ONE), (2.0, 0.2, REPLACE_ONE)),
        *((2.0, 1.0, ADD_REMOVE), (1.0, 0.2, ADD_REMOVE)),
    ],
)
def test_gram_and_moment(bound, label_bound, adjacency):
    def joint(x, y, z, u):
        gram = np.outer(x, x) - np.outer(z, z)
        return math.sqrt((gram**2).sum() + ((y * x - u * z) ** 2).sum())

    limit = sensitivities.gram_and_moment(bound, label_bound, adjacency)
    actual = search(joint, bound, label_bound, adjacency)
    assert 0.99 * limit < actual <= limit * (1 + 1e-12)

    def alone(x, y, z, u):
        return np.linalg.norm(np.outer(x, x) - np.outer(z, z))

    limit = sensitivities.gram(bound, adjacency)
    assert 0.99 * limit < search(alone, bound, adjacency=adjacency) <= limit * (1 + 1e-12)


def test_labels_of_size_one_have_the_known_value():
    for bound in (0.5, 0.7, 1.0, 2.0):
        expected = math.sqrt(2) * (bound**2 + 0.5) if bound**2 >= 0.5 else 2 * bound
        assert sensitivities.gram_and_moment(bound, 1.0) == pytest.approx(expected)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_smallest_eigenvalue_and_newton_directions(adjacency):
    rng = np.random.default_rng(1)
    bound, ridge = 1.3, 0.4
    root = 0.5  # square root of the curvature 1/4
    limits = {
        "eigenvalue": sensitivities.smallest_eigenvalue(bound),
        "direction": sensitivities.newton_direction(ridge, bound),
        "floored": sensitivities.newton_direction_floored(ridge, bound, adjacency=adjacency),
    }
    actual = dict.fromkeys(limits, 0.0)
    for others in (np.zeros((D, D)), 0.3 * np.diag([1.0, 0.2, 0.0]), rng.normal(size=(D, D))):
        B = others @ others.T

        def eigenvalue(x, y, z, u, B=B):
            first = np.linalg.eigvalsh(10 * B + np.outer(x, x))[0]
            return abs(first - np.linalg.eigvalsh(10 * B + np.outer(z, z))[0])

        def direction(x, y, z, u, B=B):
            inverses = [
                np.linalg.inv(B + ridge * np.eye(D) + root**2 * np.outer(v, v)) for v in (x, z)
            ]
            return np.linalg.norm(inverses[0] - inverses[1], 2)

        def floored(x, y, z, u, B=B):
            parts = []
            for v in (x, z):
                values, vectors = np.linalg.eigh(B + root**2 * np.outer(v, v))
                parts.append(vectors / np.maximum(values, ridge) @ vectors.T)
            return np.linalg.norm(parts[0] - parts[1])

        for name, distance in (
            ("eigenvalue", eigenvalue),
            ("direction", direction),
            ("floored", floored),
        ):
            reached = search(distance, bound, adjacency=adjacency, starts=8, steps=150)
            actual[name] = max(actual[name], reached)
    for name, limit in limits.items():
        assert actual[name] <= limit * (1 + 1e-9), name
    assert actual["direction"] > 0.99 * limits["direction"], "others absent: it is reached"


def test_the_floored_inverse_comes_near_its_bound():
    """With eigenvalues at the floor, small records approach the Lipschitz constant."""
    floor, bound = 1.0, 0.2

    def floored(x, y, z, u):
        parts = []
        for v in (x, z):
            values, vectors = np.linalg.eigh(floor * np.eye(D) + 0.25 * np.outer(v, v))
            parts.append(vectors / np.maximum(values, floor) @ vectors.T)
        return np.linalg.norm(parts[0] - parts[1])

    limit = sensitivities.newton_direction_floored(floor, bound)
    assert 0.97 * limit < search(floored, bound, starts=8) <= limit


def test_trace_and_vectors():
    assert sensitivities.hessian_trace(2.0) == 1.0
    assert sensitivities.vector_sum(1.5) == 3.0
    assert sensitivities.vector_sum(1.5, ADD_REMOVE) == 1.5
    with pytest.raises(ValueError, match="adjacency"):
        sensitivities.gram(1.0, "swap")


def test_spectral_ridges():
    """The noise has the stated norm.

    A ridge may be lower than this norm by half of X'X's eigenvalue, but not by all.
    """
    rng = np.random.default_rng(0)
    d, sigma = 40, 3.0
    draws = rng.normal(0, sigma, (200, quadratics.coefficients(d)))
    noise = quadratics.isotropic(draws, d)[0]
    largest = np.linalg.eigvalsh(noise)[:, -1]
    edge = sensitivities.noise_norm(sigma, d)
    assert np.median(largest) == pytest.approx(edge, rel=0.08)
    assert (largest < sensitivities.eigenvalue_floor(sigma, d)).mean() > 0.99
    assert sensitivities.spectral_ridge(sigma, d) == edge
    assert sensitivities.spectral_ridge(sigma, d, 4 * edge) == 0
    gram = 0.9 * edge * np.eye(d)

    def unstable(ridge):
        """Share of draws for which I - P X'X expands, where P = (X'X + noise + ridge)^-1.

        Then P X'X has an eigenvalue above 2 or below 0.
        """
        values = 0.9 * edge / np.linalg.eigvalsh(gram + noise + ridge * np.eye(d))
        return ((values > 2) | (values < 0)).any(axis=1).mean()

    assert unstable(sensitivities.spectral_ridge(sigma, d, 0.9 * edge)) < 0.25, "the edge varies"
    assert unstable(sensitivities.eigenvalue_floor(sigma, d) - 0.45 * edge) < 0.02
    assert unstable(edge - 0.9 * edge) > 0.9, "all of the eigenvalue is too much"
    assert sensitivities.eigenvalue_lower_bound(5.0, 1.0) == pytest.approx(3.04)
    assert sensitivities.eigenvalue_lower_bound(1.0, 1.0) == 0
