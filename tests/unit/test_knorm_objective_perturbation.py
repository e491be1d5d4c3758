"""`knorm_objective_perturbation`: what it covers, by densities, and what it takes for public."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import gamma, kstest

from dp import losses
from dp.clipped_logistic import ClippedLogistic
from dp.mechanisms import MECHANISMS
from dp.mechanisms.knorm_objective_perturbation import Body, excess
from dp.offset import Centre, Offset
from dp.proofs.log_concave_tilt import ball_shift
from dp.rows import Rows
from dp.seeds import generator
from dp_audit import pairs
from dp_privacy import l2
from dp_privacy.accounting import ADD_REMOVE
from dp_privacy.errors import Refused
from study.data.preparation import Table, prepare

MECHANISM = MECHANISMS["knorm_objective_perturbation"]
# Two numbers and a block of three levels.
D, BLOCKS, BOUND = 5, [[2, 3, 4]], math.sqrt(3)
FACTS = {"column_bounds": [1.0] * D, "blocks": BLOCKS, "bound": BOUND}


def vertices():
    """All v = y x whose numbers are at their bounds, and with no level or one."""
    signs = itertools.product((-1.0, 1.0), repeat=2)
    levels = [np.zeros(3), *np.eye(3), *-np.eye(3)]
    return [np.concatenate([numbers, level]) for numbers, level in itertools.product(signs, levels)]


def largest_loss(epsilon, lam, seed, n=1, scaled=1.0, **options):
    """The largest log density ratio of exact minimisers that was found, and the tilt's part of epsilon.

    The other records have any gradient sum, and next to no curvature: they are heavy, and their slopes are
    saturated. So the densities at w are those of one record, where the gradient sum is free. scaled: of the
    noise.
    """
    plan = MECHANISM.plan(n, D, epsilon=epsilon, lam=lam, **FACTS | options)
    rng, corners = generator(seed, "losses"), vertices()
    k, worst = options.get("clip", 1.0), 0.0

    def at(v, w, base):
        z = w @ v
        slope = np.minimum(1 / (1 + np.exp(z)), k)
        curvature = np.where(slope < k, slope * (1 - slope), 0.0)
        b = base + slope[:, None] * v
        determinant = 1 + curvature * (v @ v) / (n * lam)
        return np.log(determinant) - plan.body.norm(b) / (scaled * plan.scale)

    for _ in range(400):
        first, second = (corners[k] for k in rng.integers(len(corners), size=2))
        shape = (200, D)
        w = rng.standard_normal(shape) * 10 ** rng.uniform(-2, 2, (200, 1))
        base = rng.standard_normal(shape) * plan.scale * 10 ** rng.uniform(-2, 3, (200, 1))
        base[:100] = np.sign(base[:100]) * 10 ** rng.uniform(-1, 4, (100, 1))
        worst = max(worst, np.abs(at(first, w, base) - at(second, w, base)).max())
    return worst, plan.epsilon


@pytest.mark.parametrize("body", ["box", "hull"])
@pytest.mark.parametrize("options", [{}, {"clip": 0.75}])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_no_loss_exceeds_epsilon_and_some_come_near(body, options, epsilon):
    for factor in (0.5, 6.0):
        lam = factor * 3 / epsilon
        loss, covered = largest_loss(epsilon, lam, 1, body=body, **options)
        assert covered * 0.9 < loss <= covered * (1 + 1e-9)
        # A twentieth less noise, or a hull where the body is a box, would not cover it.
        assert largest_loss(epsilon, lam, 1, body=body, scaled=0.9, **options)[0] > covered


def test_a_hull_whose_block_is_not_one_is_refused():
    """In a hull, a row with two levels would shift the tilt by more than its noise covers."""
    X = np.zeros((30, D))
    X[:, 2] = 1
    y = np.where(np.arange(30) % 2, 1, -1)
    asked = {"epsilon": 1.0, "lam": 1.0, "rng": generator(1), **FACTS}
    assert MECHANISM.release(X, y, **asked).weights.shape == (1, D)
    X[7, 3] = 1
    with pytest.raises(Refused, match="columns 2, 3, 4 of a row sum to 2 times"):
        MECHANISM.release(X, y, **asked)
    X[7] = [1.1, 0, 1, 0, 0]
    with pytest.raises(Refused, match=r"column 0 is 1\.1 in size, over the public bound 1:"):
        MECHANISM.release(X, y, **asked)
    with pytest.raises(Refused, match="has 5 numbers for 4 columns"):
        MECHANISM.release(X[:, :4], y, **asked)
    with pytest.raises(Refused, match="blocks need column_bounds"):
        MECHANISM.guarantee(30, D, epsilon=1.0, lam=1.0, blocks=BLOCKS)
    with pytest.raises(Refused, match="column after the last"):
        MECHANISM.guarantee(30, 2, epsilon=1.0, lam=1.0, column_bounds=[1, 1], blocks=[[2]])
    for wrong in ([[0], [0]], [[-1]], [[]], [0]):
        with pytest.raises(Refused, match="lists of column numbers"):
            MECHANISM.guarantee(30, D, epsilon=1.0, lam=1.0, **FACTS | {"blocks": wrong})


def test_a_candidates_own_facts_are_checked_on_the_rows():
    X, y = np.full((30, 2), 0.5), np.where(np.arange(30) % 2, 1, -1)
    candidates = [{"column_bounds": [0.5, 0.5]}, {"column_bounds": [0.5, 0.4]}]
    with pytest.raises(Refused, match=r"column 1 is 0\.5 in size"):
        list(
            MECHANISM.release_many(
                [((X, y),)],
                rngs=[generator(1)],
                candidates=candidates,
                epsilon=1.0,
                lam=1.0,
            )
        )


@pytest.mark.parametrize("body", ["ball", "box", "hull"])
@pytest.mark.parametrize("adjacency", ["replace-one", ADD_REMOVE])
def test_the_released_noise_is_the_planned_one(body, adjacency):
    """With rows of zeros, w is -b/(n lambda) plus the output noise, which is small here."""
    n, asked = 100, {"epsilon": 1.0, "lam": 0.1, "body": body, "adjacency": adjacency, **FACTS}
    found = MECHANISM.release(
        np.zeros((n, D)), np.ones(n), restarts=4000, rng=generator(2), **asked
    )
    plan = MECHANISM.plan(n, D, **asked)
    norms = plan.body.norm(found.weights * n * 0.1)
    assert kstest(norms, gamma(D, scale=plan.scale).cdf).pvalue > 1e-3
    half = 2 if adjacency == ADD_REMOVE else 1
    assert plan.scale == pytest.approx(2 / half / (1 - plan.share), rel=1e-9)
    output = 2 + (adjacency == ADD_REMOVE) / n
    assert plan.output_scale == pytest.approx(output * 1e-9 / 0.1 / plan.share, rel=1e-9)
    np.testing.assert_allclose(
        (found.weights * n * 0.1).var(axis=0), plan.scale**2 * plan.body.variances(), rtol=0.15
    )


@pytest.mark.parametrize("tolerance", [1e-9, 1e-5])
def test_the_tilt_pays_from_its_own_part_of_epsilon(tolerance):
    """The rule's lambda leaves the Jacobian free at what the output noise leaves, not at epsilon."""
    for loss, unit, R in (("logistic", 2, BOUND), ("log_cosh", 4, BOUND)):
        for adjacency, half in (("replace-one", 1), (ADD_REMOVE, 2)):
            asked = {"epsilon": 1.0, "loss": loss, "adjacency": adjacency, "tolerance": tolerance}
            lam = MECHANISM.rule_lambda(500, D, delta=0.0, **asked, **FACTS)
            plan = MECHANISM.plan(500, D, lam=lam, **asked, **FACTS)
            assert 500 * lam >= unit * R**2 / (half * plan.epsilon) * (1 - 1e-9)
            slope = 1.0 if loss == "logistic" else 0.25
            assert slope / plan.scale == pytest.approx(plan.epsilon * half / 2, rel=1e-9)
            assert plan.epsilon == pytest.approx(1 - plan.share)


