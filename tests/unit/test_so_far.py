"""While a run goes on, a page shows what it has made, until the report takes its place."""

from pathlib import Path

import pytest

from checks import verdicts
from configured import entry
from project import ROOT
from reporting import so_far
from study import paths
from study.configuration.audits import Attack
from study.configuration.experiment import Experiment
from study.jobs.files import write_csv

ATTACKS = [Attack("adassp", "flipped_label", epsilon) for epsilon in (1, 2)]
COLUMNS = (
    *("mechanism", "attack", "epsilon", "epsilon_claimed", "epsilon_proven", "epsilon_audited"),
    *("verdict", "replay", "adjacency", "reason", "pair_reason"),
)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A `SoFar` whose run has still to make the files in `.left`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(paths.VARIABLE, raising=False)
    monkeypatch.setattr(so_far, "EVERY", 0.01)
    monkeypatch.setattr(so_far, "TEMPLATES", ROOT / "workflow/report")
    values = {"sweeps": {}, "datasets": [], "methods": {}, "published": {}, "defects": {}}
    values["claims"] = {"y": {"not_tested": "because"}}
    values["figures"] = {"first": entry(title="The first")}
    made = so_far.SoFar([Experiment("mine", values)], ATTACKS, lambda: set(made.left))
    made.left = {attack.path for attack in ATTACKS}
    made.text = lambda: made.page.read_text(encoding="utf-8")
    return made


def attacked(attack, verdict):
    row = dict.fromkeys(COLUMNS, "holds") | {"mechanism": "adassp", "attack": "flipped_label"}
    row |= {key: attack.epsilon for key in COLUMNS if key.startswith("epsilon")}
    write_csv(attack.path, COLUMNS, [[(row | {"verdict": verdict})[key] for key in COLUMNS]])


def test_the_page_has_only_files_that_the_run_has_made(page):
    figure = paths.FIGURE(experiment="mine", name="first")
    judged = paths.VERDICTS(experiment="mine", section="claims")
    for path in (figure, judged):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(figure).write_bytes(b"old")
    write_csv(judged, ("id", "verdict"), [["y", verdicts.UNDECIDED]])
    for attack in ATTACKS:
        attacked(attack, "consistent with the claim")
    page.left |= {figure, judged}
    page._began = 0.0
    page.write()
    assert "mine/figures" not in page.text() and "AdaSSP" not in page.text()
    assert "undecided" not in page.text()

    attacked(ATTACKS[1], "refutes the claim")
    page.left -= {figure, judged, ATTACKS[1].path}
    page.write()
    assert 'src="mine/figures/first.png"' in page.text()
    assert "1 undecided" in page.text()
    assert "1 of 1 mechanisms" in page.text() and "refutes the claim" in page.text()
    assert "consistent with the claim" not in page.text()


def test_the_page_is_left_by_a_run_that_ends_early_and_removed_with_a_report(page):
    page.page.parent.mkdir(parents=True)
    page.page.write_text("of an earlier run")
    old = Path(paths.REPORT())
    old.write_text("of an earlier run")
    page.begin()
    page._began = old.stat().st_mtime + 1
    page.end()
    assert "earlier" not in page.text() and "0 of 1 mechanisms" not in page.text()
    page._began = old.stat().st_mtime
    page.write()
    assert not page.page.exists() and old.exists()


def test_a_page_that_cannot_be_written_stops_nothing(page):
    page.page = Path("results", "a-folder")
    page.page.mkdir(parents=True)
    page._began = 0.0
    page.write()
    assert page._shown is None
