"""Noisy gradient descent that releases only its last iterate.

The descent is w <- w - eta (grad F(w) + N(0, sigma^2 I)) from a public start, with mean objective F.
Composition counts every iterate: mu = sqrt(T) s/sigma, where s is the largest distance between neighbours'
gradients. If steps contract, early iterates count less (Bok, Su, Altschuler, ICML 2024, arXiv 2403.00278).

Proof. Let phi(w) = w - eta grad F(w) be a noiseless step on one data set, and phi' on the other, so |phi -
phi'| <= eta s. If F is m-strongly convex and M-smooth on at least one of the two data sets, the step there
is c-Lipschitz with c = max(|1 - eta m|, |1 - eta M|). Let W and W' be the processes with the same noise Z,
and V a process between them: V_0 = W'_0 = W_0 and

    V_t = phi'(V_t-1) + u_t (phi(W_t-1) - phi'(V_t-1)) + Z_t,   0 <= u_t <= 1, u_T = 1, so V_T = W_T.

Then |W_t - V_t| <= (1 - u_t)(c |W_t-1 - V_t-1| + eta s). Let z_t be the resulting bounds on |W_t - V_t|,
and a_t = u_t (c z_t-1 + eta s). So z_t = c z_t-1 + eta s - a_t. Given V_t-1, V_t is phi'(V_t-1) plus a
shift of at most a_t plus noise; W'_t is phi'(W'_t-1) plus noise. So by post-processing, V_t and W'_t are no
easier to distinguish than V_t-1 and W'_t-1, each with a Gaussian release of parameter a_t/(eta sigma).
Hence W_T against W'_T is mu-GDP with mu^2 = sum of a_t^2/(eta sigma)^2, for any a_t that leave z_t >= 0 and
z_T = 0. The last condition is sum c^(T-t) a_t = eta s sum c^(T-t). By Cauchy-Schwarz, the smallest mu has
a_t proportional to c^(T-t):

    mu = s/sigma (sum c^i)/sqrt(sum c^2i) = s/sigma sqrt((1 - c^T)/(1 + c^T) (1 + c)/(1 - c)).

z_t >= 0, because eta s - a_t falls from positive to negative. a_t = eta s gives the mu of composition, so
the mu above is no larger. A quadratic with equal curvatures attains it.

*Cyclic batches*: l batches of size b in a fixed order, and E epochs. A record is used in one of every l
steps, with s = L/b, where L bounds the distance of two records' gradients. Records of the last batch are
the worst, because no step follows their last visit, for which a_T = eta s. The shifts a_t from t = l to
T - 1, proportional to c^(T-1-t) as above, absorb their E - 1 earlier visits, at t = l, 2l, ..:

    mu = L/(b sigma) sqrt(1 + c^(2l-2) (1-c^2)/(1-c^l)^2 (1 - c^(l(E-1)))/(1 + c^(l(E-1)))).

z_t >= 0: with q = c^-l > 1, just before visit e+1, the shifts have absorbed only the share (q^e +
1)/(q^(E-1) + 1) <= 1 of the first e visits.
"""

import math


def contraction(learning_rate: float, strong_convexity: float, smoothness: float) -> float:
    """The Lipschitz constant c of one step."""
    if not 0 <= strong_convexity <= smoothness < math.inf or not 0 < learning_rate < math.inf:
        raise ValueError(
            f"a contraction needs 0 <= m <= M and a learning rate > 0, "
            f"not {strong_convexity}, {smoothness}, {learning_rate}"
        )
    return max(abs(1 - learning_rate * strong_convexity), abs(1 - learning_rate * smoothness))


def composition_mu(steps: int, ratio: float) -> float:
    """mu = sqrt(T) s/sigma, for all iterates released (Dong, Roth, Su, JRSS B 84, 2022, corollary 3.3)."""
    return math.sqrt(steps) * ratio


