import math

import pytest

from dp_audit.audit import of_each
from dp_privacy.accounting import ADD_REMOVE
from study.configuration import audits
from study.configuration.config import ConfigError


def test_every_attack_has_one_path():
    resolved = audits.load({})
    attacks = resolved.attacks()
    paths = [attack.path for attack in attacks]
    assert len(set(paths)) == len(paths) > 10
    assert {attack.mechanism for attack in attacks} == set(resolved.mechanisms)
    first = resolved.attack(attacks[0].mechanism, attacks[0].label)
    assert first["trials"] == resolved.settings.trials and first["confidence"] == 0.95
    assert resolved.attacks("output_perturbation") == [
        attack for attack in attacks if attack.mechanism == "output_perturbation"
    ]


def test_every_private_mechanism_is_in_the_ledger():
    from dp.mechanisms import MECHANISMS

    attacked = set(audits.load({}).mechanisms)
    assert {name for name in MECHANISMS if MECHANISMS[name].private} <= attacked


def test_a_familys_bounds_hold_together():
    """An attack's `family` counts all attacks on its mechanism, one per label and epsilon."""
    resolved = audits.load({})
    name = "output_perturbation"
    settings = {attack: resolved.attack(name, attack.label) for attack in resolved.attacks(name)}
    assert {setting["family"] for setting in settings.values()} == {len(settings)} == {10}
    more = {"mechanisms": {name: {"saturated": {"epsilons": [0.1, 1, 5, 10]}}}}
    assert audits.load(more).attack(name, "linear_part")["family"] == 11
    assert of_each(0.95, 1) == pytest.approx(0.95)
    assert of_each(0.95, 10) == pytest.approx(0.995)


def test_a_mechanism_without_an_entry_is_attacked_all_the_same(monkeypatch):
    from dp import registry
    from dp.mechanisms import MECHANISMS, Mechanism
    from dp.options import ADJACENCY, PUBLIC_N, Whole

    class Own(Mechanism):
        def _guarantee(self, n, d, p):
            return MECHANISMS["adassp"].guarantee(n, d, epsilon=p.epsilon, delta=1e-5)

    class Gaussian(Own):
        delta = "needed"

    class Large(Own):
        def _check_together(self, n, d, p):
            Whole(least=101).check("n", n)

    class AddRemove(Own):
        def _guarantee(self, n, d, p):
            return super()._guarantee(n, d, p)._replace(adjacency=ADD_REMOVE, epsilon=math.nan)

    class Both(Own):
        options = ADJACENCY | PUBLIC_N

        def _guarantee(self, n, d, p):
            return super()._guarantee(n, d, p)._replace(adjacency=p.adjacency)

    kinds = {
        "own": Own,
        "gaussian": Gaussian,
        "large": Large,
        "both": Both,
        "add_remove": AddRemove,
    }
    files = dict.fromkeys(kinds, ("dp.mechanisms.own", False))
    files |= registry._files(None)
    monkeypatch.setattr(registry, "_files", lambda added: files)
    for name, kind in kinds.items():
        monkeypatch.setitem(MECHANISMS._loaded, name, kind())
        MECHANISMS[name].name = name
    resolved = audits.load({"default": {"flipped_label": [2]}})
    replacing = ["opposite_corner", "flipped_label", "shortened_row"]
    assert list(resolved.mechanisms["own"]) == replacing
    assert [attack.epsilon for attack in resolved.attacks("own")] == [0.1, 1, 10, 2, 1]
    assert resolved.attack("own", "flipped_label")["delta"] == 0
    assert resolved.attack("gaussian", "flipped_label")["delta"] == 1e-5
    assert "large" not in resolved.mechanisms  # no pair has enough rows for the attack
    assert list(resolved.mechanisms["add_remove"]) == ["left_out"]
    assert resolved.attack("add_remove", "left_out")["options"] == {}
    assert list(resolved.mechanisms["both"]) == [*replacing, "left_out"]
    n_is_stated = {"adjacency": ADD_REMOVE, "public_n": 3}
    assert resolved.attack("both", "left_out")["options"] == n_is_stated
    monkeypatch.setattr(MECHANISMS, "added", lambda: ["own", "large"])
    with pytest.raises(ConfigError, match="large accepts no pair of `default`"):
        audits.load({"strict": True})


def test_changes_are_merged():
    changed = audits.load({"trials": 50, "mechanisms": {"output_perturbation": None}})
    assert changed.settings.trials == 50
    assert "output_perturbation" not in changed.mechanisms


def test_fewer_trials_of_attacks_that_a_study_leaves_out_are_left_out():
    whole = {"opposite_corner": {"epsilons": [1], "delta": 1e-5}}
    fewer = {"tukey_em": {"tukey_shell": {"trials": 9}}, "dp_gd": whole}
    resolved = audits.load({"mechanisms": fewer}, experiments=[])
    assert "tukey_em" not in resolved.mechanisms
    assert set(resolved.mechanisms["dp_gd"]) == {"opposite_corner"}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"trial": 5}, "unknown key 'trial'; did you mean 'trials'"),
        ({"trials": "1e5"}, "is text, not a number"),
        ({"trials": 1}, "at least 4"),
        ({"confidence": 1}, "less than 1"),
        ({"mechanisms": {"output": {"saturated": {"epsilons": [1]}}}}, "no mechanism 'output'"),
        ({"mechanisms": {"output_perturbation": {"satured": {"epsilons": [1]}}}}, "'saturated'"),
        (
            {"mechanisms": {"output_perturbation": {"saturated": {"epsilons": [-1]}}}},
            "greater than 0",
        ),
        (
            {"mechanisms": {"output_perturbation": {"a": {"pair": "saturated"}}}},
            "'epsilons' is missing",
        ),
        (
            {
                "mechanisms": {
                    "output_perturbation": {"saturated": {"epsilons": [1], "options": {"los": 1}}}
                }
            },
            "no option 'los'.*'loss'",
        ),
    ],
)
def test_refused(changes, match):
    with pytest.raises(ConfigError, match=match):
        audits.load(changes)


def test_an_attack_depends_on_no_other_mechanism():
    from dp.mechanisms import MECHANISMS
    from dp_audit.exact_losses import OBJECTIVE
    from study.dependencies import ROOT, files_of_job

    folder = ROOT / "dp/mechanisms"
    for name in ("output_perturbation", "objective_perturbation", "dp_sgd", "adassp"):
        files = set(files_of_job("jobs/attack.py", MECHANISMS.module(name)))
        own = {path.name for path in files if path.parent == folder} - {"__init__.py"}
        module = MECHANISMS.module(name).rpartition(".")[2] + ".py"
        needed = {
            path.name
            for path in files_of_job("jobs/run.py", MECHANISMS.module(name))
            if path.parent == folder
        }
        assert module in own <= needed
    assert set(OBJECTIVE) <= set(audits.EXACT)


def test_what_has_no_epsilon_is_attacked_once():
    resolved = audits.load({})
    epsilons = [attack.epsilon for attack in resolved.attacks("distributed_lasso")]
    assert epsilons == [float("inf")]
    with pytest.raises(ConfigError, match="and nonprivate is not one"):
        audits.load({"mechanisms": {"nonprivate": {"flipped_label": {"epsilons": [1]}}}})
