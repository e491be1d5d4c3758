"""Resolve an experiment's configuration: fill in defaults, and write numbers in canonical form."""

import re

from dp.mechanisms import MECHANISMS
from dp.options import Positive
from dp.solvers.fits import fit_options
from study import canonical, facts
from study.configuration import (
    experiment_checks,
    families,
    inputs,
    kinds,
    option_checks,
    options,
    titles,
)
from study.configuration.experiment import Experiment
from study.configuration.experiment_keys import ExperimentFile, Fit, LambdaTable
from study.configuration.faults import nearest, wrong_type
from study.configuration.validation import ConfigError, check_text_numbers, problem, validate

SELECTION = "private_selection"


def experiment(name, value, where, datasets, without=(), runs=True):
    """The validated and resolved `Experiment`. Raises ConfigError.

    where: a function from a key's parts to the file's name. without: methods that an overlay removes. runs:
    whether mechanisms must accept the settings.
    """
    value = validate(value, ExperimentFile, where)
    scope = _Scope(value, where)
    scope.known("datasets", value.datasets, datasets, "data set")
    if bool(value.folds) + bool(value.simulations) != bool(value.sweeps):
        raise scope.fail("", "needs exactly one of the keys 'folds' and 'simulations'")
    _published_lambdas(scope)
    _published_grids(scope)
    scope.each(_family, {label: each for label, each in value.methods.items() if each.vary})
    families.resolve(value, without, scope.fail)
    scope.each(_method, value.methods)
    scope.each(_search, value.searches, datasets)
    scope.each(_sweep, value.sweeps)
    if isinstance(value.recommends, list):
        scope.known("recommends", value.recommends, value.sweeps, "sweep")
    for section, available in kinds.SECTIONS.items():
        scope.each(_entry, getattr(value, section), section, available, datasets)
    _tune(scope)
    resolved = Experiment(name, value.mapping())
    experiment_checks.check(resolved, scope.fail, datasets, runs)
    _titles(scope, resolved, datasets)
    return resolved


class _Scope:
    def __init__(self, value, where):
        self.value, self.where = value, where

    def each(self, check, entries, *further):
        """Check all entries, and raise their faults together."""
        faults = []
        for label, entry in entries.items():
            try:
                check(self, label, entry, *further)
            except ConfigError as error:
                faults.append(str(error))
        if faults:
            raise ConfigError("; ".join(faults))

    def fail(self, key, text):
        """An error about a key, which the caller raises."""
        parts = re.sub(r"\[.*", "", key).split(".") if key else []
        return problem(self.where(parts), key, text)

    def known(self, key, names, valid, what):
        for item in names:
            if not isinstance(item, str) or item not in valid:
                raise self.fail(key, f"no {what} {item!r}{nearest(item, list(valid))}")


def _published_lambdas(scope):
    table = scope.value.lambda_published
    if isinstance(table, LambdaTable) and len(table.train_sizes) != len(table.lambdas):
        text = f"{len(table.train_sizes)} train_sizes have {len(table.lambdas)} lambdas"
        raise scope.fail("lambda_published", text)


def _method(scope, label, method):
    value, key = scope.value, f"methods.{label}"
    method.mechanism = method.mechanism or label
    scope.known(key, [method.mechanism], MECHANISMS, "mechanism")
    mechanism = MECHANISMS[method.mechanism]
    method.private = mechanism.private
    check_text_numbers(method.options, scope.where(key.split(".")), f"{key}.options")
    try:
        mechanism.check_options(method.options)
        fit = mechanism.shared_fit(method.options)
    except ValueError as error:
        raise scope.fail(key, f"{error}") from None
    if method.lambda_ is None:
        method.lambda_ = value.lambda_
    lam, lambdas = method.lambda_, value.lambda_published
    if lam == "rule":  # lambda depends on epsilon, so epsilons cannot share a fit
        fit = None
    method.fit = Fit(name=fit, options=fit_options(fit, method.options)) if fit else None
    if method.simulations and (value.folds or fit):
        reason = "the experiment has folds" if value.folds else "it shares its fit"
        raise scope.fail(key, f"cannot have simulations of its own: {reason}")
    if lam == "published":
        if lambdas is None:
            raise scope.fail(key, "lambda is 'published' but lambda_published is not set")
        if not isinstance(lambdas, LambdaTable):
            method.lambda_ = lambdas
    if (lam in ("searched", "selected")) != bool(method.search):
        raise scope.fail(
            key, "'search' goes together with 'lambda: searched' and with 'lambda: selected'"
        )
    named = [method.search] if method.search else []
    scope.known(f"{key}.search", named, value.searches, "search")
    if lam == "selected":
        _selected(scope, key, method)
    if lam == "tuned" and not value.tune:
        raise scope.fail(key, "lambda is 'tuned' but there is no 'tune' section")


