"""Tests what one row stands for, the guarantee for a person with several rows, and public premises."""

import json
import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from dp.mechanisms import MECHANISMS
from dp_privacy import composition
from dp_privacy.accounting import Guarantee, gaussian_epsilon, gaussian_mu, given_that
from dp_privacy.profiles import Curve, Gaussian, approximate, group_delta, group_epsilon, symmetric
from jobs.guarantees import _unit, group
from project import ROOT
from study.configuration.validation import read_yaml
from study.data import readers

DATASETS = read_yaml(ROOT / "config/datasets.yaml")
UNIT = {"row": "a person's year", "group": "a person", "rows": 5, "source": "a study"}
DELTA = 1e-6


def as_curve(mu):
    return Curve(symmetric(Gaussian(mu).delta))


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_group_of_a_gaussian_has_the_parameter_times_its_size(epsilon, size):
    mu = gaussian_mu(epsilon, DELTA)
    exact = gaussian_epsilon(1 / (size * mu), DELTA)
    assert group_epsilon(Gaussian(mu), DELTA, size) == exact
    assert group_epsilon(as_curve(mu), DELTA, size) == pytest.approx(exact, rel=1e-6)
    # Splitting epsilon among the steps as for half of mu gives a valid, but worse bound.
    assert group_delta(Gaussian(mu), exact, size, mu) == pytest.approx(DELTA, rel=1e-6)
    assert group_delta(Gaussian(mu), exact, size, 0.5 * mu) > DELTA
    assert exact > size * epsilon


def test_a_group_on_exact_distributions():
    """The data sets are three steps apart; the mechanism adds truncated geometric noise to a count."""
    p, states = 0.6, np.arange(13)

    def law(centre):
        weights = p ** np.abs(states - centre)
        return weights / weights.sum()

    def delta(first, second):
        return lambda e: np.maximum(first[:, None] - np.exp(e) * second[:, None], 0).sum(axis=0)

    chain = [law(centre) for centre in (4, 5, 6, 7)]
    steps = [delta(*pair) for pair in pairwise(chain)]
    steps += [delta(*pair[::-1]) for pair in pairwise(chain)]

    def one(epsilon):
        at = np.atleast_1d(np.asarray(epsilon, dtype=float))
        result = np.max([step(at) for step in steps], axis=0)
        return result.reshape(np.shape(epsilon))[()]

    profile = Curve(one)
    ends = delta(chain[0], chain[-1]), delta(chain[-1], chain[0])
    for epsilon in (0.2, 0.7, 1.2):
        truth = max(float(each(np.array([epsilon]))[0]) for each in ends)
        for mu in (0.0, 0.3, 0.6):
            assert group_delta(profile, epsilon, 3, mu) >= truth - 1e-12
    result = group_epsilon(profile, 0.05, 3)
    assert max(float(each(np.array([result]))[0]) for each in ends) <= 0.05


def test_a_group_of_other_guarantees():
    pure = Guarantee(1.0, 1.0, 0.0, "replace-one", "")
    assert composition.of_group(pure, 5) == (5.0, 0.0)
    point = Guarantee(1.0, 1.0, DELTA, "replace-one", "")
    epsilon, delta = composition.of_group(point, 5)
    assert epsilon == 5.0 and delta == pytest.approx(DELTA * math.expm1(5) / math.expm1(1))
    # `group_delta` gives the same for randomised response that fails with probability DELTA.
    assert group_delta(approximate(1.0, DELTA), 5.0, 5) == pytest.approx(delta)
    void = Guarantee(1.0, math.inf, 0.0, "replace-one", "")
    assert composition.of_group(void, 5) == (math.inf, 0.0)
    assert composition.of_group(point._replace(epsilon=3.0, delta=0.1), 5) == (math.inf, 0.0)


