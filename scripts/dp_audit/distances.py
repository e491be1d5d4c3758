"""How far one record moves values before noise: the comparison of two tapes."""

import math

import numpy as np

from dp.noise import l2_laplace
from dp_audit.recorder import LAWS, Tape

__all__ = ["CLOSE", "Distances", "sizes"]

CLOSE = 1e-9  # relative tolerance for sums computed in a different order


def sizes(shifts: dict[str, np.ndarray], vectors: list[tuple[int, int]]) -> tuple[float, float]:
    """mu and pure of `dp_audit.replay.Replay` for shifts in units of noise, by law.

    vectors: as of `Tape`.
    """
    pure = float(np.abs(shifts["laplace"]).sum())
    pure += sum(float(np.linalg.norm(shifts["l2_laplace"][start:stop])) for start, stop in vectors)
    return float(np.linalg.norm(shifts["gaussian"])), pure


class Distances:
    """Distances between two runs' values before noise, in units of noise scales: mu and pure of a `Replay`.

    problem: a sentence, or "" for none. Two values that share a draw must move equally, because their
    difference has no noise. scaled: whether a scale of noise differs between the runs.
    """

    def __init__(self, first: Tape, second: Tape) -> None:
        self.problem, self.vectors = "", first.vectors
        self.shifts = {law: np.full(first.count, np.nan) for law in LAWS}
        # The second run's scale in units of the first's.
        self.ratios = {law: np.ones(first.count) for law in LAWS}
        for one, two in zip(first.steps, second.steps, strict=True):
            self._step(one, two)
        known = {law: np.nan_to_num(shift, posinf=math.inf) for law, shift in self.shifts.items()}
        self.shifts = known
        self.mu, self.pure = sizes(known, first.vectors)
        self.scaled = any((ratio != 1).any() for ratio in self.ratios.values())

    def _step(self, one, two):
        if not np.array_equal(one.draws, two.draws):
            self.problem = "which draws are on which values depends on the rows"
            return
        if ((one.scale == 0) != (two.scale == 0)).any():
            self.problem = "whether there is noise depends on the rows"
            return
        alike = (one.value == two.value) | (np.isnan(one.value) & np.isnan(two.value))
        moved = np.subtract(two.value, one.value, out=np.zeros(alike.shape), where=~alike)
        live = one.live
        if not np.isfinite(moved).all():
            self.problem = "a value before noise is not a finite number"
            return
        # Differences within the rounding of a sum count as 0.
        size = np.where(alike, 0.0, np.maximum(np.abs(one.value), np.abs(two.value)))
        moved = np.where(np.abs(moved) <= 1e-12 * size.max(initial=0.0), 0.0, moved)
        if (moved[~live] != 0).any():
            self.problem = "a value that one record moves has noise of scale 0"
            return
        draws, scale = one.draws[live], one.scale[live]
        if not len(draws):
            return
        if not np.allclose(scale, two.scale[live], rtol=CLOSE, atol=0.0):
            self.ratios[one.law][draws] = np.abs(two.scale[live] / scale)
        shift = moved[live] / scale
        order = np.argsort(draws, kind="stable")
        numbers, start = np.unique(draws[order], return_index=True)
        largest = np.maximum.reduceat(shift[order], start)
        least = np.minimum.reduceat(shift[order], start)
        before = self.shifts[one.law][numbers]
        largest, least = np.fmax(largest, before), np.fmin(least, before)
        # Shifts are in units of the noise. A relative difference of rounding matters only for large ones.
        if (largest - least > 1e-6 * np.maximum(1.0, np.abs(largest))).any():
            self.problem = "one draw is on two values that move differently"
        self.shifts[one.law][numbers] = largest

    def scales_tell(self, epsilon: float, delta: float) -> bool:
        """Whether noise of different scales tells the runs apart by more than (epsilon, delta).

        With delta = 0, it does, because tails with different scales have an unbounded ratio. Otherwise, the
        least delta at epsilon, the mean of (1 - e^(epsilon - loss))+, is estimated from simulated noise.
        It must exceed delta by five standard errors.
        """
        if delta == 0 or math.isinf(epsilon):
            return math.isfinite(epsilon)
        first, second = self._simulated_losses()
        for loss in (first, -second):
            beyond = -np.expm1(np.minimum(epsilon - loss, 0.0))
            error = 5 * beyond.std() / math.sqrt(len(loss))
            if (beyond > 0).sum() >= 100 and beyond.mean() - error > delta:
                return True
        return False

    def _simulated_losses(self):
        """Privacy losses (2, draws) of simulated noise of the first run, and of the second."""
        moved = {law: (self.shifts[law] != 0) | (self.ratios[law] != 1) for law in LAWS}
        rng = np.random.default_rng(0)
        size = int(min(1_000_000, max(2_000, 4e6 / sum(map(np.sum, moved.values())))))
        losses = np.zeros((2, size))
        for law in ("gaussian", "laplace"):
            at = moved[law]
            shift, ratio = self.shifts[law][at], self.ratios[law][at]
            draw = rng.normal if law == "gaussian" else rng.laplace
            cost = (lambda z: z**2 / 2) if law == "gaussian" else np.abs
            unit = [draw(size=(size, len(shift))) for _ in range(2)]
            for k, z in enumerate((unit[0], shift + ratio * unit[1])):
                loss = cost((z - shift) / ratio) + np.log(ratio) - cost(z)
                losses[k] += loss.sum(axis=1)
        for start, stop in self.vectors:
            shift, ratio = (each["l2_laplace"][start:stop] for each in (self.shifts, self.ratios))
            if not moved["l2_laplace"][start:stop].any():
                continue
            unit = [l2_laplace(stop - start, 1.0, size, rng) for _ in range(2)]
            for k, z in enumerate((unit[0], shift + ratio * unit[1])):
                losses[k] += np.linalg.norm((z - shift) / ratio, axis=1) - np.linalg.norm(z, axis=1)
                losses[k] += np.log(ratio).sum()
        return losses