def test_the_rule_grows_with_the_noise():
    asked = {"epsilon": 1.0, "delta": 1e-6, "body": "ball"}
    assert 1000 * MECHANISM.rule_lambda(1000, 5, **asked) == pytest.approx(4)
    n_lambda = 1000 * MECHANISM.rule_lambda(1000, 400, **asked)
    scale = MECHANISM.plan(1000, 400, lam=4 / 1000, **asked).scale
    assert n_lambda == pytest.approx(scale * math.sqrt(400 * 401) / 20, rel=1e-3)


def test_a_ball_takes_a_delta_and_its_profile_holds():
    asked = {"epsilon": 1.0, "delta": 1e-6, "lam": 0.01, "body": "ball"}
    guarantee, plan = MECHANISM.guarantee(1000, 10, **asked), MECHANISM.plan(1000, 10, **asked)
    assert guarantee[:3] == (1.0, 1.0, 1e-6)
    assert 1 / plan.scale == pytest.approx(ball_shift(plan.epsilon, 1e-6, 10, 0.1), rel=1e-12)
    # This is the l2 mechanism's scale at twice the shift, apart from the output noise.
    assert plan.scale == pytest.approx(2 * l2.scale(10, plan.epsilon, 1e-6), rel=1e-3)
    profile = guarantee.profile
    assert profile.delta(1.0) == pytest.approx(1e-6, rel=1e-3) and profile.delta(1.0) <= 1e-6
    assert profile.delta(0.5) > profile.delta(0.9) > 1e-6 > profile.delta(1.05)
    at = np.array([-0.5, plan.share / 2])
    assert (profile.delta(at) >= profile.delta(plan.share)).all()


