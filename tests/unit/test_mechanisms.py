import itertools
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import gamma, kstest, uniform

import reference
from dp import losses
from dp.evaluation import regularised_risk
from dp.mechanisms import MECHANISMS, Mechanism, Release
from dp.mechanisms.output_perturbation import sensitivity
from dp.noise import l2_laplace
from dp.options import (
    Between,
    Choice,
    Flag,
    Loss,
    Name,
    NonNegative,
    Optional,
    Ordinary,
    Positive,
    Settings,
    Whole,
)
from dp.proofs.laplace_tilt import calibrate, exact_epsilon
from dp.seeds import generator
from dp.solvers.newton import minimise
from dp_audit import audit, replay
from dp_privacy.accounting import Guarantee
from dp_privacy.errors import Failed, Refused

N, D = 60, 3
LAMBDA = 0.1
SEEDED = object()
# At these epsilons, mechanisms release more than the class rate even from N rows.
LESS_NOISE = {"mean_direction": 3.0, "guarded_objective_perturbation": 3.0}
# Releases of a few choices among few columns are often equal, so this mechanism makes 20 choices.
CHOICES = {"frank_wolfe": 20}
# Epsilons at which mechanisms that may refuse to answer seldom refuse.
ANSWERING = {
    "tukey_em": 50.0,
    "tukey_em_released": 50.0,
    "functional_released": 50.0,
    "functional_centred_released": 50.0,
}


def rows(n=N, d=D, name=None):
    rng = generator(5, "contract")
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    X[0] /= np.linalg.norm(X[0])
    first = X[:, 0] + 0.3 * rng.standard_normal(n) > 0
    return X, np.where(first, 1, 0 if name in reference.OF_CLASSES else -1).astype(np.int8)


def common(name, **changes):
    mechanism = MECHANISMS[name]
    epsilon = (ANSWERING | LESS_NOISE).get(name, 1.0) if mechanism.private else math.inf
    arguments = {"epsilon": epsilon, "lam": LAMBDA}
    if mechanism.delta == "needed":
        arguments["delta"] = 1e-5
    if name in reference.OF_CLASSES:
        arguments["classes"] = 2
    if name in CHOICES:
        arguments["iterations"] = CHOICES[name]
    return arguments | changes


def refused(name, match, X=None, y=None, rng=SEEDED, **changes):
    """`release` must refuse in one sentence, and `guarantee` too if it takes the argument."""
    arguments = common(name, **changes)
    known = {"restarts", "fit", "all_rows", "public", "initial"} & arguments.keys()
    calls = [lambda: release(name, X, y, rng=rng, **arguments)]
    if X is None and rng is SEEDED and not known:
        calls.append(lambda: MECHANISMS[name].guarantee(N, D, **arguments))
    for call in calls:
        with pytest.raises(Refused, match=match) as caught:
            call()
        assert "\n" not in str(caught.value)


def release(name, X=None, y=None, rng=SEEDED, **arguments):
    X, y = rows(name=name) if X is None else (X, y)
    rng = generator(1) if rng is SEEDED else rng
    return MECHANISMS[name].release(X, y, rng=rng, **common(name) | arguments)


ALL = sorted(MECHANISMS)
PRIVATE = [name for name in ALL if MECHANISMS[name].private]
# One of each kind, for checks of the base class: every rule for delta, rows in blocks, classes, no privacy
KINDS = [
    "output_perturbation",
    "adassp",
    "knorm_objective_perturbation",
    "softmax_objective_perturbation",
    "sgd",
]


@pytest.mark.parametrize("name", ALL)
def test_guarantee_states_everything(name):
    guarantee = MECHANISMS[name].guarantee(N, D, **common(name))
    assert isinstance(guarantee, Guarantee)
    assert guarantee.claimed_epsilon > 0
    if MECHANISMS[name].proven:
        assert guarantee.epsilon >= 0
        assert 0 <= guarantee.delta < 1
    else:
        assert math.isnan(guarantee.epsilon) and math.isnan(guarantee.delta)
    assert guarantee.adjacency and guarantee.reason
    if not MECHANISMS[name].private:
        assert math.isinf(guarantee.epsilon)


@pytest.mark.parametrize("name", ALL)
def test_half_floats_are_computed_with_in_double_precision(name):
    """An epsilon or a share given as a half float must not reduce the noise's precision."""
    mechanism = MECHANISMS[name]
    defaults = {key: option.default for key, option in mechanism.options.items()}
    values = {
        key: value
        for key, value in (defaults | common(name)).items()
        if isinstance(value, float) and 1e-4 < value < 1e4
    }
    halves = {key: np.float16(value) for key, value in values.items()}
    exact = {key: float(value) for key, value in halves.items()}
    p = mechanism.parameters(np.int16(N), np.int16(D), **common(name) | halves)
    assert not [value for value in vars(p).values() if isinstance(value, np.generic)]
    guarantees = [
        mechanism.guarantee(N, D, **common(name) | arguments)[:5] for arguments in (halves, exact)
    ]
    assert repr(guarantees[0]) == repr(guarantees[1])


# As many steps show in a replay what hundreds show.
FEW_STEPS = {"dp_sgd_poisson": 10, "dp_gd": 10, "dp_gd_mean_clip": 10}

