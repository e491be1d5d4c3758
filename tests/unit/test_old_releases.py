"""A book and models that an earlier version made (commit fbac0708) open again, and cost nothing again.

`tests/old_release` is a study of simulated rows, as that version left it, with its predictions for new
rows.
"""

import csv
import io
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from dp_release import card, files, making, models, rows, using
from dp_release.book import Book
from project import ROOT
from study import paths
from study.configuration import releases

OLD = ROOT / "tests/old_release"
NAMES = ("ill", "days")


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A copy of the study, as the working folder. Nothing can be drawn in it."""
    folder = tmp_path / "study"
    shutil.copytree(OLD, folder)
    book = (folder / "book").rename(folder / "clinic.book")
    (book / "key").write_bytes(bytes.fromhex((folder / "book.key.hex").read_text()))
    for path in (book, *book.rglob("*")):  # Git keeps no private modes
        path.chmod(0o700 if path.is_dir() else 0o600)

    def no_draw(*arguments):
        raise AssertionError("a finished release was drawn again")

    monkeypatch.setattr(models, "release", no_draw)
    monkeypatch.setattr(making.holdout, "release", no_draw)
    monkeypatch.setattr(Book, "begin", no_draw)
    monkeypatch.setattr(making, "guard", lambda: None)  # it would change this process
    monkeypatch.setattr(paths, "HOME", ROOT)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows_there", [True, False])
def test_the_request_is_the_same_and_its_model_is_returned(study, name, rows_there):
    if not rows_there:
        (study / "clinic.csv").unlink()
    asked = releases.load(name)
    lines = (study / "clinic.book/book.jsonl").read_text().splitlines()
    begun = [json.loads(line) for line in lines if '"begin"' in line]
    assert asked.request.digest() in [each["request"] for each in begun if each["name"] == name]
    stored = (study / "clinic.book" / name / "model.json").read_bytes()
    assert making.make(asked.request, asked.book, asked.path, asked.header) == stored
    assert (study / "clinic.book/book.jsonl").read_text().splitlines() == lines
    with asked.book.locked() as book:
        spent = book.spent()
    assert (float(spent.epsilon), float(spent.delta)) == (5, 2e-5)
    if rows_there:
        assert making.changes(asked.request, asked.book, asked.path)[1] == []


def test_the_command_copies_the_model(study):
    name = NAMES[0]
    before = (study / "clinic.book/book.jsonl").read_bytes()
    words = [sys.executable, ROOT / "scripts/tools/release.py", "make", name, "--out", "out"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"releases/{name}: this is the model of 2026-")
    written = (study / "out/model.json").read_bytes()
    assert written == (study / "clinic.book" / name / "model.json").read_bytes()
    assert (study / "clinic.book/book.jsonl").read_bytes() == before
    assert (study / "out/card.md").read_text().startswith("# ")


@pytest.mark.parametrize("name", NAMES)
def test_a_model_predicts_as_it_did(study, name):
    model = files.load(f"clinic.book/{name}/model.json")
    assert card.card(model.document) and (card.table_csv(model.document) or name == "days")
    actual = list(using.of_file(model, (study / "new.csv").read_bytes()))
    before = list(csv.reader(io.StringIO((OLD / f"{name}.predictions.csv").read_text())))
    # That version had two lines for the last record, in which a quoted cell has a line feed.
    assert [list(line) for line in actual[:4]] == before[:4]
    assert len(actual) == 5 and actual[4][0] and actual[3][0] == ""


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_read_as_they_were(study, name):
    """The schema in model.json, and the one of today's configuration, are one."""
    asked = releases.load(name)
    document = json.loads((study / "clinic.book" / name / "model.json").read_bytes())
    assert document["schema"] == asked.request.schema
    schema = rows.from_facts(document["schema"])
    lines = rows.split_lines((study / "clinic.csv").read_bytes(), asked.header, schema.format)
    V, y = schema.rows(lines, asked.request.rows)
    empty = np.array([k % 60 == 8 for k in range(900)]) & (name == "days")
    assert (V.any(axis=1) == ~empty).all()
    assert (y[~empty] != 0).all() or name == "days"
