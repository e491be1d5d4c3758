"""Private selection of a mechanism's settings."""

import itertools
import json
import math
from functools import lru_cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from dp.evaluation import bounded_loss
from dp.mechanism import FACTS
from dp.mechanisms import MECHANISMS, Mechanism, Release, register
from dp.options import Between, Choice, Name, Positive, Settings
from dp.proofs import selection
from dp_privacy.accounting import Guarantee, gaussian_epsilon, gaussian_mu
from dp_privacy.errors import Refused, did_you_mean
from dp_privacy.profiles import Gaussian, approximate, with_chords

# Epsilons at which non-Gaussian profiles are tabulated, divided by the total epsilon: dense where
# delta is evaluated.
POINTS = np.concatenate([np.arange(1, 7) / 12, 0.5 + np.arange(1, 27) / 26])
CLOSE = 2e-3  # share of epsilon that runs may leave unspent
LARGEST = 100  # maximum total epsilon, so that e^epsilon cannot overflow


class Plan(NamedTuple):
    """The settings to choose from, and the privacy of one run and of the whole choice.

    epsilon, delta: budget of one run without its score.
    mu: Gaussian-DP parameter of a run's score.
    candidates: arguments of each setting.
    total: epsilon of the whole choice at the requested delta.
    adjacency, reason: those of the first setting.
    """

    epsilon: float
    delta: float
    mu: float
    candidates: list
    total: float
    adjacency: str
    reason: str


