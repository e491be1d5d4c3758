import math

import numpy as np
import pandas as pd
import pytest

from dp.mechanisms import MECHANISMS, Mechanism
from dp.noise import gaussian
from dp.seeds import generator
from dp_audit import audit
from dp_privacy.accounting import REPLACE_ONE, Guarantee
from dp_privacy.profiles import Gaussian
from jobs import attack
from plots.proven_profiles import WORST, profiles

DELTAS = (0.01, 0.1, 0.3)


class Located(Mechanism):
    name, delta, needs_lambda = "located", "needed", False

    def _guarantee(self, n, d, p):
        return Guarantee(p.epsilon, p.epsilon, p.delta, REPLACE_ONE, "", Gaussian(2.0))

    def _release(self, X, y, p, draws, rng):
        return X.mean(axis=0) + gaussian(X.shape[1], 1.0, draws, rng)


PAIR = ((np.array([[1.0]]), np.array([1])), (np.array([[-1.0]]), np.array([1])))  # mu is 2


def test_bounds_at_further_deltas_come_near_the_curve_and_stay_below_it():
    settings = {"trials": 200_000, "rng": generator(7), "confidence": 0.99}
    attack = audit.attack(Located(), PAIR, 1.0, 1e-5, deltas=DELTAS, **settings)
    proven = [Gaussian(2.0).epsilon(delta) for delta in DELTAS]
    for delta, audited, limit in zip(DELTAS, attack["at_deltas"], proven, strict=True):
        assert 0.75 * limit < audited <= limit, delta


def test_bounds_of_further_deltas_leave_the_row_as_it_is():
    def row(deltas):
        settings = {"trials": 5_000, "rng": generator(8), "deltas": deltas}
        return audit.attack(Located(), PAIR, 1.0, 1e-5, **settings)

    alone, beside = row(()), row(DELTAS)
    assert alone.pop("at_deltas") == [] and len(beside.pop("at_deltas")) == len(DELTAS)
    assert alone == beside


def test_fewer_releases_only_where_no_number_of_them_refutes_the_claim():
    pure = Guarantee(1.0, 1.0, 0.0, REPLACE_ONE, "")

    def taken(on_pair, **changes):
        return attack.releases(200_000, on_pair, pure._replace(**changes))

    assert taken(0.7) == taken(1.0) == attack.DECIDED and attack.releases(9, 0.7, pure) == 9
    assert taken(1.1) == taken(math.nan) == 200_000
    assert taken(0.7, claimed_epsilon=0.6) == taken(0.7, epsilon=math.nan) == 200_000
    assert taken(0.7, profile=Gaussian(0.3)) == 200_000


def test_a_row_has_the_proven_curve_and_the_audited_points():
    guarantee = Guarantee(1.0, 1.5, 1e-5, REPLACE_ONE, "", Gaussian(0.3))
    actual = attack.profiles(guarantee, [0.1] * len(attack.DELTAS))
    epsilon, delta, at, audited = (np.array(text.split(), float) for text in actual.values())
    assert list(actual) == list(attack.COLUMNS[-4:])
    assert epsilon[0] == 0 and epsilon[-1] == 3
    assert delta == pytest.approx(Gaussian(0.3).delta(epsilon), rel=1e-8)
    assert tuple(at) == attack.DELTAS and set(audited) == {0.1}
    empty = attack.profiles(guarantee._replace(profile=None), [])
    assert set(empty.values()) == {""}


def ledger(**changes):
    curve = attack.profiles(
        Guarantee(1.0, 1.0, 1e-5, REPLACE_ONE, "", Gaussian(0.3)), [0.2, 0.1, 0, 0, 0, 0]
    )
    row = {"mechanism": "dp_gd", "attack": "opposite_corner", "adjacency": REPLACE_ONE}
    row |= {"epsilon": 2.0, "epsilon_claimed": 1.0, "delta": 1e-5} | curve
    return row | changes


def test_the_figure_has_a_panel_per_mechanism_with_its_nearest_attack():
    none = dict.fromkeys(attack.COLUMNS[-4:])
    rows = [
        ledger(),
        ledger(attack="nearer", audited_epsilon="0.5 0.3 0 0 0 0"),
        ledger(mechanism="amp"),
        ledger(mechanism="functional_laplace", delta=0.0, **none),
    ]
    fig = profiles(pd.DataFrame(rows))
    shown = [axes for axes in fig.axes if axes.get_title(loc="left")]
    assert ["nearer" in axes.get_title(loc="left") for axes in shown] == [True, False]
    curve, claimed, points = shown[0].lines  # along shares of the epsilon asked for, 2
    assert curve.get_xydata()[:, 1] == pytest.approx(
        Gaussian(0.3).delta(2 * curve.get_xdata()), rel=1e-6
    )
    assert claimed.get_xydata().tolist() == [[0.5, 1e-5]]
    assert points.get_xydata().tolist() == [[0.25, 0.001], [0.15, 0.01]]


def test_the_figure_shows_the_tightest_few_mechanisms():
    count = WORST + 5
    rows = [ledger(mechanism=f"m{k}", audited_epsilon=f"0.1 {k} 0 0 0 0") for k in range(count)]
    fig = profiles(pd.DataFrame(rows))
    titles = [axes.get_title(loc="left").partition("\n")[0] for axes in fig.axes]
    assert titles == [f"m{k}" for k in reversed(range(5, count))]


def test_a_ledger_without_profiles_says_so():
    fig = profiles(pd.DataFrame([{"mechanism": "dp_sgd", "attack": "a"}]))
    assert "No mechanism here" in fig.get_suptitle()


def test_what_is_not_proven_is_called_so_until_an_attack_refutes_it():
    own = Guarantee(1.0, float("nan"), float("nan"), REPLACE_ONE, "")
    assert attack.verdict(0.9, own) == "claimed, not proven: this attack does not refute it"
    assert attack.verdict(1.1, own) == "refutes the claim"
    assert attack.verdict(0.9, own._replace(epsilon=1.0)) == "consistent with the claim"


@pytest.mark.parametrize(
    "name, epsilon, options, expected",
    [
        ("output_perturbation_gaussian", 0.1, {}, "broken: "),
        ("output_perturbation_gaussian", 10.0, {"lam": 4.0}, "not broken here: "),
        ("laplace_l1", 0.1, {"lam": 1e-3}, "broken: "),
        ("laplace_coordinates", 0.01, {}, "broken: "),
        ("laplace_coordinates", 2.0, {}, "not broken here: "),
        ("laplace_coordinates_sum", 0.1, {}, "not tried: nothing finite is proven"),
        ("adassp", 1.0, {}, "not tried: it attacks weights"),
        ("output_perturbation_gaussian", math.inf, {}, "not tried: no epsilon"),
        ("output_perturbation_gaussian", 0.1, {"tolerance": 1e-300}, "not tried: at n"),
    ],
)
def test_what_low_order_bits_tell(name, epsilon, options, expected):
    """The sentence on low-order bits is about the program, not about the data sets in the same row."""
    delta = 1e-6 if MECHANISMS[name].delta == "needed" else 0.0
    settings = {"epsilon": epsilon, "delta": delta, "bound": 7.0, "classes": 3} | options
    assert attack.bits(MECHANISMS[name], settings, generator(9)).startswith(expected)
    assert attack.COLUMNS[-5] == "low_bits"
