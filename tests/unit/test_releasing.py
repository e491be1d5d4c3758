"""Releases on lattices: lemmas, certificate, descent and delta agree with exact arithmetic."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr
from test_solvers import worst_data

from dp import losses
from dp.proofs import gaussian_tilt
from dp.seeds import generator
from dp_privacy.errors import Refused
from dp_privacy.profiles import gaussian_profile
from dp_release import lattice, models, rows, statistics, tilt
from dp_release.draws import Stream
from lattices import from_floats

KEY = bytes(range(32))
LOSSES = [losses.get("logistic"), losses.LogCosh(0.25), losses.LogCosh(1e-3)]


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0, 5.0, 12.0])
def test_lemma_1_against_30_digits(ratio):
    """The discrete Gaussian's distance from a rounded normal, times ratio^2, tends to 0.0202."""
    with mpmath.workdps(30):
        r = mpmath.mpf(ratio)
        reach = range(-int(14 * ratio) - 2, int(14 * ratio) + 3)
        mass = [mpmath.exp(-(k**2) / (2 * r**2)) for k in reach]
        total = mpmath.fsum(mass)
        cells = [mpmath.ncdf((k + 0.5) / r) - mpmath.ncdf((k - 0.5) / r) for k in reach]
        distance = mpmath.fsum(abs(m / total - c) for m, c in zip(mass, cells, strict=True)) / 2
    assert distance <= lattice.total_variation(Fraction(ratio))
    assert 0.016 <= distance * ratio**2 <= 0.0605


def test_lemma_1_needs_a_lattice_that_is_not_too_coarse():
    with pytest.raises(ValueError, match="at least 1"):
        lattice.total_variation(Fraction(1, 2))
    assert 0.0605 / 2**80 <= lattice.total_variation(Fraction(2**40)) < 0.0606 / 2**80 + 1e-290


@pytest.mark.parametrize("value", [Fraction(2), Fraction(1, 3), Fraction(10**40, 7), Fraction(9)])
def test_roots_and_floats_are_rounded_up(value):
    actual = lattice.root(value)
    assert value <= actual**2 <= value * (1 + Fraction(1, 2**70))
    assert lattice.above(value) >= value > math.nextafter(lattice.above(value), 0)


@pytest.mark.parametrize("bits", [3, 30, 40])
@pytest.mark.parametrize("deviation", ["1/3", "1", "8", "1e-30", "123456789.1"])
def test_steps(bits, deviation):
    step = lattice.step_below(Fraction(deviation), bits)
    assert 2**bits <= Fraction(deviation) / lattice.spacing(step) < 2 ** (bits + 1)


def hockey_stick(p, q, epsilon):
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def masses(scale, reach):
    k = np.arange(-reach, reach + 1)
    p = np.exp(-(k**2) / (2 * scale**2))
    return p / p.sum()


def check_lemma_2(moved, mu, bits):
    """Two values, `moved` apart, are anywhere relative to the lattice."""
    noise = lattice.covering(Fraction(moved), Fraction(mu), 1, bits)
    p = masses(noise.scale, 40 * noise.scale)
    for start in np.linspace(0, 1, 41):
        centre = lattice.nearest(
            [Fraction(start) * noise.spacing + x for x in (0, Fraction(moved))], noise.step
        )
        apart = centre[1] - centre[0]
        for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0):
            exact = hockey_stick(
                np.append(p, np.zeros(apart)), np.append(np.zeros(apart), p), epsilon
            )
            proven = float(gaussian_profile(float(noise.mu), epsilon))
            assert exact <= proven + float(lattice.failure(epsilon, noise.variation)) + 1e-12
    assert noise.mu <= Fraction(mu)