def test_a_box_takes_no_delta_and_auto_says_that_it_uses_none():
    asked = {"epsilon": 1.0, "lam": 0.1, **FACTS}
    for body in ("box", "hull"):
        with pytest.raises(Refused, match=f"with body {body} is"):
            MECHANISM.guarantee(100, D, delta=1e-6, body=body, **asked)
    pure = MECHANISM.guarantee(100, D, **asked)
    assert (pure.delta, pure.profile) == (0.0, None)
    assert (
        "2 columns of at most 1 in size, a one-hot block of 3 columns of at most 1" in pure.reason
    )
    stated = MECHANISM.guarantee(100, D, delta=1e-6, **asked)
    assert stated.delta == 0.0
    assert stated.reason == pure.reason + (
        "; the guarantee is pure, without the delta of 1e-06 that was stated"
    )


def chosen(d, epsilon=0.5, delta=1e-6, **facts):
    lam = MECHANISM.rule_lambda(2000, d, epsilon=epsilon, delta=delta, **facts)
    return MECHANISM.plan(2000, d, epsilon=epsilon, delta=delta, lam=lam, **facts).body.name


def test_auto_takes_the_quietest_body_by_public_numbers():
    assert chosen(5) == "ball"  # rows are only known to be in a ball
    for d, body in ((5, "box"), (20, "box"), (60, "ball")):
        facts = {"column_bounds": [1.0] * d, "bound": math.sqrt(d)}
        assert chosen(d, **facts) == body
    levels = [list(range(5, 12)), list(range(3, 5))]
    assert chosen(12, column_bounds=[1.0] * 12, bound=math.sqrt(5), blocks=levels) == "hull"


def test_excess_is_that_of_a_public_design():
    """Against the mean over draws of the noise, with the Hessian of sampled rows."""
    rng, size = generator(3), 200_000
    bounds, blocks = np.array([1.0, 2.0, 0.5, 0.5, 1.0, 1.0, 1.0]), ((2, 3), (4, 5, 6))
    X = np.zeros((size, 7))
    X[:, :2] = rng.uniform(-1, 1, (size, 2)) * bounds[:2]
    X[np.arange(size), rng.integers(2, 4, size)] = 0.5
    X[np.arange(size), rng.integers(4, 7, size)] = 1.0
    hessian = X.T @ X / size / 4
    inverse = np.linalg.inv(hessian + 0.01 * np.eye(7))
    outer = Body("hull", 2.5, bounds, blocks)
    for body in (
        outer,
        outer._replace(name="box", blocks=()),
        outer._replace(name="ball", blocks=()),
    ):
        b = body.noise(0.7, 100_000, rng)
        norms = body.norm(b)
        assert kstest(norms, gamma(7, scale=0.7).cdf).pvalue > 1e-3
        actual = np.einsum("ij,jk,ik->i", b, inverse @ hessian @ inverse, b).mean()
        assert 0.7**2 * excess(body, outer, 0.25, 0.01) == pytest.approx(actual, rel=0.02)
        assert np.linalg.norm(b, axis=1).max() < 0.7 * body.farthest()


