"""Neighbouring data sets on which mechanisms are near their worst, with reasons.

A pair is a function that returns a `Pair`. The data sets differ in one record, or in the records of one
person in attacks on the option `most`. They have equal sizes, except in attacks on the use of n.
"""

import math
from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.clipped_logistic import ClippedLogistic
from dp.noise import gaussian, l2_laplace, laplace
from dp.seeds import generator
from dp.solvers.fits import shared_fit
from dp_privacy.accounting import gaussian_epsilon
from dp_privacy.errors import did_you_mean

__all__ = ["PAIRS", "Pair", "find"]


class Pair(NamedTuple):
    """Two neighbouring data sets for an attack.

    `statistic` and `exact` raise `Unsuited` if they do not apply to a mechanism.

    Attributes
    ----------
    sides : tuple or LazySides
        ((X, y), (X', y')).
    arguments : dict
        Arguments of `guarantee` and `release` that the reason assumes (lam, bound, options).
    reason : str
        Why mechanisms are near their worst on this pair.
    statistic : Callable or None
        (pair, mechanism, **arguments) -> a function from weights (m, p) to {name: scores (m,)}, larger
        where the first side is likelier. If None, scores are learned from pilot releases.
    exact : Callable or None
        (pair, mechanism, **arguments) -> the supremum of the privacy loss on this pair.
    """

    sides: tuple
    arguments: dict
    reason: str
    statistic: Callable | None = None
    exact: Callable | None = None

    @property
    def size(self) -> tuple[int, int]:
        """(n, d) of the first side."""
        return self.sides.size if isinstance(self.sides, LazySides) else self.sides[0][0].shape

    @property
    def resized(self) -> bool:
        """Whether one side has one record more than the other."""
        lazy = isinstance(self.sides, LazySides)
        return not lazy and len(self.sides[0][0]) != len(self.sides[1][0])


class LazySides:
    """Sides of known size (n, d), created at first use, so configuration checks need little memory."""

    def __init__(self, size: tuple[int, int], make: Callable) -> None:
        self.size, self.make = size, cache(make)

    def __iter__(self):
        return iter(self.make())

    def __getitem__(self, side):
        return self.make()[side]


class Unsuited(ValueError):
    """A pair's statistic or exact loss does not apply to a mechanism."""


PAIRS = {}


def pair(function: Callable) -> Callable:
    """Register a function that makes a pair, and cache its result."""
    PAIRS[function.__name__] = cache(function)
    return PAIRS[function.__name__]


def find(pair: str | tuple | Pair) -> Pair:
    """The `Pair` of a name or of two data sets, or a `Pair` unchanged.

    Parameters
    ----------
    pair : str or tuple or Pair
        A name in `PAIRS`, ((X, y), (X', y')), or a `Pair`.

    Returns
    -------
    Pair

    Raises
    ------
    ValueError
        For an unknown name, or data sets that are not replace-one neighbours.

    Examples
    --------
    >>> find("turned_row").size
    (8, 3)
    """
    if isinstance(pair, Pair):
        return pair
    if isinstance(pair, str):
        if pair not in PAIRS:
            hint = did_you_mean(pair, PAIRS) or f" (valid: {', '.join(PAIRS)})"
            raise ValueError(f"no pair {pair!r}{hint}")
        return PAIRS[pair]()
    (X, y), (X_other, y_other) = pair
    X, X_other, y, y_other = map(np.asarray, (X, X_other, y, y_other))
    if X.shape != X_other.shape or y.shape != y_other.shape:
        raise ValueError("replace-one neighbours have the same size")
    if ((X_other != X).any(axis=1) | (y != y_other)).sum() > 1:
        raise ValueError("replace-one neighbours differ in one record, and these differ in more")
    return Pair(((X, y), (X_other, y_other)), {}, "given by the caller")


def pilot_statistic(first: np.ndarray, second: np.ndarray) -> Callable:
    """Scores learned from pilot releases of both sides.

    "projection" is the position along the line between the medians, 0 at their midpoint. "spread" is this
    position's absolute value, which shows a difference in spread. Two others compare L1 and L2 distances to
    both medians.
    """
    centres = np.nan_to_num(np.median(first, axis=0)), np.nan_to_num(np.median(second, axis=0))
    distances = _distances(*centres)
    direction = centres[0] - centres[1]
    middle = (centres[0] + centres[1]) / 2 @ direction

    def statistic(weights):
        projection = weights @ direction - middle
        return {"projection": projection, "spread": np.abs(projection)} | distances(weights)

    return statistic


