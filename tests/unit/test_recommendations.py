import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import entropy, ttest_rel

from dp_privacy.accounting import REPLACE_ONE
from dp_release import request
from reporting import answers, recommendations
from study import paths
from study.configuration.experiment import Experiment, data_path
from study.jobs.files import write_csv, write_json

FOLDS, DRAWS, SIZES = 5, 3, (100, 1000, 10000)
# label: (log loss at each size, lambda, further keys of the method)
METHODS = {
    "plain": ((0.5, 0.4, 0.4), 0.01, {"private": False}),
    "best": ((0.6, 0.45, 0.405), "rule", {}),
    "twin": ((0.6, 0.45, 0.405), 0.01, {}),
    "worse": ((0.69, 0.6, 0.5), "rule", {}),
    "useless": ((9.0, 9.0, 9.0), "rule", {}),
    "unpaid": ((0.5, 0.4, 0.4), "tuned", {}),
    "later": ((0.5, 0.4, 0.4), "rule", {"after_results": True}),
    "unproven": ((0.5, 0.4, 0.4), "rule", {}),
    "broken": ((0.5, 0.4, 0.4), "rule", {}),
}
META = {
    **{"rows": 20000, "columns": ["a", "b"], "bound": 1.0, "private_rows": []},
    "test_class_counts": {},
}


def noise(seed):
    return np.random.default_rng(seed).normal(0, 1, (FOLDS, DRAWS))


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    methods = {
        label: {
            **{"mechanism": label, "options": {}, "delta": 0, "lambda": lam, "fit": None},
            **{"private": True, "title": f"The {label}"},
            **further,
        }
        for label, (_, lam, further) in METHODS.items()
    }
    values = {
        **{"title": "Made up", "datasets": ["rows"], "folds": FOLDS, "restarts": DRAWS},
        **{"methods": methods, "recommends": True, "searches": {}},
        "sweeps": {"main": {"train_sizes": list(SIZES), "epsilons": [1.0]}},
    }
    experiment = Experiment("made_up", values)
    rows = []
    for k, cell in enumerate(experiment.cells()):
        loss = METHODS[cell.method][0][SIZES.index(cell.train_size)]
        shared = 0.05 * noise(1000).mean(axis=1, keepdims=True)  # per fold, for all methods
        losses = loss + shared + 0.002 * noise(k)
        status = "1 of 15 diverged" if cell.method == "broken" else "ok"
        draws = [
            (fold, draw, 0.1, losses[fold, draw], math.nan, math.nan, "ok")
            for fold in range(FOLDS)
            for draw in range(DRAWS)
        ]
        names = ("fold", "restart", "error", "log_loss", "excess_risk", "gradient_norm", "status")
        write_csv(experiment.run_path(cell), names, draws)
        proven = math.inf if cell.method in ("plain", "unproven") else cell.epsilon
        row = {
            **cell._asdict(),
            **{"experiment": "made_up", "mechanism": cell.method, "options": "{}", "delta": 0},
            **{"lambda": 0.01, "folds": FOLDS, "restarts": DRAWS, "status": status},
            **{
                f"{n}{end}": math.nan
                for n in ("auc", "mse", "mae", "r2", "deviance", "d2")
                for end in _ENDS
            },
            **{f"error{end}": 0.1 for end in _ENDS},
            **{f"log_loss{end}": losses.mean() for end in _ENDS},
            **{"epsilon_claimed": cell.epsilon, "epsilon_proven": proven, "delta_proven": 0.0},
            **{"adjacency": REPLACE_ONE, "reason": "made up"},
        }
        rows.append(row)
    write_csv(paths.CELLS(experiment="made_up"), list(rows[0]), [row.values() for row in rows])
    write_json(experiment.tuned_path("rows", "json"), {"lambda": 0.01, "private_rows": True})
    log = Path("results/made_up/logs/runs/rows/best/n=100/eps=1.log")
    log.parent.mkdir(parents=True)
    log.write_text("run took 6 s of a processor, 30 s by the clock, 70.5 MB\n")
    write_json(
        data_path("rows", "json"),
        META | {"class_counts": {"-1": 10000, "1": 10000}},
    )
    return experiment


_ENDS = ("_mean", "_low", "_high")


