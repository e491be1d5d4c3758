"""Audits of mechanisms: exact privacy losses in one dimension, and lower bounds by attack.

A *privacy loss* is the log ratio of a release's densities (or probabilities) on two neighbouring data sets.
Epsilon-DP means that no loss exceeds epsilon. An exact loss needs the density and shows any excess. A lower
bound needs only releases. With N evaluated releases of each data set, a lower bound at confidence
0.95 is at most log(N / 3.7), since 0 occurrences allow a probability of 3.7/N. Lower bounds miss events of
probability 1e-5.
"""

import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from dp import losses
from dp.mechanisms import MECHANISMS, Mechanism
from dp.solvers.fits import shared_fit
from dp_audit import pairs
from dp_privacy import roots
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, Guarantee
from dp_privacy.errors import Refused
from dp_privacy.intervals import largest_share, least_share

__all__ = ["attack", "epsilon_lower_bound", "privacy_loss_1d"]

GRID = 801  # points per axis of the first grid
REACH = 9.0  # axes are sinh-spaced; nonzero |w| range from 0.02/R to 4000/R
ZOOMS = 14  # refinements; each divides the cell width by about seven


def privacy_loss_1d(
    mechanism: str | Mechanism,
    epsilon: float,
    n_lambda: float,
    bound: float = 1.0,
    loss: losses.Loss = "logistic",
    **options,
) -> float:
    """Supremum of the privacy loss over all replace-one pairs in one dimension.

    The supremum is over records, released values and public sizes n with n lambda = `n_lambda`. For
    objective perturbation, a grid of 801 points per axis is refined around its best point; 401 points give
    the same result to 1e-6. Minimisers are assumed exact (tolerance 0).

    Parameters
    ----------
    mechanism : str or Mechanism
        Any form of output or objective perturbation.
    epsilon : float
        The requested privacy.
    n_lambda : float
        n lambda > 0.
    bound : float
        R >= |x|.
    loss : str or dp.losses.Loss
        A margin loss.
    **options
        The mechanism's options, such as calibration.

    Returns
    -------
    float
        A loss that a pair attains or approaches as n grows, so a lower bound on the supremum. It is
        infinite for a mechanism without privacy.

    Raises
    ------
    ValueError
        If n lambda or the bound is not positive, or no density is known for the mechanism or the loss.

    Examples
    --------
    >>> print(f"{privacy_loss_1d('output_perturbation', 1.0, n_lambda=10.0):.3f}")
    0.525
    """
    mechanism = find(mechanism)
    margin = losses.get(loss)
    if not n_lambda > 0 or not bound > 0:
        raise ValueError(f"n lambda and the bound must be positive, not {n_lambda} and {bound}")
    if not mechanism.private:
        return math.inf
    if margin.residual:
        raise ValueError(
            f"no density in one dimension is known for {margin.name}, a loss of residuals"
        )
    # Output and objective perturbation depend on n only through n lambda, so n = 1 covers every n.
    if hasattr(mechanism, "tilt"):
        pairs.check_tilts(mechanism)
        epsilon_b, ridge = mechanism.tilt(1, epsilon, n_lambda, bound, loss, **options)
        return _tilted_loss(margin, epsilon_b, n_lambda + ridge, bound)
    if hasattr(mechanism, "scale") and mechanism.fit == "l2":
        pairs.order_of_law(mechanism)  # raises unless the noise is `l2_laplace` or `laplace`
        mechanism.check_options(options)
        settings = {"lam": n_lambda, "bound": bound, "loss": loss, "tolerance": 0.0} | options
        scale = mechanism.scale(1, 1, SimpleNamespace(epsilon=epsilon, **settings))
        return largest_shift_1d(margin, n_lambda, bound) / scale
    raise ValueError(f"no density in one dimension is known for {mechanism.name}")