def _distances(first, second, orders=(1, 2)):
    shift = first - second
    moved = np.flatnonzero(shift)

    def farther(weights, order):
        """||w - second|| - ||w - first||, without cancellation."""
        if order == 1:  # coordinates where the centres agree add nothing
            weights = weights if len(moved) == len(shift) else weights[:, moved]
            gap = weights - first[moved]
            near = np.abs(gap)
            gap += shift[moved]
            return (np.abs(gap, out=gap) - near).sum(axis=1)
        gap = weights - first
        near = np.einsum("ij,ij->i", gap, gap)
        more = 2 * (gap @ shift) + shift @ shift  # ||w - second||^2 - ||w - first||^2
        total = np.sqrt(near) + np.sqrt(np.maximum(near + more, 0.0))
        return np.divide(more, total, out=np.zeros_like(more), where=total > 0)

    def statistic(weights):
        return {f"L{order} distances": farther(weights, order) for order in orders}

    return statistic


def minimisers(pair: Pair, mechanism: object, **arguments) -> list[np.ndarray]:
    """Both sides' non-private minimisers (d,), to which a mechanism adds noise."""
    if mechanism.fit is None:
        raise Unsuited(f"{mechanism.name} does not name a `fit` to which it adds noise")
    return [shared_fit(mechanism.fit, X, y, **arguments)[0][0] for X, y in pair.sides]


def distances(order: int) -> Callable:
    """Log density ratio of weights without intercept, times scale, for noise ~ exp(-||z||_order/scale)."""

    def factory(pair, mechanism, **arguments):
        d = pair.size[1]
        first, second = minimisers(pair, mechanism, **arguments)
        score = _distances(first[:d], second[:d], orders=(order,))
        return lambda weights: score(weights[:, :d])

    return factory


# Law of noise -> order of the norm in its density exp(-||z||_order / scale).
ORDERS = {l2_laplace: 2, laplace: 1}


def order_of_law(mechanism: object) -> int:
    """The entry of `ORDERS` for a mechanism's `law`."""
    law = getattr(mechanism, "law", None)
    if law not in ORDERS:
        told = "names no `law`" if law is None else f"has noise of the law {law.__name__}"
        known = " and ".join(each.__name__ for each in ORDERS)
        raise Unsuited(f"{mechanism.name} {told}, and losses of shifts are known for {known}")
    return ORDERS[law]


def shift_loss(pair: Pair, mechanism: object, **arguments) -> float:
    """Exact loss of a minimiser plus noise with density exp(-||z|| / scale).

    The loss is the minimisers' distance over the scale, in the norm of the `law`. For Gaussian noise, it is
    the epsilon at delta of a Gaussian release with mu = distance / scale.
    """
    normal = getattr(mechanism, "law", None) is gaussian and arguments.get("delta", 0.0) > 0
    order, d = 2 if normal else order_of_law(mechanism), pair.size[1]
    first, second = minimisers(pair, mechanism, **arguments)
    X, y = pair.sides[0]
    fit = shared_fit(mechanism.fit, X, y, **arguments)
    release = mechanism.release(X, y, rng=np.random.default_rng(0), fit=fit, **arguments)
    shift = float(np.linalg.norm((first - second)[:d], order) / release.info["scale"])
    return gaussian_epsilon(1.0, arguments["delta"], shift) if normal and shift else shift


def released_column(column: int) -> Callable:
    """One released weight, with the sign that makes it larger for the first side's minimiser."""

    def factory(pair, mechanism, **arguments):
        first, second = minimisers(pair, mechanism, **arguments)
        sign = np.sign(first[column] - second[column])
        return lambda weights: {f"column {column}": sign * weights[:, column]}

    return factory


# Law of a tilt -> function from b and its scale to the log density, up to a constant.
TILTS = {
    l2_laplace: lambda b, scale: -np.linalg.norm(b, axis=1) / scale,
    gaussian: lambda b, sigma: -np.einsum("ij,ij->i", b, b) / (2 * sigma**2),
}


def check_tilts(mechanism: object, laws: Iterable[Callable] = (l2_laplace,)) -> None:
    """Raise `Unsuited` unless a mechanism's tilt has one of these laws."""
    if not hasattr(mechanism, "tilt"):
        raise Unsuited(f"{mechanism.name} has no `tilt`, a random linear term in its objective")
    if getattr(mechanism, "law", l2_laplace) not in laws:
        known = " and ".join(each.__name__ for each in laws)
        raise Unsuited(
            f"{mechanism.name} tilts by {mechanism.law.__name__}, and densities are known for {known}"
        )


def for_tilts(function: Callable) -> Callable:
    """Make a statistic or loss raise `Unsuited` for mechanisms without one of `TILTS`."""

    @wraps(function)
    def checked(pair, mechanism, *rest, **arguments):
        check_tilts(mechanism, tuple(TILTS))
        return function(pair, mechanism, *rest, **arguments)

    return checked


