"""A minimiser with a certified gradient on every data set, and the cost of its release on a lattice.

The objective is J(w) = mean of n losses + lam/2 ||w||^2 + B.w/n. Rows are multiples of 2^-20 with a norm of
at most 1 (`dp_release.rows`), and n and lam > 0 are public. kappa and c bound |l'| and l'', so J has
curvatures in [lam, c + lam]. u = 2^-53. `lattice` defines N, rnd and gamma; `dp_release` states P1 to P4.

THEOREM 1. Let h and g be powers of two, sigma in hZ, s in gZ, Lambda = n lam. (1) Draw B ~ N_h(sigma^2)^d.
(2) By any method find a w with ||grad J(w)|| <= tau. (3) Release rnd_g(w) + N_g(s^2)^d. Let step 2 succeed
on every data set whenever ||B|| <= T, and let ||B|| > T have a probability of at most beta. Then for every
epsilon >= 0 the release is (epsilon, delta + (1 + e^epsilon) eta)-DP under replace-one, where delta is
`gaussian_tilt.composed_delta`(epsilon, kappa/sigma, D/s, 1/Lambda),

    D = 2 tau/lam + h sqrt(d)/Lambda + g sqrt(d),   eta = d (gamma(sigma/h) + gamma(s/g)) + beta.

Proof. Consider the release with b ~ N(0, sigma^2 I), B = rnd_h(b), the exact minimiser in place of w where
||B|| > T, and the noise rnd_g(N(0, s^2 I)). (i) The minimiser w*(b) has the profile proven in
`gaussian_tilt`. (ii) Given the data, b and B are functions of w*(b), and so is w, up to the solver's
randomness. By strong convexity ||w*(b) - w*(B)|| <= ||b - B||/Lambda <= h sqrt(d)/(2 Lambda), and
||w - w*(B)|| <= tau/lam. So C = rnd_g(w) is within D/2 of w*(b) on every data set: given w*,
C + N(0, s^2 I) is D/s-GDP, as in `lattice`'s lemma 2. (iii) Adaptive composition gives delta for w*(b) and
C + N(0, s^2 I) together, and rounding is post-processing. (iv) By lemma 1 the program's law is within eta
of this release's on every data set (`lattice.failure`).

Without output noise there is no guarantee: the minimisers of neighbouring data sets lie on nearly
disjoint sets of points.

THE CERTIFICATE trusts no solver. `gradient` evaluates grad J at an exact sum hi + lo of two vectors of
floats. With X = v 2^-20 and v integers:

- hi = k q with integers k, ||k|| < 2^33, and ||v|| <= 2^20. All partial sums of v.k are integers below
  2^53, so X hi is *exact* in any order of summation. |lo_j| <= q/2 and q <= 2^-31 ||w||, so the error of X
  lo is at most (d+2) u sqrt(d) q/2. X hi + X lo is rounded once, with a relative error of u. |score| is
  at most |z| + 1, where z is the loss's argument (a margin or residual).
- The slope, in units of kappa, has at most ten roundings (P2: 8 u for exp or tanh). |z| l''(z) is at most
  |l'(z)| for log-cosh, and 0.3 for logistic loss, so z's relative error adds less than 2 u. So the slope l'
  is within 12 u kappa + c u (1 + (d+2) sqrt(d) 2^-32 ||w||). A row's weight in [0, 1], if it has one
  (`dp_release.persons`), is a multiple of 2^-20: the product is rounded once more, which adds u kappa.
- A slope is the sum of a multiple of 2^-21 and a remainder of at most 2^-22. In blocks of 2^11 rows, sums
  of products of the multiples are integers below 2^53 in units of 2^-41, so they are exact; the remainder's
  error is (2^11 + 2) 2^-22 u per row. `math.fsum` adds block sums with one rounding.
- Rounding the mean, the factor kappa and three additions adds 6 u kappa, 6 u lam ||w|| and 5 u T/n.

So with t >= ||w|| the evaluated gradient is within

    rho(t) = 1.02 u (20 kappa + 2 c (1 + (d+2) sqrt(d) 2^-32 t) + 6 lam t + 5 T/n) + 1e-290

of the true gradient. This bound does not grow with n. (X lo and the remainders need P1, and all sums need
P3. 1e-290 covers subnormal results.) `math.hypot` computes norms. A point with the evaluated gradient g is
certified if ||g|| (1 + 1e-12) + rho(||w||) <= tau.

AN OFFSET o, |o| <= O, of all scores (`dp_release.rate`; logistic loss alone) is added to X hi + X lo with
one more rounding. The first rounding is then up to u (|z| + O), the second up to u |z|. As |z| l'' <= 0.3,
both stay within the 12 u, but for c u O: rho(t) has 1 + O in place of the 1 in brackets. A row's loss at
w = 0 is at most l(-O), which takes the place of l(0) in lemma 3.

LEMMA 3 (descent reaches a certificate). Let m = ceil(sqrt((c + lam)/lam)), L = lam m^2, theta = 1/m, and
g(y) a gradient with an error of at most rho. From x = v = 0, repeat

    y = (m x + v)/(m + 1);   x' = y - g/L;   v' = ((m - 1) v + y)/m - m g/L.

Let F = J - min J and P = F(x) + lam/2 ||v - w*||^2. After K = ceil(2.1 m ln(P_0 lam/(8 rho^2))) + 1 steps
or more, P <= 8.2 rho^2/lam.
Proof. With e the error and p = ((m - 1) v + y)/m: F(x') <= F(y) - ||g||^2/(2L) + e.g/L, because c + lam
<= L. ||v' - w*||^2 lam/2 = lam/2 ||p - w*||^2 - theta g.(p - w*) + ||g||^2/(2L). The squares cancel.
Since theta (p - w*) = (1 - theta)(y - x) + theta (y - w*), convexity, and strong convexity towards w*,
give

    P' <= (1 - theta) P + e.(g/L - theta (p - w*)) = (1 - theta) P - theta e.(v' - w*)
       <= (1 - theta) P + theta rho sqrt(2 P'/lam).

If P' >= 8 rho^2/lam, then the last term is at most theta P'/2, so P' <= (1 - theta/2) P. If P is below
8 rho^2/lam, so is P'. x, y and v are integers in units of 2^-96, and floor divisions move them by at most
sqrt(d) 2^-96; a move of y acts like a move of v that is m + 1 times as large. Together these moves act like
a further gradient error of 4 L sqrt(d) 2^-96. `effort` adds it to rho; 2.1 and 8.2 leave room for it.

At such an x, ||grad J||^2 <= 2 L F <= 16.4 m^2 rho^2. So the certificate is met if tau >= (4.1 m + 3)
rho. All iterates stay within sqrt(2 P_0/lam) of w*. J(0) <= l(0) and l >= 0 give ||w*|| <= W = (2 T/n +
sqrt(2 lam l(0)))/lam, F(0) <= l(0) + (T/n)^2/(2 lam) and P_0 <= lam W^2. So iterates are within 2.5 W,
and rho is rho(2.5 W). Descent may instead start from a solver's point whose gradient norm is at most G
<= lam W: there P <= G^2/lam, and the same bounds hold.
"""