# In a replay, mechanisms in OTHER make random choices or draw noise that is added to no value. Those in
# ADDITIVE do neither. A user's is in neither.
OTHER = {
    *("amp", "dp_sgd_poisson", "gaussian_objective_perturbation", "iterative_hessian_mixing"),
    *("coordinate_descent", "frank_wolfe", "iterative_thresholding"),
    *("knorm_objective_perturbation", "noise_aware_log_cosh", "noise_aware_logistic"),
    *("objective_perturbation", "objective_perturbation_cm08"),
    *("objective_perturbation_redberg", "posterior_sampling"),
    *("private_selection", "tukey_em", "counts_objective_perturbation"),
    "counts_knorm_objective_perturbation",
}
ADDITIVE = {
    *(
        "adassp",
        "boosted_adassp",
        "boosted_adassp_released",
        "dp_distributed_lasso",
        "dp_gd",
        "dp_gd_mean_clip",
        "dp_newton",
    ),
    *("dp_sgd", "elastic_net_output_perturbation", "functional_gaussian", "functional_laplace"),
    *("functional_logistic", "laplace_coordinates", "laplace_l1", "lasso_output_perturbation"),
    *("noise_aware_boosted", "output_perturbation", "output_perturbation_gaussian", "output_sgd"),
    *("guarded_objective_perturbation", "mean_direction", "private_marginals"),
    *("preconditioned_gd", "subsample_aggregate", "sufficient_statistics"),
    *("counts_gd", "counts_rate"),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_a_replay_finds_no_more_than_is_stated(name, monkeypatch):
    if name in FEW_STEPS:
        monkeypatch.setitem(MECHANISMS[name].options, "iterations", Whole(FEW_STEPS[name]))
    monkeypatch.setattr(replay, "SEEDS", 1 if name in OTHER else 2)
    findings = set()
    for pair, _, result, stated in replay.on_general_pairs(name):
        findings.add(result.finding)
        if not math.isinf(stated.epsilon):
            wrong = replay.EXCEEDS, replay.LEAKS, replay.FLOW
            assert result.finding not in wrong, f"{pair}: {result.finding}, {result.why}"
    if name in ADDITIVE:
        assert replay.HOLDS in findings and replay.CHOICE not in findings
    assert name not in OTHER or replay.HOLDS not in findings


def test_the_sets_above_name_private_mechanisms():
    assert set(PRIVATE) >= ADDITIVE | OTHER and not ADDITIVE & OTHER


@pytest.mark.parametrize("name", ALL)
def test_releases_have_their_shapes_and_depend_on_the_generator_alone(name):
    """Rows stay as they are. Lists are rows, and every option of `guarantee` is one of `release`."""
    X, y = rows(name=name)
    before = X.copy(), y.copy()
    mechanism, arguments = MECHANISMS[name], common(name)

    def numbers(made):
        intercept = made.info.get("intercept", np.zeros(3))
        return np.column_stack([made.weights.reshape(3, -1), intercept])

    first, other = (
        mechanism.release(X, y, restarts=3, rng=generator(seed), **arguments) for seed in (1, 2)
    )
    assert isinstance(first, Release)
    assert first.weights.shape[:2] == (3, D)
    assert first.status.shape == (3,)
    assert np.isin(first.status, ["ok", "refused"] if name in ANSWERING else ["ok"]).all()
    assert np.isfinite(first.weights).all()
    if mechanism.private:
        assert not np.allclose(numbers(first), numbers(other))
        if (first.status == "ok").all():
            assert not np.allclose(numbers(first)[0], numbers(first)[1])
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    again = mechanism.release(
        X.tolist(),
        y.tolist(),
        restarts=3,
        rng=generator(1),
        **mechanism.defaults() | arguments,
    )
    np.testing.assert_array_equal(numbers(first), numbers(again))


BROKEN = [(1.5, 1), (1 + 1e-6, 1), (math.nan, 1), (math.inf, 1), (1, 0), (1, 2), (1, -1.5)]


@pytest.mark.parametrize("name", ALL)
def test_rows_beyond_the_bound_and_other_labels_are_refused(name):
    for break_row, break_label in BROKEN:
        X, y = rows(name=name)
        X[0] *= break_row
        y = y.astype(float)
        y[1] = y[1] if break_label == 1 else break_label
        if break_label == 0 and (
            MECHANISMS[name].takes_numbers({}) or name in reference.OF_CLASSES
        ):
            continue  # 0 is a valid number or class here
        with np.errstate(invalid="ignore"), pytest.raises(ValueError):
            # with this lambda, a few rows are enough
            MECHANISMS[name].release(X, y, rng=generator(1), **common(name, lam=10.0))


@pytest.mark.parametrize("name", KINDS)
def test_unknown_options_are_refused(name):
    mechanism = MECHANISMS[name]
    with pytest.raises(ValueError, match="no option"):
        mechanism.check_options({"no_such_option": 1})
    for call in (
        lambda: mechanism.guarantee(N, D, **common(name), no_such_option=1),
        lambda: mechanism.release(*rows(), rng=generator(1), **common(name), no_such_option=1),
    ):
        with pytest.raises((ValueError, TypeError), match="no_such_option"):
            call()


def test_the_public_calls_are_those_of_the_base():
    """A mechanism that overrides these calls would skip their checks."""
    calls = "guarantee", "release", "release_many", "parameters", "of_data", "_tasks", "_checked"
    for name, call in itertools.product(ALL, calls):
        assert getattr(type(MECHANISMS[name]), call) is getattr(Mechanism, call), (name, call)


# argument: (its name in messages, values that no mechanism takes)
BAD = {
    "epsilon": ("epsilon", [0.0, -1.0, math.nan, math.inf]),
    "delta": ("delta", [-0.1, 1.0, math.nan, "0", None, True]),
    "lam": ("lambda", [None, 0.0, -1.0, math.nan, math.inf]),
    "bound": ("bound", [0.0, -1.0, math.nan, math.inf, 1e200, 1e-200, "1", None, True]),
    "restarts": ("restarts must be a whole number", [0, -1, 1.5, 2.0, True, "2", None]),
}


@pytest.mark.parametrize("name", KINDS)
def test_bad_arguments(name):
    for argument, (said, values) in BAD.items():
        if argument in ("epsilon", "delta") and not MECHANISMS[name].private:
            continue
        if argument == "lam" and not MECHANISMS[name].needs_lambda:
            continue
        for value in values:
            refused(name, said, **{argument: value})


@pytest.mark.parametrize("name", PRIVATE)
def test_a_delta_is_neither_ignored_nor_forgotten(name):
    rule = MECHANISMS[name].delta
    assert rule in ("none", "needed", "optional")
    if rule != "optional":
        refused(name, "delta", delta=1e-5 if rule == "none" else 0.0)
    else:
        guarantee = MECHANISMS[name].guarantee(N, D, **common(name, delta=1e-5))
        assert guarantee.delta == 1e-5


NO_ROWS = [
    ([[1.0, 0.0], [1.0]], [1, -1]),
    ([["a", "b"], ["c", "d"]], [1, -1]),
    ([1.0, 0.0], [1, -1]),
    ([], []),
    (np.zeros((0, 2)), []),
    (np.zeros((2, 0)), [1, -1]),
    (np.zeros((2, 2, 2)), [1, -1]),
    (np.zeros((2, 2)), [1, -1, 1]),
    (np.zeros((2, 2)), [[1], [-1]]),
    (np.zeros((2, 2)), ["1", "-1"]),
    (np.zeros((2, 2)), 1),
    (None, None),
]


@pytest.mark.parametrize("name", KINDS)
def test_what_is_not_rows_is_refused(name):
    for X, y in NO_ROWS:
        with pytest.raises(Refused, match=r"data must be|whole number"):
            MECHANISMS[name].release(X, y, rng=generator(1), **common(name, lam=10.0))


@pytest.mark.parametrize("name", KINDS)
def test_a_generator_is_needed_by_what_draws(name):
    if MECHANISMS[name].private or MECHANISMS[name].needs_rng:
        refused(name, "needs rng", rng=None)
    refused(name, "needs rng", rng=5)


EXTREMES = {
    "lam": (1e12, 1e49, 1e300, 1e-12, 1e-49, 5e-324),
    "epsilon": (5e-324, 1e-49, 1e-12, 1e5, 1e49),
    "bound": (1e49,),
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("argument", EXTREMES)
def test_extremes_are_refused_or_told_by_the_status(name, argument):
    if argument == "epsilon" and not MECHANISMS[name].private:
        return
    for value in EXTREMES[argument]:
        try:
            actual = release(name, restarts=3, **{argument: value})
        except ValueError as error:
            assert "\n" not in str(error) and not isinstance(error, Failed), (value, error)
            continue
        assert np.isfinite(actual.weights).all(), value
        assert not actual.weights[actual.status != "ok"].any(), value


@pytest.mark.parametrize("name", ALL)
def test_options_take_values_of_their_kind_alone(name):
    junks = [object(), "no such thing", math.nan, -1, []]
    for option, junk in itertools.product(MECHANISMS[name].options, junks):
        if option == "loss" and not isinstance(junk, str):
            continue  # a loss may be a user's own object
        refused(name, "no such thing" if option == "loss" else option, **{option: junk})


@pytest.mark.parametrize("name", KINDS)
def test_sizes_are_whole(name):
    for n, d in ((0, D), (N, 0), (1.5, D), (N, None), (True, D)):
        with pytest.raises(Refused, match="whole number"):
            MECHANISMS[name].guarantee(n, d, **common(name))


@pytest.mark.parametrize("name", ALL)
def test_many_releases_are_checked_alike(name):
    X, y = rows(name=name)
    many = [((X, y),), ((X * 2, y),)]
    releases = MECHANISMS[name].release_many(
        many, rngs=[generator(1), generator(1)], restarts=2, **common(name)
    )
    with pytest.raises(Refused, match="public bound"):
        list(releases)
    ((_, alone),) = MECHANISMS[name].release_many(
        many[:1], rngs=[generator(1)], restarts=2, **common(name)
    )
    np.testing.assert_array_equal(alone.weights, release(name, X, y, restarts=2).weights)


class Faulty(Mechanism):
    name = "faulty"
    reports = ("steps",)

    def __init__(self, weights=((0.0,) * D,) * 3, status=("ok",) * 3, info=None):
        self.made = weights, status, {"steps": np.arange(3)} if info is None else info

    def _guarantee(self, n, d, p):
        return (p.epsilon, 0.0)

    def _release(self, X, y, p, draws, rng):
        return self.made[0] if self.made[1] is None else Release(*self.made)


def faulty(mechanism):
    X, y = rows()
    return mechanism.release(X, y, epsilon=1.0, lam=1.0, restarts=3, rng=generator(1))


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ({"weights": np.zeros((1, D))}, r"weights of shape \(1, 3\).*3 x 3"),
        ({"weights": np.zeros((3, D + 1))}, "weights of shape"),
        ({"weights": np.zeros(3)}, "weights of shape"),
        ({"weights": np.zeros((3, D, 2, 2))}, "weights of shape"),
        ({"weights": np.full((3, D), "0")}, "type <U1"),
        ({"weights": np.zeros((3, D), dtype=complex)}, "type complex"),
        ({"weights": "weights", "status": None}, "weights of shape"),
        ({"weights": [[0.0], [0.0, 1.0]], "status": None}, "inhomogeneous"),
        ({"status": ("ok",) * 2}, "status of shape"),
        ({"status": "ok"}, "status of shape"),
        ({"status": np.ones(3)}, "status of shape"),
        ({"info": {}}, r"info\['steps'\]"),
        ({"info": {"steps": 5}}, r"info\['steps'\]"),
        ({"info": {"steps": range(3), "intercept": 0.0}}, r"info\['intercept'\]"),
    ],
)
def test_a_release_of_the_wrong_shape_is_told_with_mechanism_file_and_line(fault, what):
    with pytest.raises(Failed, match=what) as caught:
        faulty(Faulty(**fault))
    line = Faulty._release.__code__.co_firstlineno
    assert f"mechanism faulty failed in {os.path.relpath(__file__)}, line {line}: " in str(
        caught.value
    )


