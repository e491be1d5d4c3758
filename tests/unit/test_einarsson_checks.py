from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from checks import published
from checks.results import Missing, Results
from configured import configured, entry
from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from sources.einarsson_2018 import checks as of_source
from sources.einarsson_2018 import noise_law as law
from sources.einarsson_2018.checks import lambda_falls_with_size, noise_law, steps_cost_more
from study import facts
from study.configuration import titles
from study.configuration.experiment import Experiment
from study.configuration.printed_values import expand


class Made(Results):
    def __init__(self, errors, spread):
        columns = ["dataset", "method", "train_size", "epsilon"]
        rows = [("a", method, 9, epsilon) for method, epsilon in errors]
        super().__init__(Experiment("made", {}), pd.DataFrame(rows, columns=columns))
        rng = np.random.default_rng(1)
        self.of = {
            key: error + spread * rng.standard_normal((1, 12, 1)) for key, error in errors.items()
        }

    def draws(self, cell, column):
        return self.of[cell.method, cell.epsilon]


ERRORS = {("end", np.inf): 0.06, ("pass", np.inf): 0.15, ("noisy", 10.0): 0.16, ("noisy", 1.0): 0.3}
NAMES = {"solved": "end", "noiseless": "pass", "private": "noisy", "sweep": None}


def test_steps_cost_more_than_the_noise_at_one_epsilon_and_less_at_another():
    made = Made(ERRORS, 0.005)
    actual = steps_cost_more(made, epsilons=[10], **NAMES)
    assert actual.holds and actual.number == pytest.approx(0.08, abs=0.01)
    assert "epsilon = 1 0.1" in actual.decided_by
    assert steps_cost_more(made, epsilons=[1], **NAMES).holds is False
    assert steps_cost_more(Made(ERRORS, 0.3), epsilons=[10], **NAMES).holds is None
    with pytest.raises(Missing):
        steps_cost_more(made, epsilons=[0.1], **NAMES)


@pytest.mark.parametrize(
    ("few", "many", "holds", "share"),
    [
        ([0.01, 1.0], [1e-5, 1e-20], True, 1.0),
        ([0.01, 1e-20], [1e-20, 1e-20], True, 0.5),
        ([1e-5, 1e-20], [1e-20, 1e-20], False, 0.0),
        ([0.01, 1.0], [1e-20, 0.01], False, 1.0),
    ],
)
def test_chosen_lambdas_fall_with_the_number_of_rows(few, many, holds, share):
    sizes = [20, 100, 400, 2000]
    rows = [("a", "m", n, lam) for n, lam in zip(sizes, [*few, *many], strict=True)]
    frame = pd.DataFrame(rows, columns=["dataset", "method", "train_size", "lambda"])
    frame["epsilon"] = np.inf
    made = Results(Experiment("made", {}), frame)
    chosen = {"methods": ["m"], "rows": 360, "small": 1e-5, "share": 0.5, "sweep": None}
    actual = lambda_falls_with_size(made, **chosen)
    assert (actual.holds, actual.number, actual.threshold) == (holds, share, 0.5)
    with pytest.raises(Missing):
        lambda_falls_with_size(made, **(chosen | {"rows": 3000}))


def test_the_minimiser_has_no_gradient_and_each_restart_its_projection():
    """Without projection, the gradient of mean log(1 + exp(-y v.(x, 1))) + lam/2 ||v||^2 is 0."""
    rng, lam = np.random.default_rng(2), 0.01
    X = rng.standard_normal((80, 6)) / 4
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(80) > 0, 1, -1)
    release = MECHANISMS["projected_minimiser"].release(
        X, y, lam=lam, restarts=2, rng=generator(3), bound=3.0, dimensions=3
    )
    assert np.linalg.matrix_rank(release.weights) == 2
    whole = MECHANISMS["projected_minimiser"].release(X, y, lam=lam, rng=generator(3), bound=3.0)
    w, b = whole.weights[0], whole.info["intercept"][0]
    rates = -y / (1 + np.exp(y * (X @ w + b)))
    gradient = np.append(X.T @ rates, rates.sum()) / len(y) + lam * np.append(w, b)
    assert np.abs(gradient).max() < 1e-8


def test_a_title_names_its_data():
    datasets = {
        "a": SimpleNamespace(title="digits (8 x 8), 4 against 9"),
        "b": SimpleNamespace(title="digits (8 x 8)"),
        "c_d": SimpleNamespace(title=None),
    }
    shown = entry(title="On {data}", datasets=["a", "b", "c_d"])
    actual = titles.filled(Experiment("made", {"analyses": {}, "datasets": []}), shown, datasets)
    assert actual == "On digits (8 x 8) and c d"