@pytest.mark.parametrize("moved", [0.003, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("mu", [0.05, 0.4, 1.0])
@pytest.mark.parametrize("bits", [2, 3, 5])
def test_lemma_2_in_one_dimension(moved, mu, bits):
    check_lemma_2(moved, mu, bits)


def check_rounding_ignores_noise():
    """Rounding precedes noise, so no noise changes the rounded value, even at a cell's edge."""
    noise = lattice.covering(Fraction(1), Fraction(1, 10), 1)
    half = lattice.spacing(noise.step) / 2
    for k in range(1, 200):
        value = float((2 * k * 10**6 + 1) * half - half / 2**20)
        z = noise.draw(Stream(KEY, str(k)))
        actual = lattice.released([value], noise, Stream(KEY, str(k)))
        assert actual[0] - z[0] == lattice.nearest([value], noise.step)[0] == k * 10**6
        assert isinstance(actual[0], int)


def test_rounding_does_not_depend_on_the_noise():
    check_rounding_ignores_noise()


def exact_gradient(problem, X, y, point, pull):
    with mpmath.workdps(40):
        w = [mpmath.mpf(p.numerator) / p.denominator for p in map(Fraction, point)]
        total = [mpmath.mpf(0)] * problem.d
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            score = mpmath.fdot(x, w)
            if problem.loss.residual:
                width = mpmath.mpf(problem.loss.tau)
                slope = width * mpmath.tanh((score - label) / width)
            else:
                slope = -label / (1 + mpmath.exp(score * label))
            total = [t + slope * each for t, each in zip(total, x, strict=True)]
        return [
            t / problem.n + problem.lam * each + b
            for t, each, b in zip(total, w, pull.tolist(), strict=True)
        ]


def norm(g):
    with mpmath.workdps(40):
        return mpmath.sqrt(mpmath.fsum(each**2 for each in g))


def prepared(X, y, loss):
    if loss.residual:
        y = np.asarray(y) * 0.7 + 0.1
    return rows.bounded(*from_floats(X, y, np.linalg.norm(X, axis=1).max()), loss.residual)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("n, d", [(1, 1), (30, 4), (2100, 3)])
def test_gradients_against_40_digits(loss, n, d):
    rng = generator(91, n, str(loss))
    for name, data in list(worst_data(n, d, 1.0, rng).items())[: 4 if n > 2048 else None]:
        X, y = prepared(*data, loss)
        problem = tilt.Problem(n, d, 1e-6, loss, 10.0)
        size = 10.0 ** rng.uniform(-3, 4)
        point = size * rng.standard_normal(d)
        pull = 10.0 * rng.uniform(-1, 1, d) / math.sqrt(d)
        hi, lo = tilt.split(point)
        assert ([Fraction(a) + Fraction(b) for a, b in zip(hi, lo, strict=True)]
                == [Fraction(p) for p in point])  # fmt: skip
        g = tilt.gradient(problem, X, y, hi, lo, pull)
        exact = exact_gradient(problem, X, y, point, pull)
        wrong = norm([a - b for a, b in zip(exact, g.tolist(), strict=True)])
        assert wrong <= problem.rounding(np.linalg.norm(point)), name


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-300, 1e-30, 1.0, 3.7e9, 1e90])
def test_points_are_split_into_parts_whose_sum_is_exact(size):
    point = size * np.array([1.0, -1 / 3, 2**-0.5, 1e-20])
    hi, lo = tilt.split(point)
    assert all(
        Fraction(a) + Fraction(b) == Fraction(p) for a, b, p in zip(hi, lo, point, strict=True)
    )
    if size > 1e-200:
        unit = 2.0 ** (math.frexp(math.hypot(*point))[1] - 32)
        k = hi / unit
        assert (k == np.rint(k)).all() and math.hypot(*k) < 2**33 and np.abs(lo).max() <= unit / 2


def test_the_first_parts_of_scores_and_slopes_are_exact_in_any_order():
    rng = generator(103)
    V = rng.integers(-rows.ONE, rows.ONE + 1, (tilt.BLOCK, 9))
    V = rows.shortened(V)
    V[::3] = [rows.ONE, *[0] * 8]
    X = V.astype(float) / rows.ONE
    hi, _ = tilt.split(rng.standard_normal(9))
    unit = 2.0 ** (math.frexp(math.hypot(*hi))[1] - 34)
    k = [int(each) for each in hi / unit]
    scores = [sum(int(a) * b for a, b in zip(row, k, strict=True)) for row in V]
    slopes = np.rint(rng.uniform(-1, 1, tilt.BLOCK) * 2.0**21)
    slopes[::3] = 2.0**21
    sums = [sum(int(v) * int(s) for v, s in zip(column, slopes, strict=True)) for column in V.T]
    for order in (slice(None), slice(None, None, -1)):
        actual = (X[:, order] @ hi[order]) / unit * rows.ONE
        assert [int(each) for each in actual] == scores
        total = X[order].T @ (slopes[order] * 2.0**-21) * 2.0**41
        assert [int(each) for each in total] == sums
    assert max(map(abs, sums)) > 2**49


