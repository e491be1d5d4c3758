"""Mechanisms behave alike on neighbours with degenerate rows.

Otherwise a record could change how others are treated, which no sensitivity covers.
"""

import math

import numpy as np
import pytest

from dp.mechanisms import MECHANISMS, Mechanism, Release, tukey_em
from dp.mechanisms.few_columns import FewColumns
from dp.rows import check_rows
from dp.seeds import generator
from dp_audit import audit, branches
from dp_audit.branches import differences, neighbours, numbers
from dp_privacy import composition
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE
from dp_privacy.errors import Refused
from reference import OF_CLASSES
from study.data.preparation import Table, prepare

PRIVATE = sorted(name for name in MECHANISMS if MECHANISMS[name].private)


def settings(mechanism):
    """epsilon = 1, lambda if needed, and a delta so large that hundreds of draws show differences."""
    arguments = {"epsilon": 1.0} | ({"delta": 0.01} if mechanism.delta == "needed" else {})
    arguments |= {"lam": 0.1} if mechanism.needs_lambda else {}
    arguments |= {"classes": 3} if mechanism.name in OF_CLASSES else {}
    few = {"iterations": 2, "rounds": 2, "epochs": 1, "public_iterations": 2}
    return arguments | {name: few[name] for name in few.keys() & mechanism.options.keys()}


def of_classes(cases):
    for name, *sides in cases:
        yield name, *((X, np.where(y > 0, 1, 0)) for X, y in sides)


def for_numbers(mechanism):
    """Options with which a mechanism does regression, or None."""
    loss = mechanism.options.get("loss")
    for options in [{}] if loss is None else [{"loss": loss.default}, {"loss": "log_cosh"}]:
        try:
            mechanism.check_options(options)
        except Refused:
            continue
        if mechanism.takes_numbers(options):
            return options
    return None


@pytest.fixture
def few_traced(monkeypatch):
    """A line that a record decides runs unlike often in any draw, so few are recorded."""
    monkeypatch.setattr(branches, "TRACED", 3)


@pytest.mark.parametrize("name", PRIVATE)
def test_neighbours_have_the_same_branches(name, few_traced):
    mechanism = MECHANISMS[name]
    cases = of_classes(neighbours(48, 2)) if name in OF_CLASSES else None
    # 60 draws show a result without noise. Those of counts are slow, so only branches are compared.
    draws = 3 if "counts" in name and "objective" in name else 60
    faults = differences(mechanism, settings(mechanism), cases=cases, draws=draws)
    options = for_numbers(mechanism)
    if options is not None:
        arguments = settings(mechanism) | options
        cases = numbers(800 if name == "tukey_em" else 48)
        faults += differences(mechanism, arguments, cases=cases, draws=draws)
    assert not faults, "\n".join(faults)


# They solve what `output_perturbation` or `objective_perturbation` solves, by the same code.
SOLVED_ALIKE = {
    *("laplace_coordinates", "laplace_l1", "output_perturbation_gaussian"),
    *("objective_perturbation_cm08", "objective_unscaled_released"),
}
SOLVING = [n for n in PRIVATE if MECHANISMS[n].fit in ("l2", "elastic_net")]


@pytest.mark.parametrize("name", sorted({*SOLVING} - SOLVED_ALIKE))
@pytest.mark.parametrize(
    ("n", "d"), [(2100, 3), (60, 45), pytest.param(2100, 45, marks=pytest.mark.slow)]
)
def test_every_way_of_a_solver_ends_with_a_certificate(name, n, d, few_traced):
    """The cases cover a start on a sample of rows, a start in single precision, and wide rows."""
    mechanism = MECHANISMS[name]
    arguments = settings(mechanism)
    assert not differences(mechanism, arguments, cases=neighbours(n, d), draws=2)
    for _, *sides in neighbours(n, d):
        for X, y in sides:
            release = mechanism.release(X, y, restarts=3, rng=generator(3), **arguments)
            assert (release.status == "ok").all()


