"""Times libraries that need an environment of their own, for `peers.py`, which starts this program.

    <the peers' python> tests/benchmarks/peer_side.py data.npz

Reads one task per line from standard input, as JSON, and answers each with one line: processor `seconds`,
and for how many `units` (fits, or steps of one simulation). The first line has the versions, or for a
library that cannot be imported the reason. Nothing of the project is imported.
"""

import importlib
import json
import os
import sys
import time
import warnings

import numpy as np


def diffprivlib_fit(X, y, *, epsilon, lam, repetitions, seed):
    """diffprivlib's objective perturbation: L-BFGS on each tilted objective."""
    models = importlib.import_module("diffprivlib.models")
    start = time.process_time()
    for k in range(repetitions):
        models.LogisticRegression(
            epsilon=epsilon,
            data_norm=1.0,
            C=1 / (len(X) * lam),
            fit_intercept=False,
            tol=1e-9,
            max_iter=1000,
            random_state=seed + k,
        ).fit(X, y)
    return {"seconds": time.process_time() - start, "units": repetitions}


def opacus_steps(X, y, *, batch, steps, lam, rate, clip, noise, seed):
    """DP-SGD by Opacus: logistic regression without intercept, one simulation, shuffled batches.

    If `batch` is the number of rows, this is DP-GD. The privacy engine's accounting is not timed.
    """
    torch = importlib.import_module("torch")
    opacus = importlib.import_module("opacus")
    utils = importlib.import_module("opacus.optimizers")
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    n, d = X.shape
    rows = torch.from_numpy(X)  # double precision, as ours
    labels = torch.from_numpy(((y + 1) // 2).astype(float))
    model = opacus.GradSampleModule(torch.nn.Linear(d, 1, bias=False, dtype=torch.float64))
    plain = torch.optim.SGD(model.parameters(), lr=rate, weight_decay=lam)
    optimizer = utils.DPOptimizer(
        plain, noise_multiplier=noise, max_grad_norm=clip, expected_batch_size=batch
    )
    loss = torch.nn.BCEWithLogitsLoss()
    start = time.process_time()
    order = torch.randperm(n)
    for step in range(steps):
        if batch == n:
            chosen_rows, chosen_labels = rows, labels
        else:
            first = step * batch % (n - n % batch)
            chosen = order[first : first + batch]
            chosen_rows, chosen_labels = rows[chosen], labels[chosen]
        optimizer.zero_grad()
        loss(model(chosen_rows)[:, 0], chosen_labels).backward()
        optimizer.step()
    return {"seconds": time.process_time() - start, "units": steps}


TASKS = {"diffprivlib": diffprivlib_fit, "opacus": opacus_steps}
NEEDS = {"diffprivlib": ("diffprivlib", "sklearn"), "opacus": ("opacus", "torch")}


def about():
    """Task -> versions of what it needs, or the reason why it cannot run."""
    found = {}
    for task, names in NEEDS.items():
        try:
            modules = [importlib.import_module(name) for name in names]
        except ImportError as error:
            found[task] = {"missing": str(error)}
        else:
            found[task] = {"versions": {m.__name__: m.__version__ for m in modules}}
    return found


def main():
    # Libraries may print, so the answers alone have the true standard output.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as arrays:
        data = {name: arrays[name] for name in arrays.files}
    print(json.dumps(about()), file=answers, flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        name, problem = task.pop("task"), task.pop("problem")
        X, y = data[f"{problem}_X"], data[f"{problem}_y"]
        print(json.dumps(TASKS[name](X, y, **task)), file=answers, flush=True)


if __name__ == "__main__":
    main()
