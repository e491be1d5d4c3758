"""Compares searches with the source's: after a smaller search, failing to match a number proves nothing."""

from study.configuration import kinds, needs, options
from study.configuration.experiment import Experiment

METHODS = (options.Method, options.Procedure, options.Rows)  # types of options that name methods


def shares(search, source):
    """Name -> three counts, for lambda and each option with published values: the source's values that were
    tried, other values that were tried, and all of the source's values.
    """
    counts = {}
    for name, path in search.published.items():
        if name == "simulations":
            continue
        mine = {float(value) for value in search.grid.get(name, ())}
        theirs = {float(value) for value in source.look_up(path)}
        counts[name] = len(mine & theirs), len(mine - theirs), len(theirs)
    return counts


def thinned(experiment: Experiment, source, methods):
    """Say which searches of these methods try fewer values or simulations than the source; "" for none."""
    searches: dict[str, None] = {}
    for method in methods:
        name = method in experiment.methods and experiment.methods[method].search
        if not name:
            continue
        search = experiment.searches[name]
        less = [
            f"{key} {k} of {of}" for key, (k, _, of) in shares(search, source).items() if k < of
        ]
        if "simulations" in search.published:
            stated = source.look_up(search.published["simulations"])
            if (search.simulations or stated) < stated:
                less.append(f"simulations {search.simulations} of {stated}")
        if less:
            searches[f"{name} ({', '.join(less)})"] = None
    return f"searched less than the source did: {', '.join(searches)}" if searches else ""


def methods_of(experiment: Experiment, checks):
    methods = {cell.method for cell in needs.of_checks(experiment, checks)}
    for check in checks:
        taken = kinds.CHECKS[check.kind].options
        named = options.named(taken, check.options, *METHODS)
        named = experiment.methods.keys() & {*named}
        read = experiment.tables.get(check.table), experiment.analyses.get(check.analysis)
        for spec in filter(None, read if not named else ()):
            if spec.sweep:
                named |= {cell.method for cell in experiment.entry_cells(spec)}
        methods |= named
    return sorted(methods)
