"""One answer on a program's claim: replays on many pairs of neighbours, and attacks on the worst.

A replay needs no luck, apart from tests of random choices that err once in a million pairs. All attacks
together err with a probability of at most 1/1000, counting all pairs that were tried.
"""

import contextlib
import io
import math
import time
import warnings
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from dp.seeds import generator
from dp_audit import audit, pairs, replay
from dp_audit.programs import Program
from dp_audit.recorder import Tape
from dp_audit.runs import numbers_of, released_parts, run_once
from dp_audit.small_pairs import Domain, Search, changed, fixed, in_words
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE
from dp_privacy.errors import Refused

__all__ = ["Answer", "check", "script"]

FAULTS = (replay.EXCEEDS, replay.LEAKS, replay.FLOW)
UNJUDGED = (replay.UNSEEN, replay.CHOICE, replay.IF_RELEASED)
CONFIDENCE = 0.999  # of all attacks together
ATTACKED = 16  # pairs, the worst of the replays
CONFIRMED = 2  # pairs that are attacked although replays judge all
GLANCE = 40  # releases of each side, to see which pairs are worth an attack
TRIALS = (400, 20_000)  # releases of each side, as few and as many as are worth it
SLOW = 3000  # releases that a replay may make to test random choices
CLOSE = 1.03  # ratio of two epsilons, at which a bisection ends
BEYOND = 1e4  # an epsilon that promises nothing


class Answer(NamedTuple):
    """What was found.

    Attributes
    ----------
    sentence : str
    fault : bool
        Whether the claim is refuted.
    unseen : bool
        Whether the program draws from a generator that no replay sees.
    epsilon : float
        What is needed at least: 0 if nothing was found, infinite if no epsilon suffices.
    pairs : int
        Pairs that were tried, without those that the program refuses.
    sides : tuple or None
        The pair ((X, y), (X', y')) that shows the fault.
    shown : dict
        Arguments of `Program.replay` that repeat the finding, or of `attacked`.
    """

    sentence: str
    fault: bool = False
    unseen: bool = False
    epsilon: float = 0.0
    pairs: int = 0
    sides: tuple | None = None
    shown: dict = {}


def check(
    program: Program,
    domain: Domain | None = None,
    *,
    released: bool = False,
    count: int = 240,
    seconds: float = 60.0,
) -> Answer:
    """Look for a pair of neighbours on which a program does not keep its claim.

    Parameters
    ----------
    program : Program
    domain : Domain or None
        The records that the claim is for; by default, rows of norm at most 1, and labels -1 and 1.
    released : bool
        Whether the claim counts every noisy value as released, such as all steps of a descent.
    count : int
        Pairs to try.
    seconds : float
        About how long it may take.

    Returns
    -------
    Answer

    Raises
    ------
    Refused
        If the program ends with an error on all pairs, or the claim is not one.

    Examples
    --------
    >>> def total(X, y, rng):  # claimed: 1, which holds for rows of norm 1/2
    ...     return X[:, 0].sum() + rng.laplace(0, 1.0)
    >>> print(check(Program(total, epsilon=1.0), count=9).sentence)
    total needs at least 1.2: 8 rows, one of them from (.6, 0, .8) to (-.6, 0, -.8)
    """
    domain = Domain() if domain is None else domain
    if not program.epsilon > 0 or not 0 <= program.delta < 1 or not domain.bound > 0:
        raise Refused("epsilon and the bound must be positive, and delta in [0, 1)")
    if not domain.values[0] < domain.values[1]:
        raise Refused("of two labels or targets, the first must be the smaller one")
    if domain.adjacency not in (REPLACE_ONE, ADD_REMOVE):
        raise Refused(f"neighbours are {REPLACE_ONE} or {ADD_REMOVE}, not {domain.adjacency!r}")
    program.bound = domain.bound
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return _Check(program, domain, released, seconds).answer(count)
        except SystemExit as error:
            raise Refused(
                f"{program.name} ends the interpreter: let it return a release"
            ) from error


