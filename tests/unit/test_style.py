"""Every mechanism has its own style in figures, recognisable without colour."""

import pytest

from dp.mechanisms import MECHANISMS
from plots import style
from study.configuration.config import load
from study.configuration.experiment_keys import Method

CURVES = ("learning_curve", "epsilon_curve")


def test_every_listed_mechanism_has_a_look_of_its_own():
    assert set(style.LOOKS) <= set(MECHANISMS)
    looks = [look[1:] for look in style.LOOKS.values()]
    assert len(set(looks)) == len(looks)
    names = [look[0] for look in style.LOOKS.values()]
    assert len(set(names)) == len(names)


def test_mechanisms_that_are_not_listed_get_spare_looks():
    methods = {"adassp": Method(mechanism="adassp")}
    methods |= {f"my_{k}": Method(mechanism=f"my_{k}") for k in range(12)}
    methods["titled"] = Method(mechanism="my_own", title="my own mechanism")
    looks = style.looks(methods)
    assert len({(look["color"], look["marker"]) for look in looks.values()}) == len(methods)
    assert [looks[name]["label"] for name in ("my_3", "titled")] == ["my 3", "my own mechanism"]


@pytest.fixture(scope="module")
def experiments():
    return load({"seed": 1, "experiments": ["cm08"]})[1]


def test_curves_of_one_figure_differ_in_marker_or_line_and_in_colour(experiments):
    for experiment in experiments.values():
        for name, spec in experiment.figures.items():
            if spec.kind not in CURVES:
                continue
            shown = {cell.method for cell in experiment.entry_cells(spec)}
            looks = style.looks({m: v for m, v in experiment.methods.items() if m in shown})
            where = f"{experiment.name}: {name}"
            grey = [(look["marker"], look["linestyle"]) for look in looks.values()]
            assert len(set(grey)) == len(grey), where
            lines = [look["linestyle"] for look in looks.values() if look["marker"]]
            colours = [look["color"] for look in looks.values() if look["marker"]]
            pairs = list(zip(colours, lines, strict=True))
            assert len(set(pairs)) == len(pairs), where
