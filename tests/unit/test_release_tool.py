"""The owner's commands: what they say of a finished release, of changed rows, and of a changed budget."""

import re

import pytest

DATASETS = """
clinic:
  source: {csv: clinic.csv}
  label: ill
  positive: "yes"
  bounds: {age: [18, 90]}
"""
RELEASE = """
data: clinic
rows: 600
unit: one row is one patient
book: clinic.book
budget: {epsilon: 9, delta: 2.0e-6}
epsilon: 8
delta: 1.0e-6
method: gaussian_objective_perturbation
premise: chosen without these rows
"""
ROWS = "age,ill\n" + "".join(f"{18 + k % 70},{'yes' if k % 7 else 'no'}\n" for k in range(600))
FINISHED = "this is the model of 20"  # and so on: the day


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config/releases").mkdir(parents=True)
    (tmp_path / "config/datasets.yaml").write_text(DATASETS)
    (tmp_path / "config/releases/clinic.yaml").write_text(RELEASE)
    (tmp_path / "clinic.csv").write_text(ROWS)
    return tmp_path


def test_a_release_from_its_first_refusal_to_a_correction(folder, release_tool):
    """The commands in the order of an owner who finds a mistake in the rows after the release."""
    out, model = ("--out", "releases/clinic"), folder / "releases/clinic/model.json"
    assert "only after a preview" in release_tool("make", "clinic", *out, fails=True)
    said = release_tool("preview", "clinic")
    assert "age: 600 cells are read." in said and "Spent are epsilon 0 of 9" in said
    assert FINISHED not in release_tool("make", "clinic", *out)
    first = model.read_bytes()
    card = (model.parent / "card.md").read_text()
    assert "looked at the rows 1 time (" in card and "settings changed" not in card

    assert "of these rows and this request" in release_tool("check", "clinic")
    (folder / "clinic.csv").write_text(ROWS.replace("20,yes", "21,yes"))
    said = release_tool("check", "clinic", fails=True)
    assert said.startswith("PRIVATE") and "Since then, the rows changed." in said
    (folder / "clinic.csv").unlink()
    model.unlink()
    said = release_tool("make", "clinic", *out)  # needs no rows
    assert FINISHED in said and "`release.py check clinic` compares rows" in said
    assert model.read_bytes() == first
    assert "clinic.csv: cannot be read" in release_tool("check", "clinic", fails=True)
    (folder / "clinic.csv").write_text(ROWS)

    release = folder / "config/releases/clinic.yaml"
    release.write_text(RELEASE.replace("epsilon: 8", "epsilon: 7"))
    said = release_tool("check", "clinic", fails=True)
    assert "Since then, the request changed." in said
    assert "another release named 'clinic'" in release_tool("make", "clinic", *out, fails=True)
    release.write_text(RELEASE)

    (folder / "config/releases/again.yaml").write_text(RELEASE)
    said = release_tool("make", "again", "--out", "releases/again", fails=True)
    assert "`release.py raise` changes the budget" in said
    words = ("raise", "again", "--epsilon", "20", "--delta", "4e-6", "--reason", "corrected rows")
    assert release_tool(*words) == (
        "The budget of clinic.book was (epsilon 9, delta 2e-06) and is (epsilon 20, delta 4e-06), of which "
        "(epsilon 8, delta 1e-06) is spent. State it in the files of all its releases: "
        "`budget: {epsilon: 20, delta: 4.0e-06}`\n"
    )
    again = RELEASE.replace("epsilon: 9, delta: 2.0e-6", "epsilon: 20, delta: 4.0e-06")
    (folder / "config/releases/again.yaml").write_text(again)
    said = release_tool("make", "again", "--out", "releases/again", fails=True)
    assert "only after a preview" in said  # a preview under another name is none
    release_tool("preview", "again")
    release_tool("make", "again", "--out", "releases/again")
    there = {str(path.relative_to(folder)) for path in (folder / "releases").rglob("*.*")}
    names = ("card.md", "coefficients.png", "model.json", "table.csv", "tradeoff.png")
    assert there == {f"releases/{name}/{file}" for name in ("again", "clinic") for file in names}


def test_a_preview_writes_no_book_beside_files_that_may_be_published(folder, release_tool):
    (folder / "releases/clinic").mkdir(parents=True)
    (folder / "link").symlink_to("releases")
    for place in ("releases/clinic/book", "link/book"):
        (folder / "config/releases/clinic.yaml").write_text(RELEASE.replace("clinic.book", place))
        assert "among files that may be published" in release_tool("preview", "clinic", fails=True)
        assert not (folder / place).exists()


def test_a_release_that_finds_bounds(folder, release_tool):
    """From the forecast, which asks what is expected, to the card."""
    file = folder / "config/datasets.yaml"
    file.write_text(DATASETS.replace("[18, 90]", "{find: {least: 0, most: 1.0e6}}"))
    out = ("--out", "releases/clinic")
    assert "--expect age=MEAN,DEVIATION" in release_tool("forecast", "clinic", fails=True)
    said = release_tool("forecast", "clinic", "--expect", "age=50,20", "--draws", "5")
    assert "Their bounds are found." in said
    assert "age: a bin of numbers stands out from about" in said
    assert "age: the release finds its bounds, with noise" in release_tool("preview", "clinic")
    release_tool("make", "clinic", *out)
    card = (folder / "releases/clinic/card.md").read_text()
    low, high = map(float, re.search(r"\| age \| (\S+) to (\S+) \| 0 to 1e\+06 \|", card).groups())
    # The key is secret. Noise adds an empty bin at each end, of twice the size, in 7 of 100 cases.
    assert 4 <= low < 32 and 64 < high <= 512
    assert "looked at the rows 1 time (" in card and "settings changed" not in card
    assert "clinic: epsilon 8, delta 1e-06, done" in release_tool("book", "clinic")
