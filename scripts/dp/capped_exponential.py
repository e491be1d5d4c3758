"""The convex part of Poisson regression's loss, with rates capped at a public number."""

from dataclasses import dataclass

import numpy as np

from dp import losses


@dataclass(frozen=True)
class CappedExponential(losses.MarginLoss):
    """h(z) = e^s for s = offset + z <= 0, and 1 + s above: 0 <= h' <= 1 and 0 <= h'' <= 1.

    Let a count be v M and its rate e^s M, with the public maximum M. Then h(z) - v s is the negative
    Poisson log-likelihood divided by M, up to a constant. For rates above M, h' stays 1, so slopes are
    bounded. `offset` is at most 0. h'' jumps at s = 0, where `curvature` is 1.

    Callers set all labels to 1, and pass -v s in the linear term of `dp.solvers.minimise`.
    """

    offset: float = 0.0

    name = "capped_exponential"
    kappa = 1.0
    c = 1.0

    def value(self, z: float | np.ndarray) -> float | np.ndarray:
        score = np.asarray(z, dtype=float) + self.offset
        return np.exp(np.minimum(score, 0.0)) + np.maximum(score, 0.0)

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z += self.offset
        below = z <= 0
        np.minimum(z, 0.0, out=z)
        np.exp(z, out=z)
        return z, z * below
