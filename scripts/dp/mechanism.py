"""The contract of mechanisms: what the author of one writes, and what its callers get.

A mechanism is a class in a file of `dp/mechanisms`, with options and two methods:

    from dp.mechanisms import Mechanism, Release, register
    from dp.options import Positive

    @register("my_mechanism")
    class MyMechanism(Mechanism):
        options = {"radius": Positive(1.0)}

        def _guarantee(self, n, d, p): ...
        def _release(self, X, y, p, draws, rng): ...

`_guarantee` says in one sentence why (epsilon, delta) holds for public n and d; `p` has the checked
parameters and options by name (`Parameters`). `_release` returns the weights (draws, d) of independent
draws, or (weights, info). All its randomness is from `rng`, in densities that the proof needs (`dp.noise`).
It refuses nothing: rows and labels are checked before, shapes and finite weights after.

What else a class may declare (a delta, public facts about the data, a shared fit) stands with its
default at the top of `Mechanism`. It may also override these methods:

    hides            whether the guarantee relies on hiding noisy values
    rule_lambda      lambda from public numbers
    _by_rule         options from public numbers
    _check_together  refusals of settings that are invalid together
    _release_many    many releases at once, in place of `_release`

The public methods `guarantee`, `release` and `release_many` check arguments and results. Tests of every
mechanism are in `tests/unit/test_mechanisms.py` and `test_branches.py`; `dp_audit` attacks and replays it.
"""

import copy
import math
import os
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.options import Blocks, NonNegative, Numbers, Optional, Ordinary, Whole, plain
from dp.rows import NUMBERS, Rows, check_coordinates, check_rows
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, Guarantee, gaussian_mu, none, unproven
from dp_privacy.errors import Failed, Refused, did_you_mean

# Public facts about prepared data that a mechanism may use besides `bound`.
FACTS = {
    "coordinate_bound": Optional(Ordinary()),
    "column_bounds": Optional(Numbers()),
    "blocks": Optional(Blocks()),
    "classes": Optional(Whole(least=2)),
}
ORDINARY = Ordinary()  # values allowed for epsilon, lambda and bound


class Release(NamedTuple):
    """The result of a mechanism.

    Attributes
    ----------
    weights : numpy.ndarray, (restarts, d) or (restarts, d, classes)
        One draw per row.
    status : numpy.ndarray of str, (restarts,)
        "ok" or the kind of failure. A failed draw has weights of 0.
    info : dict
        Further results. Epsilon does not cover diagnostics, such as the certified gradient norm.
        info["intercept"], (restarts,), is the model's intercept.
    """

    weights: np.ndarray
    status: np.ndarray
    info: dict


class Parameters(SimpleNamespace):
    """Checked parameters: p.epsilon, p.delta, p.lam, p.bound, and options and `FACTS` by name.

    In `_release`, p also contains `fit`, `all_rows` and, with `uses_public_rows`, `public` and `initial`.
    """

    # Values for mechanisms that lack these options or facts.
    adjacency = REPLACE_ONE
    public_n = None
    coordinate_bound = None
    column_bounds = None
    blocks = None

    @property
    def mu(self) -> float:
        """The Gaussian-DP parameter of a Gaussian release that is (epsilon, delta)-DP."""
        return gaussian_mu(self.epsilon, self.delta)

    def proven(
        self, reason: str, epsilon: float | None = None, profile: object | None = None
    ) -> Guarantee:
        """The `Guarantee` for a proven `epsilon`, by default the requested one."""
        epsilon = self.epsilon if epsilon is None else epsilon
        return Guarantee(self.epsilon, epsilon, self.delta, self.adjacency, reason, profile)


def repeated(release: Release, draws: int) -> Release:
    """Repeat each row of a noiseless release, with its entries of info, `draws` times."""
    rows = len(release.weights)
    info = release.info.items()
    return Release(
        np.repeat(release.weights, draws, axis=0),
        np.repeat(release.status, draws),
        {k: np.repeat(v, draws, axis=0) if np.shape(v)[:1] == (rows,) else v for k, v in info},
    )


