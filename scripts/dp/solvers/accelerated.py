"""Accelerated proximal gradient descent: slower than Newton's method, but converges on any data."""

import math
from collections.abc import Callable

import numpy as np


def steps(smooth: float, convex: float, norm: float, tolerance: float) -> int:
    """Number of steps of `proximal_descent` after which the next step ends at a certified point.

    norm: the norm of a subgradient s of the objective F at the start. There, F - F* and
    convex/2 ||w - w*||^2 are at most ||s||^2/(2 convex). So after k steps, with r = sqrt(convex/smooth),
    F - F* <= (1 - r)^k ||s||^2/convex (Beck, First-Order Methods in Optimization, 2017, theorem 10.42). A
    proximal gradient step moves w by at most sqrt(2 (F - F*)/smooth), to a point with a subgradient of norm
    at most 2 smooth times this length. So the norm is at most `tolerance` if
    F - F* <= tolerance^2/(8 smooth).
    """
    excess = 8 * smooth / convex * (norm / tolerance) ** 2
    return math.ceil(math.sqrt(smooth / convex) * math.log(max(excess, 1.0)))


def proximal_descent(
    gradient: Callable,
    smooth: float,
    convex: float,
    start: np.ndarray,
    limit: int,
    attempt: Callable,
    proximal: Callable = lambda w: w,
) -> None:
    """Descend from `start` on a function whose smooth part has curvatures in [convex, smooth].

    gradient: of the smooth part. proximal: the proximal map of the other part divided by `smooth`.
    attempt(w) tries a faster method from w. If it returns True, the descent ends. Attempts become less
    frequent; the last is after `limit` steps.
    """
    root = math.sqrt(convex / smooth)
    previous, w, due = start, start, 0
    for step in range(limit + 1):
        if step in (due, limit):
            if attempt(w):
                return
            due = max(16, 2 * step)
        ahead = w + (1 - root) / (1 + root) * (w - previous)
        previous, w = w, proximal(ahead - gradient(ahead) / smooth)