def tilt_plan(pair: Pair, mechanism: object, delta: float = 0.0, **arguments) -> object:
    """The mechanism's plan for a pair."""
    spent = {} if mechanism.delta == "none" else {"delta": delta}
    return mechanism.plan(*pair.size, **spent, **arguments)


@for_tilts
def tilt_log_densities(pair: Pair, mechanism: object, **arguments) -> Callable:
    """Log densities at w (m, d) of both sides' exact tilted minimisers, up to a constant.

    The tilt that makes w the minimiser is b(w) = -(n lam w + sum_i l'(z_i) y_i x_i), with z as in
    `dp.losses` (without y_i for residual losses), and |det db/dw| = det(n lam I + sum_i l'' x_i x_i').
    A plan with a `body` has the log density -N(b)/scale of its norm N.
    """
    n, d = pair.size
    if arguments.get("offset", "none") != "none":
        raise Unsuited(f"{mechanism.name} with an offset has another one in every release")
    plan = tilt_plan(pair, mechanism, **arguments)
    clip = arguments.get("clip")
    margin = ClippedLogistic(clip) if clip else losses.get(arguments.get("loss", "logistic"))
    n_lambda = n * ((arguments.get("lam") or 0.0) + plan.ridge)
    of_tilt = TILTS[getattr(mechanism, "law", l2_laplace)]
    if hasattr(plan, "body"):

        def of_tilt(b, scale):
            return -plan.body.norm(b) / scale

    def log_density(weights, X, y, count):
        z = margin.arguments(weights @ X.T, y)
        b = n_lambda * weights + (count * margin.derivative(z) * margin.signs(y)) @ X
        products = (X[:, :, None] * X[:, None, :]).reshape(len(X), -1)
        jacobian = ((count * margin.curvature(z)) @ products).reshape(-1, d, d)
        return np.linalg.slogdet(jacobian + n_lambda * np.eye(d))[1] + of_tilt(b, plan.scale)

    sides = [_counted(X, y) for X, y in pair.sides]
    return lambda weights: [log_density(weights, *side) for side in sides]


def _counted(X, y):
    """The distinct records (X, y), and how often each occurs: most records of most pairs are equal."""
    records, count = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    return records[:, :-1], records[:, -1], count.astype(float)


def tilt_log_ratio(pair: Pair, mechanism: object, **arguments) -> Callable:
    """Log ratio of both sides' densities."""
    densities = tilt_log_densities(pair, mechanism, **arguments)

    def statistic(weights):
        first, second = densities(weights)
        return {"log density ratio": first - second}

    return statistic


def tilt_loss_1d(pair: Pair, mechanism: object, **arguments) -> float:
    """The privacy loss of objective perturbation for d = 1, on a fine grid of minimisers.

    The loss is the largest log density ratio, plus the output noise's share of epsilon. With a delta, it is
    the exact minimiser's epsilon at delta, the larger of both directions, plus such a share.
    """
    densities = tilt_log_densities(pair, mechanism, **arguments)
    w = np.sinh(np.linspace(-12, 12, 200_001))[:, None]
    first, second = densities(w)
    plan = tilt_plan(pair, mechanism, **arguments)
    output = getattr(plan, "share", 0.0) * arguments["epsilon"]
    if not arguments.get("delta"):
        return float(np.abs(first - second).max() + output)
    width = np.gradient(w[:, 0])
    p, q = (np.exp(each - each.max()) * width for each in (first, second))
    p, q = p / p.sum(), q / q.sum()
    low, high = 0.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        over = max(np.maximum(a - math.exp(middle) * b, 0).sum() for a, b in ((p, q), (q, p)))
        low, high = (middle, high) if over > arguments["delta"] else (low, middle)
    return high + output


@pair
def linear_part() -> Pair:
    """One of two labels flips; the loss is the Huber hinge."""
    return Pair(
        sides=_replace(np.array([[1.0], [0.0]]), [1, 1], 0, label=-1),
        arguments={"lam": 1.0, "bound": 1.0, "loss": "huber"},
        reason="one label flips while both margins stay on the hinge's linear part: the minimiser "
        "moves by the whole sensitivity bound, 2R/(n lambda)",
        statistic=distances(2),
        exact=shift_loss,
    )


@pair
def opposite_target() -> Pair:
    """One record at 0, and one whose target changes from 1 to -1."""
    return Pair(
        sides=_replace(np.array([[1.0], [0.0]]), [1.0, 0.3], 0, label=-1.0),
        arguments={"lam": 0.5, "bound": 1.0},
        reason="X'y moves by the whole of its sensitivity, 2R, and so does the minimiser of a robust loss, "
        "by 2 kappa R/(n lambda), because the residual stays where the loss is linear",
        exact=shift_loss,
    )


