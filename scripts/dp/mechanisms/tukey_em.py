"""TukeyEM: a point deep among the least-squares fits of many parts of the rows. It needs no bounds.

Amin, Joseph, Ribero, Vassilvitskii (ICLR 2023): `dp.privacy.tukey` has the mathematics and the proof.
"""

import math

import numpy as np

from dp.accounting import none
from dp.errors import Refused
from dp.mechanisms import Mechanism, Release, register
from dp.mechanisms.options import Optional, Whole
from dp.privacy import tukey

WELL = 1e10  # matrices with smaller condition numbers have an inverse with some correct digits
CHUNK = 2**22  # most numbers in the models of all draws that are held together


class _TukeyEM(Mechanism):
    """m least-squares fits on disjoint parts of a random partition; then the test; then a draw by depth.

    models: m, by default min(1000, n // d). With fewer models, the test hardly ever passes; with more, each
    fit has fewer rows. If the test fails, the draw has the status "refused" and weights 0, which is part of
    the release. If X'X of a part is singular, its shortest fit is taken. The rows that remain when n is
    divided by m are not used.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True
    options = {"models": Optional(Whole())}

    def _check_together(self, n, d, p):
        if p.models is not None and p.models * d > n:
            raise Refused(
                f"{p.models} models of {d} rows each need more than {n} rows: give fewer models"
            )

    def _models(self, n, d, p):
        return p.models or max(1, min(1000, n // d))

    def _plan(self, p):
        """(scale of the test's noise; k^ if no k satisfies the test; rate, for weights e^(rate i))."""
        raise NotImplementedError

    def _tested(self, volumes):
        """The depths that the test looks at."""
        return volumes

    def _points(self, X, y, m, lam, draws, rng):
        """Models (draws, m, d), sorted per coordinate. Uniform noise below 1e-10 avoids ties."""
        n, d = X.shape
        size = n // m
        points = np.empty((draws, m, d))
        for r in range(draws):
            rows = rng.permutation(n)[: m * size]
            A, b = X[rows].reshape(m, size, d), y[rows].reshape(m, size, 1)
            gram = A.transpose(0, 2, 1) @ A + size * lam * np.eye(d)
            moment = A.transpose(0, 2, 1) @ b
            points[r] = (_inverses(gram) @ moment)[..., 0]
        points += 1e-10 * rng.random(points.shape)
        points.sort(axis=1)
        return points

    def _draw(self, points, volumes, t, rate, rng):
        depth = t + tukey.choose(tukey.log_shells(volumes, t, rate), rng)
        return tukey.shell_point(points, depth, rng)

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        m = self._models(n, d, p)
        t, half = m // 4, p.epsilon / 2
        scale, none, rate = self._plan(p)
        weights = np.zeros((draws, d))
        chunk = max(1, CHUNK // (m * d))
        for start in range(0, draws if t > 1 else 0, chunk):
            points = self._points(X, y, m, p.lam, min(chunk, draws - start), rng)
            volumes = tukey.log_volumes(points)
            test = tukey.distance(self._tested(volumes), t, half, p.delta, none)
            test = test + rng.laplace(scale=scale, size=len(points))
            # An empty region cannot be drawn from. If a data set is likely to be answered, neither it nor
            # a neighbour has one.
            passed = (test > tukey.threshold(half, p.delta)) & (volumes[:, t - 1] > -np.inf)
            passed = np.flatnonzero(passed)
            if len(passed):
                found = self._draw(points[passed], volumes[passed], t, rate, rng)
                weights[start + passed] = found
        status = np.where(weights.any(axis=1), "ok", "refused")
        return Release(weights, status, {"models": m, "scale": scale})


def _inverses(gram):
    """Inverses of symmetric matrices (m, d, d); pseudoinverses of singular ones, which take longer."""
    try:
        found = np.linalg.inv(gram)
    except np.linalg.LinAlgError:  # one of them is exactly singular
        found = np.full_like(gram, np.inf)
    condition = np.linalg.norm(gram, axis=(1, 2)) * np.linalg.norm(found, axis=(1, 2))
    singular = ~(condition < WELL)
    found[singular] = np.linalg.pinv(gram[singular], rcond=1e-13, hermitian=True)
    return found


@register("tukey_em")
class TukeyEM(_TukeyEM):
    """TukeyEM as proved: the test's noise has scale 2/epsilon, and depth i the weight e^{epsilon i/4}.

    If no k satisfies the test's condition, k^ is 0, as the proof needs it. It is not -1, because a
    neighbour may have a k^ of 1, and k^ may differ by at most 1 between neighbours.
    """

    def _plan(self, p):
        return 2 / p.epsilon, 0, p.epsilon / 4

    def _guarantee(self, n, d, p):
        """(epsilon, delta)-DP: half of epsilon for the test, half for the draw."""
        return (
            f"a record changes one of {self._models(n, d, p)} models of a random partition, and with it "
            f"the test's distance by at most 1: whether there is an answer, which Laplace noise of scale "
            f"{2 / p.epsilon:.6g} on it decides, is {p.epsilon / 2:.6g}-DP; the draw "
            f"by depth is ({p.epsilon / 2:.6g}, {p.delta:g})-DP where it is likely"
        )


@register("tukey_em_released")
class TukeyEMReleased(_TukeyEM):
    """TukeyEM as its authors' program does it, described from its facts and written anew.

    The test's noise has scale epsilon/2 in place of 2/epsilon. The test leaves the deepest depth out, and
    its distance is -1 if no k satisfies the condition. Depth i has the weight e^{epsilon i/2}. A depth i is
    drawn, but then the point comes from the shell of depth i + 1. It is not uniform in that shell: the
    lengths after the first outside coordinate are those of R_{i+2}.
    """

    def _plan(self, p):
        return p.epsilon / 2, -1, p.epsilon / 2

    def _guarantee(self, n, d, p):
        """No finite epsilon: see the pair `tukey_shell` of `dp.privacy.pairs`."""
        reason = (
            f"where all shells but one are thin, the wide one is drawn from with probability "
            f"{1 / (1 + math.exp(p.epsilon / 2)):.3g} on one data set and hardly ever on a neighbour, "
            f"because the point is of the shell after the one whose depth was drawn; and whether there is "
            f"an answer is no better than {2 / p.epsilon:.6g}-DP, where the proof needs {p.epsilon / 2:.6g}"
        )
        return none(p.epsilon, reason)

    def _tested(self, volumes):
        return volumes[:, :-1]

    def _draw(self, points, volumes, t, rate, rng):
        shells = tukey.log_shells(volumes, t, rate)[:, :-1]  # the deepest has none below it
        depth = t + tukey.choose(shells, rng)
        return tukey.shell_point(points, depth + 1, rng, inner_right=True)
