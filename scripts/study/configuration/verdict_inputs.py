"""Find the files that verdicts on an experiment's published values, claims and defects need."""

from dp.mechanisms import MECHANISMS
from study import paths
from study.configuration import inputs, kinds, needs, options
from study.configuration.experiment import data_path


def of_comparisons(experiment):
    specs = experiment.published.values()
    cells = [spec for spec in specs if not spec.get("analysis") and not spec.get("table")]
    analyses = {spec.get("analysis") for spec in specs}
    tables = {spec.get("table"): None for spec in specs}
    return [
        *([paths.CELLS(experiment=experiment.folder)] if cells else []),
        *(experiment.analysis_path(name) for name in experiment.analyses if name in analyses),
        *(
            paths.TABLE(experiment=experiment.folder, name=name)
            for name in tables
            if name in experiment.tables
        ),
    ]


def prepared(experiments):
    """The preparation records of the comparisons' data sets; they state the numbers of rows."""
    return _records(
        cell
        for experiment in experiments
        for name in needs.comparisons(experiment)
        for cell in needs.of_comparison(experiment.plain(), name)
    )


def _records(cells):
    return sorted({data_path(cell.dataset, "json") for cell in cells})


def of_readings(experiment, readings):
    """The tables, analyses, tunings and preparation records that verdicts with readings need."""
    wanted = [(experiment, needs.decided(experiment, readings))]
    wanted += [(reading, (reading.published, reading.claims)) for reading in readings]
    files = []
    for variant, names in wanted:
        made = needs.made(variant, *names)
        files += [paths.TABLE(experiment=variant.folder, name=name) for name in made["tables"]]
        files += [variant.analysis_path(name) for name in made["analyses"]]
        claimed = [check for name in names[1] for check in variant.claims[name]["checks"]]
        files += _records(needs.of_checks(variant.plain(), claimed))
        for check in claimed:
            if kinds.CHECKS[check["kind"]].inputs is inputs.TUNING:
                files += inputs.TUNING.files(variant, check["options"])
    return list(dict.fromkeys(files))


def checks(experiment, section):
    """The checks of claims or defects, except those on an analysis or table that this run lacks."""
    return [
        check
        for entry in experiment.values[section].values()
        for check in entry.get("checks", ())
        if check.get("analysis") in (None, *experiment.analyses)
        and check.get("table") in (None, *experiment.tables)
    ]


def of_checks(experiment, section, listed):
    """The files that the checks of a section read. listed: this run's experiments."""
    # To pair draws, checks read the run files of the cells in `decided_from`.
    decided_from = needs.of_checks(experiment, checks(experiment, section))
    own = [cell for cell in experiment.cells() if cell in decided_from]
    files = dict.fromkeys([*map(experiment.run_path, own), *_records(own)])
    if reads_compared(experiment, section):
        files[paths.COMPARED(experiment=experiment.folder)] = None
    for check in checks(experiment, section):
        made_of = kinds.CHECKS[check["kind"]].inputs
        files |= dict.fromkeys(made_of.files(experiment, check | check["options"]))
        named = options.named(kinds.CHECKS[check["kind"]].options, check["options"], options.Other)
        files |= {paths.CELLS(experiment=other): None for other in named if other in listed}
    return list(files)


def reads_compared(experiment, section):
    """Whether entries of a section depend on printed numbers."""
    if section == "published" or any("given" in e for e in experiment.values[section].values()):
        return True
    return any(
        options.named(kinds.CHECKS[check["kind"]].options, check["options"], options.Comparison)
        for check in checks(experiment, section)
    )


def modules_of_checks(experiment, section):
    """The modules that the checks of a section load by name."""
    modules = set()
    for check in checks(experiment, section):
        kind = kinds.CHECKS[check["kind"]]
        named = options.named(kind.options, check["options"], options.Mechanism)
        modules |= {kind.module, *map(MECHANISMS.module, named)}
    return sorted(modules)
