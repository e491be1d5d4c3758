"""Checks of Einarsson (2018): what steps and noise cost, chosen settings, widths, and equal methods."""

import itertools
import json
import math

import numpy as np

from checks.cells import counted_interval, ok, paired_rows, spell, why_failed
from checks.paired import cell_of, difference, fold_means, interval
from checks.results import Lost, Missing
from checks.statements import Outcome
from sources.einarsson_2018 import noise_law as law
from study import canonical
from study.configuration.inputs import NOTHING, RESULTS
from study.configuration.kinds import check
from study.configuration.options import Mechanism, Method, Methods, Options, Place, Point, Sweeps


class StepsCostMore(Options):
    solved: Method
    noiseless: Method
    private: Method
    epsilons: list
    sweep: Sweeps | None = None


@check(RESULTS, StepsCostMore)
def steps_cost_more(results, *, solved, noiseless, private, epsilons, sweep):
    """At the largest training size, the steps of a descent cost more than its noise at these `epsilons`.

    The cost of the steps is the error of the descent without noise (`noiseless`) minus the minimiser's
    (`solved`). The cost of the noise is the error of the private descent (`private`) minus that of
    `noiseless`. The claim holds if the 95 % interval of the first cost minus the second, paired by
    simulation, lies above zero on every data set. It fails if one interval lies below zero.
    """
    frame = results.cells(
        methods=[solved, noiseless, private], sweep=sweep, train_size="largest"
    ).sort_values("epsilon")
    verdicts, texts, least = [], [], math.inf
    for dataset, rows in frame.groupby("dataset", sort=False):
        cells = {(row["method"], row["epsilon"]): row for row in rows.to_dict("records")}
        means = {key: fold_means(results, row, "error_mean") for key, row in cells.items()}
        base, end = means.get((noiseless, math.inf)), means.get((solved, math.inf))
        if base is None or end is None:
            continue
        steps, low, high = interval(base - end)
        texts.append(f"{dataset}: the steps cost {steps:.4g} [{low:.4g}, {high:.4g}]")
        for (method, epsilon), errors in means.items():
            if method != private or errors is None:
                continue
            noise, low, high = interval(errors - base)
            gap, least_gap, most = interval((base - end) - (errors - base))
            texts.append(
                f"the noise at epsilon = {canonical.epsilon(epsilon)} {noise:.4g} [{low:.4g}, {high:.4g}]"
            )
            if any(math.isclose(epsilon, wanted) for wanted in epsilons):
                verdicts.append(True if least_gap > 0 else False if most < 0 else None)
                least = min(least, gap)
    if not verdicts:
        raise Missing("this run lacks one of these methods, or its single draws")
    holds = False if False in verdicts else None if None in verdicts else True
    return Outcome(holds, "; ".join(texts), least, 0.0)


class LambdaFallsWithSize(Options):
    methods: Methods
    rows: int
    small: float
    share: float = 0.5
    sweep: Sweeps | None = None


@check(RESULTS, LambdaFallsWithSize)
def lambda_falls_with_size(results, *, methods, rows, small, share, sweep):
    """Searches choose a lambda above `small` for at least a `share` of the models with fewer than `rows`
    training rows, and at most `small` for all models with more rows.
    """
    frame = results.cells(methods=methods, sweep=sweep).sort_values("train_size")
    fewer = frame[frame["train_size"] < rows]
    more = frame[frame["train_size"] > rows]
    if fewer.empty or more.empty:
        raise Missing(f"this run has no models on both sides of {rows} rows")
    large = float((fewer["lambda"] > small).mean())
    holds = large >= share and bool((more["lambda"] <= small).all())
    listed = "; ".join(
        f"n = {size}: {', '.join(canonical.number(lam) for lam in group)}"
        for size, group in frame.groupby("train_size")["lambda"]
    )
    return Outcome(
        holds,
        f"chosen lambda of {', '.join(frame['method'].unique())}: {listed}; "
        f"a share {large:.2g} is above {small:g} below {rows} rows",
        large,
        share,
    )


class OptionFalls(Options):
    method: Method
    option: str
    sweep: Sweeps | None = None
    share: float = 1.0