def test_the_certificates_bound_does_not_grow_with_rows():
    at = [tilt.Problem(n, 20, 1e-6, LOSSES[0], 0.0).rounding(10.0) for n in (10, 10**9)]
    assert at[0] == at[1] < 3e-15


def test_a_certificate_is_never_given_above_the_tolerance():
    problem = tilt.Problem(10, 2, 1.0, LOSSES[0], 0.0)
    rho = problem.rounding(1.0)
    for share, expected in ((0.5, True), (0.999, True), (1.0, False), (1.001, False)):
        g = np.array([share * (1e-9 - rho), 0.0])
        assert tilt.certified(problem, g, 1.0, 1e-9) == expected
    for broken in (np.nan, np.inf):
        assert not tilt.certified(problem, np.array([broken, 0.0]), 1.0, 1e-9)


@pytest.mark.parametrize("loss", LOSSES[::2], ids=str)
@pytest.mark.parametrize("n, d, ridge", [(1, 1, 1e-3), (20, 3, 1e-3), (70, 8, 1e-2)])
def test_descent_ends_within_its_bound_on_the_worst_data(loss, n, d, ridge):
    """Descent starts at 0, without the solver. 40-digit arithmetic also certifies its end point."""
    rng = generator(92, n, str(loss))
    for name, data in worst_data(n, d, 1.0, rng).items():
        X, y = prepared(*data, loss)
        pull = rng.choice([0.0, 0.3]) * rng.standard_normal(d)
        problem = tilt.Problem(n, d, ridge * loss.c, loss, 1.001 * math.hypot(*pull))
        _, steps, least = tilt.effort(problem)
        hi, lo, taken = tilt.descend(problem, X, y, pull, least)
        point = [Fraction(a) + Fraction(b) for a, b in zip(hi.tolist(), lo.tolist(), strict=True)]
        assert taken <= steps, name
        assert norm(exact_gradient(problem, X, y, point, pull)) <= least, name


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_solver_and_descent_together_always_succeed(loss):
    rng = generator(93, str(loss))
    for n, d, ridge in ((1, 1, 1e-5), (40, 6, 1e-6), (60, 45, 1e-5), (2500, 4, 1e-6)):
        for name, data in worst_data(n, d, 1.0, rng).items():
            X, y = prepared(*data, loss)
            B = n * rng.choice([0.0, 0.1]) * rng.standard_normal(d)
            problem = tilt.Problem(n, d, ridge * loss.c, loss, 1.001 * math.hypot(*B) / n)
            least = tilt.effort(problem).least
            point = tilt.minimiser(problem, X, y, B, least)
            if n < 100:
                actual = norm(exact_gradient(problem, X, y, point, B / n))
                assert actual <= least, name


def test_a_solver_that_fails_is_not_believed(monkeypatch):
    rng, loss = generator(94), LOSSES[0]
    X, y = prepared(rng.standard_normal((50, 3)), rng.choice([-1, 1], 50), loss)
    problem = tilt.Problem(50, 3, 1e-3, loss, 0.0)
    least = tilt.effort(problem).least
    for wrong in (np.full((1, 3), np.nan), np.full((1, 3), 1e9), np.full((1, 3), 0.1)):
        monkeypatch.setattr(tilt, "minimise", lambda *a, wrong=wrong, **k: (wrong, None))
        point = tilt.minimiser(problem, X, y, np.zeros(3), least)
        assert norm(exact_gradient(problem, X, y, point, np.zeros(3))) <= least


