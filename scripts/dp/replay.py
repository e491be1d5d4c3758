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

A replay takes milliseconds. The method is by Cebere et al. (PETS 2026, arXiv 2602.17454).

A replay cannot judge noise that is not added to a value (a tilted objective, a sketch) or random choices (a
subsample, a selection, a rejection). The finding is then "not additive". Permutations of the rows are
replayed, since a bound for every order holds for a random order. A replay misses untried pairs and the
low-order bits of floating-point sums.
"""

import copy
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dp import audit
from dp.accounting import Guarantee, gaussian_epsilon
from dp.errors import Failed, Refused
from dp.privacy import pairs
from dp.privacy.profiles import Gaussian

__all__ = ["FINDINGS", "Replay", "of_mechanism", "on_general_pairs", "replay", "verdict"]

# The worst finding comes first.
EXCEEDS, LEAKS, FLOW, CHOICE, IDLE, REFUSED, HOLDS = FINDINGS = (
    "exceeds",
    "without noise",
    "control flow",
    "not additive",
    "no noise was used",
    "refused",
    "holds",
)
CLOSE = 1e-9  # relative tolerance for sums computed in a different order
HIDDEN = "what is stated is for the last noisy value alone, and this counts all of them"
ORDERS = ("permutation", "permuted", "shuffle")
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
    """One run's draws and uses of noise. first: in the second run, the first run's tape; else None."""

    def __init__(self, first: "Tape | None" = None) -> None:
        self.first = first
        self.steps: list[Step] = []
        self.flow: list[tuple] = []
        self.choices: list[str] = []  # names of the `Generator` methods that made random choices
        # Index ranges [start, stop) of the draws of each `l2_laplace` vector.
        self.vectors: list[tuple[int, int]] = []
        self.count = 0

    def drew(self, law: str, shape: tuple) -> np.ndarray:
        """Record new unit draws and return their indices in this shape."""
        self.flow.append((law, tuple(shape)))
        size = math.prod(shape)
        numbers = np.arange(self.count, self.count + size).reshape(shape)
        if law == "l2_laplace":
            width = shape[-1]
            self.vectors += [(int(k), int(k) + width) for k in numbers[..., 0].ravel()]
        self.count += size
        return numbers

    def use(self, noisy: "_Noisy") -> np.ndarray:
        """Record a use of a noisy value. Return the value or, in the second run, the first run's."""
        bare = noisy.value is None
        value = np.zeros(noisy.shape) if bare else noisy.value
        result = value + noisy.scale * noisy.unit
        k = len(self.steps)
        self.steps.append(Step(noisy.law, noisy.draws, value, noisy.scale, bare, result))
        if self.first is not None:
            if k >= len(self.first.steps) or self.first.steps[k].result.shape != result.shape:
                raise _Parted
            result = self.first.steps[k].result
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

    def __array__(self, dtype=None, copy=None):
        if self.used is None:
            self.used = self.tape.use(self)
        return self.used if dtype is None else self.used.astype(dtype)

    def __float__(self):
        return float(np.asarray(self))

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
        return type(thing)(map(_plain, thing))
    return thing


class Recorder(np.random.Generator):
    """A generator that returns normal and Laplace draws as `_Noisy`, and records other draws' names."""

    def __init__(self, bits: np.random.BitGenerator, tape: Tape) -> None:
        super().__init__(bits)
        self.untracked, self.tape = np.random.Generator(bits), tape

    def law(self, function: Callable, dimension: int, scale: float, size: int) -> _Noisy:
        """Draws of a law of `dp.noise`, noted under its name as `scale` times draws of scale 1."""
        unit = function(dimension, 1.0, size, self.untracked)
        return self._noisy(function.__name__, unit, scale)

    def _noisy(self, law, unit, scale, centre=0.0):
        unit = np.asarray(unit, dtype=float)
        noisy = _Noisy(self.tape, law, self.tape.drew(law, unit.shape), unit, np.ones(unit.shape))
        noisy = noisy._times(np.asarray(scale, dtype=float))
        # A literal 0 counts as no value, but a computed 0 may depend on the rows.
        if type(centre) in (int, float) and centre == 0:
            return noisy
        return noisy._plus(np.asarray(centre, dtype=float))

    def standard_normal(
        self, size: Size = None, dtype: type = np.float64, out: np.ndarray | None = None
    ) -> object:
        return self._noisy("gaussian", self.untracked.standard_normal(size, dtype), 1.0)

    def normal(self, loc: Number = 0.0, scale: Number = 1.0, size: Size = None) -> object:
        size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return self._noisy("gaussian", self.untracked.standard_normal(size), scale, loc)

    def laplace(self, loc: Number = 0.0, scale: Number = 1.0, size: Size = None) -> object:
        size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return self._noisy("laplace", self.untracked.laplace(size=size), scale, loc)

    def spawn(self, n_children: int) -> list["Recorder"]:
        return [Recorder(child, self.tape) for child in self.bit_generator.spawn(n_children)]

    def __deepcopy__(self, memo):
        return Recorder(copy.deepcopy(self.bit_generator), self.tape)


