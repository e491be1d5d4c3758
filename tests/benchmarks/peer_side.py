"""Times libraries that need a separate environment, for `peers.py`, which starts this program.

    <the peers' python> tests/benchmarks/peer_side.py data.npz

It reads one JSON task per line from standard input. It answers each with a JSON line: `seconds` of CPU
time, and `units`, the number of fits or simulated steps. jax-privacy's answer also contains the mean
`error` of its releases on the rows. The first output line states each library's version, or why it cannot
be imported. This program imports nothing from the project.
"""

import functools
import importlib
import json
import os
import sys
import time
import warnings

import numpy as np

# Restrict JAX to one thread, like the other libraries. JAX reads this variable on import.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def diffprivlib_fit(X, y, *, epsilon, lam, repetitions, seed):
    """Time diffprivlib's objective perturbation: L-BFGS on each tilted objective."""
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
    """Time one simulation of Opacus' DP-SGD: logistic regression without intercept, shuffled batches.

    If `batch` is the number of rows, this is DP-GD. The time excludes the privacy engine's
    accounting.
    """
    torch = importlib.import_module("torch")
    opacus = importlib.import_module("opacus")
    utils = importlib.import_module("opacus.optimizers")
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    n, d = X.shape
    rows = torch.from_numpy(X)  # double precision, as in this project
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


@functools.cache
def compiled(batches, steps, size, lam, rate, clip, noise):
    """A compiled function of X, y, chosen rows and keys that runs one descent per key."""
    jax = importlib.import_module("jax")
    clipping = importlib.import_module("jax_privacy.clipping")
    noises = importlib.import_module("jax_privacy.noise_addition")

    def loss(w, x, label):
        return jax.nn.softplus(-label * (x @ w))

    def norm_laplace(total, key):
        """Noise of Song, Chaudhuri and Sarwate (2013), which jax-privacy does not offer."""
        key, first, second = jax.random.split(key, 3)
        z, radius = jax.random.normal(first, total.shape), jax.random.gamma(second, total.size)
        return total + noise * radius * z / jax.numpy.linalg.norm(z), key

    gradient = clipping.clipped_grad(
        loss, l2_clip_norm=clip, batch_argnums=(1, 2), keep_batch_dim=False
    )

    def descent(X, y, chosen, key):
        start = jax.numpy.zeros(X.shape[1])
        add, state = norm_laplace, key
        if batches != "fixed":
            gaussian = noises.gaussian_privatizer(stddev=noise, prng_key=key)
            add, state = gaussian.update, gaussian.init(start)

        def step(carry, rows):
            w, state = carry
            if rows is None:
                total = gradient(w, X, y)
            else:
                total = gradient(w, X[rows], y[rows], is_padding_example=rows < 0)
            total, state = add(total, state)
            return (w - rate * (total / size + lam * w), state), None

        return jax.lax.scan(step, (start, state), chosen, length=steps)[0][0]

    # With few rows per step, all descents at once are faster; with many, one at a time.
    if batches == "fixed":
        return jax.jit(jax.vmap(descent, (None, None, 0, 0)))
    return jax.jit(
        lambda X, y, *per_descent: jax.lax.map(lambda one: descent(X, y, *one), per_descent)
    )


def jax_privacy_steps(X, y, *, batches, steps, size, simulations, lam, rate, clip, noise, seed):
    """Time jax-privacy's descents: logistic regression, all steps and simulations in one compiled program.

    batches: "fixed" (disjoint, with norm-Laplace noise) or, with Gaussian noise, "Poisson" (jax-privacy's
    sampling, padded to one size) or "all" (all rows). size: rows per batch, or their expected number.
    noise: the noise scale of each sum. The first call compiles, so time a second call with the same
    arguments.
    """
    jax = importlib.import_module("jax")
    selection = importlib.import_module("jax_privacy.batch_selection")
    jax.config.update("jax_enable_x64", True)  # double precision
    n = len(X)
    rows, labels = jax.numpy.asarray(X), jax.numpy.asarray(y, dtype=float)
    descend = compiled(batches, steps, size, lam, rate, clip, noise)
    start = time.process_time()
    rng, chosen = np.random.default_rng(seed), None
    if batches == "fixed":
        used = steps * size
        orders = [rng.permutation(n)[:used].reshape(steps, size) for _ in range(simulations)]
        chosen = np.array(orders)
    elif batches == "Poisson":
        strategy = selection.CyclicPoissonSampling(size / n, steps)
        drawn = [list(strategy.batch_iterator(n, rng=rng)) for _ in range(simulations)]
        longest = max(len(part) for parts in drawn for part in parts)
        chosen = np.full((simulations, steps, longest), -1)
        for parts, into in zip(drawn, chosen, strict=True):
            for part, row in zip(parts, into, strict=True):
                row[: len(part)] = part
    keys = jax.random.split(jax.random.key(seed), simulations)
    W = np.asarray(descend(rows, labels, chosen, keys))
    seconds = time.process_time() - start
    error = float(np.mean(y[:, None] * (X @ W.T) <= 0))
    return {"seconds": seconds, "units": simulations * steps, "error": error}


TASKS = {"diffprivlib": diffprivlib_fit, "opacus": opacus_steps, "jax-privacy": jax_privacy_steps}
NEEDS = {
    "diffprivlib": ("diffprivlib", "sklearn"),
    "opacus": ("opacus", "torch"),
    "jax-privacy": ("jax_privacy", "jax"),
}


def about():
    results = {}
    for task, names in NEEDS.items():
        try:
            modules = [importlib.import_module(name) for name in names]
        except ImportError as error:
            results[task] = {"missing": str(error)}
        else:
            results[task] = {"versions": {m.__name__: m.__version__ for m in modules}}
    return results


def main():
    # Libraries may print, so everything but the answers goes to standard error.
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