import math
import warnings
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.offset import Offset
from dp.rows import slices
from dp.solvers.newton import minimise
from dp_privacy.errors import Refused
from dp_release import lattice
from dp_release.draws import Stream

U = 2.0**-53
BLOCK = 2048  # rows of a block, within which sums of rounded slopes are exact
FIXED = 96  # fractional bits of descent's iterates
LONGEST = 10**14  # maximum count of numbers that a descent may read; reading them takes hours
NEWTON = 200  # points that Newton's method tries on weighted rows, before descent
EVERY = 50  # steps of descent between certificate checks
REACH = Fraction(10_954_452, 10**6)  # above sqrt(120): see `dp.noise.gaussian_reach`


class Problem(NamedTuple):
    """The public part of an objective. pull: T/n >= ||B||/n. most: O, 0 without an offset."""

    n: int
    d: int
    lam: float
    loss: losses.MarginLoss
    pull: float = 0.0
    most: float = 0.0

    @property
    def longest(self) -> float:
        """W >= ||minimiser||, rounded up."""
        at_zero = float(self.loss.value(-self.most)) if self.most else self.loss.at_zero()
        inner = math.sqrt(2 * self.lam * at_zero)
        return (2 * self.pull + inner) / self.lam * (1 + 1e-9)

    def low(self, size: float) -> float:
        """The module docstring's bound on the error of X lo, in units of u, at a point of norm `size`."""
        return (self.d + 2) * math.sqrt(self.d) * 2.0**-32 * size

    def rounding(self, size: float) -> float:
        """rho(size) of the module docstring."""
        kappa, c, low = self.loss.kappa, self.loss.c, self.low(size)
        total = 20 * kappa + 2 * c * (1 + low + self.most) + 6 * self.lam * size + 5 * self.pull
        return 1.02 * U * total + 1e-290