@pair
def opposite_residual() -> Pair:
    """The only record's target changes from -1 to 1; n lambda = 0.1."""
    return Pair(
        sides=_replace(np.array([[1.0]]), [-1.0], 0, label=1.0),
        arguments={"lam": 0.1, "bound": 1.0, "loss": "log_cosh"},
        reason="near w = -1 one residual is where the loss bends and the other where it is linear, with a "
        "slope of the other sign: the tilts differ and so do the Jacobians",
        statistic=tilt_log_ratio,
        exact=tilt_loss_1d,
    )


def _saturated(direction, others, sine, lam):
    """Sides whose first records have opposite signs, except in the last coordinate."""
    size = others + 1, len(direction) + 1

    def sides():
        X = np.zeros(size)
        X[:, -1] = 1
        X[0] = [*(math.sqrt(1 - sine**2) * direction), -sine]
        first = X, np.ones(len(X), dtype=np.int8)
        second = X.copy(), first[1]
        second[0][0, :-1] *= -1
        return first, second

    return LazySides(size, sides), {"lam": lam, "bound": 1.0}


SATURATED = (
    "the others drive the minimiser far along the last axis, where two opposite records have slopes "
    "near -1: for logistic loss the minimiser moves by 0.8 of the sensitivity bound"
)


@pair
def saturated() -> Pair:
    """One of 4000 records changes the sign of its first coordinate."""
    sides, arguments = _saturated(np.ones(1), others=3999, sine=0.44, lam=3 / 4000)
    return Pair(sides, arguments, SATURATED, distances(2), shift_loss)


@pair
def saturated_diagonal() -> Pair:
    """`saturated` in 784 dimensions: the record changes along the diagonal of the first 783 axes."""
    sides, arguments = _saturated(np.full(783, 783**-0.5), 3999, sine=0.44, lam=3 / 4000)
    reason = SATURATED + "; along the diagonal its L1 norm is sqrt(d) times its L2 norm"
    return Pair(sides, arguments, reason, distances(1), shift_loss)


@pair
def saturated_diagonal_l2() -> Pair:
    """`saturated_diagonal` with 500 records, for noise whose density depends on the L2 norm."""
    sides, arguments = _saturated(np.full(783, 783**-0.5), 499, sine=0.48, lam=3 / 500)
    reason = SATURATED + " (0.7 with 500 rows); of 784 dimensions noise hardly ever points that way"
    return Pair(sides, arguments, reason, distances(2), shift_loss)


def _of_weights(scores):
    return lambda *_, **__: scores


# Whether a mechanism has answered: refusals release weights of 0.
answered = _of_weights(lambda W: {"answered": W.any(axis=1).astype(float)})


def _clusters(below, above, inner=()):
    """Rows x = 1, so the model fitted to a single row equals its target."""
    y = np.concatenate([-np.ones(below), inner, np.ones(above)])
    return np.ones((len(y), 1)), y


@pair
def tukey_threshold() -> Pair:
    """320 models in two clusters. One model moves to the larger cluster."""
    X, y = _clusters(161, 159)
    return Pair(
        sides=_replace(X, y, -1, label=-1.0),
        arguments={"lam": 0.0, "bound": 1.0, "models": 320},
        reason="the distance of the test that guards the draw is 22 or 21 at epsilon 1, and the threshold "
        "21.6: with noise of scale b an answer is by 1/b likelier on one side",
        statistic=answered,
    )


@pair
def tukey_shell() -> Pair:
    """Two clusters of 207 models, and 6 models in between, one of which moves to a cluster."""
    X, y = _clusters(207, 207, [-3e-3, -2e-3, -1e-3, 1e-3, 2e-3, 3e-3])
    return Pair(
        sides=_replace(X, y, 210, label=-1.0),
        arguments={"lam": 0.0, "bound": 1.0, "models": 420},
        reason="all depths but that of the gap between the clusters are thin shells: a draw of the gap's "
        "depth must be a point of the gap on both sides",
        statistic=_of_weights(lambda W: {"in the gap": (W[:, 0] < -0.01).astype(float)}),
    )


def repeats(pair: Pair, mechanism: object, epsilon: float, **arguments) -> Callable:
    """Whether a release equals one of 20,000 releases of the first side."""
    X, y = pair.sides[0]
    made = mechanism.release(X, y, epsilon=epsilon, restarts=20_000, rng=generator(0), **arguments)
    known = np.sort(made.weights.sum(axis=1))

    def statistic(weights):
        sums = weights.sum(axis=1)
        at = np.searchsorted(known, sums).clip(1, len(known) - 1)
        gap = np.minimum(np.abs(known[at] - sums), np.abs(known[at - 1] - sums))
        return {"made before": (gap < 1e-9 * (1 + np.abs(sums))).astype(float)}

    return statistic


