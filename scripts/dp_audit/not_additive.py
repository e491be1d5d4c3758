"""What a replay tells of functions that use noise in other ways than to add it to values.

`if_linear` measures releases that are linear in all noise, wherever it is added. `shown_despite_noise`
finds outputs that no noise can hide, and `too_frequent` releases that are too frequent on one side.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp_audit.distances import sizes
from dp_audit.recorder import LAWS, Tape
from dp_audit.runs import Run, neighbours, numbers_of, run_once, words_of
from dp_privacy.intervals import largest_share, least_share

__all__ = ["Total", "if_linear", "shown_despite_noise", "too_frequent"]

MOST_DRAWS = 64  # draws of noise that are changed to give other outputs
STEP = 1e-2  # change of a unit draw, for derivatives
RELEASES = 400  # releases of each data set, to count those that repeat
MOST_LINEAR = 1000  # draws of noise in a function that is tested for being linear
LINES = 8  # random directions in which a function of noise is compared


class Total(NamedTuple):
    """mu and pure of a `dp_audit.replay.Replay`."""

    mu: float
    pure: float


def if_linear(
    function: Callable, sides: tuple[tuple, tuple], seed: int, first: Run
) -> Total | None:
    """The exact distances if a release is a constant plus the same linear function of all noise, or None.

    Then it does not matter which noisy values are released, or whether noise is added to a value: the
    release is that of a linear mechanism. Several Gaussian draws on one output count as one. first: a run
    on the first side.
    """
    tape = first.tape
    if first.problem or tape.choices or tape.ordered or not 0 < tape.count <= MOST_LINEAR:
        return None
    if not len(numbers_of(first.released)):
        return None
    outputs, rng = _Outputs(function, seed, first), np.random.default_rng(0)
    if _bends(outputs, sides[0], numbers_of(first.released), rng):
        return None  # most functions end here
    # The function must be the same for other rows too, since a function of the rows may agree by chance.
    sides = [*sides, *itertools.islice(neighbours(sides[0]), 3)]
    origins = [outputs.moved(side, 0.0) for side in sides]
    if any(each is None for each in origins):
        return None
    size = max(np.abs(each).max(initial=1e-300) for each in origins)
    slopes = _slopes(outputs, sides, origins, size, rng)
    if slopes is None or not _explains(slopes, outputs, sides[0], origins[0], size, rng):
        return None
    if not len(slopes) or not slopes.any(axis=0).all():
        return None  # a draw that does not move the release may still decide something
    moved = origins[1] - origins[0]
    shift, _, rank, _ = np.linalg.lstsq(slopes, moved, rcond=1e-9)
    if np.abs(slopes @ shift - moved).max() > 1e-8 * size:
        return None
    laws = _laws(tape)
    if rank < tape.count and set(laws) != {"gaussian"}:
        return None
    shift[np.abs(shift) < 1e-9] = 0.0
    return Total(*sizes({law: np.where(laws == law, shift, 0.0) for law in LAWS}, tape.vectors))


class _Outputs:
    """The numbers of a function's releases when its unit draws move away from those of a first run."""

    def __init__(self, function, seed, first):
        self.function, self.seed = function, seed
        self.units, self.flow = np.concatenate(first.tape.units), first.tape.flow
        self.words, self.shape = words_of(first.released), numbers_of(first.released).shape

    def moved(self, side, step):
        """The numbers (m,) with draws moved by `step`; None if anything but numbers changes."""
        run = run_once(self.function, side, self.seed, Tape(given=self.units + step))
        if run.problem or run.tape.flow != self.flow or words_of(run.released) != self.words:
            return None
        numbers = numbers_of(run.released)
        if numbers.shape != self.shape or not np.isfinite(numbers).all():
            return None
        return numbers

    def step(self, rng):
        """A random move of all draws."""
        return 3 * rng.standard_normal(len(self.units))


def _bends(outputs, side, origin, rng):
    """Whether the numbers are not on a line, where the draws are."""
    step = outputs.step(rng)
    near, far = outputs.moved(side, step), outputs.moved(side, 2 * step)
    if near is None or far is None:
        return True
    bend = far - 2 * near + origin
    return np.abs(bend).max(initial=0.0) > 1e-8 * np.abs(far).max(initial=1e-300)


