"""Tables of Einarsson (2018), with published values next to ours."""

import csv
import math
from pathlib import Path

from checks import grids
from dp.descents.distributed_lasso import STOPPED
from sources.einarsson_2018 import noise_law
from study import facts
from study.canonical import epsilon, number
from study.configuration.inputs import ANALYSIS, CELLS, DRAWS, NOTHING
from study.configuration.kinds import table
from study.configuration.options import Options


@table(DRAWS, printed=True)
def table_a_1(experiment, spec, draws):
    """Table A.1: variance of the noise per epsilon, mean and variance of the weights, per size.

    Our values are means over simulations, next to published values at published sizes. The variance of
    the noise in one simulation, over d weights, has a relative standard error of about sqrt(5/d).
    """
    published = facts.read(experiment.source).tables["table_a_1"]
    private = draws[draws["noise_variance"].notna()]
    epsilons = sorted(private["epsilon"].unique())
    columns = ["dataset", "train_size", "lambda", "simulations"]
    for value in epsilons:
        name = f"noise_variance_eps_{epsilon(value)}"
        columns += [name, f"{name}_published"]
    for name in ("weights_mean", "weights_variance"):
        columns += [name, f"{name}_published"]
    columns.append("weights_variance_ratio")
    rows = []
    for (dataset, size), group in private.groupby(["dataset", "train_size"], sort=True):
        known = published.get(size, {})
        # One epsilon suffices, because the noise of all epsilons is added to the same fits.
        cell = group[group["epsilon"] == epsilons[0]]
        lam = read_lambda(experiment, cell.iloc[0])
        row = [dataset, size, lam, cell["fold"].nunique()]
        for value in epsilons:
            name = f"noise_variance_eps_{epsilon(value)}"
            ours = group.loc[group["epsilon"] == value, "noise_variance"].mean()
            row += [ours, known.get(name, float("nan"))]
        for name in ("weights_mean", "weights_variance"):
            row += [cell[name].mean(), known.get(name, float("nan"))]
        rows.append([*row, row[-2] / row[-1]])
    return columns, rows


@table(NOTHING, noise_law.NoiseLaw, printed=True)
def noise_variances(experiment, spec, _):
    """Each printed variance of the noise, its expectation and 95 % interval by the law of the noise."""
    columns = [name for name in noise_law.Variance._fields if name not in ("chance", "fine")]
    rows = noise_law.variances(experiment, spec.options)
    return columns, [[getattr(row, name) for name in columns] for row in rows]


def read_lambda(experiment, cell):
    """A cell's lambda, from the configuration or from its search."""
    lam = experiment.regularisation(
        experiment.methods[cell["method"]],
        cell["dataset"],
        int(cell["train_size"]),
        cell["epsilon"],
    )
    return lam.settings()[0]


@table(ANALYSIS)
def class_counts(experiment, spec, path):
    """One row per data set and part: the row count of every class, and the total."""
    rows = _read(path)
    classes = list(dict.fromkeys(row["class"] for row in rows))
    parts = {}
    for row in rows:
        parts.setdefault((row["dataset"], row["part"]), {})[row["class"]] = int(row["rows"])
    return ("dataset", "part", *classes, "all"), [
        (*key, *(counts.get(name, "") for name in classes), sum(counts.values()))
        for key, counts in parts.items()
    ]


class ExplainedVariance(Options):
    components: list = [2, 100]


@table(ANALYSIS, ExplainedVariance)
def explained_variance(experiment, spec, path):
    """Share of the variance that the first components explain together, for each listed number of them."""
    counts = spec.options["components"]
    return ("dataset", "components", "explained"), [
        (row["dataset"], int(row["components"]), float(row["explained"]))
        for row in _read(path)
        if int(row["components"]) in counts
    ]


def _read(path):
    with Path(path).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


STOPPING = (
    *("dataset", "method", "train_size", "runs"),
    *(f"stopped_{name.replace(' ', '_')}" for name in STOPPED),
    *("iterations_mean", "discarded_mean", "discarded_min", "discarded_max", "smallest_weight"),
)


@table(DRAWS)
def stopping_rules(experiment, spec, draws):
    """Runs ended by each stopping rule, and numbers of discarded features, per cell."""
    rows = []
    for key, cell in draws.groupby(["dataset", "method", "train_size"], sort=True):
        counts = [int((cell["stopped"] == name).sum()) for name in STOPPED]
        discarded = cell["discarded"]
        rows.append(
            (*key, len(cell), *counts, cell["iterations"].mean(), discarded.mean(),
             int(discarded.min()), int(discarded.max()), cell["smallest_weight"].min())
        )  # fmt: skip
    return STOPPING, rows


SETTINGS = (
    *("method", "lambda", "search", "grid", "of_the_published_grid", "search_folds"),
    *("search_simulations", "simulations", "sizes", "train_sizes"),
)


@table(CELLS, printed=True)
def settings(experiment, spec, frame):
    """One row per method: the origin of its lambda, the grid of its search, and the training sizes."""
    named = any(search.published for search in experiment.searches.values())
    source = facts.read(experiment.source) if named else None
    rows = []
    for label, method in experiment.methods.items():
        cells = frame[frame["method"] == label]
        if cells.empty:
            continue
        sizes = sorted(set(cells["train_size"]))
        simulations = int(cells["folds"].max())
        details = ("", "", "", "", "")
        if method.search is not None:
            search = experiment.searches[method.search]
            details = (
                method.search,
                "; ".join(f"{name} {_listed(grid)}" for name, grid in search.grid.items()),
                _shares(search, source),
                search.folds,
                min(search.simulations or math.inf, simulations),
            )
        rows.append(
            (label, _origin(experiment, method), *details, simulations, len(sizes), _listed(sizes))
        )
    return SETTINGS, rows


def _origin(experiment, method):
    """The origin of a method's lambda, in words."""
    lam = method.lambda_
    if lam == "searched":
        searched = experiment.methods[experiment.searches[method.search].method]
        return "cross-validated for every size" + (" and epsilon" if searched.private else "")
    if lam == "tuned":
        return "cross-validated once"
    if lam in ("published", experiment.lambda_published):
        return "published" + (", one for every size" if lam == "published" else f": {number(lam)}")
    if lam == "selected":
        return "selected by private runs, paid for"
    if lam == "rule":
        return "by the mechanism's rule, from public numbers"
    return f"fixed: {number(float(lam))}"


def _listed(values):
    return " ".join(number(float(v)) if isinstance(v, float) else number(v) for v in values)


def _shares(search, source):
    """How many published values of each setting the grid has, in words."""
    parts = []
    for name, (tried, others, of) in grids.shares(search, source).items():
        more = f" and {others} more" if others else ""
        parts.append(f"{name} {tried} of {of}{more}")
    return "; ".join(parts)