def test_draws_that_are_not_finite_have_diverged():
    weights = np.ones((3, D))
    weights[0, 1], weights[2, 0] = math.nan, math.inf
    status = ["ok", "ok", "not_sampled"]
    info = {"steps": np.arange(3), "intercept": np.array([1.0, math.inf, 1.0])}
    actual = faulty(Faulty(weights, status, info))
    assert list(actual.status) == ["diverged", "diverged", "not_sampled"]
    assert not actual.weights.any() and not actual.info["intercept"].any()
    assert (weights[1] == 1).all()  # the mechanism's own array does not change
    classes = np.ones((3, D, 2))
    classes[1, 0, 1] = math.nan
    actual = faulty(Faulty(classes))
    assert list(actual.status) == ["ok", "diverged", "ok"]
    assert actual.weights[0].all() and not actual.weights[1].any()


def test_weights_alone_and_weights_with_info_are_ok():
    steps = {"steps": np.arange(3)}
    for made in (np.ones((3, D)), (np.ones((3, D)), steps), ((1.0,) * D,) * 3):
        mechanism = Faulty(made, None)
        mechanism.reports = ("steps",) if isinstance(made[-1], dict) else ()
        actual = faulty(mechanism)
        assert (actual.weights == 1).all() and list(actual.status) == ["ok"] * 3
        assert actual.info.keys() == set(mechanism.reports)


