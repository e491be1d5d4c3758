import math

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import kstest, norm

from dp.descents import full_batch
from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp.solvers.newton import minimise

MECHANISM = MECHANISMS["dp_gd"]


def rows(n=60, d=3, classes=None, seed=3):
    rng = generator(seed, "rows", n, d)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    score = X[:, 0] + 0.3 * rng.standard_normal(n)
    if classes is None:
        return X, np.where(score > 0, 1, -1)
    return X, np.digitize(score, np.linspace(-0.5, 0.5, classes - 1))


def mean_loss(X, y, W, loss):
    if loss == "logistic":
        return np.mean(
            [math.log1p(math.exp(-t * (x @ W[:, 0]))) for x, t in zip(X, y, strict=True)]
        )
    if loss == "squared":
        return ((X @ W[:, 0] - y) ** 2).mean() / 2
    total = 0.0
    for x, t in zip(X, y, strict=True):
        scores = x @ W
        total += math.log(np.exp(scores).sum()) - scores[t]
    return total / len(X)


@pytest.mark.parametrize(
    ("loss", "classes"), [("logistic", None), ("softmax", 4), ("squared", None)]
)
def test_gradient_by_finite_differences(loss, classes):
    X, y = rows(classes=classes)
    K = classes or 1
    W = generator(1).standard_normal((2, 3, K))
    value, gradient = full_batch.mean_gradient(X, y, W, loss)
    for r in range(2):
        assert value[r] == pytest.approx(mean_loss(X, y, W[r], loss))
        for j in range(3):
            for k in range(K):
                step = np.zeros((3, K))
                step[j, k] = 1e-6
                slope = (
                    mean_loss(X, y, W[r] + step, loss) - mean_loss(X, y, W[r] - step, loss)
                ) / 2e-6
                assert gradient[r, j, k] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize(("loss", "classes"), [("logistic", None), ("softmax", 4)])
def test_clipping_is_per_example(loss, classes):
    X, y = rows(classes=classes)
    W = generator(1).standard_normal((2, 3, (classes or 1)))
    clip = 0.3
    _, clipped = full_batch.mean_gradient(X, y, W, loss, clip)
    single = np.array(
        [full_batch.mean_gradient(X[i : i + 1], y[i : i + 1], W, loss)[1] for i in range(len(X))]
    )
    norms = np.sqrt((single**2).sum(axis=(2, 3), keepdims=True))
    assert (norms > clip).any() and (norms < clip).any()
    expected = (single * np.minimum(1, clip / norms)).mean(axis=0)
    np.testing.assert_allclose(clipped, expected, atol=1e-14)


@pytest.mark.parametrize(("loss", "classes"), [("logistic", None), ("softmax", 3)])
def test_neighbours_move_the_mean_by_at_most_its_sensitivity(loss, classes):
    rng = generator(2, "neighbours", loss)
    n, clip, worst = 12, 0.4, 0.0
    X, y = rows(n, 2, classes)
    K = classes or 1
    for _ in range(300):
        W = 3 * rng.standard_normal((1, 2, K))
        X2, y2 = X.copy(), y.copy()
        direction = rng.standard_normal(2)
        X2[0] = direction / np.linalg.norm(direction)
        y2[0] = rng.choice((-1, 1)) if classes is None else rng.integers(classes)
        _, a = full_batch.mean_gradient(X, y, W, loss, clip)
        _, b = full_batch.mean_gradient(X2, y2, W, loss, clip)
        worst = max(worst, np.linalg.norm(a - b))
    assert 0.8 * 2 * clip / n < worst <= 2 * clip / n * (1 + 1e-12)


MEAN_CLIP = MECHANISMS["dp_gd_mean_clip"]


