"""Deterministic replay: how far one record moves values before noise, in units of the noise scale.

A mechanism runs on a data set and, with the same draws, on a neighbour. In the second run, every use of a
noisy value gets the first run's value. So both share one transcript and differ only by the record's effect.
A replay shows two things more clearly than many releases:

- The distance between the two values before noise, divided by the noise scale. The total of Gaussian
  distances mu_1, mu_2, .. is sqrt(mu_1^2 + mu_2^2 + ..). Laplace distances add up (in L1, or in L2 for
  `l2_laplace`). If the total exceeds the guarantee, a sensitivity is wrong.
- Anything released without noise. Results that depend only on noisy values and public numbers are equal bit
  for bit in both runs. So if releases, noise scales or numbers of draws differ, they depend on the rows
  directly.

A replay takes milliseconds, or some hundred runs if noise is not added to values. The method is by Cebere
et al. (PETS 2026, arXiv 2602.17454).

Noise may also be hidden: a program need not release every noisy value, and smaller guarantees may hold for
what it does release (the largest of noisy values, the last iterate). So a total above the guarantee is
certain only if the release contains every noisy value, if it is a linear function of all noise, or if the
author says that all noisy values count. Otherwise, the finding is conditional.

A replay cannot judge noise that is not added to a value (a tilted objective, a sketch) or random choices (a
subsample, a selection, a rejection). The finding is then "not additive". But outputs that such randomness
cannot hide are still found. Permutations of the rows are replayed, since a bound for every order holds for
a random one. A replay misses untried pairs and the low-order bits of floating-point sums.
"""

import copy
import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg

from dp.noise import l2_laplace
from dp_audit import audit, pairs
from dp_privacy.accounting import Guarantee, gaussian_epsilon
from dp_privacy.errors import Refused
from dp_privacy.intervals import largest_share, least_share
from dp_privacy.profiles import Gaussian

__all__ = ["FINDINGS", "Replay", "of_mechanism", "on_general_pairs", "replay", "verdict"]

# The worst finding comes first.
EXCEEDS, LEAKS, FLOW, UNSEEN, IF_RELEASED, CHOICE, IDLE, REFUSED, HOLDS = FINDINGS = (
    "exceeds",
    "without noise",
    "control flow",
    "draws from a generator that the replay does not see",
    "exceeds if every noisy value is released",
    "not additive",
    "no noise was used",
    "refused",
    "holds",
)
CLOSE = 1e-9  # relative tolerance for sums computed in a different order
MOST_DRAWS = 64  # draws of noise that are changed to give other outputs
STEP = 1e-2  # change of a unit draw, for derivatives
RELEASES = 400  # releases of each data set, to count those that repeat
MOST_LINEAR = 1000  # draws of noise in a function that is tested for being linear
LINES = 8  # random directions in which a function of noise is compared
LAWS = ("gaussian", "laplace", "l2_laplace")
HIDDEN = "what is stated is for the last noisy value alone, and this counts all of them"
SAMPLE = "a permutation that is cut, a random sample of the rows, for which smaller guarantees are proven"
SMOOTH = (
    "the scale of noise depends on the rows, within the guarantee on this pair: only a bound for all "
    "neighbours, such as a smooth sensitivity, makes it private"
)
# numpy functions that move entries without computing
RESHAPED = {np.reshape, np.transpose, np.squeeze, np.expand_dims, np.copy}
JOINED = {np.stack, np.concatenate, np.vstack, np.hstack, np.column_stack}
SHAPES = {np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.shape, np.ndim}
Number = float | np.ndarray
Size = int | tuple | None


class Step(NamedTuple):
    """A noisy value that was used.

    draws: indices of the unit draws. result: value + scale * draw. bare: whether this is noise added to no
    value.
    """

    law: str
    draws: np.ndarray
    value: np.ndarray
    scale: np.ndarray
    bare: bool
    result: np.ndarray

    @property
    def live(self) -> np.ndarray:
        """Which entries have noise."""
        return self.scale != 0


class Replay(NamedTuple):
    """The result of a replay.

    Attributes
    ----------
    finding : str
        One of `FINDINGS`.
    why : str
        The finding in words.
    mu : float
        The Gaussian-DP parameter of all Gaussian noise.
    pure : float
        The epsilon of all Laplace noise.
    epsilon : float
        The epsilon of all noise at the stated delta. Infinite if something is released without noise, NaN
        if noise was not compared.
    """

    finding: str
    why: str
    mu: float = math.nan
    pure: float = math.nan
    epsilon: float = math.nan


