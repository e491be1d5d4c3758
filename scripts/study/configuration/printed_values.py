"""Assign the values that a source printed to the cells with which they are compared.

An experiment's section `published` states the cell of each printed value. Tables and figures name its
entries:

    published:
      table_2:
        values: tables/table_2            # in the source's source.yaml
        epsilon: 0.1
        rows: [{value: separable/1, dataset: v20_separable, method: lasso_output_perturbation, ...}]
    figures:
      figure_7: {kind: epsilon_curve, options: {published: table_2}, ...}
"""

import math
from typing import NamedTuple

from study import canonical
from study import facts as source_file

# quantity -> (function from a printed number to our units, function from our error to the quantity)
QUANTITIES = {
    "error": (lambda value: value, lambda error: error),
    "accuracy": (lambda value: value, lambda error: 1 - error),
    "accuracy_percent": (lambda value: value / 100, lambda error: 1 - error),
    "value": (lambda value: value, lambda value: value),
    "setting": (lambda value: value, lambda value: value),
}


class Printed(NamedTuple):
    """A printed value.

    sd: its printed standard deviation, or None. path: its place in the source. dataset, method, train_size,
    epsilon: of the cell with which the value is compared, or None.
    """

    value: float
    sd: float | None
    path: str
    dataset: str | None
    method: str | None
    train_size: int | None
    epsilon: float | None
    column: str


def expand(spec):
    """The values of one comparison, as dictionaries.

    A row that lists sizes or epsilons stands for one value per combination; its path contains the numbers.
    """
    for row in spec.rows:
        at = [
            getattr(row if key in row.mapping() else spec, key) for key in ("train_size", "epsilon")
        ]
        sizes, epsilons = (value if isinstance(value, list) else [value] for value in at)
        column = row.column or spec.column or "error_mean"
        for size in sizes:
            for epsilon in epsilons:
                names = {"train_size": size}
                if epsilon is not None:
                    names["epsilon"] = canonical.epsilon(epsilon)
                yield {
                    "path": f"{spec.values}/{row.value.format(**names)}",
                    "dataset": row.dataset,
                    "method": row.method,
                    "train_size": size,
                    "epsilon": epsilon,
                    "where": row.where,
                    "data_drawn": row.data_drawn,
                    "unlike": row.unlike or spec.unlike,
                    "column": column.format(**names),
                    "by_epsilon": epsilon is not None and "{epsilon}" not in column,
                }


def look_up(source, path, layout):
    """(value, standard deviation or None) as printed at a path of a `study.facts.Source`."""
    entry = source.look_up(path)
    if layout == "mean_sd" and not (isinstance(entry, list) and len(entry) == 2):
        raise ValueError(f"{path} is not a mean with its standard deviation")
    printed = entry if layout == "mean_sd" else [entry]
    for value in printed:
        if type(value) not in (int, float) or not abs(value) < 1e300:
            raise ValueError(f"{path} is not a number")
    value, sd = map(float, [*printed, math.nan][:2])
    return value, None if math.isnan(sd) else sd


def values(experiment, name, ran=None):
    """The `Printed` values of an entry of the section `published`.

    ran: a frame of cells that ran; values whose method and training size it lacks are left out.
    """
    if name is None:
        return []
    spec = experiment.published[name]
    source = source_file.read(experiment.source)
    printed = []
    sizes = None if ran is None else set(zip(ran["method"], ran["train_size"], strict=True))
    for item in expand(spec):
        at = item["method"], item["train_size"]
        if sizes is not None and item["train_size"] is not None and at not in sizes:
            continue
        value, sd = look_up(source, item["path"], spec.layout)
        keys = ("path", "dataset", "method", "train_size", "epsilon", "column")
        printed.append(Printed(value, sd, *(item[key] for key in keys)))
    return printed