@pytest.mark.parametrize(("loss", "classes"), [("logistic", None), ("softmax", 3)])
def test_a_clipped_mean_moves_as_far_as_rows_let_it(loss, classes):
    rng = generator(2, "mean", loss)
    n, K, moved = 12, classes or 1, {"bounded": 0.0, "unbounded": 0.0}
    X, y = rows(n, 2, classes)
    known = {"epsilon": 1.0, "delta": 1e-5, "loss": loss, "classes": classes, "clip": 0.3}
    for _ in range(300):
        W = 3 * rng.standard_normal((1, 2, K))
        for kind, reach in (("bounded", 1.0), ("unbounded", 1e4)):
            ends = []
            for _ in range(2):
                other, labels = X.copy(), y.copy()
                direction = rng.standard_normal(2)
                other[0] = reach * direction / np.linalg.norm(direction)
                labels[0] = rng.integers(classes) if classes else rng.choice((-1, 1))
                mean = full_batch.mean_gradient(other, labels, W, loss)[1]
                ends.append(full_batch.clipped_mean(mean, 0.3))
            assert max(np.linalg.norm(end) for end in ends) <= 0.3 * (1 + 1e-12)
            moved[kind] = max(moved[kind], np.linalg.norm(ends[0] - ends[1]))
    for kind, distance in moved.items():
        p = MEAN_CLIP.parameters(n, 2, rows=kind, **known)
        most = MEAN_CLIP.moved(n, p)
        assert 0.5 * most < distance <= most * (1 + 1e-12), kind
    assert most == 0.6 > 2 * 0.3 / n  # the source assumes a sensitivity of 2 clip/n


def test_noise_for_a_clipped_mean():
    known = {"epsilon": 1.0, "delta": 1e-5, "iterations": 4}
    p = MEAN_CLIP.parameters(100, 2, **known)
    assert MEAN_CLIP.sigma(100, p) == pytest.approx(2 / 100 * math.sqrt(8 * math.log(1.25e5)))
    # the clipped mean moves 100 times as far as the noise assumes: mu = 100/sqrt(2 log(1.25/delta))
    mu, epsilon = (
        100 / math.sqrt(2 * math.log(1.25e5)),
        MEAN_CLIP.guarantee(100, 2, **known).epsilon,
    )
    upper, lower = norm.cdf(mu / 2 - epsilon / mu), norm.logcdf(-mu / 2 - epsilon / mu)
    assert upper - math.exp(epsilon + lower) == pytest.approx(1e-5, rel=1e-6)
    honest = [
        MEAN_CLIP.guarantee(100, 2, noise="analytic", rows=kind, **known)
        for kind in ("bounded", "unbounded")
    ]
    assert [each.epsilon for each in honest] == [1.0, 1.0]
    X, y = rows(100)
    released = MEAN_CLIP.release(X, y, restarts=2000, rng=generator(7), **known | {"iterations": 1})
    spread = released.weights.std(axis=0)
    one = MEAN_CLIP.parameters(100, 3, **known | {"iterations": 1})
    np.testing.assert_allclose(spread, MEAN_CLIP.sigma(100, one), rtol=0.06)


def test_rows_that_overflow_are_clipped_to_numbers():
    huge = np.array([[[np.inf], [1.0]], [[1e300], [-1e300]], [[np.nan], [0.1]]])
    clipped = full_batch.clipped_mean(huge, 0.5)
    assert np.isfinite(clipped).all()
    assert (np.linalg.norm(clipped, axis=(1, 2)) <= 0.5 * (1 + 1e-12)).all()


def test_a_score_that_is_no_number_moves_a_clipped_mean_no_farther():
    """Neighbours' releases differ by at most `moved`, even if a score is inf - inf.

    Some orders of summation give such a score.
    """
    start = np.array([0.0, *np.tile([1.7e308, -1.7e308], 32)])
    known = {"epsilon": 1.0, "delta": 1e-6, "rows": "bounded", "noise": "analytic", "bound": 16.0}
    known |= {"iterations": 1, "clip": 30.0}
    X, y = np.zeros((100, 65)), np.ones(100)
    X[:, 0] = 1.0
    other = X.copy()
    other[0] = [0.0, *np.full(64, 1.9)]
    with np.errstate(all="ignore"):
        first, second = (
            MEAN_CLIP.release(rows, y, restarts=3, rng=generator(8), initial=start, **known).weights
            for rows in (X, other)
        )
    moved = MEAN_CLIP.moved(100, MEAN_CLIP.parameters(100, 65, **known))
    assert moved == pytest.approx(2 * 16 / 100)
    assert 0 < np.abs(first - second)[:, 0].max() <= moved