def last_iterate_mu(steps: int, ratio: float, c: float) -> float:
    """mu if only the last full-batch iterate is released, or mu of composition if c >= 1.

    ratio: s/sigma of the mean gradient.
    """
    if c >= 1:
        return composition_mu(steps, ratio)
    power = c**steps
    # `expm1` avoids cancellation for c near 1
    lost = -math.expm1(steps * math.log(c)) if c > 0 else 1.0
    return ratio * math.sqrt(lost / (1 + power) * (1 + c) / (1 - c))


def last_iterate_mu_cyclic(batches: int, epochs: int, ratio: float, c: float) -> float:
    """mu if only the last iterate of cyclic batches is released, or mu of composition if c >= 1.

    ratio: L/(b sigma).
    """
    if c >= 1 or epochs == 1:
        return composition_mu(epochs, ratio)

    def lost(k):
        return -math.expm1(k * math.log(c)) if c > 0 else 1.0

    far = batches * (epochs - 1)
    earlier = c ** (2 * batches - 2) * lost(2) / lost(batches) ** 2 * lost(far) / (1 + c**far)
    return ratio * math.sqrt(1 + earlier)


def constants(
    loss: str, lam: float, bound: float = 1.0, clip: float | None = math.inf
) -> tuple[float, float, float]:
    """(n s, m, M) of a mean objective for rows of norm at most R, under replace-one.

    s is the largest distance between gradients, m the strong convexity, M the smoothness. Logistic: 2R,
    lam, lam + R^2/4. Softmax: 2 sqrt(2) R, lam, lam + R^2/2, since a record's gradient has norm at most
    sqrt(2) R and curvature at most R^2/2. Squared, Huber and log-cosh: M = lam + R^2, and only clipping
    bounds gradients here (for the last two, clip = tau R is a bound that gradients satisfy anyway).

    clip: norm to which a record's gradient is clipped. If a record's loss has one argument w.x, its clipped
    derivative is the derivative of another convex loss, with no larger curvature (Song, Steinke, Thakkar,
    Thakurta, AISTATS 2021).
    """
    largest = {"logistic": 1.0, "softmax": math.sqrt(2)}.get(loss, math.inf) * bound
    curvature = {"logistic": 0.25, "softmax": 0.5}.get(loss, 1.0)
    if loss not in ("logistic", "softmax", "squared", "huber_residual", "log_cosh"):
        raise ValueError(f"no constants are known for the {loss} loss")
    return 2 * min(clip, largest), lam, lam + curvature * bound**2


def dp_gd_mu(
    n: int,
    steps: int,
    sigma: float,
    learning_rate: float,
    lam: float,
    loss: str = "logistic",
    bound: float = 1.0,
    clip: float | None = math.inf,
) -> tuple[float, str]:
    """(mu, reason): the smaller of composition's and the last iterate's mu (full batches, replace-one).

    sigma: standard deviation of the noise on the mean gradient. The last iterate's theorem has five
    conditions: only w_T is released (no losses, iterates or early stopping); no momentum; row norms are at
    most R; the step includes lam's gradient, which is not clipped; the objective is convex and smooth. With
    clipping, the fifth condition holds only for losses of one argument w.x.
    """
    size, m, M = constants(loss, lam, bound, clip)
    if not math.isfinite(size):
        raise ValueError(f"the {loss} loss has no bounded gradient; give a clipping norm")
    ratio = size / n / sigma
    everything = composition_mu(steps, ratio)
    if loss == "softmax" and clip < math.sqrt(2) * bound:
        return everything, "composition of all steps: a clipped softmax gradient is no gradient"
    c = contraction(learning_rate, m, M)
    if c >= 1:
        return everything, f"composition of all steps: a step contracts by {c:.6g}, not below 1"
    mu = last_iterate_mu(steps, ratio, c)
    return min(mu, everything), f"last iterate alone: every step contracts by {c:.6g}"


def rule_steps(n: int, d: int, mu: float, largest: int = 1000) -> int:
    """T = min(largest, n mu/sqrt(d)), at least 1, from public numbers only."""
    return max(1, min(largest, round(n * mu / math.sqrt(d))))
