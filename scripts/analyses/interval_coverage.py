"""Measures the coverage of private intervals, and makes a private regression table."""

import itertools
import math
from pathlib import Path

import numpy as np

from analyses.designs import CHOSEN, DESIGNS, HELD_OUT, draw
from dp import inference
from dp.mechanisms import (
    MECHANISMS,
    noise_aware_boosted,  # noqa: F401 (designs name it, so analyses depend on its file)
)
from dp.mechanisms.noise_aware import second_moments
from dp.seeds import generator
from dp.solvers.newton import minimise
from study.canonical import epsilon as canonical
from study.configuration.inputs import DATA, NOTHING
from study.configuration.kinds import analysis
from study.configuration.options import Options
from study.data.prepared import Prepared
from study.data.units import Units
from study.jobs.files import read_json, write_csv

RIDGE = 1e-8  # negligible ridge of non-private fits
COVERAGE = (
    *("design", "half", "train_size", "epsilon", "method", "coefficient", "printed", "intervals"),
    *("share", "coverage", "coverage_error", "width", "width_ratio"),
)
REGRESSION = (
    *("dataset", "method", "epsilon", "delta", "coefficient", "estimate", "standard_error"),
    *("low", "high", "p_value", "says"),
)
SILENT = "no interval: at this epsilon and size, the noise says more about it than the rows do"


def _truth(name, axes):
    """The design's true coefficients (d,) or, if unknown, those of a fit to a million rows."""
    design = DESIGNS[name]
    if design.truth is not None:
        return design.truth
    many = draw(name, 1_000_000, generator(*axes, "truth"))
    (truth,), _ = minimise(*many, RIDGE, loss=design.loss)
    return truth


def _sandwich(X, y, weights, design):
    """Non-private estimates (1, d) and sandwich covariances (1, d, d)."""
    n = len(y)
    matrices = second_moments(X, y, weights, not design.right, design.loss)
    hessian, *scores = (matrix / n for matrix in matrices)
    linearised = inference.linearise(weights, hessian, n, RIDGE, 0.0, 0.0, *scores)
    return linearised.estimate, linearised.covariance


def _ways(X, y, design, settings, rng, draws):
    """Method -> (estimates, covariances, mask of printed intervals) on one data set.

    The mask is None for methods without a rule for printing intervals.
    """
    mechanism, ways = MECHANISMS[design.mechanism], {}
    n, d = X.shape
    for name, own in design.ways.items():
        own = settings | own
        lam = mechanism.rule_lambda(n, d, **own) if mechanism.needs_lambda else 0.0
        release = mechanism.release(X, y, lam=lam, restarts=draws, rng=rng, **own)
        info = release.info
        ways[name] = release.weights, info["covariance"], info["answered"]
        if len(ways) == 1:
            weights, hessian = info["minimiser"], info["hessian"]
            moments = hessian if info["scores"] is None else info["scores"]
            K = np.linalg.inv(hessian + lam * np.eye(d))
            noise = (info["scale"] / n) ** 2 * np.eye(d)
            spread = info.get("output_scale", 0.0) ** 2 * np.eye(d)
            ways["biased"] = weights, K @ (moments / n + noise) @ K + spread, None
            ways["naive"] = weights, K @ moments @ K / n, None
    return ways


def half(name: str) -> str:
    """Whether the rule for printing intervals was "chosen" or "tested" on a design; "" if neither."""
    return "chosen" if name in CHOSEN else "tested" if name in HELD_OUT else ""


def _judged(low, high, truth, printed, plain):
    """Yield (coefficient, printed, intervals, share, coverage, its error, width, width_ratio) per group.

    A group is one coefficient's intervals with the same value of `printed`. share: the group's share of the
    coefficient's intervals. low, high, printed: (data sets, draws, d); printed may be None. plain (d,):
    non-private widths. Draws on one data set share its rows, so coverage's standard error is over data
    sets.
    """
    covered = (low <= truth) & (truth <= high)
    for j in range(len(truth)):
        for flag in ("",) if printed is None else (1, 0):
            group = np.ones(covered.shape[:2], bool) if flag == "" else printed[..., j] == flag
            count = group.sum()
            if not count:
                continue
            hits = (covered[..., j] & group).sum(axis=1)
            coverage = hits.sum() / count
            error = np.linalg.norm(hits - coverage * group.sum(axis=1)) / count
            width = np.median((high - low)[..., j][group])
            yield j, flag, count, count / group.size, coverage, error, width, width / plain[j]