@check(RESULTS, OptionFalls)
def option_falls(results, *, method, option, sweep, share):
    """A searched option is smaller at the largest epsilon than at the smallest, for at least a `share` of
    the training sizes. A tie does not count as smaller.
    """
    frame = results.cells(methods=method, sweep=sweep)
    if "options" not in frame:  # a partial run may lack this column
        raise Missing(f"the search of {option} has not run to its end")
    chosen = frame["options"].map(lambda text: json.loads(text).get(option))
    if chosen.isna().any() or frame["epsilon"].nunique() < 2:
        raise Missing(f"this run did not search {option} of {method}")
    frame = frame.assign(chosen=chosen).sort_values("epsilon")
    ends = frame.groupby(["dataset", "train_size"])["chosen"].agg(["first", "last"])
    falls = ends["first"] > ends["last"]
    pairs = "; ".join(
        f"n = {size}: {first:g} to {last:g}" for (_, size), first, last in ends.itertuples()
    )
    text = f"{option} from the smallest to the largest epsilon: {pairs}"
    return Outcome(bool(falls.mean() >= share), text, float(falls.mean()), share)


class SimilarEpsilons(Place):
    method: Method
    first: float
    second: float
    within: float


@check(RESULTS, SimilarEpsilons)
def similar_epsilons(results, *, method, first, second, within, **where):
    """On every data set and at every training size, a method's mean errors at two epsilons differ by at
    most `within`. This is an equivalence test, like `similar`.
    """
    pair = [
        ok(results.cells(methods=method, epsilon=e, **where)).to_dict("records")
        for e in (first, second)
    ]
    keys = ("dataset", "train_size")
    gaps = []
    for one, other in itertools.product(*pair):
        if all(one[key] == other[key] for key in keys):
            gap, *ends = difference(results, one, other, "error_mean")
            low, high = counted_interval(results, one, "error_mean", gap, *ends)
            gaps.append((abs(gap), low, high, one, other))
    if not gaps:
        raise Missing(f"{method} has no point at both epsilons")
    gap, low, high, one, other = max(gaps, key=lambda point: point[0])
    text = (
        f"{method} at epsilon = {first:g} and {second:g}: {spell(one['error_mean'])} and "
        f"{spell(other['error_mean'])} ({one['dataset']}, n = {one['train_size']:.0f}), difference "
        f"[{spell(low)}, {spell(high)}]"
    )
    if any(point[1] > within or point[2] < -within for point in gaps):
        holds = False
    else:
        holds = True if all(max(-point[1], point[2]) <= within for point in gaps) else None
    return Outcome(holds, text, float(gap), within)


class WidthAlongSize(Options):
    method: Method
    widens: list
    narrows: list
    sweep: Sweeps | None = None


@check(RESULTS, WidthAlongSize)
def width_along_size(results, *, method, widens, narrows, sweep):
    """The interval of the mean error widens with training size at the epsilons `widens`, and narrows at
    the epsilons `narrows`.

    By the normal approximation, the rank correlation of width and training size, over k sizes, is
    significant if its magnitude exceeds 1.96/sqrt(k - 1). The claim holds if the correlation is
    significant in the stated direction on every data set at every epsilon. It fails if any correlation
    is significant in the opposite direction.
    """
    frame = ok(results.cells(methods=method, sweep=sweep, epsilon=[*widens, *narrows]))
    correlations = []
    for (dataset, epsilon), curve in frame.groupby(["dataset", "epsilon"]):
        widths = (curve["error_high"] - curve["error_low"]).rank()
        if len(curve) < 4 or widths.isna().any():
            raise Missing("this run has too few sizes, or no intervals, for a trend of widths")
        correlation = widths.corr(curve["train_size"].rank())
        wanted = 1 if any(math.isclose(epsilon, e) for e in widens) else -1
        correlations.append(
            (wanted * correlation, 1.96 / math.sqrt(len(curve) - 1), dataset, epsilon)
        )
    texts = [
        f"{dataset}, epsilon = {canonical.epsilon(epsilon)}: rank correlation "
        f"{(1 if epsilon in widens else -1) * value:.2f}"
        for value, _, dataset, epsilon in correlations
    ]
    if any(value < -limit for value, limit, *_ in correlations):
        holds = False
    else:
        holds = True if all(value > limit for value, limit, *_ in correlations) else None
    value, limit, *_ = min(correlations)
    return Outcome(holds, "; ".join(texts), float(value), limit)


