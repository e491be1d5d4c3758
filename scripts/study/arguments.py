"""What a mechanism's `guarantee` and `release` are given, made in one place: both get the same."""

from dp.errors import Refused
from dp.mechanisms import MECHANISMS
from study.jobs import folds


def of_mechanism(mechanism, meta, options, **cell):
    """Keyword arguments of `guarantee` and `release` alike.

    meta: what the data's preparation wrote down, with every public fact that the mechanism uses.
    options: the mechanism's. cell: epsilon, delta, and lam where it is known.
    """
    if "target" in meta and not mechanism.takes_numbers(options):
        raise Refused(
            f"{mechanism.name} learns classes with these options, and the target "
            f"{meta['target']['column']!r} is a number"
        )
    return {**cell, "bound": meta["bound"], **mechanism.of_data(meta), **options}


def of_release(mechanism, meta, options, data, **cell):
    """The same with the data set's public rows, for a mechanism that uses them. data: the .npz."""
    given = of_mechanism(mechanism, meta, options, **cell)
    if mechanism.uses_public_rows and meta.get("public_rows"):
        given["public"] = folds.public_rows(data)
    return given


def chosen(lam, mechanism, meta, size, options, **cell):
    """(lambda, options with those that were chosen). lam: a kind of `study.lambdas`; size: of training
    rows; cell: epsilon and delta."""

    def rule(found):
        given = of_mechanism(mechanism, meta, options | found, **cell)
        return mechanism.rule_lambda(size, len(meta["columns"]), **given)

    value, found = lam.settings(rule)
    return value, options | found


def of_cell(experiment, cell, meta):
    """(options, {epsilon, delta, lam}) of an experiment's cell, chosen settings included."""
    method = experiment.methods[cell.method]
    settings = {"epsilon": cell.epsilon, "delta": experiment.delta(cell.method, cell.train_size)}
    lam = experiment.regularisation(method, cell.dataset, cell.train_size, cell.epsilon)
    mechanism = MECHANISMS[method["mechanism"]]
    lam, options = chosen(lam, mechanism, meta, cell.train_size, method["options"], **settings)
    return options, settings | {"lam": lam}


def check(mechanism, meta, size, options, **cell):
    """Raise `Refused` for what the mechanism cannot run with on `size` of the data set's rows."""
    given = of_mechanism(mechanism, meta, options, **cell)
    mechanism.check(size, len(meta["columns"]), **given)


def guarantee(mechanism, meta, size, options, **cell):
    """The mechanism's `dp.accounting.Guarantee` for `size` of the data set's rows."""
    given = of_mechanism(mechanism, meta, options, **cell)
    return mechanism.guarantee(size, len(meta["columns"]), **given)