def _selected(scope, key, method):
    """Replace a mechanism with private selection among its runs over a search's grid."""
    if not method.private:
        text = f"{method.mechanism} has no privacy to pay with: give it 'lambda: searched'"
        raise scope.fail(f"{key}.lambda", text)
    search = scope.value.searches[method.search]
    del method.search
    method.options = {
        "of": method.mechanism,
        "settings": {k: v for k, v in method.options.items() if k not in search.grid},
        "grid": search.grid,
        **search.selection.plain(),
    }
    method.mechanism, method.fit = SELECTION, None
    try:
        MECHANISMS[SELECTION].check_options(method.options)
    except ValueError as error:
        raise scope.fail(key, f"{error}") from None


def _family(scope, label, method):
    """Refuse a family if its options do not accept the values in `vary`, or if an option is given twice."""
    key, mechanism = f"methods.{label}", method.mechanism or label
    scope.known(key, [mechanism], MECHANISMS, "mechanism")
    _values(scope, f"{key}.vary", method.vary, MECHANISMS[mechanism])
    search = scope.value.searches.get(method.search)
    for other, names in (
        ("options", method.options),
        ("lambda", ["lambda"] if method.lambda_ is not None else []),
        (f"searches.{method.search}", search.grid if search else []),
    ):
        for option in method.vary:
            if option in names:
                text = f"the method has {option!r} in {other!r} too: leave it out of one of them"
                raise scope.fail(f"{key}.vary", text)


def _values(scope, key, grid, mechanism):
    """Refuse unknown options of a mechanism, and values that its options do not take."""
    scope.known(key, grid, ["lambda", *mechanism.options], "option")
    for name, values in grid.items():
        check_text_numbers({name: values}, scope.where(key.split(".")), key)
        for value in values:
            try:
                if name == "lambda":
                    Positive().check(name, value)
                else:
                    mechanism.check_options({name: value})
            except ValueError as error:
                raise scope.fail(f"{key}.{name}", f"{error}") from None


def _published_grids(scope):
    """Check that the source states each search's published values, and take grids from the source."""
    searches, name = scope.value.searches, scope.value.source
    stated = {label for label, search in searches.items() if search.published}
    if stated and name not in facts.files():
        raise scope.fail(f"searches.{min(stated)}.published", f"{name!r} is no source")
    source = facts.read(name) if stated else None
    for label, search in searches.items():
        key, grid = f"searches.{label}", {}
        for setting, path in search.published.items():
            try:
                grid[setting] = source.look_up(path)
            except KeyError as error:
                raise scope.fail(f"{key}.published.{setting}", error.args[0]) from None
            wanted, kind = (int, "a whole number") if setting == "simulations" else (list, "a list")
            if not isinstance(grid[setting], wanted):
                raise scope.fail(f"{key}.published.{setting}", wrong_type(kind, grid[setting]))
        grid.pop("simulations", None)
        if search.grid == "published" and not grid:
            text = "is 'published', but 'published' does not say where its values are"
            raise scope.fail(f"{key}.grid", text)
        if search.grid == "published":
            search.grid = grid


def _search(scope, label, search, datasets):
    key, methods = f"searches.{label}", scope.value.methods
    scope.known(f"{key}.method", [search.method], methods, "method")
    instead = search.instead or {}
    scope.known(f"{key}.instead", [*instead, *instead.values()], datasets, "data set")
    if methods[search.method].lambda_ == "selected":
        raise scope.fail(
            f"{key}.method",
            "is selected from this grid itself: name one whose lambda is not 'selected'",
        )
    _values(scope, f"{key}.grid", search.grid, MECHANISMS[methods[search.method].mechanism])
    for user in methods.values():
        # The search chooses settings for each epsilon separately, so epsilons cannot share a fit.
        if user.search == label and methods[search.method].private:
            user.fit = None


