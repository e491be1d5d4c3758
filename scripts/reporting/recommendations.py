"""Recommends methods: which are unbeaten at a question, what they cost, and how many rows they need.

A question is a task, a data set, a training size, an epsilon and an adjacency in one experiment, whose
methods share folds. A method that is void or has a failed draw does not compete. A method is void if its
proven epsilon exceeds the question's, or its settings were changed after results were seen. It is also void
if its settings were chosen on public rows, or on private rows without payment. So is each of several
settings that were tried, because the best of them is known only afterwards.

The trivial model predicts the best constant: the class shares, or the mean of the targets. A draw's score
is its loss: log loss, or 1 - R^2 for regression, capped at the trivial model's loss, because nobody has to
use a model worse than the trivial one. The gain is the trivial model's loss minus the non-private model's.
A method's `kept` is the share of the gain that it keeps. If an unbeaten method's mean loss without the cap
is no smaller than the trivial model's, it has "no gain" and is not recommended.
"""

import itertools
import json
import math

import numpy as np
import pandas as pd

from dp import comparison
from plots import style
from study import lambdas, paths
from study.canonical import epsilon
from study.configuration.cell import Cell
from study.configuration.experiment import data_path
from study.jobs import cost, paired
from study.jobs.files import read_json
from study.jobs.summary import draws_frame, over_folds

LEVEL = 0.05
SHARE = 0.95  # share of the gain that defines how many rows a method needs
UNTUNED, SELECTED = "nothing tuned", "selected and paid for"  # regimes
NOT_BEATEN, BEATEN, FAILED, VOID = "not beaten", "beaten", "failed", "void"
NO_GAIN = "no gain"
# task -> (metric, sign that makes it a loss)
TASKS = {"classes": ("log_loss", 1.0), "numbers": ("r2", -1.0)}
QUESTION = ("regime", "task", "experiment", "dataset", "train_size", "epsilon", "adjacency")
COLUMNS = (
    *QUESTION,
    *("standing", "method", "title", "mechanism", "options", "setting", "why"),
    *("kept", "kept_low", "kept_high", "p", "beaten_by"),
    *("behind", "behind_low", "behind_high"),
    *("metric", "value", "excess", "excess_low", "excess_high"),
    *("epsilon_proven", "delta_proven", "folds", "draws"),
    *("cpu_seconds_per_release", "peak_mb", "rows_for_95_percent", "rows_are"),
)
ACROSS = (
    *("regime", "task", "experiment", "adjacency", "method", "title", "mechanism"),
    *("data_sets", "questions", "not_beaten"),
    *("regret", "regret_low", "regret_high", "rank", "rank_low", "rank_high"),
    *("shared_questions", "shared_data_sets", "shared_not_beaten"),
    *("shared_regret", "shared_regret_low", "shared_regret_high"),
    *("cpu_seconds_per_release", "peak_mb"),
)


def recommend(experiments):
    return [row for experiment in experiments for row in _of_experiment(experiment)]


def _of_experiment(experiment):
    cells = experiment.recommended_cells()
    frame = pd.read_csv(paths.CELLS(experiment=experiment.folder))
    frame = frame.merge(pd.DataFrame(cells, columns=Cell._fields))  # keeps the order of `frame`
    draws = draws_frame(experiment, cells)
    names = {label: look["label"] for label, look in style.looks(experiment.methods).items()}
    costs = _costs(experiment, cells)
    answers = []
    for (dataset, size), there in frame.groupby(["dataset", "train_size"], sort=False):
        plain = [m for m in there["method"] if not experiment.methods[m].private]
        if not plain:
            continue
        own = draws[(draws["dataset"] == dataset) & (draws["train_size"] == size)]
        task = "numbers" if there["error_mean"].isna().all() else "classes"
        meta = read_json(data_path(dataset, "json"))
        scores = _Scores(task, own, plain, meta["test_class_counts"] or meta["class_counts"])
        if scores.gain <= 0:
            continue
        private = there[~there["method"].isin(plain)]
        for (e, _), rows in private.groupby(["epsilon", "adjacency"], sort=False):
            entries = [
                scores.entry(row) | _standing(experiment, row) for row in rows.to_dict("records")
            ]
            for entry in entries:
                entry |= costs[entry["method"], dataset, int(size), e]
                entry["title"] = names[entry["method"]]
                entry["options"] = json.dumps(_configured(experiment.methods[entry["method"]]))
            answers += _answers(entries, scores)
    return _with_rows_needed(answers)


