"""Private selection: run a mechanism a random number of times, and release the best run.

The base mechanism Q runs K times independently. K follows a public distribution and is not released.
Settings drawn from a grid are part of Q. See Liu, Talwar (STOC 2019); Papernot, Steinke (ICLR 2022);
Koskela, Redberg, Wang (ICML 2024).

**What "best" may depend on.** Q's release must include the score that compares runs, and Q's guarantee must
cover it. A noisy score on private rows is one more release of Q. A score on public rows, or of the weights
alone, costs no privacy. An *exact* score on private rows is not covered: if Q is uniform on N points, which
is 0-DP, the score 1(point = p(data)) would release p(data) with probability close to 1. For an exact score,
only a weaker bound holds (below).

**Profile bound**, derived here. Runs are ranked by a fixed total order of Q's releases (an independent
uniform number breaks ties). Let F(z) = E z^K, and let Q(<y) be the probability of a release worse than y.
Then the best run has the density a(y) = q(y) F'(Q(<y)).

* Logarithmic, P(K=k) = (1-g)^k/(k log(1/g)), and geometric, P(K=k) = g (1-g)^(k-1): F'(z) = E[K]
  (g/(1 - (1-g) z))^(eta+1) with eta = 0 and eta = 1, respectively.
  Let Q' be Q on a neighbour, with q' and a' in place of q and a. Let z = Q(>=y) and z' = Q'(>=y) <= h(z),
  where h(z) bounds the probability under Q' of any event of probability z under Q. Then
  F'(Q(<y))/F'(Q'(<y)) = ((g + (1-g) z')/(g + (1-g) z))^(eta+1) <= C^(eta+1), where C is the maximum over z
  in [0, 1] of (g + (1-g) h(z))/(g + (1-g) z). So (a - e^x a')_+ <= F'(Q(<y)) (q - e^x C^-(eta+1) q')_+ and,
  because F' <= E K,

      delta(x) <= E[K] delta_Q(x - (eta+1) log C).

  h(z) is the minimum over e1 of min(1, e^e1 z + delta_Q(e1)); for a Gaussian profile it is
  Phi(Phi^-1(z) + mu). Both are concave, and the ratio of a concave to an affine function has one maximum.
* Poisson(m): F'(z) = m e^(m (z-1)), so F'(Q(<y))/F'(Q'(<y)) <= e^(m TV) with TV = delta_Q(0). Hence
  delta(x) <= m delta_Q(x - m TV) for x >= 0.
  K = 0 releases a fixed default, with the same probability on both data sets.

For an *exact* score, "worse than y" is a different event on each data set. With its probabilities u = Q(<y)
and u' = Q'(<y), F'(u)/F'(u') is at most F'(1)/F'(0). So log(1/g) replaces log C, and m replaces m TV. This
`cost_of_exact_score` does not fall with epsilon.

**Rényi bound** (Papernot, Steinke, theorems 2 and 6), if Q's Rényi divergences are known.

delta_Q is Q's privacy profile for the given adjacency: the larger of the two directions.
"""

import math
from collections.abc import Callable

import numpy as np

from dp_privacy import roots
from dp_privacy.accounting import gaussian_mu, renyi_epsilon
from dp_privacy.profiles import Gaussian, Profile

# eta of the truncated negative binomial distribution
EXTRA = {"logarithmic": 0, "geometric": 1}
LAWS = (*EXTRA, "poisson")
_STEPS = np.geomspace(1e-6, 20.0, 1500)
EVENTS = np.concatenate([-_STEPS[::-1], [0.0], _STEPS])  # values of e1 tried in h


def _check(law, mean):
    if law not in LAWS:
        raise ValueError(f"the number of runs has one of the laws {', '.join(LAWS)}, not {law!r}")
    if not (mean > 0 if law == "poisson" else mean > 1) or not math.isfinite(mean):
        raise ValueError(f"the {law} law needs a mean above {int(law != 'poisson')}, not {mean}")


def parameter(law: str, mean: float) -> float:
    """g of the logarithmic or geometric distribution with E K = mean; for Poisson, the mean.

    Geometric: 1/mean. Logarithmic: (1/g - 1)/log(1/g) = mean.
    """
    _check(law, mean)
    if law == "poisson":
        return mean
    if law == "geometric":
        return 1 / mean
    low, high = 1e-12, 1.0  # bounds of x = log(1/g); (e^x - 1)/x increases in x
    while math.expm1(high) / high < mean:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.expm1(middle) / middle < mean else (low, middle)
    return math.exp(-high)


