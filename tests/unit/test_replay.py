"""Replay measures known distances, and finds faults without knowing where they are."""

import math

import numpy as np
import pytest

from dp import noise
from dp.mechanisms import MECHANISMS, Mechanism
from dp.options import ADJACENCY, PUBLIC_N
from dp.seeds import generator
from dp.solvers.newton import minimise
from dp_audit import audit, pairs, replay
from dp_audit.recorder import Recorder, Tape
from dp_privacy.accounting import (
    ADD_REMOVE,
    REPLACE_ONE,
    Guarantee,
    gaussian_epsilon,
    gaussian_sigma,
)
from dp_privacy.errors import Refused
from dp_release import lattice, models, rows
from lattices import from_floats, of_release
from reference import OF_CLASSES

EPSILON, DELTA = 1.0, 1e-5
PRIVATE = [name for name in MECHANISMS if MECHANISMS[name].private]


def settings(name):
    return audit.spent(MECHANISMS[name], EPSILON, DELTA) | {"lam": 1.0, "bound": 1.0}


def findings(run, delta=DELTA, names=replay.GENERAL):
    outcomes = [
        replay.replay(run, *pairs.find(name).sides, epsilon=EPSILON, delta=delta) for name in names
    ]
    return min(outcomes, key=lambda outcome: replay.FINDINGS.index(outcome.finding))


@pytest.mark.parametrize(
    ("law", "scale", "expected"),
    [
        (noise.gaussian, 3.0, gaussian_epsilon(3.0, DELTA, 5.0)),
        (noise.laplace, 2.0, 7 / 2),  # |3| + |4|
        (noise.l2_laplace, 2.0, 5 / 2),
    ],
)
def test_a_distance_over_a_scale(law, scale, expected):
    def run(X, y, rng):
        return X.sum(axis=0) + law(2, scale, 1, rng)

    first, second = np.zeros((1, 2)), np.array([[3.0, 4.0]])
    actual = replay.replay(run, (first, None), (second, None), epsilon=9.0, delta=DELTA)
    assert actual.finding == replay.HOLDS
    assert actual.epsilon == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("draw", ["standard_normal", "normal", "laplace"])
def test_numpy_s_own_draws_are_followed(draw):
    def run(X, y, rng):
        if draw == "standard_normal":
            return X[0] * 2 + 0.5 * rng.standard_normal(2)
        return getattr(rng, draw)(X[0] * 2, 0.5)

    replayed = replay.replay(
        run, (np.zeros((1, 2)), 0), (np.ones((1, 2)), 0), epsilon=99, delta=DELTA
    )
    size = 8.0 if draw == "laplace" else gaussian_epsilon(1.0, DELTA, math.sqrt(32))
    assert replayed.epsilon == pytest.approx(size, rel=1e-9)


def test_an_adaptive_descent_is_measured_at_the_first_run_s_transcript():
    """Both runs take two steps on quadratics. Both second gradients are at the first run's noisy point."""
    seen = []

    def run(X, y, rng):
        w = np.zeros(2)
        for _ in range(2):
            gradient = (X * (X @ w - y)[:, None]).sum(axis=0)
            seen.append(gradient)
            w = w - 0.1 * (gradient + noise.gaussian(2, 2.0, 1, rng)[0])
        return w

    X, y = np.array([[1.0, 0], [0, 1]]), np.array([1.0, -1])
    replayed = replay.replay(run, (X, y), (X, np.array([1.0, 1])), epsilon=99, delta=DELTA)
    moved = [np.linalg.norm(seen[k] - seen[k + 2]) / 2 for k in range(2)]
    assert moved[0] == moved[1]  # at one point, gradients differ only in the targets' part
    assert replayed.mu == pytest.approx(math.hypot(*moved))