def join(releases: list[Release]) -> Release:
    """Concatenate releases. Keeps only entries of info with one value per restart."""
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


def _columns(name, d, facts):
    """The facts column_bounds and blocks, checked together, as tuples."""
    bounds, blocks = facts["column_bounds"], facts["blocks"] or ()
    if bounds is None:
        if blocks:
            raise Refused(f"{name}: blocks need column_bounds, one per column")
        return {}
    if len(bounds) != d:
        raise Refused(f"{name}: column_bounds has {len(bounds)} numbers for {d} columns")
    if any(column >= d for block in blocks for column in block):
        raise Refused(f"{name}: blocks name a column after the last, column {d - 1}")
    return {
        "column_bounds": tuple(map(float, bounds)),
        "blocks": tuple(tuple(map(int, block)) for block in blocks),
    }


class Mechanism:
    """Base class of mechanisms, which are stateless, with one instance each.

    `bound` is the public bound R on ||x||_2. `lam` is the weight of ||w||^2 / 2 beside the *mean*
    loss.

    Methods
    -------
    guarantee
        The guarantee for a public size.
    release
        Draws for one data set.
    release_many
        Draws for several data sets and settings.
    rule_lambda
        lambda from public numbers alone.
    check
        Refuses settings before a run.

    Examples
    --------
    >>> import numpy as np
    >>> from dp.mechanisms import MECHANISMS
    >>> mechanism, asked = MECHANISMS["gaussian_objective_perturbation"], {"epsilon": 1.0, "delta": 1e-6}
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 1, (5000, 3)) / np.sqrt(3)  # rows of norm at most 1
    >>> y = np.where(X[:, 0] > X[:, 2], 1, -1)
    >>> asked["lam"] = mechanism.rule_lambda(*X.shape, **asked)
    >>> found = mechanism.release(X, y, rng=rng, restarts=2, **asked)
    >>> print(found.weights.shape, found.status, mechanism.guarantee(*X.shape, **asked).epsilon)
    (2, 3) ['ok' 'ok'] 1.0
    """

    name: str
    # Option's name -> its kind (`dp.options`), which contains the default.
    options: dict = {}
    # Values that a base class reads where the mechanism does not offer them as options.
    fixed: dict = {}
    # "none": the mechanism is pure and refuses a delta. "needed": it needs a delta > 0. "optional":
    # pure at delta = 0, otherwise with Gaussian noise.
    delta = "none"
    # The smallest positive delta for which the noise can be computed reliably.
    least_delta = 1e-100
    # Whether lambda must be positive. If not, it may also be 0 or None, which means 0.
    needs_lambda = True
    private = True
    # Whether `_guarantee` is proven: False for registered mechanisms of any other package.
    proven = True
    # Whether a mechanism without privacy draws random numbers.
    needs_rng = False
    # The FACTS it uses. `coordinate_bound` bounds every |x_j|, and `column_bounds` each one (None:
    # `bound` does). `blocks`, with `column_bounds`: columns of which each row has one that is not 0.
    # `classes` is the number of labels 0, 1, .. (None: labels in {-1, 1}).
    facts: tuple = ()
    # Whether the proof covers targets in [-1, 1]. If `loss` is an option, such targets need a loss
    # of residuals.
    numbers = False
    # Whether targets are counts, mapped to [-1, 1], and the mechanism learns their rate.
    counts = False
    # The non-private fit (`dp.solvers.fits`) that `release` may take as `fit` = (weights, info).
    fit: str | None = None
    # Entries of `Release.info` with one value per restart that become columns of a run's file.
    reports: tuple = ()
    # Its functions whose branches and loops may depend on the rows. A comment says why this is private.
    may_branch: tuple = ()
    # Whether X may be `dp.rows.Rows`, or floats of any precision, and is read in blocks.
    in_blocks = False
    # Whether `release` accepts public rows as `public` = (X, y), or `initial` weights that depend on
    # no private row.
    uses_public_rows = False
    # Whether `release` accepts `all_rows`, the features of all training rows, of which the first are X.
    uses_all_rows = False

    def _guarantee(self, n, d, p):
        """Return why the requested (epsilon, delta) holds or, without privacy, why no guarantee does.

        n: the public size. d: the number of released coordinates. Any other guarantee is returned as
        a `dp_privacy.accounting.Guarantee`.
        """
        raise NotImplementedError

    def _release(self, X, y, p, draws, rng):
        """Return weights (draws, d) or (draws, d, classes) of independent draws, or (weights, info).

        Returns a `Release` if a status is not "ok".
        """
        raise NotImplementedError

    def _release_many(self, tasks, draws):
        """Yield the result of `_release` for each task, with the draws of all candidates joined.

        Override this instead of `_release` if many releases are faster together. `tasks` iterates
        lazily over (X, y, list with one p per candidate, rng).
        """
        for X, y, candidates, rng in tasks:
            if len(candidates) == 1:
                yield self._release(X, y, candidates[0], draws, rng)
                continue
            releases = (self._release(X, y, p, draws, copy.deepcopy(rng)) for p in candidates)
            yield join([self._checked(release, draws, X.shape[1]) for release in releases])

    def _check_delta(self, delta, least):
        if self.private and 0 < delta < least:
            raise Refused(
                f"{self.name} needs a delta of at least {least:g}, not {delta:g}: for a smaller one, "
                f"its noise cannot be computed reliably"
            )

    def _check_together(self, n, d, p):
        """Raise `Refused` for values that are invalid together, or with this n and d."""

    def _by_rule(self, n, d, p):
        """Options that a rule derives from public numbers, by name."""
        return {}

    def _classes(self, p):
        """The number of classes in y, None for labels -1 and 1, or `NUMBERS`."""
        return NUMBERS if self.takes_numbers(vars(p)) else None

    def takes_numbers(self, options: dict) -> bool:
        """Whether targets may be numbers in [-1, 1] under these options."""
        loss = (self.defaults() | options).get("loss")
        return self.numbers and (loss is None or losses.get(loss).residual)

    def shared_fit(self, options: dict) -> str | None:
        """The name of the non-private fit that these options use, or None."""
        return self.fit

    def hides(self, options: dict) -> bool | None:
        """Whether the guarantee relies on hiding noisy values, such as earlier iterates.

        None: not stated. Then a replay refutes a claim only if the release contains all noisy values.
        """
        return False if self.proven else None

    def rule_lambda(
        self, n: int, d: int, epsilon: float, delta: float, bound: float = 1.0, **options
    ) -> float:
        """lambda from public numbers alone, for callers that give none.

        Parameters
        ----------
        n, d, epsilon, delta, bound, **options
            As in `guarantee`.

        Returns
        -------
        float
            lambda relative to the mean loss, or 0 if the mechanism needs none.

        Raises
        ------
        dp_privacy.errors.Refused
            If the mechanism needs a lambda and has no rule for it.
        """
        if self.needs_lambda:
            raise Refused(f"{self.name} has no rule for lambda: give a number")
        return 0.0

    def _alike(self, candidates, *but):
        """Group candidates that differ only in lambda and the options `but`.

        Returns (first candidate, all positions) per group.
        """
        groups = {}
        for position, p in enumerate(candidates):
            key = repr([getattr(p, name) for name in self.options if name not in but])
            groups.setdefault(key, []).append(position)
        return [(candidates[positions[0]], positions) for positions in groups.values()]

    def check(self, n: int, d: int, **settings) -> None:
        """Refuse settings with which the mechanism cannot run.

        A run first checks every combination of its settings, so mechanisms with a slow guarantee
        may check less than `guarantee`.

        Parameters
        ----------
        n, d, **settings
            As in `guarantee`.
        """
        self.guarantee(n, d, **settings)

    def guarantee(self, n: int, d: int, **settings) -> Guarantee:
        """The guarantee for a public size, with its reason.

        Parameters
        ----------
        n, d : int
            Public size, and number of released coordinates.
        **settings
            epsilon, delta, lam, bound (R, by default 1) and the mechanism's options.

        Returns
        -------
        dp_privacy.accounting.Guarantee
            Its epsilon is infinite if no finite one holds, and NaN if none is proven.
        """
        p = self.parameters(n, d, **settings)
        with self._own_code(self._guarantee):
            guarantee = self._guarantee(p.public_n or n, d, p)
            if isinstance(guarantee, str):
                guarantee = p.proven(guarantee) if self.private else none(math.inf, guarantee)
            if not isinstance(guarantee, Guarantee):
                raise TypeError(f"it returns {type(guarantee).__name__}, not a Guarantee")
        return guarantee if self.proven else unproven(guarantee)

    def release(
        self,
        X: np.ndarray | Rows,
        y: np.ndarray,
        *,
        restarts: int = 1,
        rng: np.random.Generator | None = None,
        fit: tuple | None = None,
        all_rows: np.ndarray | None = None,
        **arguments,
    ) -> Release:
        """Independent draws for one data set.

        Parameters
        ----------
        X : numpy.ndarray, (n, d), or dp.rows.Rows
            Rows of norm at most `bound`.
        y : numpy.ndarray, (n,)
            Labels -1 and 1, labels 0, 1, .. of more classes, or numbers in [-1, 1] for a residual
            loss.
        restarts : int
            Number of draws. The guarantee is for one draw.
        rng : numpy.random.Generator
            The source of all randomness. Whoever knows its seed can subtract the noise.
        fit : tuple or None
            (weights, info) of the mechanism's shared fit.
        all_rows : numpy.ndarray or None
            X of all training rows, if the mechanism uses them.
        **arguments
            As for `guarantee`, and `public` or `initial` if the mechanism uses public rows.

        Returns
        -------
        Release

        Raises
        ------
        dp_privacy.errors.Refused
            For settings, rows or labels that the guarantee does not cover.
        """
        tasks = self._tasks([((X, y),)], [rng], [fit], [all_rows], ({},), arguments)
        return next(self._releases(tasks, restarts, 1))[1]

    def release_many(
        self,
        folds: Iterable[tuple],
        *,
        rngs: Iterable | None = None,
        fits: Iterable | None = None,
        all_rows: Iterable | None = None,
        candidates: Sequence[dict] = ({},),
        restarts: int = 1,
        **arguments,
    ) -> Iterator[tuple[tuple, Release]]:
        """Yield draws for several data sets, with several settings on each.

        Parameters
        ----------
        folds : Iterable[tuple]
            Tuples that start with training data (X, y); other items are returned unchanged.
        rngs, fits, all_rows : Iterable or None
            One per fold, as in `release`.
        candidates : Sequence[dict]
            "lam" and options that override `arguments`. All candidates use the same random draws.
        restarts : int
            Draws per candidate.
        **arguments
            As for `release`.

        Yields
        ------
        tuple
            (fold, its `Release`), in the order of the folds. A release has the first candidate's
            restarts, then the next's.
        """
        rngs = map(copy.deepcopy, repeat(None) if rngs is None else rngs)
        fits, all_rows = (repeat(None) if each is None else each for each in (fits, all_rows))
        tasks = self._tasks(folds, rngs, fits, all_rows, candidates, arguments)
        return self._releases(tasks, restarts, len(candidates))

    def of_data(self, meta: dict) -> dict:
        """The mechanism's `facts` about a prepared data set, from its .json."""
        labels = meta.get("labels", {})  # names of "-1" and "1", or of "0", "1", ..
        known = {
            "coordinate_bound": meta.get("coordinate_bound"),
            "column_bounds": meta.get("column_bounds"),
            "blocks": meta.get("blocks"),
            "classes": len(labels) if labels and "-1" not in labels else None,
        }
        return {name: known[name] for name in self.facts}

    @property
    def multiclass(self) -> bool:
        return "classes" in self.facts

    def defaults(self) -> dict:
        return {name: option.default for name, option in self.options.items()}

    def check_options(self, options: dict) -> None:
        for name, value in options.items():
            if name not in self.options:
                known = ", ".join(self.options) or "none"
                near = did_you_mean(name, self.options)
                raise Refused(f"{self.name} has no option {name!r} (it has: {known}){near}")
            self.options[name].check(f"{self.name}: {name}", value)

    def parameters(
        self,
        n: int,
        d: int,
        *,
        epsilon: float = math.inf,
        delta: float = 0.0,
        lam: float | None = None,
        bound: float = 1.0,
        **options,
    ) -> Parameters:
        """Checked `Parameters`. Raises `Refused` if invalid."""
        name = self.name
        n, d, epsilon, delta, lam, bound = map(plain, (n, d, epsilon, delta, lam, bound))  # type: ignore[assignment]
        options = {option: plain(value) for option, value in options.items()}
        Whole().check(f"{name}: n", n)
        Whole().check(f"{name}: d", d)
        if self.private and epsilon == math.inf:
            raise Refused(
                f"{name} needs a finite epsilon: only mechanisms without privacy need none"
            )
        if epsilon != math.inf:
            ORDINARY.check(f"{name}: epsilon", epsilon)
        if self.needs_lambda or lam not in (None, 0):
            ORDINARY.check(f"{name}: lambda", lam)
        ORDINARY.check(f"{name}: bound", bound)
        NonNegative().check(f"{name}: delta", delta)
        rule = self.delta if self.private else "optional"
        if rule == "none" and delta:
            raise Refused(f"{name} is (epsilon, 0)-DP and takes no delta, not {delta}")
        if delta >= 1 or (rule == "needed" and not delta):
            raise Refused(
                f"{name} needs a delta in {'(' if rule == 'needed' else '['}0, 1), not {delta}"
            )
        self._check_delta(delta, self.least_delta)
        facts = {fact: options.pop(fact, None) for fact in self.facts}
        for fact, value in facts.items():
            FACTS[fact].check(f"{name}: {fact}", value)
        if "column_bounds" in facts:
            facts |= _columns(name, d, facts)
        stated, options = options, self.defaults() | options
        self.check_options(options)
        lam = lam if self.needs_lambda else lam or 0.0
        asked = {"epsilon": epsilon, "delta": delta, "lam": lam, "bound": bound, **facts}
        p = Parameters(**self.fixed | asked | options)
        if p.public_n is not None and p.adjacency != ADD_REMOVE:
            raise Refused(
                f"{name}: public_n is for {ADD_REMOVE}: under {p.adjacency} the number of records is "
                f"public, so leave it out"
            )
        n = p.public_n or n
        derived = self._by_rule(n, d, p)
        for option in derived.keys() & stated.keys():
            raise Refused(f"{name} finds {option} by rule: leave it out")
        vars(p).update(derived)
        with self._own_code(self._check_together):
            self._check_together(n, d, p)
        return p

    def _tasks(self, folds, rngs, fits, all_rows, candidates, arguments):
        """Check and yield (fold, task) lazily, with tasks as in `_release_many`."""
        arguments, inputs = dict(arguments), {}
        if self.uses_public_rows:
            inputs = {name: arguments.pop(name, None) for name in ("public", "initial")}
        for fold, rng, fit, rows in zip(folds, rngs, fits, all_rows, strict=False):
            X, y = self._arrays(*fold[0])
            inputs |= {"fit": fit, "all_rows": rows}
            for name, used in {"fit": self.fit, "all_rows": self.uses_all_rows}.items():
                if inputs[name] is not None and not used:
                    raise Refused(f"{self.name} takes no {name}")
            settings = [self.parameters(*X.shape, **arguments | each) for each in candidates]
            for bound, coordinate_bound, column_bounds, blocks, classes in {
                (p.bound, p.coordinate_bound, p.column_bounds, p.blocks, self._classes(p))
                for p in settings
            }:
                check_rows(X, y, bound, classes)
                if coordinate_bound is not None:
                    check_coordinates(X, coordinate_bound)
                if column_bounds is not None:
                    check_coordinates(X, column_bounds, blocks)
            random = self.private or self.needs_rng or rng is not None
            if random and not isinstance(rng, np.random.Generator):
                raise Refused(f"{self.name} needs rng, a numpy.random.Generator, not {rng!r}")
            for p in settings:
                vars(p).update(inputs)
            yield fold, (X, y, settings, rng)

    def _arrays(self, X, y):
        """X as floats, or unchanged if it is `Rows`, and y as numbers."""
        try:
            if not (self.in_blocks and (isinstance(X, Rows) or np.asarray(X).dtype.kind == "f")):
                X = np.asarray(X, dtype=float)
            X, y = X if isinstance(X, Rows) else np.asarray(X), np.asarray(y)
        except (ValueError, TypeError):
            X, y = np.empty(0), np.empty(0)
        if X.ndim != 2 or y.dtype.kind not in "biuf":
            raise Refused(f"{self.name}: data must be numbers X (n, d) and y (n,)")
        return X, y

    def _releases(self, tasks, draws, candidates):
        """Yield (fold, checked `Release`) per task. Overflow shows in the status, without a warning."""
        Whole().check(f"{self.name}: restarts", draws)
        waiting = deque()  # (fold, number of columns) of each task without a release

        def taken():
            for fold, task in tasks:
                waiting.append((fold, task[0].shape[1]))
                yield task

        releases = self._release_many(taken(), draws)
        several = type(self)._release_many is not Mechanism._release_many
        while True:
            with self._own_code(self._release_many if several else self._release):
                with np.errstate(over="ignore", invalid="ignore"):
                    release = next(releases, None)
                if release is None:
                    return
                fold, columns = waiting.popleft()
                release = self._checked(release, draws * candidates, columns)
            yield fold, release

    def _checked(self, release, draws, d):
        """Return a `Release` with checked shapes. Draws that are not finite get the status "diverged"."""
        if not isinstance(release, Release):
            pair = isinstance(release, tuple) and isinstance(release[-1], dict)
            weights, info = release if pair else (release, {})
            release = Release(np.asarray(weights), np.full(draws, "ok"), info)
        weights, status, info = release
        expected = {"weights": (weights, (draws, d), "fiu"), "status": (status, (draws,), "UO")}
        for name in (*self.reports, *({"intercept", "gradient_norm"} & info.keys())):
            expected[f"info[{name!r}]"] = (info.get(name), (draws,), "bfiuUO")
        for name, (value, shape, kinds) in expected.items():
            value = np.asarray(value)
            actual = value.shape if name != "weights" or value.ndim > 3 else value.shape[:2]
            if actual != shape or value.dtype.kind not in kinds:
                raise ValueError(
                    f"it returns {name} of shape {value.shape} and type {value.dtype}, not "
                    f"{' x '.join(map(str, shape))}"
                )
        finite = np.isfinite(weights).reshape(draws, -1).all(axis=1)
        finite &= np.isfinite(info.get("intercept", 0.0))
        if finite.all():
            return release
        if "intercept" in info:
            info = info | {"intercept": np.where(finite, info["intercept"], 0.0)}
        status = np.where(finite | (np.asarray(status) != "ok"), status, "diverged")
        return Release(
            np.where(finite.reshape(-1, *[1] * (weights.ndim - 1)), weights, 0.0), status, info
        )

    @contextmanager
    def _own_code(self, function):
        """Convert errors in the mechanism's own code to `Failed`, with file and line."""
        try:
            yield
        except (Refused, Failed, MemoryError, OSError):
            raise
        except Exception as error:
            file, line = function.__code__.co_filename, function.__code__.co_firstlineno
            folders = {Path(__file__).parent / "mechanisms", Path(file).parent}
            for frame, at in traceback.walk_tb(error.__traceback__):
                if frame.f_code is Mechanism._tasks.__code__:
                    raise  # the error is in the caller's lazy data
                name = frame.f_code.co_filename
                if name != __file__ and Path(name).parent in folders:
                    file, line = name, at
            what = f"line {line}: {str(error) or type(error).__name__}"
            raise Failed(
                f"mechanism {self.name} failed in {os.path.relpath(file)}, {what}"
            ) from error