def test_a_sentence_is_the_guarantee_that_was_asked_for():
    class Stating(Faulty):
        options = {"adjacency": Choice("add-remove", "replace-one")}
        delta = "optional"

        def _guarantee(self, n, d, p):
            return p.proven("nearly", 3.0) if p.epsilon == 2 else "because"

    guarantee = Stating().guarantee(N, D, epsilon=1.0, delta=1e-6, lam=1.0)
    assert guarantee == Guarantee(1.0, 1.0, 1e-6, "add-remove", "because")
    assert Stating().guarantee(N, D, epsilon=2.0, lam=1.0) == (
        2,
        3,
        0,
        "add-remove",
        "nearly",
        None,
    )
    Stating.private = False
    nothing = Stating().guarantee(N, D, delta=1e-6, lam=1.0)
    assert nothing == (math.inf, math.inf, 0.0, "replace-one", "because", None)


@pytest.mark.parametrize(
    "error", [ValueError("shapes (3,4) (5,)"), KeyError("steps"), np.linalg.LinAlgError("singular")]
)
def test_what_goes_wrong_in_a_mechanism_keeps_its_file_and_line(error):
    class Raising(Faulty):
        def _release(self, X, y, p, draws, rng):
            raise error

    with pytest.raises(Failed, match="mechanism faulty failed in ") as caught:
        faulty(Raising())
    line = Raising._release.__code__.co_firstlineno + 1
    place = f"{os.path.relpath(__file__)}, line {line}: {error}"
    assert str(caught.value).endswith(place) and caught.value.__cause__ is error
    with pytest.raises(Failed, match="returns tuple, not a Guarantee"):
        Faulty().guarantee(N, D, epsilon=1.0, lam=1.0)


