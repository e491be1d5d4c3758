import math

import numpy as np
import pytest
from scipy import special, stats

from dp.descents import stochastic
from dp.mechanisms import MECHANISMS

DP_SGD, SGD = MECHANISMS["dp_sgd"], MECHANISMS["sgd"]


def unit_rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(rng.random(n) < 0.5, -1, 1)


SLOPES = {
    "logistic": lambda z: -1 / (1 + np.exp(z)),
    "squared": lambda z: z - 1,
    "huber": lambda z: -min(1.0, max(0.0, 1.5 - z)),
}


@pytest.mark.parametrize("loss", SLOPES)
@pytest.mark.parametrize("schedule", ["inverse_sqrt", "inverse_lambda", "constant"])
def test_descend_is_the_loop_of_the_definition(loss, schedule):
    n, d, clip, lam, rate = 23, 3, 0.4, 0.7, 0.3
    X, y = unit_rows(n, d, 1)
    X *= np.linspace(0.2, 3, n)[:, None]
    rng = np.random.default_rng(2)
    plan = stochastic.batch_plan(n, 5)
    orders = [rng.permutation(n) for _ in range(2)]
    noises = [rng.standard_normal((len(plan[0]), d)) for _ in range(2)]
    w, step = np.zeros(d), 0
    for order, noise in zip(orders, noises, strict=True):
        for k in range(math.ceil(n / 5)):
            step += 1
            total = noise[k].copy()
            for i in order[5 * k : 5 * k + 5]:
                gradient = SLOPES[loss](y[i] * (X[i] @ w)) * y[i] * X[i]
                total += gradient / max(1.0, np.linalg.norm(gradient) / clip)
            eta = {
                "inverse_sqrt": rate / math.sqrt(step),
                "inverse_lambda": rate / (lam * step),
                "constant": rate,
            }[schedule]
            w = w - eta * (lam * w + total / 5)
    passes = [(o[None], z[None]) for o, z in zip(orders, noises, strict=True)]
    residual = loss == "squared"
    actual, stored = stochastic.descend(
        (X if residual else X * y[:, None])[None],
        [0],
        [lam, 0.1],
        passes,
        plan,
        targets=y[None] if residual else None,
        loss=loss,
        clip=clip,
        schedule=schedule,
        rate=rate,
        checkpoints=[step],
    )
    np.testing.assert_allclose(actual[0, 0], w, rtol=1e-12)
    np.testing.assert_array_equal(stored[-1], actual)


def test_batches_are_disjoint_and_cover_the_rows_once():
    for n, batch, final in [(100, 7, None), (100, 500, None), (361, 60, 5), (50, 2, 10), (1, 1, 1)]:
        starts, stops, divisors = stochastic.batch_plan(n, batch, final)
        assert starts[0] == 0 and stops[-1] == n
        np.testing.assert_array_equal(starts[1:], stops[:-1])
        assert (stops - starts <= divisors).all() and (stops > starts).all()
        if final is not None and final < batch:
            assert (np.diff(divisors) <= 0).all() and divisors[0] == min(batch, n)
            assert divisors[-1] <= 1.5 * final + 1


@pytest.mark.parametrize(
    ("epochs", "accounting"), [(1, "composed"), (4, "composed"), (4, "as_published")]
)
def test_noise_of_one_step_has_the_stated_law(epochs, accounting):
    """With one row, a pass is a step to w = -(gradient + z), so ||w + gradient|| ~ Gamma(d + 1, scale)."""
    d, epsilon, clip = 3, 0.8, 0.5
    X, y = unit_rows(1, d)
    release = DP_SGD.release(
        X, y, epsilon=epsilon, lam=1.0, restarts=4000, rng=np.random.default_rng(5), batch=1,
        epochs=epochs, accounting=accounting, schedule="constant", clip=clip, bias=True,
    )  # fmt: skip
    # With rate 1 and lam 1, w is the last -(gradient + z). The clipped gradient is far below the
    # noise.
    scale = 2 * clip * (epochs if accounting == "composed" else 1) / epsilon
    z = np.column_stack([release.weights, release.info["intercept"]])
    if epochs == 1:
        gradient = -0.5 * y[0] * np.append(X[0], 1.0)
        gradient *= min(1, clip / np.linalg.norm(gradient))
        norm = np.linalg.norm(z + gradient, axis=1)
        assert stats.kstest(norm, stats.gamma(d + 1, scale=scale).cdf).pvalue > 1e-3
        direction = (z + gradient) / norm[:, None]
        assert abs(direction.mean(axis=0)).max() < 4 / math.sqrt(4000)
    else:
        assert abs(np.linalg.norm(z, axis=1).mean() / ((d + 1) * scale) - 1) < 0.1


