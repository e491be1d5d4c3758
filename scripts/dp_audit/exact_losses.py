"""Ledger rows that compare exact privacy losses with claimed ones."""

import math
from collections.abc import Sequence

from dp.mechanisms import MECHANISMS
from dp.proofs import gaussian_tilt as tilt
from dp.proofs.laplace_tilt import exact_epsilon
from dp_audit.audit import privacy_loss_1d
from dp_privacy.accounting import (
    ADD_REMOVE,
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from dp_privacy.composition import laplace_coordinates_delta

COLUMNS = ("mechanism", "setting", "epsilon_claimed", "epsilon", "delta", "what")

# Sums are cut at so many standard deviations. Beyond is a probability of 2e-23.
FAR = 10
OBJECTIVE = ("objective_perturbation_cm08", "objective_perturbation")


def redrawn_functional_loss(epsilon: float) -> float:
    """Supremum of the functional mechanism's privacy loss for d = 1, if it discards unbounded draws.

    The only record has |x| <= 1. Its coefficients x^2 and -2 y x each get Laplace noise of scale s =
    4/epsilon (their exact L1 sensitivity over epsilon). Both are redrawn until the noisy x^2 is positive;
    rejected draws stay secret. Each draw is kept with probability A(x) = 1 - e^(-x^2/s)/2. The released
    density is the Laplace density divided by A(x). So (x, 1) against (1, -1) has the loss (1 - x^2 + 2 (1 +
    x))/s + log(A(1)/A(x)), if the released coefficients are at most x^2 and -2 x. The first term, the loss
    without redrawing, has its maximum, epsilon, at x = 1, where its slope is 0 and the second term falls.
    So the supremum exceeds epsilon, but not 2 epsilon.
    """
    import numpy as np

    s = 4 / epsilon
    x = np.linspace(0, 1, 1_000_001)
    accepted = 1 - np.exp(-x * x / s) / 2
    return float(((1 - x * x + 2 * (1 + x)) / s + np.log(accepted[-1] / accepted)).max())


def gaussian_tilt_deltas(epsilon: float, sigma: float, n_lambda: float) -> Sequence[float]:
    """deltas at epsilon of a Gaussian tilt for removing and adding a record x = 1 (d = 1, logistic loss).

    The objective is the summed loss plus Lambda w^2/2 + b w with b ~ N(0, sigma^2). Many rows of small norm
    add a constant gradient -p and no curvature. Without the record, w has the density of b at p - Lambda w,
    times |db/dw| = Lambda. With the record, w has the density of b at p - Lambda w + s, times |db/dw| =
    Lambda + s(1-s), where s = 1/(1 + e^w). Returns the maxima over a grid of p, by numerical integration.
    """
    import numpy as np

    largest = np.zeros(2)
    for pull in -max(n_lambda, 1) * np.concatenate(
        [np.linspace(-2, 3, 26), np.geomspace(3, 3000, 40)]
    ):
        b, cell = np.linspace(-14 * sigma - 1, 14 * sigma, 40_001, retstep=True)
        w = (pull - b) / n_lambda
        s = np.exp(-np.logaddexp(0.0, w))
        curvature = s * np.exp(-np.logaddexp(0.0, -w)) / n_lambda
        without = -b * b / (2 * sigma**2)
        within = np.log1p(curvature) - (b + s) ** 2 / (2 * sigma**2)
        sums = [
            (np.exp(p) * -np.expm1(np.minimum(epsilon + q - p, 0.0))).sum()
            for p, q in ((within, without), (without, within))
        ]
        largest = np.maximum(largest, np.array(sums) * cell / (sigma * math.sqrt(2 * math.pi)))
    return largest


def _law_of_sum(one, s, count):
    """The law of a sum of `count` draws from the law `one` of standard deviation s, around 0.

    Laws of sums of half as many draws give it, and of each, what is beyond FAR standard deviations is cut.
    """
    import numpy as np

    if count == 1:
        return one
    half = _law_of_sum(one, s, count // 2)
    law = np.convolve(half, half)
    law = law if count % 2 == 0 else np.convolve(law, one)
    cut = max(0, len(law) // 2 - math.ceil(FAR * s * math.sqrt(count)))
    return law[cut : len(law) - cut]


def noisy_counts_delta(epsilon: float, columns: int, sigma: float, points: int = 16) -> float:
    """delta at epsilon of counts of rows in bins, if one row changes its bin in every column.

    Each count has discrete Gaussian noise of standard deviation sigma on multiples of 1/`points`. A column
    is counted twice, and each time a change of a bin moves two counts by 1, in opposite directions. By
    symmetry, the loss is a function of the sum t of 4 `columns` draws, in units of 1/`points`: with s =
    sigma `points` and k = `points`, it is (2 k t + 4 `columns` k^2)/(2 s^2). The law of t is an exact sum.
    """
    import numpy as np

    s, count = sigma * points, 4 * columns
    reach = math.ceil(FAR * s)
    one = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * s * s))
    law = _law_of_sum(one / one.sum(), s, count)
    t = np.arange(len(law)) - (len(law) - 1) / 2
    loss = (2 * points * t + count * points**2) / (2 * s * s)
    return float((law * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())


def rows(
    delta: float,
    objective_perturbation: list,
    gaussian_tilt: list,
    classical_gaussian: list,
    redrawn_functional: list,
    laplace_coordinates: list,
    laplace_dimension: int,
    found_bounds: list,
) -> list[tuple]:
    """Tuples (mechanism, setting, claimed epsilon, exact epsilon, delta, meaning of the exact epsilon).

    objective_perturbation: pairs of epsilon and n lambda. gaussian_tilt: pairs of epsilon and the ratio of
    n lambda to `gaussian_tilt.least_regularisation`. classical_gaussian: claimed epsilons.
    redrawn_functional: epsilons of `redrawn_functional_loss`. laplace_coordinates: claimed epsilons of
    Laplace noise calibrated to an L2 bound, in `laplace_dimension` coordinates. found_bounds: pairs of
    epsilon and the number of columns whose bounds a release finds.
    """
    table = []
    for epsilon, n_lambda in objective_perturbation:
        for name in OBJECTIVE:
            setting = f"n lambda = {n_lambda:g}, R = 1, logistic loss, exact minimiser"
            one = privacy_loss_1d(name, epsilon, n_lambda)
            what = "supremum over all pairs and sizes in one dimension"
            table.append((name, setting, epsilon, one, 0, what))
            epsilon_b, ridge = MECHANISMS[name].tilt(1, epsilon, n_lambda)
            many = exact_epsilon(epsilon_b, n_lambda + ridge)
            what = "supremum over all pairs and sizes in two or more dimensions"
            table.append((name, setting, epsilon, many, 0, what))
    for claimed, share in gaussian_tilt:
        mu = gaussian_mu(claimed, delta)
        n_lambda = share * tilt.least_regularisation(claimed, mu, adjacency=ADD_REMOVE)
        setting = (
            f"n lambda = {n_lambda:.4g}, {share:g} times the threshold, with the noise of a free Jacobian, "
            f"R = 1, add-remove, exact minimiser"
        )
        both = gaussian_tilt_deltas(claimed, 1 / mu, n_lambda)
        for way, mass in zip(("goes", "comes"), both, strict=True):
            what = f"delta at the claimed epsilon when a record {way}, supremum over others, d = 1"
            table.append(("gaussian_objective_perturbation", setting, claimed, claimed, mass, what))
    for claimed in classical_gaussian:
        setting = (
            f"sigma = sqrt(2 T ln(1.25/delta))/{claimed:g} of the sensitivity, T adaptive steps "
            f"(of gradient descent as published), any T"
        )
        sigma = classical_gaussian_sigma(claimed, delta)
        true = gaussian_epsilon(sigma, delta)
        what = "epsilon at this delta, by the analytic formula"
        table.append(("classical Gaussian", setting, claimed, true, delta, what))
        at_claim = gaussian_delta(sigma, claimed)
        what = "delta at the claimed epsilon"
        table.append(("classical Gaussian", setting, claimed, claimed, at_claim, what))
    for claimed in redrawn_functional:
        setting = "d = 1, scale = exact sensitivity/epsilon, re-drawn until bounded below, unseen"
        what = "supremum over pairs of single records"
        exact = redrawn_functional_loss(claimed)
        table.append(("functional mechanism, re-drawn", setting, claimed, exact, 0, what))
    d = laplace_dimension
    for claimed in laplace_coordinates:
        setting = f"scale = L2 sensitivity/epsilon, {d} coordinates"
        largest = math.sqrt(d) * claimed
        what = "supremum, where every coordinate moves by sensitivity/sqrt(d)"
        table.append(("laplace_coordinates", setting, claimed, largest, 0, what))
        profile = [factor * claimed for factor in (1, 2, 3, 5, 10)]
        deltas = laplace_coordinates_delta(d, claimed, profile)
        for epsilon, mass in zip(profile, deltas, strict=True):
            what = "(epsilon, delta) of the same shift, by privacy loss distributions"
            table.append(("laplace_coordinates", setting, claimed, epsilon, mass, what))
    for claimed, columns in found_bounds:
        sigma = 2 * math.sqrt(columns) / gaussian_mu(claimed, delta)
        setting = (
            f"counts of {columns} columns in bins, discrete noise of standard deviation {sigma:.4g}"
        )
        what = (
            "delta at the claimed epsilon if a row changes its bin in every column, summed exactly"
        )
        mass = noisy_counts_delta(claimed, columns, sigma)
        table.append(("bounds that a release finds", setting, claimed, claimed, mass, what))
    return table
