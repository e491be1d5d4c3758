import json
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit

from dp.evaluation import bounded_loss
from dp.mechanisms import MECHANISMS
from dp.proofs import selection
from dp.seeds import generator
from dp_audit import audit, pairs
from dp_privacy.accounting import Guarantee, gaussian_mu
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian, approximate, compose, gaussian_profile, with_chords

SELECTION = MECHANISMS["private_selection"]
DELTA = 1e-6


def rows(n=300, d=3, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    return X, np.where(X[:, 0] + 0.2 * rng.standard_normal(n) > 0, 1, -1)


def plan(epsilon, n=1000, d=3, delta=DELTA, **options):
    return SELECTION._plan(
        n, d, SELECTION.parameters(n, d, epsilon=epsilon, delta=delta, **options)
    )


@pytest.mark.parametrize("law", selection.LAWS)
def test_weights_and_score_are_together_what_the_total_allows(law):
    actual = plan(1.0, law=law, runs=4.0, share=0.3)
    mu = math.hypot(gaussian_mu(actual.epsilon, actual.delta), actual.mu)
    assert selection.selection_epsilon(Gaussian(mu), law, 4.0, DELTA) == pytest.approx(1, rel=1e-6)
    assert actual.total <= 1.0
    assert actual.mu**2 == pytest.approx(0.3 * mu**2)


@pytest.mark.parametrize(
    ("of", "options"),
    [
        ("gaussian_objective_perturbation", {"grid": {"radius": [20.0]}}),
        ("adassp", {"grid": {}}),
        ("output_perturbation", {}),
        ("boosted_adassp", {"grid": {}, "settings": {"adjacency": "add-remove"}}),
    ],
)
def test_any_mechanism_spends_nearly_all_of_epsilon(of, options):
    actual = plan(0.5, of=of, **options)
    assert 0.49 < actual.total <= 0.5
    assert actual.epsilon < 0.45
    guarantee = SELECTION.guarantee(1000, 3, epsilon=0.5, delta=DELTA, of=of, **options)
    assert (guarantee.epsilon, guarantee.delta) == (0.5, DELTA)
    assert guarantee.adjacency == actual.adjacency
    assert guarantee.adjacency == options.get("settings", {}).get("adjacency", "replace-one")


def test_chords_beside_a_gaussian_release():
    """Chords are exact for randomised response, and a close upper bound for a smooth profile."""
    e1, d1, mu = 0.7, 1e-4, 0.2
    epsilons = np.linspace(0, 2, 9)
    actual = with_chords([approximate(e1, d1)], mu, np.array([0.3, e1, 1.5])).delta(epsilons)
    p = expit(e1)
    parts = p * gaussian_profile(mu, epsilons - e1) + (1 - p) * gaussian_profile(mu, epsilons + e1)
    assert actual == pytest.approx(d1 + (1 - d1) * parts, rel=1e-9)
    actual = with_chords([Gaussian(0.4), Gaussian(0.3)], mu, np.linspace(0.02, 4, 200)).delta(
        epsilons
    )
    exact = compose(Gaussian(0.4), Gaussian(mu)).delta(epsilons)
    assert (actual >= exact).all()
    assert actual == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("numbers", [False, True])
def test_one_record_moves_the_score_by_one_at_most(numbers):
    X, y = rows(40)
    y = y * np.linspace(0, 1, 40) if numbers else y
    weights = np.random.default_rng(2).standard_normal((6, 3)) * [
        [0.1],
        [1],
        [10],
        [100],
        [1e3],
        [0],
    ]
    each = [bounded_loss(weights, X[i : i + 1], y[i : i + 1], 0.3, numbers) for i in range(40)]
    assert np.min(each) >= 0 and np.max(each) <= 1
    assert np.max(each) > 0.99
    assert bounded_loss(weights, X, y, 0.3, numbers) == pytest.approx(np.sum(each, axis=0))
    if not numbers:
        margins = y[:, None] * (X @ weights.T + 0.3)
        assert bounded_loss(weights, X, y, 0.3) == pytest.approx((expit(-margins) ** 2).sum(axis=0))


@pytest.mark.parametrize("classes, numbers", [(None, False), (None, True), (3, False)])
def test_a_score_that_is_no_number_counts_as_one_row(classes, numbers):
    X = np.array([[1.5, 1.5], [1.0, 0.0], [0.0, 0.0]])
    y = np.array([1, 0, 1]) if classes else np.array([1.0, -1.0, 1.0])
    weights = np.array([[np.inf, -np.inf], [1.7e308, -1.7e308], [0.5, 0.1]])
    if classes:
        weights = np.repeat(weights[:, :, None], 3, axis=2)
    actual = bounded_loss(weights, X, y, 0.0, numbers)
    others = bounded_loss(weights, X[1:], y[1:], 0.0, numbers)
    assert np.isfinite(actual).all()
    assert (actual - others >= 0).all() and (actual - others <= 1 + 1e-12).all()
    assert actual[0] == len(X)


def test_the_score_of_several_classes():
    X, _ = rows(30)
    y, weights = np.arange(30) % 4, np.random.default_rng(3).standard_normal((5, 3, 4)) * 20
    scores = np.einsum("nd,rdk->rnk", X, weights)
    p = np.exp(scores - scores.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    each = ((p - np.eye(4)[y]) ** 2).sum(axis=2) / 2
    assert each.max() <= 1
    assert bounded_loss(weights, X, y) == pytest.approx(each.sum(axis=1))


def test_the_best_run_is_released_as_far_as_its_noisy_score_tells():
    """One of two clipping norms is hopeless. All K runs use it with probability E 2^-K."""
    X, y = rows(200)
    good = {}
    for epsilon, runs in ((90.0, 8.0), (0.01, 8.0)):
        release = SELECTION.release(
            *(X, y),
            epsilon=epsilon,
            delta=DELTA,
            of="dp_gd",
            settings={"iterations": 1, "learning_rate": 8.0},
            grid={"clip": [1e-4, 1.0]},
            law="geometric",
            runs=runs,
            restarts=600,
            rng=generator(3),
        )
        assert (release.status == "ok").all()
        good[epsilon] = (release.info["setting"] == 1).mean()
    none = (0.5 / 8) / (1 - (1 - 1 / 8) * 0.5)  # E 0.5^K for a geometric K of mean 8
    expected = 1 - none
    assert good[90.0] == pytest.approx(expected, abs=5 * math.sqrt(0.1 / 600))
    assert good[0.01] < 0.75  # scores are mostly noise


def test_no_run_releases_the_default():
    X, y = rows()
    release = SELECTION.release(
        X, y, epsilon=1.0, delta=DELTA, law="poisson", runs=1.5, restarts=4000, rng=generator(4)
    )
    none = release.info["setting"] == -1
    assert none.mean() == pytest.approx(math.exp(-1.5), abs=0.03)
    assert not release.weights[none].any() and release.weights[~none].any(axis=1).all()
    assert (release.status == "ok").all()


def test_whatever_a_mechanism_takes_is_selected():
    rng = np.random.default_rng(6)
    X, y = rows(400)
    numbers = np.clip(0.8 * X[:, 1] + 0.1 * rng.standard_normal(400), -1, 1)
    settings = {"epsilon": 20.0, "delta": DELTA, "restarts": 8, "rng": generator(7)}
    losses = [{"log_cosh": {"tau": tau}} for tau in (1e-6, 0.5)]
    grid = {"loss": losses, "lambda": [0.01]}
    release = SELECTION.release(
        *(X, numbers), of="gaussian_objective_perturbation", grid=grid, runs=8.0, **settings
    )
    assert set(release.info["setting"]) <= {0, 1} and (release.info["setting"] == 1).mean() > 0.5
    assert (release.weights[release.info["setting"] == 1][:, 1] > 0.4).all()
    descent = {"of": "dp_gd", "grid": {"learning_rate": [0.5, 2.0]}}
    softmax = {"loss": "softmax", "iterations": 20}
    release = SELECTION.release(
        X, np.arange(400) % 3, classes=3, settings=softmax, **descent, **settings
    )
    assert release.weights.shape == (8, 3, 3)
    start = {"pretrain": True, "iterations": 1}
    arguments = settings | {"epsilon": 90.0, "public": (X[:200], y[:200])}
    release = SELECTION.release(X[200:], y[200:], settings=start, **descent, **arguments)
    assert (release.weights[:, 0] > 5).all()  # further than a single step moves them


def test_a_mechanism_that_gives_more_away_than_it_claims_is_asked_for_less():
    """The proven epsilon is over 400 times the claim. The search begins at 900, where profiles overflow."""
    actual = plan(2.0, n=800, of="lasso_output_perturbation", grid={"lambda": [0.1]})
    proven = (
        MECHANISMS["lasso_output_perturbation"].guarantee(800, 3, **actual.candidates[0]).epsilon
    )
    assert proven > 400 * actual.epsilon
    assert selection.profile_epsilon(approximate(proven), "logarithmic", 3.0, DELTA) < 2


def test_numbers_and_intercepts():
    rng = np.random.default_rng(5)
    X, _ = rows(500)
    y = np.clip(0.8 * X[:, 1] + 0.1 * rng.standard_normal(500), -1, 1)
    settings = {"epsilon": 5.0, "delta": DELTA, "restarts": 5, "rng": generator(5)}
    release = SELECTION.release(X, y, of="boosted_adassp", grid={}, **settings)
    assert (release.weights[:, 1] > 0.4).all()
    release = SELECTION.release(
        *rows(), of="dp_sgd", lam=0.01, grid={"batch": [10, 50]}, **settings
    )
    assert release.info["intercept"].all()


def test_an_exact_score_refutes_the_claim_that_noise_on_it_keeps():
    """Both scores claim an epsilon of 0.1.

    With the exact score, an attack finds an epsilon above 1, and the proven epsilon is below 3.2.
    """
    pair = pairs.find("opposite_corner")
    for score in ("exact", "noisy"):
        options = {"law": "poisson", "score": score}
        stated = audit.guarantee(SELECTION, pair, 0.1, 1e-5, **options)
        actual = audit.attack(
            *(SELECTION, pair, 0.1),
            delta=1e-5,
            trials=4000,
            confidence=0.999,
            rng=generator(6),
            **options,
        )["epsilon"]
        assert actual <= stated.epsilon
        assert stated.claimed_epsilon == 0.1
        if score == "exact":
            assert actual > 1 and stated.epsilon < 3.2
        else:
            assert stated.epsilon == 0.1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"of": "output_perturbatoin"}, "did you mean 'output_perturbation'"),
        ({"of": "private_selection"}, "another mechanism"),
        ({"of": "nonprivate"}, "does not protect its rows"),
        ({"of": "laplace_coordinates_sum", "grid": {"lambda": [0.1]}}, "proven epsilon"),
        ({"grid": {"tolerance": [1]}, "settings": {"tolerance": 1}}, "leave it out of settings"),
        ({"grid": {"clip": [1]}}, "no option 'clip'"),
        ({"grid": {"lambda": [-1]}}, "lambda must be"),
        ({"runs": 1.0}, "mean above 1"),
        ({"grid": {}}, "no rule for lambda"),
        ({"epsilon": 101.0}, "at most 100"),
        ({"of": "boosted_adassp_released", "grid": {}}, "proven epsilon"),
        (
            {
                "of": "gaussian_objective_perturbation",
                "grid": {"lambda": [1], "loss": ["logistic", "log_cosh"]},
            },
            "some settings are for classes",
        ),
        ({"of": "dp_gd", "grid": {"adjacency": ["replace-one", "add-remove"]}}, "one adjacency"),
    ],
)
def test_refusals(options, match):
    with pytest.raises(Refused, match=match):
        SELECTION.guarantee(100, 3, **{"epsilon": 1.0, "delta": DELTA} | options)