@pytest.mark.parametrize("error", [Refused("give a larger radius"), MemoryError(), OSError("disk")])
def test_what_a_mechanism_refuses_is_told_as_it_says_it(error):
    class Raising(Faulty):
        def _check_together(self, n, d, p):
            raise error

    with pytest.raises(type(error)) as caught:
        faulty(Raising())
    assert caught.value is error


def test_errors_of_the_rows_that_are_given_are_not_the_mechanisms():
    def folds():
        yield (rows(),)
        raise ValueError("the file ends early")

    releases = Faulty().release_many(
        folds(), rngs=[generator(1)] * 2, epsilon=1.0, lam=1.0, restarts=3
    )
    next(releases)
    with pytest.raises(ValueError, match=r"^the file ends early$"):
        next(releases)


@pytest.mark.parametrize(
    ("option", "good", "bad"),
    [
        (
            Positive(1.0),
            [1, 0.5, np.float64(2), np.int64(3)],
            [0, -1, math.inf, "1", None, True, [1]],
        ),
        (NonNegative(0.0), [0, 0.0, 1e300], [-1e-9, math.inf, math.nan, False, None, "0"]),
        (Between(0.5, low=0, high=1), [0.5, np.float32(0.25)], [0, 1, -1, math.nan, "0.5", True]),
        (Whole(1), [1, np.int8(2)], [0, 1.0, -1, True, None, "1"]),
        (Whole(2, least=2), [2], [1]),
        (Flag(False), [True, False], [0, 1, "true", None]),
        (Choice("a", "b"), ["a", "b"], ["c", "A", None, 1, ["a"], np.array(["a"])]),
        (Optional(Positive()), [None, 1.5], [0, "none"]),
        (Ordinary(1.0), [1e-49, 7, 1e49], [0, 1e-50, 1e-160, 1e50, math.inf, math.nan, True]),
        (Loss(), ["huber", losses.Logistic()], ["hinge"]),
        (Name("a"), ["b"], [1, None]),
        (Settings({}), [{"a": 1}], [[], {1: 1}]),
        (Settings({"a": [1]}, lists=True), [{"a": [1, "b"]}, {}], [{"a": 1}, {"a": []}]),
    ],
)
def test_kinds_of_options(option, good, bad):
    option.check("x", option.default)
    for value in good:
        option.check("x", value)
    for value in bad:
        with pytest.raises(Refused):
            option.check("x", value)


def test_norms_whose_squares_underflow_are_refused():
    """The computed norm of a gradient of 1e-160 is 0, so a smaller clip would not clip it."""
    for name, option in itertools.product(ALL, ("clip", "radius")):
        if option in MECHANISMS[name].options:
            said = rf"^{name}: {option} must be a number strictly between 1e-50 and"
            with pytest.raises(Refused, match=said):
                MECHANISMS[name].check_options({option: 1e-160})


def test_the_nearest_name_is_told():
    with pytest.raises(Refused, match=r"'sensitivty'.*did you mean 'sensitivity'"):
        MECHANISMS["functional_laplace"].guarantee(N, D, epsilon=1.0, sensitivty="l2")
    with pytest.raises(Refused, match=r"'publishd'; did you mean 'published'"):
        MECHANISMS["functional_laplace"].guarantee(N, D, epsilon=1.0, sensitivity="publishd")


# ---- four mechanisms, against separately derived formulas


def test_output_perturbation_guarantee_is_what_it_adds():
    mechanism = MECHANISMS["output_perturbation"]
    X, y = rows()
    release = mechanism.release(X, y, epsilon=0.5, lam=0.1, rng=generator(1), tolerance=1e-6)
    assert release.info["scale"] == pytest.approx((2 / (N * 0.1) + 2e-6 / 0.1) / 0.5)
    guarantee = mechanism.guarantee(N, D, epsilon=0.5, lam=0.1)
    assert (guarantee.claimed_epsilon, guarantee.epsilon, guarantee.delta) == (0.5, 0.5, 0.0)
    assert guarantee.adjacency == "replace-one"


@pytest.mark.parametrize(
    "name", ["output_perturbation", "objective_perturbation", "objective_perturbation_cm08"]
)
def test_a_loss_without_a_gradient_bound_is_refused(name):
    with pytest.raises(ValueError, match="gradient bound"):
        MECHANISMS[name].guarantee(N, D, epsilon=1, lam=LAMBDA, loss="squared")
    with pytest.raises(ValueError, match="gradient bound"):
        MECHANISMS[name].release(*rows(), epsilon=1, lam=LAMBDA, loss="squared", rng=generator(1))


@pytest.mark.parametrize(
    ("epsilon", "n_lambda", "expected"),
    reference.values("objective_perturbation", "epsilon_b", "n_lambda"),
)
def test_cm08_true_epsilon(epsilon, n_lambda, expected):
    assert exact_epsilon(epsilon, n_lambda) == pytest.approx(expected, abs=5e-5)
    mechanism, settings = MECHANISMS["objective_perturbation_cm08"], {"lam": n_lambda / 1000}
    guarantee = mechanism.guarantee(1000, 10, epsilon=epsilon, **settings)
    assert guarantee.claimed_epsilon == epsilon
    s = mechanism.plan(1000, 10, epsilon=epsilon, **settings).share
    whole = exact_epsilon((1 - s) * epsilon, n_lambda) + s * epsilon
    assert guarantee.epsilon == pytest.approx(whole, rel=1e-12)
    assert expected - 5e-5 < guarantee.epsilon < expected + 0.005
    assert (guarantee.epsilon == epsilon) == (expected == epsilon and n_lambda == 140)