@pair
def repeated() -> Pair:
    """`flipped_label`, for releases that may repeat."""
    sides, arguments, _, *_ = flipped_label()
    return Pair(
        sides,
        arguments,
        reason="noise that is one of few vectors gives one of few releases, which are others on the other "
        "side: it is enough to make them all",
        statistic=repeats,
    )


@pair
def own_scale() -> Pair:
    """4,000 records, one with a large target. In the neighbour, it is at 0."""
    X = np.where(np.arange(4000) % 2, -1.0, 1.0)[:, None]
    y = 0.01 * X[:, 0]
    y[0] = 1.0
    return Pair(
        sides=_replace(X, y, 0, row=[0.0], label=0.0),
        arguments={"lam": 0.0, "bound": 1.0},
        reason="where targets are divided by the largest of them, it makes all others a hundredth",
    )


@pair
def least_eigenvalue() -> Pair:
    """One record at x = 1, and 100 at 0.001. In the neighbour, the first is at 0."""
    X = np.full((101, 1), 0.001)
    X[0] = 1
    return Pair(
        sides=_replace(X, np.ones(101, dtype=np.int8), 0, row=[0.0]),
        arguments={"lam": 0.0, "bound": 1.0},
        reason="X'X falls to a ten thousandth: what it scales without noise, weights, their noise or the "
        "length of a step, tells the two apart by the spread of releases, about 0 or about a start at 1",
        statistic=_of_weights(
            lambda W: {
                "size": -np.abs(W[:, 0]),
                "distance from size 1": -np.abs(np.abs(W[:, 0]) - 1),
            }
        ),
    )


@pair
def cancelled() -> Pair:
    """Two records at x = 1 whose targets cancel. In the neighbour, one is at 0."""
    return Pair(
        sides=_replace(np.ones((2, 1)), [1.0, -1.0], 1, row=[0.0], label=0.0),
        arguments={"lam": 0.0, "bound": 1.0},
        reason="X'y and every sum of clipped residuals move by the whole of what one record can, and X'X "
        "stays regular on both sides",
    )


@pair
def only_record() -> Pair:
    """One record at x = 1, in the neighbour at 0."""
    return Pair(
        sides=_replace(np.ones((1, 1)), [1.0], 0, row=[0.0], label=0.0),
        arguments={"lam": 0.0, "bound": 1.0},
        reason="without it X'X is 0: a program that fails there tells by its failure that there is none",
        statistic=answered,
    )


@pair
def new_axis() -> Pair:
    """20 records along each of 15 axes, and one along a 16th. In the neighbour, this one is at 0."""
    axes, copies = 16, 20
    X = np.vstack([np.repeat(np.eye(axes)[:-1], copies, axis=0), np.eye(axes)[-1:]])
    return Pair(
        sides=_replace(X, np.ones(len(X)), len(X) - 1, row=np.zeros(axes)),
        arguments={"lam": 0.0, "bound": 1.0},
        reason=f"the smallest positive eigenvalue of X'X is {copies} without the one record and 1 with it: "
        "the ridge that follows from it shrinks the weights along all other axes",
        statistic=_of_weights(lambda W: {"mean of the others": W[:, :-1].mean(axis=1)}),
    )


@pair
def one_batch_more() -> Pair:
    """129 tiny records. The neighbour has 128, which make two batches of 64."""
    X, y = np.full((129, 8), 1e-6), np.ones(129, dtype=np.int8)
    return Pair(
        sides=((X, y), (X[1:], y[1:])),
        arguments={"lam": 0.0, "bound": 1.0},
        reason="gradients are next to nothing, so that releases are noise: its size tells how many steps "
        "there were and what divided it",
        statistic=_of_weights(lambda W: {"size": np.linalg.norm(W, axis=1)}),
    )


@pair
def large_step() -> Pair:
    """One record at x = 1, and 128 at 0. In the neighbour, all are at 0."""
    X = np.zeros((129, 1))
    X[0] = 1
    return Pair(
        sides=_replace(X, np.ones(129, dtype=np.int8), 0, row=[0.0]),
        arguments={"lam": 0.0, "bound": 1.0},
        reason="only the one record has a gradient, which shifts every sum that it is in; n is the same",
    )