class Tape:
    """One run's draws and uses of noise.

    first: in the second run, the first run's tape; else None. row, place: put this row at this place of
    every random order of the rows (None: leave orders as drawn). given: values (count,) of all unit draws,
    in place of those drawn.
    """

    def __init__(
        self,
        first: "Tape | None" = None,
        row: int | None = None,
        place: int | None = None,
        given: np.ndarray | None = None,
    ) -> None:
        self.first, self.row, self.place, self.given = first, row, place, given
        self.steps: list[Step] = []
        self.flow: list[tuple] = []
        self.choices: list[str] = []  # names of the `Generator` methods that made random choices
        self.ordered = False  # whether rows or other things were put into a random order
        self.rounded = False  # whether noise was rounded before it was added to a value
        self.units: list[np.ndarray] = []  # values of the unit draws
        # Index ranges [start, stop) of the draws of each `l2_laplace` vector.
        self.vectors: list[tuple[int, int]] = []
        self.count = 0

    def drew(self, law: str, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Record new unit draws. Return their indices in the draws' shape, and their values."""
        shape = unit.shape
        self.flow.append((law, shape))
        size = math.prod(shape)
        numbers = np.arange(self.count, self.count + size).reshape(shape)
        if law == "l2_laplace":
            width = shape[-1]
            self.vectors += [(int(k), int(k) + width) for k in numbers[..., 0].ravel()]
        self.count += size
        if self.given is not None:
            unit = self.given[numbers]
        self.units.append(unit.ravel())
        return numbers, unit

    def placed(self, order: np.ndarray) -> np.ndarray:
        """A random order of numbers 0, 1, .., with `row` at its place if there is one."""
        self.ordered = True
        self.flow.append(("order",))
        if self.place is not None and len(order) > max(self.row, self.place):
            at = int(np.flatnonzero(order == self.row)[0])
            order[[at, self.place]] = order[[self.place, at]]
        return order

    def use(self, noisy: "_Noisy") -> np.ndarray:
        """Record a use of a noisy value. Return the value or, in the second run, the first run's.

        Noise that is added to no value stays the run's own, because only what follows can hide a record.
        """
        bare = noisy.value is None
        value = np.zeros(noisy.shape) if bare else noisy.value
        result = np.asarray(value + noisy.scale * noisy.unit)
        k = len(self.steps)
        self.steps.append(Step(noisy.law, noisy.draws, value, noisy.scale, bare, result))
        if self.first is not None:
            if k >= len(self.first.steps) or self.first.steps[k].result.shape != result.shape:
                raise _Parted
            result = result if bare else self.first.steps[k].result
        return result.copy()


class _Parted(Exception):
    """The second run uses a noisy value that the first lacks, or has in another shape."""


class _Noisy(np.lib.mixins.NDArrayOperatorsMixin):
    """An array value + scale * draw, evaluated when a caller needs its numbers.

    Sums and products with numbers, indexing and reshaping give another `_Noisy`. All its arrays have the
    same shape.
    """

    __array_priority__ = 1000.0

    def __init__(self, tape, law, draws, unit, scale, value=None):
        self.tape, self.law = tape, law
        self.draws, self.unit, self.scale, self.value = draws, unit, scale, value
        self.used = None

    @property
    def shape(self):
        return self.unit.shape

    @property
    def ndim(self):
        return self.unit.ndim

    @property
    def size(self):
        return self.unit.size

    @property
    def dtype(self):
        return self.unit.dtype

    @property
    def T(self):
        return self.transpose()

    def __len__(self):
        return len(self.unit)

    def _each(self, change):
        if self.used is not None:
            return change(self.used)
        parts = self.draws, self.unit, self.scale, self.value
        return self._like(*(each if each is None else change(each) for each in parts))

    def _like(self, draws, unit, scale, value=None):
        return _Noisy(self.tape, self.law, draws, unit, scale, value)

    def __getitem__(self, key):
        if isinstance(key, tuple):
            key = tuple(np.asarray(k) if isinstance(k, _Noisy) else k for k in key)
        return self._each(lambda part: np.asarray(part[key]))

    def __setitem__(self, key, other):
        if self.used is None and isinstance(other, _Noisy) and other.used is None:
            if other.value is not None or self.value is not None:
                self.value = np.zeros(self.shape) if self.value is None else self.value.copy()
                self.value[key] = 0.0 if other.value is None else other.value
            self.draws, self.unit, self.scale = map(np.copy, (self.draws, self.unit, self.scale))
            self.draws[key], self.unit[key], self.scale[key] = other.draws, other.unit, other.scale
            return
        used = np.asarray(self)
        used[key] = other
        self.used = used

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def reshape(self, *shape):
        return self._each(lambda part: part.reshape(*shape))

    def transpose(self, *axes):
        return self._each(lambda part: part.transpose(*axes))

    def copy(self):
        return self._each(np.copy)

    def __deepcopy__(self, memo):
        return self.copy()

    def alone(self):
        return np.asarray(self.scale * self.unit)

    def astype(self, dtype, **settings):
        if np.dtype(dtype).kind in "iub":
            self._rounds()
        return np.asarray(self).astype(dtype, **settings)

    def round(self, *digits, **settings):
        self._rounds()
        return np.asarray(self).round(*digits, **settings)

    def _rounds(self):
        if self.used is None and self.value is None:
            self.tape.rounded = True

    def __array__(self, dtype=None, copy=None):
        if self.used is None:
            self.used = self.tape.use(self)
        return self.used if dtype is None else self.used.astype(dtype)

    def __float__(self):
        return float(np.asarray(self))

    def __int__(self):
        self._rounds()
        return int(np.asarray(self))

    def __round__(self, digits=None):
        self._rounds()
        return round(float(self), digits)

    def __bool__(self):
        return bool(np.asarray(self))

    def __repr__(self):
        return repr(np.asarray(self))

    def __str__(self):
        return str(np.asarray(self))

    def __format__(self, form):
        return format(np.asarray(self)[()], form)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __array_function__(self, function, types, arguments, settings):
        if self.used is None and function in RESHAPED and arguments and arguments[0] is self:
            return self._each(lambda part: function(part, *arguments[1:], **settings))
        if function in JOINED:
            joined = self._joined(function, *arguments, **settings)
            if joined is not None:
                return joined
        if function in (np.round, np.fix):
            for noisy in arguments:
                if isinstance(noisy, _Noisy):
                    noisy._rounds()
        if function in SHAPES:
            return function(self.unit, *arguments[1:], **settings)
        return function(*_plain(arguments), **_plain(settings))

    def _joined(self, function, parts, **settings):
        """The joined parts if each is unused noise of this law without a value; otherwise None."""
        parts = list(parts)
        alike = (isinstance(part, _Noisy) and part.law == self.law for part in parts)
        if not all(alike) or any(part.used is not None or part.value is not None for part in parts):
            return None
        arrays = zip(*((part.draws, part.unit, part.scale) for part in parts), strict=True)
        return self._like(*(function(list(each), **settings) for each in arrays))

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **settings):
        if out is not None:
            result = getattr(ufunc, method)(*inputs, **settings)
            (target,) = out
            if isinstance(target, _Noisy):
                return result
            target[...] = np.asarray(result)
            return target
        live = [x for x in inputs if isinstance(x, _Noisy) and x.used is None]
        if method == "__call__" and not settings and len(live) == 1:
            affine = self._affine(ufunc, live[0], inputs)
            if affine is not None:
                return affine
            if ufunc in (np.rint, np.floor, np.ceil, np.trunc):
                live[0]._rounds()
        return getattr(ufunc, method)(*_plain(inputs), **_plain(settings))

    def _affine(self, ufunc, noisy, inputs):
        """`noisy` after a sum, difference, product or quotient with a number; None for other operations."""
        if ufunc is np.negative:
            return noisy._times(-1.0)
        if len(inputs) != 2:
            return None
        left = inputs[0] is noisy
        other = np.asarray(inputs[1] if left else inputs[0], dtype=float)
        if ufunc is np.multiply:
            return noisy._times(other)
        if ufunc is np.divide and left:
            return noisy._times(1 / other)
        if ufunc is np.add:
            return noisy._plus(other)
        if ufunc is np.subtract:
            return noisy._plus(-other) if left else noisy._times(-1.0)._plus(other)
        return None

    def _times(self, factor):
        value = None if self.value is None else self.value * factor
        return self._spread(self.scale * factor, value)

    def _plus(self, other):
        value = np.zeros(self.shape) if self.value is None else self.value
        return self._spread(self.scale, value + other)

    def _spread(self, scale, value):
        known = [each for each in (self.draws, self.unit, scale, value) if each is not None]
        known = np.broadcast_arrays(*known)
        return self._like(*known)


