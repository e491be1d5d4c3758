"""Compute arguments of a mechanism's `guarantee` and `release`."""

from importlib.util import find_spec

from dp import losses
from dp.mechanisms import MECHANISMS
from dp_privacy.errors import Refused
from study.jobs import folds


def of_mechanism(mechanism, meta, options, **cell):
    """The keyword arguments that `guarantee` and `release` share.

    meta: the record of the data's preparation. cell: epsilon, delta, and lam if known.
    """
    counts = meta.get("target", {}).get("counts", False)
    if counts != mechanism.counts:
        known = ", ".join(sorted(name for name in MECHANISMS if MECHANISMS[name].counts))
        raise Refused(
            f"{mechanism.name} does not learn counts, and the target {meta['target']['column']!r} is one: "
            f"these mechanisms do: {known}"
            if counts
            else f"{mechanism.name} learns counts alone: declare the target as one, with "
            f"`target: {{counts: true}}` in config/datasets.yaml, or take another mechanism"
        )
    if "target" in meta and not mechanism.takes_numbers(options):
        raise Refused(
            f"{mechanism.name} learns classes with these options, and the target "
            f"{meta['target']['column']!r} is a number: {_for_numbers(mechanism, options)}"
        )
    return {**cell, "bound": meta["bound"], **mechanism.of_data(meta), **options}


def _for_numbers(mechanism, options):
    """Name the mechanism's losses for regression or, if it has none, mechanisms that learn numbers."""
    cell = {"lam": 1.0, "epsilon": 1.0, "delta": 1e-6 if mechanism.delta == "needed" else 0.0}

    def takes(loss):
        changed = options | {"loss": loss}
        try:
            mechanism.check_options(changed)
            mechanism.check(
                1000, 2, **cell, **changed
            )  # raises if the loss has unbounded gradients
        except ValueError:
            return False
        return mechanism.takes_numbers(changed)

    suitable = [f"`loss: {loss}`" for loss in losses.LOSSES if takes(loss)]
    if suitable:
        return f"with {' or '.join(suitable)} among its options it learns numbers"
    others = [name for name in MECHANISMS if MECHANISMS[name].takes_numbers({})]
    others = [name for name in others if not name.endswith("_released")]
    others = [name for name in others if not MECHANISMS[name].counts]
    return f"none of its losses learns numbers; these mechanisms do: {', '.join(sorted(others))}"


def of_release(mechanism, meta, options, data, **cell):
    """The arguments of `release`, including public rows if the mechanism uses them. data: the .npz file."""
    keywords = of_mechanism(mechanism, meta, options, **cell)
    if mechanism.uses_public_rows and meta.get("public_rows"):
        keywords["public"] = folds.public_rows(data)
    return keywords


def chosen(lam, mechanism, meta, size, options, **cell):
    """(lambda, options), including options chosen together with lambda.

    lam: an object of `study.lambdas`. cell: epsilon and delta.
    """

    def rule(choice):
        keywords = of_mechanism(mechanism, meta, options | choice, **cell)
        return mechanism.rule_lambda(size, len(meta["columns"]), **keywords)

    value, choice = lam.settings(rule)
    return value, options | choice


def of_cell(experiment, cell, meta):
    method = experiment.methods[cell.method]
    settings = {"epsilon": cell.epsilon, "delta": experiment.delta(cell.method, cell.train_size)}
    lam = experiment.lambda_of(cell)
    mechanism = MECHANISMS[method.mechanism]
    lam, options = chosen(lam, mechanism, meta, cell.train_size, method.options, **settings)
    return options, settings | {"lam": lam}


def can_check():
    """Whether settings can be checked here. Without scipy, as where rules are linted, only jobs do."""
    return find_spec("scipy") is not None


def check(mechanism, meta, size, options, **cell):
    """Raise `Refused` if the mechanism cannot run on `size` rows of the data set."""
    keywords = of_mechanism(mechanism, meta, options, **cell)
    mechanism.check(size, len(meta["columns"]), **keywords)


def guarantee(mechanism, meta, size, options, **cell):
    keywords = of_mechanism(mechanism, meta, options, **cell)
    return mechanism.guarantee(size, len(meta["columns"]), **keywords)
