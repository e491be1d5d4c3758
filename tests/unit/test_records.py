"""Which configuration may make which files of a folder."""

import pytest

from study import paths, records

A, B = "--configfile a.yaml", "--configfile b.yaml"


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """Three run files of an experiment, the first two made."""
    monkeypatch.chdir(tmp_path)
    found = [paths.RUN(experiment="e", dataset="d", method="m", size=n, epsilon=1) for n in "123"]
    for path in found[:2]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return found


def test_only_a_cell_that_is_there_and_another_configurations_is_refused(cells):
    first, second, third = cells
    records.keep("e", A, {first: "x", third: "x"})
    assert f"{first} among them would be replaced" in records.refusal("e", B, {first: "y"})
    assert not records.refusal("e", A, {first: "y"})  # an edit
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


def test_words_call_a_configuration_wherever_the_folder_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"seed": 3, "experiments": ["cm08"], "results": "a"}
    words = records.words([tmp_path / "config/real.yaml", "/other/full.yaml"], given)
    assert words == (
        "--configfile config/real.yaml /other/full.yaml "
        "--config seed=3 'experiments=[\"cm08\"]' results=a"
    )
    assert records.words([], {}) == ""
