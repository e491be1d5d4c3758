"""Registry of the mechanisms.

A mechanism is a class in a file of this folder:

    from dp.mechanisms import Mechanism, Release, register

    @register("my_mechanism")
    class MyMechanism(Mechanism):
        def guarantee(self, n, d, *, epsilon, delta=0.0, lam=None, bound=1.0): ...
        def release(self, X, y, *, epsilon, delta=0.0, lam=None, restarts=1, rng, bound=1.0): ...

`MECHANISMS["my_mechanism"]` imports that file and no other: a job pays only for the mechanism it
runs, and depends on no other mechanism's source.
"""

import copy
import importlib
import inspect
import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

# What every guarantee is given, and what those that name it are given about the data (public facts
# from the data's preparation); all other keyword arguments are the mechanism's options, which
# `guarantee` and `release` both take.
OF_DATA = ("coordinate_bound", "classes")
COMMON = ("self", "n", "d", "epsilon", "delta", "lam", "bound", *OF_DATA)


class Release(NamedTuple):
    """What a mechanism hands out.

    weights: (restarts, d), or (restarts, d, classes). status: (restarts,) strings, "ok" or why not.
    info: diagnostics for a benchmark (such as the certified gradient norm), not covered by epsilon.
    A model with a free intercept releases it too, as info["intercept"] (restarts,).
    """

    weights: np.ndarray
    status: np.ndarray
    info: dict


def join(releases):
    """Several releases as one, restarts of the first first; info that is one per restart is kept."""
    restarts = [len(release.weights) for release in releases]
    info = {}
    for key, value in releases[0].info.items():
        if np.shape(value)[:1] == (restarts[0],):
            info[key] = np.concatenate([release.info[key] for release in releases])
    return Release(
        np.concatenate([release.weights for release in releases]),
        np.concatenate([release.status for release in releases]),
        info,
    )