def _plain(thing):
    if isinstance(thing, _Noisy):
        return np.asarray(thing)
    if isinstance(thing, dict):
        return {key: _plain(value) for key, value in thing.items()}
    if isinstance(thing, tuple | list):
        parts = map(_plain, thing)
        return type(thing)(*parts) if hasattr(thing, "_fields") else type(thing)(parts)
    return thing


def _parts(thing):
    """A release as nested dictionaries, lists, arrays, numbers and words.

    Objects of any other class become dictionaries of their attributes, and sets lists.
    """
    thing = _plain(thing)
    if isinstance(thing, dict):
        return {key: _parts(value) for key, value in thing.items()}
    if isinstance(thing, set | frozenset):
        return sorted(map(_parts, thing), key=repr)
    if isinstance(thing, tuple | list):
        return list(map(_parts, thing))
    if hasattr(thing, "__dict__") and not hasattr(thing, "__array__") and not callable(thing):
        return {"class": type(thing).__name__} | _parts(vars(thing))
    return thing


def _numbers(thing):
    """All numbers of a release, (m,), in order."""
    if isinstance(thing, dict | list):
        parts = thing.values() if isinstance(thing, dict) else thing
        return np.concatenate([np.zeros(0), *map(_numbers, parts)])
    array = np.asarray(thing)
    return array.ravel().astype(float) if array.dtype.kind in "fiub" else np.zeros(0)


