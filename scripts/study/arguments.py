"""What a mechanism's `guarantee` and `release` are given, made in one place: both get the same."""

from dp.errors import Refused
from study.jobs import folds, script


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


def of_cell(experiment, cell):
    """(options, {epsilon, delta, lam}) of an experiment's cell, chosen settings included."""
    method = experiment.methods[cell.method]
    source = experiment.lambda_source(method, cell.dataset, cell.train_size, cell.epsilon)
    lam, chosen = script.read_settings(str(source))
    settings = {"epsilon": cell.epsilon, "delta": method["delta"], "lam": lam}
    return method["options"] | chosen, settings


def guarantee(mechanism, meta, size, options, **cell):
    """The mechanism's `dp.accounting.Guarantee` for `size` of the data set's rows."""
    given = of_mechanism(mechanism, meta, options, **cell)
    return mechanism.guarantee(size, len(meta["columns"]), **given)