def _configured(method):
    """The options that an experiment states for a method, and lambda."""
    return method.options | {"lambda": method.lambda_}


class _Scores:
    """All draws on one data set at one training size. counts: label -> number of rows (classes only)."""

    def __init__(self, task, draws, plain, counts):
        self.task = task
        self.metric, self.sign = TASKS[task]
        # The trivial model's loss. The mean of the targets has 1 - R^2 = 1.
        self.nothing = comparison.constant_log_loss(counts.values()) if task == "classes" else 1.0
        raw = draws.assign(value=draws[self.metric] * self.sign)
        self.raw = paired.fold_means(raw, "value")
        self.offset = 0.0 if task == "classes" else 1.0
        loss = raw["value"] + self.offset
        self.means = (
            paired.fold_means(raw.assign(value=loss.clip(upper=self.nothing)), "value")
            .set_index(["method", "epsilon", "fold"])["value"]
            .sort_index()
        )
        without = {name: self.means[name].mean() for name in dict.fromkeys(plain)}
        self.best = min(without, key=without.get)
        self.gain = self.nothing - without[self.best]
        self.excess = paired.differences(
            self.raw[(self.raw["method"] == self.best) | ~self.raw["method"].isin(plain)], self.best
        ).set_index(["method", "epsilon"])

    def entry(self, row):
        key = row["method"], row["epsilon"]
        losses = self.means[key].to_numpy() if key in self.means.index else np.array([])
        excess = self.excess.loc[key] if key in self.excess.index else dict.fromkeys(
            ("mean", "low", "high"), math.nan
        )  # fmt: skip
        return {
            **{name: row[name] for name in ("experiment", "dataset", "train_size", "epsilon")},
            **{name: row[name] for name in ("adjacency", "method", "mechanism", "folds")},
            **{name: row[name] for name in ("epsilon_proven", "delta_proven")},
            "task": self.task,
            "metric": self.metric,
            "value": row[f"{self.metric}_mean"],
            "draws": row["restarts"],
            "losses": losses,
            "gain": self.gain,
            "gains": self.sign * row[f"{self.metric}_mean"] + self.offset < self.nothing,
            **self.kept(losses),
            **{f"excess{end}": excess[name] for end, name in _ENDS},
        }

    def kept(self, losses):
        mean, _, low, high = over_folds((self.nothing - losses) / self.gain, np.arange(len(losses)))
        return {"kept": mean, "kept_low": low, "kept_high": high}

    def behind(self, losses, best):
        """The losses minus those of the best competitor, as a share of the gain; negative if smaller."""
        mean, _, low, high = over_folds((losses - best) / self.gain, np.arange(len(losses)))
        return {"behind": mean, "behind_low": low, "behind_high": high}


_ENDS = (("", "mean"), ("_low", "low"), ("_high", "high"))


