"""How good private intervals are: their coverage in simulations, and a regression as it is reported."""

import itertools
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dp import inference, losses
from dp.data.examples import clip_rows
from dp.mechanisms import (
    MECHANISMS,
    noise_aware_boosted,  # noqa: F401, which designs name: analyses depend on its file
)
from dp.mechanisms.noise_aware import second_moments
from dp.seeds import generator
from dp.solvers.newton import minimise
from study.canonical import epsilon as canonical
from study.data.prepared import Prepared
from study.jobs.files import read_json, write_csv

COEFFICIENTS = np.array([2.0, -1.5, 1.0, 0.5, 0.0, 0.0])
RIDGE = 1e-8  # of fits without privacy; too small to matter
COVERAGE = (
    *("design", "train_size", "epsilon", "method", "intervals", "coverage", "coverage_error"),
    *("width", "width_ratio", "coarse"),
)
REGRESSION = (
    *("dataset", "method", "epsilon", "delta", "coefficient", "estimate", "standard_error"),
    *("low", "high", "p_value", "coarse"),
)


class Design(NamedTuple):
    """A simulated model: its mechanism, name -> options of its intervals, the loss of its fits without
    privacy, whether that is the model's own, and the truth if it is known."""

    mechanism: str
    ways: dict
    loss: object
    right: bool
    truth: object = None


TAU = 0.25
LOG_COSH = {"log_cosh": {"tau": TAU}}
ROBUST = {"noise_aware": {"robust": False}, "noise_aware_robust": {"robust": True}}
WIDTHS = {name: own | {"loss": LOG_COSH} for name, own in ROBUST.items()}
ITERATES = {"noise_aware": {"iterates": "late"}, "noise_aware_last": {"iterates": "last"}}
LOGISTIC = "noise_aware_logistic", ROBUST, losses.get("logistic")
HUBER = losses.get("huber_residual", tau=TAU)
DESIGNS = {
    "logistic": Design(*LOGISTIC, True, COEFFICIENTS),
    "other": Design(*LOGISTIC, False),
    "linear": Design("noise_aware_log_cosh", WIDTHS, losses.get(LOG_COSH), False),
    # errors are symmetric, and the cut to [-1, 1] leaves more than TAU of each: clipped, they still are
    "boosted": Design("noise_aware_boosted", ITERATES, HUBER, False, COEFFICIENTS / 4),
    "boosted_uneven": Design("noise_aware_boosted", ITERATES, HUBER, False, COEFFICIENTS / 4),
}


def _rows(design, n, rng):
    """Rows (n, 6) of norm at most 1 and labels: of a logistic model, or of one with heavier tails and a
    kink, which no logistic model is; or numbers that are linear in them with errors of three degrees of
    freedom, cut to [-1, 1], which in one design are the larger, the farther from 0 the first column is."""
    X = clip_rows(rng.standard_normal((n, 6)), math.sqrt(6)) / math.sqrt(6)
    z = X @ COEFFICIENTS
    if DESIGNS[design].loss.residual:
        spread = 0.5 * np.abs(X[:, 0]) if design == "boosted_uneven" else 0.1
        return X, np.clip(z / 4 + spread * rng.standard_t(3, n), -1, 1)
    if design == "logistic":
        p = 1 / (1 + np.exp(-z))
    else:
        p = 0.1 + 0.8 * (z + np.abs(X[:, 1]) > 0.2) * (1 - 0.5 * np.exp(-np.abs(z)))
    return X, np.where(rng.random(n) < p, 1, -1)


def _truth(name, axes):
    """The design's coefficients (d,) if they are known, or the best fit of a million rows."""
    design = DESIGNS[name]
    if design.truth is not None:
        return design.truth
    many = _rows(name, 1_000_000, generator(*axes, "truth"))
    (truth,), _ = minimise(*many, RIDGE, loss=design.loss)
    return truth