def test_neighbours_move_the_noiseless_sums_by_at_most_twice_the_clip():
    """The noise scale assumes this sensitivity. Rows are adversarial and seen once, in a fixed order."""
    rng = np.random.default_rng(7)
    n, d, clip = 12, 4, 0.3
    order = rng.permutation(n)[None]
    plan = stochastic.batch_plan(n, 4)
    worst = 0.0
    for _ in range(200):
        rows = rng.standard_normal((1, n, d)) * rng.exponential(5, (1, n, 1))
        other = rows.copy()
        i = rng.integers(n)
        other[0, i] = -rows[0, i] * rng.exponential()
        ends = []
        for data in (rows, other):
            # At the first step that sees the record, both runs are still at the same point.
            k = int(np.flatnonzero(order[0] == i)[0]) // 4
            _, stored = stochastic.descend(
                data, [0], [1.0], [(order, None)], plan, clip=clip, schedule="constant",
                checkpoints=[k + 1],
            )  # fmt: skip
            ends.append(stored[0, 0, 0])
        worst = max(worst, 4 * np.linalg.norm(ends[0] - ends[1]))
    assert clip < worst <= 2 * clip * (1 + 1e-12)


def test_composition_is_stated():
    common = {"epsilon": 0.5, "lam": 0.1}
    assert DP_SGD.guarantee(100, 5, **common).epsilon == 0.5
    assert DP_SGD.guarantee(100, 5, epochs=10, **common).epsilon == 0.5
    published = DP_SGD.guarantee(100, 5, epochs=10, accounting="as_published", **common)
    assert (published.claimed_epsilon, published.epsilon) == (0.5, 5.0)
    assert math.isinf(SGD.guarantee(100, 5, lam=0.1).epsilon)


@pytest.mark.parametrize("dimensions", [None, 3])
def test_together_is_the_same_as_one_by_one(dimensions, monkeypatch):
    trains = [unit_rows(n, 6, k) for k, n in enumerate((30, 30, 31))]
    common = {"epsilon": 1.0, "batch": 4, "dimensions": dimensions, "epochs": 2, "restarts": 2}
    candidates = [{"lam": 0.1}, {"lam": 2.0}, {"lam": 0.1, "batch": 9}]

    def rngs():
        return np.random.default_rng(3).spawn(3)

    folds = [(train,) for train in trains]
    together = list(DP_SGD.release_many(folds, rngs=rngs(), candidates=candidates, **common))
    assert [fold for fold, _ in together] == folds
    for j, ((train,), release) in enumerate(together):
        for k, candidate in enumerate(candidates):
            alone = DP_SGD.release(*train, rng=rngs()[j], **common | candidate)
            part = slice(2 * k, 2 * k + 2)
            np.testing.assert_allclose(release.weights[part], alone.weights, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(release.info["intercept"][part], alone.info["intercept"])
    monkeypatch.setattr("dp.mechanisms.sgd.CHUNK_BYTES", 1)
    chunked = list(DP_SGD.release_many(folds, rngs=rngs(), candidates=candidates, **common))
    for (_, a), (_, b) in zip(together, chunked, strict=True):
        np.testing.assert_allclose(a.weights, b.weights, rtol=1e-10, atol=1e-12)


def test_projection_has_its_rank_and_learns():
    rng = np.random.default_rng(0)
    X, _ = unit_rows(2000, 30, 4)
    y = np.where(X[:, 0] > 0, 1, -1)
    release = SGD.release(X, y, lam=1e-3, rng=rng, restarts=1, batch=5, dimensions=10, bias=False)
    w = release.weights
    assert w.shape == (1, 30)
    # Ten of thirty dimensions keep about a third of the separator's squared length.
    assert np.mean((X @ w[0] > 0) == (y > 0)) > 0.6
    full = SGD.release(X, y, lam=1e-3, rng=rng, restarts=1, batch=5)
    assert np.mean((X @ full.weights[0] + full.info["intercept"] > 0) == (y > 0)) > 0.9


def test_projection_does_not_depend_on_the_data():
    X, y = unit_rows(40, 8)
    other, labels = unit_rows(40, 8, 9)
    spans = []
    for data in ((X, y), (other, labels)):
        w = SGD.release(
            *data,
            lam=0.1,
            rng=np.random.default_rng(1),
            restarts=1,
            batch=1,
            dimensions=1,
            bias=False,
        ).weights[0]
        spans.append(w / np.linalg.norm(w))
    assert abs(spans[0] @ spans[1]) == pytest.approx(1)


def test_diverging_runs_are_reported():
    X, y = unit_rows(400, 3)
    release = SGD.release(
        X, y, lam=50.0, rng=np.random.default_rng(0), batch=1, schedule="constant"
    )
    assert release.status[0] == "diverged" and np.isfinite(release.weights).all()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"batch": 0}, "batch"),
        ({"batch": 2.5}, "batch"),
        ({"epochs": 0}, "epochs"),
        ({"schedule": "cosine"}, "schedule"),
        ({"accounting": "free"}, "accounting"),
        ({"clip": 0}, "clip"),
        ({"dimensions": 0}, "dimensions"),
        ({"batch_final": 0}, "batch_final"),
        ({"loss": "hinge"}, "hinge"),
    ],
)
def test_bad_options_are_refused(options, word):
    with pytest.raises(ValueError, match=word):
        DP_SGD.guarantee(100, 5, epsilon=1.0, lam=0.1, **options)
    with pytest.raises(ValueError, match=word):
        X, y = unit_rows(10, 3)
        DP_SGD.release(X, y, epsilon=1.0, lam=0.1, rng=np.random.default_rng(0), **options)