def test_runs_whose_epsilon_does_not_fall_with_the_one_asked_for_are_refused(monkeypatch):
    def at_least_five(self, n, d, **settings):
        return Guarantee(settings["epsilon"], 5.0, DELTA, "replace-one", "5 is proven")

    monkeypatch.setattr(type(MECHANISMS["dp_gd"]), "guarantee", at_least_five)
    with pytest.raises(Refused, match="cannot run dp_gd within a total epsilon"):
        SELECTION.guarantee(100, 3, epsilon=1.0, delta=DELTA, of="dp_gd", grid={"clip": [1.0]})


def test_settings_searched_on_public_rows(tmp_path):
    """The noise is calibrated for the number of training rows, and lambda follows the rule."""
    X, y = rows(400)
    np.savez(tmp_path / "data.npz", X=X[:100], y=y[:100], X_public=X[100:], y_public=y[100:])
    meta = {"bound": 1.0, "columns": ["a", "b", "c"]}
    (tmp_path / "data.json").write_text(json.dumps(meta))
    entry = {"grid": {"radius": [20.0, 0.01]}, "folds": 3, "rows": "public", "by": "bounded_loss"}
    entry["method"] = "m"
    command = [
        *(sys.executable, "scripts/job.py", "search", "--data", tmp_path / "data.npz"),
        *("--meta", tmp_path / "data.json", "--experiment", "e", "--dataset", "d"),
        *("--search", "s", "--grid", json.dumps(entry), "--folds", "4", "--train-size", "50"),
        *("--mechanism", "gaussian_objective_perturbation", "--epsilon", "40", "--seed", "1"),
        *(
            "--delta",
            "1e-6",
            "--out-json",
            tmp_path / "out.json",
            "--out-csv",
            tmp_path / "out.csv",
        ),
    ]
    subprocess.run([str(word) for word in command], check=True, env={"OMP_NUM_THREADS": "1"})
    chosen = json.loads((tmp_path / "out.json").read_text())
    assert (chosen["lambda"], chosen["options"]) == (None, {"radius": 20.0})
    assert not chosen["private_rows"] and chosen["premises"]
