"""Tests to which configuration a folder of results belongs."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from project import ROOT
from study import paths
from study.configuration.validation import read_yaml
from study.jobs import records

A, B, REAL = "--configfile a.yaml", "--configfile b.yaml", "--configfile config/real.yaml"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(paths.VARIABLE, raising=False)
    return tmp_path


def test_a_folder_belongs_to_the_first_configuration(folder):
    assert records.refusal(A) is None
    records.keep(A)
    records.keep(A)
    assert records.refusal(A) is None
    for other in ("", B, f"{A} --config seed=3", "--configfile b.yaml a.yaml"):
        said = records.refusal(other)
        assert said.startswith("results/ holds results of `--configfile a.yaml`, and ")
        assert records.called(other) in said and "--config results=NAME" in said


def older(made):
    """Cells as an earlier version made them. made: configuration -> data sets."""
    known = {}
    for configuration, datasets in made.items():
        for name in datasets:
            cell = paths.RUN(experiment="e", dataset=name, method="m", size=9, epsilon=1)
            Path(cell).parent.mkdir(parents=True, exist_ok=True)
            Path(cell).write_text(name)
            os.utime(cell, (1, 1))
            known.setdefault(configuration, {})[cell] = "digest"
    Path("results/e/logs").mkdir(parents=True)
    Path("results/e/logs/made.json").write_text(json.dumps(known))


def test_a_folder_of_an_earlier_version_is_kept_by_those_who_made_it(folder):
    older({A: ["digits"], B: ["digits"]})
    assert records.refusal(A) is None and records.refusal(B) is None
    assert records.refusal("").startswith("results/ holds results of `--configfile a.yaml`")
    assert records.left_behind("") is None and records.refusal("")
    records.keep(A)
    assert records.refusal(B)


@pytest.mark.parametrize("first", ["", REAL], ids=["default", "real"])
def test_real_cells_in_the_default_folder_are_named_once_with_a_command(folder, monkeypatch, first):
    older({"": ["digits"], REAL: ["digits", "mnist"]})
    assert records.left_behind(A) is None
    said = records.left_behind(first)
    assert said.startswith(
        f"results/ holds cells of `{REAL}` (1 of e), which now writes to results-real/"
    )
    assert records.left_behind("") is records.left_behind(REAL) is None
    records.keep("")
    before = {path: path.read_bytes() for path in Path("results").rglob("*") if path.is_file()}
    command = said.split("`")[3]
    subprocess.run(["bash", "-c", command], check=True)
    assert {
        path: path.read_bytes() for path in Path("results").rglob("*") if path.is_file()
    } == before
    moved = Path("results-real/e/runs/mnist/m/n=9/eps=1.csv")
    assert moved.read_text() == "mnist" and moved.stat().st_mtime == 1
    monkeypatch.setenv(paths.VARIABLE, "results-real")
    assert records.refusal(REAL) is None


def test_each_shipped_overlay_has_a_folder_of_its_own():
    files = {name: ROOT / f"config/{name}.yaml" for name in ("real", "full", "smoke")}
    folders = {name: read_yaml(file)["results"] for name, file in files.items()}
    assert folders == {name: f"results-{name}" for name in folders}


def test_a_configuration_is_called_by_the_same_words_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = {"seed": 3, "experiments": ["cm08"], "results": "a"}
    words = records.words([tmp_path / "config/real.yaml", "/other/full.yaml"], arguments)
    assert words == (
        "--configfile config/real.yaml /other/full.yaml "
        "--config seed=3 'experiments=[\"cm08\"]' results=a"
    )
    assert records.words([], {}) == ""