class Effort(NamedTuple):
    """The numbers m and K (`steps`) of lemma 3. least: the smallest tolerance that descent guarantees."""

    m: int
    steps: int
    least: float


def effort(problem: Problem) -> Effort:
    """`Effort` from public numbers. Raises `Refused` if descent could take too long or numbers overflow."""
    lam, c = Fraction(problem.lam), Fraction(problem.loss.c)
    m = math.isqrt(math.ceil((c + lam) / lam) - 1) + 1
    smooth, size = problem.lam * m * m, problem.longest
    if not (size < 1e100 and smooth < 1e100):
        raise Refused("numbers so large may overflow: give a larger lambda")
    digits = 5 * 2.0**-FIXED + 2.5 * size * 2.0**-84  # rounding of iterates, and of lo in `split`
    rho = problem.rounding(2.5 * size) + smooth * math.sqrt(problem.d) * digits
    ratio = (problem.lam * size / rho) ** 2 / 8
    steps = math.ceil(2.1 * m * math.log(max(ratio, 1.0)) * (1 + 1e-9)) + 1
    if steps * problem.n * problem.d > LONGEST:
        raise Refused(
            f"at n = {problem.n} and lambda = {problem.lam:g}, a descent that succeeds on every data set "
            f"could take {steps:,} passes over the rows: give a larger lambda"
        )
    return Effort(m, steps, (4.1 * m + 3) * rho * (1 + 1e-9))


