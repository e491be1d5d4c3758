"""Objective perturbation with Gaussian noise, for a person with several rows.

Setting and notation are those of `dp.proofs.gaussian_tilt`, for logistic and log-cosh loss. Every row i may
also have a weight omega_i in (0, 1], which multiplies its loss: its gradient is -omega s k v, and its
curvature at most omega g(s) v v'. A person has any rows whose weights add up to at most W. Data sets are
neighbours if they differ in all rows of one person; a person without rows counts as one, too. Lambda is
public, and the same on both. Let q = 1 for logistic loss and q = 2 for log-cosh, m = k R/sigma,
r = R^2/Lambda, and M = 2 W m. `SIGNS` is the number of tails, 1 or 2.

THEOREM. For every e >= 0, the exact minimiser has

    (a)  delta(e) <= SIGNS G(M)(e)             if  q r <= max(e/(2 W), W m^2),
    (b)  delta(e) <= SIGNS e^J G(M)(e - J)     if  e >= J,  where J = W r/4 (log-cosh: W r).

So Lambda >= 2 W q R^2/e and sigma = 2 W k R/mu give the delta of a Gaussian release with parameter mu.

*One step.* Add a row of weight omega, and let m_j = omega m. With m_j in place of m and omega r in place of
r, the proofs for one record hold word for word. For e_j >= 0, adding costs at most SIGNS G(m_j)(e_j),
whatever Lambda is, and removing does if q omega r <= e_j. (Logistic loss: omega s r <= e_j + s m_j^2/2
suffices for all s, and follows at s = 0 and s = 1. Log-cosh, two tails: omega r <= e_j and 2 omega r <=
e_j + m_j^2/2 suffice.) For e_j <= 0, removing costs at most SIGNS G(m_j)(e_j) whatever Lambda is, because
it is the reflection of adding: 1 - e^x + e^x SIGNS G(-x) <= SIGNS (1 - e^x + e^x G(-x)) = SIGNS G(x). A
step that changes nothing costs at most 1 - e^(e_j) or 0, which is no more.

*The chain.* P has the person's old rows, S the new ones. Add rows of zeros to both persons, which change
nothing, until their weights add up to W. A path from P to S removes the old rows and adds the new ones,
each perhaps in parts: a row with weight omega is like two equal rows with weights that add up to omega.
Step j moves from t_(j-1) to t_j = t_(j-1) + m_j, from t_0 = 0 to M. Let x = M/2 - e/M, and

    e_j = m_j ((t_(j-1) + t_j)/2 - x),     E_j = e_1 + .. + e_(j-1).

The e_j add up to e. Since P(E) <= e^(e_1) P_1(E) + delta_1(e_1) for every event and so on, delta(e) <= sum
of e^(E_j) delta_j(e_j). The sum of e^(E_j) G(m_j)(e_j) is G(M)(e) *exactly*: e_j is the log ratio at x of
normals with the means t_(j-1) and t_j, so all pairs share one optimal event. What is left is the order. If
x > 0, first remove old rows, in parts, until t = x <= M/2 = W m: there e_j <= 0. Then add the new rows:
e_j >= 0. At last remove the rest, where (t_(j-1) + t_j)/2 >= W m + max(x, 0), so

    e_j >= m_j (W m - x + max(x, 0)) = m_j max(e/M, W m) = omega max(e/(2 W), W m^2) >= q omega r.

That is (a). For W = 1 and one row, `gaussian_tilt` has the slightly smaller threshold e/2 + m^2.

(b) Keep to the order above for e - J in place of e. Let H be the Hessian after all additions, and in the
last part compare the measures Q_j = phi_sigma(b_j(w)) det H(w), which keep H while rows are removed. Q_j
is at most e^J times the density of data set j: its rows removed so far have log det H/det H_j <= sum of
log(1 + omega_i max g r) <= J. So b_j is N(0, sigma^2 I), up to a factor of at most e^J, and the slopes
give Q_j's step the cost of an addition, e^J SIGNS G(m_j)(e_j) at most. In the end, Q <= e^J S. So P(E) <=
e^(e - J) e^J S(E) + e^J SIGNS G(M)(e - J).

The intermediate data sets exist only in the proof; they may have more rows than any table.

WHAT ELSE IS RELEASED, PER PERSON. If a record's share of a sum of vectors has norm at most A, a person's
rows have W A at most, and the sum moves by at most 2 W A. If any two records' shares, or one and 0, are at
most B apart, it moves by at most W B: both persons' shares are in W times the convex hull of these. A sum
of omega h x x' with h in [0, c] moves by sqrt(2) W c R^2 in the Frobenius norm: both persons' shares B and
B' are positive semidefinite, of norm at most W c R^2, and tr(B B') >= 0. The point at which statistics are
computed is released, so the parts compose as for one row.

VARIANCES. Rows of a person are correlated. With slopes psi_i, a person's gradient u = sum of omega_i psi_i
x_i has u u' <= (sum of omega_i) (sum of omega_i psi_i^2 x_i x_i') by Cauchy and Schwarz, so W times the sum
over rows bounds the variance of the sum over persons, however rows of one person depend on each other.
"""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dp.proofs.gaussian_tilt import SIGNS, largest_parameter
from dp_privacy.accounting import gaussian_mu
from dp_privacy.profiles import Curve, gaussian_profile, integral, symmetric