class _Check:
    def __init__(self, program, domain, released, seconds):
        self.program, self.domain, self.released = program, domain, released
        self.start, self.seconds = time.monotonic(), seconds
        self.tried: list[tuple] = []  # (Replay, pair, seed)
        self.costs: list[float] = []  # seconds of runs
        self.attacked = 0  # pairs

    def left(self, share=1.0):
        """Seconds until a share of the time is over."""
        return self.start + share * self.seconds - time.monotonic()

    def answer(self, count):
        self._replays(count)
        judged = [each for each in self.tried if each[0].finding != replay.REFUSED]
        if not judged:
            raise Refused(
                f"{self.program.name} cannot be checked, because it ends with an error on all pairs "
                f"({self.tried[0][0].why}): give rows of its form by --rows, --labels or --bound"
            )
        judged.sort(key=replay.badness)
        faults = [each for each in judged if each[0].finding in FAULTS]
        if faults:
            return self._fault(*max(faults, key=lambda each: _size(each[0])), len(judged))
        return self._attacks(judged)

    def _replays(self, count):
        """Replay the fixed pairs with several seeds, and then those of a search with one."""
        for sides in fixed(self.domain):
            if self.tried and (len(self.tried) == count or self.left(0.4) <= 0 or self._settled()):
                return
            self._pair(sides, replay.SEEDS)
        search = Search(self.domain, generator(0, "small pairs"))
        worst = None
        while len(self.tried) < count and self.left(0.6) > 0 and not self._settled():
            drawn, sides = search.next()
            key = replay.badness(self._pair(sides, 1))
            if worst is None or key < worst:
                worst, search.worst = key, drawn

    def _settled(self):
        """Whether further replays tell nothing: a leak was found, or noise is not seen."""
        found = self.tried[-1][0].finding
        unseen = len(self.tried) >= ATTACKED and found == replay.UNSEEN
        return unseen or found in (replay.LEAKS, replay.FLOW)

    def _pair(self, sides, seeds):
        began = time.monotonic()
        run_once(self.program.run, sides[0], 0, Tape())
        self.costs.append(time.monotonic() - began)
        # Random choices are tested with seed 0 alone, which takes many releases.
        first, results = int(SLOW * self._cost() > self.left()), []
        for seed in range(first, first + seeds):
            if not results or (self.left(0.4) > 0 and results[-1][0].finding not in FAULTS):
                found = self.program.replay(sides, self.program.epsilon, seed, self.released)
                results.append((found, sides, seed))
                if found.why == replay.SMOOTH:
                    break  # other draws have the same scales
        self.tried.append(min(results, key=replay.badness))
        return self.tried[-1]

    def _cost(self):
        return max(float(np.median(self.costs)), 1e-9)

    def _cost_without_recording(self, sides):
        """Seconds of a release, without what a replay adds."""
        costs = []
        for seed in range(5):
            began = time.monotonic()
            with contextlib.suppress(Exception):
                self.program.run(*(each.copy() for each in sides[0]), generator(seed, "cost"))
            costs.append(time.monotonic() - began)
        return max(float(np.median(costs)), 1e-9)

    def _fault(self, found, sides, seed, tried):
        """The answer for a replay that refutes the claim."""
        needed = found.epsilon if found.finding == replay.EXCEEDS else self._needed(sides, seed)
        beyond = needed > self.program.epsilon
        what = _needs(needed, self.program.delta) if beyond else f"does not keep epsilon {needed:g}"
        why = "" if found.finding == replay.EXCEEDS else f"{found.why}: "
        sentence = f"{self.program.name} {what}: {why}{in_words(sides)}"
        shown = {"epsilon": self.program.epsilon, "seed": seed, "released": self.released}
        return Answer(sentence, True, False, needed, tried, sides, shown)

    def _needed(self, sides, seed):
        """The largest epsilon at which a replay still finds the fault, by bisection."""
        low, high = self.program.epsilon, BEYOND
        if self.program.mechanism:
            return low  # its noise falls as epsilon grows

        def found(epsilon):
            replayed = self.program.replay(sides, epsilon, seed, self.released)
            return replayed.finding in FAULTS

        if found(high):
            return math.inf
        while self.left() > 0 and high > CLOSE * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if found(middle) else (low, middle)
        return low

    def _attacks(self, judged):
        program, best = self.program, (0.0, None, {})
        level = audit.of_each(CONFIDENCE, len(judged))
        # A pilot and as many releases are made of each side.
        program.suit(judged[0][1])
        cost = self._cost_without_recording(judged[0][1])
        ranked = self._ranked(judged, cost)
        many = int(self.left() / (4 * TRIALS[0] * cost))
        for k, sides in enumerate(ranked[: max(0, min(many, ATTACKED))]):
            if k and self.left() <= 0:
                break
            # The first pairs get most releases, as far as more of them help.
            trials = self.left() / 2 / (4 * cost)
            trials = int(min(max(trials, TRIALS[0]), TRIALS[1]))
            shown = {"trials": trials, "confidence": level, "seed": k}
            needed, self.attacked = attacked(program, sides, **shown), k + 1
            if needed > best[0]:
                best = needed, sides, shown
        needed, sides, shown = best
        unseen = judged[0][0].finding == replay.UNSEEN
        if needed > program.epsilon:
            sentence = f"{program.name} {_needs(needed, program.delta)}: {in_words(sides)}"
            sentence += f" (by attack, with confidence {CONFIDENCE:.1%} for all pairs together)"
            return Answer(sentence, True, unseen, needed, len(judged), sides, shown)
        return Answer(self._nothing(judged), unseen=unseen, pairs=len(judged))

    def _ranked(self, judged, cost):
        """Pairs to attack: those that a replay cannot judge, where releases differ most, come first."""
        alone = [sides for found, sides, _ in judged if found.finding in UNJUDGED]
        if not alone:
            return [sides for _, sides, _ in judged[:CONFIRMED]]
        seen = int(min(len(alone), 0.25 * self.left() / (2 * GLANCE * cost)))
        gaps = [_gap(self.program, sides, seed) for seed, sides in enumerate(alone[:seen])]
        order = sorted(range(seen), key=lambda k: -gaps[k])
        return [alone[k] for k in order] + alone[seen:]

    def _nothing(self, judged):
        if judged[0][0].finding == replay.UNSEEN:
            if not self.attacked:
                raise Refused(
                    f"{self.program.name} cannot be checked in {self.seconds:g} seconds, because it draws "
                    f"from another generator than rng, and attacks need longer: state more --seconds"
                )
            return (
                f"no fault found by attacks on {_pairs(self.attacked)}, and replays see nothing, because "
                f"{self.program.name} draws from another generator than rng; a proof is still needed"
            )
        told, alone = "", sum(found.finding in UNJUDGED for found, *_ in judged)
        if alone:
            told = f", of which a replay cannot judge {alone}, and {self.attacked} were attacked"
        hidden = [each for each in judged if each[0].finding == replay.IF_RELEASED]
        if hidden and math.isfinite(hidden[0][0].epsilon):
            found, sides, _ = hidden[0]
            told += f" (if every noisy value is released, it {_needs(found.epsilon, self.program.delta)}"
            told += f": {in_words(sides)})"
        return f"no fault found on {_pairs(len(judged))}{told}; a proof is still needed"


