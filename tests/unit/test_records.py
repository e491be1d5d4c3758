"""Tests which files in a results folder a configuration may write or replace."""

import pytest

from configured import configured
from study import paths
from study.jobs import records

A, B = "--configfile a.yaml", "--configfile b.yaml"


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """Three run files of an experiment; the first two exist."""
    monkeypatch.chdir(tmp_path)
    files = [paths.RUN(experiment="e", dataset="d", method="m", size=n, epsilon=1) for n in "123"]
    for path in files[:2]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return files


def test_only_existing_cells_of_another_configuration_are_refused(cells):
    first, second, third = cells
    records.keep("e", A, {first: "x", third: "x"})
    assert f"{first} among them would be replaced" in records.refusal("e", B, {first: "y"})
    assert not records.refusal("e", A, {first: "y"})  # the same configuration, edited
    assert not records.refusal("e", B, {first: "x", second: "y", third: "y"})
    assert not records.refusal("f", B, {first: "y"})


def test_an_edit_of_what_two_configurations_share_concerns_both(cells):
    first, second, _ = cells
    records.keep("e", A, {first: "x", second: "x"})
    records.keep("e", B, {first: "x"})
    assert not records.refusal("e", A, {first: "y", second: "y"})
    records.keep("e", A, {first: "y", second: "y"})
    assert not records.refusal("e", B, {first: "y"})
    assert records.refusal("e", B, {first: "y", second: "x"})


def shipped(*overlays):
    """Run file of a shipped configuration -> its cell's digest of settings."""
    config, experiments, _ = configured(*overlays)
    digests = {}
    for name in config["experiments"]:
        digests |= records.of_experiment(experiments[name], config["seed"])
    return digests


def test_what_configurations_may_share_a_folder():
    plain = shipped()
    for overlays, shares in ((["real"], True), (["smoke"], False), (["real", "full"], True)):
        other = shipped(*overlays)
        common = plain.keys() & other.keys()
        assert len(common) > 100
        assert all(plain[path] == other[path] for path in common) == shares, overlays
    # full.yaml enlarges some cells of real.yaml, so its results go to another folder.
    real, full = shipped("real"), shipped("real", "full")
    assert any(real[path] != full[path] for path in real.keys() & full.keys())


def test_a_configuration_is_called_by_the_same_words_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = {"seed": 3, "experiments": ["cm08"], "results": "a"}
    words = records.words([tmp_path / "config/real.yaml", "/other/full.yaml"], arguments)
    assert words == (
        "--configfile config/real.yaml /other/full.yaml "
        "--config seed=3 'experiments=[\"cm08\"]' results=a"
    )
    assert records.words([], {}) == ""
