"""Find the cells, tables and analyses that verdicts on printed values and claims need."""

import math

from study.configuration import inputs, kinds, options
from study.configuration.printed_values import expand


def comparisons(experiment):
    """The names of `published` entries that are compared with cells, not with analyses or tables."""
    return [
        name
        for name, spec in experiment.published.items()
        if not spec.get("analysis") and not spec.get("table")
    ]


def claims(experiment):
    """The ids of claims that are decided only by this experiment's cells."""
    return [
        name
        for name, entry in experiment.claims.items()
        if "checks" in entry
        and all(
            kinds.CHECKS[check["kind"]].inputs is inputs.RESULTS
            and "experiment" not in check["options"]
            for check in entry["checks"]
        )
    ]


def decided(experiment, readings):
    """[names of comparisons, names of claims] that are decided only by cells, or judged by some reading."""
    names = []
    for section, by_cells in (("published", comparisons), ("claims", claims)):
        known = {*by_cells(experiment), *(name for r in readings for name in r.values[section])}
        names.append([name for name in experiment.values[section] if name in known])
    return names


def made(experiment, published, claims):
    """Names of the {tables, analyses} that verdicts on these comparisons and claims need."""
    specs = [experiment.published[name] for name in published]
    for name in claims:
        specs += experiment.claims[name].get("checks", ())
    chosen = {"tables": {}, "analyses": {}}
    for spec in specs:
        if spec.get("table") in experiment.tables:
            chosen["tables"][spec["table"]] = None
            spec = experiment.tables[spec["table"]]
        if spec.get("analysis") in experiment.analyses:
            chosen["analyses"][spec["analysis"]] = None
    return {section: list(names) for section, names in chosen.items()}


def cells(experiment):
    compared = [of_comparison(experiment, name) for name in comparisons(experiment)]
    checks = [c for entry in experiment.claims.values() for c in entry.get("checks", ())]
    return of_checks(experiment, checks).union(*compared)


def of_comparison(experiment, name):
    return set(items(experiment, name)) & set(experiment.cells())


def items(experiment, name):
    """The `Cell` with which each printed value is compared, whether or not this run has it."""
    from study.configuration.experiment import Cell  # that module imports this one

    compared = []
    for item in expand(experiment.published[name]):
        private = experiment.methods.get(item["method"], {"private": True})["private"]
        epsilon = item["epsilon"] if private else math.inf
        compared.append(Cell(item["dataset"], item["method"], item["train_size"], epsilon))
    return compared


def of_checks(experiment, checks):
    cells = set()
    for check in checks:
        if kinds.CHECKS[check["kind"]].inputs is inputs.RESULTS:
            cells |= _of_check(experiment, check)
    return cells


def _of_check(experiment, check):
    """The cells that a check's options select."""
    values = check["options"]
    chosen = {}
    for section, what in (
        ("sweeps", options.Sweep),
        ("datasets", options.DataSet),
        ("methods", options.Method),
    ):
        named = options.named(kinds.CHECKS[check["kind"]].options, values, what)
        chosen[section] = [name for name in experiment.values[section] if name in named]
        if named and not chosen[section] and section != "methods":
            return set()
    cells = experiment.cells(*(names or None for names in chosen.values()))
    for field in ("train_size", "epsilon"):
        if values.get(field) is not None:
            cells = _at(field, values[field], cells)
    return set(cells)


def _listed(value):
    return value if isinstance(value, list) else [value]


def _at(field, wanted, cells):
    """The cells whose `field` is a wanted number, or the smallest or largest on their data set.

    Cells without privacy match every epsilon.
    """

    def place(cell):
        return getattr(cell, field)

    without_privacy = [cell for cell in cells if math.isinf(place(cell))]
    cells = [cell for cell in cells if math.isfinite(place(cell))]
    if wanted in ("smallest", "largest"):
        end = min if wanted == "smallest" else max
        ends = {c.dataset: end(place(o) for o in cells if o.dataset == c.dataset) for c in cells}
        return without_privacy + [cell for cell in cells if place(cell) == ends[cell.dataset]]
    numbers = [float(number) for number in _listed(wanted)]
    return without_privacy + [
        c for c in cells if any(math.isclose(place(c), number) for number in numbers)
    ]