def test_as_run_is_the_loop_of_the_sources_program():
    """Each coordinate of a gradient uses its own product w_j x_j, and the whole vector is clipped.

    Regularisation adds lambda sum(w) to every coordinate.
    """
    n, d, clip, lam = 23, 3, 0.4, 0.7
    X, y = unit_rows(n, d, 1)
    X *= np.linspace(0.2, 3, n)[:, None]
    rng = np.random.default_rng(2)
    plan = stochastic.batch_plan(n, 5)
    order, noise = rng.permutation(n), rng.standard_normal((len(plan[0]), d))
    w = np.zeros(d)
    for k in range(math.ceil(n / 5)):
        total = noise[k].copy()
        for i in order[5 * k : 5 * k + 5]:
            gradient = -(X[i] * y[i]) / (np.exp(y[i] * w * X[i]) + 1)
            total += gradient / max(1.0, np.linalg.norm(gradient) / clip)
        w = w - (lam * sum(w) + total / 5) / math.sqrt(k + 1)
    actual, _ = stochastic.descend(
        (X * y[:, None])[None], [0], [lam, 0.1], [(order[None], noise[None])], plan, clip=clip,
        as_run=True,
    )  # fmt: skip
    np.testing.assert_allclose(actual[0, 0], w, rtol=1e-12)


@pytest.mark.parametrize("cached", [1, 40, 1 << 15])
def test_gradients_as_run_are_those_of_scipys_logistic_function(cached, monkeypatch):
    """Blocks may have any size, and exp may overflow."""
    monkeypatch.setattr(stochastic, "CACHED", cached)
    rng, clip = np.random.default_rng(4), 0.5
    w, x = rng.standard_normal((2, 3, 5)), rng.standard_normal((2, 7, 5))
    w[0, 0] *= 1e4
    slopes = -x[:, None] * special.expit(-w[:, :, None] * x[:, None])
    lengths = np.linalg.norm(slopes, axis=3, keepdims=True)
    expected = (slopes * np.minimum(1, clip / lengths)).sum(axis=2)
    with np.errstate(over="ignore"):
        actual = stochastic.program_gradient(w, x, clip)
    np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-15)


def test_noise_as_run_has_a_radius_per_coordinate():
    """z_j = l_j v_j, v a uniform direction, l_j ~ Gamma(width, scale), so E z_j^2 = (width + 1) scale^2."""
    law, width, scale = MECHANISMS["dp_sgd_as_run"].law, 4, 1.5
    z = law(width, scale, 200_000, np.random.default_rng(0))
    np.testing.assert_allclose((z**2).mean(axis=0), (width + 1) * scale**2, rtol=0.03)
    np.testing.assert_allclose((z > 0).mean(axis=0), 0.5, atol=0.01)
    # With one radius for all coordinates, the norm would follow Gamma(4, 1.5).
    assert stats.kstest(np.linalg.norm(z, axis=1)[:5000], stats.gamma(4, scale=1.5).cdf)[1] < 1e-6


def test_the_density_of_noise_as_run_has_no_bounded_quotient():
    """Far out on an axis, moving 1 away from it lowers the log density by more than any claimed epsilon.

    By quadrature in two dimensions, the drop grows with the distance from the origin.
    """
    from scipy import integrate

    epsilon, clip = 1.0, 0.5
    scale = 2 * clip / epsilon
    radius = stats.gamma(2, scale=scale).pdf

    def density(a, b):
        # t: the log of the direction's second coordinate.
        def at(t):
            sine = np.exp(t)
            cosine = np.sqrt(1 - sine**2)
            return radius(a / cosine) * radius(b / sine) / cosine**2

        return integrate.quad(at, -14, -1e-6, limit=500)[0]

    losses = [math.log(density(t, 1e-3) / density(t, 1.0)) for t in (10, 100, 400)]
    assert losses[0] < losses[1] < losses[2] and losses[1] > 4 * epsilon
    # The reference is the leading term of each loss, without power factors.
    expected = [((1 + t ** (2 / 3)) ** 1.5 - t) / scale for t in (100, 400)]
    assert losses[2] - losses[1] == pytest.approx(expected[1] - expected[0], rel=0.35)
    assert (
        MECHANISMS["dp_sgd_as_run"].guarantee(100, 2, epsilon=epsilon, lam=0.1).epsilon == math.inf
    )
    alone = {"epsilon": epsilon, "lam": 0.1, "bias": False, "epochs": 3}
    assert MECHANISMS["dp_sgd_as_run"].guarantee(100, 1, **alone).epsilon == 3 * epsilon
