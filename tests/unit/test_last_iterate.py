import math

import numpy as np
import pytest

from dp.proofs import last_iterate
from dp.proofs.last_iterate import composition_mu, last_iterate_mu, last_iterate_mu_cyclic


@pytest.mark.parametrize("c", [0.0, 0.3, 0.9, 0.99, 0.999])
@pytest.mark.parametrize("steps", [1, 2, 5, 100, 1000])
def test_a_quadratic_reaches_it(c, steps):
    """With w <- c w - s + unit noise, the mean moves by s sum c^i, and the variance is sum c^2i."""
    powers = c ** np.arange(steps)
    exact = powers.sum() / math.sqrt((powers**2).sum())
    assert last_iterate_mu(steps, 1.0, c) == pytest.approx(exact, rel=1e-12)
    assert last_iterate_mu(steps, 1.0, c) <= composition_mu(steps, 1.0) * (1 + 1e-12)


def shifts(c, visits):
    """`last_iterate`'s a_t and z_t, in units of eta s. Each visit (a 1 in `visits`) adds one unit."""
    steps = len(visits)
    first, last = np.flatnonzero(visits)[[0, -1]]
    assert last == steps - 1
    a = np.zeros(steps)
    a[-1] = 1.0
    earlier = np.flatnonzero(visits[:-1])
    if len(earlier):
        at = np.arange(first, steps - 1)
        weight = c ** (steps - 2 - at)
        a[at] = weight * (c ** (steps - 2 - earlier)).sum() / (weight**2).sum()
    z, trace = 0.0, []
    for t in range(steps):
        z = c * z + visits[t] - a[t]
        trace.append(z)
    return a, np.array(trace)


@pytest.mark.parametrize("c", [0.5, 0.9, 0.999])
@pytest.mark.parametrize(("batches", "epochs"), [(1, 4), (3, 2), (5, 6), (40, 3)])
def test_the_cyclic_proof_holds_step_by_step(c, batches, epochs):
    visits = np.zeros(batches * epochs)
    visits[batches - 1 :: batches] = 1
    a, z = shifts(c, visits)
    assert z.min() >= -1e-9 and abs(z[-1]) < 1e-9 and a.min() >= 0
    actual = last_iterate_mu_cyclic(batches, epochs, 1.0, c)
    assert actual == pytest.approx(math.sqrt((a**2).sum()), rel=1e-9)
    assert actual <= composition_mu(epochs, 1.0) * (1 + 1e-12)
    # the exact value for a quadratic is a lower bound
    reach = c ** np.arange(batches * epochs)
    exact = (reach[::batches]).sum() / math.sqrt((reach**2).sum())
    assert exact <= actual * (1 + 1e-12)


def test_conditions():
    arguments = {"n": 1000, "steps": 500, "sigma": 0.01, "learning_rate": 3.0, "lam": 0.05}
    everything = composition_mu(500, 2 / 1000 / 0.01)
    mu, reason = last_iterate.dp_gd_mu(**arguments)
    assert mu < everything / 3 and "last iterate" in reason
    for change, why in (
        ({"lam": 0.0}, "contracts"),
        ({"learning_rate": 40.0}, "contracts"),
    ):
        mu, reason = last_iterate.dp_gd_mu(**arguments | change)
        assert mu == pytest.approx(everything) and why in reason
    half, _ = last_iterate.dp_gd_mu(**arguments, clip=0.5)
    assert half == pytest.approx(last_iterate.dp_gd_mu(**arguments)[0] / 2)
    _, reason = last_iterate.dp_gd_mu(**arguments | {"learning_rate": 1.0}, loss="softmax")
    assert "last iterate" in reason
    _, reason = last_iterate.dp_gd_mu(**arguments, loss="softmax", clip=1.0)
    assert "softmax" in reason
    with pytest.raises(ValueError, match="clipping norm"):
        last_iterate.dp_gd_mu(**arguments, loss="squared")
    assert last_iterate.dp_gd_mu(**arguments, loss="squared", clip=1.0)[0] > 0
    with pytest.raises(ValueError, match="contraction needs"):
        last_iterate.contraction(1.0, 2.0, 1.0)
    with pytest.raises(ValueError, match="no constants"):
        last_iterate.constants("hinge", 0.1)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_constants_hold_for_random_rows(loss):
    """At random scores, gradient norms and Hessian eigenvalues nearly reach their bounds."""
    rng = np.random.default_rng(3)
    d, classes, most, steepest = 2, 3, 0.0, 0.0
    for _ in range(300):
        x = rng.normal(size=d)
        x /= np.linalg.norm(x)
        if loss == "logistic":
            z = 20 * rng.normal()
            s = 1 / (1 + math.exp(-z))
            gradient, hessian = s, s * (1 - s)
        else:
            scores = rng.choice([0, 30]) * rng.normal(size=classes) + rng.normal(size=classes) / 10
            if rng.random() < 0.5:
                scores[2] -= 50
            p = np.exp(scores - np.logaddexp.reduce(scores))
            gradient = np.linalg.norm(p - np.eye(classes)[rng.integers(classes)])
            hessian = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1]
        most, steepest = max(most, gradient), max(steepest, hessian)
    size, m, M = last_iterate.constants(loss, 0.1, 1.0)
    assert 0.98 * size / 2 < most <= size / 2
    assert 0.98 * (M - m) < steepest <= M - m + 1e-12


def test_rule_steps():
    assert last_iterate.rule_steps(36_177, 104, 0.027545) == 98
    assert last_iterate.rule_steps(10**6, 4, 1.0) == 1000
    assert last_iterate.rule_steps(10, 100, 0.01) == 1