def test_the_pair_of_vertices_is_near_the_worst():
    pair = pairs.find("one_hot")
    asked = pair.arguments | {"epsilon": 1.0, "body": "hull"}
    found = MECHANISM.release(*pair.sides[0], restarts=500, rng=generator(4), **asked)
    losses = pairs.tilt_log_ratio(pair, MECHANISM, **asked)(found.weights)["log density ratio"]
    assert 0.85 < np.abs(losses).max() <= 1.0


def test_bounds_and_blocks_follow_the_steps():
    X = np.array([[5.0, 0, 1, 0], [2.0, 1, 0, 0], [9.0, 0, 0, 1]])
    table = Table(X, np.array([1, -1, 1]), ("a", "p", "q", "r"), groups=(("p", "q", "r"),))
    bounds = ("scale_to_bounds", {"a": [0, 10]})

    def known(*steps):
        made, _ = prepare(table, [bounds, *steps])
        return made.column_bounds, made.blocks

    blocks = ((1, 2, 3),)
    assert known() == ((1.0,) * 4, blocks)
    assert known(("constant_feature", {})) == ((1.0,) * 5, blocks)
    assert known(("constant_feature", {}), ("clip", {"radius": 2})) == ((0.5,) * 5, blocks)
    assert known(("clip", {"radius": 0.5})) == ((1.0,) * 4, blocks)
    assert known(("clip", {"radius": 2}), ("constant_feature", {})) == ((0.5,) * 4 + (1.0,), blocks)
    for step in (("row_norm", {}), ("pca", {"components": 2}), ("max_norm", {})):
        assert known(step) == ((), ())
    centred = ("scale_by_constants", {"*": [0, 1]}), ("clip", {"radius": 1})
    assert known(*centred) == ((), ())
    assert known(("min_max", {})) == ((1.0,) * 4, ())
    facts = {"column_bounds": [1.0], "blocks": None, "coordinate_bound": 1.0}
    assert MECHANISM.of_data(facts) == {"column_bounds": [1.0], "blocks": None}


@pytest.mark.parametrize("clip", [None, 0.75])
def test_an_offset_is_inside_the_loss(clip):
    """The released point minimises mean loss(y (w.x + o)) + lam/2 ||w||^2 + b.w/n, by its gradient."""
    rng = generator(5)
    X = rng.uniform(-1, 1, (300, 4))
    y = np.where(rng.random(300) < 0.1, 1, -1)
    asked = {"epsilon": 1e4, "lam": 0.05, "bound": 2.0, "column_bounds": [1.0] * 4, "clip": clip}
    found = MECHANISM.release(X, y, rng=generator(6), restarts=3, offset="paid", **asked)
    loss = ClippedLogistic(clip) if clip else losses.get("logistic")
    for w, o in zip(found.weights, found.info["intercept"], strict=True):
        assert o == pytest.approx(math.log((y > 0).mean() / (y < 0).mean()), abs=1e-3)
        gradient = (loss.derivative(y * (X @ w + o)) * y) @ X / 300 + 0.05 * w
        assert np.linalg.norm(gradient) < 1e-5  # the tilt, at this epsilon
    without = MECHANISM.release(X, y, rng=generator(6), **asked)
    assert "intercept" not in without.info


def test_the_loss_with_an_offset_has_the_slopes_and_curvatures_of_its_margins():
    for of in (losses.get("logistic"), ClippedLogistic(0.75)):
        loss, z = Offset(of, 8.0), np.linspace(-9, 9, 181)
        slope, curvature = loss.slopes(z / 8)
        expected = of.slopes(z.copy())
        np.testing.assert_allclose(slope / 8, expected[0], rtol=1e-12)
        np.testing.assert_allclose(curvature / 64, expected[1], rtol=1e-12)
        assert (np.abs(slope) <= loss.kappa).all() and (curvature <= loss.c).all()
        np.testing.assert_allclose(loss.derivative(z / 8), slope)
        assert loss.at_zero() == pytest.approx(float(of.value(-8.0)))