def at(rows, size):
    return {row["method"]: row for row in rows if row["train_size"] == size}


def test_who_competes_and_who_is_not_beaten(experiment):
    actual = at(recommendations.recommend([experiment]), 1000)
    standings = {method: row["standing"] for method, row in actual.items()}
    assert standings == {
        **{"best": "not beaten", "twin": "not beaten", "worse": "beaten", "useless": "beaten"},
        **dict.fromkeys(("unpaid", "later", "unproven"), "void"),
        "broken": "failed",
    }
    settings = {method: row["setting"] for method, row in actual.items()}
    assert settings["best"] == "rule" and settings["twin"] == "fixed"
    assert settings["unpaid"] == settings["later"] == "void"
    assert "not paid" in actual["unpaid"]["why"] and "no finite" in actual["unproven"]["why"]
    assert "diverged" in actual["broken"]["why"] and actual["best"]["why"] == ""
    # The void method would lead by 0.05, stated as a share of the possible gain, log 2 - 0.4.
    gain = math.log(2) - 0.4
    assert actual["unpaid"]["behind"] == pytest.approx(-0.05 / gain, abs=0.01)
    assert actual["unpaid"]["behind_high"] < 0 and math.isnan(actual["unpaid"]["p"])
    assert actual["best"]["cpu_seconds_per_release"] is not None


def test_scores_and_tests_are_those_of_the_draws(experiment):
    actual = at(recommendations.recommend([experiment]), 10000)
    losses = {}
    for method in ("plain", "best", "worse"):
        cell = next(c for c in experiment.cells(methods=[method]) if c.train_size == 10000)
        own = np.genfromtxt(experiment.run_path(cell), delimiter=",", names=True, usecols=(0, 3))
        losses[method] = own["log_loss"].reshape(FOLDS, DRAWS).mean(axis=1)
    gain = math.log(2) - losses["plain"].mean()
    kept = (math.log(2) - losses["worse"].mean()) / gain
    assert actual["worse"]["kept"] == pytest.approx(kept)
    excess = losses["worse"] - losses["plain"]
    assert actual["worse"]["excess"] == pytest.approx(excess.mean())
    interval = ttest_rel(losses["worse"], losses["plain"]).confidence_interval()
    assert (actual["worse"]["excess_low"], actual["worse"]["excess_high"]) == pytest.approx(
        interval
    )
    # Despite a log loss of 9, the method counts as no worse than the best constant.
    assert actual["useless"]["kept"] == 0 and actual["useless"]["value"] == pytest.approx(
        9, rel=0.1
    )


def test_the_gain_starts_at_the_best_constant(experiment):
    counts = {"-1": 4800, "1": 15200}
    write_json(data_path("rows", "json"), META | {"class_counts": counts})
    rows = recommendations.recommend([experiment])
    nothing = entropy(list(counts.values()))  # 0.551
    smallest, middle = at(rows, 100), at(rows, 1000)
    # Without privacy the loss is 0.5; private methods' mean losses are 0.6 and more.
    for method in ("best", "twin", "worse", "useless"):
        assert (smallest[method]["standing"], smallest[method]["kept"]) == ("no gain", 0)
    assert middle["best"]["standing"] == "not beaten"
    assert middle["best"]["kept"] == pytest.approx((nothing - 0.45) / (nothing - 0.4), abs=0.05)
    best = next(row for row in recommendations.across(rows) if row["method"] == "best")
    assert (best["not_beaten"], best["questions"]) == (2, 3)
    # No model beats a constant that is wrong on one row in twenty.
    rare = {"-1": 1000, "1": 19000}
    write_json(data_path("rows", "json"), META | {"class_counts": rare})
    assert recommendations.recommend([experiment]) == []


def test_costs_and_rows_needed(experiment):
    actual = at(recommendations.recommend([experiment]), 100)
    assert actual["best"]["cpu_seconds_per_release"] == pytest.approx(6 / (FOLDS * DRAWS))
    assert actual["best"]["peak_mb"] == 70.5 and math.isnan(actual["twin"]["peak_mb"])
    assert actual["best"]["rows_are"] == "interpolated"
    assert 1000 < actual["best"]["rows_for_95_percent"] < 10000
    assert (actual["worse"]["rows_are"], actual["worse"]["rows_for_95_percent"]) == (
        "more than",
        1e4,
    )