def test_a_symmetric_matrix_s_noise_counts_once():
    """Mirrored entries share one draw, so isotropic noise is for a sensitivity in the Frobenius norm."""
    replayed, stated = replay.of_mechanism(
        "sufficient_statistics", "turned_row", EPSILON, DELTA, lam=0.0
    )
    (X, y), (X_other, y_other) = pairs.find("turned_row").sides
    moved = np.linalg.norm(X.T @ X - X_other.T @ X_other) ** 2
    moved += np.linalg.norm(X.T @ y - X_other.T @ y_other) ** 2
    sigma = gaussian_sigma(EPSILON, DELTA, math.sqrt(2) * 1.5)
    assert replayed.mu == pytest.approx(math.sqrt(moved) / sigma)
    assert stated.epsilon == EPSILON


def test_a_law_without_a_known_distance_is_a_choice():
    @noise.law
    def logistic(dimension, scale, size, rng):
        return scale * rng.logistic(size=(size, dimension))

    def run(X, y, rng):
        return X.sum(axis=0) + logistic(X.shape[1], 9.0, 1, rng)

    found = replay.replay(run, *pairs.find("reversed_row").sides, epsilon=1.0)
    assert found.finding == replay.CHOICE and "logistic" in found.why


def test_the_same_weights_as_without_a_replay():
    X, y = pairs.find("turned_row").sides[0]
    for name in sorted(set(PRIVATE) - set(OF_CLASSES)):
        mechanism = audit.find(name)
        rng = np.random.Generator(np.random.PCG64(3))
        plain = mechanism.release(X, y, rng=rng, **settings(name))
        rng = Recorder(np.random.PCG64(3), Tape())
        followed = mechanism.release(X, y, rng=rng, **settings(name))
        # Moments with noise can be nearly singular: weights of 1e7 differ by 4e-9 of themselves on some
        # processors, whose sums have another order. Another draw would change them by their own size.
        np.testing.assert_allclose(
            np.asarray(followed.weights), plain.weights, rtol=1e-7, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize(
    ("mechanism", "pair", "options", "epsilon"),
    [
        ("functional_gaussian", "opposite_corner", {}, EPSILON),
        ("dp_gd", "opposite_corner", {"iterations": 1, "clip": 0.5}, EPSILON),
        ("output_perturbation_gaussian", "linear_part", {}, EPSILON),
        ("boosted_adassp", "curvature", {"adjacency": "add-remove", "lam": 0}, EPSILON),
    ],
)
def test_worst_pairs_reach_what_is_stated(mechanism, pair, options, epsilon):
    replayed, _ = replay.of_mechanism(mechanism, pair, EPSILON, DELTA, **options)
    assert replayed.finding == replay.HOLDS
    assert replayed.epsilon == pytest.approx(epsilon, rel=1e-3)


def clipped(X, radius=1.0):
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X * np.minimum(1.0, radius / np.maximum(norms, 1e-300))


SIGMA = gaussian_sigma(EPSILON, DELTA, 2.0)  # for a sum of rows of norm at most 1, replace-one


def right(X, y, rng):
    return clipped(X).sum(axis=0) + noise.gaussian(X.shape[1], SIGMA, 1, rng)[0]


def classes_from_the_rows(X, y, rng):
    return [X[y == k].sum(axis=0) + rng.normal(0, SIGMA, X.shape[1]) for k in np.unique(y)]


def scale_from_the_number_of_rows(X, y, rng):
    X = X[X.any(axis=1)]
    return X.sum(axis=0) / len(X) + rng.normal(0, SIGMA / len(X), X.shape[1])


def no_clipping(X, y, rng):
    return 3 * X.sum(axis=0) + rng.normal(0, SIGMA, X.shape[1])


def lower_bound_twice(X, y, rng):
    lower, upper = 0.0, 1.0
    sensitivity = max(abs(lower), abs(lower)) ** 2
    assert upper
    return (X**2).sum(axis=0) + rng.laplace(0, X.shape[1] * sensitivity / EPSILON, X.shape[1])


def not_a_number(X, y, rng):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)  # a row of zeros has no direction
    return unit.sum(axis=0) + rng.normal(0, SIGMA, X.shape[1])


def budget_twice(X, y, rng):
    first = clipped(X).sum(axis=0) + rng.normal(0, SIGMA, X.shape[1])
    second = (clipped(X) * y[:, None]).sum(axis=0) + rng.normal(0, SIGMA, X.shape[1])
    return first, second


