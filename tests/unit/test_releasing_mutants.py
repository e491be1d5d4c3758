"""Plants faults that would break the guarantee, one at a time, for other tests' checks to find.

A fault is a function in place of another, which other modules call by its module's name.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import test_found_bounds as found_in_bounds
import test_person_tilt as found_in_proof
import test_releasing as found
import test_releasing_draws as found_in_draws
import test_releasing_holdout as found_in_holdout
import test_releasing_persons as found_in_persons
import test_releasing_rows as found_in_rows

from dp.proofs import person_tilt
from dp_release import bounds, draws, holdout, lattice, models, persons, rows, statistics, tilt


def check_lemma():
    for moved, mu in ((0.003, 0.4), (0.1, 0.4), (1.0, 1.0)):
        found.check_lemma_2(moved, mu, 2)


def check_solver():
    with pytest.MonkeyPatch.context() as patch:
        found.test_a_solver_that_fails_is_not_believed(patch)


def check_law():
    found_in_draws.test_gaussian_draws_have_their_exact_probabilities("4")


def check_bound_of_people():
    found_in_proof.test_no_pair_exceeds_the_bound("logistic", 1.0, (1.0, 1.0))


def check_weights_of_people():
    found_in_persons.test_rounded_weights_add_up_to_at_most_one(3)


def point_halved(moved):
    return lambda *arguments: moved(*arguments) / 2


def halved(kind):
    """The sensitivity of one kind of statistics halved."""

    def fault(sensitivity):
        return lambda k, problem: sensitivity(k, problem) / (2 if k == kind else 1)

    return fault


def tilt_not_rounded(moved):
    return lambda problem, step, tolerance: moved(problem, None, tolerance)


def lattice_is_free(covering):
    """The term g sqrt(d) dropped."""

    def fault(moved, mu, count, *bits):
        noise = covering(moved, mu, count, *bits)
        scale = math.ceil(Fraction(moved) / Fraction(mu) / noise.spacing)
        return noise._replace(scale=scale, mu=Fraction(moved) / (scale * noise.spacing))

    return fault


def one_less(noise):
    return noise._replace(scale=noise.scale - 1, mu=noise.mu * noise.scale / (noise.scale - 1))


def sigma_rounded_down(make):
    def fault(*arguments):
        made = make(*arguments)
        return made._replace(noise=one_less(made.noise))

    return fault


def scale_rounded_down(covering):
    return lambda *arguments: one_less(covering(*arguments))


def squares(V):
    return (V.astype(object) ** 2).sum(axis=1)


def slightly_long(shortened):
    """Rows are as long as R' in place of R."""

    def fault(V):
        out, size = shortened(V), squares(V)
        nearly = (size <= (1 + 2e-12) * rows.ONE**2).astype(bool)
        out[nearly] = V[nearly]
        return out

    return fault


