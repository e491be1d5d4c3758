"""Tests of whether one record changes how a mechanism treats all others.

A proof of privacy covers a record's share in sums, fits and counts. It often overlooks a release's status,
an exception that one record causes, or a fallback: one singular matrix may change how all parts of the
rows are fitted.
"""

import inspect
import math
import sys
from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np

from dp.mechanisms import Mechanism
from dp.seeds import generator
from dp_audit import audit, pairs
from dp_privacy.accounting import ADD_REMOVE
from dp_privacy.errors import Refused
from dp_privacy.intervals import largest_share, least_share

__all__ = ["differences", "neighbours", "numbers"]

# At this confidence, none of a few hundred bounds is likely to be wrong by chance.
CONFIDENCE = 1 - 1e-6
TRACED = 20  # draws while lines are recorded, which is slow
TINY = 1e-150  # its square is far below the rounding of ordinary squares


def _rows(n, d, rng):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(0.5, 1.0, (n, 1))


def neighbours(n: int, d: int, bound: float = 1.0) -> Iterator[tuple[str, tuple, tuple]]:
    """Yield pairs of data sets for classification that differ only in record 0.

    In most pairs, record 0 or all other records are degenerate or zero.

    Parameters
    ----------
    n : int
        Records, at least 4.
    d : int
        Columns, at least 2.
    bound : float
        Maximum row norm.

    Yields
    ------
    tuple
        (name, (X, y), (X', y')), with X (n, d) and y (n,).

    Examples
    --------
    >>> [name for name, *_ in neighbours(8, 2)][:3]
    ['a row of zeros', 'a duplicate', 'a tiny row']
    """
    rng = generator(0, "neighbours")
    X, axis = _rows(n, d, rng), np.eye(d)
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    corner = np.full(d, 1 / math.sqrt(d))
    flat = X * (np.arange(d) < d - 1)
    line = X[:, :1] * corner
    alternating = np.where(np.arange(n) % 2, 1.0, -1.0)

    def pair(name, X, y, row, other, label=None):
        first, second = X.copy(), X.copy()
        first[0], second[0] = row, other
        labels = y.copy()
        labels[0] = y[0] if label is None else label
        return name, (bound * first, y), (bound * second, labels)

    yield pair("a row of zeros", X, y, X[0], 0 * corner)
    yield pair("a duplicate", X, y, corner, X[1], y[1])
    yield pair("a tiny row", X, y, axis[0], TINY * axis[0])
    yield pair("the opposite label", X, y, corner, corner, -y[0])
    yield pair("one class", X, np.ones(n), corner, corner, -1.0)
    yield pair("one class and no row", X, np.where(np.arange(n), 1.0, -1.0), corner, 0 * corner)
    yield pair("the only row off a plane", flat, y, axis[-1], 0 * corner)
    yield pair("almost off a plane", flat, y, 1e-9 * axis[-1], 0 * corner)
    yield pair("the only row off a line", line, y, axis[0], line[0])
    yield pair("equal rows but one", np.tile(corner, (n, 1)), alternating, axis[0], corner)
    yield pair("the only row", 0 * X, alternating, corner, 0 * corner)
    yield pair("tiny rows but one", TINY * X, y, corner, TINY * X[0])
    yield pair("rows of 1e-310 but one", 1e-310 * X, y, corner, 0 * corner)
    yield pair("all at the bound", np.tile(corner, (n, 1)), np.ones(n), corner, -corner)


def numbers(n: int, bound: float = 1.0) -> Iterator[tuple[str, tuple, tuple]]:
    """Yield pairs like those of `neighbours`, with numeric targets and two columns.

    The targets are exactly linear in the rows, so fits to parts of the data differ only by rounding. If one
    record changes how fits are computed, all fits change.

    Parameters
    ----------
    n : int
    bound : float
        Maximum row norm.

    Yields
    ------
    tuple
        (name, (X, y), (X', y')), with X (n, 2) and y (n,).

    Examples
    --------
    >>> [name for name, *_ in numbers(8)]
    ['a zero row of an exact fit', 'a row that fits exactly', 'a target at its bound']
    """
    k = generator(0, "numbers").permutation(n) - n // 2
    X = np.column_stack([np.full(n, 0.5), 0.5 + k * 2.0**-21])
    y = X[:, 0] - X[:, 1]
    for name, row in (("a zero row of an exact fit", 0.0), ("a row that fits exactly", 0.5)):
        other = X.copy()
        other[0] = row
        yield name, (bound * X, y), (bound * other, np.where(np.arange(n), y, 0.0))
    first = X.copy()
    first[0] = 0.5
    yield "a target at its bound", (bound * first, y), (bound * first, np.where(np.arange(n), y, 1))


class _Lines:
    """Context manager that counts executed lines of files: {(file, function, line, event): count}."""

    def __init__(self, files):
        self.files, self.found = files, Counter()

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def _call(self, frame, event, argument):
        return self._line if frame.f_code.co_filename in self.files else None

    def _line(self, frame, event, argument):
        if event in ("line", "exception"):
            code = frame.f_code
            self.found[code.co_filename, code.co_qualname, frame.f_lineno, event] += 1
        return self._line