@register("private_selection")
class PrivateSelection(Mechanism):
    """The best of K runs of the mechanism `of`, each with settings drawn at random from `grid`.

    K follows a public `law` with mean `runs`. K and running times must stay secret. A run's score is
    its `dp.evaluation.bounded_loss` on the same rows plus Gaussian noise of standard deviation 1/mu.
    One record changes that loss by at most 1 (either adjacency), so the score is mu-Gaussian DP.

    In the theorems of `dp.proofs.selection`, the mechanism Q is one run. It releases a setting,
    weights and a noisy score, and its profile is the maximum of the settings' profiles. So the run
    with the lowest score may be released. Each run gets the largest epsilon for which the smaller
    of the theorems' bounds is at most the requested epsilon. Under the Poisson law, K may be 0;
    then weights are 0.

    score: "noisy", or "exact" without noise, which costs more (`selection.cost_of_exact_score`).
    settings: fixed options of `of`.
    grid: name -> values to draw from. Without "lambda" in the grid, lambda is `lam` or, by default,
    follows from the rule of `of`.
    share: the score's share of a run's mu^2, treating `of` as Gaussian.

    info["setting"]: index of the released combination of the grid, -1 if K is 0.
    info["scale"]: standard deviation of the noise on scores.
    """

    delta = "needed"
    least_delta = 1e-90  # each run gets a share of delta
    needs_lambda = False
    uses_public_rows = True  # if the mechanism `of` does
    facts = tuple(FACTS)
    reports = ("setting",)
    options = {
        "of": Name("output_perturbation_gaussian"),
        "settings": Settings({}),
        "grid": Settings({"lambda": [0.01, 0.1]}, lists=True),
        "law": Choice(*selection.LAWS),
        "runs": Positive(3.0),
        "share": Between(0.1, low=0, high=1),
        "score": Choice("noisy", "exact"),
    }

    def takes_numbers(self, options: dict) -> bool:
        p = self.defaults() | options
        return p["of"] in MECHANISMS and all(_numbers(SimpleNamespace(**p)))

    def _classes(self, p):
        of = MECHANISMS[p.of]
        options = of.defaults() | next(_combinations(p))
        return of._classes(SimpleNamespace(**options, classes=p.classes))

    def check(self, n: int, d: int, **settings) -> None:
        """Check every setting at the total epsilon, because a run's epsilon is slow to find."""
        p = self.parameters(n, d, **settings)
        for arguments in _candidates(n, d, p, p.epsilon, p.delta):
            MECHANISMS[p.of].check(n, d, **arguments)

    def _check_together(self, n, d, p):
        if p.of not in MECHANISMS or p.of == self.name:
            near = did_you_mean(p.of, MECHANISMS)
            raise Refused(f"{self.name}: of must name another mechanism, not {p.of!r}{near}")
        of = MECHANISMS[p.of]
        if not of.private or of.uses_all_rows:
            raise Refused(f"{self.name} cannot run {p.of}, which does not protect its rows")
        if p.classes and not of.multiclass:
            raise Refused(f"{p.of} learns two classes, but the data have {p.classes}")
        if p.epsilon > LARGEST:
            raise Refused(f"{self.name}: epsilon must be at most {LARGEST}, not {p.epsilon:g}")
        try:
            selection.parameter(p.law, p.runs)
        except ValueError as error:
            raise Refused(f"{self.name}: runs: {error}") from None
        for varied in p.grid.keys() & p.settings.keys():
            raise Refused(f"{self.name}: {varied} is varied by the grid: leave it out of settings")
        of.check_options(p.settings)
        for name, values in p.grid.items():
            for value in values:
                if name == "lambda":
                    Positive().check(f"{self.name}: lambda", value)
                else:
                    of.check_options({name: value})
        if len(set(_numbers(p))) > 1:
            raise Refused(
                f"{self.name}: some settings are for classes, others for numbers: keep one kind"
            )

    def _plan(self, n, d, p):
        settings = {
            name: getattr(p, name)
            for name in ("epsilon", "delta", "lam", "bound", *self.facts, *self.options)
        }
        return _plan(n, d, json.dumps(settings))

    def _guarantee(self, n, d, p):
        plan = self._plan(n, d, p)
        runs = (
            f"the best of a hidden number of runs of {p.of}, {p.runs:g} on average ({p.law} law), with "
            f"settings drawn at random from {len(plan.candidates)}; one run has epsilon "
            f"{plan.epsilon:.6g} at delta {plan.delta:.3g} (of the first setting: {plan.reason}); runs are "
            f"taken as independent: what a solver's error, within its tolerance, has from the other runs "
            f"that it is found with is not counted"
        )
        if p.score == "exact":
            reason = f"{runs}, and runs are compared by an exact score on the private rows"
            return Guarantee(p.epsilon, plan.total, p.delta, plan.adjacency, reason)
        reason = f"{runs}, and its score noise of standard deviation {1 / plan.mu:.6g}"
        return Guarantee(p.epsilon, p.epsilon, p.delta, plan.adjacency, reason)

    def _release(self, X, y, p, draws, rng):
        of, plan = MECHANISMS[p.of], self._plan(*X.shape, p)
        public = {"public": p.public, "initial": p.initial} if of.uses_public_rows else {}
        law, noise, *rngs = rng.spawn(2 + len(plan.candidates))
        counts = [selection.draw(p.law, p.runs, law) for _ in range(draws)]
        draw = np.repeat(np.arange(draws), counts)
        setting = law.integers(len(plan.candidates), size=len(draw))
        runs = Release(
            np.zeros((len(draw), X.shape[1], *([p.classes] if p.classes else []))),
            np.full(len(draw), "ok", dtype=object),
            {"intercept": np.zeros(len(draw)), "scores": np.full(len(draw), np.inf)},
        )
        for k, arguments in enumerate(plan.candidates):
            (chosen,) = np.nonzero(setting == k)
            if len(chosen):
                release = of.release(X, y, restarts=len(chosen), rng=rngs[k], **public, **arguments)
                intercept = release.info.get("intercept", np.zeros(len(chosen)))
                parts = release.weights, X, y, intercept
                scores = bounded_loss(*parts, numbers=self.takes_numbers(vars(p)))
                runs.weights[chosen], runs.status[chosen] = release.weights, release.status
                runs.info["intercept"][chosen] = intercept
                runs.info["scores"][chosen] = np.where(release.status == "ok", scores, np.inf)
        scores = runs.info["scores"]
        if p.score == "noisy":
            scores += noise.standard_normal(len(draw)) / plan.mu
        order = np.lexsort((scores, draw))
        started, first = np.unique(draw[order], return_index=True)
        best = order[first]
        weights, status = np.zeros((draws, *runs.weights.shape[1:])), np.full(draws, "ok", object)
        intercept, settings = np.zeros(draws), np.full(draws, -1)
        weights[started], status[started] = runs.weights[best], runs.status[best]
        intercept[started], settings[started] = runs.info["intercept"][best], setting[best]
        scale = 1 / plan.mu if p.score == "noisy" else 0.0
        info = {"intercept": intercept, "setting": settings, "scale": scale}
        return Release(weights, status.astype(str), info)


def _combinations(p):
    for values in itertools.product(*p.grid.values()):
        yield p.settings | dict(zip(p.grid, values, strict=True))


