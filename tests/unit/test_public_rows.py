import numpy as np
import pytest

from dp import rows
from dp.evaluation import error_rate
from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from study.configuration.data_set_keys import DataSet
from study.data.origins import has_public_rows, prepared_rows, resolve
from study.data.preparation import Table, prepare


def test_mixture():
    means, deviations = [[0.0, 0.0], [5.0, 1.0], [-5.0, 2.0]], [[0.1, 1.0]] * 3
    X, y = rows.simulate_mixture(3001, means, deviations, generator(1))
    assert sorted(np.bincount(y)) == [1000, 1000, 1001]
    for label in range(3):
        points = X[y == label]
        np.testing.assert_allclose(points.mean(axis=0), means[label], atol=0.15)
        np.testing.assert_allclose(points.std(axis=0), [0.1, 1.0], rtol=0.1)
    with pytest.raises(ValueError, match="deviations"):
        rows.simulate_mixture(10, means, [[0.1, 0.0]] * 3, generator(1))


def entry(**changes):
    source = {
        "simulate": "mixture",
        "rows": 100,
        "components": [{"class": k, "mean": [k, 0.0], "deviation": [1.0, 1.0]} for k in range(3)],
    }
    return DataSet.model_validate({"source": source | changes, "steps": []})


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"public_shift": [1.0]}, "public_shift"),
        ({"components": [{"class": 0, "mean": [1.0], "deviation": [1.0, 2.0]}] * 2}, "deviation"),
        ({"simulate": "separable", "columns": 2, "margin": 0.1}, "mixture"),
    ],
)
def test_bad_mixtures(changes, what):
    with pytest.raises(ValueError, match=what):
        resolve("name", entry(**changes), {})


def test_public_rows_are_not_private_ones():
    assert prepared_rows(entry()) == 100
    assert prepared_rows(entry().but(public_share=0.3)) == 70
    assert has_public_rows(entry(public_rows=5)) and not has_public_rows(entry())


@pytest.mark.parametrize("share", [None, 0.4])
def test_prepared_parts(share, tmp_path, monkeypatch):
    import json
    import sys

    from jobs import prepare as script
    from study.data.prepared import Prepared

    changes = {} if share else {"public_rows": 30, "public_shift": [100.0, 0.0]}
    configuration = entry(**changes).plain() | {"steps": [{"clip": {"radius": 1000}}]}
    configuration |= {"public_share": share} if share else {}
    npz, meta = tmp_path / "d.npz", tmp_path / "d.json"
    arguments = ["--dataset", "d", "--entry", json.dumps(configuration), "--seed", "1"]
    arguments += ["--out-npz", str(npz), "--out-json", str(meta)]
    monkeypatch.setattr(sys, "argv", ["prepare", *arguments])
    script.main()
    actual, facts = Prepared(npz), json.loads(meta.read_text())
    X_public, _ = actual.floats(part="public")
    assert len(X_public) == facts["public_rows"] == (40 if share else 30)
    assert len(actual.y) == facts["rows"] == (60 if share else 100)
    together = np.concatenate([actual.X, X_public])
    assert len(np.unique(together, axis=0)) == len(together)
    if not share:
        assert X_public[:, 0].min() > 0.09 > actual.X[:, 0].max()
    assert MECHANISMS["dp_gd"].of_data(facts) == {"classes": 3}


def test_coordinate_bounds_follow_the_steps():
    X = np.array([[0.0, 10.0], [5.0, 20.0], [9.0, 12.0]])
    table = Table(X, np.array([1, -1, 1]), ("a", "b"))
    bounds = ("scale_to_bounds", {"a": [0, 10], "b": [10, 20]})
    scaled, _ = prepare(table, [bounds])
    assert (scaled.bound, scaled.coordinate_bound) == (pytest.approx(2**0.5), 1.0)
    constant, _ = prepare(table, [bounds, ("constant_feature", {})])
    assert (constant.bound, constant.coordinate_bound) == (pytest.approx(3**0.5), 1.0)
    normal, _ = prepare(table, [bounds, ("row_norm", {})])
    assert (normal.bound, normal.coordinate_bound) == (1.0, np.inf)
    assert MECHANISMS["functional_laplace"].of_data({"coordinate_bound": 1.0}) == {
        "coordinate_bound": 1.0
    }
    assert MECHANISMS["output_perturbation"].of_data({"coordinate_bound": 1.0}) == {}
    with pytest.raises(ValueError, match="public bound"):
        rows.check_coordinates(X, 9.0)


def test_error_rate_of_classes():
    weights = generator(2).standard_normal((4, 3, 5))
    X, y = generator(3).standard_normal((50, 3)), generator(4).integers(5, size=50)
    expected = [
        np.mean([(x @ W).argmax() != t for x, t in zip(X, y, strict=True)]) for W in weights
    ]
    np.testing.assert_allclose(error_rate(weights, X, y), expected)