class Coverage(Options):
    designs: list = ["logistic"]
    train_sizes: list = [1000, 5000, 20000]
    epsilons: list = [0.5, 1, 4]
    delta: float = 1e-6
    replicates: int = 60
    draws: int = 2


@analysis(NOTHING, Coverage)
def coverage(experiment, spec, inputs, seed, out):
    """Coverage and width of intervals, for each coefficient, over data sets and draws.

    designs: names in `analyses.designs.DESIGNS`; "chosen" stands for all designs on which the rule for
    printing intervals was chosen, and "tested" for all on which it was tested. In "other" and
    "linear", the truth is the best logistic or log-cosh fit to a million rows. In "boosted_uneven", errors
    depend on the rows, which violates the assumption of boosting's intervals.

    Values of `method`, besides "without_privacy":
    "noise_aware": the Hessian (for regression, times a released number) replaces the gradients' second
    moments; boosting uses the second half of its steps.
    "noise_aware_robust": the second moments are released.
    "noise_aware_last": boosting uses its last step.
    "biased": the release of "noise_aware", without correcting for bias from the ridge or the initial
    weights.
    "naive": the release of "noise_aware", as if it contained no noise.

    printed: 1 for intervals that the rule prints, 0 for others, empty for methods without the rule.
    coverage_error: standard error over data sets. width: the median. width_ratio: width divided by the
    mean non-private width.
    """
    options, rows = spec.options, []
    sets = {"chosen": CHOSEN, "tested": HELD_OUT}
    for name in itertools.chain(*(sets.get(name, [name]) for name in options["designs"])):
        design, axes = DESIGNS[name], (seed, experiment.name, name)
        truth = _truth(name, axes)
        for n in options["train_sizes"]:
            intervals = {}  # (method, epsilon) -> [low, high, printed] of every data set
            for k in range(options["replicates"]):
                rng = generator(*axes, n, k, "coverage")
                X, y = draw(name, n, rng)
                fit, _ = minimise(X, y, RIDGE, loss=design.loss)
                ways = {("without_privacy", math.inf): (*_sandwich(X, y, fit, design), None)}
                for epsilon in options["epsilons"]:
                    settings = {"epsilon": epsilon, "delta": options["delta"]}
                    made = _ways(X, y, design, settings, rng, options["draws"])
                    ways |= {(method, epsilon): way for method, way in made.items()}
                for key, (estimates, covariances, printed) in ways.items():
                    ends = inference.wald(estimates, covariances)
                    if printed is None:
                        printed = np.ones(ends.low.shape, bool)
                    intervals.setdefault(key, []).append((ends.low, ends.high, printed))
            low, high, _ = np.moveaxis(np.array(intervals["without_privacy", math.inf]), 1, 0)
            plain = (high - low).mean(axis=(0, 1))
            for (method, epsilon), triples in intervals.items():
                low, high, printed = np.moveaxis(np.array(triples), 1, 0)
                flags = printed if "aware" in method else None
                where = name, half(name), n, canonical(epsilon), method
                rows.extend((*where, *line) for line in _judged(low, high, truth, flags, plain))
    write_csv(out, COVERAGE, rows)


class Bootstrap(Options):
    design: str = "logistic"
    train_sizes: list = [2000]
    epsilons: list = [0.5]
    delta: float = 1e-6
    replicates: int = 10
    resamples: int = 40
    rounds: int = 3


