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

`recorder` keeps noise apart from values, `runs` makes the runs, `distances` compares them, and
`not_additive` tests functions with other noise. This module has the findings.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dp_audit import audit, not_additive, pairs
from dp_audit.distances import CLOSE, Distances
from dp_audit.recorder import Tape
from dp_audit.runs import Run, equal, neighbours, numbers_of, run_both, run_once
from dp_privacy.accounting import Guarantee, gaussian_epsilon
from dp_privacy.errors import Refused
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
ROUNDED = 1e-3  # what rounding may change of a noisy value that is released (see `_seen`)
HIDDEN = "what is stated is for the last noisy value alone, and this counts all of them"
SAMPLE = "a permutation that is cut, a random sample of the rows, for which smaller guarantees are proven"
SMOOTH = (
    "the scale of noise depends on the rows, within the guarantee on this pair: only a bound for all "
    "neighbours, such as a smooth sensitivity, makes it private"
)


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
    runs = run_both(run, sides, seed)
    again = run_once(run, first, seed, Tape())
    if not runs[0].problem and not equal(runs[0].released, again.released):
        return Replay(
            UNSEEN, "two runs on the same rows with the same draws of rng differ: use rng alone"
        )
    worst = _judged(*runs, epsilon, delta, released)
    if again.tape.ordered:
        worst = _of_orders(run, sides, seed, (epsilon, delta, released), worst)
    if worst.finding in (CHOICE, IF_RELEASED):
        total = not_additive.if_linear(run, sides, seed, again)
        if total is not None:
            return _of_total(total, epsilon, delta, True)
        shown = ""
        if seed == 0:  # these tests draw many seeds, so one beginning suffices
            shown = not_additive.shown_despite_noise(run, sides, seed, epsilon)
            shown = shown or not_additive.too_frequent(run, sides, epsilon, delta)
        if shown:
            return worst._replace(finding=LEAKS, why=shown, epsilon=math.inf)
    if worst.finding == IDLE:
        for other in neighbours(first):
            result = _judged(*run_both(run, (first, other), seed), epsilon, delta, released)
            if result.finding in (LEAKS, FLOW):
                return result
    return worst


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
        _judged(*run_both(function, sides, seed, row, place), *settings)
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
        if not equal(*([each[k] for each in side] for side in sides)):
            return k
    return None


def _judged(one: Run, two: Run, epsilon: float, delta: float, released: bool) -> Replay:
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
    if not problem and not equal(one.released, two.released):
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
    # An entry alone may agree with another number by chance, so only all entries may be rounded.
    seen = [_seen(step, release, ROUNDED if how is all else 0.0) for step in first.steps]
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


def _seen(step, release, rounding):
    """Which entries of a noisy value are in a release, up to a share of the noise scale.

    The share is `rounding` divided by the release's number of numbers, so that few agree by chance.
    """
    numbers = numbers_of(release)
    known = np.concatenate([[-np.inf], np.sort(numbers[np.isfinite(numbers)]), [np.inf]])
    at = np.searchsorted(known, step.result).clip(1, len(known) - 1)
    with np.errstate(invalid="ignore"):
        gap = np.minimum(known[at] - step.result, step.result - known[at - 1])
    seen = np.isin(step.result, numbers) | (gap <= rounding / len(known) * np.abs(step.scale))
    return seen | (np.isnan(step.result) & np.isnan(numbers).any())


def _selects(one, two):
    """Whether all numbers that differ between two releases are noisy values: the rows select them."""
    known = np.concatenate([np.zeros(0), *(step.result.ravel() for step in one.tape.steps)])
    first, second = numbers_of(one.released), numbers_of(two.released)
    if len(first) != len(second) or not len(first):
        return False
    differ = first != second
    return differ.any() and np.isin([*first[differ], *second[differ]], known).all()


def _epsilon(mu, pure, delta):
    """The epsilon of all noise at delta: exact for one kind of noise, the sum of epsilons for two."""
    if not mu:
        return pure
    return pure + (gaussian_epsilon(1 / mu, delta) if delta > 0 else math.inf)


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
            stated = audit.guarantee(mechanism, pair, epsilon, delta, **options)
            asked = mechanism, pair, epsilon, delta, stated, options
            results = [(_of_seed(*asked, seed), stated) for seed in range(SEEDS)]
        except Refused:
            continue
        yield pair, delta, *min(results, key=badness)


def badness(result: tuple) -> tuple[int, float]:
    """Sort key of tuples that begin with a `Replay`, which puts the worst first."""
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
    stated = audit.guarantee(mechanism, pair, epsilon, delta, **options)
    return _of_seed(mechanism, pair, epsilon, delta, stated, options, seed), stated


def _of_seed(mechanism, pair, epsilon, delta, stated, options, seed):
    """The `Replay` of a mechanism that states the guarantee `stated`."""
    mechanism, pair = audit.find(mechanism), pairs.find(pair)
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
    return result


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