def _sandwich(X, y, weights, design):
    """Estimates (1, d) and covariances (1, d, d) without privacy."""
    n = len(y)
    matrices = second_moments(X, y, weights, not design.right, design.loss)
    hessian, *scores = (matrix / n for matrix in matrices)
    found = inference.linearise(weights, hessian, n, RIDGE, 0.0, 0.0, *scores)
    return found.estimate, found.covariance


def _ways(X, y, design, settings, rng, draws):
    """Name -> (estimates, covariances, coarse) on one data set: noise-aware intervals, and simpler ones."""
    mechanism, found = MECHANISMS[design.mechanism], {}
    n, d = X.shape
    for name, own in design.ways.items():
        own = settings | own
        lam = mechanism.rule_lambda(n, d, **own) if mechanism.needs_lambda else 0.0
        release = mechanism.release(X, y, lam=lam, restarts=draws, rng=rng, **own)
        info = release.info
        found[name] = release.weights, info["covariance"], info["coarse"]
        if len(found) == 1:
            weights, hessian = info["minimiser"], info["hessian"]
            moments = hessian if info["scores"] is None else info["scores"]
            K = np.linalg.inv(hessian + lam * np.eye(d))
            noise = (info["scale"] / n) ** 2 * np.eye(d)
            spread = info.get("output_scale", 0.0) ** 2 * np.eye(d)
            found["biased"] = weights, K @ (moments / n + noise) @ K + spread, None
            found["naive"] = weights, K @ moments @ K / n, None
    return found


def coverage(experiment, spec, inputs, seed, out):
    """How often intervals contain the truth, over data sets and draws, and how wide they are.

    design: options["design"], "logistic" (the model is right; the truth its coefficients), "other" or
    "linear" (the truth is the best fit of a million rows, logistic or log-cosh), or "boosted" (the same
    numbers, whose coefficients are the truth of clipped residuals) and "boosted_uneven" (with errors that
    depend on the rows, although boosting's intervals take them as independent). method: "without_privacy";
    "noise_aware", which takes the Hessian for the slopes' second moments (of numbers: times what a number
    that it releases says), of boosting from the second half of the steps; "noise_aware_robust", which
    releases these moments; "noise_aware_last", from the last step of boosting; "biased", from the first
    one's release without undoing the pull of ridge or start (of boosting: from the last weights, as if one
    step went all the way); and "naive", from it as if it had no noise.
    coverage_error: standard error over the data sets. width_ratio: over the width without privacy.
    """
    options = spec["options"]
    name = options["design"]
    design, axes = DESIGNS[name], (seed, experiment.name, name)
    truth, rows = _truth(name, axes), []
    for n in options["train_sizes"]:
        found = {}  # (method, epsilon) -> [covered, width, coarse] of every data set
        for k in range(options["replicates"]):
            rng = generator(*axes, n, k, "coverage")
            X, y = _rows(name, n, rng)
            fit, _ = minimise(X, y, RIDGE, loss=design.loss)
            ways = {("without_privacy", math.inf): (*_sandwich(X, y, fit, design), None)}
            for epsilon in options["epsilons"]:
                settings = {"epsilon": epsilon, "delta": options["delta"]}
                made = _ways(X, y, design, settings, rng, options["draws"])
                ways |= {(method, epsilon): way for method, way in made.items()}
            for key, (estimates, covariances, coarse) in ways.items():
                ends = inference.wald(estimates, covariances)
                covered = (ends.low <= truth) & (truth <= ends.high)
                width = (ends.high - ends.low).mean()
                flagged = math.nan if coarse is None else coarse.mean()
                found.setdefault(key, []).append((covered.mean(), width, flagged))
        plain = np.mean([width for _, width, _ in found["without_privacy", math.inf]])
        for (method, epsilon), each in found.items():
            covered, width, coarse = np.mean(each, axis=0)
            count = len(each) * len(truth) * (1 if math.isinf(epsilon) else options["draws"])
            error = np.std([one[0] for one in each], ddof=1) / math.sqrt(len(each))
            rows.append(
                (
                    *(name, n, canonical(epsilon), method, count, covered, error),
                    *(width, width / plain, "" if math.isnan(coarse) else coarse),
                )
            )
    write_csv(out, COVERAGE, rows)


