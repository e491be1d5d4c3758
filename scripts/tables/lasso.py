"""Tables of the distributed lasso."""

from dp.descents.distributed_lasso import STOPPED

COLUMNS = (
    *("dataset", "method", "train_size", "runs"),
    *(f"stopped_{name.replace(' ', '_')}" for name in STOPPED),
    *("iterations_mean", "discarded_mean", "discarded_min", "discarded_max", "smallest_weight"),
)


def stopping_rules(experiment, spec, draws):
    """How many runs each stopping rule ended, and how many features were discarded, per cell."""
    rows = []
    for key, cell in draws.groupby(["dataset", "method", "train_size"], sort=True):
        counts = [int((cell["stopped"] == name).sum()) for name in STOPPED]
        discarded = cell["discarded"]
        rows.append(
            (*key, len(cell), *counts, cell["iterations"].mean(), discarded.mean(),
             int(discarded.min()), int(discarded.max()), cell["smallest_weight"].min())
        )  # fmt: skip
    return COLUMNS, rows