def _slopes(outputs, sides, origins, size, rng):
    """How far each draw moves each number, (m, draws); None if draws move them otherwise on other sides."""
    for _ in range(LINES):  # random directions show most differences
        step = outputs.step(rng)
        ends = [outputs.moved(side, step) for side in sides]
        if any(each is None for each in ends):
            return None
        moves = [end - origin for end, origin in zip(ends, origins, strict=True)]
        most = 1e-9 * max(size, np.abs(moves[0]).max(initial=0.0))
        if any(np.abs(moves[0] - each).max(initial=0.0) > most for each in moves[1:]):
            return None
    slopes = np.zeros((len(origins[0]), len(outputs.units)))
    for k, step in enumerate(np.eye(len(outputs.units))):
        end = outputs.moved(sides[0], step)
        if end is None:
            return None
        slopes[:, k] = end - origins[0]
    return slopes


def _explains(slopes, outputs, side, origin, size, rng):
    """Whether the slopes give the numbers of random moves."""
    for _ in range(LINES):
        step = outputs.step(rng)
        end = outputs.moved(side, step)
        if end is None:
            return False
        most = 1e-8 * max(size, np.abs(end).max())
        if np.abs(end - origin - slopes @ step).max() > most:
            return False
    return True


def _laws(tape):
    """The law of every draw, (count,)."""
    drawn = [[step[0]] * math.prod(step[1]) for step in tape.flow if step[0] in LAWS]
    return np.concatenate([np.zeros(0, dtype="U10"), *drawn])


def shown_despite_noise(
    run: Callable, sides: tuple[tuple, tuple], seed: int, epsilon: float
) -> str:
    """A sentence if noise cannot hide an output, else "".

    Noise hides at most as many outputs as it has independent draws. So `_Hidden` seeks draws with which
    that many outputs are equal on both sides. If a further output is one value on the first side, whatever
    else is drawn, and another on the second, then the rows determine it.
    """
    # If (epsilon, 0)-DP hides an output, the first side's value and another one of the second occur with a
    # probability of at most 1/(1 + e^-epsilon)^2. After the repeats, this is at most 1e-6.
    repeats = math.ceil(7 / math.log1p(math.exp(-epsilon))) if epsilon < 5 else math.inf
    hidden = _Hidden(run, sides, seed)
    if math.isinf(repeats) or not hidden.useful:
        return ""
    target = hidden.target
    free = np.setdiff1d(np.arange(len(target)), hidden.matched)
    reference = None
    for k in range(repeats):
        own, other = (hidden.match(side, seed + k) for side in sides)
        if own is None or other is None:
            return ""
        reference = other if reference is None else reference
        wide = hidden.high - hidden.low
        alike = np.abs(own - target) <= 1e-3 * wide
        alike &= np.abs(other - reference) <= 1e-3 * wide
        free = free[(alike & (np.abs(other - target) > 1e-2 * wide))[free]]
        if not len(free):
            return ""
    if not len(hidden.matched):
        return "an output depends on the rows, and on no random choice or noise"
    return "with noise that leaves other outputs equal, an output still depends on the rows"


