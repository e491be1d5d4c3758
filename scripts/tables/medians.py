"""Medians of a metric, which a few bad draws do not distort, and counts of refused draws."""

import numpy as np

from dp import metrics
from study.canonical import epsilon
from study.configuration.cell import Cell
from study.configuration.inputs import DRAWS
from study.configuration.kinds import table
from study.configuration.options import Options
from study.jobs.summary import over_folds


class Medians(Options):
    metric: str = "r2"


@table(DRAWS, Medians)
def medians(experiment, spec, draws):
    """One row per cell: median and mean over draws, with 95 % intervals over folds or over data sets.

    options["metric"]: one of `dp.metrics.ALL`. Draws without a result are left out. refused, failed: how
    many of them the mechanism refused, and how many failed otherwise.
    """
    metric = spec.options["metric"]
    names = [
        f"{metric}_{kind}{end}" for kind in ("median", "mean") for end in ("", "_low", "_high")
    ]
    columns = (*Cell._fields, *names, "draws", "refused", "failed")
    rows = []
    for cell, cell_draws in draws.groupby(list(Cell._fields), sort=False):
        ok = cell_draws[cell_draws["status"] == "ok"]
        folds = ok.groupby("replicate")[metric]
        values = []
        for of_fold in (folds.median(), folds.mean()):
            mean, _, low, high = over_folds(
                of_fold.to_numpy(), np.arange(len(of_fold)), *metrics.ALL[metric]
            )
            values += [mean, low, high]
        refused = int((cell_draws["status"] == "refused").sum())
        failed = len(cell_draws) - len(ok) - refused
        cell = Cell(*cell)._replace(epsilon=epsilon(Cell(*cell).epsilon))
        rows.append((*cell, *values, len(cell_draws), refused, failed))
    return columns, rows