def _sweep(scope, label, sweep):
    key = f"sweeps.{label}"
    for numbers, whole in (("train_sizes", True), ("epsilons", False)):
        given = getattr(sweep, numbers)
        try:
            values = canonical.grid(
                given if isinstance(given, list) else given.plain(), whole=whole
            )
        except ValueError as error:
            raise scope.fail(f"{key}.{numbers}", f"{error}") from None
        if not values:
            raise scope.fail(f"{key}.{numbers}", "the range is empty: 'from' exceeds 'to'")
        setattr(sweep, numbers, values)
    scope.known(f"{key}.datasets", sweep.datasets or (), scope.value.datasets, "data set")
    scope.known(f"{key}.methods", sweep.methods or (), scope.value.methods, "method")


def _entry(scope, label, entry, section, available, datasets):
    value, key = scope.value, f"{section}.{label}"
    scope.known(f"{key}.kind", [entry.kind], available, "kind")
    kind = available[entry.kind]
    # A figure that only illustrates data may use data sets that no cell uses.
    valid = datasets if kind.inputs is inputs.DATA else value.datasets
    scope.known(f"{key}.datasets", entry.datasets or (), valid, "data set")
    scope.known(f"{key}.methods", entry.methods or (), value.methods, "method")
    source = scope.where(key.split("."))
    check_text_numbers(entry.options, source, f"{key}.options")
    known = {
        options.Method: (value.methods, "method"),
        options.Comparison: (value.published, "comparison"),
        options.Mechanism: (MECHANISMS, "mechanism"),
    }
    option_checks.check(
        kind.options,
        entry.options,
        known,
        lambda place, text: scope.fail(f"{key}.options{place}", text),
    )
    entry.options = options.defaults(kind.options) | entry.options
    if available is kinds.ANALYSES:
        entry.suffix = kind.suffix
    for other, entries in (("sweep", "sweeps"), ("analysis", "analyses")):
        needed, named = kind.inputs.needs == other, getattr(entry, other) or []
        if needed and not named:
            raise scope.fail(key, f"the key {other!r} is missing")
        if not needed and named:
            raise scope.fail(key, f"{entry.kind} takes no {other!r}")
        named = [named] if isinstance(named, str) else named
        scope.known(f"{key}.{other}", named, getattr(value, entries), other)
    if kind.inputs is inputs.TUNING and not value.tune:
        raise scope.fail(key, f"{entry.kind} needs a 'tune' section")
    if kind.inputs is inputs.RESULTS:
        _option_axes(scope, f"{key}.options", entry.options)


def _titles(scope, resolved, datasets):
    """Replace placeholders, such as {epsilon}, in the titles of entries."""
    for section in kinds.SECTIONS:
        for label, entry in getattr(scope.value, section).items():
            try:
                entry.title = titles.filled(resolved, entry, datasets)
            except ValueError as error:
                raise scope.fail(f"{section}.{label}.title", f"{error}") from None


def _option_axes(scope, key, values):
    varied = Experiment("", scope.value.mapping()).varied()
    scope.known(f"{key}.along", [values["along"]], [*varied, "train_size"], "varied option")
    rows = [values["rows"]] if values["rows"] is not None else []
    scope.known(f"{key}.rows", rows, ["epsilon", "train_size", "dataset", *varied], "column")
    if rows == [values["along"]]:
        raise scope.fail(f"{key}.rows", "is the same as 'along'")
    if not all(isinstance(name, str) for name in values["columns"]) or not values["columns"]:
        raise scope.fail(f"{key}.columns", "must be names of columns of results.csv")


def _tune(scope):
    tune = scope.value.tune
    if tune and not tune.grid.low < tune.grid.high:
        raise scope.fail("tune.grid", "low must be less than high")
    if tune and tune.lasso and tune.loss != "logistic":
        text = f"is for the logistic loss, not for {tune.loss}: leave it out"
        raise scope.fail("tune.lasso", text)