class Recorder(np.random.Generator):
    """A generator that returns normal and Laplace draws as `_Noisy`, and records other draws' names."""

    def __init__(self, bits: np.random.BitGenerator, tape: Tape) -> None:
        super().__init__(bits)
        self.untracked, self.tape = np.random.Generator(bits), tape

    def law(
        self, function: Callable, dimension: int, scale: float, size: int, **shape
    ) -> _Noisy | np.ndarray:
        """Draws of a law of `dp.noise`, noted under its name as `scale` times draws of scale 1.

        Distances are known for `LAWS`. Draws of other laws are plain numbers, noted as a random choice.
        """
        unit = function(dimension, 1.0, size, self.untracked, **shape)
        if function.__name__ not in LAWS:
            self.tape.choices.append(function.__name__)
            self.tape.flow.append((function.__name__, unit.shape))
            return scale * unit
        return self._noisy(function.__name__, unit, scale)

    def _noisy(self, law, unit, scale, centre=0.0):
        draws, unit = self.tape.drew(law, np.asarray(unit, dtype=float))
        noisy = _Noisy(self.tape, law, draws, unit, np.ones(unit.shape))
        noisy = noisy._times(np.asarray(scale, dtype=float))
        # A literal 0 counts as no value, but a computed 0 may depend on the rows.
        if type(centre) in (int, float) and centre == 0:
            return noisy
        return noisy._plus(np.asarray(centre, dtype=float))

    def standard_normal(
        self, size: Size = None, dtype: type = np.float64, out: np.ndarray | None = None
    ) -> object:
        shape = size if out is None else out.shape
        noisy = self._noisy("gaussian", self.untracked.standard_normal(shape, dtype), 1.0)
        if out is None:
            return noisy
        out[...] = np.asarray(noisy)
        return out

    def normal(self, loc: Number = 0.0, scale: Number = 1.0, size: Size = None) -> object:
        size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return self._noisy("gaussian", self.untracked.standard_normal(size), scale, loc)

    def laplace(self, loc: Number = 0.0, scale: Number = 1.0, size: Size = None) -> object:
        size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return self._noisy("laplace", self.untracked.laplace(size=size), scale, loc)

    def permutation(self, x: object, axis: int = 0) -> np.ndarray:
        things = np.arange(x) if np.ndim(x) == 0 else np.asarray(x)
        order = self.untracked.permutation(things.shape[axis])
        return np.take(things, self.tape.placed(order), axis)

    def shuffle(self, x: object, axis: int = 0) -> None:
        order = self.untracked.permutation(len(x) if isinstance(x, list) else x.shape[axis])
        order = self.tape.placed(order)
        x[:] = [x[k] for k in order] if isinstance(x, list) else np.take(x, order, axis)

    def spawn(self, n_children: int) -> list["Recorder"]:
        bits = self.untracked.bit_generator
        return [Recorder(child, self.tape) for child in bits.spawn(n_children)]

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """The source of bits. Draws that are made from it are not followed."""
        self.tape.choices.append("bit_generator")
        return self.untracked.bit_generator

    def __deepcopy__(self, memo):
        return Recorder(copy.deepcopy(self.untracked.bit_generator), self.tape)


def _noted(name):
    def draw(self, *arguments, **settings):
        drawn = getattr(self.untracked, name)(*_plain(arguments), **_plain(settings))
        if name == "permuted":
            self.tape.ordered = True
        else:
            self.tape.choices.append(name)
        self.tape.flow.append((name, np.shape(drawn)))
        return drawn

    draw.__name__ = name
    return draw


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in {*vars(Recorder), "bit_generator"}:
        setattr(Recorder, _name, _noted(_name))


def replay(
    run: Callable,
    first: tuple,
    second: tuple,
    *,
    epsilon: float,
    delta: float = 0.0,
    seed: int = 0,
    released: bool = False,
) -> Replay:
    """Replay a function on two neighbouring data sets.

    Parameters
    ----------
    run : Callable
        (X, y, rng) -> the release, any nesting of arrays, numbers and strings.
    first, second : tuple
        The data sets (X, y).
    epsilon, delta : float
        The function's guarantee. If epsilon is infinite, the replay finds only values released without
        noise.
    seed : int
    released : bool
        Whether the guarantee counts every noisy value as released, such as all steps of a descent. If
        not, only noisy values that the release contains are counted with certainty.

    Returns
    -------
    Replay

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [0.5]]), np.array([1.0, 1.0])
    >>> total = lambda X, y, rng: X.sum(axis=0) + rng.laplace(0, 1.0, 1)
    >>> found = replay(total, (X, y), (np.array([[-1.0], [0.5]]), y), epsilon=1.0)
    >>> print(found.finding, found.epsilon)  # replacing 1 by -1 moves the sum by 2
    exceeds 2.0
    """
    sides = first, second
    runs = _both(run, sides, seed)
    again = _run(run, first, seed, Tape())
    if not runs[0].problem and not _equal(runs[0].released, again.released):
        return Replay(
            UNSEEN, "two runs on the same rows with the same draws of rng differ: use rng alone"
        )
    worst = _judged(*runs, epsilon, delta, released)
    if again.tape.ordered:
        worst = _of_orders(run, sides, seed, (epsilon, delta, released), worst)
    if worst.finding in (CHOICE, IF_RELEASED):
        linear = _linear(run, sides, seed, again)
        if linear is not None:
            return _of_total(linear, epsilon, delta, True)
        told = ""
        if seed == 0:  # these tests draw many seeds, so one beginning suffices
            told = _direct(run, sides, seed, epsilon) or _frequent(run, sides, epsilon, delta)
        if told:
            return worst._replace(finding=LEAKS, why=told, epsilon=math.inf)
    if worst.finding == IDLE:
        for other in _further(first):
            result = _judged(*_both(run, (first, other), seed), epsilon, delta, released)
            if result.finding in (LEAKS, FLOW):
                return result
    return worst


class _Run(NamedTuple):
    tape: Tape
    released: object  # None if the run failed
    problem: str  # "" if it did not


def _run(function, side, seed, tape):
    X, y = (each.copy() if isinstance(each, np.ndarray) else each for each in side)
    try:
        with np.errstate(all="ignore"):
            released = _parts(function(X, y, Recorder(np.random.PCG64(seed), tape)))
        return _Run(tape, released, "")
    except _Parted:
        return _Run(tape, None, "it uses other noisy values")
    except Exception as error:  # any error of one side alone tells the sides apart
        return _Run(tape, None, f"{type(error).__name__}: {error}")


def _both(function, sides, seed, row=None, place=None):
    """The runs on both sides, with a row at one place of all random orders."""
    first = _run(function, sides[0], seed, Tape(None, row, place))
    return first, _run(function, sides[1], seed, Tape(first.tape, row, place))