def _standing(experiment, row):
    """{setting, why, standing}: whether the method competes, and why not."""
    method = experiment.methods[row["method"]]
    cell = Cell(row["dataset"], row["method"], int(row["train_size"]), row["epsilon"])
    lam = experiment.lambda_of(cell)
    setting, why = lambdas.setting(lam), ""
    families = (experiment.families or {}).values()
    if setting == VOID:
        why = "its lambda was chosen on the private rows, and not paid for"
    elif setting == "public":
        why = "its settings were chosen on public rows, which the others do without"
    elif method.after_results:
        setting, why = VOID, "its settings were changed after results had been seen"
    elif any(cell.method in family.members for family in families):
        setting, why = VOID, "one of several settings tried: the best of them is known afterwards"
    if not row["epsilon_proven"] <= row["epsilon"] * (1 + 1e-9):
        proven = row["epsilon_proven"]
        shown = "none is proven" if math.isnan(proven) else f"proven is {epsilon(proven)}"
        shown = "it has no finite one" if math.isinf(proven) else shown
        why = f"not private at this epsilon: {shown}"
    standing = VOID if why else ""
    if not why and row["status"] != "ok":
        standing, why = FAILED, row["status"]
    return {"setting": setting, "why": why, "standing": standing}


def _answers(entries, scores):
    """The entries of one question with their standings, per regime."""
    answers = []
    selected = any(e["setting"] == "selected" and not e["why"] for e in entries)
    for regime in (UNTUNED, SELECTED) if selected else (UNTUNED,):
        rows = [e | {"regime": regime} for e in entries]
        if regime == UNTUNED:
            rows = [row for row in rows if row["setting"] != "selected"]
        competing = [row for row in rows if not row["why"]]
        if regime == UNTUNED and selected and len(competing) < 2:
            continue  # a single untuned method has no competitor
        if competing:
            p, by = comparison.beaten([row["losses"] for row in competing])
            best = min(competing, key=lambda row: row["losses"].mean())
            for row, own, other in zip(competing, p, by, strict=True):
                unbeaten = NOT_BEATEN if row["gains"] else NO_GAIN
                row |= {"p": own, "standing": BEATEN if own <= LEVEL else unbeaten}
                row["beaten_by"] = competing[other]["method"] if own <= LEVEL else ""
            for row in rows:
                if len(row["losses"]) == len(best["losses"]):
                    row |= scores.behind(row["losses"], best["losses"])
        order = {NOT_BEATEN: 0, NO_GAIN: 1, BEATEN: 2, FAILED: 3, VOID: 4}
        answers += sorted(rows, key=lambda row: (order[row["standing"]], -_or(row["kept"], -1)))
    return answers


def _or(value, otherwise):
    return otherwise if math.isnan(value) else value


def _with_rows_needed(rows):
    """The rows, with the size at which each method reaches SHARE of the gain at the largest size."""
    rows = pd.DataFrame(rows)
    if rows.empty:
        return []
    curves = ["regime", "experiment", "dataset", "epsilon", "adjacency", "method"]
    for _, curve in rows.groupby(curves, sort=False):
        curve = curve[curve["kept"].notna()].sort_values("train_size")
        if len(curve) > 1:
            gains = curve["kept"] * curve["gain"] / curve["gain"].iloc[-1]
            count, what = comparison.rows_for(curve["train_size"].to_numpy(), gains, SHARE)
            rows.loc[curve.index, ["rows_for_95_percent", "rows_are"]] = round(count), what
    return rows.reindex(columns=COLUMNS).to_dict("records")


def _costs(experiment, cells):
    """(method, dataset, train_size, epsilon) -> {cpu_seconds_per_release, peak_mb}.

    The CPU seconds of the cell's job, including its start, are divided by the number of draws on all folds.
    Those of the non-private fit, divided by the number of folds, are added. Memory is the maximum over the
    method's jobs on the data set.
    """
    seconds, memory = {}, {}
    for cell in cells:
        own, peak = _took(experiment.run_path(cell))
        fit = experiment.fit_path(cell)
        of_fit, fit_peak = _took(fit) if fit else (0.0, 0.0)
        parts = experiment.folds or experiment.simulations
        parts *= read_json(data_path(cell.dataset, "json")).get("data_replicates", 1)
        seconds[cell] = own / (parts * experiment.restarts) + of_fit / parts
        key = cell.dataset, cell.method
        memory[key] = np.nanmax([memory.get(key, 0.0), peak, fit_peak])
    return {
        (cell.method, cell.dataset, cell.train_size, cell.epsilon): {
            "cpu_seconds_per_release": seconds[cell],
            "peak_mb": memory[cell.dataset, cell.method] or math.nan,
        }
        for cell in seconds
    }


