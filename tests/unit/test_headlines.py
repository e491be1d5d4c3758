"""Tests the findings of the first screens: their numbers, sentences and pictures."""

import math
import re

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from plots import headlines as pictures
from project import ROOT
from reporting import headlines
from study import paths
from study.jobs.files import read_json, write_csv

DEVIATION = "error, standard deviation over folds"


def recommendation(dataset, size, epsilon, kept, **changes):
    row = {"dataset": dataset, "train_size": str(size), "epsilon": str(epsilon), "kept": str(kept)}
    row |= {"regime": "nothing tuned", "adjacency": "replace-one", "why": "", "title": "m"}
    return row | {"standing": "not beaten"} | changes


def test_the_best_method_that_competes_is_shown():
    rows = [
        recommendation("a", 400, 1, 0.2),
        recommendation("a", 400, 1, 0.4, title="best"),
        recommendation("a", 400, 1, 0.9, why="it is void"),
        recommendation("a", 400, 1, 0.9, adjacency="add-remove"),
        recommendation("a", 400, 1, 0.9, regime="selected and paid for"),
        recommendation("a", 900, 1, 0.3, standing="no gain"),
    ]
    cells = headlines.keeps(rows)
    assert [(c["size"], c["kept"], c["method"]) for c in cells] == [
        (400, 0.4, "best"),
        (900, 0.0, "m"),
    ]


@pytest.mark.parametrize(
    ("kept", "rows"),
    [
        ((0.5, 0.96, 0.97), 1000),
        ((0.96, 0.9, 0.97), 4000),
        ((0.5, 0.6, 0.7), None),
        ((1, 1, 1), 400),
    ],
)
def test_rows_needed_suffice_from_there_on(kept, rows):
    cells = [
        {"dataset": "a", "size": size, "epsilon": 1.0, "kept": value}
        for size, value in zip((400, 1000, 4000), kept, strict=True)
    ]
    assert headlines.rows_needed(cells, "a", 1.0) == rows


def test_results_are_counted_once_and_apart_from_other_numbers(tmp_path, monkeypatch):
    monkeypatch.setenv(paths.VARIABLE, str(tmp_path))
    key = "chaudhuri_monteleoni_2008"
    names = (
        "experiment",
        "section",
        "id",
        "dataset",
        "method",
        "train_size",
        "epsilon",
        "quantity",
    )
    columns = (*names, "where", "verdict")

    def row(section, name, verdict, quantity="error", where="w"):
        values = dict.fromkeys(columns, "") | {"section": section, "id": name, "verdict": verdict}
        return values | {"quantity": quantity, "where": where, "experiment": "e"}

    rows = [
        row("claims", "c-1", "reproduced"),
        row("claims", "c-2", "not reproduced by any of 3 readings"),
        row("claims", "c-3", "not tested"),
        row("defects", "d-1", "shown"),
        row("published", "t tables/t/1", "reproduced if rows: file", where="tables/t/1"),
        row("published", "u tables/t/1", "not run", where="tables/t/1"),
        row(
            "published",
            "t tables/t/1",
            "reproduced",
            "error, standard deviation over folds",
            "tables/t/1",
        ),
        row("published", "t tables/lambda", "reproduced", "setting", "tables/lambda"),
    ]
    write_csv(paths.BY_SOURCE(source=key), columns, (each.values() for each in rows))
    recorded = [row("claims", "c-3", "reproduced") | {"date": "2026-01-02"}]
    monkeypatch.setattr(headlines.record, "read", lambda table, name: recorded)
    ((name, results, others),) = headlines.holds([key])
    assert name == "Chaudhuri and Monteleoni 2008"
    assert results == {
        "as stated": [1, 1], "not reproduced": [1, 0], "under a reading": [1, 0]
    }  # fmt: skip
    assert others == {"as stated": [2, 0]}


NUMBERS = {
    "use": [
        {"task": "To learn two classes", "method": "the best", "mechanism": "m_1"}
        | {"text": "It loses 2 %."}
    ],
    "keeps": [],
    "rows_needed": [
        {"dataset": "randhie", "title": "the survey", "epsilon": 0.1, "rows": None},
        {"dataset": "randhie", "title": "the survey", "epsilon": 1.0, "rows": 16000},
        {"dataset": "randhie", "title": "the survey", "epsilon": 4.0, "rows": 4000},
        {"dataset": "fair", "title": "another", "epsilon": 4.0, "rows": 400},
    ],
    "holds": [
        {
            "source": "A",
            "results": {"as stated": {"run": 1, "recorded": 2}, "open": {"run": 4, "recorded": 0}},
        },
        {"source": "B", "results": {"not reproduced": {"run": 1, "recorded": 0}}},
    ],
    "leaks": {"forms": 50, "less_private": 12, "released": 7, "programs": 9},
}  # fmt: skip