@pytest.mark.parametrize(
    "plan",
    [
        lambda: models.noise_aware_logistic(1000, 3, 1.0, 1e-6),
        lambda: models.output_perturbation_gaussian(1000, 3, 1.0, 1e-6, 0.01),
    ],
)
def test_noise_that_would_not_reach_delta_is_a_fault_and_no_refusal(monkeypatch, plan):
    """The search for an epsilon goes on after a refusal, and must not after a fault of the program."""
    plan()
    monkeypatch.setattr(models, "BESIDE", Fraction(99, 100))
    with pytest.raises(RuntimeError, match="fault of the program"):
        plan()


def test_refusals_come_from_public_numbers():
    loss = LOSSES[0]
    with pytest.raises(Refused, match="larger lambda"):
        tilt.effort(tilt.Problem(10**9, 50, 1e-9, loss, 1e-9))
    with pytest.raises(Refused, match="overflow"):
        tilt.effort(tilt.Problem(10, 1, 1e-3, loss, 1e200))
    least = tilt.effort(models.objective_perturbation(1000, 3, 1.0, 1e-6).problem).least
    with pytest.raises(Refused, match="the least is"):
        models.objective_perturbation(1000, 3, 1.0, 1e-6, tolerance=least / 2)
    with pytest.raises(Refused, match="smaller epsilon"):
        models.objective_perturbation(1000, 3, 45.0, 1e-9, bits=20)
    with pytest.raises(Refused, match="larger lambda"):
        models.objective_perturbation(1000, 3, 0.1, 1e-6, lam=1e-9)
    for wrong in (
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"n": 0},
        {"epsilon": math.nan},
        {"epsilon": 60},
    ):
        with pytest.raises(Refused, match="a release needs"):
            models.objective_perturbation(**{"n": 9, "d": 2, "epsilon": 1, "delta": 1e-6} | wrong)


# ---- theorem 1, exactly in one dimension


def minimisers_1d(x, y, lam, loss, tilts):
    """The minimiser for every tilt, by bisecting the derivative in floats."""
    low, high = np.full(len(tilts), -1e4), np.full(len(tilts), 1e4)
    for _ in range(120):
        w = (low + high) / 2
        z = loss.arguments(np.multiply.outer(w, x), y)
        slope = loss.derivative(z) * loss.signs(y) @ x + len(x) * lam * w + tilts
        low, high = np.where(slope < 0, w, low), np.where(slope < 0, high, w)
    return (low + high) / 2


def law_1d(plan, x, y, errors, noisy=True):
    """The first lattice point, and the release's probabilities from there on.

    errors: the solver's error, in units of tolerance/lambda, as a function of the tilt's index.
    """
    n, lam = plan.problem.n, plan.problem.lam
    h, scale = float(plan.tilt.noise.spacing), plan.tilt.noise.scale
    k = np.arange(-12 * scale, 12 * scale + 1)
    p = masses(scale, 12 * scale)
    w = minimisers_1d(x, y, lam, plan.problem.loss, h * k)
    w = w + errors(k) * plan.tolerance / lam
    noise = plan.noises["weights"]
    centre = np.rint(w / float(noise.spacing)).astype(int)
    reach = 12 * noise.scale if noisy else 0
    first = centre.min()
    at = np.bincount(centre - first, weights=p)
    law = np.convolve(at, masses(noise.scale, reach)) if noisy else at
    assert n == len(x)
    return first - reach, law


def exact_delta(one, other, epsilon):
    first = min(one[0], other[0])
    size = max(one[0] + len(one[1]), other[0] + len(other[1])) - first
    p, q = (np.zeros(size) for _ in "ab")
    p[one[0] - first :][: len(one[1])] = one[1]
    q[other[0] - first :][: len(other[1])] = other[1]
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


ERRORS = {
    "none": (lambda k: 0.0 * k, lambda k: 0.0 * k),
    "apart": (lambda k: 1.0 + 0 * k, lambda k: -1.0 + 0 * k),
    "alternating": (lambda k: 1.0 - 2 * (k % 2), lambda k: 2 * (k % 2) - 1.0),
}