def _tilted_loss(margin, epsilon_b, n_lambda, bound, grid=GRID):
    """Supremum of the privacy loss of objective perturbation, from the density of the minimiser w.

    Let a = y x in [-R, R] be the replaced record, V the sum of f(a) = a l'(w a) over the other records, and
    kappa >= |l'|. The noise b has a density proportional to exp(-epsilon_b |b| / (2 kappa R)). It makes w
    the minimiser if b(w) = -(n lam w + V + f(a)). So |db/dw| = n lam + C + g(a), where g(a) = a^2 l''(w a)
    and C >= 0 is the other records' curvature. Many records with small |a| give any V with C near 0. So at
    w, the supremum is the maximum over a and a' of epsilon_b |f(a) - f(a')| / (2 kappa R) + log((n lam +
    g(a)) / (n lam + g(a'))). By the symmetry (w, a, a') -> (-w, -a, -a'), one sign of f(a) - f(a') is
    enough. This maximum is then a maximum over a minus a minimum over a'.
    """
    rate = epsilon_b / (2 * margin.kappa * bound)

    def gain(w, a):
        z = w * a
        return rate * a * margin.derivative(z) + np.log(n_lambda + a * a * margin.curvature(z))

    unit = np.sinh(np.linspace(-REACH, REACH, grid))
    w, a = unit / bound, unit / np.sinh(REACH) * bound
    table = gain(w[:, None], a[None, :])
    row = int((table.max(axis=1) - table.min(axis=1)).argmax())
    values = [w[row], a[table[row].argmax()], a[table[row].argmin()]]
    ends = [_around(w, values[0]), _around(a, values[1]), _around(a, values[2])]
    best = -math.inf
    for _ in range(ZOOMS):
        w, high, low = (_between(*end, value) for end, value in zip(ends, values, strict=True))
        top, bottom = gain(w[:, None], high[None, :]), gain(w[:, None], low[None, :])
        row = int((top.max(axis=1) - bottom.min(axis=1)).argmax())
        values = [w[row], high[top[row].argmax()], low[bottom[row].argmin()]]
        best = max(best, float(top[row].max() - bottom[row].min()))
        ends = [_around(x, v) for x, v in zip((w, high, low), values, strict=True)]
    return best


def _between(start, stop, value, points=41):
    """A grid that includes `value`, where the curvature may jump."""
    return np.sort(np.append(np.linspace(start, stop, points), value))


def _around(grid, value, cells=3):
    k = int(np.searchsorted(grid, value))
    return grid[max(k - cells, 0)], grid[min(k + cells, len(grid) - 1)]


def largest_shift_1d(margin: losses.MarginLoss, n_lambda: float, bound: float = 1.0) -> float:
    """Largest distance between neighbours' L2-regularised minimisers in one dimension.

    At the minimiser w, n lam w + V(w) + a l'(w a) = 0, where a is the replaced record and V the sum of the
    others' gradients. The same holds for the neighbour's w' = w - D and a'. Since V increases in w,
    n lam D <= a' l'(w' a') - a l'(w a), with equality if V is (nearly) constant. For convex decreasing l,
    the right side is at most G(w) + G(D - w), where G(w) is the maximum over a in [0, R] of -a l'(w a). G
    decreases, so this bound decreases in D. The largest D is the root of n lam D = max over w of G(w) +
    G(D - w). For logistic loss, n lam D is slightly above kappa R, half of the bound 2 kappa R that
    holds in any dimension.
    """
    # Let u = w a. For w > 0, G(w) is the maximum of -u l'(u) over u up to w R, divided by w. For w <= 0,
    # the maximum is at a = R.
    u = np.linspace(0, 60, 600_001)
    largest = np.maximum.accumulate(-u * margin.derivative(u))

    def G(w):
        far = np.interp(w * bound, u, largest) / np.where(w > 0, w, 1.0)
        return np.where(w > 0, far, -bound * margin.derivative(w * bound))

    def room(shift):
        w = np.sinh(np.linspace(-REACH, REACH, 2001)) / bound
        for _ in range(8):
            total = G(w) + G(shift - w)
            value = w[total.argmax()]
            w = _between(*_around(w, value), value)
        return total.max()

    most = 2 * margin.kappa * bound / n_lambda
    return roots.largest(lambda shift: n_lambda * shift <= room(shift), 0.0, most, relative=1e-9)


BLOCK_ELEMENTS = 1 << 21  # numbers released at a time: 16 MB
PILOT = 2000  # releases to learn a statistic from if the pair states none
CANDIDATES = 400  # thresholds tried, densest in the tails


def epsilon_lower_bound(
    mechanism: str | object, pair: str | tuple | pairs.Pair, epsilon: float, *further, **named
) -> float:
    """A lower bound on epsilon that holds with probability `confidence`.

    The first half of the releases chooses an event (a statistic, a threshold and its side). It also chooses
    which data set gives the event's probability p; the other gives q. The second half gives Clopper-Pearson
    bounds on both, each at confidence 1 - (1 - confidence)/2. Since (epsilon, delta)-DP means p <=
    e^epsilon q + delta, the result is log((p_low - delta) / q_high), at least 0. Noise of 1e-9 times the
    scores' range hides the last bits of floating-point sums, which distinguish any two data sets.

    Parameters
    ----------
    mechanism, pair, epsilon, *further, **named
        As for `attack`, except `deltas`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> found = epsilon_lower_bound("nonprivate", "opposite_corner", 1.0, trials=2000, rng=rng)
    >>> found > 1.0  # releases without noise are distinguishable
    True
    """
    return attack(mechanism, pair, epsilon, *further, **named)["epsilon"]


