import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dp.descents import distributed_lasso
from dp.mechanisms import MECHANISMS
from dp.mechanisms.published import lasso_as_run
from dp_privacy.accounting import gaussian_delta

LASSO, DP_LASSO = MECHANISMS["distributed_lasso"], MECHANISMS["dp_distributed_lasso"]
RAW = {
    "preparation": "none",
    "max_iterations": 20000,
    "cost_difference": 0.0,
    "loss_threshold": 0.0,
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 12)) * np.linspace(0.2, 1, 12)
    X[:, 4] = 0.3
    X /= np.linalg.norm(X, axis=1).max()
    return X, np.where(X[:, 9] + X[:, 10] + 0.1 * rng.standard_normal(90) > 0, 1, -1)


@pytest.mark.parametrize("centres", [1, 2, 5])
@pytest.mark.parametrize("lam", [0.003, 0.03])
def test_converges_to_scikit_learns_lasso(data, centres, lam):
    from sklearn.linear_model import Lasso

    X, y = data
    release = LASSO.release(X, y, lam=lam, centres=centres, **RAW)
    model = Lasso(alpha=lam, fit_intercept=False, tol=1e-12, max_iter=100000).fit(X, y)
    np.testing.assert_allclose(release.weights[0], model.coef_, atol=5e-6)
    assert release.info["discarded"][0] == (model.coef_ == 0).sum()


def test_centres_together_are_all_data_in_one_place(data):
    settings = {"lam": 0.01, "max_iterations": 200}
    one, many = (LASSO.release(*data, centres=m, **settings).weights for m in (1, 7))
    np.testing.assert_allclose(many, one, atol=1e-6)


def test_single_centre_sees_only_its_share(data):
    X, y = data
    whole = LASSO.release(X, y, lam=0.01, part="one", centres=3)
    share = LASSO.release(X[:30], y[:30], lam=0.01, centres=1)
    np.testing.assert_array_equal(whole.weights, share.weights)


