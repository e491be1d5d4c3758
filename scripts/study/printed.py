"""Accuracies that a source printed per method and epsilon, beside the methods that regenerate them.

A table of config/published/<source>.yaml has a row per method, which maps an epsilon, or `all`, to a
mean and a standard deviation over folds:

    laplace: {0.001: [0.843, 0.017], 10: [0.843, 0.017]}

An entry's options `table` and `rows` say which, and which of the experiment's methods each row is:

    table: table_1a_breast_cancer
    rows: {laplace: [functional_laplace, functional_laplace_adam]}
"""

import math
from pathlib import Path


def path(values):
    """The file of an experiment's source. values: the experiment's configuration."""
    return Path("config/published") / f"{values['source']}.yaml"


def read(values):
    """The tables of that file; ValueError where there is none."""
    import yaml  # only where published values are shown

    if "source" not in values:
        raise ValueError("the experiment names no 'source' of published values")
    try:
        return yaml.safe_load(path(values).read_text(encoding="utf-8"))["tables"]
    except OSError as error:
        raise ValueError(f"{path(values)} cannot be read ({error.strerror})") from None


def accuracies(values, table=None, rows=None):
    """Method -> {epsilon: (mean, sd)}, epsilon infinite for `all`; {} without a table."""
    if not table:
        return {}
    tables = read(values)
    if table not in tables:
        raise ValueError(f"{path(values)} has no table {table!r} (it has: {', '.join(tables)})")
    found = {}
    for row, methods in (rows or {}).items():
        if row not in tables[table]:
            raise ValueError(f"{path(values)}: {table} has no row {row!r}")
        printed = {
            math.inf if epsilon == "all" else float(epsilon): tuple(map(float, pair))
            for epsilon, pair in tables[table][row].items()
        }
        for method in methods:
            if method not in values["methods"]:
                raise ValueError(f"rows.{row}: the experiment has no method {method!r}")
            found[method] = printed
    return found


def pairs(values, table=None):
    """epsilon -> (without, with pre-training) in percent, infinite for no privacy; {} without a table.

    A table of this kind has `rows`, epsilon to such a pair, and `non_private` with the first of them.
    """
    if not table:
        return {}
    tables = read(values)
    if table not in tables:
        raise ValueError(f"{path(values)} has no table {table!r} (it has: {', '.join(tables)})")
    found = {
        float(epsilon): tuple(map(float, pair)) for epsilon, pair in tables[table]["rows"].items()
    }
    if "non_private" in tables[table]:
        found[math.inf] = (float(tables[table]["non_private"]["no_pretraining"]), math.nan)
    return found