def _of_orders(function, sides, seed, settings, drawn):
    """The worst replay of several random orders of the rows. drawn: that of the order drawn.

    A bound for every order holds for a random order. But if the row that differs changes nothing at one
    place of the order, and something at another, some rows are not used. Then the order is a random sample,
    and for a sample, smaller guarantees than for every order are proven.
    """
    n, row = len(sides[0][0]), _row(*sides)
    if n != len(sides[1][0]):
        return Replay(
            CHOICE, "permutations of unlike numbers of rows, which are not the same order"
        )
    if row is None:
        return drawn
    results = [
        _judged(*_both(function, sides, seed, row, place), *settings)
        for place in (0, n // 2, n - 1)
    ]
    worst = min(results, key=lambda each: (FINDINGS.index(each.finding), -each.mu - each.pure))
    moved = [each.mu > 0 or each.pure > 0 for each in results]
    if worst.finding in (EXCEEDS, IF_RELEASED) and any(moved) and not all(moved):
        return worst._replace(finding=CHOICE, why=SAMPLE)
    return worst


def _row(first, second):
    """The index of the first row in which data sets differ, or None."""
    sides = [[each for each in side if np.ndim(each)] for side in (first, second)]
    for k in range(min(len(first[0]), len(second[0]))):
        if not _equal(*([each[k] for each in side] for side in sides)):
            return k
    return None


def _further(side):
    """Neighbours of a data set: one of the first rows becomes a copy of the next."""
    X, y = map(np.asarray, side)
    for k in range(min(len(X), 8) if X.ndim else 0):
        other = X.copy(), y.copy()
        for each in other:
            if each.ndim:
                each[k] = each[(k + 1) % len(each)]
        yield other


def _judged(one: _Run, two: _Run, epsilon: float, delta: float, released: bool) -> Replay:
    """The `Replay` that follows from both runs."""
    if one.problem and one.problem == two.problem:
        return Replay(REFUSED, f"both data sets: {one.problem}")
    first, second = one.tape, two.tape
    other = sorted(set(first.choices + second.choices))
    bare = any(step.bare for step in first.steps + second.steps)
    what = f"random choices ({', '.join(other)})" if other else "noise that is added to no value"
    if first.rounded or second.rounded:
        what = "noise that is rounded before it is added to a value"
    problem = one.problem or two.problem
    if problem or first.flow != second.flow or len(first.steps) != len(second.steps):
        if other or bare:
            return Replay(CHOICE, f"{what}, after which the runs differ")
        told = problem or "the runs draw or use numbers differently"
        return Replay(FLOW, f"one record decides which way the program takes: {told}")
    if other or bare:
        return Replay(CHOICE, what)
    distances = Distances(first, second)
    problem, moved = distances.problem, (distances.mu, distances.pure)
    known = released or _contains(one.released, first, second)
    if not problem and not _equal(one.released, two.released):
        problem = "the releases differ although all noisy values agree"
        # A function of the rows that mixes hidden noise, such as the solution of a tilted system, differs
        # too. But it shows no entry of what it mixes.
        known = known or _contains(one.released, first, second, any) or _selects(one, two)
    if not problem and not any(step.scale.any() for step in first.steps):
        return Replay(IDLE, "both data sets give the same release, without any noise")
    if not problem and distances.scaled:
        if not distances.scales_tell(epsilon, delta):
            return Replay(CHOICE, SMOOTH, *moved)
        problem = "the scale of noise depends on the rows, and tells them apart"
    if not problem:
        return _of_total(distances, epsilon, delta, known)
    if known:
        return Replay(LEAKS, problem, *moved, math.inf)
    return Replay(IF_RELEASED, f"{problem}, if every noisy value is released", *moved, math.inf)


def _of_total(distances, epsilon, delta, known):
    """The `Replay` for distances. known: whether all noise is in the release, or counts as if it were."""
    total = _epsilon(distances.mu, distances.pure, delta)
    moved, why = (distances.mu, distances.pure), f"this pair needs epsilon {total:.6g}"
    if total <= epsilon * (1 + CLOSE):
        return Replay(HOLDS, why, *moved, total)
    if known:
        return Replay(EXCEEDS, why, *moved, total)
    return Replay(IF_RELEASED, f"{why} if every noisy value is released", *moved, total)


def _contains(release, first, second, how=all):
    """Whether a release contains all entries of every noisy value (how=any: an entry of each)."""
    seen = [_seen(step, release) for step in first.steps]
    draws = {
        int(k)
        for step, at in zip(first.steps, seen, strict=True)
        for k in step.draws[at & step.live]
    }
    for one, two, at in zip(first.steps, second.steps, seen, strict=True):
        exact = ~one.live & (one.value != two.value) & ~at
        noisy = [int(k) in draws for k in one.draws[one.live]]
        if exact.any() or (noisy and not how(noisy)):
            return False
    return True


def _seen(step, release):
    """Which entries of a noisy value are in a release."""
    numbers = _numbers(release)
    return np.isin(step.result, numbers) | (np.isnan(step.result) & np.isnan(numbers).any())


def _selects(one, two):
    """Whether all numbers that differ between two releases are noisy values: the rows select them."""
    known = np.concatenate([np.zeros(0), *(step.result.ravel() for step in one.tape.steps)])
    first, second = _numbers(one.released), _numbers(two.released)
    if len(first) != len(second) or not len(first):
        return False
    differ = first != second
    return differ.any() and np.isin([*first[differ], *second[differ]], known).all()


def _epsilon(mu, pure, delta):
    """The epsilon of all noise at delta: exact for one kind of noise, the sum of epsilons for two."""
    if not mu:
        return pure
    return pure + (gaussian_epsilon(1 / mu, delta) if delta > 0 else math.inf)


def _sizes(shifts, vectors):
    """mu and pure of `Replay` for shifts in units of noise, by law."""
    pure = float(np.abs(shifts["laplace"]).sum())
    pure += sum(float(np.linalg.norm(shifts["l2_laplace"][start:stop])) for start, stop in vectors)
    return float(np.linalg.norm(shifts["gaussian"])), pure


class _Total(NamedTuple):
    mu: float
    pure: float


def _linear(function, sides, seed, first):
    """The exact distances if a release is a constant plus the same linear function of all noise, or None.

    Then it does not matter which noisy values are released, or whether noise is added to a value: the
    release is that of a linear mechanism. Several Gaussian draws on one output count as one. first: a run
    on the first side.
    """
    tape = first.tape
    if first.problem or tape.choices or tape.ordered or not 0 < tape.count <= MOST_LINEAR:
        return None
    if not len(_numbers(first.released)):
        return None

    def outputs(side, given):
        run = _run(function, side, seed, Tape(given=given))
        numbers = _numbers(run.released)
        alike = not run.problem and run.tape.flow == tape.flow and _words(run.released) == words
        return numbers if alike and numbers.shape == shape and np.isfinite(numbers).all() else None

    words, shape = _words(first.released), _numbers(first.released).shape
    start, rng = np.concatenate(tape.units), np.random.default_rng(0)
    step = 3 * rng.standard_normal(len(start))
    near, far = outputs(sides[0], start + step), outputs(sides[0], start + 2 * step)
    if near is None or far is None:
        return None
    bend = far - 2 * near + _numbers(first.released)
    if np.abs(bend).max(initial=0.0) > 1e-8 * np.abs(far).max(initial=1e-300):
        return None  # most functions end here
    # The function must be the same for other rows too, since a function of the rows may agree by chance.
    sides = [*sides, *itertools.islice(_further(sides[0]), 3)]
    origins = [outputs(side, start) for side in sides]
    if any(each is None for each in origins):
        return None
    size = max(np.abs(each).max(initial=1e-300) for each in origins)
    slopes = np.zeros((len(origins[0]), len(start)))
    for k in range(-LINES, len(start)):  # first random directions, most of which show a bend
        step = rng.standard_normal(len(start)) * 3 if k < 0 else np.eye(len(start))[k]
        ends = [outputs(side, start + step) for side in (sides if k < 0 else sides[:1])]
        if any(each is None for each in ends):
            return None
        moves = [end - origin for end, origin in zip(ends, origins, strict=False)]
        most = 1e-9 * max(size, np.abs(moves[0]).max(initial=0.0))
        if any(np.abs(moves[0] - each).max(initial=0.0) > most for each in moves[1:]):
            return None
        if k >= 0:
            slopes[:, k] = moves[0]
    for _ in range(LINES):
        step = rng.standard_normal(len(start)) * 3
        end = outputs(sides[0], start + step)
        if end is None or np.abs(end - origins[0] - slopes @ step).max() > 1e-8 * max(
            size, np.abs(end).max()
        ):
            return None
    if not len(slopes) or not slopes.any(axis=0).all():
        return None  # a draw that does not move the release may still decide something
    moved = origins[1] - origins[0]
    shift, _, rank, _ = np.linalg.lstsq(slopes, moved, rcond=1e-9)
    if np.abs(slopes @ shift - moved).max() > 1e-8 * size:
        return None
    laws = _laws(tape)
    if rank < len(start) and set(laws) != {"gaussian"}:
        return None
    shift[np.abs(shift) < 1e-9] = 0.0
    return _Total(*_sizes({law: np.where(laws == law, shift, 0.0) for law in LAWS}, tape.vectors))


def _laws(tape):
    """The law of every draw, (count,)."""
    drawn = [[step[0]] * math.prod(step[1]) for step in tape.flow if step[0] in LAWS]
    return np.concatenate([np.zeros(0, dtype="U10"), *drawn])


def _words(thing):
    """All of a release that is no number, in order."""
    if isinstance(thing, dict | list):
        parts = thing.items() if isinstance(thing, dict) else enumerate(thing)
        return [(key, _words(part)) for key, part in parts]
    return "" if np.asarray(thing).dtype.kind in "fiub" else repr(thing)


class Distances:
    """Distances between two runs' values before noise, in units of noise scales: mu and pure of `Replay`.

    problem: a sentence, or "" for none. Two values that share a draw must move equally, because their
    difference has no noise. scaled: whether a scale of noise differs between the runs.
    """

    def __init__(self, first: Tape, second: Tape) -> None:
        self.problem, self.vectors = "", first.vectors
        self.shifts = {law: np.full(first.count, np.nan) for law in LAWS}
        # The second run's scale in units of the first's.
        self.ratios = {law: np.ones(first.count) for law in LAWS}
        for one, two in zip(first.steps, second.steps, strict=True):
            self._step(one, two)
        known = {law: np.nan_to_num(shift, posinf=math.inf) for law, shift in self.shifts.items()}
        self.shifts = known
        self.mu, self.pure = _sizes(known, first.vectors)
        self.scaled = any((ratio != 1).any() for ratio in self.ratios.values())

    def _step(self, one, two):
        if not np.array_equal(one.draws, two.draws):
            self.problem = "which draws are on which values depends on the rows"
            return
        if ((one.scale == 0) != (two.scale == 0)).any():
            self.problem = "whether there is noise depends on the rows"
            return
        alike = (one.value == two.value) | (np.isnan(one.value) & np.isnan(two.value))
        moved = np.subtract(two.value, one.value, out=np.zeros(alike.shape), where=~alike)
        live = one.live
        if not np.isfinite(moved).all():
            self.problem = "a value before noise is not a finite number"
            return
        # Differences within the rounding of a sum count as 0.
        size = np.where(alike, 0.0, np.maximum(np.abs(one.value), np.abs(two.value)))
        moved = np.where(np.abs(moved) <= 1e-12 * size.max(initial=0.0), 0.0, moved)
        if (moved[~live] != 0).any():
            self.problem = "a value that one record moves has noise of scale 0"
            return
        draws, scale = one.draws[live], one.scale[live]
        if not len(draws):
            return
        if not np.allclose(scale, two.scale[live], rtol=CLOSE, atol=0.0):
            self.ratios[one.law][draws] = np.abs(two.scale[live] / scale)
        shift = moved[live] / scale
        order = np.argsort(draws, kind="stable")
        numbers, start = np.unique(draws[order], return_index=True)
        largest = np.maximum.reduceat(shift[order], start)
        least = np.minimum.reduceat(shift[order], start)
        before = self.shifts[one.law][numbers]
        largest, least = np.fmax(largest, before), np.fmin(least, before)
        # Shifts are in units of the noise. A relative difference of rounding matters only for large ones.
        if (largest - least > 1e-6 * np.maximum(1.0, np.abs(largest))).any():
            self.problem = "one draw is on two values that move differently"
        self.shifts[one.law][numbers] = largest

    def scales_tell(self, epsilon: float, delta: float) -> bool:
        """Whether noise of different scales tells the runs apart by more than (epsilon, delta).

        With delta = 0, it does, because tails with different scales have an unbounded ratio. Otherwise, the
        least delta at epsilon, the mean of (1 - e^(epsilon - loss))+, is estimated from simulated noise.
        It must exceed delta by five standard errors.
        """
        if delta == 0 or math.isinf(epsilon):
            return math.isfinite(epsilon)
        moved = {law: (self.shifts[law] != 0) | (self.ratios[law] != 1) for law in LAWS}
        rng = np.random.default_rng(0)
        size = int(min(1_000_000, max(2_000, 4e6 / sum(map(np.sum, moved.values())))))
        losses = np.zeros((2, size))
        for law in ("gaussian", "laplace"):
            at = moved[law]
            shift, ratio = self.shifts[law][at], self.ratios[law][at]
            draw = rng.normal if law == "gaussian" else rng.laplace
            cost = (lambda z: z**2 / 2) if law == "gaussian" else np.abs
            unit = [draw(size=(size, len(shift))) for _ in range(2)]
            for k, z in enumerate((unit[0], shift + ratio * unit[1])):
                loss = cost((z - shift) / ratio) + np.log(ratio) - cost(z)
                losses[k] += loss.sum(axis=1)
        for start, stop in self.vectors:
            shift, ratio = (each["l2_laplace"][start:stop] for each in (self.shifts, self.ratios))
            if not moved["l2_laplace"][start:stop].any():
                continue
            unit = [l2_laplace(stop - start, 1.0, size, rng) for _ in range(2)]
            for k, z in enumerate((unit[0], shift + ratio * unit[1])):
                losses[k] += np.linalg.norm((z - shift) / ratio, axis=1) - np.linalg.norm(z, axis=1)
                losses[k] += np.log(ratio).sum()
        for loss in (losses[0], -losses[1]):
            beyond = -np.expm1(np.minimum(epsilon - loss, 0.0))
            error = 5 * beyond.std() / math.sqrt(size)
            if (beyond > 0).sum() >= 100 and beyond.mean() - error > delta:
                return True
        return False


def _direct(run, sides, seed, epsilon):
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
        first = _run(run, sides[0], seed, Tape())
        others = _run(run, sides[1], seed, Tape()), _run(run, sides[0], seed + 1, Tape())
        numbers = [_numbers(each.released) for each in (first, *others) if not each.problem]
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
        run = _run(self.run, side, seed, Tape(given=units))
        numbers = np.zeros(0) if run.problem else _numbers(run.released)
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
        drawn = _run(self.run, side, seed, Tape())
        if drawn.problem or drawn.tape.count != self.count:
            return None
        units, slopes = np.concatenate([np.zeros(0), *drawn.tape.units]), self.slopes.copy()
        numbers = self.outputs(side, seed, units)
        for _ in range(40):
            if numbers is None or not np.isfinite(slopes).all():
                return None
            gap = (self.target - numbers)[self.matched]
            if (np.abs(gap) <= 1e-5 * (self.high - self.low)[self.matched]).all():
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
    norms = np.linalg.norm(slopes, axis=1)
    moving = np.flatnonzero(norms > 0)
    if not len(moving):
        return moving
    scaled = slopes[moving] / norms[moving, None]
    _, triangle, order = scipy.linalg.qr(scaled.T, pivoting=True, mode="economic")
    return moving[order[: (np.abs(np.diag(triangle)) > 1e-2).sum()]]


def _frequent(run, sides, epsilon, delta):
    """A sentence if one release is too frequent on one side, else "".

    Only releases that repeat, such as a choice and its exact score, can be counted.
    """
    if not epsilon < 3:
        return ""
    names = []
    for side in sides:
        names.append([])
        for k in range(RELEASES):
            done = _run(run, side, k, Tape())
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


def _equal(one, two):
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(_equal, one, two))
    one, two = np.asarray(one), np.asarray(two)
    return np.array_equal(one, two, equal_nan=one.dtype.kind == "f" and two.dtype.kind == "f")