def test_without_noise_it_finds_the_minimiser():
    X, y = rows()
    options = {"iterations": 4000, "learning_rate": 3.0, "lam": 0.05, "traced": True}
    expected, _ = minimise(X, y, 0.05)
    plain = MECHANISMS["gradient_descent"].release(X, y, restarts=2, **options)
    np.testing.assert_allclose(plain.weights, np.repeat(expected, 2, axis=0), atol=1e-8)
    trace = plain.info["loss"]
    assert trace.shape == (2, 4001)
    assert trace[0, 0] == pytest.approx(math.log(2))
    assert (np.diff(trace[0]) <= 1e-12).all()
    private = MECHANISM.release(
        X, y, epsilon=1e9, delta=1e-5, rng=generator(1), clip=2.0, **options
    )
    np.testing.assert_allclose(private.weights, expected, atol=1e-3)


def test_softmax_of_two_classes_is_logistic():
    X, y = rows()
    options = {"iterations": 50, "learning_rate": 0.7}
    logistic = MECHANISMS["gradient_descent"].release(X, y, **options)
    softmax = MECHANISMS["gradient_descent"].release(
        X, (y + 1) // 2, loss="softmax", classes=2, **options | {"learning_rate": 0.35}
    )
    difference = softmax.weights[0, :, 1] - softmax.weights[0, :, 0]
    np.testing.assert_allclose(difference, logistic.weights[0], atol=1e-12)


@pytest.mark.parametrize("noise", ["analytic", "published"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 15.0, 150.0])
def test_calibration_by_an_independent_accountant(noise, epsilon):
    """dp_accounting composes T Gaussian events from one event's privacy loss distribution."""
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    n, T, clip, delta = 400, 50, 0.7, 1e-5
    X, y = rows(n, 2)
    release = MECHANISM.release(
        *(X, y), epsilon=epsilon, delta=delta, rng=generator(1), noise=noise, clip=clip,
        iterations=T,
    )  # fmt: skip
    sigma = release.info["scale"]
    if noise == "published":
        assert sigma == pytest.approx(
            2 * clip / (n * epsilon) * math.sqrt(2 * T * math.log(1.25 / delta))
        )
    truth = get_epsilon_gaussian(sigma / (2 * clip / n) / math.sqrt(T), delta)
    guarantee = MECHANISM.guarantee(
        *(n, 2), epsilon=epsilon, delta=delta, noise=noise, clip=clip, iterations=T
    )
    assert guarantee.epsilon == pytest.approx(truth, rel=1e-4)
    known = {15.0: 17.37, 150.0: 610.4}
    if noise == "published" and epsilon in known:
        assert guarantee.epsilon == pytest.approx(known[epsilon], rel=1e-3)


def test_the_noise_of_one_step():
    X, y = rows(classes=3)
    release = MECHANISM.release(
        *(X, y), epsilon=1.0, delta=1e-5, restarts=1500, rng=generator(5), iterations=1,
        learning_rate=2.0, loss="softmax", classes=3, clip=0.5,
    )  # fmt: skip
    assert release.weights.shape == (1500, 3, 3)
    _, gradient = full_batch.mean_gradient(X, y, np.zeros((1, 3, 3)), "softmax", 0.5)
    noise = (-release.weights / 2.0 - gradient) / release.info["scale"]
    assert kstest(noise.ravel(), norm.cdf).pvalue > 0.01
    correlation = np.corrcoef(noise.reshape(1500, 9).T)
    assert np.abs(correlation - np.eye(9)).max() < 0.1