def of_each(confidence: float, family: int) -> float:
    """Confidence that each of `family` bounds needs for all to hold with `confidence` (Bonferroni)."""
    return 1 - (1 - confidence) / family


def attack(
    mechanism: str | object,
    pair: str | tuple | pairs.Pair,
    epsilon: float,
    delta: float = 0.0,
    trials: int = 100_000,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    deltas: Sequence[float] = (),
    **options,
) -> dict:
    """The bound of `epsilon_lower_bound`, with its event.

    Parameters
    ----------
    mechanism : str or Mechanism
    pair : str or tuple or dp_audit.pairs.Pair
        A name or object, or ((X, y), (X', y')).
    epsilon, delta : float
        The requested privacy. Pure mechanisms ignore delta.
    trials : int
        Releases on each data set, at least 4.
    confidence : float
        In (0, 1).
    rng : numpy.random.Generator or None
        Source of independent streams for the two data sets.
    deltas : Sequence[float]
        Further deltas for bounds from the same releases.
    **options
        The mechanism's options, and lam and bound if the pair does not state them.

    Returns
    -------
    dict
        epsilon: the bound. p_low, q_high: bounds on the event's probabilities. counts: the event's
        occurrences among trials_evaluated releases of each side. statistic: the chosen statistic.
        at_deltas: bounds at `deltas`, which all hold with probability `confidence`.

    Raises
    ------
    ValueError
        For an unknown name, a number out of range, or refused settings.

    Examples
    --------
    >>> import numpy as np
    >>> sides = (np.array([[1.0]]), np.array([1])), (np.array([[1.0]]), np.array([-1]))
    >>> rng = np.random.default_rng(1)
    >>> found = attack("output_perturbation", sides, 1.0, trials=20_000, rng=rng, lam=1.0)
    >>> 0.3 < found["epsilon"] <= 1.0, found["trials_evaluated"]
    (True, 10000)
    """
    mechanism, pair = find(mechanism), pairs.find(pair)
    if not 0 < confidence < 1 or not 0 <= delta < 1:
        raise ValueError(
            f"confidence must lie in (0, 1) and delta in [0, 1), not {confidence} and {delta}"
        )
    if int(trials) < 4:
        raise ValueError(f"a lower bound needs at least 4 trials, not {trials}")
    arguments = dict(pair.arguments) | options | spent(mechanism, epsilon, delta)
    streams = (np.random.default_rng() if rng is None else rng).spawn(4)
    sides = [_Side(mechanism, X, y, arguments) for X, y in pair.sides]
    try:
        statistic = pair.statistic and pair.statistic(pair, mechanism, **arguments)
    except pairs.Unsuited:  # a statistic learned from pilot releases suits any mechanism
        statistic = None
    if statistic is None:
        pilots = [
            side.weights(min(PILOT, trials), stream)
            for side, stream in zip(sides, streams[2:], strict=True)
        ]
        statistic = pairs.pilot_statistic(*pilots)
    scores = [
        side.scores(int(trials), stream, statistic)
        for side, stream in zip(sides, streams[:2], strict=True)
    ]
    half = int(trials) // 2
    _blur(scores, half, streams)
    level = of_each(confidence, max(len(deltas), 1))
    bound, *others = _bounds(scores, half, [(delta, confidence), *((at, level) for at in deltas)])
    return bound | {"at_deltas": [other["epsilon"] for other in others]}


def _bounds(scores, half, points):
    """A bound for each (delta, confidence). The first `half` scores choose the events."""
    events = {name: list(_events(*(side[name][:half] for side in scores))) for name in scores[0]}
    levels = {confidence for _, confidence in points}
    limits = {level: list(_limits(events, half, level)) for level in levels}
    return [_bound(scores, half, limits[point[1]], *point) for point in points]