# Pairs of small data sets of one size
GENERAL = (
    *("turned_row", "reversed_row", "removed_row", "last_of_its_class", "flipped_label"),
    *("opposite_corner", "shortened_row"),
)
RESIZED = ("left_out",)  # pairs for add-remove, under which the number of records is secret
SEEDS = 5


def on_general_pairs(
    mechanism: str | object, epsilon: float = 1.0, delta: float = 1e-5
) -> Iterator[tuple[str, float, Replay, Guarantee]]:
    """Replay a mechanism on each pair of `GENERAL` and `RESIZED` that suits it.

    Of five seeds, the one with the worst finding counts. On a pair of `RESIZED`, a mechanism that has the
    options `adjacency` and `public_n` gets them.

    Parameters
    ----------
    mechanism : str or Mechanism
        A private mechanism or its name.
    epsilon : float
    delta : float
        For mechanisms that need one; others get 0.

    Yields
    ------
    tuple
        (pair, delta, `Replay`, `dp_privacy.accounting.Guarantee`).

    Examples
    --------
    >>> {found.finding for _, _, found, _ in on_general_pairs("output_perturbation")}
    {'holds'}
    """
    delta = delta if audit.find(mechanism).delta == "needed" else 0.0
    for pair in (*GENERAL, *RESIZED):
        options = audit.suited(mechanism, pair)
        try:
            results = [
                of_mechanism(mechanism, pair, epsilon, delta, seed, **options)
                for seed in range(SEEDS)
            ]
        except Refused:
            continue
        yield pair, delta, *min(results, key=_badness)