def test_a_warm_start_is_where_descent_begins():
    X, y = rows()
    public = rows(500, 3, seed=8)
    options = {"epsilon": 1.0, "delta": 1e-5, "clip": 0.5, "learning_rate": 0.5}
    expected, _ = full_batch.descend(*public, iterations=1000, learning_rate=0.5)
    trained = MECHANISM.release(
        X, y, rng=generator(1), public=public, pretrain=True, iterations=3, traced=True, **options
    )
    warm = MECHANISM.release(X, y, rng=generator(1), initial=expected[0], iterations=3, **options)
    np.testing.assert_array_equal(trained.weights, warm.weights)
    start = mean_loss(X, y, expected[0][:, None], "logistic")
    assert trained.info["loss"][0, 0] == pytest.approx(start)
    kinds = [
        MECHANISM.guarantee(60, 3, epsilon=1.0, delta=1e-5, pretrain=pretrain)[:4]
        for pretrain in (False, True)
    ]
    assert kinds[0] == kinds[1]


def test_bad_data():
    X, y = rows()
    good = {"epsilon": 1.0, "delta": 1e-5, "rng": generator(1)}
    empty = X[:0], y[:0]
    for public in (None, empty):
        with pytest.raises(ValueError, match="public rows"):
            MECHANISM.release(X, y, pretrain=True, public=public, **good)
    with pytest.raises(ValueError, match="public bound"):
        MECHANISM.release(X, y, bound=0.5, **good)
    with pytest.raises(ValueError, match="public bound"):
        MECHANISM.release(X, y, pretrain=True, public=(3 * X, y), **good)
    with pytest.raises(ValueError, match="number of classes"):
        MECHANISM.release(X, y, loss="softmax", **good)
    with pytest.raises(ValueError, match="from 0 to 1"):
        MECHANISM.release(X, y, loss="softmax", classes=2, **good)
    with pytest.raises(ValueError, match="softmax"):
        MECHANISM.release(X, y, classes=4, **good)
    with pytest.raises(ValueError, match="initial"):
        MECHANISM.release(X, y, initial=np.zeros(4), **good)


LAST = {"accounting": "last_iterate", "lam": 0.1, "learning_rate": 1 / 0.35}


@pytest.mark.parametrize(
    ("lam", "steps", "relative"),
    [(1e-1, 100, 0.245), (1e-1, 1000, 0.077), (1e-2, 100, 0.700), (1e-2, 1000, 0.226), (1e-3, 1000, 0.695)],
)  # fmt: skip
def test_noise_for_the_last_iterate_relative_to_composition(lam, steps, relative):
    """Each `relative` is a published factor, for a learning rate of 1/(lambda + 1/4)."""
    p = {"epsilon": 1.0, "delta": 1e-6, "lam": lam, "iterations": steps}
    p["learning_rate"] = 1 / (lam + 0.25)
    scales = [
        MECHANISM.sigma(500, MECHANISM.parameters(500, 3, **p, accounting=accounting))
        for accounting in ("composition", "last_iterate")
    ]
    assert scales[1] / scales[0] == pytest.approx(relative, abs=1e-3)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"lam": 0.0}, "not below 1"),
        ({"learning_rate": 6.0}, "not below 1"),
        ({"loss": "softmax", "classes": 3}, "clipped softmax"),
    ],
)
def test_where_no_contraction_is_proven_it_is_composition(changes, why):
    p = LAST | changes | {"epsilon": 1.0, "delta": 1e-6}
    last = MECHANISM.guarantee(500, 3, **p)
    assert why in last.reason
    sigma = [
        MECHANISM.sigma(500, MECHANISM.parameters(500, 3, **p | {"accounting": accounting}))
        for accounting in ("composition", "last_iterate")
    ]
    assert sigma[0] == sigma[1]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_last_iterate_of_a_linear_objective_is_exact(adjacency):
    """With steps w -> c w + x + noise, where a record moves x by s, the last iterate has the claimed mu."""
    n, T, lam, rate = 500, 30, 0.1, 2.0
    p = {"epsilon": 1.0, "delta": 1e-6, "lam": lam, "iterations": T, "learning_rate": rate}
    p |= {"accounting": "last_iterate", "adjacency": adjacency}
    sigma = MECHANISM.sigma(n, MECHANISM.parameters(n, 3, **p))
    c = 1 - rate * lam
    assert c >= abs(1 - rate * (lam + 0.25))
    moved = (2 if adjacency == "replace-one" else 1) / n
    shift, spread = (
        moved * sum(c**k for k in range(T)),
        math.sqrt(sum(c ** (2 * k) for k in range(T))),
    )
    from dp_privacy.accounting import gaussian_mu

    assert shift / (sigma * spread) == pytest.approx(gaussian_mu(1.0, 1e-6), rel=1e-9)