def _noted(name):
    def draw(self, *arguments, **settings):
        drawn = getattr(self.untracked, name)(*_plain(arguments), **_plain(settings))
        if name not in ORDERS:
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
    tapes, released, problems = [], [], []
    for X, y in (first, second):
        tape = Tape(tapes[0] if tapes else None)
        tapes.append(tape)
        try:
            with np.errstate(all="ignore"):
                released.append(_plain(run(X, y, Recorder(np.random.PCG64(seed), tape))))
            problems.append("")
        except _Parted:
            released.append(None)
            problems.append("it uses other noisy values")
        except (Refused, Failed, ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
            released.append(None)
            problems.append(f"{type(error).__name__}: {error}")
    return judge(*tapes, released, problems, epsilon, delta)


def judge(
    first: Tape, second: Tape, released: list, problems: list[str], epsilon: float, delta: float
) -> Replay:
    """The `Replay` that follows from both runs' tapes, releases and exceptions ("" for none)."""
    if problems[0] and problems[0] == problems[1]:
        return Replay(REFUSED, f"both data sets: {problems[0]}")
    other = sorted(set(first.choices + second.choices))
    bare = any(step.bare for step in first.steps + second.steps)
    same = not any(problems) and first.flow == second.flow and len(first.steps) == len(second.steps)
    what = f"random choices ({', '.join(other)})" if other else "noise that is added to no value"
    if not same:
        if other or bare:
            return Replay(CHOICE, f"{what}, after which the runs differ")
        told = next(filter(None, problems), "the runs draw or use numbers differently")
        return Replay(FLOW, f"one record decides which way the program takes: {told}")
    if other or bare:
        return Replay(CHOICE, what)
    distances = Distances(first, second)
    problem = distances.problem
    if not problem and not _equal(*released):
        problem = "the releases differ although all noisy values agree"
    if problem:
        return Replay(LEAKS, problem, distances.mu, distances.pure, math.inf)
    if not first.steps:
        return Replay(IDLE, "both data sets give the same release, without any noise")
    total = distances.epsilon(delta)
    finding = EXCEEDS if total > epsilon * (1 + CLOSE) else HOLDS
    why = f"this pair needs epsilon {total:.6g}"
    return Replay(finding, why, distances.mu, distances.pure, total)


class Distances:
    """Distances between two runs' values before noise, in units of noise scales: mu and pure of `Replay`.

    problem: a sentence, or "" for none. Two values that share a draw must move equally, because their
    difference has no noise.
    """

    def __init__(self, first: Tape, second: Tape) -> None:
        self.problem = ""
        shifts = {
            law: np.full(first.count, np.nan) for law in ("gaussian", "laplace", "l2_laplace")
        }
        for one, two in zip(first.steps, second.steps, strict=True):
            self._step(one, two, shifts[one.law])
        known = {law: np.nan_to_num(shift, posinf=math.inf) for law, shift in shifts.items()}
        self.mu = float(np.linalg.norm(known["gaussian"]))
        self.pure = float(np.abs(known["laplace"]).sum())
        self.pure += sum(
            float(np.linalg.norm(known["l2_laplace"][start:stop])) for start, stop in first.vectors
        )

    def _step(self, one, two, shifts):
        if not np.array_equal(one.draws, two.draws):
            self.problem = "which draws are on which values depends on the rows"
            return
        if not np.allclose(one.scale, two.scale, rtol=CLOSE, atol=0.0):
            self.problem = "the scale of noise depends on the rows"
            return
        moved, scale = two.value - one.value, np.abs(one.scale)
        if not np.isfinite(moved).all():
            self.problem = "a value before noise is not a finite number"
            return
        # Differences within the rounding of a sum count as 0.
        size = np.maximum(np.abs(one.value), np.abs(two.value))
        moved = np.where(np.abs(moved) <= 1e-12 * size.max(initial=0.0), 0.0, moved)
        if (moved[scale == 0] != 0).any():
            self.problem = "a value that one record moves has noise of scale 0"
            return
        shift = np.divide(moved, one.scale, out=np.zeros_like(moved), where=scale > 0).ravel()
        draws = one.draws.ravel()
        order = np.argsort(draws, kind="stable")
        numbers, start = np.unique(draws[order], return_index=True)
        largest = np.maximum.reduceat(shift[order], start)
        least = np.minimum.reduceat(shift[order], start)
        before = shifts[numbers]
        largest, least = np.fmax(largest, before), np.fmin(least, before)
        if (largest - least > 1e-6 * np.maximum(np.abs(largest), np.abs(least))).any():
            self.problem = "one draw is on two values that move differently"
        shifts[numbers] = largest

    def epsilon(self, delta: float) -> float:
        """The epsilon of all noise at delta: exact for one kind of noise, the sum of epsilons for two."""
        if not self.mu:
            return self.pure
        return self.pure + (gaussian_epsilon(1 / self.mu, delta) if delta > 0 else math.inf)


def _equal(one, two):
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(_equal, one, two))
    one, two = np.asarray(one), np.asarray(two)
    return np.array_equal(one, two, equal_nan=one.dtype.kind == "f" and two.dtype.kind == "f")


