"""The record is written from finished results and read back.

An edit of the code makes lines stale. Cells with the recorded bytes renew them.
"""

import csv
import hashlib

import pytest

from project import TINY

pytestmark = pytest.mark.slow
FILE = "config/record/chaudhuri_monteleoni_2008.csv"
OVERLAYS = (*TINY, "judged.yaml")
RECORD = ("scripts/tools/record.py", "cm08", *OVERLAYS)
CONFIRM = ("scripts/tools/record.py", "--confirm", "--cores", "1")
MECHANISM = "scripts/dp/mechanisms/output_perturbation.py"
JUDGED = """\
settings:
  cm08:
    published:
      figure_1:
        title: "Figure 1"
        values: tables/figure_1
        layout: mean_sd
        train_size: 100
        epsilon: 1
        rows: [{value: sensitivity_method/separable, dataset: cm08_separable, method: output_perturbation}]
    claims:
      cm08-1:
        checks:
          - kind: lower_than
            options: {lower: nonprivate, higher: objective_perturbation, sweep: epsilon, epsilon: 1}
"""


def rows(project, path):
    with (project / path).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def stale(project):
    """Each stale line's section, method and reason."""
    program = (
        "import sys; sys.path.insert(0, 'scripts')\n"
        "from reporting import record, stale\n"
        "old = set(stale.digests())\n"
        "for row in record.read():\n"
        "    why = record.why_stale(row, old)\n"
        "    if why: print(row['section'], row['method'], why, sep='|')"
    )
    lines = project.python("-c", program).splitlines()
    return {tuple(line.split("|")[:2]): line.split("|")[2] for line in lines}


@pytest.fixture(scope="module")
def recorded(finished, tmp_path_factory):
    """Read-only copy with the tiny experiment's recorded verdicts."""
    project = finished.duplicate(tmp_path_factory.mktemp("recorded") / "project")
    for path in (project / "config/record").glob("*.csv"):
        path.unlink()
    project.write("judged.yaml", JUDGED)
    project.write(
        "README.md", "before\n<!-- recorded, by scripts/tools/record.py -->\n<!-- end -->\nafter\n"
    )
    assert "are still to run" in project.python(*RECORD, ok=False)
    assert not (project / FILE).exists()
    (project / "results/logs/made.json").unlink()  # another configuration takes the folder
    project.snakemake(*OVERLAYS)
    project.python(*RECORD)
    return project


def test_every_line_is_that_of_the_results(recorded):
    by = {}
    for line in rows(recorded, FILE):
        assert line["configfile"] == "tests/tiny.yaml judged.yaml"
        by.setdefault(line["section"], []).append(line)
    assert set(by) == {"published", "claims", "cells", "run"}
    same = ("dataset", "method", "train_size", "epsilon", "quantity", "ours", "verdict")
    for line, own in zip(
        by["published"], rows(recorded, "results/cm08/published.csv"), strict=True
    ):
        assert [line[key] for key in same] == [own[key] for key in same]
        ends = ("prediction_low", "prediction_high", "published")
        assert [line[key] for key in ("low", "high", "stated")] == [own[key] for key in ends]
    assert [line["stated"] for line in by["published"]][:2] == ["0.2962", "0.0617"]
    for line, own in zip(by["claims"], rows(recorded, "results/cm08/claims.csv"), strict=True):
        named = ("id", "number", "threshold", "verdict")
        assert [line[key] for key in ("id", "ours", "stated", "verdict")] == [own[k] for k in named]
    for line in by["cells"]:
        path = "{id}/runs/{dataset}/{method}/n={train_size}/eps={epsilon}.csv".format(**line)
        content = (recorded / "results" / path).read_bytes()
        assert hashlib.sha256(content).hexdigest().startswith(line["bytes"]) and line["bytes"]
    assert {line["method"] for line in by["cells"]} == {
        "nonprivate", "output_perturbation", "objective_perturbation"
    }  # fmt: skip
    assert "before\n<!--" in (text := (recorded / "README.md").read_text()) and "after" in text
    assert "- `chaudhuri_monteleoni_2008`" in text


def test_it_is_written_again_with_the_same_bytes_and_nothing_is_stale(recorded):
    before = (recorded / FILE).read_bytes()
    recorded.python(*RECORD)
    assert (recorded / FILE).read_bytes() == before
    assert stale(recorded) == {}


def test_an_edit_makes_lines_stale_and_equal_bytes_renew_them(recorded, tmp_path):
    project = recorded.duplicate(tmp_path / "project")
    project.append(MECHANISM, "\n\nUNUSED = 1\n")
    actual = stale(project)
    assert set(actual.values()) == {"the code of its cells has changed"}
    of_one_method = {line for line in actual if line[1]}
    assert of_one_method == {(s, "output_perturbation") for s in ("published", "cells")}
    assert "are still to run" in project.python(*RECORD, ok=False)
    output = project.python(*CONFIRM)
    assert "cm08: 3 of 3 cells have the recorded bytes" in output
    assert "lines renewed" in output
    assert stale(project) == {}


def test_other_bytes_renew_nothing(recorded, tmp_path):
    project = recorded.duplicate(tmp_path / "project")
    project.replace("scripts/dp/noise.py", "direction *= (scale", "direction *= (2 * scale")
    before = (project / FILE).read_bytes()
    output = project.python(*CONFIRM)
    assert "cm08: 1 of 3 cells have the recorded bytes" in output and "renewed" not in output
    assert (project / FILE).read_bytes() == before
    assert ("cells", "output_perturbation") in stale(project)