def test_gram_and_rows_give_the_same_gradient():
    rng = np.random.default_rng(1)
    for n, d in ((5, 40), (40, 5)):
        X, y, w = (
            rng.standard_normal((n, d)),
            np.sign(rng.standard_normal(n)),
            rng.standard_normal((3, d)),
        )
        by_hand = np.array([sum((v @ x - t) * x for x, t in zip(X, y, strict=True)) for v in w])
        np.testing.assert_allclose(
            distributed_lasso.Centre(X, y).gradient(w), by_hand, rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize("gradients", distributed_lasso.GRADIENTS)
@pytest.mark.parametrize("shrinkage", distributed_lasso.SHRINKAGES)
def test_equal_centres_may_be_computed_as_one(data, gradients, shrinkage):
    X, y = data
    parts = distributed_lasso.split_rows(len(X), 3)
    each = [distributed_lasso.Centre(X[part], y[part]) for part in parts]
    arguments = 12, [0.003, 1e-20], 0.002, {"shrinkage": shrinkage, "gradients": gradients}
    apart, together = (
        distributed_lasso.proximal_gradient(centres, *arguments[:3], **arguments[3])
        for centres in (each, [distributed_lasso.Centre(X, y, count=3)])
    )
    np.testing.assert_allclose(together[0], apart[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(together[2], apart[2])


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.35])
@pytest.mark.parametrize("looked_at", [7, 50])
def test_iterations_end_where_they_would_if_every_cost_was_found_at_once(
    data, threshold, looked_at, monkeypatch
):
    results = []
    for size in (1, looked_at):
        monkeypatch.setattr(distributed_lasso, "LOOKED_AT", size)
        centres = [distributed_lasso.Centre(*data)]
        settings = {"cost_difference": 1e-7, "loss_threshold": threshold, "max_iterations": 333}
        lam, rate = [0.003, 0.003, 0.5, 0.01, 10.0], [1.0, 0.1, 0.5, 1e3, 0.5]
        results.append(distributed_lasso.proximal_gradient(centres, 12, lam, rate, **settings))
    (w, iterations, stopped), (w_, iterations_, stopped_) = results
    np.testing.assert_array_equal(iterations, iterations_)
    np.testing.assert_array_equal(stopped, stopped_)
    assert stopped[3] == "diverged" and iterations.min() < 10 and len(set(stopped)) > 1
    ended = stopped != "diverged"
    np.testing.assert_allclose(w_[ended], w[ended], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("shrinkage", ["soft", "as_printed"])
def test_iterations_are_those_of_the_definition(data, shrinkage):
    X, y = data
    lam, rate, n = 0.02, 0.4, len(X)
    w = np.zeros(12)
    for _ in range(7):
        v = w - rate * X.T @ (X @ w - y) / n
        if shrinkage == "soft":
            w = np.array([np.sign(a) * max(abs(a) - rate * lam, 0) for a in v])
        else:
            w = np.array([np.sign(a) * (abs(a) - lam) for a in v])
    release = LASSO.release(
        X, y, lam=lam, rate=rate, shrinkage=shrinkage, preparation="none", max_iterations=7
    )
    np.testing.assert_allclose(release.weights[0], w, rtol=1e-10, atol=1e-14)
    assert release.info["iterations"][0] == 7 and release.info["stopped"][0] == "iterations"


def test_printed_shrinkage_discards_constant_columns_only(data):
    X, y = data
    X = X.copy()
    X[:, 6] = 0.0
    printed = LASSO.release(X, y, lam=0.1, shrinkage="as_printed", max_iterations=50)
    assert printed.info["discarded"][0] == 2  # columns 4 and 6
    soft = LASSO.release(X, y, lam=0.1, shrinkage="soft", max_iterations=50)
    assert soft.info["discarded"][0] > 2


def test_coordinator_knows_the_cost_from_gradients_alone(data):
    X, y = data
    lam, rate, n = 0.001, 0.5, len(X)
    costs, w = [], np.zeros(12)
    for _ in range(60):
        w = distributed_lasso.soft_threshold(w - rate * X.T @ (X @ w - y) / n, lam, rate)
        costs.append(((y - X @ w) ** 2).sum() / (2 * n) + lam * np.abs(w).sum())
    threshold = (costs[29] + costs[30]) / 2
    release = LASSO.release(X, y, lam=lam, rate=rate, preparation="none", loss_threshold=threshold)
    assert release.info["stopped"][0] == "loss threshold" and release.info["iterations"][0] == 31


def test_stopping_rules_and_divergence(data):
    still = LASSO.release(*data, lam=10.0, preparation="none")
    assert still.info["stopped"][0] == "cost difference" and (still.weights == 0).all()
    away = LASSO.release(*data, lam=0.01, rate=1e3)
    assert away.status[0] == "diverged" and away.info["stopped"][0] == "diverged"


def test_candidates_together_are_the_same_as_one_by_one(data):
    candidates = [
        {"lam": lam, "rate": rate, "shrinkage": s}
        for lam in (0.1, 0.001)
        for rate in (0.1, None)
        for s in ("soft", "as_printed")
    ]
    # With this cost difference, unlike the default of 1e-20, no stop depends on rounding.
    options = {"max_iterations": 100, "cost_difference": 1e-9}
    ((_, together),) = LASSO.release_many([(data,)], candidates=candidates, **options)
    for k, candidate in enumerate(candidates):
        alone = LASSO.release(*data, **options, **candidate)
        np.testing.assert_allclose(together.weights[k], alone.weights[0], atol=1e-10)
        for key in ("stopped", "iterations"):
            assert together.info[key][k] == alone.info[key][0]
    assert {"iterations", "cost difference"} == set(together.info["stopped"])


@pytest.mark.parametrize("rows", [10, 90])
def test_preparation_is_scikit_learns(data, rows):
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    X = data[0][:rows]
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    Z[:, 4] = 0.0
    standardised = distributed_lasso.Preparation(X, "standardise")
    np.testing.assert_allclose(standardised.apply(X), Z, atol=1e-12)
    pca = distributed_lasso.Preparation(X, "pca", 4)
    expected = PCA(4, svd_solver="full").fit(Z).transform(Z)
    actual = pca.apply(X)
    np.testing.assert_allclose(np.abs(actual), np.abs(expected), atol=1e-8)
    w = np.arange(1.0, 5.0)[None]
    weights, intercept = pca.unapply(w)
    np.testing.assert_allclose(X @ weights[0] + intercept[0], actual @ w[0], atol=1e-10)


def test_preparation_is_fitted_on_all_rows_where_they_are_given(data):
    X, y = data
    settings = {"lam": 0.01, "rate": 0.05, "max_iterations": 50}
    for kind in ("standardise", "pca"):
        prepared = distributed_lasso.Preparation(X, kind, 5)
        for part, rows in (("all", slice(0, 30)), ("one", slice(0, 15))):
            (_, plain), (_, few) = LASSO.release_many(
                [((X[:30], y[:30]),), ((X[:8], y[:8]),)], all_rows=[X, X[:60]],
                preparation=kind, components=5, part=part, **settings,
            )  # fmt: skip
            w, _, _ = distributed_lasso.proximal_gradient(
                [distributed_lasso.Centre(prepared.apply(X)[rows], y[rows])], 12 if kind != "pca" else 5,
                [0.01], [0.05], max_iterations=50,
            )  # fmt: skip
            weights, intercept = prepared.unapply(w)
            np.testing.assert_allclose(plain.weights, weights, atol=1e-9)
            np.testing.assert_allclose(plain.info["intercept"], intercept, atol=1e-9)
            again = LASSO.release(
                X[:8], y[:8], all_rows=X[:60], preparation=kind, components=5, part=part, **settings
            )
            np.testing.assert_array_equal(few.weights, again.weights)


def test_private_rounds_are_those_of_the_definition(data):
    X, y = data
    lam, clip, rate, rounds = 0.01, 0.2, 0.8, 6
    w = np.zeros(12)
    for _ in range(rounds):
        total = np.zeros(12)
        for x, t in zip(X, y, strict=True):
            gradient = (w @ x - t) * x
            total += gradient * min(1.0, clip / np.linalg.norm(gradient))
        v = w - rate * total / len(X)
        w = np.sign(v) * np.maximum(np.abs(v) - rate * lam, 0)
    release = DP_LASSO.release(
        X, y, epsilon=1e9, delta=0.5, lam=lam, clip=clip, rate=rate, rounds=rounds, centres=3,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    np.testing.assert_allclose(release.weights[0], w, atol=1e-4)


def test_private_noise_is_calibrated_to_all_rounds():
    """With one round and a tiny lam, w = -rate (clipped gradient + noise of m centres)/n."""
    X, y = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1, 1])
    epsilon, delta, centres, clip = 0.9, 1e-4, 2, 0.5
    release = DP_LASSO.release(
        X, y, epsilon=epsilon, delta=delta, lam=1e-12, restarts=4000, rng=np.random.default_rng(2),
        centres=centres, clip=clip, rounds=1, rate=1.0,
    )  # fmt: skip
    sigma = release.info["sigma"]
    noise = -2 * release.weights + np.array([2 * clip, 0.0])
    assert (
        stats.kstest(noise.ravel(), stats.norm(scale=sigma * math.sqrt(centres)).cdf).pvalue > 1e-3
    )
    for rounds in (1, 30):
        sigma = DP_LASSO.release(
            X, y, epsilon=epsilon, delta=delta, lam=0.1, rng=np.random.default_rng(2), rounds=rounds,
            clip=clip,
        ).info["sigma"]  # fmt: skip
        mu = math.sqrt(rounds) * 2 * clip / sigma
        exact = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
            -mu / 2 - epsilon / mu
        )
        assert exact == pytest.approx(delta, rel=1e-6)
        assert gaussian_delta(sigma, epsilon, 2 * clip * math.sqrt(rounds)) <= delta


