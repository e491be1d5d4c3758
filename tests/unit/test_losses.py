import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from dp import losses
from dp.clipped_logistic import ClippedLogistic

ALL = {
    "logistic": losses.get("logistic"),
    "clipped_logistic": ClippedLogistic(0.75),
    "much_clipped_logistic": ClippedLogistic(0.25),
    "huber": losses.get("huber"),
    "wide_huber": losses.get("huber", h=2.0),
    "squared": losses.get("squared"),
    "huber_residual": losses.get("huber_residual"),
    "log_cosh": losses.get("log_cosh"),
    "narrow_log_cosh": losses.get("log_cosh", tau=0.01),
}
MARGINS = [loss for loss in ALL.values() if not loss.residual]
RESIDUALS = [loss for loss in ALL.values() if loss.residual]
HUGE = np.array([-np.inf, -1e308, -1e10, -800.0, -40.0, 0.0, 40.0, 800.0, 1e10, 1e308, np.inf])

each_loss = pytest.mark.parametrize("loss", ALL.values(), ids=ALL)


def kinks(loss):
    if isinstance(loss, losses.HuberResidual):
        return (-loss.tau, loss.tau)
    if isinstance(loss, ClippedLogistic):
        return (math.log(1 / loss.cap - 1),)
    return (1 - loss.h, 1 + loss.h) if isinstance(loss, losses.Huber) else ()


@each_loss
@given(z=st.floats(-30, 30))
def test_derivative_and_curvature_are_finite_differences(loss, z):
    step = 1e-5
    if any(abs(z - kink) < 2 * step for kink in kinks(loss)):
        return
    low, high = np.array(z - step), np.array(z + step)
    slope = (loss.value(high) - loss.value(low)) / (2 * step)
    bend = (loss.derivative(high) - loss.derivative(low)) / (2 * step)
    third = step**2 * max(1, getattr(loss, "tau", 1) ** -2)  # the finite differences' error
    assert loss.derivative(z) == pytest.approx(slope, abs=1e-8 + third)
    assert loss.curvature(z) == pytest.approx(bend, abs=1e-8 + third)


@each_loss
def test_kappa_and_c_are_suprema(loss):
    z = np.linspace(-60, 60, 1_200_001)
    z = np.append(z, [kink + 1e-13 for kink in kinks(loss)])
    curvature = loss.curvature(z)
    assert (curvature >= 0).all()
    assert curvature.max() == pytest.approx(loss.c, rel=1e-12)
    steepest = np.abs(loss.derivative(z)).max()
    if math.isinf(loss.kappa):
        assert np.abs(loss.derivative(1e6)) > 1e5
    elif loss.residual:
        assert steepest == pytest.approx(loss.kappa, rel=1e-12)
    else:
        assert loss.kappa * (1 - 1e-12) < steepest <= loss.kappa


@given(z=st.floats(-700, 700))
def test_logistic_to_full_precision(z):
    """Both tails are included: e^-z far to the right, -z far to the left."""
    loss = ALL["logistic"]
    value = math.log1p(math.exp(-z)) if z > 0 else -z + math.log1p(math.exp(z))
    assert loss.value(z) == pytest.approx(value, rel=1e-14)
    assert loss.derivative(z) == pytest.approx(-1 / (1 + math.exp(z)), rel=1e-14)
    assert loss.curvature(z) == pytest.approx(
        1 / ((1 + math.exp(z)) * (1 + math.exp(-z))), rel=1e-14, abs=1e-15
    )


@given(z=st.floats(-10, 10), h=st.sampled_from([0.01, 0.5, 1.0, 3.0]))
def test_huber_as_printed(z, h):
    loss = losses.get("huber", h=h)
    if z > 1 + h:
        value, slope = 0.0, 0.0
    elif z >= 1 - h:  # rounding can make abs(1 - z) larger than h at z = 1 + h
        value, slope = (1 + h - z) ** 2 / (4 * h), -(1 + h - z) / (2 * h)
    else:
        value, slope = 1 - z, -1.0
    assert loss.value(z) == pytest.approx(value, rel=1e-12, abs=1e-14)
    assert loss.derivative(z) == pytest.approx(slope, rel=1e-12, abs=1e-13)


@given(score=st.floats(-1e6, 1e6), y=st.sampled_from([-1, 1]))
def test_squared_is_the_squared_margin_of_labels(score, y):
    loss = ALL["squared"]
    z = loss.arguments(score, y)
    assert loss.value(z) == pytest.approx((1 - y * score) ** 2 / 2, rel=1e-12)


@given(z=st.floats(-20, 20), tau=st.sampled_from([0.01, 0.25, 1.0, 3.0]))
def test_residual_losses_by_their_formulas(z, tau):
    log_cosh, huber = (losses.get(name, tau=tau) for name in ("log_cosh", "huber_residual"))
    u = abs(z) / tau
    value = np.logaddexp(u, -u) - math.log(2)
    assert log_cosh.value(z) == pytest.approx(tau**2 * value, rel=1e-9, abs=1e-15)
    assert log_cosh.derivative(z) == pytest.approx(tau * math.tanh(z / tau), rel=1e-14)
    assert log_cosh.curvature(z) == pytest.approx(1 - math.tanh(z / tau) ** 2, abs=1e-15)
    assert huber.value(z) == pytest.approx(special.huber(tau, z), rel=1e-12, abs=1e-300)
    assert huber.derivative(z) == pytest.approx(max(-tau, min(tau, z)), rel=1e-12)


