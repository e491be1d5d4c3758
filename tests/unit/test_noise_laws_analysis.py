"""The analysis of noise by law against printed ratios, and a data set's mark against the curve."""

import csv
import json
import math

import pytest

from analyses import noise_laws
from configured import entry
from dp_privacy.accounting import gaussian_sigma


def measured(tmp_path, monkeypatch, **metas):
    for name, meta in metas.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(meta))
    monkeypatch.setattr(noise_laws, "data_path", lambda name, kind: tmp_path / f"{name}.{kind}")
    options = {"epsilons": [0.5], "delta": 1e-6, "levels": 5, "rows": 4000}
    out = tmp_path / "laws.csv"
    noise_laws.noise_laws(None, entry(options=options), dict.fromkeys(metas, ""), 0, out)
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    curves = {(r["law"], int(r["columns"])): float(r["ratio"]) for r in rows if not r["dataset"]}
    return curves, {r["dataset"]: (r["law"], float(r["ratio"])) for r in rows if r["dataset"]}


def test_ratios_are_those_of_the_laws(tmp_path, monkeypatch):
    """The l2 ratios are from 40 digits and the closed form of the radius, the box's from its variance."""
    curves, _ = measured(tmp_path, monkeypatch)
    for d, l2, box in ((5, 0.597, 0.42), (10, 0.742, 0.52), (20, 0.853, 0.69)):
        assert curves["l2", d] == pytest.approx(l2, abs=6e-4)
        assert curves["box", d] == pytest.approx(box, abs=6e-3)
    # The levels of one block of norm 1 have the variance 2 s^2 of a cross-polytope, s = 2/epsilon.
    sigma = 2 * gaussian_sigma(0.5, 1e-6)
    assert curves["hull", 5] == pytest.approx(4 * math.sqrt(2) / sigma, rel=1e-6)


def test_a_data_set_of_numbers_is_on_the_curve_of_its_law(tmp_path, monkeypatch):
    columns = [f"c{k}" for k in range(10)]
    common = {"columns": columns}
    bounded = common | {"bound": 10**0.5, "column_bounds": [1.0] * 10}
    one_hot = bounded | {"bound": 6**0.5, "blocks": [[5, 6, 7, 8, 9]]}
    # A plan also leaves the output noise its share, below 0.3 %.
    curves, marks = measured(
        tmp_path, monkeypatch, ball=common | {"bound": 1.0}, box=bounded, hull=one_hot
    )
    assert marks["ball"][0] == "l2" and marks["box"][0] == "box" and marks["hull"][0] == "hull"
    assert marks["ball"][1] == pytest.approx(curves["l2", 10], rel=3e-3)
    assert marks["box"][1] == pytest.approx(curves["box", 10], rel=3e-3)
    assert marks["hull"][1] < marks["box"][1]