def bootstrap(experiment, spec, inputs, seed, out):
    """The parametric bootstrap beside normal intervals, if a release says that linearising is too coarse.

    design: as for `coverage`; there is one release per data set, of its first kind. Both intervals are
    computed for those that say so. Rows of the bootstrap are simulated from the released Hessian, and
    numbers' errors are normal with the spread that was released, so it costs no privacy. width_ratio: over
    the normal intervals. coarse: the share of releases that say so.
    """
    options, rows, name = spec["options"], [], spec["options"]["design"]
    design, own = DESIGNS[name], () if name == "logistic" else (name,)
    mechanism, truth = MECHANISMS[design.mechanism], _truth(name, (seed, experiment.name, name))
    for n, epsilon in itertools.product(options["train_sizes"], options["epsilons"]):
        settings = {
            "epsilon": epsilon,
            "delta": options["delta"],
            **next(iter(design.ways.values())),
        }
        if mechanism.needs_lambda:
            settings["lam"] = mechanism.rule_lambda(n, len(truth), **settings)

        def private(X, y, rng, settings=settings):
            return mechanism.release(X, y, rng=rng, **settings)

        found = {"noise_aware": [], "bootstrap": []}
        for k in range(options["replicates"]):
            rng = generator(seed, experiment.name, *own, n, canonical(epsilon), k, "bootstrap")
            release = private(*_rows(name, n, rng), rng)
            if not release.info["coarse"][0]:
                continue
            ends = inference.wald(release.weights, release.info["covariance"])
            found["noise_aware"].append((ends.low[0], ends.high[0]))
            simulated, draw = _simulated(release.info, design.loss, n, rng)
            found["bootstrap"].append(
                inference.bootstrap(
                    release.weights[0],
                    simulated,
                    lambda X, y, rng: private(X, y, rng).weights[0],
                    rng,
                    options["resamples"],
                    draw=draw,
                )
            )
        count = len(found["bootstrap"])
        if not count:
            continue
        plain = np.diff(found["noise_aware"], axis=1).mean()
        for method, ends in found.items():
            low, high = np.moveaxis(np.array(ends), 1, 0)
            covered = ((low <= truth) & (high >= truth)).mean(axis=1)
            error = covered.std(ddof=1) / math.sqrt(count) if count > 1 else math.nan
            width = (high - low).mean()
            rows.append(
                (
                    *(name, n, canonical(epsilon), method, covered.size * len(truth)),
                    *(covered.mean(), error, width, width / plain, count / options["replicates"]),
                )
            )
    write_csv(out, COVERAGE, rows)


def _simulated(info, loss, n, rng):
    """Rows (n, d) as a release tells of them, and a function that draws their labels or numbers."""
    (hessian,), (minimiser,) = info["hessian"], info["minimiser"]
    if not loss.residual:
        return inference.logistic_rows(hessian, minimiser, n, 1.0, rng), inference.logistic_labels
    (scores,) = info["scores"]
    spread, curvature = inference.normal_errors(np.trace(scores) / np.trace(hessian), loss)

    def draw(z, rng):
        return np.clip(z + spread * rng.standard_normal(len(z)), -1, 1)

    return inference.normal_rows(hessian / curvature, n, 1.0, rng), draw


