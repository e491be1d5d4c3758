"""Plants faults in releases with noise of a norm's law, one at a time, for other tests' checks to find."""

import pytest
import test_norm_draws as found_in_draws
import test_norm_models as found
from test_releasing_mutants import patched

from dp_release import contrasts, norm_draws, norm_models, norm_noise


def check_law():
    found_in_draws.test_every_point_has_its_exact_probability(0, (1, 2), 1)


def check_box():
    found_in_draws.test_every_point_has_its_exact_probability(2, (), 3)


def check_plans():
    for name in found.PLANS:
        found.test_plans_keep_their_guarantee_and_spend_it(name, found.LOGISTIC, 1.0)


def check_composition():
    found.test_a_pure_and_a_gaussian_release_together(0.65, 0.09, 1.0, 8.18219e-7)


def check_rows():
    found.test_rows_of_map_2_by_hand()


# Name -> the module, a string in its source, the replacement, and the check that must then fail.
MUTANTS = {
    "every k kept": (
        *(norm_draws, "if stream.bernoulli(*kept(k, singles, blocks)):", "if True:"),
        check_box,
    ),
    "one geometric number too few": (
        *(norm_draws, "for _ in range(d + 1))\n        if", "for _ in range(d))\n        if"),
        check_box,
    ),
    "signs of a block left out": (
        *(norm_draws, "cut - before if stream.bits(1) else before - cut", "cut - before"),
        check_law,
    ),
    "a block's coordinates in order": (
        *(norm_draws, "left.pop(stream.below(len(left)))", "left.pop(0)"),
        check_law,
    ),
    "a part's rounding left out": (
        norm_noise,
        "apart = moved / lattice.spacing(step) + points",
        "apart = moved / lattice.spacing(step)",
        found.check_output,
    ),
    "rounding of the tilt left out of the output noise": (
        norm_noise,
        "tilted.spacing * lattice.root(Fraction(problem.d))",
        "0 * tilted.spacing * lattice.root(Fraction(problem.d))",
        found.check_output,
    ),
    "solver's error counted once": (
        *(norm_noise, "moved = 2 * Fraction(tolerance)", "moved = Fraction(tolerance)"),
        found.check_output,
    ),
    "sensitivity of a matrix halved": (
        *(norm_models, "hiding(2 * most * u**2 + 4", "hiding(most * u**2 + 4"),
        found.check_matrices,
    ),
    "the Jacobian left out": (
        norm_models,
        "one = Fraction(pure_epsilon(m, _curvature(problem))) * (1 + CLOSE)",
        "one = 2 * Fraction(m)",
        found.check_threshold,
    ),
    "the record's shift counted once": (
        norm_models,
        "one = Fraction(pure_epsilon(m, _curvature(problem))) * (1 + CLOSE)",
        "one = Fraction(pure_epsilon(m, _curvature(problem)) - m)",
        found.check_exact_losses,
    ),
    "the matrices' epsilon not subtracted": (
        norm_models,
        "left = certain - sum(map(Fraction, matrices.values()))",
        "left = certain",
        check_plans,
    ),
    "a Gaussian beside a pure release for nothing": (
        *(norm_models, "return share * near + (1 - share) * far", "return float(gaussian_profile(mu, at))"),
        check_composition,
    ),
    "reference levels as in map 1": (
        *(contrasts, "column._replace(reference=None)", "column._replace(reference=column.values[0])"),
        check_rows,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_fault_is_found(name):
    module, old, new, check = MUTANTS[name]
    with pytest.MonkeyPatch.context() as patch:
        patched(module, old, new, patch)
        norm_models.pure_table.cache_clear(), norm_models.mixed_table.cache_clear()
        with pytest.raises((AssertionError, ValueError, RuntimeError)):
            check()
    norm_models.pure_table.cache_clear(), norm_models.mixed_table.cache_clear()