class Coincide(Point):
    method: Method
    other: Method
    share: float = 1.0


@check(RESULTS, Coincide)
def coincide(results, *, method, other, share, **where):
    """Two methods that ran separately have the same error in every draw, at a `share` or more of their
    common points. If one method fails on a draw, the other must fail on the same draw.
    """
    same, worst = [], 0.0
    pairs = paired_rows(results, method, other, "error_mean", where)
    for pair in pairs:
        cells = [cell_of(row) for row in pair]
        draws = [results.draws(cell, "error") for cell in cells]
        if any(errors is None for errors in draws):
            raise Missing("there are no single draws to compare")
        first, second = (np.asarray(errors, dtype=float) for errors in draws)
        if np.isnan(first).all() and np.isnan(second).all():
            raise Lost(why_failed(pair[0]) or "every draw failed")
        alike = (np.isnan(first) == np.isnan(second)).all()
        gap = float(np.nanmax(abs(first - second), initial=0.0)) if alike else math.inf
        worst = max(worst, gap)
        same.append(gap <= 1e-12)
    reached = sum(same) / len(same)
    text = (
        f"{method} and {other} have the same errors, draw by draw, at {sum(same)} of {len(same)} points; "
        f"no draw differs by more than {spell(worst)}"
    )
    return Outcome(reached >= share, text, reached, share)


@check(NOTHING, law.NoiseLaw)
def noise_law(results, **options):
    """The printed variances have the law of Laplace noise: as many as chance allows (95 %) lie inside their
    95 % intervals, rounding included, and the spread of the finely printed ones is the law's.

    The variances of one size and epsilon are independent of the others, because each has noise of its own.
    """
    rows = law.variances(results.experiment, options)
    inside = sum(row.inside for row in rows)
    expected = sum(row.chance for row in rows)
    allowed = law.LEVEL * math.sqrt(sum(row.chance * (1 - row.chance) for row in rows))
    fine = [row.deviations for row in rows if row.fine]
    spread = math.sqrt(sum(z * z for z in fine) / len(fine))
    mean = sum(fine) / len(fine)
    # A standardised variance of so many draws is nearly normal.
    within = law.LEVEL / math.sqrt(2 * len(fine))
    holds = (
        abs(inside - expected) <= allowed
        and abs(spread - 1) <= within
        and abs(mean) <= law.LEVEL / math.sqrt(len(fine))
    )
    text = (
        f"{inside} of {len(rows)} printed variances lie inside 95 % (by the law {expected:.0f} +- "
        f"{allowed:.0f}); the {len(fine)} whose rounding does not count are on average {mean:.2f} and in "
        f"root mean square {spread:.3f} standard deviations away (by the law 0 +- "
        f"{law.LEVEL / math.sqrt(len(fine)):.2f} and 1 +- {within:.3f})"
    )
    return Outcome(holds, text, inside / len(rows), expected / len(rows))


SOLVED = 1e-6  # the solver's error of an intercept is smaller


class Neighbours(Options):
    mechanism: Mechanism
    n: int
    d: int
    epsilon: float
    lam: float


def _released(mechanism, n, d, epsilon, lam, draws=20):
    """What a mechanism releases on two data sets whose only difference is the first row's label.

    That row has equal coordinates and norm 1, and all other rows are zero.
    """
    from dp.mechanisms import MECHANISMS
    from dp.seeds import generator

    X, y = np.zeros((n, d)), np.resize([1, -1], n)
    X[0] = 1 / math.sqrt(d)
    for label in (1, -1):
        y[0] = label
        rng = generator(1, "neighbours", mechanism, label)
        yield MECHANISMS[mechanism].release(X, y, epsilon=epsilon, lam=lam, restarts=draws, rng=rng)


