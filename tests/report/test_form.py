"""Tests the form's answers to twelve questions from recommendations.csv, and the page's accessibility."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from chromium import Chromium

from conftest import answer
from reporting import answers, recommendations
from reporting.collect import Gathered
from reporting.page import render
from study import paths
from study.configuration.experiment import data_path
from study.jobs.files import write_csv, write_json

# Within a task, the numbers of columns differ so much that only the nearest data set counts.
COLUMNS = {"small": 5, "middle": 100, "wide": 2000, "income": 8, "bills": 400}
# (task, data set, rows, epsilon, adjacency) -> {unbeaten method: share kept of the non-private gain}
RECORDED = {
    ("classes", "small", 500, "0.1", "replace-one"): {"output": 0.31},
    ("classes", "small", 500, "4", "replace-one"): {"newton": 0.93, "objective": 0.92},
    ("classes", "small", 20000, "0.1", "replace-one"): {"objective": 0.88},
    ("classes", "small", 20000, "4", "replace-one"): {"newton": 0.99, "objective": 0.98, "amp": 0.97},
    ("classes", "middle", 1000, "1", "replace-one"): {"objective": 0.55},
    ("classes", "middle", 30000, "1", "replace-one"): {"amp": 0.83, "objective": 0.8},
    ("classes", "wide", 60000, "1", "replace-one"): {"descent": 0.41},
    ("classes", "wide", 60000, "8", "replace-one"): {"descent": 0.77, "amp": 0.76},
    ("classes", "middle", 1000, "1", "add-remove"): {"amp": 0.6},
    ("numbers", "income", 2000, "1", "replace-one"): {"adassp": 0.7, "descent": 0.66},
    ("numbers", "income", 50000, "0.5", "replace-one"): {"boosted": 0.9},
    ("numbers", "bills", 5000, "2", "replace-one"): {"descent": 0.2},
}  # fmt: skip
SIZE = 390
TILT = "gaussian_objective_perturbation"


def write_recommendations(recorded):
    rows = []
    for (task, dataset, size, epsilon, adjacency), best in recorded.items():
        at = {"task": task, "dataset": dataset, "train_size": size, "epsilon": epsilon}
        at |= {"adjacency": adjacency}
        rows += [answer(method, share, **at) for method, share in best.items()]
        # beaten, void and selected methods are never an answer
        rows.append(answer("behind", 0.1, **at, standing="beaten"))
        rows.append(answer("unpaid", 0.99, **at, standing="void", why="it was not paid for"))
        rows.append(answer("selected", 0.98, **at, regime="selected and paid for"))
    write_csv(paths.RECOMMENDATIONS(), list(rows[0]), [row.values() for row in rows])
    write_csv(paths.ACROSS(), recommendations.ACROSS, [])
    for name, count in COLUMNS.items():
        facts = {"rows": 1, "columns": [f"x{k}" for k in range(count)], "title": f"Data {name}"}
        write_json(data_path(name, "json"), facts)


@pytest.fixture
def opened(project, browser, tmp_path):
    """Phone-sized browser that shows the page made from RECORDED."""
    write_recommendations(RECORDED)
    file = tmp_path / "report.html"
    text = render([], seed=1, shows={"configuration": "", "experiments": {}})
    file.write_text(text, encoding="utf-8")
    with Chromium(browser, tmp_path / "profile", width=SIZE, height=800) as page:
        page.call("Emulation.setDeviceMetricsOverride", width=SIZE, height=800, deviceScaleFactor=1,
                  mobile=True)  # fmt: skip
        page.open(file.as_uri())
        yield page


def ask(page, **fields):
    """Fill in the form, and return its answer: methods, rows of recorded questions, and text."""
    return page.evaluate(f"""(asked => {{
        const form = document.getElementById("choose");
        for (const [key, value] of Object.entries(asked)) form.elements[key].value = value;
        form.dispatchEvent(new Event("input"));
        const output = document.getElementById("choice");
        const texts = (selector) => [...output.querySelectorAll(selector)].map(e => e.textContent);
        return {{methods: texts("ol li"), rows: texts("tbody tr"), lines: texts("pre").join(""),
                 text: output.textContent}};
    }})({json.dumps(fields)})""")


def test_the_form_knows_what_was_recorded(opened):
    for (task, dataset, size, epsilon, adjacency), best in RECORDED.items():
        arguments = {"task": task, "rows": size, "columns": COLUMNS[dataset], "epsilon": epsilon}
        answer = ask(opened, **arguments, adjacency=adjacency)
        assert [line.partition(" keeps")[0] for line in answer["methods"]] == [
            f"The {method}" for method in best
        ]
        for line, share in zip(answer["methods"], best.values(), strict=True):
            ends = [f"{100 * (share + by):.0f}" for by in (-0.02, 0.02)]
            assert f"about {100 * share:.0f}\u00a0% of" in line
            assert f"(95\u00a0% interval {ends[0]}\u00a0% to {ends[1]}\u00a0%)" in line
            assert line.endswith("not beaten in 1 of 1 comparisons near yours: 1 of 1 votes")
        assert answer["rows"][0].startswith(f"Data {dataset}{size:,}{COLUMNS[dataset]}{epsilon}")
        assert "Far from" not in answer["text"] and "unpaid" not in answer["text"]
        assert f"rows: {size}\n" in answer["lines"] and f"epsilon: {epsilon}\n" in answer["lines"]
    assert opened.evaluate("document.documentElement.scrollWidth") <= SIZE


def test_between_recorded_questions_the_nearer_has_more_to_say(opened):
    # At 750 rows, the data set of 1,000 rows votes with weight 0.75. The data set of 500 rows
    # does not vote: it has 5 columns, 20 times fewer than asked.
    answer = ask(opened, task="classes", rows=750, columns=100, epsilon=1, adjacency="replace-one")
    assert [line.partition(" keeps")[0] for line in answer["methods"]] == ["The objective"]
    answer = ask(
        opened, task="classes", rows=10**7, columns=100, epsilon=1, adjacency="replace-one"
    )
    assert "Far from every recorded comparison." in answer["text"]
    assert "The nearest has 330 times fewer rows. What follows is a guess." in answer["text"]
    assert len(answer["rows"]) == 1
    answer = ask(opened, task="numbers", rows=5000, columns=400, epsilon=1, adjacency="add-remove")
    assert answer["text"] == "No comparison was recorded for this task and these neighbours."
    answer = ask(opened, rows=-3)
    assert answer["text"] == "Rows, columns and epsilon are numbers above 0."


def test_several_data_sets_vote(opened):
    at = ("classes", "x", 1000, "1", "replace-one")
    best = {"small": {"a": 0.5, "b": 0.4}, "income": {"b": 0.8, "c": 0.7}, "middle": {"c": 0.1}}
    write_recommendations({(at[0], name, *at[2:]): own for name, own in best.items()})
    opened.evaluate(f"""(text => {{ document.getElementById("questions").textContent = text }})(
        {json.dumps(json.dumps(_questions()))})""")
    actual = opened.evaluate(
        "choose(JSON.parse(document.getElementById('questions').textContent), "
        "{task: 'classes', adjacency: 'replace-one', rows: 1000, columns: 5, epsilon: 1})"
    )
    # The question has 5 columns, so the data set of 8 votes with weight 5/8 = 1/1.6. The data set of
    # 100 columns is too far away to vote.
    assert [near["data"] for near in actual["near"]] == ["Data small", "Data income"]
    names = [(m["title"], m["wins"]) for m in actual["methods"]]
    assert names == [("The b", 2), ("The a", 1), ("The c", 1)]
    b = actual["methods"][0]
    assert abs(b["kept"] - (0.4 + 0.8 / 1.6) / (1 + 1 / 1.6)) < 1e-6
    assert (round(b["low"], 6), round(b["high"], 6)) == (0.38, 0.82)
    # The answer shows the numbers by which it ranks, and says what its ranges are over.
    ask(opened, task="classes", rows=1000, columns=5, epsilon=1, adjacency="replace-one")
    opened.evaluate("answer(form, document.getElementById('choice'), JSON.parse("
                    "document.getElementById('questions').textContent))")  # fmt: skip
    lines = opened.evaluate("[...document.querySelectorAll('#choice li')].map(e => e.textContent)")
    assert [line.rpartition(": ")[2] for line in lines] == [
        *("1.6 of 1.6 votes", "1 of 1.6 votes", "0.63 of 1.6 votes")
    ]
    over = "range over 2 data sets, with their intervals: 38\u00a0% to 82\u00a0%"
    assert over in lines[0] and "(95\u00a0% interval 48\u00a0% to 52\u00a0%)" in lines[1]
    text = opened.evaluate("document.getElementById('choice').textContent")
    assert "Ranked by votes, then by what they keep." in text
    weights = opened.evaluate(
        "[...document.querySelectorAll('#choice tbody tr')].map(r => r.cells[4].textContent)"
    )
    assert weights == ["1", "0.63"]


def test_the_lines_say_what_a_release_lacks_of_the_first_method(opened):
    rule = {"lambda": "rule"}
    cases = [
        ("amp", "classes", rule, '# "The amp" cannot be released; this one can, with intervals\n'
         "method: noise_aware_logistic\n"),
        ("amp", "numbers", rule, '# "The amp" cannot be released; this one can, with intervals\n'
         "method: noise_aware_log_cosh\n"),
        (TILT, "classes", rule | {"clip": 0.75}, f'# a release of "The {TILT}" lacks its clip 0.75\n'
         f"method: {TILT}\n"),
        (TILT, "classes", {"lambda": 0.1, "radius": 5}, f'# a release of "The {TILT}" lacks its lambda '
         f"0.1 and radius 5\nmethod: {TILT}\n"),
        (TILT, "classes", rule | {"adjacency": "replace-one"}, f"\nmethod: {TILT}\n"),
        (TILT, "numbers", rule | {"loss": {"log_cosh": {"tau": 0.25}}}, f"\nmethod: {TILT}\n"),
        ("knorm_objective_perturbation", "classes", rule, "\nlaw: pure\n"
         "method: knorm_objective_perturbation\n"),
    ]  # fmt: skip
    for mechanism, task, options, expected in cases:
        row = answer(mechanism, 0.5, task=task, dataset="small", options=json.dumps(options))
        write_csv(paths.RECOMMENDATIONS(), list(row), [row.values()])
        opened.evaluate(f"""(text => {{ document.getElementById("questions").textContent = text;
            document.getElementById("choose").elements.task.value = "{task}";
            answer(form, document.getElementById("choice"), JSON.parse(text)) }})(
            {json.dumps(json.dumps(_questions()))})""")
        text = opened.evaluate("document.querySelector('#choice pre').textContent")
        assert expected in text
        assert ("# a release" in text or "cannot be" in text) == expected.startswith("#")


def test_a_study_chooses_by_shipped_data_alone(project, monkeypatch):
    write_recommendations(RECORDED)
    assert len(_questions()) == len(RECORDED) and answers.shipped() == _questions()
    monkeypatch.setattr(paths, "HOME", project / "checkout")
    page = render([], seed=1, shows={"configuration": "", "experiments": {}})
    assert 'id="choose"' not in page  # only the study has results, not the checkout
    assert "-- results/recommendations.csv</code> makes them." in page
    (project / "results").rename(project / "checkout_results")
    (project / "checkout").mkdir()
    (project / "checkout_results").rename(project / "checkout/results")
    page = render([], seed=1, shows={"configuration": "", "experiments": {}})
    assert page.index('id="road"') < page.index('id="choose"') < page.index('id="answers"')


def _questions():
    return answers.answers()["questions"]


AXE = (
    "axe-playwright-python==0.1.8 "
    "--hash=sha256:fdd263c998388f1a8e67cad02677e612d946248bd44d163be5e8650ea31f95f8"
)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault(theme, decided, browser, tmp_path):
    (tmp_path / "axe.txt").write_text(AXE)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--quiet"]
    command += ["--dest", str(tmp_path), "--requirement", str(tmp_path / "axe.txt")]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("axe-core could not be downloaded")
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        axe = wheel.read("axe_playwright_python/axe.min.js").decode()
    decided.smaller = []
    write_recommendations(RECORDED)
    file = Path(tmp_path, "report.html")
    page = render([Gathered(decided, {})], seed=1, shows={"configuration": "", "experiments": {}})
    file.write_text(page, encoding="utf-8")
    with Chromium(browser, tmp_path / "profile", width=1200, height=900) as page:
        page.open(file.as_uri())
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        page.evaluate(
            "document.querySelectorAll('details:not(.cells)').forEach(d => d.open = true)"
        )
        page.evaluate(f"{axe}; 0")
        actual = page.evaluate(
            "axe.run().then(found => found.violations.map("
            "v => [v.impact, v.id, v.nodes.map(node => node.html.slice(0, 200))]))"
        )
    assert not [fault for fault in actual if fault[0] in ("serious", "critical")]
