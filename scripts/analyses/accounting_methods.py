"""Computes the noise that the same releases need under different accounting methods."""

import math

from dp.proofs import sketches
from dp_privacy import sensitivities
from dp_privacy.accounting import REPLACE_ONE, gaussian_mu, gaussian_sigma
from study.canonical import epsilon as canonical
from study.configuration.inputs import NOTHING
from study.configuration.kinds import analysis
from study.configuration.options import Options
from study.jobs.files import write_csv

COLUMNS = ("case", "accounting", "epsilon", "delta", "noise", "ratio")


def zero_concentrated(epsilon, delta):
    """The rho for which rho-zCDP implies (epsilon, delta)-DP.

    It solves epsilon = rho + 2 sqrt(rho log(1/delta)) (Bun, Steinke, TCC 2016, proposition 1.3).
    """
    logarithm = math.log(1 / delta)
    return (math.sqrt(logarithm + epsilon) - math.sqrt(logarithm)) ** 2


def gaussians(sizes, epsilon, delta, exact=None):
    """Accounting method -> common standard deviation of Gaussian releases with these sensitivities.

    split: every release spends an equal part of epsilon and delta, with noise for the largest sensitivity.
    zcdp: values of rho add up. gdp: Gaussian DP, as if all worst cases could coincide. exact: Gaussian DP
    with the joint sensitivity `exact`.
    """
    count, together = len(sizes), math.hypot(*sizes)
    return {
        "split": max(sizes) * gaussian_sigma(epsilon / count, delta / count),
        "zcdp": together / math.sqrt(2 * zero_concentrated(epsilon, delta)),
        "gdp": together / gaussian_mu(epsilon, delta),
        "exact": (exact or together) / gaussian_mu(epsilon, delta),
    }


class Accounting(Options):
    epsilons: list = [0.1, 0.5, 1, 4]
    delta: float = 1e-06
    rows: int = 150


@analysis(NOTHING, Accounting)
def accounting(experiment, spec, inputs, seed, out):
    """One row per case, accounting and epsilon: the noise, and its ratio to that of exact accounting.

    "adassp": releases of the smallest eigenvalue, X'X and X'y, under replace-one with bounds 1. Exact
    accounting uses the fact that X'X and X'y cannot both change by their maximum. "boosted": releases of
    the eigenvalue, X'X and ten sums of residuals clipped at 1/4, under replace-one. "sketch": the noise
    gamma of three sketches of options["rows"] rows, under add-remove; renyi is the bound of the sketch's
    authors, and gdp an approximation with too little noise.
    """
    delta, rows = spec.options["delta"], spec.options["rows"]
    eigenvalue, gram = sensitivities.smallest_eigenvalue(), sensitivities.gram()
    together = sensitivities.gram_and_moment(adjacency=REPLACE_ONE)
    lines = []
    for epsilon in spec.options["epsilons"]:
        cases = {
            "adassp": gaussians(
                [eigenvalue, gram, 2.0], epsilon, delta, math.hypot(eigenvalue, together)
            ),
            "boosted": gaussians([eigenvalue, gram, *[0.5] * 10], epsilon, delta),
            "sketch": {
                "renyi": sketches.gamma_renyi(3 * rows, epsilon, delta),
                "gdp": math.sqrt(3 * rows / 2) / gaussian_mu(epsilon, delta),
                "exact": sketches.gamma_exact(3 * rows, epsilon, delta),
            },
        }
        for case, noises in cases.items():
            for name, noise in noises.items():
                row = (case, name, canonical(epsilon), delta, noise, noise / noises["exact"])
                lines.append(row)
    write_csv(out, COLUMNS, lines)
