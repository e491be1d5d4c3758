"""Mechanisms in the folder DP_MECHANISMS are registered, digested as code, and reported as unproven."""

import math
import shutil
import sys

import pytest

from configured import forget_files
from dp import registry
from dp.mechanisms import MECHANISMS
from dp_audit import audit, replay
from dp_audit.branches import differences
from dp_privacy.errors import Refused
from jobs import attack
from project import ROOT
from study import dependencies

HELPER = "\nfrom mechanisms.helper import LARGEST\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study's folder with the template's mechanism and a module that it imports."""
    shutil.copytree(ROOT / "workflow/template/mechanisms", tmp_path / "mechanisms")
    file = tmp_path / "mechanisms/noisy_mean.py"
    file.write_text(file.read_text().replace("noisy_mean", "added_mean") + HELPER)
    file.rename(tmp_path / "mechanisms/added_mean.py")
    (tmp_path / "mechanisms/helper.py").write_text("LARGEST = 1\n")
    monkeypatch.setenv("DP_MECHANISMS", str(tmp_path / "mechanisms"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in MECHANISMS._loaded if name.startswith("added_")]:
        del MECHANISMS._loaded[name]
    registry._files.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "mechanisms"]:
        del sys.modules[name]
    forget_files()


def test_what_it_states_is_claimed_and_not_proven(folder):
    assert MECHANISMS.added() == ["added_mean"] and "adassp" in MECHANISMS
    mechanism = MECHANISMS["added_mean"]
    stated = mechanism.guarantee(10, 2, epsilon=0.5)
    assert stated.claimed_epsilon == 0.5 and "not proven here" in stated.reason
    assert math.isnan(stated.epsilon) and math.isnan(stated.delta)
    assert MECHANISMS["adassp"].proven


OTHERS = '''

@register("added_half")
class Half(NoisyMean):
    """Half of the noise needed."""

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        return y @ X / n + l2_laplace(d, p.bound / (n * p.epsilon), draws, rng)


from dp.mechanisms.sufficient_statistics import AdaSSP


@register("added_adassp")
class Own(AdaSSP):
    proven = True
'''


def test_all_mechanisms_of_an_added_file_are_unproven_whichever_is_used_first(folder, monkeypatch):
    file = folder / "mechanisms/added_mean.py"
    file.write_text(file.read_text() + OTHERS)
    registry._files.cache_clear()
    monkeypatch.setattr(MECHANISMS, "_loaded", {})
    monkeypatch.delitem(sys.modules, "dp.mechanisms.sufficient_statistics", raising=False)
    names = ["added_mean", "added_half", "added_adassp"]
    assert MECHANISMS.added() == names
    asked = {"epsilon": 0.5, "delta": 1e-6}
    for name in names:
        settings = audit.spent(MECHANISMS[name], **asked)
        stated = MECHANISMS[name].guarantee(10, 2, **settings)
        assert stated.claimed_epsilon == 0.5 and math.isnan(stated.epsilon), name
    assert MECHANISMS["adassp"].guarantee(10, 2, **asked).epsilon == 0.5, (
        "imported by an added file"
    )
    found, stated = replay.of_mechanism("added_half", "reversed_row", 1.0)
    assert replay.verdict(found, stated).startswith("refutes the claim")
    verdict = attack.verdict(1.687, stated)
    assert verdict == "refutes the claim"


def test_its_branches_are_compared_like_those_of_any_mechanism(folder):
    assert not differences(MECHANISMS["added_mean"], {"epsilon": 1.0})


def test_its_digest_follows_its_code_wherever_it_is(folder, tmp_path_factory, monkeypatch):
    module = MECHANISMS.module("added_mean")
    assert module == "mechanisms.added_mean"

    def digest():
        forget_files()
        return dependencies.digest("jobs/run.py", module)

    first = digest()
    assert first != dependencies.digest("jobs/run.py")
    elsewhere = shutil.copytree(folder, tmp_path_factory.mktemp("moved") / "study")
    monkeypatch.setenv("DP_MECHANISMS", str(elsewhere / "mechanisms"))
    assert digest() == first
    (elsewhere / "mechanisms/helper.py").write_text("LARGEST = 2\n")
    assert digest() != first


def test_a_name_is_registered_once(folder):
    text = (folder / "mechanisms/added_mean.py").read_text()
    (folder / "mechanisms/a_copy.py").write_text(text)
    with pytest.raises(Refused, match=r"added_mean.py: another file registers .* 'added_mean' too"):
        MECHANISMS.added()