def _numbers(p):
    return [MECHANISMS[p.of].takes_numbers(options) for options in _combinations(p)]


def _candidates(n, d, p, epsilon, delta):
    """Arguments of `guarantee` and `release` for every combination of the grid."""
    of = MECHANISMS[p.of]
    cell = {"epsilon": epsilon, "delta": 0.0 if of.delta == "none" else delta, "bound": p.bound}
    cell |= {fact: getattr(p, fact) for fact in of.facts}
    candidates = []
    for options in _combinations(p):
        lam = options.pop("lambda", p.lam)
        settings = cell | options
        candidates.append(settings | {"lam": lam or of.rule_lambda(n, d, **settings)})
    return candidates


@lru_cache(maxsize=256)
def _plan(n, d, text):
    """The `Plan` for settings given as JSON.

    The search for a run's epsilon starts from the value for a Gaussian mechanism. The total is
    nearly proportional to a run's epsilon, so each step rescales the latter. Steps that would
    leave the bracket bisect it.
    """
    p = SimpleNamespace(**json.loads(text))
    delta = p.delta / (2 * max(1.0, p.runs))
    mu = selection.base_mu(p.law, p.runs, p.epsilon, p.delta) * (1 - 1e-9)
    inner = gaussian_epsilon(1 / (mu * math.sqrt(1 - p.share)), delta)
    best, low, high = None, 0.0, math.inf
    for _ in range(40):
        plan = _at(n, d, p, inner, delta)
        if plan.total <= p.epsilon:
            best, low = plan, inner
        else:
            high = inner
        if best and (best.total >= (1 - CLOSE) * p.epsilon or high <= (1 + CLOSE) * low):
            return _with_exact_score(n, d, p, best) if p.score == "exact" else best
        inner *= (1 - CLOSE / 4) * p.epsilon / plan.total
        if not low < inner < high:
            inner = (low + high) / 2 if high < math.inf else 2 * low
        if inner < 1e-9 * p.epsilon:  # lowering a run's requested epsilon does not lower the total
            break
    raise Refused(
        f"private_selection cannot run {p.of} within a total epsilon of {p.epsilon:g}: give a larger "
        f"epsilon, or another mechanism"
    )


def _at(n, d, p, epsilon, delta):
    """The `Plan` if a run without its score has this epsilon and delta."""
    candidates, stated = _stated(n, d, p, epsilon, delta)
    mu = math.sqrt(p.share / (1 - p.share)) * gaussian_mu(epsilon, delta)
    most = max(each.epsilon for each in stated)
    shared = stated[0].adjacency, stated[0].reason
    if most > 3 * LARGEST:  # one run already costs too much
        return Plan(epsilon, delta, mu, candidates, most, *shared)
    profiles = _profiles(stated)
    if all(isinstance(each, Gaussian) for each in profiles):
        run = Gaussian(math.hypot(mu, max(each.mu for each in profiles)))
    else:
        grid = np.union1d(p.epsilon * POINTS, [each.epsilon for each in stated])
        run = with_chords(profiles, mu, grid)
    total = selection.selection_epsilon(run, p.law, p.runs, p.delta)
    return Plan(epsilon, delta, mu, candidates, total, *shared)


def _with_exact_score(n, d, p, plan):
    """The `Plan` for exact scores: its total includes `selection.cost_of_exact_score`."""
    _, stated = _stated(n, d, p, plan.epsilon, plan.delta)
    one = max(
        profile.epsilon(p.delta / p.runs) if p.delta < p.runs else 0.0
        for profile in _profiles(stated)
    )
    return plan._replace(total=one + selection.cost_of_exact_score(p.law, p.runs))


def _stated(n, d, p, epsilon, delta):
    candidates = _candidates(n, d, p, epsilon, delta)
    stated = [MECHANISMS[p.of].guarantee(n, d, **arguments) for arguments in candidates]
    if not all(math.isfinite(each.epsilon) for each in stated):
        raise Refused(f"private_selection needs a proven epsilon for each run, and {p.of} has none")
    if len({each.adjacency for each in stated}) > 1:
        raise Refused("private_selection needs one adjacency for all settings: change the grid")
    return candidates, stated


def _profiles(stated):
    profiles = {}
    for each in stated:
        key = (each.epsilon, each.delta) if each.profile is None else each.reason
        profiles.setdefault(key, each.profile or approximate(each.epsilon, each.delta))
    return list(profiles.values())