FACTORS = {"logistic": 1, "log_cosh": 2}  # q
LARGEST = {"logistic": 0.25, "log_cosh": 1.0}  # the maximum of g
SAFE = 2  # the rule's Lambda is this multiple of the threshold


def _check(loss):
    if loss not in FACTORS:
        raise ValueError(
            f"several rows per person are proven for {', '.join(FACTORS)}, not {loss!r}"
        )


def kinks(m: float, r: float, most: float, loss: str) -> tuple[float, float]:
    """(J, e0): bound (b) holds from J on, and bound (a) from e0 on. most: W."""
    _check(loss)
    need = FACTORS[loss] * r
    return most * LARGEST[loss] * r, 0.0 if need <= most * m * m else 2 * most * need


def replacement(
    epsilon: float | np.ndarray, m: float, r: float, most: float, loss: str = "logistic"
) -> np.ndarray:
    """delta(epsilon) of replacing a person, for epsilon >= 0, by the theorem. most: W."""
    paid, free = kinks(m, r, most, loss)
    epsilon = np.asarray(epsilon, dtype=float)
    over = np.where(epsilon < free, paid, 0.0)
    bound = SIGNS[loss] * np.exp(over) * gaussian_profile(2 * most * m, epsilon - over)
    return np.where(epsilon < over, 1.0, np.minimum(bound, 1.0))


def profile(m: float, r: float, most: float, loss: str = "logistic") -> Curve:
    """The `dp_privacy.profiles.Curve` of the exact minimiser's release."""
    _check(loss)
    return Curve(symmetric(lambda epsilon: replacement(epsilon, m, r, most, loss)))


def composed_delta(
    epsilon: float, m: float, mu: float, r: float, most: float, loss: str = "logistic"
) -> float:
    """delta at epsilon of the minimiser's release together with a Gaussian release of parameter mu > 0.

    It is E delta(epsilon - L) with L ~ N(mu^2/2, mu^2), as in `gaussian_tilt.composed_delta`. Outside
    [-e0, e0], the profile is at most SIGNS G(M), whose share has a closed form. The excess inside is
    integrated between kinks.
    """
    one, signs, whole = profile(m, r, most, loss), SIGNS[loss], 2 * most * m
    joint = signs * float(gaussian_profile(math.hypot(whole, mu), epsilon))
    paid, free = kinks(m, r, most, loss)

    def excess(z):
        e = epsilon - mu**2 / 2 - mu * z
        over = one.delta(e) - signs * gaussian_profile(whole, e)
        return over * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    ends = np.array([-free, -min(paid, free), 0.0, min(paid, free), free])
    ends = np.clip((epsilon - mu**2 / 2 - ends) / mu, -12.0, 12.0)[::-1]
    # the ends are kinks, so no interval's nodes are beyond one
    parts = [integral(excess, a, b, (4, 8, 16, 32)) for a, b in pairwise(ends) if b > a]
    return joint + max(sum(parts), 0.0) + 4e-33


def least_regularisation(epsilon: float, most: float, loss: str = "logistic") -> float:
    """The smallest Lambda, for the *sum* of losses of rows of norm 1, at which the Jacobian is free."""
    _check(loss)
    return 2 * most * FACTORS[loss] / epsilon


def rule_lambda(
    n: int,
    d: int,
    epsilon: float,
    delta: float,
    most: float,
    slope: float = 1.0,
    loss: str = "logistic",
    radius: float = 20.0,
    output: float = 0.0,
) -> float:
    """lambda for the *mean* of n losses, from public numbers, as `gaussian_tilt.rule_lambda`."""
    least = SAFE * least_regularisation(epsilon, most, loss)
    mu = gaussian_mu(epsilon, delta / SIGNS[loss]) * math.sqrt(1 - output**2)
    return max(least, math.sqrt(d) * 2 * most * slope / mu / radius) / n


@lru_cache(maxsize=4096)
def with_output_noise(
    epsilon: float,
    delta: float,
    n_lambda: float,
    most: float,
    slope: float = 1.0,
    loss: str = "logistic",
    output: float = 0.03,
) -> tuple[float, float]:
    """sigma and mu_output, as `gaussian_tilt.with_output_noise`. most: W."""
    _check(loss)

    def split(mu):
        return mu * math.sqrt(1 - output**2) / (2 * most), mu * output

    def delta_at(mu):
        m, mu_output = split(mu)
        return composed_delta(epsilon, m, mu_output, 1 / n_lambda, most, loss)

    start = gaussian_mu(epsilon, delta / SIGNS[loss]) * (1 - 1e-9)
    m, mu_output = split(largest_parameter(delta_at, delta, start))
    return slope / m, mu_output