def _size(found):
    """A fault's epsilon, infinite if it is unknown."""
    return math.inf if math.isnan(found.epsilon) else found.epsilon


def _pairs(count):
    return "1 pair" if count == 1 else f"{count} pairs"


def _needs(epsilon, delta):
    if math.isinf(epsilon):
        return "keeps no epsilon"
    # Rounded down, so that "at least" is true.
    digits = 2 - math.floor(math.log10(epsilon))
    least = math.floor(epsilon * 10.0**digits * (1 + 1e-9)) / 10.0**digits
    return f"needs at least {least:.3g}" + (f" at delta {delta:g}" if delta else "")


def _gap(program, sides, seed):
    """How far apart releases of both sides are in a direction that others choose, over their spread."""
    release, rng = _released(program), generator(seed, "glance")
    program.suit(sides)
    made = [release(*side, GLANCE, rng).weights for side in sides]
    if made[0].shape != made[1].shape or not all(np.isfinite(each).all() for each in made):
        return math.inf  # an error, or releases of unlike length
    chosen, seen = ([each[k::2] for each in made] for k in (0, 1))
    spread = sum(each.var(axis=0) for each in chosen)
    direction = (chosen[0].mean(axis=0) - chosen[1].mean(axis=0)) / np.maximum(spread, 1e-300)
    direction /= max(np.abs(direction).max(), 1e-300)
    along = [each @ direction for each in seen]
    return (along[0].mean() - along[1].mean()) / max(math.sqrt(sum(map(np.var, along))), 1e-300)