@analysis(NOTHING, Bootstrap)
def bootstrap(experiment, spec, inputs, seed, out):
    """Parametric bootstraps and noise-aware intervals on the same releases.

    design: one of `DESIGNS`. Each data set has one release, with the design's first options.
    "bootstrap": basic intervals. "bootstrap_debiased": `rounds` steps adjust the simulated model until
    its mean release equals the actual one. Neither bootstrap costs privacy: rows are simulated from the
    released Hessian, and targets get normal errors, whose standard deviation is also from the release.
    """
    options, rows, name = spec.options, [], spec.options["design"]
    design = DESIGNS[name]
    mechanism, truth = MECHANISMS[design.mechanism], _truth(name, (seed, experiment.name, name))
    for n, epsilon in itertools.product(options["train_sizes"], options["epsilons"]):
        settings = {"epsilon": epsilon, "delta": options["delta"]}
        settings |= next(iter(design.ways.values()))
        if mechanism.needs_lambda:
            settings["lam"] = mechanism.rule_lambda(n, len(truth), **settings)

        def private(X, y, rng, settings=settings):
            return mechanism.release(X, y, rng=rng, **settings)

        intervals, flags = {}, []
        for k in range(options["replicates"]):
            rng = generator(seed, experiment.name, name, n, canonical(epsilon), k, "bootstrap")
            release = private(*draw(name, n, rng), rng)
            ends = inference.wald(release.weights, release.info["covariance"])
            made = {"noise_aware": (ends.low[0], ends.high[0])}
            flags.append(release.info["answered"])
            simulated, labels = _simulated(release.info, design.loss, n, rng)
            for method, rounds in {"bootstrap": 0, "bootstrap_debiased": options["rounds"]}.items():
                made[method] = inference.bootstrap(
                    release.weights[0],
                    simulated,
                    lambda X, y, rng: private(X, y, rng).weights[0],
                    rng,
                    options["resamples"],
                    draw=labels,
                    rounds=rounds,
                )
            for method, ends in made.items():
                intervals.setdefault(method, []).append(ends)
        plain = np.median(np.diff(intervals["noise_aware"], axis=1)[:, 0], axis=0)
        for method, ends in intervals.items():
            low, high = np.moveaxis(np.array(ends), 1, 0)[:, :, None]
            printed = np.array(flags) if method == "noise_aware" else None
            where = name, half(name), n, canonical(epsilon), method
            rows.extend((*where, *line) for line in _judged(low, high, truth, printed, plain))
    write_csv(out, COVERAGE, rows)


def _simulated(info, loss, n, rng):
    """Rows (n, d) simulated from a release, and a function that simulates their labels or targets."""
    (hessian,), (minimiser,) = info["hessian"], info["minimiser"]
    if not loss.residual:
        return inference.logistic_rows(hessian, minimiser, n, 1.0, rng), inference.logistic_labels
    (scores,) = info["scores"]
    spread, curvature = inference.normal_errors(np.trace(scores) / np.trace(hessian), loss)

    def labels(z, rng):
        return np.clip(z + spread * rng.standard_normal(len(z)), -1, 1)

    return inference.normal_rows(hessian / curvature, n, 1.0, rng), labels


class Regression(Options):
    epsilons: list = [0.5, 1, 4]
    delta: float = 1e-06
    robust: bool = True
    reference: dict = {}


@analysis(DATA, Regression)
def regression(experiment, spec, inputs, seed, out):
    """Coefficients of a logistic regression in the columns' own units, with and without privacy.

    The non-private regression is statsmodels' Logit, on columns scaled only by their bounds. The private
    regression is one release per epsilon, with lambda from `rule_lambda`. Both use all rows. A category
    has a coefficient for each level except its reference: the level in `reference`, or else the first.
    A sentence replaces each interval that `dp.inference.answered` does not print.
    """
    import statsmodels.api as sm

    options, rows = spec.options, []
    mechanism = MECHANISMS["noise_aware_logistic"]
    for name, path in inputs.items():
        meta = read_json(Path(path).with_suffix(".json"))
        units = Units.of(meta, options["reference"])
        X, y = Prepared(path).floats()
        X, T = X[:, units.kept], units.matrix
        textbook = sm.Logit((y + 1) / 2, X).fit(disp=False, tol=1e-10)
        fits = [
            ("without_privacy", math.inf, textbook.params[None], textbook.cov_params()[None], None)
        ]
        for epsilon in options["epsilons"]:
            rng = generator(seed, experiment.name, name, canonical(epsilon), "regression")
            settings = {"epsilon": epsilon, "delta": options["delta"], "bound": meta["bound"]}
            settings |= {"robust": options["robust"]}
            settings["lam"] = mechanism.rule_lambda(*X.shape, **settings)
            release = mechanism.release(X, y, rng=rng, **settings)
            info = release.info
            fits.append(
                ("noise_aware", epsilon, release.weights, info["covariance"], info["unresolved"])
            )
        for method, epsilon, estimates, spread, unresolved in fits:
            spread, printed = T @ spread @ T.T, np.ones((1, len(T)), bool)
            if unresolved is not None:
                printed = inference.answered(spread, T @ unresolved @ T.T)
            table = inference.wald(estimates @ T.T, spread, answered=printed)
            for j, column in enumerate(units.names):
                where = (name, method, canonical(epsilon), options["delta"], column)
                values = (each[0, j] for each in table)
                rows.append((*where, *values, "" if printed[0, j] else SILENT))
    write_csv(out, REGRESSION, rows)