def root_rounded_down(shortened):
    """A long row is divided by its length rounded down."""

    def fault(V):
        out = shortened(V)
        for k, size in enumerate(squares(V)):
            if size > rows.ONE**2:
                parts = [abs(int(v)) * rows.ONE // math.isqrt(size) for v in V[k]]
                out[k] = np.copysign(parts, V[k])
        return out

    return fault


def overflow(shortened):
    """Squares of long rows are summed as they are."""

    def fault(V):
        wide = np.clip(V.astype(np.int64), -(1 << 31), 1 << 31)
        return np.where((np.einsum("ij,ij->i", wide, wide) > rows.ONE**2)[:, None], shortened(V), V)

    return fault


def noise_before_rounding(_):
    def fault(values, noise, stream):
        z = [float(each * noise.spacing) for each in noise.draw(stream)]
        return lattice.nearest(
            [float(v) + each for v, each in zip(values, z, strict=True)], noise.step
        )

    return fault


def beside_the_released_point(within):
    """Statistics are of a point close to the released one, as the minimiser is."""
    return lambda point, longest: within(point, longest) + 1e-3


def one_stream(stream):
    return lambda key, part: stream(key, "tilt")


def believed(certified):
    return lambda problem, g, size, tolerance: certified(problem, g, size, 1e300)


def rounding_left_out(_):
    return lambda problem, g, size, tolerance: math.hypot(*g) * (1 + 1e-12) <= tolerance


def sums_halved(covering):
    """The sensitivity of held out sums halved."""

    def fault(moved, *arguments):
        return covering(moved / 2 if moved == holdout.APART else moved, *arguments)

    return fault


def first_rows(_):
    return lambda n, held, key: np.arange(n) < held


def public_positions(held_out):
    return lambda n, held, key: held_out(n, held, bytes(32))


def in_the_files_order(_):
    return lambda V, y, shares, each: (V, y, shares)


def of_one_row(replacement):
    """A person's profile is that of a row."""
    return lambda epsilon, m, r, most, *loss: replacement(epsilon, m, r, 1, *loss)


def weighs_one(_):
    return property(lambda self: 1)


def weights_of_one(filled):
    """Each row of a person weighs 1."""

    def fault(people, d, kind):
        table = filled(people, d, kind)
        return table._replace(shares=np.where(table.shares > 0, rows.ONE, 0).astype(np.int32))

    return fault


def last_rows_kept(read):
    return lambda schema, lines, kind: read(schema, list(lines)[::-1], kind)


def in_the_order_of_ids(_):
    return lambda ids, count, key: sorted(ids)[:count]


def counts_halved(noise):
    """The sensitivity of counts halved."""
    return lambda mu, *arguments, **options: noise(2 * mu, *arguments, **options)


def zero_twice(_):
    """A draw -0 counts as 0."""

    def fault(scale, stream):
        while True:
            rest = stream.below(scale)
            if draws.bernoulli_exp(rest, scale, stream):
                break
        whole = 0
        while draws.bernoulli_exp(1, 1, stream):
            whole += 1
        size = rest + scale * whole
        return -size if stream.bits(1) else size

    return fault


# Name -> the module, its function, the fault in its place, and the check that must then fail.
MUTANTS = {
    "sensitivity of the point halved": (
        *(tilt, "moved", point_halved),
        found.check_given_the_minimiser,
    ),
    "sensitivity of the Hessian halved": (
        *(statistics, "sensitivity", halved("hessian")),
        found.check_sensitivities,
    ),
    "sensitivity of the scores halved": (
        *(statistics, "sensitivity", halved("scores")),
        found.check_sensitivities,
    ),
    "sensitivity of the square halved": (
        *(statistics, "sensitivity", halved("square")),
        found.check_sensitivities,
    ),
    "rounding of the tilt left out": (
        *(tilt, "moved", tilt_not_rounded),
        found.check_given_the_minimiser,
    ),
    "g sqrt(d) dropped": (lattice, "covering", lattice_is_free, check_lemma),
    "sigma of the tilt rounded down": (
        *(tilt, "tilt", sigma_rounded_down),
        found.check_scales_are_rounded_up,
    ),
    "scale of the output noise rounded down": (
        *(lattice, "covering", scale_rounded_down),
        check_lemma,
    ),
    "rows as long as R' in place of R": (
        *(rows, "shortened", slightly_long),
        found_in_rows.check_norms,
    ),
    "length of a long row rounded down": (
        *(rows, "shortened", root_rounded_down),
        found_in_rows.check_norms,
    ),
    "long rows may overflow": (
        *(rows, "shortened", overflow),
        found_in_rows.test_the_widest_and_largest_rows,
    ),
    "noise before rounding": (
        *(lattice, "released", noise_before_rounding),
        found.check_rounding_ignores_noise,
    ),
    "Hessian beside the released point": (
        *(statistics, "within", beside_the_released_point),
        found.check_statistics_belong_to_the_released_point,
    ),
    "one stream for all parts": (
        *(models, "Stream", one_stream),
        found.check_parts_have_their_own_noise,
    ),
    "the solver believed": (tilt, "certified", believed, check_solver),
    "rounding left out of the certificate": (
        *(tilt, "certified", rounding_left_out),
        found.test_a_certificate_is_never_given_above_the_tolerance,
    ),
    "sensitivity of held out sums halved": (
        *(lattice, "covering", sums_halved),
        found_in_holdout.check_scale,
    ),
    "the first rows held out": (
        *(holdout, "held_out", first_rows),
        found_in_holdout.check_positions,
    ),
    "public positions": (holdout, "held_out", public_positions, found_in_holdout.check_positions),
    "training rows in the file's order": (
        *(holdout, "_sorted", in_the_files_order),
        found_in_holdout.check_one_part,
    ),
    "a person costs what a row costs": (
        *(person_tilt, "replacement", of_one_row),
        check_bound_of_people,
    ),
    "statistics of people with the noise of a row": (
        *(persons.Persons, "weight", weighs_one),
        found_in_persons.check_noise,
    ),
    "held out people with the noise of a row": (
        *(persons.Persons, "weight", weighs_one),
        found_in_persons.check_noise_on_held_out_people,
    ),
    "rows of a person weigh 1 each": (
        *(persons, "filled", weights_of_one),
        check_weights_of_people,
    ),
    "the last rows of a person kept": (
        *(persons, "read", last_rows_kept),
        found_in_persons.test_the_first_rows_of_a_person_are_kept_and_others_count_nothing,
    ),
    "surplus people in the order of ids": (
        *(persons, "chosen", in_the_order_of_ids),
        found_in_persons.test_surplus_people_are_dropped_by_the_key_and_nobody_is_favoured,
    ),
    "sensitivity of counts halved": (
        *(bounds, "noise", counts_halved),
        found_in_bounds.check_noise,
    ),
    "one stream for all columns": (
        *(bounds, "Stream", one_stream),
        found_in_bounds.check_columns_have_their_own_noise,
    ),
    "zero counted twice": (draws, "discrete_laplace", zero_twice, check_law),
}


@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_fault_is_found(name):
    module, function, fault, check = MUTANTS[name]
    check()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, function, fault(getattr(module, function)))
        with pytest.raises((AssertionError, ValueError)):
            check()
    check()
