"""Plants faults that would break the guarantee, one at a time, for other tests' checks to find."""

import inspect
from types import FunctionType

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


# Name -> the module, a string in its source, the replacement, and the check that must then fail.
MUTANTS = {
    "sensitivity of the point halved": (
        *(tilt, "(2 * Fraction(tolerance) + rounding)", "(Fraction(tolerance) + rounding / 2)"),
        found.check_given_the_minimiser,
    ),
    "sensitivity of the Hessian halved": (
        *(statistics, "return root(Fraction(2)) * (", "return root(Fraction(2)) / 2 * ("),
        found.check_sensitivities,
    ),
    "rounding of the tilt left out": (
        *(tilt, "+ rounding) / Fraction(problem.lam)", ") / Fraction(problem.lam)"),
        found.check_given_the_minimiser,
    ),
    "g sqrt(d) dropped": (
        *(lattice, "apart = moved + spacing(step) * root(Fraction(count))", "apart = moved"),
        check_lemma,
    ),
    "sigma of the tilt rounded down": (
        *(tilt, "math.ceil(Fraction(deviation) / lat", "math.floor(Fraction(deviation) / lat"),
        found.check_scales_are_rounded_up,
    ),
    "scale of the output noise rounded down": (
        *(lattice, "math.ceil(apart / mu / spacing(step))", "math.floor(apart / mu / spacing(step))"),
        check_lemma,
    ),
    "rows as long as R' in place of R": (
        *(rows, "squares > ONE * ONE)", "squares > (1 + 2e-12) * ONE * ONE)"),
        found_in_rows.check_norms,
    ),
    "length of a long row rounded down": (
        *(rows, "length += length * length < squares[long]", "pass"),
        found_in_rows.check_norms,
    ),
    "long rows may overflow": (
        *(rows, "(np.abs(block) > 1 << 23)", "(np.abs(block) > 1 << 32)"),
        found_in_rows.test_the_widest_and_largest_rows,
    ),
    "noise before rounding": (
        lattice,
        "return [c + z for c, z in zip(centre, noise.draw(stream), strict=True)]",
        "z = [float(each * noise.spacing) for each in noise.draw(stream)]\n"
        "    return nearest([float(v) + each for v, each in zip(values, z)], noise.step)",
        found.check_rounding_ignores_noise,
    ),
    "Hessian at the unreleased point": (
        models,
        'statistics.within(result.floats("weights"), plan.longest)',
        "np.array([float(each) for each in weights])",
        found.check_statistics_belong_to_the_released_point,
    ),
    "one stream for all parts": (
        *(models, 'Stream(key, "weights")', 'Stream(key, "tilt")'),
        found.check_parts_have_their_own_noise,
    ),
    "the solver believed": (
        *(tilt, "size, tolerance):\n            return _exact", "size, 1e300):\n            return _exact"),
        check_solver,
    ),
    "rounding left out of the certificate": (
        *(tilt, "return norm + problem.rounding(size * (1 + 1e-12)) <=", "return norm <="),
        found.test_a_certificate_is_never_given_above_the_tolerance,
    ),
    "sensitivity of held out sums halved": (
        *(holdout, "lattice.covering(apart, mu", "lattice.covering(apart / 2, mu"),
        found_in_holdout.check_scale,
    ),
    "the first rows held out": (
        *(holdout, "order[k], order[other] = order[other], order[k]", "pass"),
        found_in_holdout.check_positions,
    ),
    "training rows in the file's order": (
        *(holdout, "_sorted(V[~out], y[~out], own, each)", "V[~out], y[~out], own"),
        found_in_holdout.check_one_part,
    ),
    "public positions": (
        holdout,
        "held_out(package.n // each, package.held, key).repeat(each)",
        "np.arange(len(V)) < package.held * each",
        found_in_holdout.check_one_part,
    ),
    "a person costs what a row costs": (
        *(person_tilt, "gaussian_profile(2 * most * m, e", "gaussian_profile(2 * m, e"),
        check_bound_of_people,
    ),
    "the Jacobian of people's rows is free": (
        *(person_tilt, "np.where(epsilon < free, paid, 0.0)", "np.zeros_like(epsilon)"),
        found_in_proof.test_far_below_the_threshold_the_jacobian_must_be_paid_for,
    ),
    "statistics of people with the noise of a row": (
        *(models, "statistics.sensitivity(kind, problem) * most", "statistics.sensitivity(kind, problem)"),
        found_in_persons.check_noise,
    ),
    "held out people with the noise of a row": (
        *(holdout, "APART * (1 if model.persons is None else model.persons.weight)", "APART"),
        found_in_persons.check_noise_on_held_out_people,
    ),
    "rows of a person weigh 1 each": (
        *(persons, "rows.ONE // len(own)", "rows.ONE"),
        check_weights_of_people,
    ),
    "rows beyond the most of a person replace others": (
        *(persons, "            dropped += 1", "            kept[0] = v.copy(), label"),
        found_in_persons.test_the_first_rows_of_a_person_are_kept_and_others_count_nothing,
    ),
    "ids without a byte comparison": (
        *(persons, "people.setdefault(own, [])", 'people.setdefault(own.lstrip(b"0"), [])'),
        found_in_persons.test_ids_are_compared_byte_by_byte_and_rows_without_one_count_nothing,
    ),
    "surplus people in the file's order": (
        *(persons, 'sorted(ids, key=lambda each: hmac.digest(own, each, "sha256"))', "list(ids)"),
        found_in_persons.test_surplus_people_are_dropped_by_the_key_and_nobody_is_favoured,
    ),
    "sensitivity of counts halved": (
        *(bounds, "Fraction(2 * most)", "Fraction(most)"),
        found_in_bounds.check_noise,
    ),
    "one stream for all columns": (
        *(bounds, 'Stream(key, f"{what} of {name}")', "Stream(key, what)"),
        found_in_bounds.check_columns_have_their_own_noise,
    ),
    "zero counted twice": (
        *(draws, "if size or not negative:", "if True:"),
        check_law,
    ),
}  # fmt: skip


def patched(module, old, new, patch):
    """Replace the only occurrence of `old` in the module's functions and methods with `new`."""
    source = inspect.getsource(module)
    assert source.count(old) == 1, f"{old!r} is {source.count(old)} times in {module.__name__}"
    namespace = dict(vars(module))
    exec(compile(source.replace(old, new), module.__file__, "exec"), namespace)
    # Other modules have imported the functions, so their code is replaced in place.
    for name, changed in namespace.items():
        original = vars(module).get(name)
        both = isinstance(original, FunctionType) and isinstance(changed, FunctionType)
        if both and original.__module__ == module.__name__:
            patch.setattr(original, "__code__", changed.__code__)


@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_fault_is_found(name):
    module, old, new, check = MUTANTS[name]
    check()
    with pytest.MonkeyPatch.context() as patch:
        patched(module, old, new, patch)
        with pytest.raises((AssertionError, ValueError)):
            check()
    check()
