"""Compares bounds that this project finds with those of other libraries, at equal epsilon.

    python tests/benchmarks/bounds.py [repetitions]                3 minutes
    python tests/benchmarks/bounds.py price [rows ..]              5 minutes

Columns are simulated: incomes (lognormal), ages (normal), visits (negative binomial, with many zeros), and
balances (of both signs, with heavy tails). Nobody knows more of them than -1e9 and 1e9. A column's bounds
cost epsilon under replace-one; libraries that count a replaced row as one removed and one added get half of
it. This project's noise is Gaussian on a lattice, with delta = 1e-6; the others' is in floating point, with
delta = 0. Found bounds are judged by two numbers: the share of rows beyond them, and how many times as wide
they are as the range of the middle 99 % of the column. They are of no use if no bounds come, more than a
fifth of the rows is beyond them, or they are more than 20 times as wide.

`price` prints the geometric mean widths of intervals under found bounds and under stated ones, on simulated
rows of three columns of numbers.

The other libraries are left out unless this command has created their environment, or PEERS names another:

    python3.11 -m venv .venv-bounds && .venv-bounds/bin/pip install -r envs/peers_bounds.txt
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # must precede numpy's import

import importlib
import json
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(os.environ.get("PEERS", ROOT / ".venv-bounds")) / "bin" / "python"
SIZES, EPSILONS, DELTA, OUTER = (1000, 5000, 20_000), (0.1, 0.3, 1.0), 1e-6, 1e9
TAIL = 0.005  # of the middle 99 %
ENDS = (TAIL, 1 - TAIL)
SCALES: dict[tuple[float, float], float] = {}  # of OpenDP: (quantile, epsilon) -> scale
COLUMNS = {
    "incomes": lambda rng, n: rng.lognormal(10.1, 0.8, n),
    "ages": lambda rng, n: np.clip(rng.normal(52, 13, n), 18, 95).round(),
    "visits": lambda rng, n: rng.negative_binomial(0.8, 0.15, n).astype(float),
    "balances": lambda rng, n: 500 * rng.standard_t(3, n) + 200,
}


def ours(rng, x, epsilon):
    sys.path.insert(0, str(ROOT / "scripts"))
    from fractions import Fraction

    from dp_privacy.accounting import gaussian_mu
    from dp_release import bounds, rows

    schema = rows.Schema([bounds.number("x", True), rows.Category("y", (0, 1))], "y")
    bins = len(bounds.edges(schema.columns[0])) - 1

    def count(ends):
        inner = np.array([float(each) for each in ends["x"][1:-1]])
        return {
            "x": np.bincount(np.searchsorted(inner, x, "right"), minlength=len(inner) + 1).tolist()
        }

    noise = bounds.noise(Fraction(gaussian_mu(epsilon, DELTA)), bins)
    found = bounds.find(schema, {"x": noise}, count, rng.bytes(32))["x"]
    return float(found.low), float(found.high)


def diffprivlib(rng, x, epsilon):
    """Two quantiles by the exponential mechanism. Without bounds, the library reads them off the rows."""
    tools = importlib.import_module("diffprivlib.tools")
    options = {"epsilon": epsilon / 2, "bounds": (-OUTER, OUTER)}
    seed = int(rng.integers(1 << 31))
    low, high = (
        float(tools.quantile(x, q, random_state=seed + k, **options)) for k, q in enumerate(ENDS)
    )
    return min(low, high), max(low, high)


def opendp(rng, x, epsilon):
    """Two quantiles among the powers of two that are this project's edges."""
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    powers = 2.0 ** np.arange(-29, 30)
    candidates = [-OUTER, *(-powers[::-1]), 0.0, *powers, OUTER]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def made(q, scale):
        return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, q, scale)

    for q in ENDS:
        if (q, epsilon) not in SCALES:
            reach = partial(made, q)
            search = dp.binary_search(lambda s, m=reach: m(s).map(2) <= epsilon / 2, (1e-3, 1e6))
            SCALES[q, epsilon] = search
    ends = [float(made(q, SCALES[q, epsilon])(x.tolist())) for q in ENDS]
    return min(ends), max(ends)


def smartnoise(rng, x, epsilon):
    """Counts in powers of two, as in Google's C++ library (approximate bounds)."""
    bounds = importlib.import_module("snsql.sql._mechanisms.approx_bounds")
    return bounds.approx_bounds(x, epsilon / 2)