def test_private_sums_move_by_at_most_twice_the_clip():
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(300):
        X, y = rng.standard_normal((6, 4)), np.sign(rng.standard_normal(6))
        Z, t = X.copy(), y.copy()
        Z[2], t[2] = X[2] * rng.uniform(0.5, 2), -y[2]
        w = rng.standard_normal((1, 4)) * 0.1
        move = distributed_lasso.clipped_sum(X, y, w, 0.5) - distributed_lasso.clipped_sum(
            Z, t, w, 0.5
        )
        worst = max(worst, np.linalg.norm(move))
    assert 0.9 < worst <= 1 + 1e-12


def test_more_centres_than_rows_are_refused():
    with pytest.raises(ValueError, match="101 centres"):
        LASSO.guarantee(100, 5, lam=0.1, centres=101)


def test_rows_without_any_varying_column_release_zeros():
    """Standardisation turns a single row, or equal rows, into zeros."""
    for X, y in ((np.ones((1, 1)), np.array([1])), (np.ones((2, 3)) / 2, np.array([1, -1]))):
        release = MECHANISMS["distributed_lasso"].release(X, y, lam=0.1, centres=1)
        assert release.status[0] == "ok" and not release.weights.any()


def test_two_centres_whose_averages_are_added_are_one_at_twice_the_rate(data):
    """The claim that sharing gradients beats pooling data compares a method with itself."""
    options = {"preparation": "standardise", "shrinkage": "as_printed", "lam": 1e-20, "bias": True}
    settings = {"max_iterations": 300, **options}
    added = LASSO.release(*data, centres=2, gradients="added_means", rate=0.01, **settings)
    one = LASSO.release(*data, centres=1, rate=0.02, **settings)
    np.testing.assert_allclose(added.weights, one.weights, rtol=1e-9)
    same_rate = LASSO.release(*data, centres=2, rate=0.01, **settings)
    assert np.abs(same_rate.weights - one.weights).max() > 1e-4


