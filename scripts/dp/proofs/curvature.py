"""How a record's curvature depends on its slope, for proofs about tilted minimisers.

A record with vector v (y x for classes, x for numbers and counts) has the gradient -u k v, with a bound k
on slopes and the unit slope u, and the Hessian at most g(u) v v':

    logistic          k = 1;              u in (0, 1),   g = u (1-u)
    clipped_logistic  slopes cut at k;    u in (0, 1],   g = k u (1 - k u) below the cap, 0 at it
    log_cosh          k = tau;            u in (-1, 1),  g = 1 - u^2
    huber             k = tau;            u in [-1, 1],  g = 1
    counts            k = 1;              g = 1, and slopes of an interval of length 1 that contains 0

A record shorter than R, of norm c R, has c u in the place of u, as g(u) c^2 <= g(c u).
"""

import math

import numpy as np

# How often the divergence of an addition is counted: once if slopes have one sign, twice if they have two.
# Those of counts have two, but count once (`dp.proofs.counts_tilt`).
SIGNS = {"logistic": 1, "clipped_logistic": 1, "log_cosh": 2, "huber": 2, "counts": 1}


class Curvature:
    """g(u) = c0 + c1 u + c2 u^2 of a record's unit slope u, times r = R^2/Lambda.

    signs: from `SIGNS`. tangents: pairs (J, t) with log(1 + g(u) r) <= J + (1 - u) t for u in [0, 1]; the
    first one touches at u = 1, and the second one is flat. So the first J is that of the largest slope,
    and the second is the maximum. rise: max(0, g(0) - g(1)) r/(1 + g(1) r).
    """

    def __init__(self, loss: str, r: float, slope: float | None = None):
        if loss not in SIGNS:
            raise ValueError(f"a tilt is proven for {', '.join(SIGNS)}, not {loss!r}")
        if loss == "clipped_logistic" and slope is None:
            raise ValueError("clipped logistic loss needs its largest slope")
        slope = 1.0 if slope is None else slope
        if not (0 < r < math.inf and slope > 0):
            raise ValueError(f"needs a finite r > 0 and a slope > 0, not {r} and {slope}")
        if loss == "clipped_logistic" and slope >= 1:
            loss = "logistic"
        self.signs = SIGNS[loss]
        self.r = r
        self.c0, self.c1, self.c2 = {
            "logistic": (0.0, 1.0, -1.0),
            "clipped_logistic": (0.0, slope, -slope * slope),
            "log_cosh": (1.0, 0.0, -1.0),
            "huber": (1.0, 0.0, 0.0),
            "counts": (1.0, 0.0, 0.0),
        }[loss]
        at_cap = 1 + self.at(1.0) * r
        rising = self.c1 + 2 * self.c2 >= 0  # g grows up to the largest slope
        peak = 1.0 if rising else self.c1 / (-2 * self.c2)
        self.tangents = [
            (math.log1p(self.at(1.0) * r), max(0.0, -(self.c1 + 2 * self.c2) * r / at_cap)),
            (math.log1p(self.at(peak) * r), 0.0),
        ]
        self.rise = max(0.0, float(self.at(0.0) - self.at(1.0))) * r / at_cap

    def at(self, u: float | np.ndarray) -> float | np.ndarray:
        return np.maximum(self.c0 + u * (self.c1 + u * self.c2), 0.0)

    def kinks(self) -> tuple[float, float]:
        """The x between which the maximum of `largest` lies inside (0, 1)."""
        at_zero, at_cap = (1 + self.at(u) * self.r for u in (0.0, 1.0))
        return -self.c1 * self.r / at_zero, -(self.c1 + 2 * self.c2) * self.r / at_cap

    def largest(self, x: float | np.ndarray) -> float | np.ndarray:
        """f(x): the maximum over u in [0, 1] of u x + log(1 + g(u) r), elementwise.

        The function is concave in u. Its derivative vanishes where x (1/r + g(u)) + g'(u) = 0.
        """
        x = np.asarray(x, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            A, B = x * self.c2, x * self.c1 + 2 * self.c2
            C = x * (1 / self.r + self.c0) + self.c1
            root = np.sqrt(np.maximum(B * B - 4 * A * C, 0.0))
            # Both roots, in the form that does not cancel: q/A, and C/q, as their product is C/A.
            q = -(B + np.copysign(root, B)) / 2
            roots = q / A, C / q
        best = np.maximum(math.log1p(self.c0 * self.r), x + self.tangents[0][0])  # at u = 0 and 1
        for u in roots:
            u = np.fmin(np.fmax(u, 0.0), 1.0)  # 0 if there is no such root
            best = np.maximum(best, u * x + np.log1p(self.at(u) * self.r))
        return best
