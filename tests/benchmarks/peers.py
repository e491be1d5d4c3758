"""Compares CPU seconds of this workflow, other libraries, and the minimum arithmetic.

    python tests/benchmarks/peers.py [repetitions]        2 minutes

diffprivlib, Opacus and jax-privacy are left out unless this command has created their environment:

    python3.11 -m venv .venv-peers && .venv-peers/bin/pip install -r envs/peers.txt

The wide problem is MNIST's digits 4 and 9 if this command has prepared them, and otherwise simulated rows
of the same shape and a similar spectrum:

    snakemake --cores 1 --configfile config/real.yaml -- results-real/data/mnist_4_9.npz

All programs use one thread and the same rows, and take turns. The table of medians is printed and written
to results/benchmarks/peers.csv. Seconds are CPU seconds per unit; ratios are the peer's seconds divided
by this project's. Floor, least and reading do less than this project, so their ratios are below 1.
Units are:

    fit       one minimiser, certified to a gradient norm of at most 1e-9. Peers get the same tolerance;
              the table shows the norm that they reach, except for private results, which hide it
    step      one step of one simulation: a batch's clipped gradients are summed, and noise is added.
              jax-privacy uses this project's steps and noise, so the mean errors should be similar
    release   one release of one data set, drawn and scored

Besides other libraries, the program times:

    reading   reading the same batches without computing: memory access and drawing batches
    least     reading, two products and one exponential per row
    floor     two matrix products and one exponential per row, restart and pass, in double precision
    loop      the textbook algorithm: one example at a time, in Python and numpy
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # must precede numpy's import

import csv
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from dp.descents import full_batch, poisson
from dp.evaluation import error_rate
from dp.mechanisms import MECHANISMS
from dp.noise import l2_laplace
from dp.rows import normalise_rows, simulate_separable
from dp.solvers.fits import fit_each
from dp.solvers.newton import minimise
from study.data.prepared import Prepared

PEERS = ROOT / ".venv-peers" / "bin" / "python"
DIGITS = ROOT / "results-real" / "data" / "mnist_4_9.npz"
LAMBDA, TOLERANCE = 0.01, 1e-9
COLUMNS = ("task", "size", "unit", "ours", "seconds", "peer", "peer_seconds", "ratio")
COLUMNS += ("gradient_norm", "peer_gradient_norm", "error", "peer_error")
COLUMNS += ("versions", "peer_versions")
SHOWN = {"task": 37, "size": 16, "unit": 7, "ours": 14, "seconds": 9, "peer": 29, "ratio": 5}
SHOWN |= {"gradient_norm": 13, "peer_gradient_norm": 18, "error": 6}  # column: width
SHOWN["peer_error"] = 0
LIMITS = {"reading": "reading the batches alone", "least": "the same, least arithmetic"}
OURS = f"numpy {np.__version__}, scipy {scipy.__version__}"
SKLEARN = f"scikit-learn {sklearn.__version__}"


def narrow(rng):
    """Chaudhuri and Monteleoni's separable data: uniform on the sphere, margin 0.03."""
    return simulate_separable(14000, 10, 0.03, rng)[:2]


def wide(rng):
    """The wide problem's name, X and y."""
    if DIGITS.exists():
        X, y = Prepared(DIGITS).floats()
        order = rng.permutation(len(X))
        return "MNIST 4 and 9", X[order], y[order]
    n, d = 11791, 784
    X = (rng.standard_normal((n, d)) + 2) * np.arange(1, d + 1) ** -0.75
    X = normalise_rows(X @ np.linalg.qr(rng.standard_normal((d, d)))[0])
    score = (X - X.mean(axis=0)) @ rng.standard_normal(d)
    noise = 0.1 * score.std() * rng.standard_normal(n)
    return "simulated", X, np.where(score + noise > 0, 1, -1)


