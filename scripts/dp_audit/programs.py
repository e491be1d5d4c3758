"""Programs of any form as functions (X, y, rng) that `dp_audit.check` can test.

A program is a function (X, y, rng) or (rows, rng), a class of scikit-learn's form, whose fitted public
attributes count as released, or a mechanism. Arguments named epsilon and delta get the claim. A generator
goes to an argument `rng` or `generator`, and a seed drawn from it to `random_state` or `seed`. `adapters`
says what is different for diffprivlib and OpenDP.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dp.mechanisms import MECHANISMS, Mechanism
from dp_audit import adapters, audit, pairs, replay
from dp_privacy.errors import Refused, did_you_mean

__all__ = ["Program", "load"]

TARGETS = ("y", "target", "targets", "label", "labels")
GENERATORS, SEEDS = ("rng", "generator"), ("random_state", "seed")


class Program:
    """A function, a class with the method `fit`, or a mechanism, with its claim.

    settings: further arguments of the function, the class or the mechanism's release.
    """

    def __init__(
        self, thing: Callable | Mechanism, epsilon: float, delta: float = 0.0, **settings
    ) -> None:
        if inspect.isclass(thing) and issubclass(thing, Mechanism):
            thing = thing()
        self.epsilon, self.delta, self.settings = epsilon, delta, settings
        self.mechanism = thing if isinstance(thing, Mechanism) else None
        self.name = self.mechanism.name if self.mechanism else getattr(thing, "__name__", "it")
        self.bound = 1.0  # what a mechanism is told of the rows' norms
        self.suited = {}  # options with which a mechanism's guarantee covers the pair at hand
        if self.mechanism:
            self.run = self._released_by_mechanism
        elif inspect.isclass(thing):
            self.run = adapters.following(self._of_class(thing))
        else:
            self.run = adapters.following(self._of_function(adapters.measured(thing) or thing))

    def replay(
        self, sides: tuple, epsilon: float, seed: int = 0, released: bool = False
    ) -> replay.Replay:
        """`dp_audit.replay.replay` on a pair; of a mechanism, the verdict on what it states."""
        if self.mechanism is None:
            settings = {"delta": self.delta, "seed": seed, "released": released}
            return replay.replay(self.run, *sides, epsilon=epsilon, **settings)
        self.suit(sides)
        pair = pairs.Pair(sides, self._arguments(), "tried")
        try:
            found, stated = replay.of_mechanism(
                self.mechanism, pair, self.epsilon, self.delta, seed, **self.suited
            )
        except Refused as error:
            return replay.Replay(replay.REFUSED, str(error))
        if replay.verdict(found, stated).startswith("refutes") and found.finding == replay.HOLDS:
            return found._replace(finding=replay.EXCEEDS)
        return found

    def suit(self, sides: tuple) -> None:
        """Give a mechanism the options that a pair needs, such as add-remove if a record is left out."""
        if self.mechanism:
            self.suited = audit.suited(self.mechanism, pairs.Pair(sides, {}, "tried"))

    def _arguments(self):
        return {"lam": 1.0, "bound": self.bound} | self.suited | self.settings

    def _released_by_mechanism(self, X, y, rng):
        spent = audit.spent(self.mechanism, self.epsilon, self.delta)
        release = self.mechanism.release(X, y, restarts=1, rng=rng, **self._arguments(), **spent)
        return release.weights, release.status, release.info.get("intercept", 0.0)

    def _of_function(self, function):
        names = _parameters(function)
        known = self._known(function, names)
        random = [name for name in names if name in (*GENERATORS, *SEEDS)]
        free = [
            name
            for name, parameter in names.items()
            if parameter.default is parameter.empty and name not in (*known, *random)
        ]
        if not random and len(free) > 1 and free[-1] not in TARGETS:
            random = [free.pop()]
        if len(free) not in (1, 2):
            raise Refused(
                f"{self.name} needs the arguments {', '.join(free) or 'none'}, and not (X, y, rng) or "
                f"(rows, rng): give the others by --set NAME=VALUE, or write such a function around it"
            )

        def run(X, y, rng):
            data = dict(zip(free, (X, y), strict=False))
            return function(**data, **known, **_drawn(random, rng))

        return run

    def _of_class(self, kind):
        if not hasattr(kind, "fit"):
            raise Refused(f"the class {self.name} has no method `fit`: name a function instead")
        names, fit = _parameters(kind), _parameters(kind.fit)
        known = self._known(kind, names)
        random = ({}, {}) if adapters.has_its_own_noise(kind) else (names, fit)

        def run(X, y, rng):
            model = kind(**known, **_drawn(random[0], rng))
            before = dict(vars(model))
            model.fit(X, y, **_drawn(random[1], rng))
            return {
                key: value
                for key, value in vars(model).items()
                if not key.startswith("_") and before.get(key) is not value
            }

        return run

    def _known(self, thing, names):
        """The arguments whose values are known."""
        anything = any(p.kind is p.VAR_KEYWORD for p in names.values())
        for name in self.settings:
            if name not in names and not anything:
                raise Refused(f"{self.name} has no argument {name!r}{did_you_mean(name, names)}")
        claim = {"epsilon": self.epsilon, "delta": self.delta}
        return {name: value for name, value in claim.items() if name in names} | self.settings


def _parameters(thing):
    return {k: v for k, v in inspect.signature(thing).parameters.items() if k != "self"}


def _drawn(names, rng):
    """Generators and seeds for the arguments that take them. An unusual name gets a generator."""
    kinds = (*GENERATORS, *SEEDS)
    wanted = [name for name in names if name in kinds] if isinstance(names, dict) else names
    return {name: int(rng.integers(2**31)) if name in SEEDS else rng for name in wanted}


def load(place: str, epsilon: float, delta: float = 0.0, **settings) -> Program:
    """The program of "PROGRAM.py:NAME", or the mechanism of a name."""
    file, colon, name = place.rpartition(":")
    if not colon:
        if place in MECHANISMS:
            return Program(MECHANISMS[place], epsilon, delta, **settings)
        hint = did_you_mean(place, MECHANISMS)
        raise Refused(f"{place!r} is no mechanism and not of the form PROGRAM.py:FUNCTION{hint}")
    path = Path(file).resolve()
    if not path.is_file():
        raise Refused(f"there is no file {file}: name a program as PROGRAM.py:FUNCTION")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise Refused(f"{file} is no Python file: name a program as PROGRAM.py:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        sys.modules.setdefault(path.stem, module)
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}"
        raise Refused(f"{file} cannot be imported: {what}") from error
    thing = getattr(module, name, None)
    if not callable(thing) and not isinstance(thing, Mechanism):
        defined = [key for key, value in vars(module).items() if callable(value)]
        raise Refused(f"{file} has no function or class {name!r}{did_you_mean(name, defined)}")
    return Program(thing, epsilon, delta, **settings)


def numbered(values: list[str]) -> dict:
    """Settings of the form NAME=VALUE, with numbers and words as values."""
    settings = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not equals or not name.isidentifier():
            raise Refused(f"{each!r} is not of the form NAME=VALUE")
        try:
            settings[name] = np.array(value, dtype=float).item()
            settings[name] = int(value)
        except ValueError:
            settings.setdefault(name, value)
    return settings