def neighbours_1d(loss, rng, n=12, share=1.0):
    """Neighbours (x, y, x', y') whose last records have opposite labels and values 1 and `share`.

    If the share is 1, the last records' logistic slopes differ by 1 at every weight, so tilts that
    are 1 apart have equal minimisers.
    """
    x, sign = rng.uniform(-1, 1, n), rng.choice([-1.0, 1.0], n)
    x[-1] = 1.0
    y = sign * rng.uniform(0, 1, n) if loss.residual else sign
    y[-1] = 1.0
    other = y.copy()
    other[-1] = -1.0
    return x, y, np.append(x[:-1], share), other


@pytest.mark.parametrize("loss", LOSSES[:2], ids=str)
@pytest.mark.parametrize(
    ("bits", "errors"), [(3, "none"), (3, "apart"), (4, "alternating"), (5, "apart")]
)
def test_exact_delta_is_at_most_the_theorems(loss, bits, errors):
    rng = generator(95, bits, errors)
    for epsilon, delta, output in ((0.5, 0.1, 0.3), (1.0, 0.05, 0.1), (2.0, 0.08, 0.6)):
        x, y, x2, y2 = neighbours_1d(loss, rng, share=rng.choice([1.0, 0.37]))
        plan = models.objective_perturbation(
            *(12, 1, epsilon, delta, loss),
            **{
                "lam": 0.3,
                "output": output,
                "tolerance": 10.0 ** rng.uniform(-6, -2),
                "bits": bits,
            },
        )
        first, second = ERRORS[errors]
        laws = law_1d(plan, x, y, first), law_1d(plan, x2, y2, second)
        for at in (0.3 * epsilon, epsilon, 1.5 * epsilon):
            assert exact_delta(*laws, at) <= plan.delta_at(at)
        assert exact_delta(*laws, epsilon) <= delta


@pytest.mark.parametrize("loss", LOSSES[:2], ids=str)
def test_without_the_output_noise_neighbours_can_be_told_apart(loss):
    x, y, x2, y2 = neighbours_1d(loss, generator(96), share=0.37)
    plan = models.objective_perturbation(12, 1, 1.0, 0.05, loss, lam=0.3, tolerance=1e-6, bits=4)
    fine = plan._replace(
        noises={"weights": plan.noises["weights"]._replace(step=plan.noises["weights"].step - 30)}
    )
    bare = [law_1d_points(fine, *data) for data in ((x, y), (x2, y2))]
    shared = set(bare[0]) & set(bare[1])
    exact = sum(max(p - math.e * bare[1].get(k, 0.0), 0.0) for k, p in bare[0].items())
    assert exact > 0.7 and sum(bare[0][k] for k in shared) < 0.3
    assert (
        exact_delta(*(law_1d(plan, *d, ERRORS["none"][0]) for d in ((x, y), (x2, y2))), 1.0) < 0.05
    )


def law_1d_points(plan, x, y):
    scale = plan.tilt.noise.scale
    k = np.arange(-12 * scale, 12 * scale + 1)
    w = minimisers_1d(x, y, plan.problem.lam, plan.problem.loss, float(plan.tilt.noise.spacing) * k)
    centre = np.rint(w / float(plan.noises["weights"].spacing)).astype(np.int64)
    probabilities = {}
    for c, p in zip(centre.tolist(), masses(scale, 12 * scale), strict=True):
        probabilities[c] = probabilities.get(c, 0.0) + p
    return probabilities


def check_given_the_minimiser(bits=3):
    """Check step (ii) of theorem 1: the noise added to w* on the lattice hides the solver's error.

    The minimiser w* is known. The solver's largest error, tolerance/lam, and the tilt's rounding move the
    two sides' points in opposite directions.
    """
    for tolerance in (1e-5, 1e-3, 1e-1):
        plan = models.objective_perturbation(
            *(30, 1, 1.0, 0.1), lam=0.2, output=0.5, tolerance=tolerance, bits=bits
        )
        noise, lam = plan.noises["weights"], Fraction(plan.problem.lam)
        off = Fraction(tolerance) / lam + plan.tilt.noise.spacing / (2 * 30 * lam)
        p = masses(noise.scale, 12 * noise.scale)
        for start in np.linspace(0, 1, 21):
            at = Fraction(start) * noise.spacing
            low, high = lattice.nearest([at - off, at + off], noise.step)
            pad = np.zeros(high - low)
            for epsilon in (0.0, 0.3, 1.0):
                exact = hockey_stick(np.append(p, pad), np.append(pad, p), epsilon)
                proven = float(gaussian_profile(float(noise.mu), epsilon))
                assert exact <= proven + float(lattice.failure(epsilon, noise.variation)) + 1e-12