def split(point: list[Fraction] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(hi, lo) of the module docstring for a point, with lo rounded to floats."""
    first = np.array([float(value) for value in point])
    size = math.hypot(*first)
    if size < 1e-200 or not math.isfinite(size):  # scores at such a small point are far below rho
        return first, np.zeros_like(first)
    unit = 2.0 ** (math.frexp(size)[1] - 32)
    hi = np.rint(first / unit) * unit
    lo = [float(Fraction(value) - Fraction(high)) for value, high in zip(point, hi, strict=True)]
    return hi, np.array(lo)


def unit_slopes(loss: losses.MarginLoss, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The derivatives of rows' losses by their scores, (rows,), in units of kappa, so in [-1, 1]."""
    z = loss.arguments(scores, y)
    if loss.residual:
        return np.tanh(z * (1 / loss.tau))
    with np.errstate(over="ignore"):
        return -y / (1 + np.exp(z))


def gradient(
    problem: Problem,
    X: np.ndarray,
    y: np.ndarray,
    hi: np.ndarray,
    lo: np.ndarray,
    pull: np.ndarray,
    shares: np.ndarray | None = None,
    offset: float = 0.0,
) -> np.ndarray:
    """The gradient at hi + lo, up to `Problem.rounding`.

    pull: B/n. shares: weights (n,) of rows, or None. offset: of all scores.
    """
    point, parts = np.stack([hi, lo], axis=1), []
    for rows in slices(problem.n, BLOCK):
        block = X[rows].astype(float)
        scores = block @ point
        slope = unit_slopes(problem.loss, scores[:, 0] + scores[:, 1] + offset, y[rows])
        if shares is not None:
            slope = slope * shares[rows]
        first = np.rint(slope * 2.0**21) * 2.0**-21
        parts.append(block.T @ np.stack([first, slope - first], axis=1))
    sums = np.concatenate(parts, axis=1)
    mean = np.array([math.fsum(row) for row in sums]) / problem.n
    mean = mean * problem.loss.kappa + problem.lam * hi
    return mean + problem.lam * lo + pull


def certified(problem: Problem, g: np.ndarray, size: float, tolerance: float) -> bool:
    """Whether the true gradient's norm is at most `tolerance`. g: evaluated at a point of norm `size`."""
    norm = math.hypot(*g) * (1 + 1e-12)
    return norm + problem.rounding(size * (1 + 1e-12)) <= tolerance * (1 - 1e-15)


def descend(
    problem: Problem,
    X: np.ndarray,
    y: np.ndarray,
    pull: np.ndarray,
    tolerance: float,
    start: np.ndarray | None = None,
    shares: np.ndarray | None = None,
    offset: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, int]:
    """(hi, lo, steps) of a certified point, by lemma 3.

    start: None for 0. shares, offset: as for `gradient`.
    """
    m, limit, _ = effort(problem)
    lam = Fraction(problem.lam)
    # g over/under is the step g/L in units of 2^-FIXED, if g is in units of 2^-(FIXED + 64).
    over, under = lam.denominator, lam.numerator * m * m << 64
    x = _fixed(np.zeros(problem.d) if start is None else start, FIXED)
    v = x.copy()
    for step in range(limit + 1):
        if step % EVERY == 0 or step == limit:
            hi, lo, size = _floats(x)
            g = gradient(problem, X, y, hi, lo, pull, shares, offset)
            if certified(problem, g, size, tolerance):
                return hi, lo, step
        ahead = (m * x + v) // (m + 1)
        hi, lo, _ = _floats(ahead)
        g = _fixed(gradient(problem, X, y, hi, lo, pull, shares, offset), FIXED + 64)
        g = g * over // under
        x, v = ahead - g, ((m - 1) * v + ahead) // m - m * g
    raise RuntimeError("no certificate after the proven number of steps: P1 to P4 do not hold here")


def _fixed(values, digits):
    """Floats as Python integers in units of 2^-digits, rounded towards 0."""
    return np.array([int(math.ldexp(value, digits)) for value in values.tolist()], dtype=object)


def _floats(x):
    """(hi, lo, norm) of a point in units of 2^-FIXED."""
    hi, lo = split([Fraction(int(value), 1 << FIXED) for value in x])
    return hi, lo, math.hypot(*hi) * (1 + 1e-6) + math.hypot(*lo)


def minimiser(
    problem: Problem,
    X: np.ndarray,
    y: np.ndarray,
    tilt: np.ndarray,
    tolerance: float,
    shares: np.ndarray | None = None,
    offset: float = 0.0,
) -> list[Fraction]:
    """A point with a gradient norm of at most `tolerance` on any rows, by Newton's method or descent.

    tilt: B. If ||B|| exceeds n `problem.pull` (probability at most beta), this function may fail. shares,
    offset: as for `gradient`; |offset| <= `problem.most`, and no shares with an offset.
    """
    if abs(offset) > problem.most:
        raise ValueError("the offset is larger than its public bound")
    pull, labels = tilt / problem.n, y
    if not problem.loss.residual:
        labels = np.where(y == 0, 1, y)  # rows with the label 0 are zeros, so any label will do
    if shares is None:
        loss, points, targets = problem.loss, X, labels
        if problem.most:
            loss = Offset(problem.loss, problem.most)
            points, targets = loss.rows(X, labels), loss.targets(labels, offset)
        settings = {"linear": tilt, "loss": loss, "tolerance": tolerance / 2}
        weights = _solved(minimise, points, targets, problem.lam, **settings)
    else:
        weights = _solved(_newton, problem, X, labels, pull, tolerance / 2, shares)
    start, size = None, math.hypot(*weights[0])
    if math.isfinite(size):
        hi, lo = split(weights[0])
        g = gradient(problem, X, y, hi, lo, pull, shares, offset)
        if certified(problem, g, size, tolerance):
            return _exact(hi, lo)
        norm = math.hypot(*g) + problem.rounding(size)
        start = weights[0] if norm <= problem.lam * problem.longest else None
    return _exact(*descend(problem, X, y, pull, tolerance, start, shares, offset)[:2])


def _newton(problem, X, y, pull, tolerance, shares):
    """([weights (d,)], gradient norm), by damped Newton steps on weighted rows. Nothing relies on it."""
    w, norm = np.zeros(problem.d), math.inf
    step, length = np.zeros(problem.d), 1.0
    for _ in range(NEWTON):
        trial = w - length * step
        g = gradient(problem, X, y, *split(trial), pull, shares)
        if not math.hypot(*g) < norm:
            length /= 2
            continue
        w, norm, length = trial, math.hypot(*g), 1.0
        if norm <= tolerance:
            break
        H = problem.lam * np.eye(problem.d)
        for rows in slices(problem.n, BLOCK):
            block = X[rows].astype(float)
            slope = np.abs(unit_slopes(problem.loss, block @ w, y[rows]))
            bend = 1 - slope * slope if problem.loss.residual else slope * (1 - slope)
            H += (block.T * (bend * shares[rows])) @ block / problem.n
        step = np.linalg.solve(H, g)
    return w[None], norm


def _solved(solver, *arguments, **named):
    """A solver's weights (1, d), or NaN. Errors and warnings are hidden, because they depend on rows."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return solver(*arguments, **named)[0]
        except Exception:  # descent then succeeds
            return np.full((1, 1), np.nan)


def _exact(hi, lo):
    return [Fraction(a) + Fraction(b) for a, b in zip(hi.tolist(), lo.tolist(), strict=True)]


class Tilt(NamedTuple):
    """The numbers of theorem 1. noise: the law of the tilt B, for the *sum* of losses. reach: T."""

    noise: lattice.Noise
    reach: Fraction


def tilt(deviation: float, kappa: float, d: int, bits: int = lattice.BITS) -> Tilt:
    """The `Tilt` whose standard deviation sigma is at least `deviation`, with mu = kappa/sigma."""
    step = lattice.step_below(Fraction(deviation), bits)
    scale = math.ceil(Fraction(deviation) / lattice.spacing(step))
    noise = lattice.Noise(step, scale, d, Fraction(kappa) / (scale * lattice.spacing(step)))
    reach = (noise.deviation + noise.spacing) * (lattice.root(Fraction(d)) + REACH)
    if reach / noise.spacing >= 1 << 53:
        raise Refused(f"tilts of {d} coordinates on this lattice are no floats: take fewer columns")
    return Tilt(noise, reach)


def moved(problem: Problem, tilt_step: int | None, tolerance: float) -> Fraction:
    """D of theorem 1 without g sqrt(d), which `lattice.covering` adds."""
    rounding = 0
    if tilt_step is not None:
        rounding = lattice.spacing(tilt_step) * lattice.root(Fraction(problem.d)) / problem.n
    return (2 * Fraction(tolerance) + rounding) / Fraction(problem.lam)


def draw(plan: Tilt, stream: Stream) -> np.ndarray:
    """Draw the tilt B, as exact floats."""
    return np.array([float(each * plan.noise.spacing) for each in plan.noise.draw(stream)])