def _own_files(mechanism):
    classes = [each for each in type(mechanism).__mro__ if each not in (Mechanism, object)]
    return {inspect.getsourcefile(each) for each in classes}


def _shape(release):
    parts = {"weights": release.weights, "status": release.status, **release.info}
    return {name: (np.shape(value), np.asarray(value).dtype.kind) for name, value in parts.items()}


def _run(mechanism, side, settings, draws, files=()):
    lines = _Lines(files)
    try:
        with lines:
            release = mechanism.release(*side, restarts=draws, rng=generator(1), **settings)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}", lines.found
    return release, "", lines.found


def _excess(first, second, epsilon, delta):
    """Whether an event's counts, from equally many draws of each side, contradict (epsilon, delta)-DP."""
    epsilon = min(epsilon, 700.0)  # larger exponents overflow
    level = 1 - (1 - CONFIDENCE) / 2
    (p, q), draws = (np.sum(first), np.sum(second)), len(first)
    return any(
        least_share(a, draws, level) - delta > math.exp(epsilon) * largest_share(b, draws, level)
        for a, b in ((p, q), (q, p))
    )


def differences(
    mechanism: Mechanism,
    settings: dict,
    cases: Iterator[tuple] | None = None,
    draws: int = 200,
    allowed: Collection[str] | None = None,
) -> list[str]:
    """Describe where behaviour on two neighbours differs by more than the guarantee allows.

    With the same random numbers, both sides must agree in exceptions, messages, how often lines of the
    mechanism's files run, and names, shapes and types of results. Statuses and weights may differ as far
    as the guarantee (or, if nothing is proven, the claim) allows.

    Parameters
    ----------
    mechanism : Mechanism
        Registered or not.
    settings : dict
        Epsilon, delta, lam, bound and options, as for `release`. A few hundred draws show little if epsilon
        is far above 1.
    cases : Iterator[tuple] or None
        Pairs, by default from `neighbours`. Under add-remove, only pairs with a row of zeros are tested.
    draws : int
        Releases on each side.
    allowed : Collection[str] or None
        Names of the mechanism's functions whose branches and loops may depend on the data, by default its
        `may_branch`.

    Returns
    -------
    list[str]
        A sentence per difference.

    Examples
    --------
    >>> from dp.mechanisms import MECHANISMS
    >>> differences(MECHANISMS["output_perturbation"], {"epsilon": 1.0, "lam": 0.1}, draws=50)
    []
    """
    sentences, allowed = [], mechanism.may_branch if allowed is None else allowed
    for name, first, second in neighbours(48, 2) if cases is None else cases:
        n, d = first[0].shape
        stated = mechanism.guarantee(n, d, **settings)
        epsilon = stated.claimed_epsilon if math.isnan(stated.epsilon) else stated.epsilon
        delta = settings.get("delta", 0.0) if math.isnan(stated.delta) else stated.delta
        if stated.adjacency == ADD_REMOVE:
            try:
                audit.check_removes(pairs.find((first, second)))
            except Refused:
                continue

        def say(what, name=name):
            sentences.append(f"{mechanism.name}, {name}: {what}")

        files = _own_files(mechanism)
        runs = [_run(mechanism, side, settings, TRACED, files) for side in (first, second)]
        (releases, errors, lines) = zip(*runs, strict=True)
        if errors[0] != errors[1]:
            say(f"one side ends with {errors[0] or 'no error'!r}, the other with {errors[1]!r}")
        if None in releases:
            continue
        if not math.isfinite(epsilon):
            continue  # without a guarantee, the sides may differ
        shapes = [_shape(release) for release in releases]
        if shapes[0] != shapes[1]:
            say(f"results have the forms {shapes[0]} and {shapes[1]}")
        for place in sorted(lines[0].keys() | lines[1].keys()):
            (file, function, line, event), counts = place, [lines[side][place] for side in (0, 1)]
            if counts[0] != counts[1] and function.split(".")[-1] not in allowed:
                often = "{} and {} times".format(*counts) if all(counts) else "on one side only"
                say(f"{event} {line} of {file.rpartition('/')[2]} ({function}) runs {often}")
        releases = [_run(mechanism, side, settings, draws)[0] for side in (first, second)]
        if None in releases:
            say(f"an error among {draws} draws")
            continue
        for status in {*releases[0].status, *releases[1].status}:
            events = [release.status == status for release in releases]
            if _excess(*events, epsilon, delta):
                say(f"the status {status!r} of {sum(events[0])} and {sum(events[1])} in {draws}")
        others = {k: v for k, v in settings.items() if k not in ("epsilon", "delta")}
        budget = settings["epsilon"], settings.get("delta", 0.0)
        parts = {"trials": 2 * draws, "confidence": CONFIDENCE, "rng": generator(2)}
        seen = audit.attack(mechanism, (first, second), *budget, **parts, **others)["epsilon"]
        if seen > epsilon:
            say(f"weights show an epsilon of at least {seen:.3g}, and {epsilon:.3g} is stated")
    return sentences