def _badness(result):
    """Sort key of (`Replay`, `Guarantee`) that puts the worst first."""
    found = result[0]
    return FINDINGS.index(found.finding), -(0.0 if math.isnan(found.epsilon) else found.epsilon)


def of_mechanism(
    mechanism: str | object,
    pair: str | tuple | pairs.Pair,
    epsilon: float,
    delta: float = 0.0,
    seed: int = 0,
    **options,
) -> tuple[Replay, Guarantee]:
    """Compare a mechanism's replay on a pair with its proven guarantee.

    Parameters
    ----------
    mechanism, pair, epsilon, delta
        As for `dp_audit.audit.attack`.
    seed : int
    **options
        As for `dp_audit.audit.attack`.

    Returns
    -------
    Replay
        If nothing is proven, the claimed epsilon is tested.
    dp_privacy.accounting.Guarantee
        The tested guarantee.

    Examples
    --------
    >>> found, stated = of_mechanism("output_perturbation", "turned_row", 1.0)
    >>> print(found.finding, found.epsilon <= stated.epsilon)
    holds True
    """
    mechanism, pair = audit.find(mechanism), pairs.find(pair)
    stated = audit.guarantee(mechanism, pair, epsilon, delta, **options)
    arguments = dict(pair.arguments) | options | audit.spent(mechanism, epsilon, delta)

    def run(X, y, rng):
        release = mechanism.release(X, y, restarts=1, rng=rng, **arguments)
        return release.weights, release.status, release.info.get("intercept", 0.0)

    most = stated.epsilon if math.isfinite(stated.epsilon) else stated.claimed_epsilon
    if isinstance(stated.profile, Gaussian):
        most = max(most, gaussian_epsilon(1 / stated.profile.mu, delta))
    hides = mechanism.hides(arguments)
    settings = {"delta": delta, "seed": seed, "released": hides is False}
    result = replay(run, *pair.sides, epsilon=most, **settings)
    if result.finding == EXCEEDS and math.isinf(stated.epsilon):
        result = result._replace(finding=HOLDS)  # nothing finite is proven
    if result.finding == IF_RELEASED and hides:
        result = result._replace(finding=CHOICE, why=HIDDEN)
    return result, stated


def verdict(replayed: Replay, guarantee: Guarantee) -> str:
    """The verdict of a replay on a guarantee, in words.

    Parameters
    ----------
    replayed : Replay
    guarantee : dp_privacy.accounting.Guarantee

    Returns
    -------
    str

    Examples
    --------
    >>> verdict(*of_mechanism("output_perturbation", "turned_row", 1.0))
    'holds'
    """
    if replayed.finding == EXCEEDS and math.isfinite(guarantee.epsilon):
        return "exceeds what is proven: a fault of the proof, the code or the replay"
    claimed = guarantee.claimed_epsilon
    beyond = replayed.finding == HOLDS and replayed.epsilon > claimed * (1 + CLOSE)
    if (beyond or replayed.finding in (EXCEEDS, LEAKS, FLOW)) and not math.isinf(claimed):
        return f"refutes the claim: {replayed.why}"
    return replayed.finding