def root_two_missing(X, y, rng):
    """X'X with noise for a sensitivity of 1: enough for removing a row, but not for turning it by 90°."""
    d = X.shape[1]
    sigma = gaussian_sigma(EPSILON, DELTA, 1.0)
    noisy = rng.normal(0, 1, (d, d)) * sigma
    return clipped(X).T @ clipped(X) + noisy


def exact_size(X, y, rng):
    noisy = X.sum(axis=0) + rng.normal(0, SIGMA, X.shape[1])
    return noisy * np.linalg.norm(X.sum(axis=0))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (classes_from_the_rows, {replay.FLOW}),
        (scale_from_the_number_of_rows, {replay.LEAKS}),
        (no_clipping, {replay.EXCEEDS}),
        (lower_bound_twice, {replay.LEAKS}),
        (not_a_number, {replay.LEAKS}),
        (budget_twice, {replay.EXCEEDS}),
        (root_two_missing, {replay.EXCEEDS}),
        (exact_size, {replay.LEAKS}),
    ],
)
def test_planted_faults(fault, expected):
    delta = 0.0 if fault is lower_bound_twice else DELTA
    assert findings(fault, delta).finding in expected
    assert findings(right).finding == replay.HOLDS


@pytest.mark.parametrize(
    "run",
    [
        lambda X, y, rng: np.linalg.solve(X.T @ X + np.eye(3), rng.standard_normal(3)),
        lambda X, y, rng: X[rng.random(len(X)) < 0.5].sum(axis=0) + rng.standard_normal(3),
        lambda X, y, rng: int((X.sum(axis=0) + rng.gumbel(size=3)).argmax()),
        lambda X, y, rng: X[rng.choice(len(X))],
    ],
)
def test_what_is_not_additive_never_holds(run):
    results = [
        replay.replay(run, *pairs.find(name).sides, epsilon=1e9, delta=DELTA)
        for name in replay.GENERAL[:3]
    ]
    assert {each.finding for each in results} == {replay.CHOICE}
    assert all(math.isnan(each.epsilon) for each in results)


