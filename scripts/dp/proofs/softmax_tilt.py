"""Objective perturbation for softmax loss with Gaussian noise: the privacy of the minimiser for K classes.

The release is the W (d, K) that minimises F(W) + Lambda/2 ||W||^2 + <b, W>, where F is the *sum* of the
losses log sum_j e^(w_j.x) - w_y.x, Lambda = n lambda > 0, and the d K entries of b are independent N(0,
sigma^2). This extends the proof of `dp.proofs.gaussian_tilt`, which covers one slope per record, that is
K = 2. Minimisers are exact; `composed_delta` adds the output noise that covers approximate ones.

A record (x, y) with ||x|| = rho <= R and probabilities p = softmax(W^T x) has the gradient x a^T with a = p
- e_y = sum over j != y of p_j (e_j - e_y), and the Hessian S (x) x x^T with S = diag(p) - p p^T. Notation:

    s = 1 - p_y,  v = ||a||,  v^2 = s^2 + sum over j != y of p_j^2,  so  q s^2 <= v^2 <= 2 s^2, q = K/(K-1)
    tr S = 1 - ||p||^2 = 2 s - v^2
    M = sqrt(2) R/sigma,  r = R^2/Lambda,  c = max(r - M^2/4, 0),  G(M)(e): the Gaussian profile

ONE RECORD. D' = D + record. The tilt b(W) = -(grad F + Lambda W), a smooth bijection, makes W the
minimiser on D, and b' = b - x a^T on D'. So W has the density phi_sigma(b) det H on D, H >= Lambda I, and
on D' it has phi_sigma(b') det H' with

    1 <= det H'/det H <= det(I + (rho^2/Lambda) S) <= exp(r tr S),

because H' = H + S (x) x x^T and (I (x) x^T) H^-1 (I (x) x) <= (rho^2/Lambda) I. For a row x, let B = +-b^T
x/(sigma rho) (b' on D'): K independent standard normals. Let U_j = (B_j - B_y)/sqrt(2). Each U_j is N(0,
1), and U is the largest of these K-1. For either sign of B, <B, a> = sqrt(2) sum p_j U_j <= sqrt(2) s U.

*Adding* (P = D, Q = D'). For one of the signs of B, and a record of norm R,

    log dP/dQ <= (||b'||^2 - ||b||^2)/(2 sigma^2) = M^2 v^2/4 + (M/sqrt(2)) <B, a>.

The right side is convex in a, so it is maximal over p at a corner of the simplex: 0, or t_j = M U_j +
M^2/2, the Gaussian mechanism's loss. A maximum is at most the sum, so for every e >= 0 and *every* Lambda,

    delta(e) <= E max_j (1 - e^(e - t_j))_+ <= (K-1) G(M)(e).

*Removing* (P = D', Q = D). The loss has the same first part, plus log det H'/det H <= r (2 s - v^2). So

    loss <= M s U + (M^2/4 - r) v^2 + 2 r s.

If r <= M^2/4, the bound increases in v^2 <= 2 s^2. At 2 s^2 it is M s U + M^2 s^2/2 + 2 r s (1-s), convex
in s, and so at most max(0, M U + M^2/2): **the Jacobian costs nothing if Lambda >= 2 sigma^2**. Otherwise
v^2 >= q s^2. With t = M U + M^2/2 (the largest t_j) the loss is at most

    h(t) = max over s in [0, 1] of s t + 2 c s - c q s^2.

h increases. h(t) - max(t, 0) falls from h(0) = c/q to c (2 - q) = c (K-2)/(K-1) at t = 2 c/(K-1), where h =
c q, and is constant beyond. As above, M s U + M^2 v^2/4 is at most max(0, t), so the loss is at most max(0,
t) + log det(I + r S). This log det is at most (K-1) log(1 + r/K), since S has at most K-1 nonzero
eigenvalues, with a sum of at most 1 - 1/K. So

    delta(e) <= (K-1) G(M)(e - J)  for e >= e0, where (J, e0) may be any of
        (c (K-2)/(K-1), c q),  (c (K-1)/K, J),  ((K-1) log(1 + r/K), J).

With two classes, J = 0 in the first pair, so the Jacobian costs nothing for e >= 2 c, the threshold of
logistic loss. With more classes, J > 0 if c > 0, because several p_j may share s. Records of norm below R
have smaller M, r and c.

REPLACING record z by z'. As in `gaussian_tilt`, put D0 + z + z' between D0 + z and D0 + z'. An addition at
e1 = (e - J)/2 - M^2/2 >= 0 and a removal at e2 = e - e1 give, since the Gaussian profiles at this split are
exact,

    delta(e) <= (K-1) (G(M)(e1) + e^e1 G(M)(e2 - J)) = (K-1) G(2M)(e - J)  for e >= J + M^2 and e2 >= e0.

NOISE OF A NORM (`dp.proofs.log_concave_tilt`) is not built. With D(e) of the l2 mechanism for shifts of
sqrt(2) R, adding would cost (K-1) D(e), as above. But the loss of removing is at most sum p_j l_j + r (1 -
||p||^2) <= s T + r (2 s - q s^2) with T the largest of the corners' l_j. At s = 1, this is T + r
(K-2)/(K-1). *So the step to J = 0 fails*: the other classes share p, and the Jacobian does not vanish at
the largest slope. For Gaussian noise, ||b'||^2 is strictly convex, so a shared p loses M^2 (2 s - v^2)/4,
whatever b' is. A norm is linear along rays. (In pure privacy, l_a <= (M/sqrt(2)) v, and the Jacobian costs
nothing from Lambda >= 8 R^2/epsilon on.) Little would be gained, since b has d K coordinates: at epsilon 1
and delta 1e-6, the l2 mechanism has 99 % of the Gaussian mechanism's noise with 300 coordinates, and pure
noise of the ball has 410 %.

The factor K-1 is needed where the tilt alone decides which class is likely (exact densities for three
classes: `tests/unit/test_softmax_tilt.py`).
"""