def draw(law: str, mean: float, rng: np.random.Generator) -> int:
    """Draw the number of runs."""
    p = parameter(law, mean)
    if law == "poisson":
        return int(rng.poisson(p))
    return int(rng.logseries(1 - p) if law == "logarithmic" else rng.geometric(p))


def event_bounds(profile: Profile) -> Callable:
    """h of the module docstring."""
    if isinstance(profile, Gaussian):
        from scipy.special import ndtr, ndtri

        return lambda z: ndtr(ndtri(z) + profile.mu)
    slopes, deltas = np.exp(EVENTS), np.asarray(profile.delta(EVENTS))
    return lambda z: np.minimum(1.0, (slopes * z[..., None] + deltas).min(axis=-1))


def largest_ratio(profile: Profile, g: float) -> float:
    """C of the module docstring, by zooming in.

    Below z = 1e-15 g, h(z) is at most h(1e-15 g), and the denominator is at least g.
    """
    least = max(1e-15 * g, 1e-300)
    low, high, bound = math.log(least), 0.0, event_bounds(profile)
    best = max(1.0, float(1 + (1 - g) / g * bound(np.array(least))))
    for _ in range(8):
        z = np.exp(np.linspace(low, high, 200))
        ratio = (g + (1 - g) * bound(z)) / (g + (1 - g) * z)
        k = int(ratio.argmax())
        best = max(best, float(ratio[k]))
        grid = np.log(z)
        low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    return best


def cost(profile: Profile, law: str, mean: float) -> float:
    """What the profile bound adds to epsilon: (eta+1) log C, or m TV."""
    _check(law, mean)
    if law == "poisson":
        return mean * float(profile.delta(0.0))
    return (1 + EXTRA[law]) * math.log(largest_ratio(profile, parameter(law, mean)))


def cost_of_exact_score(law: str, mean: float) -> float:
    """The `cost` if an exact score on private rows compares runs."""
    _check(law, mean)
    if law == "poisson":
        return mean
    return -(1 + EXTRA[law]) * math.log(parameter(law, mean))


def profile_epsilon(profile: Profile, law: str, mean: float, delta: float) -> float:
    """epsilon at delta by the profile bound."""
    added = cost(profile, law, mean)
    return profile.epsilon(delta / mean) + added if delta < mean else 0.0


def renyi_bound_epsilon(profile: Profile, law: str, mean: float, delta: float) -> float:
    """epsilon at delta by the Rényi bound; infinite if the profile has no `renyi(order)`.

    Let eps_a be Q's Rényi divergence of order a. For truncated negative binomial laws (theorem 2), the
    selected run's divergence of order a is at most

        eps_a + (1+eta)(1 - 1/b) eps_b + (1+eta) log(1/g)/b + log(E K)/(a-1)     for any b > 1

    For Poisson (theorem 6), this divergence is at most

        eps_a + m delta_Q(log(1 + 1/(a-1))) + log(m)/(a-1).
    """
    _check(law, mean)
    if not hasattr(profile, "renyi"):
        return math.inf

    def runs(a):
        return np.log(mean) / (a - 1)

    if law == "poisson":

        def total(a):
            return profile.renyi(a) + mean * profile.delta(np.log1p(1 / (a - 1))) + runs(a)

        return renyi_epsilon(total, delta)
    b = 1 + np.geomspace(1e-4, 1e6, 20_000)
    other = (1 - 1 / b) * profile.renyi(b) - math.log(parameter(law, mean)) / b
    added = (1 + EXTRA[law]) * float(other.min())
    return renyi_epsilon(lambda a: profile.renyi(a) + added + runs(a), delta)


def selection_epsilon(profile: Profile, law: str, mean: float, delta: float) -> float:
    """Total epsilon at delta, by the better of the two bounds."""
    return min(
        profile_epsilon(profile, law, mean, delta), renyi_bound_epsilon(profile, law, mean, delta)
    )


def base_mu(law: str, mean: float, epsilon: float, delta: float) -> float:
    """Largest Gaussian parameter of one run, including its score, for a total of (epsilon, delta)."""

    def private(mu):
        return selection_epsilon(Gaussian(mu), law, mean, delta) <= epsilon

    return roots.largest(private, 0.0, gaussian_mu(epsilon, delta), relative=1e-9)


def selection_total(
    base_epsilon: float, delta: float, law: str, mean: float, bound: str = "better"
) -> float:
    """Total epsilon at delta if a run is a Gaussian release of `base_epsilon` at this delta."""
    ways = {"better": selection_epsilon, "profile": profile_epsilon, "renyi": renyi_bound_epsilon}
    return ways[bound](Gaussian(gaussian_mu(base_epsilon, delta)), law, mean, delta)
