"""The price of preparation, for one data set that is prepared in several ways."""

import numpy as np

from dp import comparison
from study.canonical import epsilon
from study.configuration.experiment import data_path
from study.configuration.inputs import DRAWS
from study.configuration.kinds import table
from study.configuration.options import DataSet, Options
from study.jobs.files import read_json
from study.jobs.paired import fold_means
from study.jobs.summary import over_folds


class PreparationPrice(Options):
    groups: dict[str, list[DataSet]]
    without: str = "nonprivate"


@table(DRAWS, PreparationPrice)
def preparation_price(experiment, spec, draws):
    """One row per data set of a group, private method and epsilon: the remaining share of the gain.

    options["groups"]: name -> data sets of the same rows, prepared in several ways. The gain is the log
    loss of the best constant minus the method's. The whole gain is the gain of the non-private
    method `without` with the first preparation.
    can_keep: the share of the whole gain that `without` keeps with the row's preparation.
    keeps: the private method's share of the whole gain, with its 95 % interval over folds.
    price: `keeps` with the first preparation, minus `keeps` with the row's preparation.
    """
    means = fold_means(draws, "log_loss")
    rows = []
    for group, datasets in spec.options["groups"].items():
        whole = {}  # training size -> the whole gain
        first = {}
        counts = read_json(data_path(datasets[0], "json"))["class_counts"]
        nothing = comparison.constant_log_loss(counts.values())
        for dataset in datasets:
            own = means[means["dataset"] == dataset]
            own = own.assign(gain=nothing - own["value"])
            plain = own[own["method"] == spec.options["without"]]
            plain = plain.groupby("train_size")["gain"].mean()
            private = own[own["method"] != spec.options["without"]]
            for at, cell in private.groupby(["method", "train_size", "epsilon"], sort=False):
                total = whole.setdefault(at[1], plain[at[1]])
                shares = cell["gain"].to_numpy() / total
                keeps, _, low, high = over_folds(shares, np.arange(len(shares)))
                price = first.setdefault(at, keeps) - keeps
                rows.append(
                    (
                        group,
                        dataset,
                        *at[:2],
                        epsilon(at[2]),
                        plain[at[1]] / total,
                        keeps,
                        low,
                        high,
                        price,
                    )
                )
    columns = ("group", "dataset", "method", "train_size", "epsilon")
    return (*columns, "can_keep", "keeps", "keeps_low", "keeps_high", "price"), rows