def attacked(
    program: Program, sides: tuple, *, trials: int, confidence: float, seed: int = 0
) -> float:
    """A lower bound on epsilon by `dp_audit.audit.attack`, from the numbers that a program releases."""
    program.suit(sides)
    stand_in = SimpleNamespace(name=program.name, fit=None, release=_released(program))
    return audit.attack(
        stand_in,
        pairs.Pair(sides, {}, "tried"),
        program.epsilon,
        program.delta,
        trials=trials,
        confidence=confidence,
        rng=generator(seed, "attack"),
    )["epsilon"]


def _released(program):
    """A function like a mechanism's `release`, whose `weights` are all numbers that a program releases."""
    width = 0

    def released(X, y, rng):
        try:
            return numbers_of(released_parts(program.run(X.copy(), y.copy(), rng)))
        except Exception:  # an error is an event that an attacker sees
            return None

    def release(X, y, restarts, rng, **_):
        nonlocal width
        made = [released(X, y, rng) for _ in range(restarts)]
        width = width or max((len(each) for each in made if each is not None), default=1)
        weights = np.full((restarts, max(width, 1)), np.nan)
        for row, each in zip(weights, made, strict=True):
            if each is not None and len(each) == width:
                row[:width] = each
        return SimpleNamespace(weights=weights, info={})

    return release


def script(answer: Answer, place: str, program: Program) -> str:
    """A program that shows a fault.

    Parameters
    ----------
    answer : Answer
    place : str
        As for `dp_audit.programs.load`.
    program : Program

    Returns
    -------
    str

    Examples
    --------
    >>> sides = [(np.array([[0.6]]), np.array([y])) for y in (1, -1)]
    >>> answer = Answer("it needs 2", True, sides=sides, shown={"epsilon": 1.0})
    >>> print(script(answer, "p.py:f", Program(lambda X, y, rng: 0, 1.0)).splitlines()[-2])
    found = program.replay(((X, y), (Z, z)), epsilon=1.0)
    """
    (X, y), (Z, z) = answer.sides
    k = changed(answer.sides)
    settings = {"epsilon": program.epsilon, "delta": program.delta} | program.settings
    lines = [
        f"# {' '.join(answer.sentence.split())}",
        "",
        "import numpy as np",
        *(["from numpy import nan"] if any(np.isnan(each).any() for each in (X, Z)) else []),
        "",
        "from dp_audit import check, programs",
        "",
        f"program = programs.load({place!r}, {_keywords(settings)})",
        *([f"program.bound = {program.bound!r}"] if program.mechanism else []),
        *_written("X", X, k),
        *_written("y", y, k),
    ]
    if len(X) == len(Z):
        lines += [
            "Z, z = X.copy(), y.copy()",
            f"Z[{k}], z[{k}] = {Z[k].tolist()!r}, {z[k].item()!r}",
        ]
    else:
        lines += [f"Z, z = np.delete(X, {k}, axis=0), np.delete(y, {k})  # without record {k}"]
    call = _keywords(answer.shown)
    if "trials" in answer.shown:
        lines += [f"found = check.attacked(program, ((X, y), (Z, z)), {call})", "print(found)"]
    else:
        lines += [
            f"found = program.replay(((X, y), (Z, z)), {call})",
            "print(found.finding, found.why)",
        ]
    return "\n".join(lines) + "\n"


def _keywords(settings):
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def _written(name, array, k):
    """Lines that make an array: short ones if all entries but the k-th are equal."""
    others = np.delete(array, k, axis=0)
    if len(others) > 2 and (others == others[0]).all():
        each = f"np.array([{others[0].tolist()!r}] * {len(array)})"
        return [f"{name} = {each}", f"{name}[{k}] = {array[k].tolist()!r}"]
    return [f"{name} = np.array({array.tolist()!r})"]
