"""On health insurance and Fair's data, lattice releases are as accurate as the float mechanism."""

import numpy as np
import pytest
from test_real_data import prepare

from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp_release import models
from lattices import from_floats

DRAWS, DELTA = 60, 1e-6


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder, result = tmp_path_factory.mktemp("prepared"), {}
    for name in ("randhie", "fair", "randhie_visits"):
        prepared, meta, _ = prepare(name, folder)
        X, y = prepared.floats(np.arange(len(prepared.y)))
        result[name] = X / meta["bound"], y
    return result


def compared(name, X, y, epsilon):
    """Draws of each quantity, such as the excess loss, in floats and on a lattice, each (DRAWS,)."""
    numbers = name == "randhie_visits"
    mechanism = MECHANISMS["noise_aware_log_cosh" if numbers else "noise_aware_logistic"]
    plan = getattr(models, mechanism.name)(*X.shape, epsilon, DELTA, robust=True)
    loss, lam = plan.problem.loss, plan.problem.lam
    options = {"loss": loss} if numbers else {}
    settings = {"epsilon": epsilon, "delta": DELTA, "lam": lam, "robust": True} | options
    float_release = mechanism.release(
        X, y, restarts=DRAWS, rng=generator(121, name, epsilon), **settings
    )
    V, labels = from_floats(X, y.astype(float) if numbers else y)
    lattice = [
        models.release(plan, V, labels, generator(122, name, epsilon, draw).bytes(32))
        for draw in range(DRAWS)
    ]
    best = MECHANISMS["nonprivate"].release(X, y, lam=1e-9, **options).weights[0]

    def excess(weights):
        values = [loss.value(loss.arguments(X @ w, y)).mean() for w in (*weights, best)]
        return np.array(values[:-1]) - values[-1]

    points = float_release.info["minimiser"], np.array([r.floats("weights") for r in lattice])
    described = [models.described(r) for r in lattice]
    return {
        "excess": tuple(map(excess, points)),
        "coarse": (
            float_release.info["coarse"],
            np.array([not d.answered.all() for d in described]),
        ),
        "weight": (float_release.weights[:, 0], np.array([d.weights[0] for d in described])),
        "error": (
            np.sqrt(float_release.info["covariance"][:, 0, 0]),
            np.array([d.covariance[0, 0] for d in described]) ** 0.5,
        ),
    }


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("fair", 1.0),
        pytest.param("randhie", 0.1, marks=pytest.mark.slow),
        pytest.param("randhie_visits", 4.0, marks=pytest.mark.slow),
    ],
)
def test_accuracy_is_the_float_mechanisms(data, name, epsilon):
    actual = compared(name, *data[name], epsilon)
    for what, (ours, lattice) in actual.items():
        ours, lattice = (np.asarray(x, dtype=float) for x in (ours, lattice))
        if what in ("weight", "error"):  # a noisy Hessian causes heavy tails
            ours, lattice = np.log(np.abs(ours)), np.log(np.abs(lattice))
        difference = ours.mean() - lattice.mean()
        error = np.sqrt((ours.var(ddof=1) + lattice.var(ddof=1)) / DRAWS)
        assert abs(difference) <= 4 * error + 1e-12, (what, difference, error)