def test_sentences_say_the_numbers():
    said = headlines.sentences(NUMBERS)
    assert said["use"] == "To learn two classes, use the best (`m_1`). It loses 2 %."
    one = NUMBERS["use"][0] | {"mechanism": "knorm_objective_perturbation"}
    said["use"] = headlines.sentences(NUMBERS | {"use": [one, one]})["use"]
    assert said["use"].count("that holds all rows: ball, box or hull. It loses") == 1
    assert "16,000 rows on at epsilon 1 and 4,000 rows on at epsilon 4" in said["keeps"]
    assert "no number of rows tried suffices at epsilon 0.1" in said["keeps"]
    assert (
        "of 8 results of 2 sources, 3 hold as stated, 1 do not hold and 4 are open" in said["holds"]
    )
    assert "12 of 50" in said["leaks"] and "Among them are 7 of 9" in said["leaks"]


def test_pictures_show_every_number():
    cells = [
        {"dataset": "a", "size": size, "epsilon": e, "kept": kept}
        for size, e, kept in ((400, 0.1, 0.0), (400, 1.0, 0.7), (4000, 1.0, 1.48))
    ]
    figure = pictures.keeps(cells, {"a": "A survey", "absent": "nothing"})
    (axes,) = (each for each in figure.axes if each.get_visible())
    assert {text.get_text() for text in axes.texts} == {"0", "70", "100", "not tried"}
    assert len(axes.lines) == 4  # the border of the one cell that keeps 95 %
    plt.close(figure)

    counts = {"as stated": (30, 20), "open": (50, 0)}
    figure = pictures.holds([("A", counts), ("B", {"not reproduced": (7, 0)})])
    (axes,) = figure.axes
    assert {text.get_text() for text in axes.texts} == {"30", "20", "50", "7"}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["B (7)", "A (100)"]
    plt.close(figure)

    forms = [
        {"name": f"f{k}", "released": k == 0, "proven": proven, "attacked": attacked}
        for k, (proven, attacked) in enumerate(((math.inf, 30.0), (4.0, None), (9.0, 2.0)))
    ]
    figure = pictures.leaks(forms)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["f1", "f2", "f0"]
    assert sorted(float(line.get_xdata()[0]) for line in axes.lines) == [2.0, 30.0]
    assert [text.get_text() for text in axes.texts] == ["no bound"]
    plt.close(figure)
    settings = "only with bound: 1.0, lam: 0.1"
    for name, short in (
        (f"a ({settings})", "a"),
        (f"a ({settings}, records: private)", "a (only with records: private)"),
        ("a", "a"),
    ):
        assert pictures._short({"name": name}) == short
    for empty in (pictures.keeps([], {}), pictures.holds([]), pictures.leaks([])):
        plt.close(empty)


SHOWN = ROOT / "workflow/report"


def marked():
    """(document, name, sentence as it stands) of every marked headline."""
    for path in headlines.documents():
        for match in headlines.MARKED.finditer(path.read_text(encoding="utf-8")):
            yield path, match[2], " ".join(match[0].split("-->")[1].split("<!--")[0].split())


def test_documents_have_the_sentences_that_the_committed_numbers_make():
    said = headlines.sentences(read_json(SHOWN / "headlines.json"))
    found = list(marked())
    for path, name, text in found:
        assert text == said[name], path
    everywhere = {name for path, name, _ in found if path.name == "README.md"}
    assert everywhere == said.keys()
    guides = {name for path, name, _ in found if path.parent.name == "guides"}
    assert guides == said.keys()


def test_the_readme_is_short_and_shows_the_three_pictures():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    assert re.findall(r"!\[.*\]\((.*)\)", text) == [
        f"workflow/report/{name}.png" for name in headlines.PICTURES
    ]
    for name in headlines.PICTURES:
        with Image.open(SHOWN / f"{name}.png") as picture:
            assert picture.width <= 900
    # A number of the sentences stands nowhere else: the next run changes it.
    rest = headlines.MARKED.sub("", text)
    assert not re.search(r"\d+ of (the )?\d+|\d+(\.\d+)? %", rest)


def test_a_later_runs_sentences_take_the_places_of_the_old_ones():
    text = "a\n<!-- headline: leaks -->\nold\nnumbers\n<!-- end -->\nb\n"
    new = headlines.in_document(text, {"leaks": "word " * 30})
    assert new.startswith("a\n<!-- headline: leaks -->\nword word") and new.endswith("-->\nb\n")
    assert "old" not in new and max(map(len, new.splitlines())) <= 120
    assert headlines.in_document(new, {"leaks": "word " * 30}) == new
