"""Exact privacy losses, side by side with what is claimed: rows for the ledger."""

import math

from dp.accounting import classical_gaussian_sigma, gaussian_delta, gaussian_epsilon
from dp.audit import privacy_loss_1d
from dp.composition import laplace_coordinates_delta
from dp.mechanisms import MECHANISMS

COLUMNS = ("mechanism", "setting", "epsilon_claimed", "epsilon", "delta", "what")

OBJECTIVE = ("objective_perturbation_cm08", "objective_perturbation")


def rows(delta, objective_perturbation, classical_gaussian, laplace_coordinates, laplace_dimension):
    """(mechanism, setting, claimed epsilon, exact epsilon, delta, what the exact one is) tuples.

    objective_perturbation: pairs of epsilon and n lambda. classical_gaussian: claimed epsilons of
    sigma = sqrt(2 ln(1.25/delta)) sensitivity/epsilon. laplace_coordinates: epsilons of Laplace noise
    calibrated to an L2 bound in `laplace_dimension` coordinates.
    """
    found = []
    for epsilon, n_lambda in objective_perturbation:
        for name in OBJECTIVE:
            setting = f"n lambda = {n_lambda:g}, R = 1, logistic loss"
            mechanism = MECHANISMS[name]
            many = mechanism.guarantee(1, 2, epsilon=epsilon, lam=n_lambda).epsilon
            one = privacy_loss_1d(mechanism, epsilon, n_lambda)
            what = "supremum over all pairs and sizes in one dimension"
            found.append((name, setting, epsilon, one, 0, what))
            what = (
                "supremum over all pairs and sizes in two or more dimensions"
                if name == "objective_perturbation_cm08"
                else "proven in any dimension"
            )
            found.append((name, setting, epsilon, many, 0, what))
    for claimed in classical_gaussian:
        setting = f"sigma = sqrt(2 ln(1.25/delta))/{claimed:g}, sensitivity 1"
        sigma = classical_gaussian_sigma(claimed, delta)
        true = gaussian_epsilon(sigma, delta)
        what = "epsilon at this delta, by the analytic formula"
        found.append(("classical Gaussian", setting, claimed, true, delta, what))
        what = "delta at the claimed epsilon"
        found.append(
            ("classical Gaussian", setting, claimed, claimed, gaussian_delta(sigma, claimed), what)
        )
    d = laplace_dimension
    for claimed in laplace_coordinates:
        setting = f"scale = L2 sensitivity/epsilon, {d} coordinates"
        largest = math.sqrt(d) * claimed
        what = "supremum, where every coordinate moves by sensitivity/sqrt(d)"
        found.append(("laplace_coordinates", setting, claimed, largest, 0, what))
        profile = [factor * claimed for factor in (1, 2, 3, 5, 10)]
        for epsilon, mass in zip(
            profile, laplace_coordinates_delta(d, claimed, profile), strict=True
        ):
            what = "(epsilon, delta) of the same shift, by privacy loss distributions"
            found.append(("laplace_coordinates", setting, claimed, epsilon, mass, what))
    return found
