import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from configured import configured, entry
from sources.einarsson_2018 import figures, tables
from sources.einarsson_2018.analyses import class_counts, explained_variance, first_components
from study.configuration.data_set_keys import DataSet, Rows
from study.data import readers
from study.data.preparation import prepare
from study.jobs.files import write_json

TITLE = entry(title="A title", options={"count": 5, "bins": 64, "components": [2, 9]})
EXPERIMENT = SimpleNamespace(name="study")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Bundled digits, prepared as bytes, and their two classes 4 and 9."""
    folder = tmp_path_factory.mktemp("data")
    ten = readers.read(DataSet(source=Rows(sklearn="digits")), "digits")
    two, _ = prepare(
        ten, [("binary", {"negative": 4, "positive": 9}), ("row_norm", {})], put_off=True
    )
    paths = {}
    for name, table in (("digits", ten), ("digits_4_9", two)):
        labels = dict(enumerate(table.classes)) or dict(zip((-1, 1), table.pair, strict=True))
        counts = {str(label): int((table.y == label).sum()) for label in labels}
        paths[name] = folder / f"{name}.npz"
        np.savez(paths[name], X=table.X, y=table.y, later=json.dumps(table.later._asdict()))
        meta = {"title": name, "class_counts": counts, "test_class_counts": {}}
        labels = {str(label): class_name for label, class_name in labels.items()}
        write_json(paths[name].with_suffix(".json"), meta | {"labels": labels})
    return paths, ten


def test_examples_are_each_class_first_image(digits):
    paths, ten = digits
    fig = figures.digit_images(EXPERIMENT, TITLE, {"digits": paths["digits"]})
    for digit, axes in enumerate(fig.axes):
        (shown,) = axes.images
        first = np.flatnonzero(ten.y == digit)[0]
        np.testing.assert_array_equal(shown.get_array(), ten.X[first].reshape(8, 8))
        assert axes.get_xlabel() == str(digit)


def test_farthest_images_come_in_order(digits):
    paths, ten = digits
    fig = figures.farthest_images(EXPERIMENT, TITLE, {"digits": paths["digits"]})
    shown = [axes for axes in fig.axes if axes.images]
    assert len(shown) == 50
    rows = ten.X[ten.y == 3].astype(float)
    distance = np.sort(np.linalg.norm(rows - rows.mean(axis=0), axis=1))[::-1]
    line = next(k for k, axes in enumerate(shown) if axes.get_ylabel() == "3")
    assert [axes.get_xlabel() for axes in shown[line : line + 5]] == [
        f"{d:.1f}" for d in distance[:5]
    ]


def test_pixel_density_integrates_to_one(digits):
    paths, ten = digits
    fig = figures.pixel_density(EXPERIMENT, TITLE, {"digits": paths["digits"]})
    (stairs,) = fig.axes[0].patches
    density, edges, _ = stairs.get_data()
    assert np.sum(density * np.diff(edges)) == pytest.approx(1)
    assert density[0] == pytest.approx(np.mean(ten.X == 0))
    assert f"{np.mean(ten.X == 0):.1%}" in fig.axes[0].get_legend_handles_labels()[1][0]


def test_violins_have_the_classes_quartiles(digits):
    paths, ten = digits
    fig = figures.distance_violins(EXPERIMENT, TITLE, {"digits": paths["digits"]})
    axes = fig.axes[0]
    rows = ten.X[ten.y == 7].astype(float)
    distances = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
    drawn = [line.get_ydata() for line in axes.lines if (np.abs(line.get_xdata() - 7) < 0.5).all()]
    _, box, median = drawn  # the first element is a whisker without width
    np.testing.assert_allclose(box, np.quantile(distances, [0.25, 0.75]))
    assert median == pytest.approx(np.median(distances))
    assert [text.get_text() for text in axes.get_xticklabels()] == list("0123456789")


def test_components_agree_with_scikit_learn(digits, tmp_path):
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    paths, ten = digits
    spec = TITLE.but(datasets=["digits_4_9"])
    first_components(EXPERIMENT, TITLE, paths, 0, tmp_path / "components.npz")
    fig = figures.component_scatter(EXPERIMENT, spec, tmp_path / "components.npz")
    chosen = np.isin(ten.y, [4, 9])
    X, y = StandardScaler().fit_transform(ten.X[chosen]), ten.y[chosen]
    reference = PCA(2).fit(X)
    scores = reference.transform(X)
    texts = {text.get_text(): text.xy for text in fig.axes[0].texts}
    for digit in (4, 9):
        centre = scores[y == digit].mean(axis=0)
        np.testing.assert_allclose(np.abs(texts[str(digit)]), np.abs(centre), rtol=1e-4, atol=1e-4)
    assert f"{reference.explained_variance_ratio_[0]:.1%}" in fig.axes[0].get_xlabel()

    explained_variance(EXPERIMENT, TITLE, paths, 0, tmp_path / "explained.csv")
    columns, rows = tables.explained_variance(EXPERIMENT, TITLE, tmp_path / "explained.csv")
    assert columns == ("dataset", "components", "explained")
    results = {row[:2]: row[2] for row in rows}
    assert set(results) == {(name, k) for name in paths for k in (2, 9)}
    two = reference.explained_variance_ratio_.sum()
    assert results["digits_4_9", 2] == pytest.approx(two, rel=1e-8)
    curve = figures.explained_variance(EXPERIMENT, TITLE, tmp_path / "explained.csv")
    assert curve.axes[0].lines[1].get_ydata()[1] == pytest.approx(two, rel=1e-8)


def test_class_counts(digits, tmp_path):
    paths, ten = digits
    class_counts(EXPERIMENT, TITLE, paths, 0, tmp_path / "counts.csv")
    columns, rows = tables.class_counts(EXPERIMENT, TITLE, tmp_path / "counts.csv")
    assert columns == ("dataset", "part", *"0123456789", "all")
    assert rows[0] == ("digits", "train", *np.bincount(ten.y), 1797)
    assert rows[1] == ("digits_4_9", "train", *[""] * 4, 181, *[""] * 4, 180, 361)


def test_boxes_are_quartiles_of_weights_and_noise(tmp_path):
    rng = np.random.default_rng(1)
    arrays = {"sizes": [50, 90], "epsilons": [0.1, 10.0]}
    arrays |= {"weights": rng.normal(size=(2, 30)), "noise": rng.normal(size=(2, 2, 30))}
    arrays["weights"][0, :7] = 0
    np.savez(tmp_path / "weights.npz", **arrays)
    fig = figures.weights_and_noise(EXPERIMENT, TITLE, tmp_path / "weights.npz")
    for k, (top, bottom) in enumerate(zip(fig.axes[:2], fig.axes[2:], strict=True)):
        values = [*arrays["noise"][k], arrays["weights"][k]]
        magnitudes = [np.abs(v[v != 0]) for v in values]
        # Quartiles between order statistics are interpolated on the axis' scale.
        for axes, shown, there, back in (
            (top, values, np.arcsinh, np.sinh),
            (bottom, magnitudes, np.log, np.exp),
        ):
            for patch, of in zip(axes.patches, shown, strict=True):
                edges = patch.get_path().vertices[:, 1]
                quartiles = back(np.quantile(there(of), [0.25, 0.75]))
                np.testing.assert_allclose([edges.min(), edges.max()], quartiles)
        assert top.get_title("left") == f"{arrays['sizes'][k]} training rows"
        assert [t.get_text() for t in bottom.get_xticklabels()] == ["0.1", "10", "weights"]


def test_discarded_features_are_bars_beside_the_printed_numbers():
    experiment = configured()[1]["einarsson_lasso"]
    spec = experiment.figures["figure_4_11"]
    rows = [
        {"method": method, "dataset": "mnist_4_9_pixels", "train_size": size, "discarded": count}
        for method, counts in {"pixels_distributed": (160, 172), "pca_distributed": (0, 2)}.items()
        for size in (20, 11791)
        for count in counts
    ]
    fig = figures.discarded_features(experiment, spec, pd.DataFrame(rows))
    (axes,) = fig.axes
    assert sorted(bar.get_height() for bar in axes.patches) == [1, 1, 166, 166]
    lines = {
        line.get_linestyle(): line.get_ydata()[0]
        for line in axes.lines
        if "printed" in line.get_label()
    }
    assert lines == {":": 0, "--": 166}  # each printed number has a line of its own style
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["20", "11,791"]