@pytest.mark.parametrize("bits", [2, 3, 5])
def test_given_the_minimiser_the_output_noise_hides_every_error(bits):
    check_given_the_minimiser(bits)


def check_scales_are_rounded_up(bits=3):
    for deviation in (1.01, 1.99, 3.3, 1e-5):
        noise = tilt.tilt(deviation, 1.0, 4, bits).noise
        assert noise.deviation >= Fraction(deviation)
        assert noise.mu >= 1 / noise.deviation
    for epsilon in (0.3, 1.0, 3.0):
        plan = models.objective_perturbation(50, 2, epsilon, 0.2, lam=0.5, bits=bits + 3)
        sigma, r = float(plan.tilt.noise.deviation), 1 / (50 * 0.5)
        mu = math.sqrt(sum(float(noise.mu) ** 2 for noise in plan.noises.values()))
        actual = gaussian_tilt.composed_delta(epsilon, 1 / sigma, mu, r)
        assert actual + float(plan.variation) * (1 + math.exp(epsilon)) <= 0.2


def test_scales_are_rounded_up():
    check_scales_are_rounded_up()


@pytest.mark.parametrize("make", [models.noise_aware_logistic, models.noise_aware_log_cosh])
@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 4.0])
def test_plans_keep_delta_and_cost_next_to_nothing(make, robust, epsilon):
    from dp.mechanisms import MECHANISMS

    n, d, delta = 5000, 7, 1e-6
    plan = make(n, d, epsilon, delta, robust=robust)
    assert 0.999 * delta <= plan.delta_at(epsilon) <= delta
    assert plan.guarantee().profile.delta(epsilon) <= delta * (1 + 1e-12)
    mechanism = MECHANISMS[make.__name__]
    settings = {"epsilon": epsilon, "delta": delta, "robust": robust}
    assert mechanism.rule_lambda(n, d, **settings) == pytest.approx(plan.problem.lam, rel=1e-12)
    p = mechanism.parameters(n, d, lam=plan.problem.lam, **settings)
    float_plan = mechanism._plan(n, d, p)
    assert float(plan.tilt.noise.deviation) == pytest.approx(float_plan.scale, rel=1e-5)
    assert plan.tilt.noise.deviation >= Fraction(float_plan.scale)
    scales = mechanism._scales(n, p, float_plan)
    kinds = [kind for kind in plan.noises if kind != "weights"]
    for kind, scale in zip(kinds, scales, strict=False):
        unit = 1.0 if kind == "hessian" else plan.problem.loss.kappa**2
        assert float(plan.noises[kind].deviation) * unit / n == pytest.approx(scale, rel=1e-5)


def test_plain_output_perturbation_is_a_gaussian_mechanism():
    plan = models.output_perturbation_gaussian(1000, 4, 1.0, 1e-6, 0.01)
    [noise] = plan.noises.values()
    assert float(noise.deviation) == pytest.approx(2 / (1000 * 0.01) * 4.2247, rel=1e-3)
    assert 0.999e-6 <= plan.delta_at(1.0) <= 1e-6
    assert float(gaussian_profile(0.2 / float(noise.deviation), 1.0)) <= 1e-6


def test_probability_of_a_tilt_beyond_its_reach():
    for d in (1, 5, 100):
        actual = tilt.tilt(3.7, 1.0, d)
        t = float(actual.reach / actual.noise.deviation) - math.sqrt(d)
        assert math.exp(-t * t / 2) <= 1.0001 * math.exp(-60)
        assert math.exp(-60) <= lattice.UNLIKELY
        assert 2 * ndtr(-float(actual.reach / actual.noise.deviation)) <= math.exp(-60)