def test_epsilon_is_divided_between_rate_tilt_and_output():
    asked = {"epsilon": 1.0, "delta": 1e-6, "lam": 0.1, "body": "ball", "offset": "paid"}
    plan, guarantee = MECHANISM.plan(100, D, **asked), MECHANISM.guarantee(100, D, **asked)
    assert plan.rate == pytest.approx(0.1)
    assert plan.rate + plan.epsilon + plan.share == pytest.approx(1)
    assert plan.output_scale == pytest.approx(2 * 1e-9 / 0.1 / plan.share)
    assert 1 / plan.scale == pytest.approx(ball_shift(plan.epsilon, 1e-6, D, 0.1), rel=1e-12)
    assert "0.1 of epsilon pays for the number of labels 1" in guarantee.reason
    assert 0.5e-6 < guarantee.profile.delta(1.0) <= 1e-6
    numbers = MECHANISM.guarantee(100, D, loss="log_cosh", **asked | {"lam": 0.5})
    assert "0.1 of epsilon pays for the sum of (y + 1)/2, with Laplace noise" in numbers.reason


def test_an_offset_is_the_noisy_class_rate_and_no_more():
    """Offsets of a release give back counts with discrete Laplace noise of scale 1/(epsilon/10)."""
    n, epsilon = 1000, 1.0
    X, y = np.zeros((n, 1)), np.where(np.arange(n) < 250, 1, -1)
    asked = {"epsilon": epsilon, "lam": 1.0, "offset": "paid"}
    found = MECHANISM.release(X, y, restarts=3000, rng=generator(7), **asked)
    rates = 1 / (1 + np.exp(-found.info["intercept"]))
    shrunk = 1 / (1 + 24 / (n * 0.1) ** 2)
    noise = np.round((0.5 + (rates - 0.5) / shrunk) * n - 250)
    q = math.exp(-0.1)
    assert noise.var() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.15)
    assert np.mean(noise == 0) == pytest.approx((1 - q) / (1 + q), abs=0.02)
    # Whatever the noise is, no offset is beyond what the solver is certified for.
    for size, share in itertools.product((1, 30, n, 10**6), (1e-9, 0.1, 1e6)):
        for law, numbers in itertools.product((True, False), repeat=2):
            centre = Centre(size, 1 / share, gaussian=law, numbers=numbers)
            extreme = centre.offsets(np.array([-1e9, 1e9, 0.0, 1.0]))
            most = 1.0 if numbers else centre.unit
            assert np.isfinite(extreme).all() and np.abs(extreme).max() <= most


def test_no_density_is_claimed_where_every_release_has_its_own_offset():
    pair = pairs.find("curvature")
    asked = pair.arguments | {"epsilon": 1.0, "offset": "paid", "lam": 3.0}
    with pytest.raises(pairs.Unsuited, match="offset"):
        pair.exact(pair, MECHANISM, **asked)


def test_rows_read_in_blocks_give_what_an_array_gives():
    rng = generator(8)
    X = rng.integers(-5, 6, (400, 3))
    y = np.where(rng.random(400) < 0.3, 1, -1)
    later = Rows(X, np.arange(400), lambda rows: rows / 5)
    asked = {"epsilon": 1.0, "lam": 0.1, "bound": 2.0, "column_bounds": [1.0] * 3}
    for options in ({}, {"offset": "paid"}):
        one, two = (
            MECHANISM.release(rows, y, rng=generator(9), restarts=2, **asked, **options)
            for rows in (later, X / 5)
        )
        np.testing.assert_allclose(one.weights, two.weights, rtol=1e-6)
    with pytest.raises(Refused, match="column 0 is 1 in size"):
        MECHANISM.release(later, y, rng=generator(9), **asked | {"column_bounds": [0.9, 1.0, 1.0]})