def pydp(rng, x, epsilon):
    """Two percentiles of Google's library. Its own approximate bounds are not told by PyDP."""
    laplacian = importlib.import_module("pydp.algorithms.laplacian")
    ends = []
    for q in ENDS:
        found = laplacian.Percentile(
            epsilon=epsilon / 4, percentile=q, lower_bound=-OUTER, upper_bound=OUTER, dtype="float"
        )
        ends.append(float(found.quick_result(x.tolist())))
    return min(ends), max(ends)


THEIRS = {each.__name__: each for each in (diffprivlib, opendp, smartnoise, pydp)}


def judged(finder, repetitions):
    """[column, rows, epsilon, share beyond, times as wide, share of no use] of each: medians."""
    warnings.simplefilter("ignore")
    lines = []
    for name, draw in COLUMNS.items():
        for n in SIZES:
            for epsilon in EPSILONS:
                results = []
                for k in range(repetitions):
                    rng = np.random.default_rng([k, n])
                    x = draw(rng, n)
                    low, high = finder(rng, x, epsilon)
                    if low is None:
                        results.append((1.0, np.inf))
                        continue
                    middle = np.subtract(*np.quantile(x, ENDS[::-1]))
                    results.append((np.mean((x < low) | (x > high)), (high - low) / middle))
                beyond, wide = np.array(results).T
                useless = np.mean((beyond > 0.2) | (wide > 20))
                lines.append([name, n, epsilon, np.median(beyond), np.median(wide), useless])
    return [[*line[:3], *map(float, line[3:])] for line in lines]


def compare(repetitions):
    found = {"ours": judged(ours, repetitions)}
    for name in THEIRS:
        if not PEERS.exists():
            print(f"no {PEERS}: other libraries are left out")
            break
        words = [PEERS, __file__, str(repetitions), name]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: {done.stderr.splitlines()[-1]}")
        else:
            found[name] = json.loads(done.stdout.splitlines()[-1])
    print("beyond / times as wide / of no use")
    print(f"{'column':9} {'rows':>6} {'epsilon':>7}", *(f"{name:>22}" for name in found))
    for k, (column, n, epsilon, *_) in enumerate(found["ours"]):
        cells = [
            f"{lines[k][3]:.1%} / {lines[k][4]:.2g} / {lines[k][5]:.0%}" for lines in found.values()
        ]
        print(f"{column:9} {n:6} {epsilon:7g}", *(f"{cell:>22}" for cell in cells))


def price(sizes):
    sys.path.insert(0, str(ROOT / "scripts"))
    from dp_release import bounds, forecast, rows
    from dp_release.request import Request

    named = {"age": (52, 13), "income": (30_000, 20_000), "visits": (4, 3.5)}
    schema = rows.Schema(
        [
            bounds.number("age", {"least": 0, "most": 150}),
            bounds.number("income", {"least": 0}),
            bounds.number("visits", {"least": 0}),
            rows.Category("ill", ("no", "yes")),
        ],
        "ill",
    )
    expected = {name: {"mean": m, "deviation": s} for name, (m, s) in named.items()}
    study = forecast.Study(schema, forecast.Expected(expected))
    print(f"{'rows':>6} {'epsilon':>7} {'stands out':>10}  widths: found / stated", *named)
    for n in sizes:
        for epsilon in (0.5, 1.0, 2.0):
            asked = {
                "name": "a",
                "schema": schema.facts,
                "rows": n,
                "unit": "one row is one person",
            }
            asked |= {"epsilon": epsilon, "delta": DELTA, "premise": "public example"}
            request = Request.parsed(asked | {"method": "noise_aware_logistic"})
            stated = request._replace(schema=study.schema.facts)
            found, other = (forecast.outlook(each, study, 40) for each in (request, stated))
            tau = bounds.stands_out(request.plan().found, "age")
            cells = [
                f"{found.widths[name]:.2g} / {other.widths[name]:.2g} "
                f"({found.widths[name] / other.widths[name]:.2f})"
                for name in named
            ]
            print(
                f"{n:6} {epsilon:7g} {tau:10}  ",
                *cells,
                f"kept {found.kept:.2f} / {other.kept:.2f}",
                flush=True,
            )


def main():
    words = sys.argv[1:]
    repetitions = next((int(word) for word in words if word.isdigit()), 20)
    if "price" in words:
        price([int(word) for word in words if word.isdigit()] or SIZES)
    elif words[-1:] and words[-1] in THEIRS:
        print(json.dumps(judged(THEIRS[words[-1]], repetitions)))
    else:
        compare(repetitions)


if __name__ == "__main__":
    main()
