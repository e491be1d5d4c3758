"""The excess risk of every draw, compared with the papers' bounds."""

import numpy as np

from sources.chaudhuri_monteleoni_2008.excess_risk import BOUNDS
from study.canonical import epsilon
from study.configuration.cell import Cell
from study.configuration.experiment import data_path
from study.configuration.inputs import DRAWS
from study.configuration.kinds import analysis
from study.configuration.options import Options
from study.jobs.files import read_json, write_csv

COLUMNS = (
    *("dataset", "method", "train_size", "epsilon", "bound", "delta", "bound_value", "draws"),
    *("share_within", "excess_median", "excess_quantile", "looseness", "status"),
)


class ExcessRiskBounds(Options):
    bounds: dict = {}
    deltas: list = [0.1, 0.05, 0.01]


@analysis(DRAWS, ExcessRiskBounds)
def excess_risk_bounds(experiment, spec, inputs, seed, out):
    """How often a high-probability bound on the excess risk holds over the draws, and how loose it is.

    options: `bounds`, method -> name of its bound in
    `sources.chaudhuri_monteleoni_2008.excess_risk.BOUNDS`; `deltas`, failure probabilities.
    excess_quantile: the 1 - delta quantile of the draws' excess risk, which a valid bound exceeds.
    looseness: the bound divided by this quantile.
    """
    rows = []
    for cell, draws in inputs.groupby(list(Cell._fields), sort=False):
        cell = Cell(*cell)
        name = spec.options["bounds"].get(cell.method)
        if name is None:
            continue
        lam = experiment.methods[cell.method].lambda_
        if isinstance(lam, str):
            raise ValueError(f"{cell.method}: bounds on excess risk need a lambda fixed beforehand")
        d = len(read_json(data_path(cell.dataset, "json"))["columns"])
        excess = draws.loc[draws["status"] == "ok", "excess_risk"].to_numpy()
        failed = len(draws) - len(excess)
        for delta in spec.options["deltas"]:
            bound = BOUNDS[name](cell.train_size, d, lam=lam, epsilon=cell.epsilon, delta=delta)
            quantile = np.quantile(excess, 1 - delta) if len(excess) else np.nan
            rows.append(
                (
                    *(cell.dataset, cell.method, cell.train_size, epsilon(cell.epsilon), name),
                    *(delta, bound, len(excess)),
                    *((excess <= bound).mean() if len(excess) else np.nan, np.median(excess)),
                    *(quantile, bound / quantile, f"{failed} failed" if failed else "ok"),
                )
            )
    write_csv(out, COLUMNS, rows)
