"""Find the cells, tables, analyses and files that verdicts on printed values, claims and defects need."""

import math
from typing import NamedTuple

from study import paths
from study.configuration import inputs, kinds, options
from study.configuration.cell import Cell
from study.configuration.experiment import Experiment, data_path
from study.configuration.printed_values import expand


class Decided(NamedTuple):
    """Names of comparisons (entries of the section `published`) and of claims."""

    published: list
    claims: list


class Chosen(NamedTuple):
    """What a check reads, as an entry of tables and figures says it."""

    sweep: object
    analysis: str | None
    table: str | None
    datasets: list | None
    methods: list | None


def chosen(check):
    taken = check.options.get
    return Chosen(taken("sweep"), check.analysis, check.table, taken("datasets"), taken("methods"))


def comparisons(experiment: Experiment):
    """The names of `published` entries that are compared with cells, not with analyses or tables."""
    return [
        name for name, spec in experiment.published.items() if not spec.analysis and not spec.table
    ]


def claims(experiment: Experiment):
    """The ids of claims that are decided only by this experiment's cells."""
    return [
        name
        for name, entry in experiment.claims.items()
        if entry.checks
        and all(
            kinds.CHECKS[check.kind].inputs is inputs.RESULTS and "experiment" not in check.options
            for check in entry.checks
        )
    ]


def decided(experiment: Experiment, readings):
    """What is decided only by cells, or judged by some reading."""
    published, claimed = {*comparisons(experiment)}, {*claims(experiment)}
    for reading in readings:
        published |= {*reading.published}
        claimed |= {*reading.claims}
    return Decided(
        [name for name in experiment.published if name in published],
        [name for name in experiment.claims if name in claimed],
    )


def made(experiment: Experiment, names):
    """Names of the {tables, analyses} that verdicts on comparisons and claims (`Decided`) need."""
    specs: list = [experiment.published[name] for name in names.published]
    for name in names.claims:
        specs += experiment.claims[name].checks or ()
    chosen: dict[str, dict] = {"tables": {}, "analyses": {}}
    for spec in specs:
        if spec.table in experiment.tables:
            chosen["tables"][spec.table] = None
            spec = experiment.tables[spec.table]
        if spec.analysis in experiment.analyses:
            chosen["analyses"][spec.analysis] = None
    return {section: list(names) for section, names in chosen.items()}


def cells(experiment: Experiment):
    compared = [of_comparison(experiment, name) for name in comparisons(experiment)]
    checks = [c for entry in experiment.claims.values() for c in entry.checks or ()]
    return of_checks(experiment, checks).union(*compared)


def of_comparison(experiment: Experiment, name):
    return set(items(experiment, name)) & set(experiment.cells())


def items(experiment: Experiment, name):
    """The `Cell` with which each printed value is compared, whether or not this run has it."""
    compared = []
    for item in expand(experiment.published[name]):
        method = experiment.methods.get(item["method"])
        epsilon = item["epsilon"] if method is None or method.private else math.inf
        compared.append(Cell(item["dataset"], item["method"], item["train_size"], epsilon))
    return compared


def of_checks(experiment: Experiment, checks):
    cells = set()
    for check in checks:
        if kinds.CHECKS[check.kind].inputs is inputs.RESULTS:
            cells |= _of_check(experiment, check)
    return cells


def _of_check(experiment: Experiment, check):
    """The cells that a check's options select."""
    values = check.options
    chosen = {}
    for section, what in (
        ("sweeps", options.Sweep),
        ("datasets", options.DataSet),
        ("methods", options.Method),
    ):
        named = options.named(kinds.CHECKS[check.kind].options, values, what)
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


def files_of_comparisons(experiment: Experiment):
    specs = experiment.published.values()
    cells = [spec for spec in specs if not spec.analysis and not spec.table]
    analyses = {spec.analysis for spec in specs}
    tables = {spec.table: None for spec in specs}
    return [
        *([paths.CELLS(experiment=experiment.folder)] if cells else []),
        *(experiment.analysis_path(name) for name in experiment.analyses if name in analyses),
        *(
            paths.TABLE(experiment=experiment.folder, name=name)
            for name in tables
            if name in experiment.tables
        ),
    ]


def preparations(experiments):
    """The preparation records of the comparisons' data sets; they state the numbers of rows."""
    return _records(
        cell
        for experiment in experiments
        for name in comparisons(experiment)
        for cell in of_comparison(experiment.plain(), name)
    )


def _records(cells):
    return sorted({data_path(cell.dataset, "json") for cell in cells})


def files_of_readings(experiment: Experiment, readings):
    """The tables, analyses, tunings and preparation records that verdicts with readings need."""
    wanted = [(experiment, decided(experiment, readings))]
    wanted += [(reading, Decided([*reading.published], [*reading.claims])) for reading in readings]
    files = []
    for variant, names in wanted:
        named = made(variant, names)
        files += [paths.TABLE(experiment=variant.folder, name=name) for name in named["tables"]]
        files += [variant.analysis_path(name) for name in named["analyses"]]
        claimed = [check for name in names.claims for check in variant.claims[name].checks or ()]
        files += _records(of_checks(variant.plain(), claimed))
        for check in claimed:
            if kinds.CHECKS[check.kind].inputs is inputs.TUNING:
                files += inputs.TUNING.files(variant, chosen(check))
    return list(dict.fromkeys(files))


def present_checks(experiment: Experiment, section):
    """The checks of claims or defects, except those on an analysis or table that this run lacks."""
    return [
        check
        for entry in experiment.section(section).values()
        for check in entry.checks or ()
        if check.analysis in (None, *experiment.analyses)
        and check.table in (None, *experiment.tables)
    ]


def files_of_checks(experiment: Experiment, section, listed):
    """The files that the checks of a section read. listed: this run's experiments."""
    # To pair draws, checks read the run files of the cells in `decided_from`.
    decided_from = of_checks(experiment, present_checks(experiment, section))
    own = [cell for cell in experiment.cells() if cell in decided_from]
    files = dict.fromkeys([*map(experiment.run_path, own), *_records(own)])
    if reads_compared(experiment, section):
        files[paths.COMPARED(experiment=experiment.folder)] = None
    for check in present_checks(experiment, section):
        made_of = kinds.CHECKS[check.kind].inputs
        files |= dict.fromkeys(made_of.files(experiment, chosen(check)))
        named = options.named(kinds.CHECKS[check.kind].options, check.options, options.Other)
        files |= {paths.CELLS(experiment=other): None for other in named if other in listed}
    return list(files)


def reads_compared(experiment: Experiment, section):
    """Whether entries of a section depend on printed numbers."""
    if section == "published" or any(e.given for e in experiment.section(section).values()):
        return True
    return any(
        options.named(kinds.CHECKS[check.kind].options, check.options, options.Comparison)
        for check in present_checks(experiment, section)
    )