def test_across_data_sets(experiment):
    rows = recommendations.across(recommendations.recommend([experiment]))
    results = {row["method"]: row for row in rows}
    assert set(results) == {"best", "twin", "worse", "useless"}
    assert (
        results["best"]["regret"] < 0.02 < results["worse"]["regret"] < results["useless"]["regret"]
    )
    assert results["useless"]["rank"] == 1 and results["best"]["not_beaten"] == 3
    assert results["best"]["data_sets"] == 1 and math.isnan(results["best"]["regret_low"])


def test_what_is_selected_and_paid_for_competes_apart(experiment):
    experiment.methods["unpaid"].lambda_ = "selected"
    rows = [r for r in recommendations.recommend([experiment]) if r["train_size"] == 1000]
    by_regime = {}
    for row in rows:
        by_regime.setdefault(row["regime"], {})[row["method"]] = row["standing"]
    assert list(by_regime) == ["nothing tuned", "selected and paid for"]
    assert "unpaid" not in by_regime["nothing tuned"]
    assert by_regime["nothing tuned"]["best"] == "not beaten"
    assert by_regime["selected and paid for"]["unpaid"] == "not beaten"
    assert by_regime["selected and paid for"]["best"] == "beaten"


def test_one_method_alone_answers_nothing_if_others_were_selected(experiment):
    experiment.methods["unpaid"].lambda_ = "selected"
    for label, method in experiment.methods.items():
        if method.private and label not in ("best", "unpaid"):
            method.after_results = True
    rows = recommendations.recommend([experiment])
    assert {row["regime"] for row in rows} == {"selected and paid for"}
    assert {row["method"] for row in rows if not row["why"]} == {"best", "unpaid"}


def test_settings_from_public_rows_stand_beside(experiment):
    chosen = {"lambda": 0.01, "private_rows": False, "premises": ["public rows are public"]}
    write_json(experiment.tuned_path("rows", "json"), chosen)
    actual = at(recommendations.recommend([experiment]), 1000)["unpaid"]
    assert (actual["setting"], actual["standing"]) == ("public", "void")
    assert "public rows" in actual["why"] and actual["behind"] < 0


def test_only_named_sweeps_answer(experiment):
    whole = {row["train_size"]: row["kept"] for row in recommendations.recommend([experiment])}
    sweeps = experiment.sweeps
    sweeps["late"] = sweeps["main"].but(train_sizes=[10000])
    sweeps["main"] = sweeps["main"].but(train_sizes=[100, 1000])
    experiment.recommends = ["late"]
    rows = recommendations.recommend([experiment])
    assert {row["train_size"] for row in rows} == {10000}
    assert rows[-1]["kept"] == whole[10000]


def test_a_ranking_takes_the_questions_that_most_methods_share():
    answered = {"all": {*range(20)}, "most": {*range(20)} - {3}, "few": {1, 2}, "other": {40}}
    assert recommendations.shared(answered) == {*range(20)} - {3}
    assert recommendations.shared({"all": {1, 2, 3}, "few": {1}}) == {1, 2, 3}
    assert recommendations.shared({"one": {1, 2}, "two": {2, 3}, "three": {2, 4}}) == {2}


def test_what_a_ranking_compares_leaves_out_who_answers_less(experiment):
    rows = recommendations.recommend([experiment])
    short = [r for r in rows if r["method"] != "twin" or r["train_size"] == 1000]
    whole, actual = (
        {row["method"]: row for row in recommendations.across(own)} for own in (rows, short)
    )
    assert {row["shared_questions"] for row in whole.values()} == {3}
    assert whole["best"]["shared_regret"] == whole["best"]["regret"]
    assert actual["twin"]["questions"] == 1 and math.isnan(actual["twin"]["shared_questions"])
    assert actual["best"]["shared_questions"] == 3 and actual["best"]["shared_not_beaten"] == 3
    assert set(actual["best"]) == set(recommendations.ACROSS)


def test_the_page_knows_which_mechanisms_a_release_can_use():
    assert set(answers.RELEASED) == {*request.METHODS}
