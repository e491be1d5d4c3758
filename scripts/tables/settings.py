"""Where the regularisation and options of every method come from: published, fixed, or a search's grid."""

import math

from checks import grids
from study import facts as source_file
from study.canonical import number

COLUMNS = (
    *("method", "lambda", "search", "grid", "of_the_published_grid", "search_folds"),
    *("search_simulations", "simulations", "sizes", "train_sizes"),
)


def settings(experiment, spec, frame):
    """One row per method: where its lambda comes from, the grid of its search, and the sizes shown.

    Beside the grid: how much of the source's grid it has, and the folds and simulations of the search.
    """
    named = any(search["published"] for search in experiment.searches.values())
    source = source_file.read(experiment.source) if named else None
    rows = []
    for label, method in experiment.methods.items():
        cells = frame[frame["method"] == label]
        if cells.empty:
            continue
        sizes = sorted(set(cells["train_size"]))
        simulations = int(cells["folds"].max())
        found = ("", "", "", "", "")
        if "search" in method:
            search = experiment.searches[method["search"]]
            found = (
                method["search"],
                "; ".join(f"{name} {_listed(grid)}" for name, grid in search["grid"].items()),
                _shares(search, source),
                search["folds"],
                min(search.get("simulations", math.inf), simulations),
            )
        rows.append(
            (label, _origin(experiment, method), *found, simulations, len(sizes), _listed(sizes))
        )
    return COLUMNS, rows


def _origin(experiment, method):
    """Where a method's lambda comes from, in words."""
    lam = method["lambda"]
    if lam == "searched":
        searched = experiment.methods[experiment.searches[method["search"]]["method"]]
        return "cross-validated for every size" + (" and epsilon" if searched["private"] else "")
    if lam == "tuned":
        return "cross-validated once"
    if lam in ("published", experiment.values.get("lambda_published")):
        return "published" + (", one for every size" if lam == "published" else f": {number(lam)}")
    if lam == "selected":
        return "selected by private runs, paid for"
    if lam == "rule":
        return "by the mechanism's rule, from public numbers"
    return f"fixed: {number(float(lam))}"


def _listed(values):
    return " ".join(number(float(v)) if isinstance(v, float) else number(v) for v in values)


def _shares(search, source):
    """For each setting, how many of the published values the grid has."""
    parts = []
    for name, (tried, others, of) in grids.shares(search, source).items():
        more = f" and {others} more" if others else ""
        parts.append(f"{name} {tried} of {of}{more}")
    return "; ".join(parts)
