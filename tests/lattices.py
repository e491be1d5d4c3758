"""Lattice releases of float rows, and their deterministic replay."""

import math

import numpy as np

from dp_audit.replay import CHOICE, CLOSE, EXCEEDS, HOLDS, Replay
from dp_privacy.accounting import gaussian_epsilon
from dp_release import lattice, models, rows, statistics


def from_floats(X: np.ndarray, y: np.ndarray, bound: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(V, y) for float rows, truncated to multiples of bound/rows.ONE and shortened to the public `bound`.

    A row with a non-finite number becomes zeros. y: labels -1 and 1, or floats in [-1, 1].
    """
    scaled = np.asarray(X, dtype=float) * (rows.ONE / bound)
    whole = np.isfinite(scaled).all(axis=1, keepdims=True)
    scaled = np.clip(np.where(whole, scaled, 0.0), -float(1 << 30), float(1 << 30))
    V = rows.shortened(np.trunc(scaled).astype(np.int64))
    y = np.asarray(y)
    if y.dtype.kind == "f":
        y = np.trunc(np.clip(np.nan_to_num(y), -1.0, 1.0) * rows.ONE).astype(np.int32)
    return V, y * whole[:, 0]


def of_release(plan: models.Plan, first: tuple, second: tuple, key: bytes = bytes(32)) -> Replay:
    """The replay of a plan on two data sets (V, y).

    Both releases have the same key, so their integers differ exactly as the values before noise do.
    Statistics are compared at the first release's weights. Tilted weights are not compared, because a tilt
    is not additive.
    """
    integers = [models.release(plan, *side, key).parts["weights"] for side in (first, second)]
    weights = models.Release(plan, {"weights": integers[0]}).floats("weights")
    point = statistics.within(weights, plan.longest)
    beside = [part for part in plan.noises if part != "weights"]
    values = [
        statistics.sums(
            beside, plan.problem, *rows.bounded(*side, plan.problem.loss.residual), point
        )
        for side in (first, second)
    ]
    moved = {
        part: [lattice.nearest(v[part].tolist(), plan.noises[part].step) for v in values]
        for part in beside
    }
    if plan.tilt is None:
        moved["weights"] = integers
    mus = [math.dist(*pair) / plan.noises[part].scale for part, pair in moved.items()]
    mu, most = math.hypot(*mus), float(lattice.together([plan.noises[part] for part in moved]))
    if mu > most * (1 + CLOSE):
        return Replay(EXCEEDS, f"this pair has mu = {mu:.6g}, where {most:.6g} is paid for", mu)
    if plan.tilt is not None:
        return Replay(CHOICE, f"a tilt; beside it, this pair has mu = {mu:.6g} of {most:.6g}", mu)
    epsilon = gaussian_epsilon(1 / mu, plan.delta) if mu else 0.0
    return Replay(HOLDS, f"this pair needs epsilon {epsilon:.6g}", mu, 0.0, epsilon)