# Pairs of at most eight records
GENERAL = (
    *("turned_row", "reversed_row", "removed_row", "last_of_its_class", "flipped_label"),
    "opposite_corner",
)


def on_general_pairs(
    mechanism: str | object, epsilon: float = 1.0, delta: float = 1e-5
) -> Iterator[tuple[str, float, Replay, Guarantee]]:
    """Replay a mechanism on each pair of `GENERAL` that suits it.

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
        (pair, delta, `Replay`, `dp.accounting.Guarantee`).

    Examples
    --------
    >>> {found.finding for _, _, found, _ in on_general_pairs("output_perturbation")}
    {'holds'}
    """
    delta = delta if audit.find(mechanism).delta == "needed" else 0.0
    for pair in GENERAL:
        try:
            result = of_mechanism(mechanism, pair, epsilon, delta)
        except Refused:
            continue
        yield pair, delta, *result


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
        As for `dp.audit.attack`.
    seed : int
    **options
        As for `dp.audit.attack`.

    Returns
    -------
    Replay
        If nothing is proven, the claimed epsilon is tested.
    dp.accounting.Guarantee
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

    most = stated.claimed_epsilon if math.isnan(stated.epsilon) else stated.epsilon
    if isinstance(stated.profile, Gaussian):
        most = max(most, gaussian_epsilon(1 / stated.profile.mu, delta))
    result = replay(run, *pair.sides, epsilon=most, delta=delta, seed=seed)
    if result.finding == EXCEEDS and mechanism.hides(arguments):
        result = result._replace(finding=CHOICE, why=HIDDEN)
    return result, stated


def verdict(replayed: Replay, guarantee: Guarantee) -> str:
    """The verdict of a replay on a guarantee, in words.

    Parameters
    ----------
    replayed : Replay
    guarantee : dp.accounting.Guarantee

    Returns
    -------
    str

    Examples
    --------
    >>> verdict(*of_mechanism("output_perturbation", "turned_row", 1.0))
    'holds'
    """
    if replayed.finding == EXCEEDS and not math.isnan(guarantee.epsilon):
        return "exceeds what is proven: a fault of the proof, the code or the replay"
    claimed = guarantee.claimed_epsilon
    beyond = replayed.finding == HOLDS and replayed.epsilon > claimed * (1 + CLOSE)
    if (beyond or replayed.finding in (EXCEEDS, LEAKS, FLOW)) and not math.isinf(claimed):
        return f"refutes the claim: {replayed.why}"
    return replayed.finding