def _took(file):
    """CPU seconds and MB of the job that made a file; NaN if not measured."""
    took = cost.read(paths.log_of(file))
    return (took.cpu, took.peak_mb) if took else (math.nan, math.nan)


def shared(answered):
    """The questions on which methods are ranked. answered: method -> set of questions.

    All methods are ranked on the same questions, because shares of different questions are not comparable.
    Candidates are each method's set and the intersection of every two sets. The result is the candidate
    with the largest product of its size and the number of methods that answer all its questions.
    """
    sets = [frozenset(questions) for questions in answered.values()]
    pairs = (one & other for one, other in itertools.combinations(sets, 2))
    candidates = dict.fromkeys([*sets, *pairs])
    return max(
        candidates,
        key=lambda own: (len(own) * sum(own <= questions for questions in sets), len(own)),
    )


def _over_data(rows):
    per_data = rows.groupby("dataset", sort=False)[["regret", "rank"]].mean()
    summary = {"data_sets": len(per_data), "questions": len(rows)}
    summary["not_beaten"] = int((rows["standing"] == NOT_BEATEN).sum())
    for name in ("regret", "rank"):
        mean, _, low, high = over_folds(
            per_data[name].to_numpy(), np.arange(len(per_data)), 0.0, 1.0
        )
        summary |= {name: mean, f"{name}_low": low, f"{name}_high": high}
    return summary


def across(rows):
    """Rows with columns ACROSS: each competing method's regret and rank over an experiment's data sets.

    Regret is the best competitor's kept share of the gain at a question, minus the method's. The rank is
    0 for the best competitor and 1 for the last. The 95 % intervals are over data sets (Student's t over
    their means), because questions on one data set share rows. Columns `shared_*` are for the questions on
    which methods are ranked (see `shared`), and empty for a method that does not answer all of them.
    """
    frame = pd.DataFrame([row for row in rows if not row["why"]], columns=COLUMNS)
    if frame.empty:
        return []
    questions = frame.groupby(list(QUESTION), sort=False)["behind"]
    frame["rank"] = questions.transform(comparison.relative_ranks)
    frame["regret"] = frame["behind"]
    summaries = []
    groups = ["regime", "task", "experiment", "adjacency", "method"]
    frame["question"] = list(frame[list(QUESTION)].itertuples(index=False, name=None))
    rankings = {
        at: shared({method: {*rows["question"]} for method, rows in group.groupby("method")})
        for at, group in frame.groupby(groups[:-1], sort=False)
    }
    for at, own in frame.groupby(groups, sort=False):
        row = dict(zip(groups, at, strict=True))
        row |= {"title": own["title"].iloc[0], "mechanism": own["mechanism"].iloc[0]}
        row |= _over_data(own)
        common = own[own["question"].isin(rankings[at[:-1]])]
        if len(common) == len(rankings[at[:-1]]):
            row |= {f"shared_{name}": value for name, value in _over_data(common).items()}
        row["cpu_seconds_per_release"] = own["cpu_seconds_per_release"].median()
        row["peak_mb"] = own["peak_mb"].max()
        summaries.append(dict.fromkeys(ACROSS, math.nan) | {k: row[k] for k in ACROSS if k in row})
    order = {name: k for k, name in enumerate(dict.fromkeys(row["experiment"] for row in rows))}
    return sorted(
        summaries,
        key=lambda r: (r["regime"], r["task"], order[r["experiment"]], r["adjacency"], r["regret"]),
    )