def test_the_last_iterate_tells_nothing_of_earlier_ones():
    X, y = rows()
    p = {"epsilon": 1.0, "delta": 1e-6, "iterations": 5, "traced": True}
    release = MECHANISM.release(X, y, rng=generator(1), **LAST, **p)
    assert "loss" not in release.info and "train_error" in release.info
    assert "loss" in MECHANISM.release(X, y, rng=generator(1), **p).info


def test_the_rule_of_steps_needs_no_data():
    assert MECHANISM.rule_steps(36_177, 104, 1.0, 1e-6) == {
        "iterations": 840, "learning_rate": 4.0, "clip": 1.0,
    }  # fmt: skip
    assert MECHANISM.rule_steps(100, 400, 0.1, 1e-6, 2.0)["iterations"] == 1
    assert MECHANISM.rule_steps(100, 400, 0.1, 1e-6, 2.0)["learning_rate"] == 1.0


def test_the_rule_of_softmax_steps_bounds_the_noise_on_scores():
    """Apart from its effect on later gradients, noise gives scores a standard deviation of at most 1."""
    for n, classes, epsilon, bound in (
        (48_000, 10, 1.0, 1.0),
        (500, 4, 0.5, 2.0),
        (30, 10, 0.1, 1.0),
    ):
        arguments = {"epsilon": epsilon, "delta": 1e-6, "bound": bound, "loss": "softmax"}
        rule = MECHANISM.rule_steps(n, 7, classes=classes, **arguments)
        p = MECHANISM.parameters(n, 7, classes=classes, steps="rule", **arguments)
        assert (p.iterations, p.learning_rate, p.clip) == tuple(rule.values())
        noise = p.learning_rate * math.sqrt(p.iterations) * MECHANISM.sigma(n, p) * bound
        assert p.learning_rate <= 1.5 * classes / bound**2 and noise == pytest.approx(1, rel=1e-9)
    assert MECHANISM.rule_steps(10**6, 7, 8.0, 1e-6, 1.0, "softmax", 3) == {
        "iterations": 1000, "learning_rate": 4.5, "clip": 0.5,
    }  # fmt: skip
    with pytest.raises(ValueError, match="public number of classes"):
        MECHANISM.rule_steps(100, 7, 1.0, 1e-6, loss="softmax")


