"""Training accuracy with and without pre-training, and their difference."""

import math

from study.canonical import epsilon
from study.configuration import printed_values
from study.configuration.inputs import CELLS
from study.configuration.kinds import table
from study.configuration.options import Comparison, Method, Options

COLUMNS = (
    *("dataset", "epsilon", "plain", "plain_low", "plain_high", "pretrained", "pretrained_low"),
    *("pretrained_high", "enhancement", "public_only", "converged", "test_plain"),
    *("test_pretrained", "draws"),
    *("published_plain", "published_pretrained", "published_enhancement", "comparison"),
)


def by_column(experiment, name, ran):
    """{"plain" or "pretrained": {epsilon: printed percentage}}. Epsilon is infinite without privacy.

    ran: a frame with the methods and training sizes that ran.
    """
    columns = {"plain": {}, "pretrained": {}}
    for value in printed_values.values(experiment, name, ran):
        started = experiment.methods[value.method].options.get("pretrain")
        epsilon = math.inf if value.epsilon is None else value.epsilon
        columns["pretrained" if started else "plain"][epsilon] = value.value
    return columns


class Columns(Options):
    plain: list[Method] = []
    pretrained: list[Method] = []
    public_only: Method | None = None
    converged: Method | None = None
    published: Comparison | None = None


@table(CELLS, Columns)
def pretraining(experiment, spec, frame):
    """One row per epsilon (infinite: without privacy), in percent of the training rows.

    options["plain"], options["pretrained"]: methods of the two columns. options["public_only"],
    options["converged"]: non-private methods, with the same value in all rows. The column `comparison`
    says "calibrated" if there are published values: data and steps were fitted to these, including the
    private accuracies, so no row counts as a reproduction.
    """
    options = spec.options
    printed = by_column(experiment, options["published"], frame)
    rows = []
    levels = {
        row.method: 100 * (1 - row.train_error_mean)
        for row in frame[frame["epsilon"] == math.inf].itertuples()
    }
    baselines = [levels.get(options[name], math.nan) for name in ("public_only", "converged")]
    sides = [frame[frame["method"].isin(options[side])] for side in ("plain", "pretrained")]
    joined = sides[0].merge(sides[1], on=["dataset", "epsilon", "train_size"], suffixes=("", "_p"))
    for cell in joined.sort_values("epsilon").itertuples():
        plain, pretrained = 100 * (1 - cell.train_error_mean), 100 * (1 - cell.train_error_mean_p)
        theirs = [printed[side].get(cell.epsilon, math.nan) for side in ("plain", "pretrained")]
        rows.append(
            (
                *(cell.dataset, epsilon(cell.epsilon)),
                *(plain, 100 * (1 - cell.train_error_high), 100 * (1 - cell.train_error_low)),
                *(pretrained, 100 * (1 - cell.train_error_high_p)),
                *(100 * (1 - cell.train_error_low_p), pretrained - plain),
                *baselines,
                *(100 * (1 - cell.error_mean), 100 * (1 - cell.error_mean_p)),
                cell.folds * cell.restarts,
                *(*theirs, theirs[1] - theirs[0]),
                "calibrated" if not math.isnan(theirs[0]) else "",
            )
        )
    return COLUMNS, rows
