import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dp_privacy import accounting, profiles
from dp_privacy.accounting import REPLACE_ONE, Guarantee, gaussian_delta
from dp_privacy.profiles import Curve, Gaussian, Losses, compose

EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.5])


def as_curve(mu):
    return Curve(lambda e: profiles.gaussian_profile(mu, e))


def test_a_guarantee_carries_its_profile_and_loses_it_with_its_epsilon():
    plain = Guarantee(1.0, 1.0, 1e-6, REPLACE_ONE, "because")
    assert plain.profile is None and plain[:5] == (1.0, 1.0, 1e-6, REPLACE_ONE, "because")
    whole = plain._replace(profile=Gaussian(0.2367))
    assert whole.profile.delta(whole.epsilon) == pytest.approx(1e-6, rel=1e-2)
    assert accounting.after_preparation(whole, []) == whole
    assert accounting.after_preparation(whole, ["min_max"]).profile is None


def test_importing_accounting_imports_neither_numpy_nor_scipy():
    code = "import sys; sys.path.insert(0, 'scripts'); import dp_privacy.accounting; print(*sys.modules)"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert not {"scipy", "numpy", "dp_accounting"} & set(done.stdout.split())


def test_the_rule_for_delta():
    assert accounting.rule_delta(1000) == 1e-6
    assert accounting.rule_delta(10**6) == 1e-7


def test_gaussian_profiles_hold_on_all_reals():
    for mu in (0.03, 0.5, 3.0):
        for epsilon in EPSILONS:
            assert Gaussian(mu).delta(epsilon) == pytest.approx(
                gaussian_delta(1 / mu, epsilon), rel=1e-12, abs=1e-300
            )
        # Gaussian pairs are symmetric, so the profile is its own reflection.
        there = profiles.gaussian_profile(mu, -EPSILONS)
        back = profiles.reflected(lambda e, mu=mu: profiles.gaussian_profile(mu, e), -EPSILONS)
        assert there == pytest.approx(back, rel=1e-9)
    assert Gaussian(0.0).delta(0.5) == 0
    assert profiles.gaussian_profile(0.0, -1.0) == pytest.approx(1 - math.exp(-1))


def test_epsilon_inverts_delta():
    for profile in (Gaussian(0.3), as_curve(0.3), Losses(profiles.losses(Gaussian(0.3)))):
        for delta in (1e-9, 1e-5, 0.01):
            epsilon = profile.epsilon(delta)
            assert profile.delta(epsilon) <= delta
            assert profile.delta(epsilon * 0.999) > delta
        assert profile.epsilon(0.5) == 0
    with pytest.raises(ValueError, match="delta"):
        as_curve(1.0).epsilon(0.0)
    assert profiles.with_failure(Gaussian(0.3), 1e-4).epsilon(1e-5) == math.inf


def test_gaussians_compose_exactly_in_every_form():
    total = compose(Gaussian(0.3), Gaussian(0.4))
    assert total.mu == pytest.approx(0.5)
    for other in (as_curve(0.3), Curve(as_curve(0.3).remove, as_curve(0.3).remove)):
        for composed in (compose(other, Gaussian(0.4)), compose(Gaussian(0.4), other)):
            assert composed.delta(EPSILONS) == pytest.approx(
                Gaussian(0.5).delta(EPSILONS), rel=1e-9
            )
    both = compose(as_curve(0.3), as_curve(0.4))
    assert isinstance(both, Losses)
    exact = Gaussian(0.5).delta(EPSILONS)
    assert (both.delta(EPSILONS) >= exact * (1 - 1e-9)).all(), "pessimistic"
    assert both.delta(EPSILONS) == pytest.approx(exact, rel=1e-3, abs=1e-12)
    four = profiles.repeated(as_curve(0.25), 4)
    assert four.delta(EPSILONS) == pytest.approx(exact, rel=1e-3, abs=1e-12)
    assert profiles.repeated(Gaussian(0.25), 4) == Gaussian(0.5)
    mixed = compose(Losses(profiles.losses(Gaussian(0.3))), as_curve(0.4))
    assert mixed.delta(EPSILONS) == pytest.approx(exact, rel=1e-3, abs=1e-12)


def test_directions_stay_apart():
    from dp.proofs.sketches import profile

    one = profile(1, 2.0)
    epsilons = np.array([0.3, 0.8])
    actual = compose(one, Gaussian(0.5))
    both = compose(one, as_curve(0.5))
    assert both.delta(epsilons) == pytest.approx(actual.delta(epsilons), rel=1e-3)
    assert actual.remove(0.8) != pytest.approx(actual.add(0.8), rel=0.1)


def test_curve_and_gaussian_against_privacy_loss_distributions():
    laplace = pld.from_laplace_mechanism(2.0, value_discretization_interval=1e-4)
    scale, shift = 2.0, 1.0

    def exact(e):  # the Laplace mechanism's delta, for e of either sign
        e = np.asarray(e, dtype=float)
        top = shift / scale
        inside = -np.expm1((np.minimum(np.abs(e), top) - top) / 2)
        return np.where(e >= 0, inside, -np.expm1(np.minimum(e, 0)) + np.exp(e) * inside)

    actual = compose(Curve(exact), Gaussian(0.4)).delta(EPSILONS)
    gauss = pld.from_gaussian_mechanism(2.5, value_discretization_interval=1e-4)
    expected = np.array(laplace.compose(gauss).get_delta_for_epsilon(EPSILONS))
    assert actual == pytest.approx(expected, rel=1e-6), (
        "whose error falls with the square of the grid"
    )


def test_approximate_dp_composes_like_dp_accounting():
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    one = profiles.approximate(0.3, 1e-4)
    assert one.delta(0.3) == pytest.approx(1e-4) and one.delta(5.0) == pytest.approx(1e-4)
    theirs = pld.from_privacy_parameters(DifferentialPrivacyParameters(0.3, 1e-4), 1e-4)
    assert one.delta(EPSILONS) == pytest.approx(
        np.array(theirs.get_delta_for_epsilon(EPSILONS)), rel=1e-6
    )
    actual = profiles.repeated(one, 5).delta(EPSILONS)
    expected = np.array(theirs.self_compose(5).get_delta_for_epsilon(EPSILONS))
    assert actual == pytest.approx(expected, rel=2e-3)


def test_renyi_conversion():
    for mu in (0.1, 1.0):
        exact = Gaussian(mu).epsilon(1e-6)
        actual = accounting.renyi_epsilon(Gaussian(mu).renyi, 1e-6)
        assert exact < actual < 1.1 * exact