def _bound(scores, half, limits, delta, confidence):
    _, threshold, sign, name, order = _choose(limits, delta)
    level = 1 - (1 - confidence) / 2
    counts = [
        int((sign * scores[side][name][half:] >= threshold).sum()) for side in (order, 1 - order)
    ]
    evaluated = len(scores[0][name]) - half
    p_low = float(least_share(counts[0], evaluated, level))
    q_high = float(largest_share(counts[1], evaluated, level))
    return {
        "epsilon": math.log((p_low - delta) / q_high) if p_low - delta > q_high else 0.0,
        "p_low": p_low,
        "q_high": q_high,
        "counts": counts,
        "trials_evaluated": evaluated,
        "statistic": name,
    }


def guarantee(
    mechanism: str | object,
    pair: str | tuple | pairs.Pair,
    epsilon: float,
    delta: float = 0.0,
    **options,
) -> Guarantee:
    """The guarantee of a mechanism with these options on a pair's rows.

    Raises ValueError for an unknown option or a refused value.
    """
    return _guarantee(*_asked(mechanism, pair, epsilon, delta, options))


def suited(mechanism: str | object, pair: str | tuple | pairs.Pair) -> dict:
    """Options with which a mechanism's guarantee may cover a pair, where they are not the defaults.

    If one side has a record more, these are add-remove and a stated `public_n`, for mechanisms with these
    options.
    """
    mechanism, pair = find(mechanism), pairs.find(pair)
    options = {"adjacency": ADD_REMOVE, "public_n": pair.size[0]} if pair.resized else {}
    return {name: value for name, value in options.items() if name in mechanism.options}


def check(
    mechanism: str | object,
    pair: str | tuple | pairs.Pair,
    epsilon: float,
    delta: float = 0.0,
    **options,
) -> None:
    """Raise the errors that `guarantee` would, by the mechanism's own `check` if it has one."""
    mechanism, pair, settings = _asked(mechanism, pair, epsilon, delta, options)
    # Only the guarantee shows whether neighbours of different sizes are covered.
    private_n = pair.resized and settings.get("public_n") is None
    if type(mechanism).check is Mechanism.check or private_n:
        _guarantee(mechanism, pair, settings)
        return
    mechanism.check(*pair.size, **settings)
    p = mechanism.parameters(*pair.size, **settings)
    _check_adjacency(pair, p.adjacency, p.public_n)


def _asked(mechanism, pair, epsilon, delta, options):
    """(mechanism, pair, settings). Raise `Refused` if the pair sets an option the mechanism lacks."""
    mechanism, pair = find(mechanism), pairs.find(pair)
    for key in pair.arguments:
        if key not in ("lam", "bound", *mechanism.facts, *mechanism.options):
            raise Refused(
                f"this pair is for mechanisms that take {key!r}, and {mechanism.name} does not: choose "
                f"another pair"
            )
    return mechanism, pair, spent(mechanism, epsilon, delta) | dict(pair.arguments) | options


def _guarantee(mechanism, pair, settings):
    stated = mechanism.guarantee(*pair.size, **settings)
    if pair.resized and stated.adjacency != ADD_REMOVE:
        raise Refused(
            f"one data set of this pair has a record more, and the guarantee is for {stated.adjacency}: "
            f"choose a pair that replaces a record"
        )
    if math.isfinite(stated.epsilon):
        _check_adjacency(pair, stated.adjacency, settings.get("public_n"))
    elif stated.adjacency == ADD_REMOVE:
        check_removes(pair)
    return stated


def _check_adjacency(pair, adjacency, public_n):
    if pair.resized and public_n is None:
        raise Refused(
            "the data sets of this pair have different sizes, and the guarantee takes n as public: state "
            "the option public_n under add-remove, or choose a pair with a row of zeros in a record's place"
        )
    if adjacency == ADD_REMOVE:
        check_removes(pair)


def check_removes(pair: pairs.Pair) -> None:
    """Raise `Refused` unless one side lacks the changed record or has a row of zeros in its place.

    A row of zeros has no gradient or curvature, so it is equivalent to no record.
    """
    if pair.resized:
        return
    (X, y), (X_other, y_other) = pair.sides
    changed = (X_other != X).any(axis=1) | (np.asarray(y) != y_other)
    if X[changed].any() and X_other[changed].any():
        raise Refused(
            "this pair replaces a record, and the guarantee is for adding or removing one: choose a pair "
            "with a row of zeros in its place"
        )


def spent(mechanism: object, epsilon: float, delta: float) -> dict:
    """Arguments epsilon and delta; delta is 0 for a pure mechanism."""
    pure = getattr(mechanism, "delta", "") == "none"
    return {"epsilon": epsilon, "delta": 0.0 if pure else delta}


