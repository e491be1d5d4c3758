"""A generator whose noise stays apart from the values to which it is added, and the tape of its use.

`Recorder` is a `numpy.random.Generator` whose normal and Laplace draws are `_Noisy`: value + scale * draw.
Such an object becomes an array when a program needs its numbers. The `Tape` then records this use, with
the value before noise and the scale of the noise.
"""

import copy
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["LAWS", "Parted", "Recorder", "Step", "Tape", "plain"]

LAWS = ("gaussian", "laplace", "l2_laplace")
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
                raise Parted
            result = result if bare else self.first.steps[k].result
        return result.copy()


class Parted(Exception):
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
        return function(*plain(arguments), **plain(settings))

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
        return getattr(ufunc, method)(*plain(inputs), **plain(settings))

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


def plain(thing: object) -> object:
    """The same thing with numbers in place of noisy values, which counts as a use of them."""
    if isinstance(thing, _Noisy):
        return np.asarray(thing)
    if isinstance(thing, dict):
        return {key: plain(value) for key, value in thing.items()}
    if isinstance(thing, tuple | list):
        parts = map(plain, thing)
        return type(thing)(*parts) if hasattr(thing, "_fields") else type(thing)(parts)
    return thing


class Recorder(np.random.Generator):
    """A generator that returns normal and Laplace draws as `_Noisy`, and records other draws' names."""

    def __init__(self, bits: np.random.BitGenerator, tape: Tape) -> None:
        super().__init__(bits)
        self.untracked, self.tape = np.random.Generator(bits), tape

    def law(
        self, function: Callable, dimension: int, scale: float, size: int, **shape
    ) -> _Noisy | np.ndarray:
        """Noise of a function of `dp.noise`, which is named like its law.

        Distances are known for `LAWS`. Draws of other laws are plain numbers, noted as a random choice.
        """
        law = function.__name__
        if law in LAWS:
            unit = function(dimension, 1.0, size, self.untracked, **shape)
            return self._noisy(law, unit, scale)
        drawn = function(dimension, scale, size, self.untracked, **shape)
        self.tape.choices.append(law)
        self.tape.flow.append((law, np.shape(drawn)))
        return drawn

    def _noisy(self, law, unit, scale, centre=0.0):
        """The noisy value centre + scale * unit, for draws of scale 1."""
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
        drawn = getattr(self.untracked, name)(*plain(arguments), **plain(settings))
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