@pair
def starting_point() -> Pair:
    """1000 records around a circle, some on the wrong side. One label flips."""
    angle = 2 * math.pi * np.arange(1000) / 1000
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    return Pair(
        sides=_replace(X, np.where(X[:, 0] + 0.3 * np.sin(37 * angle) > 0, 1, -1), 0, label=-1),
        arguments={"lam": 0.01, "bound": 1.0},
        reason="a solver that starts from the minimiser without tilt and stops where its tolerance exceeds "
        "the tilt returns that start, which differs by far more than rounding between the two",
        statistic=distances(2),
    )


@pair
def curvature() -> Pair:
    """One record at x = 1, with n lambda = 0.01. In the neighbour, it is at 0."""
    return _curvature(0.01)


@pair
def curvature_strong() -> Pair:
    """`curvature` with n lambda = 1."""
    return _curvature(1.0)


def _curvature(n_lambda):
    return Pair(
        sides=_replace(np.array([[1.0]]), [1], 0, row=[0.0]),
        arguments={"lam": n_lambda, "bound": 1.0},
        reason="a record at 0 has no curvature, so the other side's Jacobian is larger by "
        f"1 + 1/(4 n lambda) = {1 + 1 / (4 * n_lambda):g} where the margin is 0",
        statistic=tilt_log_ratio,
        exact=tilt_loss_1d,
    )


@pair
def curvature_of_a_long_row() -> Pair:
    """One record at x = 100, with n lambda = 1. In the neighbour, it is at 0."""
    return Pair(
        sides=_replace(np.array([[100.0]]), [1], 0, row=[0.0]),
        arguments={"lam": 1.0, "bound": 100.0},
        reason="a record at 0 has no curvature, and one at 100 has 2500 where the margin is 0, beside a "
        "ridge of 1 or of what a mechanism adds",
        statistic=tilt_log_ratio,
        exact=tilt_loss_1d,
    )


@pair
def lone_short_record() -> Pair:
    """Among 1000 records at 0, with n lambda = 100, one at x = 1 turns to x = -1."""
    X = np.zeros((1000, 1))
    X[0] = 1
    return Pair(
        sides=_replace(X, np.ones(1000, dtype=np.int8), 0, row=[-1.0]),
        arguments={"lam": 0.1, "bound": 1.0},
        reason="only the one record has a slope, so that it moves a tilt by a half each way, and n lambda "
        "is 100: noise for a minimiser is a hundredth of what a tilt needs",
        statistic=_of_weights(lambda W: {"first": W[:, 0]}),
    )


@pair
def lone_row_of_zeros() -> Pair:
    """Among 1000 records at 0, with n lambda = 10, one at x = 1 turns to 0."""
    X = np.zeros((1000, 1))
    X[0] = 1
    return Pair(
        sides=_replace(X, np.ones(1000, dtype=np.int8), 0, row=[0.0]),
        arguments={"lam": 0.01, "bound": 1.0},
        reason="without a row, standard errors are those of the ridge alone, whatever the weights are",
        statistic=_of_weights(lambda W: {"last": -W[:, -1]}),
    )


@pair
def on_a_border() -> Pair:
    """One of 60 records is on the border of both halves of [-1, 1 + 1e-8]. In the neighbour, not."""
    X = np.linspace(-0.9, 0.9, 60)[:, None]
    X[0] = (-1 + (1 + 1e-8)) / 2
    return Pair(
        sides=_replace(X, np.linspace(-1, 1, 60), 0, row=[1 / 3]),
        arguments={"lam": 0.0, "bound": 1.0},
        reason="cells that include both ends count the record twice",
        statistic=_of_weights(lambda W: {"last": W[:, -1]}),
    )


@pair
def pulled() -> Pair:
    """One record at x = 1, and 60 that drive its margin far below 0.

    In the neighbour, the first is at 0.
    """
    X = np.full((61, 1), -0.5)
    X[0] = 1
    return Pair(
        sides=_replace(X, np.ones(61), 0, row=[0.0]),
        arguments={"lam": 2 / 61, "bound": 1.0},
        reason="the others keep the record's slope near 1, where it has no curvature. It shifts the "
        "tilt by nearly R from a record at 0, and the Jacobian hides nothing of that shift",
        statistic=tilt_log_ratio,
        exact=tilt_loss_1d,
    )


@pair
def whole_person() -> Pair:
    """All eight records of a person turn by 120 degrees, and 3000 others keep their slopes large."""
    X = np.zeros((3008, 2))
    X[:8], X[8:] = [math.sin(math.pi / 3), 0.5], [0, 1]
    turned = X * np.repeat([[-1, 1], [1, 1]], [8, 3000], axis=0)
    y = np.repeat([1, -1], [8, 3000])
    return Pair(
        sides=((X, y), (turned, y)),
        arguments={"lam": 32 / 3008, "bound": 1.0, "most": 8},
        reason="the records move the tilt together, by up to eight times as much as one record could",
        statistic=tilt_log_ratio,
    )