class _Side:
    def __init__(self, mechanism, X, y, arguments):
        self.mechanism, self.X, self.y, self.arguments = mechanism, X, y, dict(arguments)
        if mechanism.fit:
            self.arguments["fit"] = shared_fit(mechanism.fit, X, y, **arguments)
        self.block = max(1, BLOCK_ELEMENTS // X.shape[1])

    def weights(self, restarts: int, rng: np.random.Generator) -> np.ndarray:
        """Flattened weights (restarts, p) of independent releases; an intercept is the last column."""
        release = self.mechanism.release(
            self.X, self.y, restarts=restarts, rng=rng, **self.arguments
        )
        weights = np.reshape(release.weights, (restarts, -1))
        if "intercept" in release.info:
            weights = np.column_stack([weights, release.info["intercept"]])
        return weights

    def scores(self, trials: int, rng: np.random.Generator, statistic: object) -> dict:
        """Each statistic's values (trials,), by name; NaN becomes -inf."""
        columns = {}
        for start in range(0, trials, self.block):
            stop = min(start + self.block, trials)
            for name, values in statistic(self.weights(stop - start, rng)).items():
                column = columns.setdefault(name, np.empty(trials))
                column[start:stop] = np.where(np.isnan(values), -math.inf, values)
        return columns


def _blur(scores, half, streams):
    for name in scores[0]:
        seen = np.concatenate([side[name][:half] for side in scores])
        seen = seen[np.isfinite(seen)]
        width = 1e-9 * float(np.ptp(seen)) if len(seen) else 0.0
        for side, stream in zip(scores, streams[2:], strict=True):
            side[name] += width * stream.random(len(side[name]))


def _events(first, second):
    """Yield (sign, thresholds, counts on both sides) of events {sign * score >= threshold}."""
    sides = np.sort(first), np.sort(second)
    # A stable sort merges two sorted runs in linear time.
    pooled = np.sort(np.concatenate(sides), kind="stable")
    # Ranks, counted from the tail, grow geometrically.
    ranks = np.unique(np.geomspace(1, len(pooled), CANDIDATES).astype(int)) - 1
    for sign in (1, -1):
        thresholds = np.unique(sign * pooled[::-sign][ranks])
        counts = [len(side) - np.searchsorted(sign * side[::sign], thresholds) for side in sides]
        yield sign, thresholds, counts


def _limits(events, half, confidence):
    """Yield (statistic, index of the data set that gives p, sign, thresholds, p_low, q_high) of all events.

    The maximum of many estimates is biased upwards. So these limits have a hundredth of the evaluation's
    error probability, and a threshold that few releases exceed is never chosen.
    """
    level = 1 - (1 - confidence) / 200
    for name, order in itertools.product(events, (0, 1)):
        for sign, thresholds, counts in events[name]:
            p_low = least_share(counts[order], half, level)
            q_high = largest_share(counts[1 - order], half, level)
            yield name, order, sign, thresholds, p_low, q_high


def _choose(limits, delta):
    """(estimated bound, threshold, sign, statistic, index of p's data set) of the best event."""
    best = (-math.inf, math.inf, 1, limits[0][0], 0)
    for name, order, sign, thresholds, p_low, q_high in limits:
        gain = p_low - delta
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(gain > 0, np.log(gain / q_high), -math.inf)
        k = int(bound.argmax())
        if bound[k] > best[0]:
            best = (float(bound[k]), float(thresholds[k]), sign, name, order)
    return best


class IgnoresData(Mechanism):
    """A null control that releases only noise.

    A sound audit's bound is 0 with probability at least `confidence`.
    """

    name = "ignores_data"
    needs_lambda = False

    def _guarantee(self, n, d, p):
        return Guarantee(0.0, 0.0, 0.0, REPLACE_ONE, "the release does not depend on the data")

    def _release(self, X, y, p, draws, rng):
        return rng.standard_normal((draws, X.shape[1]))


CONTROLS = {"ignores_data": IgnoresData()}


def find(mechanism: str | object) -> object:
    """A mechanism or control by name, or an object unchanged."""
    if not isinstance(mechanism, str):
        return mechanism
    if mechanism in CONTROLS:
        return CONTROLS[mechanism]
    if mechanism not in MECHANISMS:
        raise ValueError(f"no mechanism {mechanism!r} (valid: {', '.join(MECHANISMS)})")
    return MECHANISMS[mechanism]
