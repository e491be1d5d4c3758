"""Likelihood-ratio attacks on a person whose rows all differ, which the noise for one row does not stop."""

import hmac
import math

import numpy as np
import pytest

from dp_audit import audit, pairs
from dp_release import models, rows
from dp_release.persons import Persons

DELTA, MOST, OTHERS = 1e-5, 8, 800


@pytest.mark.slow
def test_the_ledgers_pair_refutes_noise_for_one_record():
    found = {}
    for most in (8, 1):
        options = {"delta": DELTA, "trials": 20_000, "rng": np.random.default_rng(5), "most": most}
        found[most] = audit.attack(
            "gaussian_objective_perturbation", "whole_person", 1.0, **options
        )["epsilon"]
    assert found[8] <= 1 < found[1], found


def log_density(plan, V, y, w):
    """Of the exact minimiser at points w (m, 2), up to a constant: written down from the rows."""
    X, labels = rows.bounded(V, y, False)
    some = labels != 0
    x, count = np.unique(np.c_[X, labels][some], axis=0, return_counts=True)
    sigma, Lambda = float(plan.tilt.noise.deviation), plan.problem.n * plan.problem.lam
    b, H = -Lambda * w, np.broadcast_to(Lambda * np.eye(2), (len(w), 2, 2)).copy()
    for (*row, label), times in zip(x.tolist(), count.tolist(), strict=True):
        row = np.array(row)
        s = 1 / (1 + np.exp(label * (w @ row)))
        b = b + (times * s * label)[:, None] * row
        H = H + (times * s * (1 - s))[:, None, None] * np.outer(row, row)
    return -(b**2).sum(-1) / (2 * sigma**2) + np.linalg.slogdet(H)[1]


@pytest.mark.slow
def test_an_attack_on_a_released_model_finds_no_more_than_epsilon():
    """All eight rows of one of 101 people turn. Released with the noise for one row, they are found."""
    sides = []
    for sign in (1, -1):
        V = np.zeros((OTHERS + MOST, 2), np.int32)
        V[:OTHERS] = [0, rows.ONE]
        V[OTHERS:] = [sign * int(rows.ONE * math.sin(math.pi / 3) - 1), rows.ONE // 2]
        y = np.repeat([-1, 1], [OTHERS, MOST]).astype(np.int32)
        sides.append((V, y))
    n, found = OTHERS + MOST, {}
    for kind in (Persons("p", n // MOST, MOST), None):
        plan = models.objective_perturbation(n, 2, 1.0, DELTA, persons=kind)
        weights = []
        for k, side in enumerate(sides):
            keys = (hmac.digest(b"of tests", f"{k} {j}".encode(), "sha256") for j in range(1200))
            released = [models.release(plan, *side, key).floats("weights") for key in keys]
            weights.append(np.array(released))
        scores = [
            {"ratio": log_density(plan, *sides[0], w) - log_density(plan, *sides[1], w)}
            for w in weights
        ]
        found[kind] = audit._bounds(scores, 600, [(DELTA, 0.95)])[0]["epsilon"]
    assert next(iter(found.values())) <= 1 < found[None], found


def test_a_pair_of_people_needs_the_option():
    assert pairs.find("whole_person").arguments["most"] == 8
    with pytest.raises(ValueError, match="most"):
        audit.attack("output_perturbation", "whole_person", 1.0, trials=10)