def test_a_bias_is_one_more_weight_for_ones(data):
    X, y = data
    options = {"preparation": "none", "lam": 0.01, "rate": 0.05, "max_iterations": 50}
    release = LASSO.release(X, y, bias=True, **options)
    ones = np.column_stack([X, np.ones(len(X))])
    beside = LASSO.release(ones, y, bound=2.0, **options)
    np.testing.assert_allclose(release.weights[0], beside.weights[0, :-1], rtol=1e-12)
    assert release.info["intercept"][0] == pytest.approx(beside.weights[0, -1], rel=1e-12)
    smallest = np.abs(beside.weights[0]).min()
    assert beside.info["smallest_weight"][0] == pytest.approx(smallest, rel=1e-12)


AS_RUN = MECHANISMS["distributed_lasso_as_run"]


def one_run_of_the_program(X, y, rate, lam, limit):
    """Two centres, each with its own loss; (the weights that are returned, weights, steps, rule)."""
    X = np.column_stack([X, np.ones(len(X))])
    half = len(X) // 2
    centres = [(X[:half], y[:half]), (X[half:], y[half:])]
    w, before = np.zeros(X.shape[1]), [None, None]
    for step in range(limit):
        gradients, losses = [], []
        for rows, labels in centres:
            residuals = rows @ w - labels
            gradients.append(rows.T @ residuals / len(rows))
            losses.append((residuals**2).sum() / (2 * len(rows)))
        for centre in (0, 1):
            if before[centre] is not None and abs(losses[centre] - before[centre]) < 1e-20:
                return gradients[centre], w, step, "cost difference"
        for centre in (0, 1):
            if losses[centre] < 1e-4:
                return gradients[centre], w, step, "loss threshold"
        before = losses
        v = w - rate * (gradients[0] + gradients[1])
        w = np.sign(v) * (np.abs(v) - lam)
    return w, w, limit, "iterations"


def test_as_run_is_the_loop_of_the_sources_program():
    """If a rule ends the loop, the program returns the gradient of the centre that the rule names."""
    seen = set()
    for n, rate, lam, limit in (
        (12, 0.1, 1e-20, 3000),  # the second centre's loss falls below the threshold first
        (12, 0.1, 1e-20, 100),
        (12, 0.1, 0.5, 3000),
        (30, 0.05, 1e-20, 3000),  # fewer rows than columns, but X'X is less work
        (120, 0.2, 1e-20, 3000),  # more rows than columns: converges to within rounding
        (120, 0.02, 1e-3, 50),
    ):
        rng = np.random.default_rng(n)
        X, y = rng.standard_normal((n, 20)), np.sign(rng.standard_normal(n))
        released, weights, steps, rule = one_run_of_the_program(X, y, rate, lam, limit)
        settings = {"lam": lam, "rate": rate, "max_iterations": limit, "preparation": "none"}
        settings["bound"] = 20.0
        close = {"rtol": 1e-7, "atol": 1e-10}
        for returned, expected in (("gradient", released), ("weights", weights)):
            release = AS_RUN.release(X, y, returned=returned, **settings)
            actual = np.append(release.weights[0], release.info["intercept"][0])
            assert release.info["stopped"][0] == rule
            slack = 0
            if rule == "cost difference":
                # Rounding decides when two losses are equal, and in which centre first. At the minimum,
                # the centres' gradients are opposite.
                slack = 100
                actual, expected = np.abs(actual), np.abs(expected)
            np.testing.assert_allclose(actual, expected, **close)
            assert abs(release.info["iterations"][0] - steps) <= slack
        seen.add(rule)
    assert seen == {"cost difference", "loss threshold", "iterations"}


