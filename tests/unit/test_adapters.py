"""The check sees diffprivlib's noise, and takes OpenDP's measurements, without either as a dependency."""

import json
import math
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import kstest

from dp_audit import check, replay
from dp_audit.adapters import following
from dp_audit.programs import Program
from dp_audit.recorder import Recorder, Tape
from project import ROOT

PEERS = ROOT / ".venv-peers/bin/python"


class DPMechanism:
    """The shape of diffprivlib's mechanisms, in a few lines of our own."""

    def __init__(self, *, epsilon, sensitivity):
        self.epsilon, self.sensitivity = epsilon, sensitivity
        self._rng = np.random.RandomState()


class Laplace(DPMechanism):
    @staticmethod
    def _laplace_sampler(one, two):
        return np.log(1 - one) - np.log(1 - two)

    def randomise(self, value):
        unit = self._laplace_sampler(self._rng.random(), self._rng.random())
        return value - self.sensitivity / self.epsilon * unit


class Rejecting(Laplace):
    """Draws until a value is positive, so that noise is not added."""

    def randomise(self, value):
        while True:
            unit = self._laplace_sampler(self._rng.random(), self._rng.random())
            if value + unit > 0:
                return value + unit


@pytest.fixture(autouse=True)
def few_releases(monkeypatch):
    """An attack makes 2,000 releases, not up to 20,000, which decide all that is asked here."""
    monkeypatch.setattr(check, "TRIALS", (400, 2000))


@pytest.fixture
def diffprivlib(monkeypatch):
    mechanisms, base = ModuleType("diffprivlib.mechanisms"), ModuleType("base")
    base.DPMechanism, mechanisms.base = DPMechanism, base
    monkeypatch.setitem(sys.modules, "diffprivlib.mechanisms", mechanisms)


@pytest.mark.parametrize(("sensitivity", "needed"), [(2.0, 0.0), (1.0, 2.0)])
def test_a_library_s_own_scale_is_judged(diffprivlib, sensitivity, needed):
    def total(rows):
        return Laplace(epsilon=1.0, sensitivity=sensitivity).randomise(rows[:, 0].sum())

    found = check.check(Program(total, 1.0), count=30, seconds=20)
    assert found.fault == (needed > 1) and not found.unseen
    assert found.epsilon == pytest.approx(needed)


def test_what_is_drawn_again_is_a_choice(diffprivlib):
    run = following(lambda X, y, rng: Rejecting(epsilon=1.0, sensitivity=1.0).randomise(X.sum()))
    sides = [(np.full((2, 1), x), np.ones(2)) for x in (0.0, 1.0)]
    assert replay.replay(run, *sides, epsilon=1.0).finding == replay.CHOICE


def test_the_library_is_left_as_it_was(diffprivlib):
    before = DPMechanism.__init__
    rng = Recorder(np.random.PCG64(0), Tape())
    with pytest.raises(ValueError, match="of a program"):
        following(_fails)(None, None, rng)
    assert DPMechanism.__init__ is before
    mechanism = Laplace(epsilon=1.0, sensitivity=1.0)
    draws = [mechanism.randomise(0.0) for _ in range(2000)]
    assert kstest(draws, "laplace").pvalue > 1e-4


def _fails(X, y, rng):
    raise ValueError("of a program")


class Measurement:
    """The shape of an OpenDP measurement of a vector of floats."""

    class input_domain:
        carrier_type = "Vec<f64>"

    def __call__(self, values):
        assert isinstance(values, list) and all(isinstance(each, float) for each in values)
        return sum(values) + np.random.laplace(0, 0.1)  # noqa: NPY002


def test_a_measurement_is_attacked(monkeypatch):
    monkeypatch.setattr(Measurement, "__module__", "opendp.mod")
    monkeypatch.setattr(check, "ATTACKED", 4)
    found = check.check(Program(Measurement(), 1.0), seconds=10)
    assert found.fault and found.unseen and found.epsilon > 1.0


CURRENT = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, "scripts")
import numpy as np
import opendp.prelude as dp
from diffprivlib import tools
from diffprivlib.models import LinearRegression
from dp_audit import check
from dp_audit.programs import Program

dp.enable_features("contrib")
def total(rows):
    return tools.sum(rows[:, 0], epsilon=1.0, bounds=(-1, 1))
def squares(X, y):
    model = LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(-1, 1), fit_intercept=False)
    return model.fit(np.abs(X), y)._obj_coefs
space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
clamped = space >> dp.t.then_clamp((-1.0, 1.0)) >> dp.t.then_resize(size=5, constant=0.0)
measured = clamped >> dp.t.then_sum() >> dp.m.then_laplace(scale=0.1)
print(json.dumps([
    check.check(Program(thing, 1.0), count=20, seconds=15, released=True)[:4]
    for thing in (total, squares, measured)
]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not PEERS.exists(), reason="envs/peers.txt is not installed in .venv-peers")
def test_current_versions():
    """A sum holds, a square without noise does not, and a measurement needs 20 of a claimed 1."""
    done = subprocess.run(
        [PEERS, "-c", CURRENT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    total, squares, measured = json.loads(done.stdout)
    assert total[1:3] == [False, False]
    assert squares[1] and "noise of scale 0" in squares[0] and math.isinf(squares[3])
    assert measured[1] and measured[2] and 1 < measured[3] <= 20