def test_the_order_of_rows_is_no_choice():
    def run(X, y, rng):
        half = rng.permutation(len(X))[: len(X) // 2]
        return X[half].sum(axis=0) + rng.normal(0, SIGMA, 3)

    assert findings(run, names=replay.GENERAL[:4]).finding == replay.HOLDS


def test_no_order_is_compared_with_one_of_fewer_rows():
    def run(X, y, rng):
        return X[rng.permutation(len(X))].sum(axis=0) + rng.normal(0, SIGMA, 3)

    first, second = pairs.find("left_out").sides
    replayed = replay.replay(run, first, second, epsilon=1, delta=DELTA)
    assert replayed.finding == replay.CHOICE and "permutation" in replayed.why


def test_a_refusal_of_one_side_is_control_flow():
    def run(X, y, rng):
        if not X[0].any():
            raise ValueError("a row of zeros")
        return X.sum(axis=0) + rng.normal(0, SIGMA, 3)

    replayed = replay.replay(run, *pairs.find("removed_row").sides, epsilon=1, delta=DELTA)
    assert replayed.finding == replay.FLOW and "a row of zeros" in replayed.why


def test_only_the_last_iterate_is_stated():
    replayed, stated = replay.of_mechanism(
        *("dp_gd", "opposite_corner", EPSILON, DELTA),
        **{"iterations": 20, "clip": 0.5, "accounting": "last_iterate"},
    )
    assert replayed.finding == replay.CHOICE and replayed.epsilon > stated.epsilon


class Claims(Mechanism):
    name = "claims"
    needs_lambda = False

    def __init__(self, claimed, proven):
        self.stated = claimed, proven

    def _guarantee(self, n, d, p):
        return Guarantee(*self.stated, 0.0, REPLACE_ONE, "for a test")

    def _release(self, X, y, p, draws, rng):
        return (X * y[:, None]).sum(axis=0) + noise.laplace(X.shape[1], 1.0, draws, rng)


@pytest.mark.parametrize(
    ("claimed", "proven", "word"),
    [
        (4.0, 4.0, "holds"),
        (1.0, 4.0, "refutes the claim"),
        (1.0, math.inf, "refutes the claim"),
        (1.0, 1.0, "exceeds what is proven"),
        (1.0, math.nan, "refutes the claim"),
        (4.0, math.nan, "holds"),
    ],
)
def test_verdicts(claimed, proven, word):
    pair = pairs.find("opposite_corner")._replace(arguments={})
    replayed, stated = replay.of_mechanism(Claims(claimed, proven), pair, 1.0)
    assert replayed.epsilon == pytest.approx(2.0)
    assert replay.verdict(replayed, stated).startswith(word)


def sides(numbers=False):
    """Two neighbours with 40 records: one record, of maximal norm, turns by a right angle."""
    rng = generator(8, "lattice")
    X = rng.uniform(-0.1, 0.1, (40, 3))
    y = rng.choice([-1.0, 1.0], 40)
    results = []
    for row in ([1.0, 0, 0], [0, 1.0, 0]):
        X[0], y[0] = row, 1.0
        results.append(from_floats(X, y if numbers else y.astype(int)))
    return results


def test_a_release_moves_by_no_more_than_its_plan_pays_for():
    plan = models.output_perturbation_gaussian(40, 3, EPSILON, DELTA, lam=0.1)
    actual = of_release(plan, *sides())
    (V, y), (V_other, y_other) = sides()
    fits = [minimise(V / rows.ONE, y, 0.1)[0][0] for V, y in ((V, y), (V_other, y_other))]
    expected = np.linalg.norm(fits[0] - fits[1]) / float(plan.noises["weights"].deviation)
    assert actual.finding == replay.HOLDS and actual.mu == pytest.approx(expected, rel=1e-5)
    assert 0.1 < actual.epsilon < EPSILON
    quarter = plan.noises["weights"]
    quarter = quarter._replace(scale=quarter.scale // 4, mu=quarter.mu)
    wrong = plan._replace(noises={"weights": quarter})
    assert of_release(wrong, *sides()).finding == replay.EXCEEDS


@pytest.mark.parametrize("numbers", [False, True])
def test_what_stands_beside_a_tilt_is_compared_at_the_released_weights(numbers):
    plans = models.noise_aware_log_cosh, models.noise_aware_logistic
    plan = plans[not numbers](40, 3, EPSILON, DELTA, robust=True)
    replayed = of_release(plan, *sides(numbers))
    assert replayed.finding == replay.CHOICE and "a tilt" in replayed.why
    beside = [noise for part, noise in plan.noises.items() if part != "weights"]
    assert 0 < replayed.mu <= float(lattice.together(beside))
    halved = {
        part: noise if part == "weights" else noise._replace(scale=noise.scale // 40)
        for part, noise in plan.noises.items()
    }
    assert of_release(plan._replace(noises=halved), *sides(numbers)).finding == replay.EXCEEDS


# ---- general pairs


class Summed(Mechanism):
    """The sum of the rows, under replace-one. Sound; subclasses have faults."""

    name = "summed"
    needs_lambda = False
    proven = False

    def _guarantee(self, n, d, p):
        return "a record moves the sum by 2 R"

    def _release(self, X, y, p, draws, rng):
        return X.sum(axis=0) + noise.l2_laplace(X.shape[1], self._scale(X, p), draws, rng)

    def _scale(self, X, p):
        return 2 * p.bound / p.epsilon


class LargestNorm(Summed):
    def _scale(self, X, p):
        return 2 * np.linalg.norm(X, axis=1).max() / p.epsilon


class AddRemoved(Summed):
    """The sum under add-remove, sound."""

    def _guarantee(self, n, d, p):
        return Guarantee(p.epsilon, p.epsilon, 0.0, ADD_REMOVE, "a record moves the sum by R")

    def _scale(self, X, p):
        return p.bound / p.epsilon


class SecretSize(AddRemoved):
    """Its mean tells how many records there are."""

    def _release(self, X, y, p, draws, rng):
        return super()._release(X, y, p, draws, rng) / len(X)


class LargestNormRemoved(AddRemoved):
    def _scale(self, X, p):
        return np.linalg.norm(X, axis=1).max() / p.epsilon


class StatedSize(Summed):
    """The mean, under add-remove with a stated n. Sound."""

    options = ADJACENCY | PUBLIC_N

    def _guarantee(self, n, d, p):
        return p.proven("a record moves the sum by R or 2 R")

    def _scale(self, X, p):
        return (1 if p.adjacency == ADD_REMOVE else 2) * p.bound / p.epsilon

    def _release(self, X, y, p, draws, rng):
        return super()._release(X, y, p, draws, rng) / (p.public_n or len(X))


class IgnoresTheStatedSize(StatedSize):
    def _release(self, X, y, p, draws, rng):
        return Summed._release(self, X, y, p, draws, rng) / len(X)


class Seldom(Summed):
    """It adds the exact sum if the noise is large."""

    def _release(self, X, y, p, draws, rng):
        weights = np.asarray(super()._release(X, y, p, draws, rng))
        return weights + X.sum(axis=0) * (weights > 7)


@pytest.mark.parametrize(
    ("mechanism", "pair", "word"),
    [
        (LargestNorm, "shortened_row", "the scale of noise depends on the rows"),
        (LargestNormRemoved, "left_out", "the scale of noise depends on the rows"),
        (SecretSize, "left_out", "the scale of noise depends on the rows"),
        (IgnoresTheStatedSize, "left_out", "the scale of noise depends on the rows"),
        (Seldom, "reversed_row", "the releases differ"),
    ],
)
def test_general_pairs_find(mechanism, pair, word):
    replays = {name: result for name, _, *result in replay.on_general_pairs(mechanism())}
    found, stated = replays.pop(pair)
    assert replay.verdict(found, stated).startswith("refutes the claim") and word in found.why
    if mechanism is not Seldom:
        assert {found.finding for found, _ in replays.values()} <= {replay.HOLDS}


def test_what_happens_seldom_is_found_by_one_of_five_seeds():
    runs = [replay.of_mechanism(Seldom(), "reversed_row", 1.0, seed=k)[0].finding for k in range(5)]
    assert runs[0] == replay.HOLDS and replay.LEAKS in runs


@pytest.mark.parametrize(
    ("mechanism", "resized"), [(Summed, False), (AddRemoved, True), (StatedSize, True)]
)
def test_general_pairs_accuse_no_sound_mechanism(mechanism, resized):
    replays = {name: found for name, _, found, _ in replay.on_general_pairs(mechanism())}
    assert {found.finding for found in replays.values()} == {replay.HOLDS}
    assert ("left_out" in replays) == resized
    assert ("turned_row" in replays) == (mechanism is not AddRemoved)
    largest = max(found.epsilon for found in replays.values())
    assert largest == pytest.approx(1.0)


def test_a_record_is_left_out_for_add_remove_alone():
    with pytest.raises(Refused, match="a record more, and the guarantee is for replace-one"):
        audit.guarantee(Summed(), "left_out", 1.0)
    with pytest.raises(Refused, match="public_n"):
        audit.guarantee("dp_gd", "left_out", 1.0, DELTA, adjacency=ADD_REMOVE)


@pytest.mark.parametrize(
    ("mechanism", "pair"), [(LargestNorm, "shortened_row"), (SecretSize, "left_out")]
)
def test_attacks_on_the_same_pairs_refute_the_claim(mechanism, pair):
    arguments = {"epsilon": 1.0, "trials": 20_000, "rng": generator(3)}
    assert audit.attack(mechanism(), pair, **arguments)["epsilon"] > 1.5
    sound = Summed() if mechanism is LargestNorm else AddRemoved()
    assert audit.attack(sound, pair, **arguments)["epsilon"] <= 1.0


@pytest.mark.parametrize("options", [{"lam": 0.2}, {}])
def test_a_tilt_of_the_softmax_loss_is_noise_that_is_added_to_no_value(options):
    """Its solver adds the tilt to gradients, which are not released."""
    options |= {"adjacency": "add-remove"}
    name, pair = "softmax_objective_perturbation", "pulled_class"
    replayed, _ = replay.of_mechanism(name, pair, 4.0, 1e-5, **options)
    assert replayed.finding == replay.CHOICE