def test_a_person_with_five_years():
    """Without the profile, the person's epsilon is 5 at 86 times the record's delta."""
    mechanism = MECHANISMS["gaussian_objective_perturbation"]
    lam = mechanism.rule_lambda(16152, 10, 1.0, DELTA)
    stated = mechanism.guarantee(16152, 10, epsilon=1.0, delta=DELTA, lam=lam)
    row, words, epsilon, delta = group({"unit": UNIT}, stated)
    assert (row, words) == ("a person's year", "a person with at most 5 records")
    assert epsilon == pytest.approx(5.926, abs=1e-3) and delta == DELTA
    assert _unit({"unit": UNIT}, stated) == (
        "; a record is a person's year: for a person with at most 5 records, epsilon is 5.92618 at "
        "delta = 1e-06"
    )
    assert _unit({}, stated) == "" and group({}, stated) == ("row", "", "", "")
    void = stated._replace(epsilon=math.inf, profile=None)
    assert _unit({"unit": UNIT}, void) == "; a record is a person's year"


def test_entries_with_the_same_bounds_or_constants_have_the_same_premise():
    premises = {}
    for name, entry in DATASETS.items():
        taken = [
            step["scale_by_constants"]
            for step in entry.get("steps", ())
            if "scale_by_constants" in step
        ]
        taken += [entry["bounds"]] if "bounds" in entry else []
        for each in taken:
            key = json.dumps(each, sort_keys=True)
            premises.setdefault(key, {})[name] = entry.get("premise")
    # Only for law_school_grades is the target what the premise describes: the first-year average.
    others = [
        {name: premise for name, premise in by_name.items() if name != "law_school_grades"}
        for by_name in premises.values()
    ]
    assert all(len(set(by_name.values())) <= 1 for by_name in others), others
    assert DATASETS["fair_public"]["premise"] == DATASETS["fair"]["premise"]


def prepared(tmp_path, name, entry):
    command = [sys.executable, "scripts/job.py", "prepare", "--dataset", name, "--seed", "1"]
    command += ["--entry", json.dumps(entry), "--out-npz", str(tmp_path / "a.npz")]
    subprocess.run([*command, "--out-json", str(tmp_path / "a.json")], cwd=ROOT, check=True)
    return json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))


def test_refusals_by_private_labels_are_premises(tmp_path):
    """Data with one label are refused, so the occurrence of both labels is a premise."""
    digits = prepared(tmp_path, "digits_4_9", DATASETS["digits_4_9"])
    (premise,) = digits["premises"]
    assert premise.endswith("and that each class has one")
    assert digits["unit"] == {}
    stated = given_that(Guarantee(1.0, 1.0, 0.0, "replace-one", "why"), digits["premises"])
    assert stated.reason.endswith(premise)
    with pytest.raises(ValueError, match="every row has the label"):
        readers.two_classes(["a", "a"], "a", "here")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sufficient_statistics", {}),
        ("adassp", {}),
        ("adassp", {"calibration": "published"}),
        ("functional_gaussian", {}),
        ("functional_gaussian", {"calibration": "classical"}),
    ],
)
def test_gaussian_guarantees_have_the_profile_of_which_they_state_a_point(name, options):
    for epsilon in (0.1, 1.0, 10.0):
        guarantee = MECHANISMS[name].guarantee(100, 3, epsilon=epsilon, delta=DELTA, **options)
        assert guarantee.profile.epsilon(DELTA) == pytest.approx(guarantee.epsilon, rel=1e-9)
        assert composition.of_group(guarantee, 5)[1] == DELTA


def test_a_guarantee_for_people_is_not_for_groups_of_people():
    """With `most` at least the group's rows, the group's epsilon is the stated one."""
    mechanism = MECHANISMS["gaussian_objective_perturbation"]
    settings = {"epsilon": 1.0, "delta": DELTA}
    lam = mechanism.rule_lambda(16152, 10, **settings, most=5)
    stated = mechanism.guarantee(16152, 10, lam=lam, most=5, **settings)
    for most, expected in ((5, 1.0), (9, 1.0)):
        _, words, epsilon, delta = group({"unit": UNIT}, stated, most)
        assert words == "a person with at most 5 records"
        assert epsilon == pytest.approx(expected, abs=1e-6) and delta == DELTA
    lam = mechanism.rule_lambda(16152, 10, **settings, most=3)
    three = mechanism.guarantee(16152, 10, lam=lam, most=3, **settings)
    two_threes = group({"unit": UNIT}, three, 3)[2]
    assert two_threes == composition.of_group(three, 2)[0] and 2 < two_threes < 2.5