import math
from functools import lru_cache

from dp.proofs.gaussian_tilt import shared_parameter
from dp_privacy.accounting import REPLACE_ONE, gaussian_mu
from dp_privacy.profiles import gaussian_profile
from dp_privacy.sensitivities import vector_sum


def free_regularisation(sigma: float) -> float:
    """The smallest Lambda at which the Jacobian costs nothing at any epsilon and R: 2 sigma^2."""
    return 2 * sigma**2


def jacobian(m: float, r: float, classes: int) -> tuple[tuple[float, float], ...]:
    """Pairs (J, e0) of the module's docstring for M = m.

    For e >= e0, the bound for removing at e is that for adding at e - J.
    """
    c, K = max(r - m * m / 4, 0.0), classes
    everywhere = min(c * (K - 1) / K, (K - 1) * math.log1p(r / K))
    return (everywhere, everywhere), (c * (K - 2) / (K - 1), c * K / (K - 1))


def composed_delta(
    epsilon: float,
    m: float,
    mu_output: float,
    r: float,
    classes: int,
    adjacency: str = REPLACE_ONE,
) -> float:
    """delta at epsilon >= 0 of the tilt's release composed with a Gaussian release of parameter mu_output.

    It is at most E delta(epsilon - L) with L ~ N(mu_output^2/2, mu_output^2). The tilt's delta(epsilon - L)
    is at most (K-1) G(mu)(epsilon - L - J) if epsilon - L exceeds `least`, otherwise at most 1. The
    integral of the first bound over all L is (K-1) G(hypot(mu, mu_output))(epsilon - J).
    """
    from scipy.special import ndtr

    mu = vector_sum(m, adjacency)
    smallest = 1.0
    for extra, least in jacobian(m, r, classes):
        if adjacency == REPLACE_ONE:
            # The split needs e2 = (e + J)/2 + M^2/2 >= `least` and e1 = (e - J)/2 - M^2/2 >= 0.
            least = max(2 * least - extra - m * m, extra + m * m)
        if epsilon < least:
            continue
        delta = (classes - 1) * gaussian_profile(math.hypot(mu, mu_output), epsilon - extra)
        if mu_output > 0:
            delta += ndtr(-(epsilon - least - mu_output**2 / 2) / mu_output)
        smallest = min(smallest, float(delta))
    return smallest


@lru_cache(maxsize=4096)
def sigma_where_free(
    epsilon: float, delta: float, classes: int, bound: float = 1.0, adjacency: str = REPLACE_ONE
) -> float:
    """sigma of the tilt if J is 0, as for a Gaussian release of summed gradients at delta/(K-1)."""
    mu = gaussian_mu(epsilon, delta / (classes - 1))
    return vector_sum(math.sqrt(2) * bound, adjacency) / mu


@lru_cache(maxsize=4096)
def with_output_noise(
    epsilon: float,
    delta: float,
    n_lambda: float,
    classes: int,
    bound: float = 1.0,
    adjacency: str = REPLACE_ONE,
    output: float = 0.03,
) -> tuple[float, float]:
    """sigma and mu_output for which tilt and output noise together are (epsilon, delta)-DP.

    mu_output is `output` times the joint Gaussian parameter. Raises ValueError if n_lambda is too small.
    """
    start, r = gaussian_mu(epsilon, delta / (classes - 1)), bound**2 / n_lambda
    m, mu_output = shared_parameter(
        lambda m, mu_output: composed_delta(epsilon, m, mu_output, r, classes, adjacency),
        *(delta, start * (1 - 1e-9), output, adjacency),
    )
    return math.sqrt(2) * bound / m, mu_output


def rule_lambda(
    n: int,
    classes: int,
    epsilon: float,
    delta: float,
    bound: float = 1.0,
    adjacency: str = REPLACE_ONE,
    radius: float = 1.0,
) -> float:
    """lambda for the *mean* loss, from public numbers: max(10 R^2/epsilon, sigma R/radius)/n.

    sigma is `sigma_where_free`. The first term keeps J below a tenth of epsilon. By the second term, the
    tilt's shift of the score of a row of norm R has standard deviation at most `radius`, for any d.
    """
    sigma = sigma_where_free(epsilon, delta, classes, bound, adjacency)
    return max(10 * bound**2 / epsilon, sigma * bound / radius) / n
