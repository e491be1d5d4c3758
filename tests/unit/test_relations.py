"""Curves and bands are drawn at the values in a DataFrame's columns, in single figures and panels."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from configured import entry
from plots import style
from plots.curves import epsilon_curve, learning_curve, tuning_curve
from plots.printed_bars import printed_bars
from plots.relations import OTHERS, Curves, Scales, relation
from sources.einarsson_2018.figures import epsilon_family, proven_curve
from sources.hoseinpour_2023.figures import PRETRAINED, pretraining
from study import facts
from study.configuration import printed_values
from study.configuration.experiment_keys import Method

GREY = OTHERS["color"].lower()
NAMES = ["nonprivate", "output_perturbation", "objective_perturbation", "dp_sgd", "adassp"]
NAMES += ["posterior_sampling"]
METHODS = {name: Method(mechanism=name, private=name != "nonprivate") for name in NAMES}
EXPERIMENT = SimpleNamespace(
    name="study",
    methods=METHODS,
    values={"folds": 5},
    published={},
    repetitions="folds",
    repeated=lambda count: "data sets",
)
OPTIONS = {"log_size": False, "log_epsilon": False, "log_error": False, "published": None}
SPEC = entry(title="A title", options=OPTIONS)


def cells(methods, along, values):
    rng = np.random.default_rng(1)
    rows = []
    for method in methods:
        for value in values if METHODS[method].private or along != "epsilon" else [np.inf]:
            mean, below, above = rng.uniform(0.2, 0.4), rng.uniform(0, 0.1), rng.uniform(0, 0.3)
            row = {"method": method, "dataset": "data", "train_size": 100, "epsilon": 1.0}
            row |= {along: value, "error_mean": mean, "folds": 5, "restarts": 3, "status": "ok"}
            rows.append(row | {"error_low": mean - below, "error_high": mean + above})
    return pd.DataFrame(rows)


def bands(axes):
    """Drawn bands (x, low, high), by colour."""
    drawn = {}
    for patch in axes.patches:
        lower, upper = np.split(patch.get_path().vertices[: 2 * (len(patch.get_xy()) // 2)], 2)
        assert to_hex(patch.get_facecolor()) not in drawn
        drawn[to_hex(patch.get_facecolor())] = (*lower.T, upper[::-1, 1])
    return drawn


def note(fig):
    return fig.legends[0].get_title().get_text()


def lines(axes):
    return {to_hex(line.get_color()): line.get_xydata().T for line in axes.lines}


def expected(frame, method, along):
    rows = frame[frame["method"] == method].sort_values(along)
    columns = (along, "error_mean", "error_low", "error_high")
    return style.LOOKS[method][1].lower(), [rows[column].to_numpy() for column in columns]


@pytest.mark.parametrize(
    ("draw", "along", "values"),
    [(learning_curve, "train_size", [300, 100, 200]), (epsilon_curve, "epsilon", [1.0, 0.1, 0.5])],
)
@pytest.mark.parametrize("count", [3, 6])
def test_lines_and_bands_are_the_columns(draw, along, values, count):
    frame = cells(NAMES[:count], along, values)
    fig = draw(EXPERIMENT, SPEC, frame)
    private = NAMES[1:count]
    assert len(fig.axes) == (1 if count == 3 else len(private))
    for k, method in enumerate(private):
        axes = fig.axes[0 if count == 3 else k]
        colour, (x, mean, low, high) = expected(frame, method, along)
        np.testing.assert_allclose(lines(axes)[colour], (x, mean))
        np.testing.assert_allclose(bands(axes)[colour], (x, low, high))
        if count == 6:
            assert set(bands(axes)) == {colour, "#000000"}
            grey = [line for line in axes.lines if to_hex(line.get_color()) == GREY]
            drawn = {tuple(line.get_ydata()) for line in grey}
            others = [name for name in private if name != method]
            assert drawn == {tuple(expected(frame, name, along)[1][1]) for name in others}
            assert axes.get_title() + axes.get_title("left") == style.name(method)


def test_a_method_without_privacy_is_level_over_all_epsilons():
    frame = cells(NAMES[:2], "epsilon", [0.1, 0.5, 1.0])
    axes = epsilon_curve(EXPERIMENT, SPEC, frame).axes[0]
    plain = frame[frame["method"] == "nonprivate"].iloc[0]
    np.testing.assert_array_equal(lines(axes)["#000000"], ([0.1, 1.0], [plain["error_mean"]] * 2))
    _, low, high = bands(axes)["#000000"]
    assert set(low) == {plain["error_low"]} and set(high) == {plain["error_high"]}


def test_a_cell_without_an_interval_keeps_its_mean():
    frame = cells(NAMES[:2], "train_size", [100, 200, 300])
    rows = (frame["method"] == "output_perturbation") & (frame["train_size"] == 200)
    frame.loc[rows, ["error_low", "error_high"]] = np.nan
    axes = learning_curve(EXPERIMENT, SPEC, frame).axes[0]
    colour, (x, mean, _, _) = expected(frame, "output_perturbation", "train_size")
    np.testing.assert_array_equal(lines(axes)[colour], (x, mean))
    np.testing.assert_array_equal(bands(axes)[colour][0], [100, 300])


def family(methods, epsilons, **options):
    parts = [cells(["nonprivate"], "train_size", [100, 200]).assign(epsilon=np.inf)]
    for value in epsilons:
        parts.append(cells(methods, "train_size", [100, 200]).assign(epsilon=value))
        columns = ["error_mean", "error_low", "error_high"]
        parts[-1][columns] *= 1 + value  # no two curves are equal
    options = {"log": False, "show": "error"} | options
    frame = pd.concat(parts, ignore_index=True)
    return frame, epsilon_family(EXPERIMENT, SPEC.but(options=options), frame)


@pytest.mark.parametrize("show", ["error", "width"])
@pytest.mark.parametrize("epsilons", [[0.1, 1.0], [0.1, 0.2, 0.5, 1.0, 10.0]])
def test_a_family_has_one_panel_with_a_curve_per_epsilon(show, epsilons):
    frame, fig = family(["output_perturbation"], epsilons, show=show)
    (axes,) = fig.axes
    for value, colour in zip(epsilons, map(to_hex, style.shades(len(epsilons))), strict=True):
        rows = frame[frame["epsilon"] == value]
        if show == "width":
            np.testing.assert_allclose(
                lines(axes)[colour][1], rows["error_high"] - rows["error_low"]
            )
            assert not bands(axes)
        else:
            np.testing.assert_allclose(lines(axes)[colour][1], rows["error_mean"])
            np.testing.assert_allclose(
                bands(axes)[colour], rows[["train_size", "error_low", "error_high"]].T
            )


def test_several_methods_of_a_family_meet_in_a_panel_per_epsilon():
    frame, fig = family(NAMES[1:4], [0.1, 1.0])
    for axes, value in zip(fig.axes, [0.1, 1.0], strict=True):
        assert set(lines(axes)) == {style.LOOKS[name][1].lower() for name in NAMES[:4]}
        for method in NAMES[1:4]:
            colour, (x, mean, low, high) = expected(
                frame[frame["epsilon"] == value], method, "train_size"
            )
            np.testing.assert_allclose(lines(axes)[colour], (x, mean))
            np.testing.assert_allclose(bands(axes)[colour], (x, low, high))


def test_errors_move_to_the_epsilon_that_is_proven(monkeypatch):
    proven = {"output_perturbation": 2.0, "objective_perturbation": np.inf}
    monkeypatch.setattr(
        "sources.einarsson_2018.figures._proven",
        lambda _, row: row["epsilon"] * proven[row["method"]],
    )
    frame = cells(NAMES[:3], "epsilon", [0.1, 1.0])
    fig = proven_curve(EXPERIMENT, SPEC, frame)
    (axes,) = fig.axes
    colour, (x, mean, low, high) = expected(frame, "output_perturbation", "epsilon")
    np.testing.assert_allclose(lines(axes)[colour], (2 * x, mean))
    np.testing.assert_allclose(bands(axes)[colour], (2 * x, low, high))
    np.testing.assert_allclose(lines(axes)["#000000"][0], 2 * x)
    assert set(lines(axes)) == {colour, "#000000"}
    assert note(fig).endswith("objective perturbation, repaired")


def test_training_accuracy_has_the_bands_of_single_draws():
    rng = np.random.default_rng(4)
    errors = {("private", 0.1): rng.uniform(size=200), ("private", 1.0): rng.uniform(0, 0.3, 200)}
    errors |= {("plain", np.inf): np.array([0.2, 0.3]), ("public", np.inf): np.array([0.07, 0.07])}
    frame = pd.DataFrame(
        {"method": method, "epsilon": epsilon, "train_error": error}
        for (method, epsilon), values in errors.items()
        for error in values
    )
    names = {"private": "private", "plain": "without", "public": "public rows alone"}
    methods = {
        method: Method(mechanism="m", private=method == "private", title=title)
        for method, title in names.items()
    }
    options = {"plain": ["plain"], "pretrained": ["private"], "published": None}
    options |= {"public_only": "public", "converged": None}
    experiment = SimpleNamespace(**vars(EXPERIMENT) | {"methods": methods})
    fig = pretraining(experiment, SPEC.but(options=options), frame)
    (axes,) = fig.axes
    private = [errors["private", epsilon] for epsilon in (0.1, 1.0)]
    mean = [100 * (1 - each.mean()) for each in private]
    low, high = (
        [100 * (1 - np.quantile(each, share)) for each in private] for share in (0.975, 0.025)
    )
    colour = PRETRAINED.lower()
    np.testing.assert_allclose(lines(axes)[colour], ([0.1, 1.0], mean))
    _, *drawn = bands(axes)[colour]
    np.testing.assert_allclose(np.sort(drawn, axis=0), (low, high))
    assert any(np.allclose(line.get_ydata(), 93) for line in axes.lines)
    assert "public rows alone" in {text.get_text() for text in axes.texts}
    assert note(fig) == "mean and 95 % of 200 draws"


def test_a_few_curves_are_named_at_their_ends_and_no_two_names_touch():
    frame = cells(NAMES[:3], "train_size", [100, 200])
    frame["error_mean"] = 0.2
    fig = learning_curve(EXPERIMENT, SPEC.but(options=OPTIONS), frame)
    (axes,) = fig.axes
    assert len(axes.texts) == 3 and not fig.legends[0].get_texts()
    assert axes.get_legend() is None  # notes are below the axes, where they hide nothing
    places = sorted(text.get_position()[1] for text in axes.texts)
    assert min(np.diff(places)) > 0.05 and places[0] >= 0 and places[-1] <= 1


@pytest.mark.parametrize(("log", "within"), [("", (0, 100)), ("xy", (1e-4, 1.0)), ("xy", None)])
def test_a_name_stands_where_its_curve_ends_on_the_final_axis(log, within):
    rows = [(name, x, y * x) for name, y in (("low", 0.01), ("high", 0.3)) for x in (1.0, 2.0)]
    frame = pd.DataFrame(rows, columns=["curve", "x", "y"])
    looks = {name: style.look(name, "#0072B2") for name in ("low", "high")}
    scales = Scales(("x", "y"), log=log, within=within)
    (axes,) = relation(SPEC, frame, looks, "x", Curves("y", band=None), scales).axes
    if within == (0, 100):
        assert axes.get_ylim() == within
    for text in axes.texts:
        (end,) = frame.loc[(frame["curve"] == text.get_text()) & (frame["x"] == 2), "y"]
        place = axes.transAxes.inverted().transform(axes.transData.transform((2, end)))[1]
        assert abs(text.get_position()[1] - place) < (0.06 if within == (0, 100) else 1e-6)


def test_panels_share_an_axis_only_where_they_share_its_range():
    frame = pd.DataFrame(
        {"panel": list("aabb"), "x": [1.0, 4.0, 0.1, 4.0], "y": [0.0, 1.0, 0.0, 0.9]}
    )
    assert Scales(log="x").parted(frame, "x", "y") == {"x"}
    assert Scales(own=True).parted(frame.assign(x=1.0), "x", "y") == {"y"}
    frame = frame.assign(x=[1.0, 2.0, 1.0, 2.0])
    assert Scales().parted(frame, "x", "y") == set()
    assert Scales().parted(frame.assign(y=[0.0, 1.0, 0.0, 0.1]), "x", "y") == {"y"}


@pytest.mark.parametrize(
    ("draw", "along"), [(learning_curve, "train_size"), (epsilon_curve, "epsilon")]
)
def test_printed_values_stand_with_their_spread(monkeypatch, draw, along):
    method = "output_perturbation"
    value = printed_values.Printed(0.33, 0.05, "p", "data", method, 200, 0.5, "error_mean")
    monkeypatch.setattr("study.configuration.printed_values.values", lambda *_: [value])
    source = facts.Source(key="s", short="S", settings={"axis": [0.1, 0.6]})
    monkeypatch.setattr("study.facts.read", lambda key: source)
    frame = cells([method], along, [100, 200] if along == "train_size" else [0.1, 1.0])
    spec = SPEC.but(options=OPTIONS | {"published": "t", "printed_axis": "settings/axis"})
    experiment = SimpleNamespace(**vars(EXPERIMENT) | {"source": "s"})
    fig = draw(experiment, spec, frame)
    (axes,) = fig.axes
    (bar,) = axes.containers
    (spread,) = bar.lines[2]
    np.testing.assert_allclose(spread.get_segments()[0][:, 1], [0.28, 0.38])
    if along == "train_size":
        assert spread.get_segments()[0][0, 0] == 200
    levels = {
        round(float(line.get_ydata()[0]), 9) for line in axes.lines if len(line.get_ydata()) == 2
    }
    # Lines mark both ends of the source's axis, and a published value whose epsilon is unknown.
    assert {0.1, 0.6} <= levels and (0.33 in levels) == (along == "epsilon")
    labels = [text.get_text() for text in fig.legends[0].get_texts()]
    assert {"value published, with its sd", "ends of the source's axis"} <= {*labels}


def test_tuning_has_a_panel_with_an_axis_per_data_set(tmp_path):
    errors = {"flat": [0.0, 0.0, 0.0], "steep": [0.3, 0.31, 0.4]}
    paths = {}
    for name, values in errors.items():
        frame = pd.DataFrame({"lambda": [1e-3, 1e-2, 1e-1], "error_mean": values})
        frame["best"] = (frame["error_mean"] == min(values)).astype(int)
        paths[name] = tmp_path / f"{name}.csv"
        frame.to_csv(paths[name], index=False)
    experiment = SimpleNamespace(values={"lambda_published": 0.01}, lambda_published=0.01)
    fig = tuning_curve(experiment, SPEC, paths)
    says = {"flat": "all 3 tie", "steep": "1 of 3 are best"}
    for axes, (name, values) in zip(fig.axes, errors.items(), strict=True):
        assert axes.get_title(loc="left") == f"{name}: {says[name]}"
        low, high = axes.get_ylim()
        assert -0.01 < low < 0 and max(values) < high < 0.5
        drawn = [line.get_xydata() for line in axes.lines]
        np.testing.assert_allclose(drawn[0][:, 1], values)
        # After the curve come the best lambda, unless all tie, and the line at the published 0.01.
        assert [len(each) for each in drawn[1:]] == [0 if name == "flat" else 1, 2]
    assert fig.axes[0].get_ylim() != fig.axes[1].get_ylim()


def test_arrows_stand_for_points_beyond_the_axis():
    frame = cells(NAMES[:3], "train_size", [100, 200, 300])
    low = (frame["method"] == "objective_perturbation") & (frame["train_size"] == 100)
    frame.loc[low, ["error_mean", "error_low", "error_high"]] = [-5.0, -6.0, -4.0]
    fig = learning_curve(EXPERIMENT, SPEC.but(options=OPTIONS | {"least": -0.2}), frame)
    (axes,) = fig.axes
    (arrow,) = (line for line in axes.lines if line.get_marker() == r"$\downarrow$")
    assert axes.get_ylim()[0] == -0.2 and arrow.get_xydata().tolist() == [[100, -0.2]]
    assert arrow.get_color() == style.LOOKS["objective_perturbation"][1]
    assert note(fig).endswith("arrows: beyond the axis")


def test_short_logarithmic_axes_have_ticks_at_1_2_and_5():
    _, axes = style.figure()
    for top, ticks in ((0.3, [0.05, 0.1, 0.2]), (5e3, [0.1, 1, 10, 100, 1000])):
        axes.set(yscale="log", ylim=(0.04, top))
        style.log_ticks(axes.yaxis)
        drawn = [float(tick) for tick in axes.get_yticks() if 0.04 <= tick <= top]
        assert drawn == pytest.approx(ticks)


@pytest.mark.parametrize(("apart", "says"), [(0.2, "A title: less"), (0.01, "A title")])
def test_a_title_says_the_finding_only_while_intervals_show_it(apart, says):
    lower, higher = "objective_perturbation", "output_perturbation"
    frame = cells([lower, higher], "train_size", [100, 200, 300])
    frame["error_mean"] = np.where(frame["method"] == lower, 0.3, 0.3 + apart)
    frame["error_low"], frame["error_high"] = frame["error_mean"] - 0.05, frame["error_mean"] + 0.05
    found = {"finding": "less", "lower": lower, "higher": higher}
    for options, title in ((found, says), (found | {"lower": higher, "higher": lower}, "A title")):
        (axes,) = learning_curve(EXPERIMENT, SPEC.but(options=OPTIONS | options), frame).axes
        assert axes.get_title(loc="left") == title


def test_a_printed_table_is_drawn_as_bars_beside_ours(monkeypatch):
    method = "output_perturbation"
    value = printed_values.Printed(0.33, 0.05, "p", "data", method, 100, None, "error_mean")
    monkeypatch.setattr("study.configuration.printed_values.values", lambda *_: [value])
    frame = cells([method, "nonprivate"], "epsilon", [0.1, 0.5, 1.0])
    spec = SPEC.but(options={"published": "t", "epsilons": [0.1, 1.0]})
    (axes,) = printed_bars(EXPERIMENT, spec, frame).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[-3:] == [
        "output perturbation: printed",
        "$\\varepsilon$ = 0.1",
        "$\\varepsilon$ = 1",
    ]
    ours = frame.set_index(["method", "epsilon"])["error_mean"]
    widths = [bar.get_width() for bar in axes.patches]
    expected = [ours["nonprivate", np.inf], 0.33, ours[method, 0.1], ours[method, 1.0]]
    assert widths == pytest.approx(expected)
    assert "0.33 ± 0.05" in {text.get_text().strip() for text in axes.texts}
