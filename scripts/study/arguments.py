"""What a mechanism's `guarantee` and `release` are given, made in one place: both get the same."""

from dp.errors import Refused
from dp.mechanisms import MECHANISMS
from study.jobs import folds


def of_mechanism(mechanism, meta, options, **cell):
    """Keyword arguments of `guarantee` and `release` alike.

    meta: what the preparation of the data wrote down, including every public fact that the mechanism
    uses. options: the mechanism's. cell: epsilon, delta, and lam if it is known.
    """
    if "target" in meta and not mechanism.takes_numbers(options):
        raise Refused(
            f"{mechanism.name} learns classes with these options, and the target "
            f"{meta['target']['column']!r} is a number"
        )
    return {**cell, "bound": meta["bound"], **mechanism.of_data(meta), **options}


def of_release(mechanism, meta, options, data, **cell):
    """As `of_mechanism`, with the data set's public rows if the mechanism uses them. data: the .npz."""
    given = of_mechanism(mechanism, meta, options, **cell)
    if mechanism.uses_public_rows and meta.get("public_rows"):
        given["public"] = folds.public_rows(data)
    return given


def chosen(lam, mechanism, meta, size, options, **cell):
    """(lambda, options), including the options that were chosen together with lambda.

    lam: a kind of `study.lambdas`. size: number of training rows. cell: epsilon and delta."""

    def rule(found):
        given = of_mechanism(mechanism, meta, options | found, **cell)
        return mechanism.rule_lambda(size, len(meta["columns"]), **given)

    value, found = lam.settings(rule)
    return value, options | found


def of_cell(experiment, cell, meta):
    """(options, {epsilon, delta, lam}) of an experiment's cell, including settings that were chosen."""
    method = experiment.methods[cell.method]
    settings = {"epsilon": cell.epsilon, "delta": experiment.delta(cell.method, cell.train_size)}
    lam = experiment.lambda_of(cell)
    mechanism = MECHANISMS[method["mechanism"]]
    lam, options = chosen(lam, mechanism, meta, cell.train_size, method["options"], **settings)
    return options, settings | {"lam": lam}


def check(mechanism, meta, size, options, **cell):
    """Raise `Refused` if the mechanism cannot run on `size` of the data set's rows."""
    given = of_mechanism(mechanism, meta, options, **cell)
    mechanism.check(size, len(meta["columns"]), **given)


def guarantee(mechanism, meta, size, options, **cell):
    """The mechanism's `dp.accounting.Guarantee` for `size` of the data set's rows."""
    given = of_mechanism(mechanism, meta, options, **cell)
    return mechanism.guarantee(size, len(meta["columns"]), **given)
