"""The report of a run that lacks something: built anyway, with the gaps shown and nothing invented."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reporting import costs
from reporting import ledger as ledgers
from reporting.collect import Gathered
from reporting.page import badge_class, render, short
from study import paths
from study.jobs.files import write_csv


def page_of(experiment, **options):
    return whole([Gathered(experiment, options.get("stand_ins", {}))])


def whole(gathered):
    return render(gathered, seed=1, shows={"configuration": "", "experiments": {}})


class Outline(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.ids, self.hrefs, self.images, self.sources = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.hrefs += [attributes["href"]] if "href" in attributes else []
        self.images += [attributes] if tag == "img" else []
        self.sources += [attributes["src"]] if "src" in attributes else []


def test_a_missing_cell_is_a_visible_gap_and_the_rest_is_shown(experiment):
    lost = next(c for c in experiment.cells("table") if c.method == "output_perturbation")
    Path(experiment.run_path(lost)).unlink()
    log = Path(experiment.run_log(lost))
    log.parent.mkdir(parents=True)
    log.write_text("Traceback\nerror: row 3 has norm 2\n")
    gathered = Gathered(experiment, {})
    assert gathered.status == f"partial: 1 of {len(experiment.cells())} cells are missing"
    text = whole([gathered])
    assert "This is a partial report." in text
    assert "failed: error: row 3 has norm 2" in text
    columns, rows = gathered.cell_table()
    (gap,) = [row for row in rows if row[columns.index("status")] != "ok"]
    assert gap[columns.index("error_mean")] != gap[columns.index("error_mean")]  # NaN, no number
    # figures whose cells are all there are drawn without a mark
    whys = {f["name"]: f["why"] for f in gathered.figures()}
    assert whys["figure_2a"] == "not made yet"
    assert all(f["data"] for f in gathered.figures() if f["name"].startswith("figure"))


def test_nothing_run_is_reported_as_not_run(experiment):
    for cell in experiment.cells():
        Path(experiment.run_path(cell)).unlink()
    page = page_of(experiment)
    verdicts = {row["verdict"] for row in Gathered(experiment, {}).verdicts("published")}
    assert verdicts == {"not run"}
    assert '<span class="badge bad">not run</span>' in page
    claims = {row["id"]: row["verdict"] for row in Gathered(experiment, {}).verdicts("claims")}
    assert claims.pop("cm08-5") == "reproduced"  # of the tuning, which is there
    assert set(claims.values()) == {"not tested"}


def test_every_link_image_and_id_holds(experiment):
    outline = Outline(page_of(experiment))
    assert len(set(outline.ids)) == len(outline.ids)
    for href in outline.hrefs:
        assert href.startswith("data:") or href[1:] in outline.ids, href
    assert len(outline.images) == 4  # the tuning curve's file was not made
    for image in outline.images:
        assert image["src"].startswith("data:image/png;base64,")
        assert (
            "Mean error with 95 % bands" in image["alt"] and "output perturbation" in image["alt"]
        )
    assert not [source for source in outline.sources if not source.startswith("data:")]


def test_the_verdicts_are_those_of_the_files_that_jobs_write(experiment):
    found = Gathered(experiment, {}).verdicts("claims")
    assert {row["id"]: row["verdict"] for row in found}["cm08-5"] == "reproduced"
    lemma = next(row for row in found if row["id"] == "cm08-6")
    assert lemma["verdict"] == "not tested" and "excess_risk" in lemma["decided_by"]
    stand_ins = dict.fromkeys(experiment.datasets, "digits stand in")
    judged = Gathered(experiment, stand_ins).verdicts("published")
    assert {row["verdict"] for row in judged} == {"not tested"}


def test_text_from_results_cannot_become_markup(experiment):
    experiment.values["title"] = "<script>alert(1)</script>"
    page = page_of(experiment)
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.123456, "0.1235"), (14000, 14000), ("14000", "14000"), ("0.1", "0.1"), (None, ""),
     (float("nan"), ""), (float("inf"), "inf"), ("", ""), ("ok", "ok"), ("1e-05", "1e-05")],
)  # fmt: skip
def test_numbers_for_readers(value, text):
    assert short(value) == text


def test_badges_do_not_call_a_failure_good():
    assert (
        badge_class("partial: 3 of 4")
        == badge_class("not reproduced by any of 3 readings")
        == "bad"
    )
    assert badge_class("not shown") == "bad" and badge_class("shown") == "good"
    assert badge_class("not tested") == badge_class("something new") == "mild"


def test_costs_per_rule(project):
    header = "s\th:m:s\tmax_rss\tcpu_time\n"
    for name, line in (
        ("cm08/benchmarks/run/a/m/n=10/eps=0.1", "2.0\t0:00:02\t50.5\t1.5"),
        ("cm08/benchmarks/run/a/m/n=10/eps=0.2", "4.0\t0:00:04\t70.5\t2.5"),
        ("cm08/benchmarks/run/a/m/n=10/eps=1", "0.3\t0:00:00\t-\t-"),
        ("wdbc/benchmarks/tune/a", "1.0\t0:00:01\t20\tNA"),
    ):
        path = Path(f"results/{name}.tsv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header + line + "\n")
    rows = {row[:2]: row[2:] for row in costs.per_rule(costs.measured())}
    assert rows["run", "cm08"] == pytest.approx((3, 4.3, 1.5, 2.5, 6.3, 70.5))
    assert rows["tune", "wdbc"] == pytest.approx((1, 1.0, 1.0, 1.0, 1.0, 20))


def attack(mechanism, epsilon, proven, audited, verdict):
    return {
        **{"mechanism": mechanism, "attack": "opposite_corner", "epsilon": epsilon},
        **{"epsilon_claimed": epsilon, "epsilon_proven": proven, "epsilon_audited": audited},
        **{"epsilon_pair": "", "verdict": verdict, "adjacency": "replace-one"},
        **{"reason": "composes " * 40, "pair_reason": "all is moved"},
    }


@pytest.fixture
def ledger(project):
    beyond = "more than claimed by proof, not caught by this attack"
    rows = [
        attack("dp_sgd", 1, 1, 0.9, "consistent with the claim"),
        attack("dp_sgd", 10, 10, 8, "consistent with the claim"),
        attack("laplace_coordinates", 0.1, 1, 0.2, "refutes the claim"),
        attack("laplace_coordinates", 1, 10, 4, "refutes the claim"),
        attack("laplace_coordinates", 9, 90, 8, beyond),
        attack("of_ones_own", 5, 50, 0, beyond),
        attack("of_ones_own", "inf", "inf", 7, "nothing is claimed"),
    ]
    write_csv(paths.LEDGER(), list(rows[0]), [row.values() for row in rows])


def test_the_ledger_has_one_line_per_mechanism_its_worst(ledger):
    found = ledgers.ledger()
    shown = [row[found["columns"].index("verdict") :][:2] for row in found["rows"]]
    assert [row[0] for row in found["rows"]] == [
        *("SGD, norm-Laplace noise", "Laplace per weight, as written", "of ones own")
    ]
    assert [verdict for verdict, _ in shown] == [
        *("consistent with the claim", "refutes the claim", "more than claimed by proof")
    ]
    column = found["columns"].index("epsilon")
    assert [row[column] for row in found["rows"]] == ["1", "1", "5"]
    assert [row[-2] for row in found["rows"]] == [2, 3, 2]
    assert len(found["attacks"]) == 7
    classes = [badge_class(row[1]) for row in found["attacks"]]
    assert classes == ["good", "good", "bad", "bad", "mild", "mild", "plain"]


def test_a_line_of_the_ledger_is_one_line_with_its_verdict_in_sight(ledger, browser, tmp_path):
    from chromium import Chromium

    file = tmp_path / "report.html"
    file.write_text(whole([]), encoding="utf-8")
    with Chromium(browser, tmp_path / "profile", width=1300) as opened:
        opened.open(file.as_uri())
        opened.evaluate("document.querySelector('#ledger > details').open = true")
        sizes = "[...document.querySelectorAll('#ledger .lines tbody tr')].map(r => r.clientHeight)"
        heights = opened.evaluate(sizes)
        assert len(heights) == 3 + 7 and max(heights) < 40
        ends = (
            "[...document.querySelectorAll('#ledger td')].map(c => c.getBoundingClientRect().right)"
        )
        assert max(opened.evaluate(ends)) <= 1300
        opened.evaluate("document.querySelector('#ledger td details').open = true")
        text = "document.querySelector('#ledger .folded').getBoundingClientRect()"
        assert opened.evaluate(f"{text}.width > 300 && {text}.left > 0 && {text}.right <= 1300")


def test_in_a_browser(experiment, browser, tmp_path):
    """No console error, no request, every image there, tables that sort and filter, on a phone too."""
    from chromium import Chromium

    lost = next(c for c in experiment.cells("learning") if c.method == "objective_perturbation")
    Path(experiment.run_path(lost)).unlink()
    file = tmp_path / "report.html"
    file.write_text(page_of(experiment), encoding="utf-8")
    with Chromium(browser, tmp_path / "profile", width=390, height=800) as page:
        page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1,
                  mobile=True)  # fmt: skip
        page.open(file.as_uri())
        images = page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 300)")
        assert images and all(images)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("document.querySelectorAll('.gaps tbody tr').length") == 1
        assert page.evaluate("document.querySelector('a.save').href").startswith("data:image/png")

        cells = "[...document.querySelectorAll('#cm08 > details:last-of-type table')].at(-1)"
        shown = f"[...{cells}.tBodies[0].rows].filter(r => !r.hidden)"
        heads = page.evaluate(f"[...{cells}.tHead.rows[0].cells].map(c => c.textContent)")
        column = heads.index("error mean")
        click = f"{cells}.tHead.rows[0].cells[{column}].querySelector('button').click()"
        values = f"{shown}.map(r => r.cells[{column}].textContent)"
        for direction, reverse in (("ascending", False), ("descending", True)):
            page.evaluate(click)
            state = f"{cells}.tHead.rows[0].cells[{column}].ariaSort"
            assert page.evaluate(state) == direction
            texts = page.evaluate(values)
            assert texts[-1] == ""  # the missing cell comes last, whichever way
            numbers = [float(text) for text in texts if text]
            assert len(numbers) > 20 and numbers == sorted(numbers, reverse=reverse)

        field = f"{cells}.parentElement.previousElementSibling.querySelector('input')"
        typing = "f.value = 'nonprivate 10000'; f.dispatchEvent(new Event('input'))"
        page.evaluate(f"(f => {{ {typing} }})({field})")
        rows = page.evaluate(f"{shown}.map(r => r.textContent)")
        assert len(rows) == 2 and all("nonprivate" in row for row in rows)

        dark = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(dark)
        page.evaluate("document.getElementById('theme').click()")
        assert page.evaluate(dark) != before

        assert page.named("Runtime.exceptionThrown") == []
        assert [e for e in page.named("Runtime.consoleAPICalled") if e["type"] == "error"] == []
        assert [e for e in page.named("Log.entryAdded") if e["entry"]["level"] == "error"] == []
        asked = [e["request"]["url"] for e in page.named("Network.requestWillBeSent")]
        assert asked and not [url for url in asked if not re.match("file:|data:", url)]
        assert sum(url.startswith("file:") for url in asked) == 1


def test_the_browser_test_sees_what_it_must_refuse(browser, tmp_path):
    from chromium import Chromium

    file = tmp_path / "bad.html"
    file.write_text(
        "<img src='http://192.0.2.1/a.png'><script>console.error('x'); null.f()</script>"
    )
    with Chromium(browser, tmp_path / "profile") as page:
        page.open(file.as_uri())
        page.evaluate("1")
        assert page.named("Runtime.exceptionThrown")
        assert [e for e in page.named("Runtime.consoleAPICalled") if e["type"] == "error"]
        asked = json.dumps([e["request"]["url"] for e in page.named("Network.requestWillBeSent")])
        assert "192.0.2.1" in asked
