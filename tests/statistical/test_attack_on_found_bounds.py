"""Coverage of intervals under bounds that releases found, and an attack on the counts behind them."""

import hmac
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dp_audit import audit
from dp_privacy.accounting import gaussian_epsilon
from dp_release import bounds, files, models, rows
from dp_release.request import Request

KEY = b"of tests alone"
TRUE = {"age": 0.04, "income": -3e-5, "visits": 0.12, "constant": -1.6}
SCHEMA = rows.Schema(
    [
        bounds.number("age", {"least": 0, "most": 150}),
        bounds.number("income", {"least": 0}),
        bounds.number("visits", True),
        rows.Category("ill", ("no", "yes")),
    ],
    "ill",
)
CLASSES = ("noise_aware_logistic", SCHEMA, TRUE)
NUMBERS = (
    "noise_aware_log_cosh",
    rows.Schema(
        [bounds.number("age", {"least": 0, "most": 150}), bounds.number("cost", {"least": 0})],
        "cost",
    ),
    {"age": 60.0, "constant": 2000.0},
)


def request(method, schema, n, epsilon):
    asked = {"name": "a", "schema": schema.facts, "rows": n, "unit": "one row is one person"}
    asked |= {"epsilon": epsilon, "delta": 1e-6, "premise": "public example", "method": method}
    return Request.parsed(asked)


def lines(rng, schema, n):
    """Lines of a simulated table, of which the model is true before numbers are clipped."""
    age = np.clip(rng.normal(52, 13, n), 18, 95).round()
    if schema.numbers:
        cost = np.maximum(2000 + 60 * age + 900 * rng.standard_normal(n), 0)
        return [b"%d,%.2f" % each for each in zip(age, cost, strict=True)]
    income, visits = rng.lognormal(10.1, 0.6, n).round(), rng.negative_binomial(2, 0.3, n)
    score = TRUE["constant"] + TRUE["age"] * age + TRUE["income"] * income + TRUE["visits"] * visits
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), b"yes", b"no")
    return [b"%d,%d,%d,%s" % each for each in zip(age, income, visits, ill, strict=True)]


def table(asked, plan, schema, rng):
    """The regression table of one release, with bounds that it found."""
    own, key = lines(rng, schema, asked.rows), rng.bytes(32)
    found = bounds.find(schema, plan.found, partial(bounds.counts, schema, own), key)
    settled = rows.from_facts(bounds.settled(schema.facts, found))
    release = models.release(plan, *settled.rows(own, asked.rows), key)
    return files.table_of(release, settled.names, *files.own_units(settled))[0]


def covered(task, n, epsilon, copies, seed=1):
    """Column -> (share of its intervals that hold the true coefficient, share of releases with one)."""
    method, schema, true = task
    asked, rng = request(method, schema, n, epsilon), np.random.default_rng(seed)
    plan, inside = asked.plan(), {name: [] for name in true}
    for _ in range(copies):
        for row in table(asked, plan, schema, rng):
            if row["low"] is not None:
                inside[row["column"]].append(row["low"] <= true[row["column"]] <= row["high"])
    return {name: (np.mean(each), len(each) / copies) for name, each in inside.items()}


@pytest.mark.slow
@pytest.mark.parametrize("task", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_intervals_under_found_bounds_cover_every_coefficient(task):
    copies = 60
    for name, (share, given) in covered(task, 5000, 1.0, copies).items():
        # if the true share is .95, this fails once in 400 times for a coefficient
        assert share >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / copies), (name, share)
        assert given > 0.9, (name, given)


COUNTED = rows.Schema(
    [
        *(bounds.number(name, {"least": 1, "most": 256}) for name in "ab"),
        bounds.number("y", {"least": -8, "most": -1}),
    ],
    "y",
)


def counted(lines):
    ends = {name: bounds.edges(column) for name, column in bounds.columns(COUNTED).items()}
    return bounds.counts(COUNTED, lines, ends)


def scores(noises, exact, other, count):
    """Log likelihood ratios of two tables, (2, count), of releases on each."""
    deviation = {name: float(noise.deviation) for name, noise in noises.items()}
    found = np.empty((2, count))
    for side, counts in enumerate((exact, other)):
        for k in range(count):
            key, total = hmac.digest(KEY, f"{side} {k}".encode(), "sha256"), 0.0
            for name, own in bounds._released(counts, noises, key, "bounds").items():
                x = np.array(own) * float(noises[name].spacing)
                apart = [np.square(x - np.array(each[name])).sum() for each in (other, exact)]
                total += (apart[0] - apart[1]) / (2 * deviation[name] ** 2)
            found[side, k] = total
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (4.0, False)])
def test_an_attack_on_the_counts_finds_no_more_than_their_epsilon(share, holds):
    """A row changes its bin in every column. In the second case, noise is for a quarter of mu."""
    one = b"20,100,-1"
    exact, other = (counted([*[one] * 9, last]) for last in (one, b"70,9e6,-4"))
    mu = 1.0  # of all columns together, large enough for 4,000 releases to tell
    each = share * mu / math.sqrt(3) * math.sqrt(2)  # half of it (mu^2) pays for the second counts
    bins = {name: len(exact[name]) for name in exact}
    noises = {name: bounds.noise(Fraction(each), count) for name, count in bins.items()}
    found = scores(noises, exact, other, 4000)
    delta = 1e-3
    allowed = gaussian_epsilon(1 / mu, delta)
    sides = [{"ratio": side} for side in found]
    actual = audit._bounds(sides, 2000, [(delta, 0.95)])[0]["epsilon"]
    assert (actual <= allowed) == holds, (actual, allowed)
    # The ratio has the law of a Gaussian release of this mu, so the noise is not larger than needed.
    assert abs(found[0].mean() - (share * mu) ** 2 / 2) < 0.2 * share**2