class PeerProcess:
    def __init__(self, folder, problems):
        self.about = {}
        if not PEERS.exists():
            print(f"no {PEERS.relative_to(ROOT)}: diffprivlib, Opacus and jax-privacy are left out")
            return
        arrays = {}
        for name, (X, y) in problems.items():
            arrays |= {f"{name}_X": X, f"{name}_y": y}
        np.savez(Path(folder) / "data.npz", **arrays)
        self.process = subprocess.Popen(
            [PEERS, Path(__file__).with_name("peer_side.py"), Path(folder) / "data.npz"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.about = json.loads(self.process.stdout.readline())
        for task, details in self.about.items():
            if "missing" in details:
                print(f"{task} is left out: {details['missing']}")

    def calls(self, name, task, **arguments):
        """{name: function that runs the task}, or {} if the environment lacks the task's library."""
        if "versions" not in self.about.get(task, {}):
            return {}

        def call():
            json.dump({"task": task, **arguments}, self.process.stdin)
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

        return {name: call}

    def versions(self, task):
        versions = self.about[task]["versions"]
        return ", ".join(f"{name} {version}" for name, version in versions.items())


def timed(function, units, repeat=1):
    def call():
        start = time.process_time()
        for _ in range(repeat):
            result = function()
        return {"seconds": time.process_time() - start, "units": units * repeat} | (result or {})

    return call


def measure(calls, repetitions):
    """Each call's results and median seconds per unit. Calls take turns, after a warm-up."""
    seconds, returned = {name: [] for name in calls}, {}
    for turn in range(repetitions + 1):
        for name, call in calls.items():
            result = returned[name] = call()
            if turn:
                seconds[name].append(result["seconds"] / result["units"])
    return {name: returned[name] | {"seconds": statistics.median(seconds[name])} for name in calls}


def gradient_norm(X, y, w):
    return np.linalg.norm(LAMBDA * w - X.T @ (y * expit(-y * (X @ w))) / len(X))


def scikit_learn(X, y, solver, sizes=(None,)):
    """A function that fits, for each m in `sizes`, the first m rows without privacy."""

    def run():
        norms = []
        for size in sizes:
            rows, labels = X[:size], y[:size]
            model = LogisticRegression(
                C=1 / (len(rows) * LAMBDA),
                fit_intercept=False,
                solver=solver,
                tol=TOLERANCE / math.sqrt(X.shape[1]),  # bounds the gradient's largest entry
                max_iter=1000,
            )
            norms.append(gradient_norm(rows, labels, model.fit(rows, labels).coef_[0]))
        return {"gradient_norm": max(norms)}

    return run


def certified(info):
    if (info["status"] != "ok").any():
        raise RuntimeError("a restart did not converge: its time means nothing")
    return {"gradient_norm": info["gradient_norm"].max()}


def floor(X, restarts, rows=256):
    """A function that computes z = X W, e^z and X'z in blocks that fit into the cache."""
    blocks = [np.asfortranarray(X[k : k + rows]) for k in range(0, len(X), rows)]
    W = np.ones((X.shape[1], restarts))

    def run():
        gradient = np.zeros_like(W)
        for block in blocks:
            z = block @ W
            np.exp(z, out=z)
            gradient += (z.T @ block).T  # faster than block.T @ z

    return run


def private_fits(X, y, peers, repetitions):
    """Time objective perturbation (200 joint restarts), diffprivlib and scikit-learn's fastest solver."""
    n, d = X.shape
    mechanism, restarts = MECHANISMS["objective_perturbation"], 200
    solvers = ("newton-cholesky", "lbfgs", "newton-cg")
    for epsilon in (0.1, 0.005):

        def release(epsilon=epsilon):
            rng = np.random.default_rng(1)
            measured = mechanism.release(
                X, y, epsilon=epsilon, lam=LAMBDA, restarts=restarts, rng=rng, tolerance=TOLERANCE
            )
            return certified({"status": measured.status, **measured.info})

        # Solve the same problems as `release` to count the solver's passes.
        plan = mechanism.plan(n, d, epsilon=epsilon, lam=LAMBDA, tolerance=TOLERANCE)
        tilt = l2_laplace(d, plan.scale, restarts, np.random.default_rng(1))
        _, info = minimise(X, y, LAMBDA + plan.ridge, tilt, tolerance=TOLERANCE / 2)
        passes = info.iterations.mean()
        calls = {
            "ours": timed(release, restarts, 3),
            "floor": timed(floor(X, restarts), restarts, 10),
            **{name: timed(scikit_learn(X, y, name), 1, 10) for name in solvers},
        } | peers.calls(
            "diffprivlib", "diffprivlib",
            problem="narrow", epsilon=epsilon, lam=LAMBDA, repetitions=10, seed=1,
        )  # fmt: skip
        measured = measure(calls, repetitions)
        line = {
            "task": f"private fit, epsilon {epsilon}",
            "size": f"{n} x {d}",
            "unit": "fit",
            "ours": f"{restarts} restarts",
            **ours(measured["ours"]),
        }
        if "diffprivlib" in measured:
            peer = {"versions": peers.versions("diffprivlib")}
            yield line | versus("diffprivlib", measured["diffprivlib"] | peer)
        name = min(solvers, key=lambda name: measured[name]["seconds"])
        yield line | versus(f"scikit-learn, {name}", measured[name] | {"versions": SKLEARN})
        least = measured["floor"]["seconds"] * passes
        yield line | versus(f"floor, {passes:.2f} passes", {"seconds": least, "versions": ""})


def wide_fits(what, X, y, repetitions):
    """Time fits on 50 nested subsets: warm-started as in a fit job, cold-started, or as 24 joint restarts.

    The peers are scikit-learn's fastest solver, which misses the tolerance on the gradient norm, and the
    fastest that reaches it.
    """
    solvers = ("lbfgs", "newton-cg")
    sizes = np.linspace(200, len(X), 50).astype(int)
    mechanism, restarts = MECHANISMS["objective_perturbation"], 24

    def nested():
        fits = fit_each("l2", ((X[:k], y[:k]) for k in sizes), LAMBDA)
        return {"gradient_norm": max(certified(info)["gradient_norm"] for _, info in fits)}

    def alone():
        norms = [certified(minimise(X[:k], y[:k], LAMBDA)[1])["gradient_norm"] for k in sizes]
        return {"gradient_norm": max(norms)}

    def together():
        norms = []
        for size in sizes:
            rng = np.random.default_rng(1)
            measured = mechanism.release(
                X[:size], y[:size], epsilon=1.0, lam=LAMBDA, restarts=restarts, rng=rng
            )
            norms.append(certified({"status": measured.status, **measured.info})["gradient_norm"])
        return {"gradient_norm": max(norms)}

    calls = {
        "nested": timed(nested, len(sizes)),
        "alone": timed(alone, len(sizes)),
        "together": timed(together, len(sizes) * restarts),
    } | {name: timed(scikit_learn(X, y, name, sizes), len(sizes)) for name in solvers}
    measured = measure(calls, repetitions)
    names = {"nested": "each near last", "alone": "each alone", "together": f"{restarts} restarts"}
    for key, how in names.items():
        line = {
            "task": f"50 nested sizes, {what}",
            "size": f"{sizes[0]}..{len(X)} x {X.shape[1]}",
            "unit": "fit",
            "ours": how,
            **ours(measured[key]),
        }
        for name in solvers:
            yield line | versus(f"scikit-learn, {name}", measured[name] | {"versions": SKLEARN})


def loop(X, y, batch, steps, noise):
    """One simulation of clipped and noisy gradient descent, one example at a time."""
    rng, n, w = np.random.default_rng(1), len(X), np.zeros(X.shape[1])

    def run():
        nonlocal w
        w, order = 0 * w, rng.permutation(n)
        for step in range(steps):
            first = step * batch % n
            total = np.zeros_like(w)
            for i in order[first : first + batch]:
                gradient = -y[i] * X[i] / (1 + math.exp(y[i] * (X[i] @ w)))
                total += gradient / max(1.0, np.linalg.norm(gradient))
            total += noise * rng.standard_normal(len(w))
            w = w - 0.1 * (LAMBDA * w + total / batch)

    return run


def reading(X, batch, simulations):
    """A function that reads one epoch's batches in each simulation's own order."""
    rng, gathered = np.random.default_rng(1), np.empty((batch, X.shape[1]))
    orders = [rng.permutation(len(X)) for _ in range(simulations)]

    def run():
        for first in range(0, len(X) - batch + 1, batch):
            for order in orders:
                np.take(X, order[first : first + batch], 0, gathered, mode="clip")

    return run


def poisson_reading(X, sampling, simulations, arithmetic=False):
    """A function that draws Poisson batches and reads them in blocks as large as this project's."""
    rng, d = np.random.default_rng(1), X.shape[1]
    size = max(full_batch.LEAST_ROWS, full_batch.GATHERED // d)
    gathered, w = np.empty((size, d)), np.ones(d)

    def run():
        for _, rows, _ in poisson.batches(len(X), simulations, sampling, rng):
            for first in range(0, len(rows), size):
                chosen = rows[first : first + size]
                part = np.take(X, chosen, 0, gathered[: len(chosen)], mode="clip")
                if arithmetic:
                    np.exp(part @ w) @ part

    return run


def descents(problems, peers, repetitions):
    simulations = 24
    for name, (X, y) in problems.items():
        n, d = X.shape
        batch = 50
        steps = n // batch

        fixed = {"batch": batch, "bias": False, "schedule": "constant", "rate": 0.1}
        gaussian = {"delta": 1e-5, "learning_rate": 1.0}
        poisson = gaussian | {"sampling": 0.05, "iterations": 100}
        shared = {"problem": name, "lam": LAMBDA, "clip": 1.0, "seed": 1}
        # task -> (mechanism, its options, jax-privacy's batches, rows per batch, and the numbers of
        # steps for this project, the loop and Opacus)
        plan = {
            f"DP-SGD, batch {batch}": (
                *("dp_sgd", fixed, "fixed", batch, steps),
                *(min(steps, 20), min(steps, 100)),
            ),
            "DP-SGD, Poisson": ("dp_sgd_poisson", poisson, "Poisson", round(n / 20), 100, 0, 0),
            "DP-GD": ("dp_gd", gaussian | {"iterations": 5}, "all", n, 5, 1, 3),
        }
        for task, (mechanism, options, batches, rows, taken, looped, opacus) in plan.items():

            def release(X=X, y=y, mechanism=mechanism, options=options):
                return MECHANISMS[mechanism].release(
                    X, y, epsilon=1.0, lam=LAMBDA, restarts=simulations,
                    rng=np.random.default_rng(1), **options,
                )  # fmt: skip

            once = release()
            # Peers expect the noise scale of a sum. Only dp_sgd reports it; other
            # mechanisms report that of the mean.
            noise = float(np.mean(once.info["scale"])) * (1 if batches == "fixed" else rows)
            rate = options.get("rate") or options["learning_rate"]

            def run(release=release):
                release()

            calls = {"ours": timed(run, simulations * taken)}
            calls |= peers.calls(
                "jax-privacy", "jax-privacy", batches=batches, steps=taken, size=rows, rate=rate,
                noise=noise, simulations=simulations, **shared,
            )  # fmt: skip
            if looped:
                calls["loop"] = timed(loop(X, y, rows, looped, 1.0), looped)
                calls |= peers.calls(
                    "Opacus", "opacus", batch=rows, steps=opacus, rate=0.1, noise=1.0, **shared
                )
            if rows < n and batches == "fixed":
                calls["reading"] = timed(reading(X, rows, simulations), simulations * taken)
            if batches == "Poisson":
                for call, more in ("reading", False), ("least", True):
                    each = poisson_reading(X, options["sampling"], simulations, more)
                    calls[call] = timed(each, simulations, 20)
            measured = measure(calls, repetitions)
            line = {
                "task": task,
                "size": f"{n} x {d}",
                "unit": "step",
                "ours": f"{simulations} simulations",
                **ours(measured["ours"]),
                "error": float(np.mean(error_rate(once.weights, X, y))),
            }
            if "jax-privacy" in measured:
                peer = {"versions": peers.versions("jax-privacy")}
                yield line | versus("jax-privacy", measured["jax-privacy"] | peer)
            if "loop" in measured:
                yield line | versus(
                    "loop", measured["loop"] | {"versions": f"numpy {np.__version__}"}
                )
            for call, what in LIMITS.items():
                if call in measured:
                    yield line | versus(what, measured[call] | {"versions": ""})
            if "Opacus" in measured:
                peer = {"versions": peers.versions("opacus")}
                yield line | versus("Opacus", measured["Opacus"] | peer)


AUDIT = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from dp_audit.audit import epsilon_lower_bound
rng = np.random.default_rng(1)
epsilon_lower_bound(
    "output_perturbation", "saturated_diagonal_l2", 1.0, trials=int(sys.argv[2]), rng=rng
)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def audits(trials=500_000):
    """Time a million releases of output perturbation in a separate process."""
    command = [sys.executable, "-c", AUDIT, ROOT / "scripts", str(trials)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, kilobytes = map(float, done.stdout.split())
    yield {
        "task": f"audit, {2 * trials} releases: {seconds:.1f} s, {kilobytes / 1024:.0f} MB",
        "size": "d = 784",
        "unit": "release",
        "seconds": seconds / (2 * trials),
        "versions": OURS,
    }


def ours(result):
    return {
        "seconds": result["seconds"],
        "gradient_norm": result.get("gradient_norm", ""),
        "versions": OURS,
    }


def versus(name, result):
    return {
        "peer": name,
        "peer_seconds": result["seconds"],
        "peer_gradient_norm": result.get("gradient_norm", ""),
        "peer_error": result.get("error", ""),
        "peer_versions": result["versions"],
    }


def text(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def lines(repetitions):
    rng = np.random.default_rng(2008)
    what, X, y = wide(rng)
    projected = normalise_rows(X @ rng.standard_normal((X.shape[1], 50)))  # as in Einarsson
    problems = {"narrow": narrow(rng), "projected": (projected, y), "wide": (X, y)}
    few = min(repetitions, 3)
    with tempfile.TemporaryDirectory() as folder:
        peers = PeerProcess(folder, problems)
        yield from private_fits(*problems["narrow"], peers, repetitions)
        yield from wide_fits(what, X, y, few)
        yield from descents(problems, peers, few)
    yield from audits()


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    path = ROOT / "results" / "benchmarks" / "peers.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for k, line in enumerate(lines(repetitions)):
            if "peer_seconds" in line:
                line["ratio"] = line["peer_seconds"] / line["seconds"]
            writer.writerow([text(line.get(column, "")) for column in COLUMNS])
            if k == 0:
                print("  ".join(name.ljust(width) for name, width in SHOWN.items()).rstrip())
            cells = (text(line.get(name, "")).ljust(width) for name, width in SHOWN.items())
            print("  ".join(cells).rstrip(), flush=True)


if __name__ == "__main__":
    main()