def test_cases_are_neighbours_within_their_bound():
    for name, (X, y), (X_other, y_other) in [*neighbours(20, 3, 2.0), *numbers(20, 2.0)]:
        changed = (X_other != X).any(axis=1) | (y != y_other)
        assert changed[0] and changed.sum() == 1, name
        for rows in (X, X_other):
            assert np.linalg.norm(rows, axis=1).max() <= 2 * (1 + 1e-15)
        assert max(np.abs(y).max(), np.abs(y_other).max()) <= 1


# ---- singular parts


class Together(tukey_em.TukeyEM):
    """TukeyEM with a fault: if one matrix is singular, another algorithm fits all parts."""

    name = "together"

    def _points(self, X, y, m, lam, draws, rng):
        n, d = X.shape
        points = np.empty((draws, m, d))
        for r in range(draws):
            rows = rng.permutation(n)[: m * (n // m)]
            A, b = X[rows].reshape(m, -1, d), y[rows].reshape(m, -1, 1)
            gram, moment = A.transpose(0, 2, 1) @ A, A.transpose(0, 2, 1) @ b
            try:
                inverses = np.linalg.inv(gram)
            except np.linalg.LinAlgError:
                inverses = np.linalg.pinv(gram, rcond=1e-13, hermitian=True)
            points[r] = (inverses @ moment)[..., 0]
        return np.sort(points + 1e-10 * rng.random(points.shape), axis=1)


def exact_fit(n):
    return [next(numbers(n))]


def test_a_singular_part_moves_no_other_fit():
    [(_, (X, y), (X_other, y_other))] = exact_fit(2000)
    assert np.array_equal(X[1:], X_other[1:]) and not X_other[0].any()
    arguments = 1000, 0.0, 3
    points = MECHANISMS["tukey_em"]._points(X, y, *arguments, generator(5))
    other = MECHANISMS["tukey_em"]._points(X_other, y_other, *arguments, generator(5))
    for first, second in zip(points.reshape(-1, 1000, 2), other.reshape(-1, 1000, 2), strict=True):
        for j in range(2):  # columns are sorted, and only one part's fit changes
            assert len(np.setdiff1d(first[:, j], second[:, j])) <= 1
    moved = [
        Together()._points(*side, *arguments, generator(5)) for side in ((X, y), (X_other, y_other))
    ]
    assert len(np.setdiff1d(moved[0][0, :, 1], moved[1][0, :, 1])) > 900


def test_stacks_of_matrices_are_decomposed_one_by_one():
    """Replacing matrices of a stack changes no bit of the others' results, as `_shortest_fits` requires."""
    rng = generator(6)
    for d in (1, 2, 3, 7, 20):
        A = rng.standard_normal((200, d + 2, d))
        gram, moment = A.transpose(0, 2, 1) @ A, A.transpose(0, 2, 1) @ rng.random((200, d + 2, 1))
        expected = tukey_em._shortest_fits(gram, moment)
        np.testing.assert_allclose(gram @ expected, moment, rtol=1e-6, atol=1e-6)
        for replacement in (0.0, 1e-320, 1e-160, np.ones((d, d)), 1e100 * np.eye(d)):
            gram_other = gram.copy()
            gram_other[::3] = replacement
            actual = tukey_em._shortest_fits(gram_other, moment)
            assert np.isfinite(actual).all()
            for k in (1, 2):
                np.testing.assert_array_equal(actual[k::3], expected[k::3])
        for k in range(0, 200, 17):
            one = tukey_em._shortest_fits(gram[k : k + 1], moment[k : k + 1])
            np.testing.assert_array_equal(one[0], expected[k])


def test_the_attack_that_showed_the_fault():
    [(_, *sides)] = exact_fit(800)
    arguments = {"epsilon": 1.0, "delta": 0.01, "trials": 600}
    old = audit.attack(Together(), sides, rng=generator(7), **arguments)["epsilon"]
    new = audit.attack(MECHANISMS["tukey_em"], sides, rng=generator(7), **arguments)["epsilon"]
    assert old > 1.5 and new <= 0.5, (old, new)


class Planted(Mechanism):
    """Mean of the rows plus sufficient noise. Subclasses add faults."""

    name = "planted"
    needs_lambda = False

    def _guarantee(self, n, d, p):
        return "planted"

    def _release(self, X, y, p, draws, rng):
        return X.mean(axis=0) + rng.laplace(
            scale=2 * X.shape[1] / p.epsilon, size=(draws, X.shape[1])
        )


class Raises(Planted):
    def _release(self, X, y, p, draws, rng):
        X / (1 if np.linalg.matrix_rank(X) == X.shape[1] else [])
        return super()._release(X, y, p, draws, rng)


class SetsAStatus(Planted):
    def _release(self, X, y, p, draws, rng):
        weights = super()._release(X, y, p, draws, rng)
        status = np.full(draws, "ok" if X.any(axis=1).all() else "singular")
        return Release(weights, status, {})


class ChangesAForm(Planted):
    def _release(self, X, y, p, draws, rng):
        classes = len(np.unique(y))
        return super()._release(X, y, p, draws, rng), {"counts": np.zeros((draws, classes))}


class FallsBack(Planted):
    def _release(self, X, y, p, draws, rng):
        weights = super()._release(X, y, p, draws, rng)
        if not X.any(axis=1).all():
            weights = weights + 0.0
        return weights


class CountsRows(Planted):
    threshold = 0.3

    def _release(self, X, y, p, draws, rng):
        weights = super()._release(X, y, p, draws, rng)
        for _ in range(int((np.linalg.norm(X, axis=1) > self.threshold).sum())):
            weights = 0.999 * weights
        return weights


class SumsAllRows(Planted):
    """Sound: a loop that treats all rows alike."""

    def _release(self, X, y, p, draws, rng):
        total = np.zeros(X.shape[1])
        for x in X:
            total += x * min(1.0, 0.3 / max(np.linalg.norm(x), 1e-300))
        scale = 2 * X.shape[1] / (len(X) * p.epsilon)
        return total / len(X) + rng.laplace(scale=scale, size=(draws, X.shape[1]))


class ClipsByABranch(SumsAllRows):
    """As sound, but it leaves this to its author: one record decides how often a line runs."""

    def _release(self, X, y, p, draws, rng):
        return super()._release(np.array([self._clipped(x) for x in X]), y, p, draws, rng)

    def _clipped(self, x):
        if np.linalg.norm(x) > 0.3:
            x = x * 0.3 / np.linalg.norm(x)
        return x


class LosesItsNoise(Planted):
    def _release(self, X, y, p, draws, rng):
        weights = super()._release(X, y, p, draws, rng)
        return np.where(np.linalg.matrix_rank(X) < X.shape[1], X.mean(axis=0), weights)


@pytest.mark.parametrize(
    ("mechanism", "word"),
    [
        (Raises, "error"),
        (SetsAStatus, "the status"),
        (ChangesAForm, "have the forms"),
        (FallsBack, "runs on one side only"),
        (CountsRows, "runs 48 and 47 times"),
        (ClipsByABranch, "_clipped) runs "),
        (LosesItsNoise, "weights show"),
    ],
)
def test_planted_faults_are_found(mechanism, word):
    faults = differences(mechanism(), {"epsilon": 1.0})
    assert any(word in what for what in faults), faults


@pytest.mark.parametrize("threshold", [0.02, 0.6, 0.9, 0.999])
def test_a_loop_over_some_rows_is_found_whatever_the_threshold(threshold):
    mechanism = CountsRows()
    mechanism.threshold = threshold
    assert any(
        "(CountsRows._release) runs" in what for what in differences(mechanism, {"epsilon": 1.0})
    )


@pytest.mark.parametrize("mechanism", [Planted, SumsAllRows])
def test_without_a_fault_nothing_is_found(mechanism):
    assert not differences(mechanism(), {"epsilon": 1.0})


def test_an_author_names_functions_whose_branches_are_private():
    mechanism = ClipsByABranch()
    mechanism.may_branch = ("_clipped",)
    assert not differences(mechanism, {"epsilon": 1.0})


def test_the_old_fits_are_found():
    arguments = {"epsilon": 1.0, "delta": 0.01}
    *lines, last = differences(Together(), arguments, cases=exact_fit(800))
    assert lines and all("_points) runs on one side only" in what for what in lines), lines
    assert "weights show" in last


def test_what_is_claimed_is_tested_where_nothing_is_proven():
    mechanism = LosesItsNoise()
    mechanism.proven = False
    assert math.isnan(mechanism.guarantee(5, 2, epsilon=1.0).epsilon)
    assert any("weights show" in what for what in differences(mechanism, {"epsilon": 1.0}))


# ---- preparation of one extreme record, without refusal or endless loop

STEPS = [
    [("clip", {"radius": 0.5})],
    [("scale_by_constants", {"*": [0, 0.1]}), ("row_norm", {})],
    [("scale_by_constants", {"*": [-1e308, 1]}), ("clip", {"radius": 1.0})],
    [("random_projection", {"dimension": 2}), ("row_norm", {})],
    [("constant_feature", {}), ("clip", {"radius": 1.0})],
]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("value", [1.7e308, 1e160, 1e-160, 5e-324])
def test_an_extreme_row_is_prepared_like_any_other(steps, value):
    X, labels = generator(8).standard_normal((5, 2)), np.ones(5)
    other = X.copy()
    other[0] = value, -value
    results = []
    for rows in (X, other):
        table = Table(rows, labels, ("a", "b"))
        prepared, _ = prepare(table, steps, rng_of=lambda *_: generator(9))
        check_rows(prepared.X, prepared.y, prepared.bound)
        results.append(prepared.X)
    np.testing.assert_array_equal(results[0][1:], results[1][1:])


@pytest.mark.parametrize("name", [n for n in PRIVATE if MECHANISMS[n].delta != "none"])
def test_a_delta_is_served_or_refused_in_one_sentence(name):
    mechanism = MECHANISMS[name]
    arguments, smallest = settings(mechanism), mechanism.least_delta
    if isinstance(mechanism, FewColumns):  # it depends on the number of noisy values
        smallest = mechanism.smallest_delta(60, 3, mechanism.parameters(60, 3, **arguments))
    for delta in (mechanism.least_delta * (1 - 1e-9), smallest * (1 - 1e-9), 5e-324):
        with pytest.raises(Refused, match=r"needs a delta of at least [^\n]*$"):
            mechanism.guarantee(60, 3, **arguments | {"delta": delta})
    least = mechanism.guarantee(60, 3, **arguments | {"delta": smallest})
    assert not least.epsilon <= 0 and least.adjacency  # NaN where nothing is proven


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_the_multiplier_of_sampled_steps_follows_delta_or_is_refused(adjacency):
    """The multiplier grows approximately as sqrt(log(1/delta)).

    Rounding would make it 20 times too large at a delta of 1e-15, so such deltas are refused.
    """
    steps = 1.0, 300, 0.05
    results = [
        composition.sampled_multiplier(steps[0], delta, *steps[1:], adjacency)[0]
        for delta in (1e-10, 1e-12, composition.LEAST_DELTA)
    ]
    assert results == sorted(results) and results[-1] < 1.2 * results[0]
    for delta in (1e-14, 1e-16, 1e-300):
        with pytest.raises(Refused, match="at least 1e-13"):
            composition.sampled_multiplier(steps[0], delta, *steps[1:], adjacency)
