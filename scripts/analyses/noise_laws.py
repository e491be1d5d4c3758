"""Computes the noise that objective perturbation needs under each law, relative to Gaussian noise."""

import math

import numpy as np

from dp.mechanisms import MECHANISMS
from dp.mechanisms.knorm_objective_perturbation import Body, bodies, excess
from dp_privacy import l2
from dp_privacy.accounting import gaussian_sigma
from study.canonical import epsilon as canonical
from study.configuration.experiment import data_path
from study.configuration.inputs import DATA
from study.configuration.kinds import analysis
from study.configuration.options import Options
from study.jobs.files import read_json, write_csv

COLUMNS = ("law", "dataset", "columns", "epsilon", "delta", "ratio")
UP_TO = 300  # columns of the curves
MECHANISM = MECHANISMS["knorm_objective_perturbation"]


class NoiseLaws(Options):
    epsilons: list = [0.1, 1]
    delta: float = 1e-06
    levels: int = 5
    rows: int = 4000


@analysis(DATA, NoiseLaws, describes_data=True)
def noise_laws(experiment, spec, inputs, seed, out):
    """One row per law, epsilon and number of columns, and one per data set and epsilon.

    ratio: the root mean square of the noise, divided by that of Gaussian noise at the same epsilon and
    delta, for rows in the same body, under replace-one and where the Jacobian is free. For law "l2" and
    "box", columns are numbers between -1 and 1, and for "hull" they are one-hot blocks of
    options["levels"] columns. The box and the hull are pure.

    A data set has the law that `body: auto` chooses for options["rows"] rows, with lambda by rule. Its
    ratio is of the square roots of the predicted increases of the loss (`excess`), because noise of a hull
    is not the same in all columns.
    """
    delta, lines = spec.options["delta"], []
    for e in spec.options["epsilons"]:
        for d in np.unique(np.geomspace(1, UP_TO, 60).round().astype(int)).tolist():
            ball = l2.scale(d, e, delta) / gaussian_sigma(e, delta)
            lines.append(("l2", "", d, e, ball * math.sqrt(d + 1)))
            lines.append(("box", "", d, e, _pure(d, e, delta, ())))
        size = spec.options["levels"]
        for count in np.unique(np.geomspace(1, UP_TO / size, 40).round().astype(int)).tolist():
            blocks = tuple(tuple(range(k * size, (k + 1) * size)) for k in range(count))
            lines.append(("hull", "", count * size, e, _pure(count * size, e, delta, blocks)))
        for name in inputs:
            law, d, ratio = _of_data(name, e, delta, spec.options["rows"])
            lines.append((law, name, d, e, ratio))
    rows = [(law, name, d, canonical(e), delta, ratio) for law, name, d, e, ratio in lines]
    write_csv(out, COLUMNS, rows)


def _pure(d, epsilon, delta, blocks):
    """The ratio of a box, or of a hull of equal blocks, of d columns with bounds 1."""
    body = Body("hull" if blocks else "box", math.inf, np.ones(d), blocks)
    variances = (2 / epsilon) ** 2 * body.variances()
    return math.sqrt(variances.mean()) / gaussian_sigma(epsilon, delta, 2 * body.reach)


def _of_data(name, epsilon, delta, rows):
    """(law, columns, ratio) of a data set."""
    meta = read_json(data_path(name, "json"))
    d = len(meta["columns"])
    asked = {"epsilon": epsilon, "delta": delta, "bound": meta["bound"], **MECHANISM.of_data(meta)}
    asked["lam"] = MECHANISM.rule_lambda(rows, d, **asked)
    plan = MECHANISM.plan(rows, d, **asked)
    choices = bodies(d, MECHANISM.parameters(rows, d, **asked))
    ball, outer = choices[0], choices[-1]
    # Gaussian noise is that of the ball, but for a factor.
    gaussian = gaussian_sigma(epsilon, delta, 2 * ball.radius) / math.sqrt(ball.variances()[0])
    raised = [
        factor**2 * excess(body, outer, 0.25, asked["lam"])
        for factor, body in ((plan.scale, plan.body), (gaussian, ball))
    ]
    return {"ball": "l2"}.get(plan.body.name, plan.body.name), d, math.sqrt(raised[0] / raised[1])