@pair
def one_hot() -> Pair:
    """One of 301 records with a number and one of three levels moves to the opposite number and level.

    The others keep both of its slopes near the largest.
    """
    X = np.zeros((301, 4))
    X[:, 0] = -0.5
    X[::2, 1], X[1::2, 2] = 1, 1
    X[0] = [1, 0, 0, 1]
    return Pair(
        sides=_replace(X, np.where(np.arange(301) % 2, -1, 1), 0, row=[-1, 0, 1, 0]),
        arguments={
            **{"lam": 0.02, "bound": math.sqrt(2)},
            **{"column_bounds": (1.0,) * 4, "blocks": ((1, 2, 3),)},
        },
        reason="the record is a vertex of box and hull on both sides, so a wrong norm shifts the tilt by "
        "more than is covered",
        statistic=tilt_log_ratio,
    )


@pair
def saturated_few() -> Pair:
    """`saturated` with 1000 records, for tilts."""
    sides, arguments = _saturated(np.ones(1), others=999, sine=0.5, lam=2 / 1000)
    return Pair(sides, arguments, SATURATED, tilt_log_ratio)


@pair
def lasso_jump() -> Pair:
    """999 equal records on the diagonal, and one that turns to another axis."""
    X = np.full((1000, 2), math.sqrt(0.5))
    X[0] = [1, 0]
    return Pair(
        sides=_replace(X, np.ones(1000), 0, row=[0, 1]),
        arguments={"lam": 0.1, "bound": 1.0},
        reason="the L1 penalty is indifferent between the axes, so one record of 1000 decides to which "
        "of them the minimiser jumps",
        statistic=distances(2),
        exact=shift_loss,
    )


@pair
def separable_circle() -> Pair:
    """20 records on a circle, in two separable classes, with a tiny penalty.

    One label flips, so the neighbour's classes are inseparable.
    """
    angle = 2 * math.pi * np.arange(20) / 20 + 0.1
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    return Pair(
        sides=_replace(X, np.where(X[:, 0] > 0, 1, -1), 0, label=-1),
        arguments={"lam": 1e-6, "bound": 1.0},
        reason="one side is separable, so that its minimiser is far away and first-order methods are slow "
        "to reach it: what is released where they fail would give the side away",
        statistic=distances(2),
        exact=shift_loss,
    )


@pair
def opposite_corner() -> Pair:
    """The label of the only record flips."""
    return Pair(
        sides=_replace(np.array([[1.0]]), [1], 0, label=-1),
        arguments={"lam": 1.0, "bound": 1.0},
        reason="everything that a single record on the bound can move is moved: sums, gradients and "
        "clipped fits turn their sign",
    )


def _lone(reach, others=99):
    """A record at `reach` whose label flips, and others at 0, which have no gradient."""
    X = np.zeros((others + 1, 1))
    X[0] = reach
    sides = _replace(X, np.ones(others + 1), 0, label=-1)
    return sides, {"lam": 1.0, "bound": float(reach)}


@pair
def outlier() -> Pair:
    """A record that outweighs 99 others, as unbounded norms allow."""
    return Pair(
        *_lone(1000),
        reason="the mean gradient is that of the one record, a hundredth of a thousand times its slope: "
        "clipped as a whole it has the largest norm, and turns around with the label",
    )


@pair
def lone_record() -> Pair:
    """One record at the bound of 1, and 99 at 0."""
    return Pair(
        *_lone(1),
        reason="the mean gradient is a hundredth of the one record's and turns around with its label: "
        "clipped as a whole, to a norm above that, it is not clipped at all",
    )


@pair
def opposite_class() -> Pair:
    """`opposite_corner` for softmax: the record changes from class 0 to class 1."""
    return Pair(
        sides=_replace(np.array([[1.0]]), [0], 0, label=1),
        arguments={"lam": 1.0, "bound": 1.0, "loss": "softmax", "classes": 2},
        reason="the only record's clipped gradient turns its sign: what one class loses the other gains",
    )


@pair
def pulled_class() -> Pair:
    """One record at x = 1, and 60 at -1/2, all of class 0 of 3. In the neighbour, the first is at 0."""
    X = np.full((61, 1), -0.5)
    X[0] = 1
    return Pair(
        sides=_replace(X, np.zeros(61), 0, row=[0.0]),
        arguments={"lam": 2 / 61, "bound": 1.0, "classes": 3},
        reason="the others keep the probability of the record's class near 0, so that the tilt alone "
        "decides which of two other classes it is taken for: both directions shift the tilt by nearly "
        "sqrt(2) R",
    )