@given(st.floats(1e-3, 20), st.floats(1e-3, 1e4), st.floats(0.1, 5))
@settings(max_examples=200)
def test_cm08_supremum_against_a_grid(epsilon, n_lambda, bound):
    s = np.linspace(0, 1, 20_001)
    on_grid = epsilon / 2 * (1 + s) + np.log1p(s * (1 - s) * bound**2 / n_lambda)
    actual = exact_epsilon(epsilon, n_lambda, bound)
    assert actual >= on_grid.max() * (1 - 1e-12)
    assert actual == pytest.approx(on_grid.max(), rel=1e-5)
    if n_lambda * epsilon >= 2 * bound**2:
        assert actual == pytest.approx(epsilon, rel=1e-12)
    elif n_lambda * epsilon < 1.99 * bound**2:
        assert actual > epsilon


SETTINGS = (
    st.floats(1e-3, 10),  # epsilon
    st.integers(1, 10_000),  # n
    st.floats(1e-5, 1),  # lambda
    st.floats(0.2, 3),  # bound
)


@given(
    *SETTINGS,
    st.sampled_from(["cms11", "single_log", "supremum"]),
    st.sampled_from(["logistic", "huber"]),
)
@settings(max_examples=300)
def test_repaired_calibrations_keep_epsilon(epsilon, n, lam, bound, calibration, loss):
    epsilon_b, ridge = calibrate(epsilon, n, lam, bound, loss, calibration)
    assert 0 < epsilon_b <= epsilon and ridge >= 0
    assert exact_epsilon(epsilon_b, n * (lam + ridge), bound, loss) <= epsilon * (1 + 1e-9)


@given(*SETTINGS, st.sampled_from(["logistic", "huber"]))
@settings(max_examples=200)
def test_cms11_formulas(epsilon, n, lam, bound, loss):
    """The reference is algorithm 2 and theorem 9 as printed, with c = R^2 sup l''."""
    epsilon_b, ridge = calibrate(epsilon, n, lam, bound, loss)
    c = bound**2 * losses.get(loss).c
    plain = epsilon - math.log(1 + 2 * c / (n * lam) + c**2 / (n * lam) ** 2)
    if plain > 1e-9:
        assert (epsilon_b, ridge) == (pytest.approx(plain, rel=1e-6, abs=1e-10), 0)
    elif plain < -1e-9:
        assert epsilon_b == epsilon / 2
        assert ridge == pytest.approx(c / (n * (math.exp(epsilon / 4) - 1)) - lam, rel=1e-6)


def test_supremum_calibration_is_the_largest():
    for epsilon, n_lambda in ((0.1, 10.0), (1.0, 1.0), (3.0, 0.5)):
        epsilon_b, ridge = calibrate(epsilon, 1, n_lambda, calibration="supremum")
        if ridge:
            continue
        root = (
            brentq(lambda e, n=n_lambda, goal=epsilon: exact_epsilon(e, n) - goal, 1e-6, epsilon)
            if exact_epsilon(epsilon, n_lambda) > epsilon
            else epsilon
        )
        assert epsilon_b == pytest.approx(root, rel=1e-9)
        assert epsilon_b >= calibrate(epsilon, 1, n_lambda, calibration="single_log")[0]
    with pytest.raises(ValueError, match="calibration"):
        calibrate(1.0, 10, 0.1, calibration="two_logs")


def test_huber_and_general_losses_scale_with_kappa_and_c():
    """As in CM08's theorem 3, noise scales with kappa R for any loss. The repair also pays for c R^2."""
    X, y = rows()
    for bound in (1.0, 2.0):
        huber = losses.get("huber")
        assert huber.kappa == 1 and huber.c == pytest.approx(1 / (2 * huber.h))
        for name in ("objective_perturbation_cm08", "objective_perturbation"):
            release = MECHANISMS[name].release(
                X, y, epsilon=1.0, lam=LAMBDA, bound=bound, loss="huber", rng=generator(1)
            )
            share = 0 if name.endswith("cm08") else 2 * math.log1p(bound**2 / (N * LAMBDA))
            if share < 1:
                assert release.info["scale"] == pytest.approx(2 * bound / (1 - share), rel=1e-3)

    # a user's own loss
    class Steep(losses.Logistic):
        @property
        def kappa(self):
            return 2.0

        @property
        def c(self):
            return 0.5

        @property
        def name(self):
            return "steep"

        def slopes(self, z):
            return tuple(2 * slope for slope in super().slopes(z))

    steep = Steep()
    release = MECHANISMS["objective_perturbation_cm08"].release(
        X, y, epsilon=1.0, lam=LAMBDA, loss=steep, rng=generator(1)
    )
    assert release.info["scale"] == pytest.approx(4.0, rel=1e-3) and release.status[0] == "ok"
    assert sensitivity(N, LAMBDA, 1.0, steep) == pytest.approx(4 / (N * LAMBDA))
    epsilon_b, _ = calibrate(1.0, 1000, 0.1, loss=steep)
    assert epsilon_b == pytest.approx(1 - 2 * math.log1p(0.5 / 100))


