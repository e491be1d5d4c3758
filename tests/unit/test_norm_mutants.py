"""Plants faults in releases with noise of a norm's law, one at a time, for other tests' checks to find."""

import pytest
import test_norm_draws as found_in_draws
import test_norm_models as found
import test_norm_rate as found_of_rates

from dp_privacy.profiles import gaussian_profile
from dp_release import contrasts, lattice, models, norm_draws, norm_models, norm_noise, rate, tilt

check_output = found.test_given_the_minimiser_the_output_noise_hides_every_error
check_matrices = found.test_a_row_moves_no_part_of_a_matrix_by_more_than_is_paid
check_threshold = found.test_below_the_threshold_the_jacobian_is_paid_for
check_exact_losses = found.test_exact_losses_are_at_most_the_theorems
check_totals = found_of_rates.test_a_row_moves_the_rate_by_no_more_than_is_paid
check_parts = found_of_rates.test_all_parts_are_around_the_released_offset
check_certificates = found_of_rates.test_minimisers_with_an_offset_are_certified_on_extreme_data


def check_law():
    found_in_draws.test_every_point_has_its_exact_probability(0, (1, 2), 1)


def check_box():
    found_in_draws.test_every_point_has_its_exact_probability(2, (), 3)


def check_plans():
    for name in found.PLANS:
        found.test_plans_keep_their_guarantee_and_spend_it(name, found.LOGISTIC, 1.0)


def check_composition():
    found.test_a_pure_and_a_gaussian_release_together(0.65, 0.09, 1.0, 8.18219e-7)


def every_k(_):
    return lambda k, singles, blocks: (1, 1)


def without_signs(point):
    return lambda *arguments: [abs(value) for value in point(*arguments)]


def first_coordinates(point):
    def moved(*arguments):
        z = point(*arguments)
        some = [value for value in z if value]
        return some + [0] * (len(z) - len(some))

    return moved


def without_points(hiding):
    return lambda moved, body, points, epsilon: hiding(moved, body, 0, epsilon)


def half_moved(hiding):
    return lambda moved, body, points, epsilon: hiding(moved / 2, body, points, epsilon)


def tilt_not_rounded(output):
    def free(problem, tilted, tolerance, epsilon):
        return output(problem, tilted._replace(step=tilted.step - 300), tolerance, epsilon)

    return free


def error_once(output):
    return lambda problem, tilted, tolerance, epsilon: output(
        problem, tilted, tolerance / 2, epsilon
    )


def without_jacobian(_):
    return lambda m, curvature: 2 * m


def shift_once(pure_epsilon):
    return lambda m, curvature: pure_epsilon(m, curvature) - m


def more_than_its_share(by_norm):
    return lambda kind, problem, which, u, epsilon, longest: by_norm(
        kind, problem, which, u, epsilon * 3 / 2, longest
    )


def gaussian_for_nothing(_):
    return lambda epsilon, mu, at: float(gaussian_profile(mu, at))


def map_1(_):
    return lambda schema: schema


def twice_the_rate(noise):
    return lambda epsilon: noise(2 * epsilon)


def labels_twice(total):
    return lambda y: 2 * total(y)


def exact_rate(released):
    def mixed(values, noise, stream):
        if noise.count == 1:
            return lattice.nearest(values, noise.step)
        return released(values, noise, stream)

    return mixed


def half_of_it(offset):
    return lambda released, made, n: offset(released, made, n) / 2


def nothing_first(_):
    return lambda n, loss, epsilon, offset: ({}, 0, 0.0)


def without_offset(minimiser):
    return lambda problem, X, y, b, tolerance, shares, offset: minimiser(
        problem, X, y, b, tolerance, shares
    )


def one_stream(Stream):
    return lambda key, part: Stream(key, "all")


def check_spending():
    found_of_rates.test_plans_with_a_rate_keep_their_guarantee_and_spend_it("pure", 1.0)


def ignoring_offset(gradient):
    return lambda problem, X, y, hi, lo, pull, shares=None, offset=0.0: gradient(
        problem, X, y, hi, lo, pull, shares
    )


# Name -> module, name, function from the original to its replacement, and the check that must then fail.
MUTANTS = {
    "every k kept": (norm_draws, "kept", every_k, check_box),
    "signs of a block left out": (norm_draws, "_in_cross", without_signs, check_law),
    "a block's coordinates in order": (norm_draws, "_in_cross", first_coordinates, check_law),
    "a part's rounding left out": (norm_noise, "hiding", without_points, check_output),
    "the tilt's rounding left out": (norm_noise, "output", tilt_not_rounded, check_output),
    "the solver's error counted once": (norm_noise, "output", error_once, check_output),
    "a matrix's sensitivity halved": (norm_noise, "hiding", half_moved, check_matrices),
    "the Jacobian left out": (
        *(norm_models, "pure_epsilon"),
        *(without_jacobian, check_threshold),
    ),
    "the record's shift counted once": (
        *(norm_models, "pure_epsilon"),
        *(shift_once, check_exact_losses),
    ),
    "matrices spend more than their share": (
        *(norm_models, "_by_norm"),
        *(more_than_its_share, check_plans),
    ),
    "a pure release beside a Gaussian one for nothing": (
        *(norm_models, "pure_and_gaussian"),
        *(gaussian_for_nothing, check_composition),
    ),
    "the rate's noise halved": (rate, "noise", twice_the_rate, check_totals),
    "a label moves the rate twice": (rate, "total", labels_twice, check_totals),
    "the exact rate": (lattice, "released", exact_rate, check_parts),
    "the offset left out of the solver": (
        *(tilt, "minimiser"),
        *(without_offset, check_parts),
    ),
    "another offset than the released one": (
        *(rate, "offset"),
        *(half_of_it, check_parts),
    ),
    "one stream for all parts": (models, "Stream", one_stream, check_parts),
    "no rate, though it is planned": (norm_models, "_rate", nothing_first, check_spending),
    "certificates without the offset": (
        *(tilt, "gradient"),
        *(ignoring_offset, check_certificates),
    ),
    "rows of map 1": (contrasts, "all_levels", map_1, found.test_rows_of_map_2_by_hand),
}


@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_fault_is_found(name):
    module, attribute, fault, check = MUTANTS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, attribute, fault(getattr(module, attribute)))
        norm_models.pure_table.cache_clear(), norm_models.mixed_table.cache_clear()
        with pytest.raises((AssertionError, ValueError, RuntimeError, KeyError, StopIteration)):
            check()
    norm_models.pure_table.cache_clear(), norm_models.mixed_table.cache_clear()