@pytest.mark.parametrize("loss", RESIDUALS)
def test_residual_losses_are_even_and_flatten(loss):
    """The bound on rounding errors uses |z| l''(z) <= |l'(z)|."""
    z = np.linspace(0, 30, 100_001)
    assert (loss.value(z) == loss.value(-z)).all() and loss.value(0.0) == 0
    assert (loss.derivative(-z) == -loss.derivative(z)).all()
    assert (z * loss.curvature(z) <= loss.derivative(z) * (1 + 1e-12)).all()
    assert loss.at_zero() == loss.value(1.0) == max(loss.value(np.linspace(-1, 1, 101)))


@pytest.mark.parametrize("loss", MARGINS)
@pytest.mark.filterwarnings("error")
def test_huge_margins(loss):
    with np.errstate(invalid="raise", divide="raise"):
        slope, curvature = loss.derivative(HUGE), loss.curvature(HUGE)
        assert np.isfinite(loss.value(HUGE[1:-1])).all()
        assert not np.isnan(loss.value(HUGE)).any()
    assert not np.isnan(slope).any() and not np.isnan(curvature).any()
    assert (np.diff(slope) >= 0).all() and (curvature >= 0).all()
    assert slope[0] == -loss.kappa and slope[-1] == 0 and curvature[0] == curvature[-1] == 0
    assert loss.value(-1e10) == pytest.approx(loss.kappa * 1e10) and loss.value(np.inf) == 0


@pytest.mark.parametrize("loss", RESIDUALS)
@pytest.mark.filterwarnings("error")
def test_huge_residuals(loss):
    with np.errstate(invalid="raise", divide="raise"):
        slope, curvature = loss.derivative(HUGE), loss.curvature(HUGE)
        finite = HUGE[1:-1] if loss.name != "squared" else HUGE[2:-2]  # 1e308 squared is infinite
        assert np.isfinite(loss.value(finite)).all()
    assert not np.isnan(slope).any() and not np.isnan(curvature).any()
    assert (np.diff(slope) >= 0).all() and (curvature >= 0).all()
    if math.isfinite(loss.kappa):
        assert slope[-1] == pytest.approx(loss.kappa) and curvature[-1] == 0
        assert loss.value(1e10) == pytest.approx(1e10 * loss.tau)
        assert loss.value(np.inf) == np.inf


@each_loss
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.filterwarnings("error")
def test_slopes_are_one_pass_in_place(loss, precision):
    z = np.linspace(-100, 100, 999, dtype=precision).reshape(27, 37)
    expected = loss.derivative(z.copy()), loss.curvature(z.copy())
    slope, curvature = loss.slopes(z)
    assert slope is z
    assert slope.dtype == curvature.dtype == precision
    error = 4 * float(np.finfo(precision).eps) * max(1, 0.25 / getattr(loss, "tau", 1))
    for actual, exact in zip((slope, curvature), expected, strict=True):
        assert actual == pytest.approx(exact, rel=error, abs=error)


@each_loss
def test_one_number_and_lists_are_margins_too(loss):
    for function in (loss.value, loss.derivative, loss.curvature):
        assert np.shape(function(0.3)) == ()
        assert list(function([0.3, 1])) == [function(0.3), function(1)]


@each_loss
def test_totals_are_sums_of_values(loss):
    z = np.random.default_rng(1).standard_normal((losses.SUMMED, 7)) * np.geomspace(1e-12, 1e3, 7)
    np.testing.assert_allclose(loss.total(z), loss.value(z).sum(axis=0), rtol=1e-12)
    assert loss.total(-np.abs(z)) == pytest.approx(loss.value(-np.abs(z)).sum(axis=0), rel=1e-12)
    assert np.isfinite(loss.total(np.zeros((losses.SUMMED, 1))))


@each_loss
def test_arguments_stay_as_they_are(loss):
    z = np.linspace(-3, 3, 7)
    loss.value(z), loss.derivative(z), loss.curvature(z)
    assert (z == np.linspace(-3, 3, 7)).all()


def test_losses_are_immutable_values():
    loss = losses.get("huber", h=0.25)
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.h = 1.0
    assert loss == losses.get("huber", h=0.25) != losses.get("huber")
    assert len({loss, losses.get("huber", h=0.25), losses.get("logistic")}) == 2


def test_lookup():
    for name in ("logistic", "huber", "squared", "huber_residual", "log_cosh"):
        assert losses.get(name).name == name
        assert losses.get(losses.get(name)) == losses.get(name) == losses.get({name: {}})
    assert losses.get({"log_cosh": {"tau": 0.5}}) == losses.get("log_cosh", tau=0.5)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("logistc", {}, "did you mean 'logistic'"),
        ("Huber", {}, "did you mean 'huber'"),
        ("xyz", {}, "valid names are logistic, huber, squared"),
        ("logistic", {"h": 1.0}, "logistic loss has no option 'h'"),
        (losses.get("huber"), {"h": 1.0}, "takes no options"),
        ("huber", {"h": 0.0}, "h > 0, not 0.0"),
        ("huber", {"h": math.nan}, "h > 0, not nan"),
        ("log_cosh", {"tau": 0.0}, "log_cosh loss needs a finite width tau > 0, not 0.0"),
        ({"huber_residual": {"tau": math.inf}}, {}, "tau > 0, not inf"),
    ],
)
def test_errors_are_one_plain_sentence(name, options, said):
    with pytest.raises(ValueError, match=said) as error:
        losses.get(name, **options)
    assert "\n" not in str(error.value)