@check(NOTHING, Neighbours)
def neighbours_lose(results, *, mechanism, n, d, epsilon, lam):
    """Released on two neighbours, weights with independent Laplace noise lose more than epsilon: the L1
    distance of the weights before the noise, divided by the scale that the drawn noise has.
    """
    first, second = (release.info for release in _released(mechanism, n, d, epsilon, lam))
    # All coordinates of the weights are equal.
    distance = d * abs(first["weights_mean"][0] - second["weights_mean"][0])
    scale = math.sqrt(np.mean([*first["noise_variance"], *second["noise_variance"]]) / 2)
    loss = float(distance / scale)
    text = (
        f"{mechanism} at n = {n:,}, d = {d}, lambda = {lam:g}, for two neighbours: the weights differ by "
        f"{distance:.4g} in L1, the noise has scale {scale:.4g}, so the loss is {loss:.4g} where "
        f"{epsilon:g} is claimed"
    )
    # The scale of so many draws is known to 1 %.
    return Outcome(loss > 1.02 * epsilon, text, loss, float(epsilon))


@check(NOTHING, Neighbours)
def intercept_tells(results, *, mechanism, n, d, epsilon, lam):
    """On each of two neighbours, the intercept is the same in every draw, and the two intercepts differ by
    more than the solver's error: who sees it knows which of the two the data are.
    """
    intercepts = [release.info["intercept"] for release in _released(mechanism, n, d, epsilon, lam)]
    spread = max(float(np.ptp(values)) for values in intercepts)
    gap = abs(float(np.mean(intercepts[0]) - np.mean(intercepts[1])))
    text = (
        f"{mechanism} at n = {n:,}, d = {d}, lambda = {lam:g}, for two neighbours, "
        f"{len(intercepts[0])} draws each: the released intercepts vary by {spread:.3g} within a data "
        f"set, and differ by {gap:.3g} between them"
    )
    return Outcome(spread == 0 and gap > SOLVED, text, gap, SOLVED)


class NormsOfNoise(Options):
    mechanism: Mechanism
    dimensions: int
    draws: int = 2000
    chance: float = 1e-6


@check(NOTHING, NormsOfNoise)
def norms_of_noise(results, *, mechanism, dimensions, draws, chance):
    """The noise's norm does not have the law Gamma(dimensions, scale) of the density that the proof needs,
    proportional to exp(-norm/scale): a Kolmogorov-Smirnov test of its draws has a smaller p than `chance`.
    """
    from scipy import stats

    from dp.mechanisms import MECHANISMS
    from dp.seeds import generator

    rng = generator(1, "norms of noise", mechanism)
    norms = np.linalg.norm(MECHANISMS[mechanism].law(dimensions, 1.0, draws, rng), axis=1)
    p = float(stats.kstest(norms, stats.gamma(dimensions).cdf).pvalue)
    text = (
        f"{draws:,} draws of {mechanism}'s noise of scale 1 in {dimensions} dimensions: norms "
        f"{norms.mean():.1f} +- {norms.std():.2f}, where Gamma({dimensions}) has {dimensions} +- "
        f"{math.sqrt(dimensions):.2f} (p = {p:.2g})"
    )
    return Outcome(p < chance, text, p, chance)


class GradientDiffers(Options):
    dimensions: int
    at_least: float


@check(NOTHING, GradientDiffers)
def gradient_differs(results, *, dimensions, at_least):
    """The program's gradient differs from the logistic loss's by at least a share `at_least` of its norm,
    at random weights and rows of norm 1. Central differences of the loss give the latter.
    """
    from dp.descents.stochastic import program_gradient
    from dp.seeds import generator

    rng = generator(1, "gradient")
    rows = rng.standard_normal((200, dimensions))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    weights, step = rng.standard_normal(dimensions), 1e-6
    moved = weights[:, None] + step * np.concatenate(
        [np.eye(dimensions), -np.eye(dimensions)], axis=1
    )
    losses = np.logaddexp(0, -rows @ moved).sum(axis=0)
    true = (losses[:dimensions] - losses[dimensions:]) / (2 * step)
    run = program_gradient(weights[None, None], rows[None], 1.0)[0, 0]
    share = float(np.linalg.norm(run - true) / np.linalg.norm(true))
    text = (
        f"at {dimensions} random weights and 200 rows, the program's gradient is off by {share:.3g} of "
        f"the loss's"
    )
    return Outcome(share >= at_least, text, share, at_least)