class Mechanism:
    """Base of all mechanisms: stateless, one instance each.

    `bound` is the public bound R on ||x||_2; `lam` multiplies ||w||^2 / 2 beside the *mean* loss. A
    mechanism that can use them names in `guarantee` and `release`: `coordinate_bound`, a public bound
    on every |x_j| (None: the one that follows from `bound`), and `classes`, the public number of
    classes of data with labels 0, 1, ... (None: labels in {-1, 1}).
    """

    name: str
    # Name of the non-private fit (dp.fits) that the mechanism perturbs, starts from or is compared
    # with, if any: given to `release` as `fit` = (weights, info), it is not computed again.
    fit: str | None = None
    private = True
    # Whether it learns more than two classes, labels 0 .. K - 1 in place of -1 and 1.
    multiclass = False
    needs_lambda = True
    # Names in `Release.info` of further results per restart, which a run's file gets as columns.
    reports: tuple = ()
    # Whether `release` and its fit read X in blocks alone, so that it may be `dp.data.Rows`.
    in_blocks = False
    # Takes `public` = (X, y), the data set's public rows, where the data set has any.
    uses_public_rows = False
    # Takes `all_rows`: per data set, X of all training rows that there are, of which it is given some.
    uses_all_rows = False

    def guarantee(self, n, d, *, epsilon, delta=0.0, lam=None, **options):
        """`dp.accounting.Guarantee` for public size n and d released coordinates."""
        raise NotImplementedError

    def release(self, X, y, *, epsilon, delta=0.0, lam=None, restarts=1, rng, **options):
        """`Release` of `restarts` independent draws for rows X (n, d) and labels y (n,)."""
        raise NotImplementedError

    def release_many(self, trains, *, rngs, candidates=({},), fits=None, **arguments):
        """One `Release` per data set of `trains`, an iterable of (X, y), in their order.

        rngs: one generator per data set. fits: one `fit` per data set, where the mechanism has one.
        candidates: settings to try on each, mappings of "lam" and
        options that override `arguments`, all with the same draws; the release then holds the
        restarts of the first candidate, those of the second, and so on. Mechanisms that compute
        many releases faster together override this.
        """
        for k, (train, rng) in enumerate(zip(trains, rngs, strict=False)):
            fit = {} if fits is None else {"fit": fits[k]}
            releases = [
                self.release(*train, rng=copy.deepcopy(rng), **fit, **arguments | candidate)
                for candidate in candidates
            ]
            yield releases[0] if len(releases) == 1 else join(releases)

    def shared_fit(self, options):
        """Name of the fit that the method uses with these options: `fit`, unless options choose it."""
        return self.fit

    def check_options(self, options):
        """Raise ValueError, naming the nearest valid option, unless the mechanism has them all."""
        valid = self.options()
        for key in options:
            if key not in valid:
                near = get_close_matches(key, valid, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                known = ", ".join(valid) or "none"
                raise ValueError(f"{self.name} has no option {key!r} (it has: {known}){hint}")

    def of_data(self, meta):
        """What this mechanism takes of a prepared data set's public facts (its .json): a dictionary."""
        labels = meta.get("labels", {})  # label -> name; "-1" and "1", or "0", "1", ..
        facts = {
            "coordinate_bound": meta.get("coordinate_bound"),
            "classes": len(labels) if labels and "-1" not in labels else None,
        }
        parameters = inspect.signature(self.guarantee).parameters
        return {key: value for key, value in facts.items() if key in parameters}

    def options(self):
        """Option names with their defaults, read from the signature of `guarantee`."""
        parameters = inspect.signature(self.guarantee).parameters
        return {key: p.default for key, p in parameters.items() if key not in COMMON}

    def _check(self, epsilon, lam, n=1, d=1, bound=1.0):
        """Raise ValueError for parameters under which noise cannot be calibrated."""
        if not epsilon > 0 or math.isnan(epsilon):
            raise ValueError(f"{self.name} needs epsilon > 0, not {epsilon}")
        if self.private and math.isinf(epsilon):
            raise ValueError(f"{self.name} needs a finite epsilon; 'nonprivate' is the one without")
        if self.needs_lambda and not (lam is not None and lam > 0 and math.isfinite(lam)):
            raise ValueError(f"{self.name} needs a finite lambda > 0, not {lam}")
        if not (bound > 0 and math.isfinite(bound)):
            raise ValueError(f"{self.name} needs a finite bound > 0 on the row norms, not {bound}")
        if n < 1 or d < 1:
            raise ValueError(f"{self.name} needs n >= 1 and d >= 1, not {n} and {d}")


def check_tolerance(tolerance):
    """Raise ValueError unless a certified gradient norm is a finite number >= 0."""
    if not 0 <= tolerance < math.inf:
        raise ValueError(f"tolerance must be a finite number >= 0, not {tolerance}")


def check_delta(name, delta):
    """Raise ValueError unless delta is what a Gaussian mechanism can be calibrated to."""
    if not 0 < delta < 1:
        raise ValueError(f"{name} needs a delta in (0, 1), not {delta}: its noise is Gaussian")


def check_no_delta(name, delta):
    """Raise ValueError for a delta that a mechanism would ignore."""
    if delta != 0:
        raise ValueError(f"{name} is (epsilon, 0)-DP and takes no delta, not {delta}")


def check_choice(what, value, valid):
    """Raise ValueError unless an option's value is one of those that exist."""
    if value not in valid:
        raise ValueError(f"{what} is one of {', '.join(map(repr, valid))}, not {value!r}")


def check_whole(what, value, least=1):
    """Raise ValueError unless an option's value is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{what} must be a whole number of at least {least}, not {value!r}")


def check_positive(what, value):
    """Raise ValueError unless an option's value is a finite number > 0."""
    if isinstance(value, (bool, str)) or value is None or not 0 < value < math.inf:
        raise ValueError(f"{what} must be a finite number > 0, not {value!r}")


def register(name):
    """Class decorator: makes an instance available as MECHANISMS[name]."""

    def decorate(mechanism):
        MECHANISMS._loaded[name] = instance = mechanism()
        instance.name = name
        return mechanism

    return decorate


@cache
def _files():
    """Mechanism name -> module name, from the lines `@register("name")`, without importing."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.name == "__init__.py":
            continue
        for name in re.findall(r'^@register\("(\w+)"\)', path.read_text(), flags=re.MULTILINE):
            if name in found:
                raise ValueError(f"mechanism {name!r} is registered in two files of {path.parent}")
            found[name] = path.stem
    return found


class _Mechanisms(Mapping):
    def __init__(self):
        self._loaded = {}

    def __getitem__(self, name):
        if name not in self._loaded:
            importlib.import_module(f"dp.mechanisms.{_files()[name]}")
        return self._loaded[name]

    def __contains__(self, name):
        return name in _files()

    def __iter__(self):
        return iter(_files())

    def __len__(self):
        return len(_files())

    @staticmethod
    def module(name):
        """Name of the module that a mechanism's file is, without importing it."""
        return f"dp.mechanisms.{_files()[name]}"


MECHANISMS = _Mechanisms()
