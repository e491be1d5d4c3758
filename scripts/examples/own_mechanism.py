# Your own mechanism: from its proof to a ledger, a comparison and a figure for a paper.
#
# Editors show the parts that begin with `# %%` as cells. The script needs `dp` and matplotlib, and takes
# ten seconds:
#
#     python own_mechanism.py [folder for ledger.csv, comparison.csv and comparison.pdf]

# %% What is released, and why that is private
import csv
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dp.comparison import beaten
from dp.evaluation import error_rate
from dp.mechanisms import MECHANISMS, Mechanism
from dp.noise import gaussian
from dp.rows import simulate_separable
from dp_audit import audit, replay
from dp_privacy.profiles import Gaussian

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
EPSILONS, DELTA = (0.1, 0.3, 1.0, 3.0), 1e-5


class MeanDirection(Mechanism):
    """w = mean of y x + noise: the direction between two classes, for rows of norm at most R."""

    name = "mean_direction"
    delta = "needed"
    needs_lambda = False
    moves = 2.0  # how far replacing one record changes the sum, in units of R

    def _sigma(self, n, p):
        return self.moves * p.bound / (n * p.mu)

    def _guarantee(self, n, d, p):
        reason = f"a record moves the mean by at most 2R/n = {2 * p.bound / n:.6g}; Gaussian noise"
        return p.proven(reason, profile=Gaussian(p.mu))

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        return y @ X / n + gaussian(d, self._sigma(n, p), draws, rng)


class Halved(MeanDirection):
    """Wrong on purpose: the noise suffices for the removal of a record, not for its replacement."""

    name = "mean_direction_halved"
    moves = 1.0


OWN = MeanDirection()
guarantee = OWN.guarantee(1000, 5, epsilon=1.0, delta=DELTA)
print(f"epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}: {guarantee.reason}")


# %% Replay (takes milliseconds): the exact change of the noised quantity when one record changes
def replayed(mechanism):
    """The worst finding of all replays, and the largest epsilon that the noise implies in any of them."""
    replays = [run for _, _, run, _ in replay.on_general_pairs(mechanism, 1.0, DELTA)]
    worst = min(replays, key=lambda run: replay.FINDINGS.index(run.finding))
    return worst.finding, max(run.epsilon for run in replays)


# %% Audit: a lower bound on epsilon, from releases only
def attacked(mechanism):
    """The 95 % lower bound on epsilon at the stated delta, from attacks on one row with label 1 or -1."""
    first = np.array([[1.0, 0.0]]), np.array([1.0])
    second = np.array([[1.0, 0.0]]), np.array([-1.0])
    rng = np.random.default_rng(1)
    return audit.attack(mechanism, (first, second), 1.0, DELTA, trials=200_000, rng=rng)["epsilon"]


# %% Ledger: stated epsilon, replay and audit
OUT.mkdir(parents=True, exist_ok=True)
ledger = []
for mechanism in (OWN, Halved()):
    finding, epsilon_replay = replayed(mechanism)
    row = mechanism.name, 1.0, DELTA, finding, epsilon_replay, attacked(mechanism)
    ledger.append(row)
    print(
        "{}: epsilon {:g} at {:g} stated; replay: {}, {:.3f}; attack: at least {:.3f}".format(*row)
    )
with (OUT / "ledger.csv").open("w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(("mechanism", "epsilon", "delta", "replay", "epsilon_replay", "epsilon_attack"))
    writer.writerows(ledger)

# %% Comparison: the same rows, folds and epsilons for each method; test errors, paired by fold
# These rows are isotropic, which favours a mean. Also compare on data that do not favour a mean.
METHODS = {
    OWN.name: (OWN, {}),
    "objective perturbation": (
        MECHANISMS["gaussian_objective_perturbation"],
        None,
    ),  # lambda by rule
    "output perturbation": (MECHANISMS["output_perturbation_gaussian"], {"lam": 0.01}),
}
FOLDS, ROWS, COLUMNS = 10, 2000, 5


def errors(name, epsilon, fold):
    """Mean test error of 20 releases from the rows of a fold."""
    rng = np.random.default_rng([2026, fold])
    X, y, _ = simulate_separable(2 * ROWS, COLUMNS, 0.05, rng)
    mechanism, settings = METHODS[name]
    privacy = {"epsilon": epsilon, "delta": DELTA}
    if settings is None:
        settings = {"lam": mechanism.rule_lambda(ROWS, COLUMNS, **privacy)}
    release = mechanism.release(X[:ROWS], y[:ROWS], rng=rng, restarts=20, **privacy, **settings)
    return error_rate(release.weights, X[ROWS:], y[ROWS:]).mean()


table = []
for epsilon in EPSILONS:
    losses = np.array([[errors(name, epsilon, fold) for fold in range(FOLDS)] for name in METHODS])
    p, by = beaten(losses)
    for k, name in enumerate(METHODS):
        interval = 1.96 * losses[k].std(ddof=1) / np.sqrt(FOLDS)
        row = name, epsilon, losses[k].mean(), interval, p[k], [*METHODS][by[k]]
        table.append(row)
        print(
            "{} at epsilon {:g}: error {:.4f} +- {:.4f}; p = {:.3g} that it is no worse than {}".format(
                *row
            )
        )
with (OUT / "comparison.csv").open("w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(("method", "epsilon", "error", "half_interval", "p", "best_other"))
    writer.writerows(table)

# %% Figure: vector graphics for one column of a paper
figure = Figure(figsize=(3.4, 2.4), layout="constrained")
axes = figure.add_subplot()
for name, marker in zip(METHODS, "osv", strict=True):
    rows = [row for row in table if row[0] == name]
    _, at, error, interval, *_ = zip(*rows, strict=True)
    axes.errorbar(
        at, error, interval, marker=marker, markersize=4, capsize=2, label=name.replace("_", " ")
    )
axes.set(xscale="log", xlabel="ε", ylabel="test error")
axes.legend(fontsize=6, frameon=False)
figure.savefig(OUT / "comparison.pdf")
print(f"ledger.csv, comparison.csv and comparison.pdf are in {OUT.resolve()}")
