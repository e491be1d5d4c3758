"""TukeyEM: a deep point among the least-squares fits of many parts of the rows.

Amin, Joseph, Ribero, Vassilvitskii (ICLR 2023). `dp.proofs.tukey` has the proof.
"""

import numpy as np

from dp.mechanisms import Mechanism, Release, register
from dp.options import Optional, Whole
from dp.proofs import tukey
from dp_privacy.errors import Refused

SINGULAR = 1e-13  # eigenvalues of X'X below this share of the largest count as 0
CHUNK = 2**22  # maximum number of model weights held at once


class ShellModel(Mechanism):
    """A point drawn by depth among m least-squares fits on disjoint random parts, if a test passes.

    If the test fails, the release has the status "refused" and weights of 0. A singular part gets
    the minimum-norm fit. The n mod m left-over rows are unused. As the proof requires, a part's fit
    depends only on its own rows, to the last bit (`_shortest_fits`).

    models: m, by default min(1000, n // d). With a smaller m, the test rarely passes; with a larger
    one, fits have fewer rows.
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
        """Return the test's noise scale, k^ if no k passes, and the rate: depth i has weight e^(rate i)."""
        raise NotImplementedError

    def _tested(self, volumes):
        """The log volumes that the test uses."""
        return volumes

    def _points(self, X, y, m, lam, draws, rng):
        """Models (draws, m, d) with each coordinate sorted. Uniform noise below 1e-10 avoids ties."""
        n, d = X.shape
        size = n // m
        points = np.empty((draws, m, d))
        for r in range(draws):
            rows = rng.permutation(n)[: m * size]
            A, b = X[rows].reshape(m, size, d), y[rows].reshape(m, size, 1)
            gram = A.transpose(0, 2, 1) @ A + size * lam * np.eye(d)
            moment = A.transpose(0, 2, 1) @ b
            points[r] = _shortest_fits(gram, moment)[..., 0]
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
            # No point can be drawn from an empty region. Data sets that are likely to pass the
            # test, and their neighbours, have no empty region.
            passed = (test > tukey.threshold(half, p.delta)) & (volumes[:, t - 1] > -np.inf)
            passed = np.flatnonzero(passed)
            if len(passed):
                drawn = self._draw(points[passed], volumes[passed], t, rate, rng)
                weights[start + passed] = drawn
        status = np.where(weights.any(axis=1), "ok", "refused")
        return Release(weights, status, {"models": m, "scale": scale})


def _shortest_fits(gram, moment):
    """The minimum-norm w with gram @ w = moment for each part, (m, d, 1), from (m, d, d) and (m, d, 1).

    All matrices go through the same steps, singular or not. If a singular one could raise an error,
    or change the algorithm for all, one record would change every fit. NumPy calls LAPACK once per
    matrix, on a copy.
    """
    values, vectors = np.linalg.eigh(gram)
    # The smallest normal float keeps reciprocals from overflowing.
    least = np.maximum(SINGULAR * values[:, -1:], np.finfo(float).tiny)
    positive = values > least
    inverse = np.where(positive, 1 / np.where(positive, values, 1.0), 0.0)
    return vectors @ (inverse[..., None] * (vectors.transpose(0, 2, 1) @ moment))


@register("tukey_em")
class TukeyEM(ShellModel):
    """TukeyEM as proved: the test's noise has scale 2/epsilon, and depth i has weight e^{epsilon i/4}.

    If no k satisfies the test's condition, the distance k^ is 0. It must not be -1, because a
    neighbour's k^ may be 1, and the proof allows a difference of at most 1.
    """

    # A noisy test decides whether it answers, as the guarantee says. If ties leave a region without
    # volume, it never answers.
    may_branch = ("_release", "_draw")

    def _plan(self, p):
        return 2 / p.epsilon, 0, p.epsilon / 4

    def _guarantee(self, n, d, p):
        return (
            f"a record changes one of {self._models(n, d, p)} models of a random partition, and with it "
            f"the test's distance by at most 1: whether there is an answer, which Laplace noise of scale "
            f"{2 / p.epsilon:.6g} on it decides, is {p.epsilon / 2:.6g}-DP; the draw "
            f"by depth is ({p.epsilon / 2:.6g}, {p.delta:g})-DP where it is likely"
        )