def exact_sum(kind, problem, X, y, point):
    with mpmath.workdps(40):
        d = problem.d
        total = mpmath.zeros(d, d) if kind != "square" else mpmath.mpf(0)
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            score = mpmath.fdot(x, [mpmath.mpf(p) for p in point])
            if problem.loss.residual:
                slope = mpmath.tanh((score - label) / mpmath.mpf(problem.loss.tau))
                curvature = 1 - slope**2
            else:
                slope = label / (1 + mpmath.exp(score * label))
                curvature = abs(slope) * (1 - abs(slope))
            weight = curvature if kind == "hessian" else slope**2
            if kind == "square":
                total += weight
                continue
            for i in range(d):
                for j in range(d):
                    total[i, j] += weight * x[i] * x[j]
        if kind == "square":
            return [total]
        return [
            total[i, j] * (mpmath.sqrt(2) if i != j else 1) for i in range(d) for j in range(i, d)
        ]


@pytest.mark.parametrize("loss", [*LOSSES, losses.LogCosh(1e-6)], ids=str)
@pytest.mark.parametrize("kind", ["hessian", "scores", "square"])
def test_statistics_against_40_digits(loss, kind):
    rng, n, d = generator(97, kind, str(loss)), 60, 3
    for name, data in worst_data(n, d, 1.0, rng).items():
        X, y = prepared(*data, loss)
        problem = tilt.Problem(n, d, 1e-3, loss)
        point = 10.0 ** rng.uniform(-2, 3) * rng.standard_normal(d)
        actual = statistics.sums([kind], problem, X, y, point)[kind]
        exact = exact_sum(kind, problem, X, y, point.tolist())
        wrong = norm([a - b for a, b in zip(exact, actual.tolist(), strict=True)])
        assert wrong <= statistics.rounding(kind, problem, np.linalg.norm(point)), name


def check_sensitivities():
    rng = generator(98)
    for loss in LOSSES[:2]:
        problem = tilt.Problem(2, 2, 1e-3, loss)
        for kind in ("hessian", "scores", "square"):
            most = 0.0
            for trial in range(300):
                X = rng.standard_normal((2, 2))
                X /= np.linalg.norm(X, axis=1, keepdims=True)
                if trial % 3 == 0:
                    X = np.eye(2)
                point = rng.choice([0.0, 1e-9, 1.0, 40.0]) * rng.standard_normal(2)
                y = rng.choice([-1.0, 1.0], 2)
                if loss.residual and trial % 2:
                    y = X @ point
                if trial % 5 == 0:
                    X, y = X * [[1], [0]], y * [1, 0]  # a row of zeros
                each = [
                    statistics.sums(
                        [kind], problem._replace(n=1), X[k : k + 1], y[k : k + 1], point
                    )
                    for k in range(2)
                ]
                most = max(most, float(np.linalg.norm(each[0][kind] - each[1][kind])))
            bound = float(statistics.sensitivity(kind, problem))
            assert 0.95 * bound <= most <= bound * (1 + 1e-12), (kind, loss, most, bound)


def test_sensitivities_of_statistics():
    check_sensitivities()