def test_as_run_with_candidates_together_and_one_centre_alone(data):
    """A run that diverges or ends leaves the others as they are."""
    candidates = [{"lam": lam, "rate": rate} for lam in (5.0, 1e-20) for rate in (1e3, 0.1, 1e-4)]
    ((_, together),) = AS_RUN.release_many([(data,)], candidates=candidates, max_iterations=300)
    for k, candidate in enumerate(candidates):
        alone = AS_RUN.release(*data, max_iterations=300, **candidate)
        np.testing.assert_allclose(together.weights[k], alone.weights[0], rtol=1e-6, atol=1e-10)
        assert together.status[k] == alone.status[0]
        for key in ("stopped", "iterations"):
            assert together.info[key][k] == alone.info[key][0]
    assert "diverged" in together.status and not together.weights[together.status != "ok"].any()
    X, y = data
    settings = {"lam": 1e-5, "rate": 0.05, "max_iterations": 50, "all_rows": X}
    share = AS_RUN.release(X, y, part="one", centres=2, **settings)
    own = AS_RUN.release(X[:45], y[:45], centres=1, **settings)
    np.testing.assert_array_equal(share.weights, own.weights)


@pytest.mark.parametrize("rows", [8, 15, 60])
def test_a_quick_loss_is_within_its_error_of_the_accurate_one(rows):
    """Nearly equal columns with opposite weights cancel: the worst case of a loss from X'X."""
    rng = np.random.default_rng(rows)
    X = rng.standard_normal((rows, 1)) + 1e-7 * rng.standard_normal((rows, 20))
    y, w = np.sign(rng.standard_normal(rows)), rng.standard_normal((5, 20))
    w = 1e5 * (w - w.mean(axis=1, keepdims=True))
    residuals = [
        [
            sum(Fraction(x) * Fraction(v) for x, v in zip(row, point, strict=True))
            - Fraction(label)
            for row, label in zip(X, y, strict=True)
        ]
        for point in w
    ]
    exact = np.array([float(sum(r * r for r in of) / (2 * rows)) for of in residuals])
    centre = lasso_as_run.Centre(X, y)
    _, quick, error = centre.look(w)
    accurate = centre.loss(w)
    np.testing.assert_allclose(accurate, exact, rtol=1e-7)
    assert np.all(np.abs(quick - exact) <= error + 1e-7 * exact)
    if rows > 10:  # otherwise the gradient is found from the rows
        assert np.abs(quick - exact).max() > 1e3 * np.abs(accurate - exact).max()


class Blurred(lasso_as_run.Centre):
    """A centre whose quick losses are as wrong as they say."""

    def __init__(self, X, y):
        super().__init__(X, y)
        self._rng = np.random.default_rng(len(X))

    def look(self, w):
        gradients, losses, _ = super().look(w)
        error = np.full(len(w), 1e-3)
        return gradients, losses + error * self._rng.uniform(-1, 1, len(w)), error


@pytest.mark.parametrize("centres", [1, 2])
def test_rules_are_decided_by_accurate_losses(centres):
    rng = np.random.default_rng(0)
    seen = set()
    for n in (12, 120):
        X, y = rng.standard_normal((n, 20)), np.sign(rng.standard_normal(n))
        parts = np.split(np.arange(n), centres)
        lam, rate = np.array([1e-20, 1e-20, 0.5, 1e-3]), np.array([0.1, 0.1, 0.1, 10.0])
        kinds = (lasso_as_run.Centre, Blurred)
        plain, blurred = (
            lasso_as_run.descend([kind(X[k], y[k]) for k in parts], 20, lam, rate) for kind in kinds
        )
        for a, b in zip(plain, blurred, strict=True):
            np.testing.assert_array_equal(a, b)
        seen |= set(plain[2])
    assert seen == {"cost difference", "loss threshold", "iterations", "diverged"}
