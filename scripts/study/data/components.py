"""Means, deviations, principal components and distances of rows that may be integers.

The functions read all rows in blocks, without privacy protection.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dp.rows import slices

BLOCK_ROWS = 8192  # rows converted to floats at a time: 51 MB of 28 x 28 pixels


def blocks(X: np.ndarray) -> Iterator[np.ndarray]:
    """Consecutive rows of X as floats."""
    for rows in slices(len(X), BLOCK_ROWS):
        yield np.asarray(X[rows], dtype=float)


def moments(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (divisor n) of every column; a constant column has deviation 0."""
    mean = sum(block.sum(axis=0) for block in blocks(X)) / len(X)
    # Rounding may change the mean of equal values.
    mean = np.where((X[0] == X).all(axis=0), X[0], mean)
    square = sum(np.square(block - mean).sum(axis=0) for block in blocks(X)) / len(X)
    return mean, np.sqrt(square)


class Components(NamedTuple):
    """Principal components of rows x, which are first centred and scaled to (x - mean) / scale.

    mean, scale (d,). variances (d,): of the scores, in descending order. vectors (d, d): one component per
    column.
    """

    mean: np.ndarray
    scale: np.ndarray
    variances: np.ndarray
    vectors: np.ndarray

    @property
    def explained(self) -> np.ndarray:
        """Each component's share of the total variance, (d,)."""
        return self.variances / self.variances.sum()

    def scores(self, X: np.ndarray, count: int) -> np.ndarray:
        """Coordinates of rows (n, d) along the first `count` components, (n, count)."""
        vectors = self.vectors[:, :count] / self.scale[:, None]
        return np.concatenate([(block - self.mean) @ vectors for block in blocks(X)])


def principal_components(X: np.ndarray, standardise: bool = False) -> Components:
    """Principal components of the rows of X (n, d), from their covariance matrix (divisor n).

    standardise: divide columns by their standard deviations first; a constant column becomes zero. Each
    vector's largest entry in magnitude is positive.
    """
    mean, deviation = moments(X)
    scale = np.where(standardise & (deviation > 0), deviation, 1.0)
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for block in blocks(X):
        block = (block - mean) / scale
        covariance += block.T @ block
    variances, vectors = np.linalg.eigh(covariance / len(X))
    variances, vectors = np.maximum(variances[::-1], 0.0), vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    return Components(
        mean, scale, variances, vectors * np.sign(vectors[largest, np.arange(len(largest))])
    )


def distances_to_class_mean(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Euclidean distance of every row to the mean of the rows with its label, (n,)."""
    distances = np.empty(len(X))
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        mean, _ = moments(X[rows])
        distances[rows] = np.concatenate(
            [np.linalg.norm(block - mean, axis=1) for block in blocks(X[rows])]
        )
    return distances