@pytest.mark.parametrize(("loss", "classes"), [("logistic", None), ("softmax", 4)])
@pytest.mark.parametrize("bound", [1.0, 2.0])
def test_the_rule_of_steps_does_not_diverge_at_any_lambda(loss, classes, bound):
    """With hardly any noise, descent ends at the minimiser, or where clipped gradients average to zero.

    A small lambda changes neither the number of steps nor their size.
    """
    X, y = rows(200, classes=classes)
    X, curvature = bound * X, bound**2 / 4
    options = {"epsilon": 1e8, "delta": 1e-6, "bound": bound, "loss": loss, "classes": classes}
    for lam in (curvature / 2, curvature, 2.5 * curvature, 30.0, 1e4):
        release = MECHANISM.release(
            X, y, rng=generator(1), restarts=2, lam=lam, steps="rule", **options
        )
        assert (release.status == "ok").all()
        p = MECHANISM.parameters(200, 3, lam=lam, steps="rule", **options)
        if loss == "logistic":
            least, _ = minimise(X, y, lam)
            expected = np.repeat(least, 2, axis=0)
            np.testing.assert_allclose(release.weights, expected, atol=0.01 * np.abs(least).max())
        else:
            for W in release.weights:
                residual = softmax(X @ W, axis=1) - np.eye(4)[y]
                size = np.linalg.norm(X, axis=1) * np.linalg.norm(residual, axis=1)
                residual *= np.minimum(1, p.clip / size)[:, None]
                np.testing.assert_allclose(X.T @ residual / 200, -lam * W, atol=1e-3 * bound)
        largest = curvature if loss == "logistic" else curvature / 1.5
        assert p.learning_rate == pytest.approx(2 / (largest + 2 * lam))
    plain = MECHANISM.rule_steps(200, 3, **options)
    assert plain == MECHANISM.rule_steps(200, 3, lam=1e-3, **options)


def test_adding_a_record_needs_half_of_the_noise():
    sigma = [
        MECHANISM.sigma(
            50, MECHANISM.parameters(50, 3, epsilon=1.0, delta=1e-6, adjacency=adjacency)
        )
        for adjacency in ("replace-one", "add-remove")
    ]
    assert sigma[0] == pytest.approx(2 * sigma[1])
    guarantee = MECHANISM.guarantee(50, 3, epsilon=1.0, delta=1e-6, adjacency="add-remove")
    assert guarantee.adjacency == "add-remove" and "C/n = 0.02 " in guarantee.reason


POISSON = MECHANISMS["dp_sgd_poisson"]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_poisson_noise_by_an_independent_accountant(adjacency):
    """dp_accounting's Rényi divergences bound the same steps a little less tightly."""
    from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, rdp

    epsilon, steps, sampling = 1.0, 100, 0.05
    p = {"epsilon": epsilon, "delta": 1e-5, "iterations": steps, "sampling": sampling, "clip": 0.7}
    guarantee = POISSON.guarantee(400, 3, adjacency=adjacency, **p)
    release = POISSON.release(*rows(400), rng=generator(1), adjacency=adjacency, **p)
    multiplier = release.info["scale"] * sampling * 400 / 0.7
    assert guarantee.profile.epsilon(1e-5) == pytest.approx(epsilon, rel=1e-3)
    assert guarantee.profile.epsilon(1e-5) <= epsilon
    if adjacency == "add-remove":
        accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE)
        event = PoissonSampledDpEvent(sampling, GaussianDpEvent(multiplier))
        loose = accountant.compose(event, steps).get_epsilon(1e-5)
        assert epsilon < loose < 1.25 * epsilon
    one = POISSON.parameters(400, 3, **p | {"sampling": 1}, adjacency=adjacency)
    assert multiplier < POISSON._noise(one)[0]


@pytest.mark.parametrize("loss", ["logistic", "squared", "softmax"])
def test_poisson_batches_are_divided_by_their_expected_size(loss):
    X, y = rows(50, classes=3 if loss == "softmax" else None)
    W = generator(1).standard_normal((1, 3, 3 if loss == "softmax" else 1))
    _, full = full_batch.mean_gradient(X, y, W, loss, 0.5)
    many = np.repeat(W, 4000, axis=0)
    actual = full_batch.sampled_gradient(X, y, many, loss, 0.5, 0.2, generator(2))
    error = actual.std(axis=0) / math.sqrt(4000)
    assert (np.abs(actual.mean(axis=0) - full[0]) < 5 * error).all()
    whole = full_batch.sampled_gradient(X, y, W, loss, 0.5, 1.0, generator(2))
    np.testing.assert_allclose(whole, full, atol=1e-15)
    none = full_batch.sampled_gradient(X, y, W, loss, 0.5, 1e-12, generator(2))
    assert not none.any()