def printed_table(draw, simulations=48, scale=1.0):
    """Table A.1 of noise that `draw` makes: rounded variances of 784 weights in some simulations."""
    rng, table = np.random.default_rng(8), {}
    experiment = configured()[1]["einarsson_logistic"]
    lambdas = experiment.lambda_published
    for size, lam in zip(lambdas.train_sizes, lambdas.lambdas, strict=True):
        table[size] = {}
        for epsilon in (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 10):
            value = np.var(draw(rng, scale * 2 / (size * lam * epsilon), 784 * simulations))
            text = f"{value:.4f}" if value >= 1e-4 else f"{value:.4e}"
            table[size][f"noise_variance_eps_{epsilon:g}"] = float(text)
    return table


def laplace(rng, scale, count):
    return rng.laplace(scale=scale, size=count)


def normal(rng, scale, count):
    return rng.normal(scale=np.sqrt(2) * scale, size=count)


@pytest.mark.parametrize(
    ("made", "holds"),
    [
        ((laplace,), True),
        ((normal,), False),  # the same variances on average, but they vary less
        ((laplace, 12), False),
        ((laplace, 48, 1.01), False),
    ],
)
def test_the_law_of_noise_variances_is_that_of_laplace_noise(monkeypatch, made, holds):
    settings = {"logistic": {"epsilons": [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 10]}}
    tables = {"table_a_1": printed_table(*made)}
    source = facts.Source(key="made", short="made", tables=tables, settings=settings)
    monkeypatch.setattr(law.facts, "read", lambda name: source)
    results = Results(configured()[1]["einarsson_logistic"], pd.DataFrame())
    assert noise_law(results, weights=784, simulations=48).holds is holds


def test_the_printed_noise_variances_have_the_law():
    results = Results(configured()[1]["einarsson_logistic"], pd.DataFrame())
    actual = noise_law(results, weights=784, simulations=48)
    assert actual.holds and actual.decided_by.startswith("439 of 450 printed variances lie inside")
    assert not noise_law(results, weights=784, simulations=24).holds


def test_noise_on_coordinates_loses_more_than_claimed_unless_it_is_made_for_the_l1_norm():
    """One row of norm 1 and zeros: n lambda t = 1/(1 + exp(t y)) for weights t y/sqrt(d) each."""
    setting = {"n": 200, "d": 100, "epsilon": 2.0, "lam": 0.1}
    actual = of_source.neighbours_lose(None, mechanism="laplace_coordinates", **setting)
    t = optimize.brentq(lambda t: 200 * 0.1 * t - 1 / (1 + np.exp(t)), 0, 1)
    assert actual.holds
    assert actual.number == pytest.approx(10 * 2 * t / (2 / (200 * 0.1 * 2)), rel=0.05)
    assert not of_source.neighbours_lose(None, mechanism="laplace_l1", **setting).holds


def test_an_intercept_without_noise_tells_neighbours_apart(monkeypatch):
    setting = {"mechanism": "laplace_coordinates_sum", "n": 50, "d": 4, "epsilon": 1.0, "lam": 0.25}
    assert of_source.intercept_tells(None, **setting).holds
    released = list(of_source._released(**setting))
    for first in ([1.0, 1.1], [1.0, 1.0]):  # noise; the same on both data sets
        for release in released:
            release.info["intercept"] = np.array(first)
        monkeypatch.setattr(of_source, "_released", lambda *_: iter(released))
        assert not of_source.intercept_tells(None, **setting).holds


def test_the_program_s_noise_and_gradient_are_not_the_formula_s():
    noise = {"dimensions": 50, "draws": 2000, "chance": 1e-6}
    assert of_source.norms_of_noise(None, mechanism="dp_sgd_as_run", **noise).holds
    assert not of_source.norms_of_noise(None, mechanism="dp_sgd", **noise).holds
    assert of_source.gradient_differs(None, dimensions=50, at_least=0.05).holds
    # In one dimension, each coordinate's own product is the inner product.
    assert not of_source.gradient_differs(None, dimensions=1, at_least=0.05).holds


def test_a_table_of_an_experiment_without_cells_is_compared(tmp_path, monkeypatch):
    experiment = configured()[1]["einarsson_data"]
    monkeypatch.chdir(tmp_path)  # there is no results.csv
    counts = pd.DataFrame([{"dataset": "mnist", "part": "train", "0": 5923}])
    results = Results(experiment)
    monkeypatch.setattr(results, "named", lambda analysis, table: counts)
    spec = experiment.published["table_4_1"]
    assert published._ours(results, spec, next(iter(expand(spec))))["mean"] == 5923
