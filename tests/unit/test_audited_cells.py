"""Attacks support statements only about the cells that they attacked."""

import pytest

from jobs.audited_cells import audited, low_bits, variant_of

ATTACK = {
    "attack": "worst", "epsilon": "1", "n": "2", "d": "3", "delta": "0",
    "epsilon_claimed": "1", "epsilon_proven": "1", "epsilon_audited": "0.9", "family": "2",
}  # fmt: skip
CELL = {"epsilon_claimed": "1", "epsilon_proven": "1", "delta": "0"}


def test_the_largest_bound_with_its_attack():
    weaker = ATTACK | {"attack": "weak", "epsilon_audited": "0.2"}
    where = "worst at epsilon 1, n = 2, d = 3; one of 2 attacks whose bounds hold together"
    assert audited(CELL, [weaker, ATTACK]) == ("0.9", where)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon_claimed": "2"},  # attacked with less noise than the cell has
        {"epsilon_proven": "inf"},  # attacked with parameters for which no finite epsilon is proven
        {"delta": "1e-5"},
    ],
)
def test_an_attack_on_weaker_statements_says_nothing(change):
    bound, why = audited(CELL, [ATTACK | change])
    assert (bound, why) == ("", "no attack where no more is claimed and proven")


def test_a_cell_without_a_guarantee_is_refuted_by_the_attack():
    nothing = {"epsilon_proven": "inf"}
    assert audited(CELL | nothing, [ATTACK | nothing])[0] == "0.9"


def test_variants_are_the_options_in_words_with_their_defaults():
    default = variant_of("functional_gaussian", {})
    assert default == variant_of("functional_gaussian", {"calibration": "analytic"})
    assert default != variant_of("functional_gaussian", {"calibration": "classical"})
    assert variant_of("dp_sgd", {"batch": 5}) == variant_of("dp_sgd", {"batch": 50})


def test_low_bits_of_a_cell_are_the_worst_of_its_programs_attacks():
    said = ["not tried: no epsilon", "broken: 99 % of 600", "not broken here: 70 %", ""]
    assert low_bits([ATTACK | {"low_bits": each} for each in said[:3]]) == said[1]
    assert low_bits([ATTACK | {"low_bits": said[2]}]) == said[2]
    assert low_bits([]) == low_bits([ATTACK]) == ""
