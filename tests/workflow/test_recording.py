"""A record is written from finished results and read back.

An edit of the code makes it stale. Cells with the recorded bytes renew it.
"""

import csv
import hashlib
import json
import shutil

import pytest

from project import TINY

pytestmark = pytest.mark.slow
NAME = "chaudhuri_monteleoni_2008"
RUN, VERDICTS = (f"config/record/{NAME}/{file}" for file in ("run.json", "verdicts.csv"))
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
    """What has changed since the record."""
    program = (
        "import json, sys; sys.path.insert(0, 'scripts')\n"
        "from reporting import stale\n"
        "print(json.dumps(stale.changed()))"
    )
    return json.loads(project.python("-c", program).splitlines()[-1]).get(NAME, [])


def run(project):
    return json.loads((project / RUN).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def recorded(finished, tmp_path_factory):
    """Read-only copy with the tiny experiment's recorded verdicts."""
    project = finished.duplicate(tmp_path_factory.mktemp("recorded") / "project")
    for path in (project / "config/record").glob("*/"):
        shutil.rmtree(path)
    project.write("judged.yaml", JUDGED)
    project.write(
        "config/record/README.md",
        "before\n<!-- recorded, by scripts/tools/record.py -->\n<!-- end -->\nafter\n",
    )
    assert "are still to run" in project.python(*RECORD, ok=False)
    assert not (project / RUN).exists()
    (project / "results/logs/made.json").unlink()  # another configuration takes the folder
    project.snakemake(*OVERLAYS)
    project.python(*RECORD)
    return project


def test_a_record_has_the_tables_of_the_results_and_their_origin(recorded):
    table = rows(recorded, f"results/verdicts/{NAME}.csv")
    decided = [line for line in table if line["experiment"] == "cm08"]
    assert rows(recorded, VERDICTS) == decided and len(decided) > 2
    assert all(line["because"] for line in decided if line["verdict"] != "calibrated")
    made = run(recorded)
    assert made["configfile"] == "tests/tiny.yaml judged.yaml" and made["experiments"] == ["cm08"]
    assert 0 < made["processor_hours"] < 1 and all(made["digests"].values())
    for path, digest in made["sample"].items():
        content = (recorded / "results" / path).read_bytes()
        assert hashlib.sha256(content).hexdigest()[:12] == digest
    assert {path.split("/")[3] for path in made["sample"]} == {
        "nonprivate", "output_perturbation", "objective_perturbation"
    }  # fmt: skip
    assert (
        "before\n<!--" in (text := (recorded / "config/record/README.md").read_text())
        and "after" in text
    )
    assert f"- `{NAME}`" in text


def test_it_is_written_again_with_the_same_bytes_and_is_not_stale(recorded):
    before = [(recorded / path).read_bytes() for path in (RUN, VERDICTS)]
    recorded.python(*RECORD)
    assert [(recorded / path).read_bytes() for path in (RUN, VERDICTS)] == before
    assert stale(recorded) == []


def test_a_record_is_not_replaced_by_less(recorded, tmp_path):
    project = recorded.duplicate(tmp_path / "project")
    other = run(project) | {"experiments": ["cm08", "cm08_regularisation"]}
    project.write(RUN, json.dumps(other))
    output = project.python(*RECORD, ok=False)
    assert f"error: the record {NAME} has cm08_regularisation too: name all of them" in output
    assert run(project) == other


def test_an_edit_makes_a_record_stale_and_equal_bytes_renew_it(recorded, tmp_path):
    project = recorded.duplicate(tmp_path / "project")
    project.append(MECHANISM, "\n\nUNUSED = 1\n")
    assert stale(project) == ["code"]
    assert "are still to run" in project.python(*RECORD, ok=False)
    assert f"{NAME}: 3 of 3 files have the recorded bytes" in project.python(*CONFIRM)
    assert stale(project) == []


def test_other_bytes_and_other_verdicts_renew_nothing(recorded, tmp_path):
    project = recorded.duplicate(tmp_path / "project")
    project.replace("scripts/dp/noise.py", "direction *= (scale", "direction *= (2 * scale")
    before = (project / RUN).read_bytes()
    assert f"{NAME}: 1 of 3 files have the recorded bytes" in project.python(*CONFIRM)
    assert (project / RUN).read_bytes() == before and stale(project) == ["code"]
    project.append("scripts/checks/verdicts.py", "\n\nUNUSED = 1\n")
    output = project.python(*CONFIRM)
    assert f"{NAME}: a new run is needed, since the code of its cells has changed and" in output
    assert (project / RUN).read_bytes() == before


def test_a_page_shows_no_verdict_that_does_not_follow_from_its_cells(recorded, tmp_path):
    def open_verdicts():
        page = (project / "results/report.html").read_text(encoding="utf-8")
        return page.count("not decided yet</span>")

    project = recorded.duplicate(tmp_path / "project")
    assert open_verdicts() == 0
    project.append(MECHANISM, "\n\nUNUSED = 1\n")
    cell = "results/cm08/runs/cm08_separable/output_perturbation/n=100/eps=1.csv"
    project.snakemake(*OVERLAYS, "--", cell)
    assert open_verdicts() > 0
    project.snakemake(*OVERLAYS, "--", "cm08")
    assert open_verdicts() == 0