TILTED = ["objective_perturbation", "objective_perturbation_cm08"]


@pytest.mark.parametrize("name", TILTED)
@pytest.mark.parametrize(
    "n, d, epsilon, tolerance", [(1000, 2, 1.0, 1e-2), (1000, 2, 10.0, 1e-3), (2000, 1, 1e5, 1e-9)]
)
def test_no_release_is_the_starting_point(name, n, d, epsilon, tolerance):
    """If the tolerance exceeds the tilt, the solver returns its start, the fit without noise."""
    mechanism, (X, y) = MECHANISMS[name], rows(n, d)
    settings = {"epsilon": epsilon, "lam": 0.01, "tolerance": tolerance}
    fit = minimise(X, y, 0.01, tolerance=tolerance)
    release = mechanism.release(X, y, **settings, fit=fit, restarts=2000, rng=generator(71))
    assert (release.status == "ok").all()
    away = np.linalg.norm(release.weights - fit[0], axis=1) / release.info["output_scale"]
    assert away.min() > 0 and np.quantile(away, 0.01) > 1e-3


@pytest.mark.parametrize("name", TILTED)
@given(
    n=st.integers(1, 10**5),
    d=st.integers(1, 100),
    epsilon=st.floats(1e-2, 100),
    lam=st.floats(1e-3, 10),
    bound=st.floats(0.1, 5),
    tolerance=st.floats(1e-8, 1e-2),
    loss=st.sampled_from(["logistic", "huber"]),
)
@settings(max_examples=100)
def test_the_whole_epsilon_is_what_both_noises_cost(
    name, n, d, epsilon, lam, bound, tolerance, loss
):
    arguments = {
        "epsilon": epsilon,
        "lam": lam,
        "bound": bound,
        "tolerance": tolerance,
        "loss": loss,
    }
    mechanism = MECHANISMS[name]
    try:
        plan = mechanism.plan(n, d, **arguments)
    except ValueError as error:
        assert "larger lambda" in str(error)
        with pytest.raises(ValueError, match="larger lambda"):
            mechanism.guarantee(n, d, **arguments)
        return
    output = 2 * tolerance / (lam + plan.ridge) / plan.output_scale
    tilt = exact_epsilon(2 * bound / plan.scale, n * (lam + plan.ridge), bound, loss)
    proven = mechanism.guarantee(n, d, **arguments)
    assert tilt + output <= proven.epsilon * (1 + 1e-9)
    if name == "objective_perturbation":
        assert proven.epsilon == epsilon
    else:
        assert plan.ridge == 0 and tilt + output == pytest.approx(proven.epsilon)
        assert proven.epsilon >= epsilon
    for scale in (plan.scale, plan.output_scale):
        assert f"Gamma({d}, {scale:.6g})" in proven.reason


@pytest.mark.parametrize("name", TILTED)
def test_output_noise_has_the_law_that_is_paid_for(name, monkeypatch):
    """The solver returns zeros: only output noise is left."""
    from dp.mechanisms import objective_perturbation as module

    def solver(X, y, lam, linear, loss, initial, tolerance):
        assert tolerance == 1e-4 / 2
        ok = np.repeat("ok", len(linear))
        return np.zeros_like(linear), {"status": ok, "gradient_norm": np.zeros(len(linear))}

    monkeypatch.setattr(module, "minimise", solver)
    release = MECHANISMS[name].release(
        *rows(), epsilon=1.0, lam=LAMBDA, tolerance=1e-4, restarts=4000, rng=generator(72)
    )
    law = gamma(D, scale=release.info["output_scale"])
    norm = np.linalg.norm(release.weights, axis=1)
    assert kstest(norm, law.cdf).pvalue > 1e-3
    assert (
        kstest(release.weights[:, 0] / norm, uniform(-1, 2).cdf).pvalue > 1e-3
    )  # a coordinate of a direction in three dimensions is uniform


@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("tolerance", [1e-9, 1e-6, 1e-2])
def test_the_share_of_the_output_noise_is_nearly_the_best(loss, tolerance):
    n, d, lam = 1000, 10, 0.01
    s = MECHANISMS["objective_perturbation"].share(n, d, lam, 1.0, losses.get(loss), tolerance)
    q = n * tolerance * (1 + losses.get(loss).c / (d * lam))
    grid = np.geomspace(1e-9, 1, 100_001)[:-1]
    cost = (1 - grid) ** -2 + (q / grid) ** 2
    assert s == pytest.approx(grid[cost.argmin()], rel=1e-2)
    assert cost.min() == pytest.approx((1 + q ** (2 / 3)) ** 3, rel=1e-6)


