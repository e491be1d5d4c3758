"""Learning curves, ranks, the log loss of a constant, and tests for the best method."""

import math
from collections.abc import Iterable, Sequence

import numpy as np


def greater(differences: np.ndarray | Sequence[float]) -> float:
    """One-sided p value of Student's paired t test, small if the differences (folds,) have a mean above 0.

    If all differences are equal, p is 0 if they are positive, otherwise 1. For one fold, p is 1.
    """
    from scipy.special import stdtr  # rules that are only read need no scipy

    differences = np.asarray(differences, dtype=float)
    folds, mean = len(differences), differences.mean()
    if folds < 2:
        return 1.0
    error = differences.std(ddof=1) / math.sqrt(folds)
    if error <= 1e-12 * abs(mean):
        return 0.0 if mean > 0 else 1.0
    return float(stdtr(folds - 1, -mean / error))


def holm(p: np.ndarray | Sequence[float]) -> np.ndarray:
    """Adjusted p values (tests,) (Holm, Scand. J. Stat. 1979).

    Rejecting all hypotheses with an adjusted p value of at most alpha rejects a true one with probability
    at most alpha, under any dependence.
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def beaten(losses: np.ndarray | Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Test each method against every other, from losses (methods, folds) on the same folds.

    Each test's alternative is that the other method has a smaller mean loss. Returns p (methods,), each
    method's smallest Holm-adjusted p value, and `by` (methods,), the other method in that test (-1 for
    none). The methods with p > alpha are a confidence set for the best method, at level 1 - alpha. Folds
    are treated as independent, although folds of a cross-validation share training rows.
    """
    losses = np.asarray(losses, dtype=float)
    count = len(losses)
    p, by = np.ones(count), np.full(count, -1)
    for method in range(count):
        others = [other for other in range(count) if other != method]
        if others:
            adjusted = holm([greater(losses[method] - losses[other]) for other in others])
            by[method] = others[int(adjusted.argmin())]
            p[method] = adjusted.min()
    return p, by


def rows_for(
    sizes: np.ndarray | Sequence[float], gains: np.ndarray | Sequence[float], wanted: float
) -> tuple[float, str]:
    """(rows, what): the number of rows at which a learning curve reaches a gain.

    sizes: training rows, increasing. gains: one per size. Their running maxima are interpolated linearly in
    the logarithm of the rows. what: "at most" if the smallest size reaches the gain, "more than" if no size
    does (rows is then the largest size), otherwise "interpolated".
    """
    gains = np.maximum.accumulate(np.asarray(gains, dtype=float))
    if gains[0] >= wanted:
        return float(sizes[0]), "at most"
    if not gains[-1] >= wanted:
        return float(sizes[-1]), "more than"
    above = int(np.argmax(gains >= wanted))
    low, high = np.log(sizes[above - 1]), np.log(sizes[above])
    part = (wanted - gains[above - 1]) / (gains[above] - gains[above - 1])
    return float(np.exp(low + part * (high - low))), "interpolated"


def relative_ranks(losses: np.ndarray | Sequence[float]) -> np.ndarray:
    """Ranks of losses (methods,), scaled: 0 for the smallest, 1 for the largest, the mean rank for ties."""
    losses = np.asarray(losses, dtype=float)
    if len(losses) < 2:
        return np.zeros(len(losses))
    below = (losses[None, :] < losses[:, None]).sum(axis=1)
    ties = (losses[None, :] == losses[:, None]).sum(axis=1) - 1
    return (below + ties / 2) / (len(losses) - 1)


def constant_log_loss(counts: Iterable[int]) -> float:
    """The log loss of the best constant prediction: the entropy of the class shares, in nats.

    counts: rows of each class.
    """
    from scipy.special import entr

    counts = np.array([*counts])
    return float(entr(counts / counts.sum()).sum())