def data(n, d, seed, numbers=False):
    rng = generator(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    w = 3 * rng.standard_normal(d)
    if numbers:
        return from_floats(X, np.clip(0.2 * X @ w + 0.1 * rng.standard_normal(n), -1, 1))
    return from_floats(X, np.where(X @ w + rng.logistic(size=n) > 0, 1, -1))


def check_statistics_belong_to_the_released_point():
    V, y = data(500, 3, 99)
    plan = models.noise_aware_logistic(500, 3, 1.0, 1e-6, robust=True)
    release = models.release(plan, V, y, KEY)
    point = release.floats("weights")
    assert np.linalg.norm(point) < plan.longest
    X, labels = rows.bounded(V, y, False)
    for kind in ("hessian", "scores"):
        noise = plan.noises[kind]
        z = noise.draw(Stream(KEY, kind))
        centre = [a - b for a, b in zip(release.parts[kind], z, strict=True)]
        exact = exact_sum(kind, plan.problem, X, labels, point.tolist())
        for c, value in zip(centre, exact, strict=True):
            assert abs(c * float(noise.spacing) - value) <= float(noise.spacing) / 2 + 1e-10


def test_statistics_are_those_of_the_released_weights():
    check_statistics_belong_to_the_released_point()


def check_parts_have_their_own_noise():
    V, y = data(300, 4, 100)
    plan = models.noise_aware_logistic(300, 4, 1.0, 1e-6, robust=True)
    drawn = [plan.tilt.noise.draw(Stream(KEY, "tilt"))]
    drawn += [noise.draw(Stream(KEY, part)) for part, noise in plan.noises.items()]
    firsts = [each[0] / noise.scale for each, noise in
              zip(drawn, [plan.tilt.noise, *plan.noises.values()], strict=True)]  # fmt: skip
    assert len(set(firsts)) == len(firsts)
    actual = models.release(plan, V, y, KEY)
    X, labels = rows.bounded(V, y, False)
    B = np.array([float(b * plan.tilt.noise.spacing) for b in drawn[0]])
    centre = tilt.minimiser(plan.problem, X, labels, B, plan.tolerance)
    noise = plan.noises["weights"]
    expected = [c + z for c, z in zip(lattice.nearest(centre, noise.step), drawn[1], strict=True)]
    assert np.allclose(
        [
            float((a - b) * noise.spacing)
            for a, b in zip(actual.parts["weights"], expected, strict=True)
        ],
        0.0,
        atol=2 * plan.tolerance / plan.problem.lam,
    )


def test_the_release_is_the_minimiser_of_its_tilt_plus_its_noise():
    check_parts_have_their_own_noise()


@pytest.mark.parametrize(
    "make, numbers",
    [
        (models.noise_aware_logistic, False),
        (models.noise_aware_log_cosh, True),
        (models.objective_perturbation, False),
    ],
)
def test_releases_are_integers_that_a_key_determines(make, numbers):
    V, y = data(400, 3, 101, numbers)
    plan = make(400, 3, 1.0, 1e-6)
    results = [models.release(plan, V, y, key) for key in (KEY, KEY, bytes(32))]
    assert results[0].parts == results[1].parts != results[2].parts
    for part, values in results[0].parts.items():
        assert all(type(value) is int for value in values)
        assert len(values) == plan.noises[part].count


def test_degenerate_tables_are_released_like_others():
    for n, d in ((1, 1), (1, 5), (3, 2), (40, 3)):
        plan = models.noise_aware_logistic(n, d, 1.0, 1e-6, robust=True)
        for V in (np.zeros((n, d), int), np.full((n, d), rows.ONE), np.eye(n, d, dtype=int) << 31):
            for y in (np.zeros(n, int), np.ones(n, int), -np.ones(n, int)):
                release = models.release(plan, V, y, KEY)
                assert np.isfinite(release.floats("weights")).all()
                models.described(release)
    plan = models.noise_aware_log_cosh(30, 2, 1.0, 1e-6, robust=False)
    for y in (0, 1 << 20, 1 << 40, -(1 << 40)):
        release = models.release(plan, np.zeros((30, 2), int), np.full(30, y), KEY)
        assert np.isfinite(models.described(release).weights).all()


def test_rows_of_another_number_are_refused():
    plan = models.objective_perturbation(10, 2, 1.0, 1e-6)
    with pytest.raises(Refused, match="the plan is for 10 rows of 2 columns"):
        models.release(plan, np.zeros((11, 2), int), np.zeros(11, int), KEY)
    with pytest.raises(Refused, match="integers"):
        models.release(plan, np.zeros((10, 2)), np.zeros(10, int), KEY)


def test_the_covariance_is_the_mechanisms_own():
    n = 200_000
    V, y = data(n, 3, 102)
    plan = models.noise_aware_logistic(n, 3, 8.0, 1e-6)
    actual = models.described(models.release(plan, V, y, KEY))
    X = V / rows.ONE
    p = 1 / (1 + np.exp(-X @ actual.weights))
    information = (X.T * (p * (1 - p))) @ X
    sampling = np.linalg.inv(information)
    tilt_part = sampling @ sampling * float(plan.tilt.noise.deviation) ** 2
    assert actual.answered.all()
    assert np.allclose(np.diag(actual.covariance), np.diag(sampling + tilt_part), rtol=0.03)
