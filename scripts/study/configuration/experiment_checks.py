"""Check that an experiment's cells, data sets and mechanisms fit together.

Every function raises the error that `fail(key, text)` returns.
"""

from functools import partial

from dp import losses
from dp.mechanisms import MECHANISMS
from dp.rows import simulation_rows, smallest_training_fold
from study import arguments, lambdas
from study.configuration import accepted, kinds
from study.configuration.code import modules_of
from study.configuration.experiment import Experiment
from study.data import origins, units


def check(experiment: Experiment, fail, datasets, runs=True):
    """Raise unless all checks pass.

    datasets: name -> `DataSet`. runs: whether mechanisms must accept the settings.
    """
    if experiment.subsets == "whole" and not experiment.folds:
        raise fail("subsets", "'whole' is for folds, not for simulations")
    divisions = experiment.divisions
    if divisions and not experiment.folds:
        raise fail("divisions", "is for folds: simulations divide the rows anew already")
    for name in experiment.datasets:
        try:
            origins.check_bounds(datasets[name])
        except ValueError as error:
            raise fail("datasets", f"{name}: {error}") from None
        if divisions and datasets[name].source.data_replicates == divisions:
            text = f"{name} is {divisions} data sets from one distribution: choose another number"
            raise fail("divisions", text)
    _check_classes(experiment, fail, datasets)
    _check_targets(experiment, fail, datasets)
    _check_sizes(experiment, fail, datasets)
    _check_entries(experiment, fail)
    _check_units(experiment, fail, datasets)
    if runs:
        _check_mechanisms(experiment, fail, datasets)
    _check_public(experiment, fail, datasets)


def _check_classes(experiment: Experiment, fail, datasets):
    for cell in experiment.cells():
        mechanism = experiment.methods[cell.method].mechanism
        if origins.many_classes(datasets[cell.dataset]) and not MECHANISMS[mechanism].multiclass:
            raise fail(
                f"methods.{cell.method}",
                f"{mechanism} learns two classes, but {cell.dataset} has more; choose two with the "
                f"step 'binary'",
            )


def _check_targets(experiment: Experiment, fail, datasets):
    numbers = [name for name in experiment.datasets if datasets[name].target]
    counts = [name for name in numbers if datasets[name].target.counts]
    if counts and (experiment.tune or experiment.searches):
        raise fail(
            "tune" if experiment.tune else "searches",
            f"the target of {counts[0]} is a count, and neither tuning nor searches have a metric for "
            f"counts: state lambda and the options, or leave out the data set",
        )
    tune = experiment.tune
    if not numbers or not tune:
        return
    if not losses.get(tune.loss).residual:
        known = [name for name, loss in losses.LOSSES.items() if loss.residual]
        raise fail(
            "tune.loss",
            f"{tune.loss} is for classes, and the target of {numbers[0]} is a number: give one of "
            f"{', '.join(known)}",
        )


def _check_public(experiment: Experiment, fail, datasets):
    for cell in experiment.cells():
        has = origins.has_public_rows(datasets[cell.dataset])
        search = experiment.methods[cell.method].search
        holdout = datasets[cell.dataset].source.holdout
        if search and experiment.searches[search].rows == "public" and not (has or holdout):
            raise fail(
                f"searches.{search}.rows",
                f"{cell.dataset} has neither public nor holdout rows: give it a public_share, or leave it "
                f"out of the sweeps of {cell.method}",
            )
        if experiment.methods[cell.method].options.get("pretrain") and not has:
            raise fail(
                f"methods.{cell.method}",
                f"pretrain needs public rows, and {cell.dataset} has none: give it a public_share, "
                f"or leave it out of the method's sweeps",
            )


def _check_sizes(experiment: Experiment, fail, datasets):
    for sweep_name, sweep in experiment.sweeps.items():
        largest = sweep.train_sizes[-1]  # type: ignore[index]
        for dataset in sweep.datasets or experiment.datasets:
            rows = origins.prepared_rows(datasets[dataset])
            if rows is None:
                continue
            if experiment.simulations:
                idx = datasets[dataset].source.idx
                limit = simulation_rows(rows, bool(idx and idx.test_images))
                of = f"{rows} rows, {rows - limit} to test on"
            elif rows < experiment.folds:
                raise fail(
                    "folds", f"{dataset} has {rows} rows, fewer than {experiment.folds} folds"
                )
            else:
                limit = smallest_training_fold(rows, experiment.folds)  # type: ignore[arg-type]
                if experiment.subsets == "whole":
                    limit = rows
                of = f"{rows} rows in {experiment.folds} folds"
            if largest > limit:
                raise fail(
                    f"sweeps.{sweep_name}.train_sizes",
                    f"{largest} is more than the {limit} training rows of {dataset} ({of})",
                )
    if experiment.tune:
        folds = experiment.tune.folds
        for dataset in experiment.datasets:
            rows = datasets[dataset].source.holdout or origins.prepared_rows(datasets[dataset])
            if rows is not None and rows < folds:
                raise fail("tune.folds", f"{dataset} has {rows} rows to tune on, not {folds} folds")


def _check_entries(experiment: Experiment, fail):
    for section in kinds.SECTIONS:
        for name, entry in experiment.section(section).items():
            if entry.sweep and not experiment.entry_cells(entry):
                text = f"the sweep {entry.sweep!r} runs none of its data sets and methods"
                raise fail(f"{section}.{name}", text)


def _check_units(experiment: Experiment, fail, datasets):
    """Refuse regression tables of data sets whose preparation loses the coefficients' units."""
    for name, entry in experiment.analyses.items():
        if entry.kind != "regression":
            continue
        for dataset in entry.datasets or experiment.datasets:
            values = datasets[dataset]
            problem = units.of_entry(values)
            if problem:
                raise fail(f"analyses.{name}", f"{dataset}: {problem}")
            try:
                units.references(values.categories or {}, entry.options["reference"])
            except ValueError as error:
                raise fail(f"analyses.{name}.options", str(error)) from None


def _check_mechanisms(experiment: Experiment, fail, datasets):
    if not arguments.can_check():
        return
    facts = {name: origins.public_facts(datasets[name]) for name in experiment.datasets}
    known = {name: repr(fact) for name, fact in facts.items()}
    for cell in experiment.cells():
        method = experiment.methods[cell.method]
        try:
            meta, size = facts[cell.dataset], cell.train_size
            settings = {"epsilon": cell.epsilon, "delta": experiment.delta(cell.method, size)}
            lam = experiment.regularisation(method, cell.dataset, size, cell.epsilon)
            asked = (method.mechanism, method.options, size, settings, lam, known[cell.dataset])
            ask = partial(_ask, method, meta, size, lam, settings)
            accepted.once(
                ask, asked, "study/configuration/experiment_checks.py", *modules_of(method)
            )
        except ValueError as error:
            raise fail(f"methods.{cell.method}", str(error)) from None


def _ask(method, meta, size, lam, settings):
    """Raise ValueError unless the mechanism accepts a cell's settings."""
    mechanism = MECHANISMS[method.mechanism]
    lam = lambdas.Stated(1.0) if lam.file else lam  # a job will choose lambda
    lam, options = arguments.chosen(lam, mechanism, meta, size, method.options, **settings)
    arguments.check(mechanism, meta, size, options, **settings, lam=lam)
