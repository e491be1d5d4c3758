"""Results compare four ways of tuning: by rule, by private selection, on public rows, and void.

Void tuning uses private rows at no cost. Some sources, and so their experiments, tune only in this way.
"""

import pytest

from configured import configured
from dp.mechanisms import MECHANISMS

OVERLAYS = {"default": (), "real": ("real",)}
WAYS = {"rule", "selected", "public", "void"}


@pytest.fixture(scope="module", params=OVERLAYS)
def experiments(request):
    return configured(*OVERLAYS[request.param])[1]


def way(experiment, label):
    """How a method's settings are chosen, its mechanism, and the grid of choices."""
    method = experiment.methods[label]
    if method.lambda_ == "selected":
        return "selected", method.options["of"], method.options["grid"]
    if method.lambda_ == "searched":
        search = experiment.searches[method.search]
        chosen = "public" if search.rows == "public" else "void"
        return chosen, method.mechanism, search.grid
    assert method.lambda_ != "tuned", "which would be a fifth way"
    return "rule", method.mechanism, None


def columns(experiment, sweep):
    """(mechanism, grid) -> ways of tuning in a sweep. A rule has no grid, so it counts for all grids."""
    result, rules = {}, set()
    for label in sorted({cell.method for cell in experiment.cells(sweep)}):
        if experiment.methods[label].private:
            chosen, mechanism, grid = way(experiment, label)
            if grid is None:
                rules.add(mechanism)
            else:
                result.setdefault((mechanism, str(grid)), set()).add(chosen)
    return {key: ways | ({"rule"} if key[0] in rules else set()) for key, ways in result.items()}


def own(experiments):
    """Experiments that compare methods under this project's protocol."""
    for experiment in experiments.values():
        if experiment.recommends or experiment.source is None:
            yield experiment


def test_what_is_tuned_stands_in_four_columns(experiments):
    checked = 0
    for experiment in own(experiments):
        for sweep in experiment.sweeps:
            for (mechanism, grid), ways in columns(experiment, sweep).items():
                assert ways == WAYS, f"{experiment.name}, {sweep}: {mechanism} from {grid}: {ways}"
                checked += 1
    assert checked > 8


def test_what_results_changed_is_tuned_in_four_ways_too(experiments):
    """`frontier_tuning` tunes mechanisms that have several settings or whose settings followed results."""
    tuned, mechanism = set(), MECHANISMS.__getitem__
    tuning = experiments["frontier_tuning"]
    for label, method in tuning.methods.items():
        if method.private and way(tuning, label)[0] == "selected":
            options = method.options
            first = {name: values[0] for name, values in options["grid"].items()}
            numbers = mechanism(options["of"]).takes_numbers(options["settings"] | first)
            tuned.add((options["of"], numbers))
    results = set()
    for experiment in own(experiments):
        members = {
            label for family in (experiment.families or {}).values() for label in family.members
        }
        for label, method in experiment.methods.items():
            if method.private and (label in members or method.after_results):
                numbers = mechanism(method.mechanism).takes_numbers(method.options)
                results.add((method.mechanism, numbers))
    assert results and results <= tuned