def test_output_noise_costs_as_little_accuracy_as_its_share_says():
    """Excess risk is below (1 + q^(2/3))^3 times that of exact minimisers whose tilts cost all epsilon.

    q is as in `Tilted.share`.
    """
    X, y = rows(1000, 5)
    mechanism, lam, epsilon, tolerance = MECHANISMS["objective_perturbation_cm08"], 0.1, 5.0, 1e-5
    settings = {"epsilon": epsilon, "lam": lam}
    release = mechanism.release(
        X, y, **settings, tolerance=tolerance, restarts=4000, rng=generator(73)
    )
    tilts = l2_laplace(5, 2 / epsilon, 4000, generator(73))
    exact = minimise(X, y, lam, tilts)[0]
    best = regularised_risk(minimise(X, y, lam)[0], X, y, lam)
    excess, least = (
        regularised_risk(w, X, y, lam).mean() - best[0] for w in (release.weights, exact)
    )
    q = 1000 * tolerance * (1 + 0.25 / (5 * lam))
    assert 1 < excess / least < (1 + q ** (2 / 3)) ** 3


def test_cm08_keeps_its_claim_in_its_own_setting():
    guarantee = MECHANISMS["objective_perturbation_cm08"].guarantee(
        14000, 10, epsilon=0.1, lam=0.01
    )
    assert guarantee.epsilon == guarantee.claimed_epsilon == 0.1
    assert "n lambda epsilon' = 13.9" in guarantee.reason and ">= 2 R^2 = 2" in guarantee.reason
    assert "not to the source" in guarantee.reason


@pytest.mark.parametrize("name", TILTED)
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"tolerance": 0.0}, "on every data set"),
        ({"tolerance": 1e-16}, "on every data set"),
        ({"bound": 1e40}, "on every data set"),
        ({"epsilon": 1e-9}, "on every data set"),
        ({"tolerance": 1e4}, "smaller tolerance"),
        ({"tolerance": 1e100}, "smaller tolerance"),
    ],
)
def test_objective_perturbation_refuses_what_it_cannot_prove(name, change, match):
    arguments = {"epsilon": 1.0, "lam": LAMBDA} | change
    with pytest.raises(ValueError, match=match):
        MECHANISMS[name].guarantee(N, D, **arguments)
    with pytest.raises(ValueError, match=match):
        MECHANISMS[name].release(*rows(), rng=generator(1), **arguments)


@pytest.mark.parametrize(
    ("tolerance", "lam", "advice", "better"),
    [
        (0.1, 1e-6, "give a larger lambda", {"lam": 1.0}),
        (1e4, 1e-6, "give a smaller tolerance", {"tolerance": 1e-6}),
        (1e4, 1.0, "give a smaller tolerance", {"tolerance": 1e-6}),
    ],
)
def test_the_advice_for_too_much_output_noise_is_what_helps(tolerance, lam, advice, better):
    """If the tolerance alone is too large, no lambda helps."""
    mechanism = MECHANISMS["objective_perturbation_cm08"]
    arguments = {"epsilon": 1.0, "tolerance": tolerance, "lam": lam}
    with pytest.raises(ValueError) as caught:
        mechanism.guarantee(1000, 1, **arguments)
    assert str(caught.value).endswith(advice)
    if "smaller" in advice:
        with pytest.raises(ValueError, match=advice):
            mechanism.guarantee(1000, 1, **arguments | {"lam": 1e9})
    assert mechanism.guarantee(1000, 1, **arguments | better)


def test_a_lambda_that_is_not_certified_on_every_data_set_is_refused_or_raised():
    """CM08's form refuses such a lambda. The repaired form adds a ridge that makes it large enough."""
    with pytest.raises(ValueError, match="larger lambda"):
        MECHANISMS["objective_perturbation_cm08"].guarantee(N, D, epsilon=1.0, lam=1e-9)
    plan = MECHANISMS["objective_perturbation"].plan(N, D, epsilon=1.0, lam=1e-9)
    assert plan.ridge > 1e-3


def test_a_subclass_of_the_logistic_loss_is_not_the_logistic_loss():
    """A subclass may have ten times the curvature, for which the parent's supremum is too low."""

    class Sharp(losses.Logistic):
        kappa, c = 1.0, 2.5

        def value(self, z):
            return super().value(10 * z) / 10

        def slopes(self, z):
            slope, curvature = super().slopes(10 * z)
            return slope, 10 * curvature

    assert Sharp.name == "logistic"
    mechanism = MECHANISMS["objective_perturbation_cm08"]
    attained = audit.privacy_loss_1d(mechanism, 1.0, 1.0, loss=Sharp())
    assert attained == pytest.approx(1.5306, abs=5e-5)
    assert exact_epsilon(1.0, 1.0) == pytest.approx(1.0485, abs=5e-5)
    guarantee = mechanism.guarantee(10, 2, epsilon=1.0, lam=0.1, loss=Sharp())
    assert attained < 1 + math.log1p(2.5) <= guarantee.epsilon
    assert "2 R^2" not in guarantee.reason  # the condition for the logistic loss
    for calibration in ("cms11", "single_log", "supremum"):
        attained = audit.privacy_loss_1d(
            "objective_perturbation", 1.0, 1.0, loss=Sharp(), calibration=calibration
        )
        assert attained <= 1 + 1e-9
