import csv
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from analyses.released_code import released_code
from configured import changed, entry
from dp.mechanisms import MECHANISMS
from plots import style
from plots.noise_needed import released_code as figure
from reporting.ledger import RELEASED
from tables.medians import medians
from tables.released_code import SHOWN
from tables.released_code import released_code as table


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    out = tmp_path_factory.mktemp("released") / "cases.csv"
    spec = changed("released_code")["released_code"].analyses["cases"]
    for program in spec.options["programs"].values():
        program["trials"] = 1500
        for attack in program["attacks"].values():
            attack.pop("trials", None)
    released_code(None, spec, {}, 1, out)
    with out.open(newline="", encoding="utf-8") as file:
        return out, list(csv.DictReader(file))


def test_released_programs_exceed_their_claims_and_repaired_ones_do_not(rows):
    _, actual = rows
    assert len(actual) == 29
    for row in actual:
        assert len(row["commit"]) == 40 and row["repository"] and row["repair"]
        assert float(row["epsilon_repaired"]) <= float(row["epsilon_claimed"])
        assert float(row["epsilon_audited"]) <= float(row["epsilon_proven"])
    # If n is public, as this project's mechanism assumes, two claims hold.
    held = [row for row in actual if "taken as public" in row["reason"]]
    assert [row["case"] for row in held] == ["opacus: n is public", "dp statsmodels ols: moments"]
    assert all(float(row["epsilon_proven"]) <= 1 for row in held)
    at_one = [row for row in actual if row["epsilon_claimed"] == "1" and row not in held]
    assert len(at_one) == 17 and all(float(row["epsilon_audited"]) > 1 for row in at_one)
    shipped = next(row for row in actual if row["case"] == "boosted adassp: as shipped")
    assert shipped["epsilon_proven"] == "inf" and "epsilon = 1112.11" in shipped["reason"]


def test_the_table_shows_the_rows(rows):
    path, actual = rows
    columns, shown = table(None, {}, path)
    assert columns == SHOWN and [row[0] for row in shown] == [row["case"] for row in actual]


def test_the_figure_has_columns_of_claims_and_of_what_is_found_in_repaired_forms(rows):
    path, actual = rows
    (axes,) = figure(None, entry(title="Released programs"), path).axes
    said = [text.get_text() for text in axes.texts]
    for row in actual:
        assert f"{float(row['epsilon_claimed']):.2g}" in said
    at = said.index("repaired,\naudited")
    found = [float(row["epsilon_repaired"]) for row in actual]
    assert said[at + 1 :] == [f"{e:.2g}" if e > 0 else "nothing found" for e in found]
    # No mark stands for nothing.
    low, _ = axes.get_xlim()
    marks = [x for marks in axes.collections[1:] for x, _ in marks.get_offsets()]
    assert min(marks) >= low > 0


def test_every_program_has_a_name_of_its_own():
    spec = changed("released_code")["released_code"].analyses["cases"]
    programs = spec.options["programs"].values()
    named = {program["mechanism"] for program in programs}
    assert named == style.PROGRAMS.keys() == {n for n in MECHANISMS if n.endswith(RELEASED)}
    assert len(set(style.PROGRAMS.values())) == len(named)
    assert style.name("amp_released") == "Iyengar et al. 2019: AMP"


def test_medians_count_refusals_apart():
    rng, rows = np.random.default_rng(1), []
    for fold in range(4):
        for restart in range(6):
            status = (
                "refused" if restart == 5 else "diverged" if (fold, restart) == (0, 0) else "ok"
            )
            rows.append((fold, restart, status, rng.normal() if status == "ok" else -1e9))
    draws = pd.DataFrame(rows, columns=["fold", "restart", "status", "r2"])
    draws = draws.assign(dataset="d", method="m", train_size=10, epsilon=1.0, replicate=draws.fold)
    columns, (row,) = medians(SimpleNamespace(), entry(options={"metric": "r2"}), draws)
    row = dict(zip(columns, row, strict=True))
    assert (row["draws"], row["refused"], row["failed"]) == (24, 4, 1)
    by_fold = [draws.r2[(draws.fold == k) & (draws.status == "ok")].median() for k in range(4)]
    assert row["r2_median"] == pytest.approx(np.mean(by_fold))
    half = t.ppf(0.975, 3) * np.std(by_fold, ddof=1) / 2
    assert row["r2_median"] - row["r2_median_low"] == pytest.approx(half)
    nothing = draws.assign(status="refused")
    _, (row,) = medians(SimpleNamespace(), entry(options={"metric": "r2"}), nothing)
    assert math.isnan(row[4]) and row[-2:] == (24, 0)