def _unpenalised():
    X = np.zeros((400, 1))
    X[0] = 1
    sides = _replace(X, np.where(np.arange(400) % 2, -1, 1), 0, label=-1)
    return sides, {"lam": 0.1, "bound": 1.0}


@pair
def sum_regularised() -> Pair:
    """One of 400 labels flips; the loss is summed, not averaged."""
    return Pair(
        *_unpenalised(),
        reason="beside the summed loss one record moves its weight as if it were alone, whatever n is; "
        "the noise falls with n",
        statistic=distances(1),
        exact=shift_loss,
    )


@pair
def released_intercept() -> Pair:
    """The data of `sum_regularised`, for an intercept released without noise."""
    return Pair(
        *_unpenalised(),
        reason="the intercept is a function of the data without noise: one release tells the two apart",
        statistic=released_column(-1),
    )


@pair
def flipped_label() -> Pair:
    """The label of one of four records flips."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, -0.8], [-0.6, -0.8]])
    return Pair(
        sides=_replace(X, [1, -1, 1, -1], 0, label=-1),
        arguments={"lam": 1.0, "bound": 1.0},
        reason="one label of a row on the bound flips in a small set: a general test for mechanisms "
        "whose worst pair is not known",
    )


def _beside(row, other=None, label=None):
    X = np.array(
        [[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0.6, 0.8, 0], [0, 0.6, -0.8]]
    )
    sides = _replace(np.vstack([row, X]), [1, 1, -1, 1, -1, 1, -1, 1], 0, row=other, label=label)
    return sides, {"lam": 1.0, "bound": 1.0}


@pair
def turned_row() -> Pair:
    """One of eight records turns by a right angle."""
    return Pair(
        *_beside([1.0, 0, 0], other=[0, 1.0, 0]),
        reason="x x' moves by sqrt(2) R^2 in Frobenius norm if x turns by a right angle, farther than if "
        "it changes its sign or is removed",
    )


@pair
def reversed_row() -> Pair:
    """One of eight records changes its sign and keeps its label."""
    return Pair(
        *_beside([0.6, 0.0, 0.8], other=[-0.6, 0.0, -0.8]),
        reason="every sum over rows moves by twice the bound, with labels or without",
    )


@pair
def removed_row() -> Pair:
    """One of eight records becomes a row of zeros."""
    return Pair(
        *_beside([0.6, 0.0, 0.8], other=[0.0, 0, 0]),
        reason="a row of zeros has no gradient and no curvature, so code that divides by a norm or selects "
        "nonzero rows takes another branch",
    )


@pair
def last_of_its_class() -> Pair:
    """One of eight records has a unique label, and loses it."""
    (X, y), (X_other, _) = _beside([1.0, 0, 0])[0]
    y = np.ones_like(y)
    return Pair(
        sides=((X, np.where(np.arange(8) == 0, -1, y).astype(np.int8)), (X_other, y)),
        arguments={"lam": 1.0, "bound": 1.0},
        reason="code that reads the classes from the rows finds one on one side and two on the other",
    )


def _one_long(others):
    """A record at the bound, and shorter records at a tenth of it, in turn of both classes."""
    X = np.full((others + 1, 3), [0.06, 0.08, 0.0])
    X[0] *= 10
    return X, np.where(np.arange(others + 1) % 2, -1, 1), {"lam": 1.0, "bound": 1.0}


@pair
def shortened_row() -> Pair:
    """One of 100 records at a tenth of the bound is, on the first side, at the bound."""
    X, y, arguments = _one_long(99)
    return Pair(
        sides=_replace(X, y, 0, row=X[1]),
        arguments=arguments,
        reason="the longest row alone decides what is computed from the largest norm of the rows: noise of "
        "a scale that follows from it is ten times as large on one side as on the other",
    )


@pair
def left_out() -> Pair:
    """One of three records is at the bound, and the neighbour has the other two, at a tenth of it."""
    X, y, arguments = _one_long(2)
    y = y.astype(np.int8)
    return Pair(
        sides=((X, y), (X[1:], y[1:])),
        arguments=arguments,
        reason="the number of records and the largest norm are others on the other side, so noise of a "
        "scale that follows from either has another spread",
    )


def _replace(X, y, index, row=None, label=None):
    """((X, y), (X', y')) that differ in the row or label of the record at `index`.

    Integers in y are labels, floats targets.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    y = y if y.dtype.kind == "f" else y.astype(np.int8)
    other = X.copy(), y.copy()
    if row is not None:
        other[0][index] = row
    if label is not None:
        other[1][index] = label
    return (X, y), other
