"""Writes the guarantees of an experiment's cells, including preparation and tuning, before any run."""

import json
import math

from dp.mechanisms import MECHANISMS
from dp_privacy.accounting import after_preparation, given_that
from dp_privacy.composition import of_group
from study import canonical
from study.arguments import guarantee, of_cell
from study.configuration.experiment import Experiment, data_path
from study.configuration.families import shown
from study.jobs import script
from study.jobs.files import read_json, write_csv

COLUMNS = (
    *("experiment", "dataset", "method", "mechanism", "options", "train_size", "epsilon", "delta"),
    *("lambda", "lambda_from", "private_steps", "epsilon_claimed", "epsilon_proven"),
    *("delta_proven", "adjacency", "reason", "unit", "group", "epsilon_group", "delta_group"),
)


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
    parser.add_argument("--out", required=True, help=".csv, one row per cell")
    arguments = parser.parse_args()

    experiment = arguments.experiment
    guarantees = Guarantees(experiment)
    varied = [name for name in experiment.varied() if name not in COLUMNS]  # lambda is in COLUMNS
    rows = []
    for cell in experiment.cells():
        name = experiment.methods[cell.method].mechanism
        lam, options, stated = guarantees.of(cell)
        taken = MECHANISMS[name].defaults() | options
        rows.append(
            (
                *(experiment.name, cell.dataset, cell.method, name),
                *(json.dumps(options, sort_keys=True), cell.train_size),
                *(canonical.epsilon(cell.epsilon), experiment.delta(cell.method, cell.train_size)),
                *(lam, experiment.lambda_of(cell).origin()),
                ", ".join(guarantees.meta[cell.dataset]["private_rows"]),
                *stated[:5],
                *group(guarantees.meta[cell.dataset], stated, taken.get("most", 1)),
                *(shown(taken[option]) if option in taken else "" for option in varied),
            )
        )
    write_csv(arguments.out, (*COLUMNS, *varied), rows)


class Guarantees:
    def __init__(self, experiment):
        self.experiment = experiment
        self.meta = {name: read_json(data_path(name, "json")) for name in experiment.datasets}

    def of(self, cell):
        """(lambda, options, `dp_privacy.accounting.Guarantee`) of a cell."""
        method = self.experiment.methods[cell.method]
        meta = self.meta[cell.dataset]
        looked, premises = list(meta["private_rows"]), list(meta.get("premises", ()))
        options, settings = of_cell(self.experiment, cell, meta)
        chosen = self.experiment.lambda_of(cell).facts()
        looked += ["tuning of lambda"] * chosen.get("private_rows", False)
        premises += chosen.get("premises", ())
        premises += ["its settings, changed after results had been seen"] * bool(
            method.after_results
        )
        mechanism = MECHANISMS[method.mechanism]
        rows = self.experiment.trained_rows(cell)
        total = guarantee(mechanism, meta, rows, options, **settings)
        stated = given_that(after_preparation(total, looked), premises)
        most = (mechanism.defaults() | options).get("most", 1)
        reason = stated.reason + _unit(meta, stated, most)
        return settings["lam"], options, stated._replace(reason=reason)


def group(meta, stated, most=1):
    """(record, group, the group's epsilon and delta); all but the first are "" if rows have no group.

    most: the guarantee is for so many records of a group at once.
    """
    if not meta.get("unit"):
        return "row", "", "", ""
    unit = meta["unit"]
    words = f"{unit['group']} with at most {unit['rows']} records"
    return unit["row"], words, *of_group(stated, math.ceil(unit["rows"] / most))


def _unit(meta, stated, most=1):
    """Text appended to a reason: what a record is, and the guarantee for its group. "" without a group."""
    row, words, epsilon, delta = group(meta, stated, most)
    if not words:
        return ""
    protects = f"; a record is {row}"
    if not math.isfinite(stated.epsilon):
        return protects
    if not math.isfinite(epsilon):
        return f"{protects}: for {words}, no epsilon follows from this one"
    return f"{protects}: for {words}, epsilon is {epsilon:.6g} at delta = {delta:.3g}"
