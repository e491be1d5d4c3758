"""Measures the seconds of every method's release on one thread, one draw at a time and batched."""

import time
import warnings

import numpy as np

from dp import losses
from dp.mechanisms import MECHANISMS
from dp.noise import l2_laplace
from dp.rows import split_folds
from dp.seeds import generator
from dp.solvers.fits import l2
from study import arguments
from study.configuration.inputs import DATA
from study.configuration.kinds import analysis
from study.configuration.options import Options
from study.data.prepared import Prepared
from study.jobs.files import read_json, write_csv

COLUMNS = ("dataset", "procedure", "draws", "repeat", "seconds")


class Timing(Options):
    epsilon: float = 0.1
    train_size: int = 1000
    restarts: int = 200
    repeats: int = 5


@analysis(DATA, Timing, exclusive=True)
def timing(experiment, spec, paths, seed, out):
    """Write the seconds that each repeat of a whole release takes, including its shared fit.

    The column `procedure` contains "plain", this project's certified L2 fit; "scikit_learn", the default
    LogisticRegression; "general_purpose", a common form of objective perturbation, in which SciPy's BFGS
    minimises a tilted objective without its gradient; and "general_purpose_plain", the same without a tilt.
    Other procedures are the experiment's private
    methods, with one draw and with options["restarts"] draws.
    """
    options = spec.options
    rows = []
    with one_thread():
        for dataset, path in paths.items():
            X, y = _rows(experiment, dataset, path, options["train_size"], seed)
            meta = read_json(path.removesuffix(".npz") + ".json")
            calls = _procedures(experiment, spec, dataset, X, y, meta, seed)
            for run in calls.values():
                run()  # warm-up of imports and caches
            for repeat in range(options["repeats"]):
                for (procedure, draws), run in calls.items():
                    start = time.perf_counter()
                    run()
                    seconds = time.perf_counter() - start
                    rows.append((dataset, procedure, draws, repeat, seconds))
    write_csv(out, COLUMNS, rows)


def one_thread():
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def _rows(experiment, dataset, path, size, seed):
    prepared = Prepared(path)
    rng = generator(seed, experiment.name, dataset, "folds")
    train = split_folds(len(prepared.y), experiment.folds, rng)[0][0][:size]
    return prepared.floats(train)


def _procedures(experiment, spec, dataset, X, y, meta, seed):
    """(procedure, draws) -> a function without arguments that runs the procedure."""
    options = spec.options
    lam = next(iter(experiment.methods.values())).lambda_
    if isinstance(lam, str):
        raise ValueError(f"the timing of {experiment.name} needs a number for lambda, not {lam!r}")
    procedures = {
        ("plain", 1): lambda: l2(X, y, lam),
        ("scikit_learn", 1): lambda: _scikit_learn(X, y, lam),
    }
    for label in spec.methods or experiment.methods:
        method = experiment.methods[label]
        if not method.private:
            continue
        for draws in (1, options["restarts"]):
            rng = generator(seed, experiment.name, dataset, label, "timing")
            procedures[label, draws] = _release(method, X, y, options["epsilon"], meta, draws, rng)
    rng = generator(seed, experiment.name, dataset, "general_purpose", "timing")
    scale = 2 * meta["bound"] / options["epsilon"]
    procedures["general_purpose", 1] = lambda: _general_purpose(X, y, lam, scale, rng)
    procedures["general_purpose_plain", 1] = lambda: _general_purpose(X, y, lam, 0.0, rng)
    return procedures


def _release(method, X, y, epsilon, meta, draws, rng):
    mechanism = MECHANISMS[method.mechanism]
    cell = {"epsilon": epsilon, "delta": method.delta, "lam": method.lambda_}
    keywords = arguments.of_mechanism(mechanism, meta, method.options, **cell)

    def run():
        mechanism.release(X, y, restarts=draws, rng=rng, **keywords)

    return run


def _scikit_learn(X, y, lam):
    from sklearn.linear_model import LogisticRegression

    LogisticRegression(C=1 / (len(X) * lam), fit_intercept=False).fit(X, y)


def _general_purpose(X, y, lam, scale, rng):
    from scipy.optimize import minimize

    n, d = X.shape
    linear = l2_laplace(d, scale, 1, rng)[0] if scale else np.zeros(d)
    logistic = losses.get("logistic")

    def objective(w):
        return logistic.value(y * (X @ w)).mean() + lam / 2 * (w @ w) + linear @ w / n

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # finite differences may not reach the tolerance
        minimize(objective, np.zeros(d), method="BFGS")
