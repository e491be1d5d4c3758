"""Programs of two other libraries, of which neither is needed or imported here.

diffprivlib: the noise of its Laplace and Gaussian mechanisms comes from the replay's generator, so that a
replay sees the library's own values and scales. Other mechanisms draw from that generator, too, but what
they draw is no added noise; a replay notes it as a random choice.

OpenDP: a measurement is called with the first column, or with all rows if it takes an array. Its noise is
drawn in compiled code, where no replay sees it, so only attacks tell something of it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["following", "has_its_own_noise", "measured"]

ADDED = ("Laplace", "LaplaceTruncated", "LaplaceFolded")  # value - scale * (the sampler's draw)


def has_its_own_noise(thing: object) -> bool:
    """Whether a class is diffprivlib's, whose mechanisms need no seed to draw from `rng`."""
    return getattr(thing, "__module__", "").split(".")[0] == "diffprivlib"


def following(run: Callable) -> Callable:
    """The same function (X, y, rng), in which mechanisms of diffprivlib draw from rng."""

    def followed(X, y, rng):
        with _drawing_from(rng):
            return run(X, y, rng)

    return followed


@contextmanager
def _drawing_from(rng: np.random.Generator) -> Iterator[None]:
    """Let mechanisms that are made in this context draw from rng, if a program has imported diffprivlib."""
    mechanisms = sys.modules.get("diffprivlib.mechanisms")
    if mechanisms is None:
        yield
        return
    base = mechanisms.base.DPMechanism
    made = base.__init__

    def make(self, *arguments, **settings):
        made(self, *arguments, **settings)
        if type(self).__name__ in ADDED:
            self._laplace_sampler = lambda *uniforms: rng.laplace(0.0, 1.0)
        else:
            self._rng = rng

    base.__init__ = make
    try:
        yield
    finally:
        base.__init__ = made


def measured(thing: object) -> Callable | None:
    """A function of the rows that calls an OpenDP measurement; None for other things."""
    if type(thing).__module__.split(".")[0] != "opendp" or not hasattr(thing, "input_domain"):
        return None
    kind = str(thing.input_domain.carrier_type)

    def measurement(rows):
        if not kind.startswith("Vec"):
            return thing(rows)
        column = rows[:, 0]
        return thing(column.tolist() if "f" in kind else np.rint(column).astype(int).tolist())

    return measurement