def regression(experiment, spec, inputs, seed, out):
    """Coefficients of a logistic regression in the columns' own units, with and without privacy.

    Without privacy it is statsmodels' Logit, which uses only the bounds of columns from the preparation.
    With privacy it is one release per epsilon and adjacency, with lambda by rule. All rows are used. If
    linearising is too coarse, intervals of the parametric bootstrap are added, with rows simulated from the
    release.
    """
    import statsmodels.api as sm

    options, rows = spec["options"], []
    mechanism = MECHANISMS["noise_aware_logistic"]
    for name, path in inputs.items():
        meta = read_json(Path(path).with_suffix(".json"))
        X, y = Prepared(path).floats()
        T = _units(meta)
        textbook = sm.Logit((y + 1) / 2, X).fit(disp=False, tol=1e-10)
        found = [
            ("without_privacy", math.inf, textbook.params[None], textbook.cov_params()[None], 0)
        ]
        for epsilon in options["epsilons"]:
            rng = generator(seed, experiment.name, name, canonical(epsilon), "regression")
            settings = {"epsilon": epsilon, "delta": options["delta"], "bound": meta["bound"]}
            settings |= {"robust": options["robust"]}
            settings["lam"] = mechanism.rule_lambda(*X.shape, **settings)
            release = mechanism.release(X, y, rng=rng, **settings)
            covariance, coarse = release.info["covariance"], int(release.info["coarse"][0])
            found.append(("noise_aware", epsilon, release.weights, covariance, coarse))
            if coarse:
                ends = _bootstrap(release, settings, T, len(y), options["resamples"], rng)
                found.append(("bootstrap", epsilon, release.weights, ends, coarse))
        for method, epsilon, estimates, spread, coarse in found:
            estimates = estimates @ T.T
            if method == "bootstrap":
                unknown = np.full_like(estimates, math.nan)
                table = inference.Intervals(estimates, unknown, *spread, unknown)
            else:
                table = inference.wald(estimates, T @ spread @ T.T)
            for j, column in enumerate(meta["columns"]):
                values = (each[0, j] for each in table)
                where = (name, method, canonical(epsilon), options["delta"], column)
                rows.append((*where, *values, coarse))
    write_csv(out, REGRESSION, rows)


def _bootstrap(release, settings, T, n, resamples, rng):
    """Ends (1, d) each, low and high, of the parametric bootstrap of T times a release's coefficients."""
    mechanism = MECHANISMS["noise_aware_logistic"]
    (weights,), (hessian,), (minimiser,) = (
        release.weights,
        release.info["hessian"],
        release.info["minimiser"],
    )
    X = inference.logistic_rows(hessian, minimiser, n, settings["bound"], rng)

    def fit(_, y, rng):
        return T @ mechanism.release(X, y, rng=rng, **settings).weights[0]

    # labels are drawn of the same scores, whatever the units
    ends = inference.bootstrap(T @ weights, X @ np.linalg.inv(T), fit, rng, resamples)
    return tuple(end[None] for end in ends)


def _units(meta):
    """T (d, d): coefficients of the original columns are T times those of the prepared rows.

    This is for data that are scaled to bounds, given a constant and divided by a clipping radius that is no
    shorter than any row.
    """
    steps = {step["step"]: step.get("options", {}) for step in meta["steps"]}
    columns = meta["columns"]
    if set(steps) != {"scale_to_bounds", "constant_feature", "clip"}:
        raise ValueError(
            f"{meta['dataset']}: coefficients have units only if the steps are scale_to_bounds, "
            f"constant_feature and clip, not {', '.join(steps)}"
        )
    radius, bounds = steps["clip"]["radius"], steps["scale_to_bounds"]
    if radius < math.sqrt(len(columns)):
        raise ValueError(f"{meta['dataset']}: rows are shortened, so coefficients have no units")
    T = np.zeros((len(columns), len(columns)))
    for j, column in enumerate(columns[:-1]):
        low, high = bounds[column]
        T[j, j] = 2 / (high - low) / radius
        T[-1, j] = -(2 * low / (high - low) + 1) / radius
    T[-1, -1] = 1 / radius
    return T