class _Hidden:
    """The outputs of a function that noise can hide, of those that vary.

    target: their numbers in the first side's release, (m,). matched: indices of outputs that vary
    independently with the noise. useful: whether there are others. low, high: each output's range so far.
    """

    def __init__(self, run, sides, seed):
        self.run, self.matched, self.useful = run, np.zeros(0, dtype=int), False
        first = run_once(run, sides[0], seed, Tape())
        others = run_once(run, sides[1], seed, Tape()), run_once(run, sides[0], seed + 1, Tape())
        numbers = [numbers_of(each.released) for each in (first, *others) if not each.problem]
        if len(numbers) < 3 or len({len(each) for each in numbers}) > 1:
            return
        self.size = len(numbers[0])
        self.varying = np.flatnonzero((numbers[0] != numbers[1]) | (numbers[0] != numbers[2]))
        if not len(self.varying):
            return
        self.count, self.target = first.tape.count, numbers[0][self.varying]
        self.low, self.high = self.target.copy(), self.target.copy()
        # The last draws move outputs most directly.
        self.draws = np.arange(max(0, self.count - MOST_DRAWS), self.count)
        if np.isfinite(self.target).all():
            self._vary(sides[0], seed, first.tape)

    def outputs(self, side, seed, units):
        """The outputs (m,) of a run with these unit draws, or None."""
        run = run_once(self.run, side, seed, Tape(given=units))
        numbers = np.zeros(0) if run.problem else numbers_of(run.released)
        if len(numbers) != self.size or run.tape.count != self.count:
            return None
        numbers = numbers[self.varying]
        if not np.isfinite(numbers).all():
            return None
        self.low, self.high = np.minimum(self.low, numbers), np.maximum(self.high, numbers)
        return numbers

    def _vary(self, side, seed, tape):
        """Find `matched` and these outputs' derivatives by the draws."""
        slopes = np.zeros((len(self.target), len(self.draws)))
        for k in reversed(range(len(self.draws))):
            ends = []
            for sign in (1, -1):
                units = np.concatenate(tape.units)
                units[self.draws[k]] += sign * STEP
                ends.append(self.outputs(side, seed, units))
            if ends[0] is None or ends[1] is None:
                return
            slopes[:, k] = (ends[0] - ends[1]) / (2 * STEP)
            if not np.isfinite(slopes).all():
                return
            self.matched = _independent(slopes)
            if len(self.matched) == len(self.target):
                return
        self.slopes, self.useful = slopes[self.matched], True

    def match(self, side, seed):
        """The outputs (m,) of a run whose `matched` outputs equal the first side's, or None.

        The run begins with its own noise. Broyden's method changes the noise until the outputs agree.
        """
        drawn = run_once(self.run, side, seed, Tape())
        if drawn.problem or drawn.tape.count != self.count:
            return None
        units, slopes = np.concatenate([np.zeros(0), *drawn.tape.units]), self.slopes.copy()
        numbers = self.outputs(side, seed, units)
        for _ in range(40):
            if numbers is None or not np.isfinite(slopes).all():
                return None
            gap = (self.target - numbers)[self.matched]
            if (np.abs(gap) <= 1e-4 * (self.high - self.low)[self.matched]).all():
                return numbers
            step = np.linalg.lstsq(slopes, gap, rcond=1e-8)[0]
            step *= min(1.0, 2.0 / max(np.linalg.norm(step), 1e-300))
            units[self.draws] += step
            before, numbers = numbers, self.outputs(side, seed, units)
            if numbers is not None:
                missed = (numbers - before)[self.matched] - slopes @ step
                slopes = slopes + np.outer(missed, step) / max(step @ step, 1e-300)
        return None


def _independent(slopes):
    """Indices of rows that are far from linearly dependent, as many as possible."""
    from scipy.linalg import qr  # rules that are only read need no scipy

    norms = np.linalg.norm(slopes, axis=1)
    moving = np.flatnonzero(norms > 0)
    if not len(moving):
        return moving
    scaled = slopes[moving] / norms[moving, None]
    _, triangle, order = qr(scaled.T, pivoting=True, mode="economic")
    return moving[order[: (np.abs(np.diag(triangle)) > 1e-2).sum()]]


def too_frequent(run: Callable, sides: tuple[tuple, tuple], epsilon: float, delta: float) -> str:
    """A sentence if one release is too frequent on one side, else "".

    Only releases that repeat, such as a choice and its exact score, can be counted.
    """
    if not epsilon < 3:
        return ""
    names = []
    for side in sides:
        names.append([])
        for k in range(RELEASES):
            done = run_once(run, side, k, Tape())
            names[-1].append(done.problem or repr(done.released))
            if k == 7 and len(set(names[-1])) == 8:
                return ""
    if len({*names[0], *names[1]}) == 1:
        return ""
    level = 1 - 1e-6 / (4 * len({*names[0], *names[1]}))
    for first, second in (names, names[::-1]):
        for name in set(first):
            least = least_share(first.count(name), RELEASES, level)
            most = largest_share(second.count(name), RELEASES, level)
            if least - delta > math.exp(epsilon) * most:
                return "one release is far more frequent with one record than with another"
    return ""
