"""Every mechanism has its own style in figures, recognisable without colour."""

import pytest

from configured import configured
from dp.mechanisms import MECHANISMS
from plots import style
from study.configuration.experiment_keys import Method

ONE_LOOK = ("learning_curve", "epsilon_curve", "excess")
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


def test_variants_have_their_mechanisms_colour_and_a_figure_at_most_six():
    methods = {name: Method(mechanism=name) for name in ("dp_gd", "adassp", "knorm", "a", "b")}
    methods |= {"objective_clipped": Method(mechanism="gaussian_objective_perturbation")}
    methods |= {"dp_gd_2": Method(mechanism="dp_gd"), "late": Method(mechanism="late")}
    looks = style.looks(methods)
    assert looks["dp_gd"]["color"] == looks["dp_gd_2"]["color"] == style.LOOKS["dp_gd"][1]
    assert looks["dp_gd"]["linestyle"] != looks["dp_gd_2"]["linestyle"]
    clipped = looks["objective_clipped"]
    assert (clipped["marker"], clipped["linestyle"]) == style.VARIANTS["objective_clipped"][1:]
    assert clipped["color"] == style.LOOKS["gaussian_objective_perturbation"][1]
    colours = {look["color"] for look in looks.values()}
    assert len(colours - {style.GREY}) == style.MOST and looks["late"]["color"] == style.GREY


def test_a_method_looks_the_same_in_all_figures(experiments):
    seen = {}
    for experiment in experiments.values():
        for spec in experiment.figures.values():
            if spec.kind not in ONE_LOOK:
                continue
            shown = {cell.method for cell in experiment.entry_cells(spec)}
            looks = style.looks({m: v for m, v in experiment.methods.items() if m in shown})
            for label, look in looks.items():
                mechanism = experiment.methods[label].mechanism
                if mechanism in style.LOOKS and look["color"] not in style.UNCOLOURED:
                    seen.setdefault((label, mechanism), set()).add(
                        (look["color"], look["marker"], look["linestyle"])
                    )
    assert len(seen) > 30 and {key: each for key, each in seen.items() if len(each) > 1} == {}


@pytest.fixture(scope="module")
def experiments():
    return configured()[1]


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
