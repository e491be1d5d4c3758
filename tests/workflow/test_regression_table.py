"""Makes a regression table with text columns, and tests messages printed before its jobs start."""

import csv
import re

import numpy as np
import pytest

from project import ROOT

ROWS = 20_000
SEXES, WARDS = ["female", "male"], ["general", "surgery", "intensive"]


@pytest.fixture(scope="module")
def project(fresh):
    """Copy with the data set and experiment of workflow/README.md, and a simulated clinic's rows.

    `.odds`: the true model.
    """
    text = (ROOT / "workflow/README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    (block,) = (each for each in blocks if "clinic_table" in each)
    project = fresh("regression")
    data, experiment = re.split(r"^# (?=config/experiments/)", block, flags=re.MULTILINE)
    path, experiment = experiment.split("\n", 1)
    project.append("config/datasets.yaml", "\n" + data)
    project.write(path, experiment)

    rng = np.random.default_rng(1)
    age, visits = rng.integers(18, 99, ROWS), np.minimum(rng.poisson(4, ROWS), 20)
    sex, ward = rng.choice(2, ROWS), rng.choice(3, ROWS, p=[0.5, 0.4, 0.1])
    project.odds = {"age": 0.02, "visits": 0.15, "sex=male": -0.3, "ward=intensive": 0.9}
    z = 0.02 * (age - 58) + 0.15 * (visits - 5) - 0.3 * sex + np.array([0.4, 0, 0.9])[ward]
    again = rng.random(ROWS) < 1 / (1 + np.exp(-z))
    lines = zip(age, visits, sex, ward, again, strict=True)
    lines = (f"{a},{v},{SEXES[s]},{WARDS[w]},{'yes' if r else 'no'}\n" for a, v, s, w, r in lines)
    project.write("clinic.csv", "age,visits,sex,ward,readmitted\n" + "".join(lines))
    return project


def test_it_has_a_coefficient_for_each_level_except_the_reference(project):
    project.snakemake("--", "clinic_table")
    with (project / "results/clinic_table/tables/odds.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    results = {(r["coefficient"], r["method"], r["epsilon"]): r for r in rows}
    names = [*project.odds, "ward=general", "constant"]
    ways = [("without_privacy", "inf"), ("noise_aware", "1"), ("noise_aware", "4")]
    assert set(results) == {(name, *way) for name in names for way in ways}
    for name, true in project.odds.items():
        for way in ways:
            row = results[name, *way]
            assert row["says"] == "", "there are rows enough"
            reach = float(row["high"]) - float(row["low"])
            assert abs(float(row["estimate"]) - true) < reach, "four standard errors"


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (
            "config/datasets.yaml",
            "radius: 2.2361",
            "radius: 2",
            "analyses.odds: clinic: coefficients have units only if numbers are scaled and no row is "
            "shortened, and `clip` to the radius 2 shortens rows. Write "
            "`steps: [{constant_feature: {}}, {clip: {radius: 2.2361}}]`",
        ),
        (
            "config/experiments/clinic_table.yaml",
            "ward: surgery",
            "ward: surgry",
            "'surgry' is no level of 'ward' (levels: general, surgery, intensive)",
        ),
    ],
)
def test_what_is_wrong_is_said_before_jobs_start(project, file, old, new, says):
    project.replace(file, old, new)
    try:
        output = project.snakemake("--dry-run", "--", "clinic_table", ok=False)
    finally:
        project.replace(file, new, old)
    assert says in output and "rule prepare" not in output
