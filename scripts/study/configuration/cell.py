"""The parameters of one training job."""

from typing import NamedTuple


class Cell(NamedTuple):
    """The parameters of one job. epsilon is infinite without privacy."""

    dataset: str
    method: str
    train_size: int
    epsilon: float
