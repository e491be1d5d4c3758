import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from configured import configured
from conftest import answer
from jobs import forecasts
from plots import ledger as plot_ledger
from plots import style
from reporting import answers, costs, dots, figure_verdicts, recommendations, road, sources
from reporting import ledger as ledgers
from reporting import page as pages
from reporting.collect import Gathered
from reporting.page import badge_class, because, named, render, short
from study import facts, paths
from study.configuration import release_files
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


PAGES = []


@pytest.fixture
def judged(decided):
    """The page of `decided`, as of sizes that count. It is always the same, so it is made once."""
    decided.smaller = []
    if not PAGES:
        PAGES.append(page_of(decided))
    return PAGES[0]


def test_a_missing_cell_is_a_visible_gap_and_the_rest_is_shown(experiment):
    lost = next(c for c in experiment.cells("table") if c.method == "output_perturbation")
    Path(experiment.run_path(lost)).unlink()
    log = Path(experiment.run_log(lost))
    log.parent.mkdir(parents=True)
    log.write_text("Traceback\nerror: row 3 has norm 2\n")
    gathered = Gathered(experiment, {})
    assert gathered.status == f"partial: 1 of {len(experiment.cells())} cells are missing"
    columns, rows = gathered.cell_table()
    (gap,) = [row for row in rows if row[columns.index("status")] != "ok"]
    assert gap[columns.index("error_mean")] != gap[columns.index("error_mean")]  # NaN
    # a figure without missing cells has no mark
    whys = {f["name"]: f["why"] for f in gathered.figures()}
    assert whys["figure_2a"] == "not made yet"
    assert all(f["data"] for f in gathered.figures() if f["name"].startswith("figure"))
    experiment.figures = {}
    shows = {"configuration": "--configfile config/smoke.yaml", "experiments": {}}
    text = render([gathered], seed=1, shows=shows)
    assert "This is a partial report." in text
    command = "snakemake --configfile config/smoke.yaml --cores all -- cm08"
    assert f"<code>{command}</code> makes the rest." in text
    assert "failed: error: row 3 has norm 2" in text


def test_nothing_run_is_reported_as_not_run(experiment):
    for cell in experiment.cells():
        Path(experiment.run_path(cell)).unlink()
    page = page_of(experiment)
    assert '<span class="badge bad">not run</span>' in page
    for section in ("published", "claims", "defects"):
        rows = Gathered(experiment, {}).verdicts(section)
        assert {row["verdict"] for row in rows} == {"not decided yet"}


def test_every_link_image_and_id_holds(decided, judged):
    outline, cited = Outline(judged), facts.read(decided.source).link
    assert len(set(outline.ids)) == len(outline.ids)
    for href in outline.hrefs:
        assert href.startswith("data:") or href == cited or href[1:] in outline.ids, href
    assert len(outline.images) == 5  # the tuning curve's file was not made
    for image in outline.images:
        assert image["src"].startswith("data:image/webp;base64,")
        drawn = "Mean error with 95 % bands" in image["alt"] or "A bar for each" in image["alt"]
        assert drawn and "output perturbation" in image["alt"]
    assert not [source for source in outline.sources if not source.startswith("data:")]


def test_the_verdicts_are_those_of_the_files_that_jobs_write(decided):
    results = {row["id"]: row for row in Gathered(decided, {}).verdicts("claims")}
    assert results["cm08-13"]["verdict"] == "reproduced"
    lemma = results["cm08-6"]
    assert lemma["verdict"] == "not tested" and "excess_risk" in lemma["decided_by"]
    path = Path(paths.VERDICTS(experiment="cm08", section="claims"))
    path.write_text(path.read_text().replace("reproduced", "as the file has it"))
    results = {row["id"]: row for row in Gathered(decided, {}).verdicts("claims")}
    assert results["cm08-13"]["verdict"] == "as the file has it"


def test_text_from_results_cannot_become_markup(experiment):
    experiment.title, experiment.figures = "<script>alert(1)</script>", {}
    page = page_of(experiment)
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.123456, "0.1235"), (14000, 14000), ("14000", "14000"), ("0.1", "0.1"), (None, ""),
     (float("nan"), ""), (float("inf"), "inf"), ("", ""), ("ok", "ok"), ("1e-05", "1e-05"),
     ("own_rows", "own rows")],
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


def test_every_colour_can_be_read():
    """The contrast of text and background, as WCAG 2 computes it, is at least 4.5 (AA)."""
    css = (Path(__file__).parents[2] / "workflow/report/report.css").read_text(encoding="utf-8")
    themes = [
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r"\{([^{}]*--paper:[^{}]*)\}", css)
    ]
    # The themes are light, dark by the system's setting, and dark by the button.
    assert len(themes) == 3 and themes[1] == themes[2]

    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    pairs = [(text, back) for text in ("ink", "soft", "link") for back in ("paper", "wash")]
    pairs += [(name, f"{name}-wash") for name in ("good", "bad", "mild")]
    for theme in themes:
        for text, back in pairs:
            light, dark = sorted((luminance(theme[text]), luminance(theme[back])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, back)


def test_why_a_statement_has_its_verdict_is_a_sentence_with_names():
    names = {"output_perturbation": "output perturbation", "amp": "AMP", "a_b": "the data"}
    text = "output_perturbation on a_b, tables/t_1/0, an amp, nonprivate, b_c/b_d, a_b.py"
    assert named(text, names | {"nonprivate": "none"}) == (
        "output perturbation on the data, t 1, 0, an amp, none, b c/b d, a_b.py"
    )
    row = {"decided_by": "fails: output_perturbation is above"}
    assert because(row, names) == "Fails: output perturbation is above."
    assert because({"decided_by": ""}, names) == ""


def test_no_key_is_shown_where_a_name_should_be(judged):
    page = judged
    hidden = r"<(script|style|code|pre|head)\b.*?</\1>|<a class=.csv.*?</a>|<[^>]*>"
    seen = re.sub(hidden, " ", page, flags=re.S)
    assert "objective perturbation, as printed" in seen
    einarsson = facts.read("einarsson_2018")
    said = f"tests its {len(einarsson.claims) + len(einarsson.defects)} claims and defects."
    assert f"No experiment of this report {said}" in seen
    assert not re.findall(r"[A-Za-z0-9]+_[A-Za-z0-9_]+(?![\w.])", seen)
    titles = " ".join(re.findall(r'title="([^"]*)"', page))
    assert "Printed 0.296" in titles and "_" not in titles


def test_pictures_become_smaller_and_stay_the_same_to_the_eye(tmp_path):
    import matplotlib.pyplot as plt
    import numpy as np
    from PIL import Image

    figure, axes = plt.subplots(dpi=160)
    for k in range(4):
        axes.plot(np.sin(np.arange(50) / (k + 3)), label=f"curve {k}")
    axes.legend()
    before, after = tmp_path / "before.png", tmp_path / "after.png"
    figure.savefig(before)
    style.save(figure, after)
    assert after.stat().st_size < 0.5 * before.stat().st_size
    one, other = (np.asarray(Image.open(b).convert("RGB"), float) for b in (before, after))
    assert one.shape == other.shape and np.abs(one - other).mean() < 1


def test_page_one_answers_which_method_to_use(experiment):
    small = experiment.values.pop("smaller")
    experiment.figures = {}
    assert "No experiment of this run compares methods" in page_of(experiment)
    data = {"dataset": "cm08_separable", "experiment": "cm08"}
    rows = [
        answer("best", 0.9, **data, rows_for_95_percent=1234, rows_are="interpolated"),
        answer("other", 0.4, **data, standing="beaten", p=0.001, beaten_by="best"),
        answer("unpaid", 0.95, **data, standing="void", setting="void", why="it was not paid for"),
    ]
    write_csv(paths.RECOMMENDATIONS(), list(rows[0]), [row.values() for row in rows])
    shared = {"shared_questions": 3, "shared_data_sets": 3}
    across = [
        dict.fromkeys(recommendations.ACROSS, "")
        | {"regime": "nothing tuned", "task": "classes", "experiment": "cm08"}
        | {"adjacency": "replace-one", "title": f"The {m}", **shared}
        | {"shared_not_beaten": n, "shared_regret": r}
        | {"shared_regret_low": 0, "shared_regret_high": r}
        for m, n, r in (("best", 3, 0.0), ("other", 0, 0.5))
    ]
    write_csv(paths.ACROSS(), list(across[0]), [row.values() for row in across])
    page = page_of(experiment)
    (text,) = re.findall(r'<section id="answers">(.*?)</section>', page, re.S)
    assert page.index('id="answers"') < page.index('id="sources"') < page.index('id="ledger"')
    assert "<b>The best</b>. No other method is significantly better in 3 of 3" in text
    # In the picture for two classes, a method that is never beaten has a filled mark ("all").
    names = re.findall(r'<span class="name">(.*?)</span>', text)
    marks = re.findall(r'class="mark (\w+)" style="left: ([\d.]+)%"', text)
    assert names == ["The best", "The other"]
    assert marks == [("all", "0.0"), ("some", "95.24")]  # the axis ends at 1.05 x 50 %
    assert "The best <b>90.0\u00a0%</b>" in text and 'class="best">The other' not in text
    void = 'title="it was not paid for">void: The unpaid, 5.0\u00a0% ahead</span>'
    assert void in text and "1,234" in text
    experiment.smaller = small
    page = page_of(experiment)
    assert "No method is recommended: cm08 ran at smaller sizes" in page
    assert "<b>The best</b>. No other" not in page and 'id="choose"' not in page
    changed = "Results have changed since these answers were made"
    assert changed not in page and not answers.answers()["stale"]
    assert answers.answers(outdated=[paths.RECOMMENDATIONS()])["stale"]


def test_a_ranking_compares_only_questions_of_several_data_sets_that_methods_share():
    rows = [
        dict.fromkeys(recommendations.ACROSS, "")
        | {"task": "classes", "regime": "nothing tuned", "adjacency": "replace-one"}
        | {"title": title, "experiment": experiment, **shared}
        for title, experiment, shared in (
            ("Everywhere", "a", known(14, 5, 13, 0.005)),
            ("Often", "a", known(14, 5, 7, 0.06)),
            ("Once", "a", {}),
            ("Here", "b", known(2, 1, 2, 0.0)),
            ("There", "b", known(2, 1, 1, 0.1)),
        )
    ]
    (group,) = answers._groups(rows)
    assert [row["title"] for row in group] == ["Everywhere", "Often"]
    sentence = answers.sentence(group)
    assert sentence["method"] == "Everywhere"
    assert sentence["text"].startswith(
        "No other method is significantly better in 13 of 14 comparisons on 5 data sets. Against the "
        "best of each, it loses 0.5\u00a0% of what can be learnt"
    )
    group[0]["shared_regret"] = "0.07"
    assert "; Often loses 6.0\u00a0%." in answers.sentence(group)["text"]


def known(questions, sets, not_beaten, regret):
    answers_by_name = {
        "questions": questions,
        "data_sets": sets,
        "not_beaten": not_beaten,
        "regret": regret,
    }
    return {f"shared_{key}": str(value) for key, value in answers_by_name.items()}


ARITHMETIC = ("cm08-13", "cm08-17", "cm08-18")


def test_toy_sizes_have_a_banner_and_no_verdict(decided):
    experiment, decided.figures = decided, {}
    page = page_of(experiment)
    assert "Toy sizes: nothing here is a finding." in page
    assert "20 instead of 1,000 draws of the noise in a cell" in page
    gathered = Gathered(experiment, {})
    for section in ("published", "claims"):
        judged = {row["verdict"] for row in gathered.verdicts(section)}
        shown = gathered.shown(section)
        assert section == "published" or "reproduced" in judged
        # Some claims are arithmetic and do not depend on sizes.
        of_sizes = [row for row in shown if row.get("id") not in (*ARITHMETIC, "cm08-15")]
        assert {row["verdict"] for row in of_sizes} <= {"not judged", "not run", "not tested"}
        judged = [row for row in of_sizes if row["verdict"] != "not tested"]
        assert {row.get("distance", "") for row in judged} == {""}
    # defects of formulas or printed numbers do not depend on sizes
    verdicts = {row["verdict"] for row in gathered.shown("defects")}
    assert "shown" in verdicts
    assert re.findall(r'<span class="badge good">reproduced</span> <a href="#([\w-]+)"', page) == [
        *ARITHMETIC
    ]
    card = re.search(r'<article class="card" id="source-chaudhuri.*?</article>', page, re.S)[0]
    bars = {
        kind: re.findall(r'title="([^"]+)">(\d+)<', line)
        for kind, line in re.findall(r"<li><span>([^<]+)</span>(.*?)</li>", card)
    }
    assert bars.keys() == {"results", "other numbers"}
    others = dict(bars["other numbers"])
    assert (others.pop("as stated"), others.pop("not reproduced")) == ("3", "1")
    assert {*others, *dict(bars["results"])} == {"not tested", "not run"}
    experiment.smaller = []
    page = page_of(experiment)
    assert "Toy sizes" not in page and 'title="as stated">' in page


def test_the_page_of_a_study_begins_with_a_forecast_that_opens_no_rows(project, monkeypatch):
    home = project / "home"
    home.mkdir()
    (project / "config").rename(home / "config")
    monkeypatch.setattr(paths, "HOME", home)
    Path("config/releases").mkdir(parents=True)
    Path("config/datasets.yaml").write_text(
        "clinic:\n  source: {csv: clinic.csv}\n  label: back\n  positive: 'yes'\n"
        "  bounds: {age: [18, 98], visits: [0, 20]}\n"
    )
    Path("clinic.csv").write_text("age,visits,back\n")
    release = (
        "title: Who comes back\ndata: clinic\nrows: 3000\nunit: one row is one patient\n"
        "book: clinic.book\nbudget: {epsilon: 2, delta: 2.0e-6}\nepsilon: 1\ndelta: 1.0e-6\n"
        "method: noise_aware_logistic\nnegative: 'no'\npremise: chosen without these rows\n"
    )
    Path("config/releases/back.yaml").write_text(release)
    Path("config/releases/lost.yaml").write_text(release.replace("clinic\n", "nowhere\n", 1))
    assert all("No forecast yet" in each["says"][0] for each in road.road())
    monkeypatch.setattr(sys, "argv", ["forecasts", "--out", paths.FORECASTS()])
    forecasts.main()
    Path("config/releases/new.yaml").write_text(release)
    actual, lost, new = road.road()
    assert "No forecast yet" in new["says"][0]
    assert release_files.has_rows("back") and not release_files.has_rows("lost")
    assert actual["title"] == "Who comes back", actual["says"]
    assert "3,000 rows, epsilon 1" in actual["cost"]
    (percent,) = re.findall(r"that is left: (\d+)%", " ".join(actual["says"]))
    assert 50 < int(percent) < 101
    assert lost["says"][0].startswith("No forecast: ") and not Path("clinic.book").exists()
    page = whole([])
    assert page.index('id="road"') < page.index('id="answers"')
    assert "This page must not be published." in page


def test_the_page_shows_recorded_verdicts_with_their_reasons_and_why_they_are_stale(project):
    shows = {"configuration": "", "experiments": {}}
    page = render([], seed=1, shows=shows, stale={"adassp_2018": ["code"]})
    (table,) = re.findall(
        r"<details class=\"recorded\"><summary>[^<]*housing.*?</table>", page, re.S
    )
    assert "The record adassp_2018 is stale, since the code of its cells has changed." in table
    assert table.count('class="void-row"') == 66  # all its lines
    reason = "read in the program&#39;s preparation of its data"
    assert f'<td class="text">{reason}</td>' in table
    current = render([], seed=1, shows=shows, stale={})
    assert 'class="void-row"' not in current and reason in current
    assert '<details class="recorded">' not in render([], seed=1, shows=shows)


def test_a_partial_report_judges_nothing_itself(decided):
    decided.figures = {}

    def found(section):
        return {row["verdict"] for row in Gathered(decided, {}).verdicts(section)}

    (lost, *_) = decided.cells("learning")
    path = Path(decided.run_path(lost))
    for section in ("published", "claims", "defects"):
        assert "not decided yet" not in found(section)
        content = path.read_bytes()
        path.unlink()
        assert found(section) == {"not decided yet"}
        path.write_bytes(content)
        table = paths.VERDICTS(experiment=decided.name, section=section)
        outdated = Gathered(decided, {}, [table]).verdicts(section)
        assert {row["verdict"] for row in outdated} == {"not decided yet"}
    path.unlink()
    page = page_of(decided)
    assert ">not decided yet<" in page and 'bad">not reproduced by' not in page


def took(script, cpu, wall, peak):
    return f"{script} took {cpu} s of a processor, {wall} s by the clock, {peak} MB\n"


def test_the_page_of_the_default_run_fits_into_eight_megabytes(decided, judged):
    """The default run's figures and cells are assumed to be as large as this page's."""
    text = judged
    pictures = [len(data) for data in re.findall(r'src="data:image/webp;base64,([^"]*)"', text)]
    assert len(pictures) >= 5 and max(pictures) < 100_000
    # Without pictures, the page holds this experiment's downloads, tables and statements, and
    # the scripts.
    of_cells = len(text) - sum(pictures)
    config, experiments, _ = configured()
    listed = [experiments[name] for name in config.experiments]
    figures = sum(len(experiment.figures) for experiment in listed)
    cells = sum(len(experiment.cells()) for experiment in listed)
    assert figures >= 100 and cells >= 2000
    whole_page = figures * sum(pictures) / len(pictures) + cells * of_cells / len(decided.cells())
    assert whole_page < pages.MOST


def test_a_page_that_would_be_too_large_leaves_out_its_largest_downloads(decided, monkeypatch):
    decided.figures = {}
    text = page_of(decided)
    files = re.findall(r'download="(cm08-[\w-]+\.csv)\.gz" href="([^"]*)"', text)
    largest = max(files, key=lambda file: len(file[1]))
    monkeypatch.setattr(pages, "MOST", len(text.encode()) - 1)
    text = page_of(decided)
    assert len(text.encode()) <= pages.MOST
    left = [
        name for name, _ in re.findall(r'download="(cm08-[\w-]+\.csv)\.gz" href="([^"]*)"', text)
    ]
    assert sorted([*left, largest[0]]) == sorted(name for name, _ in files)
    assert f"Too large for this page, but in the folder of results: {largest[0]}." in text


def test_costs_per_rule(project):
    for name, line in (
        ("cm08/logs/runs/a/m/n=10/eps=0.1", took("run", 1.5, 2.0, 50.5)),
        ("cm08/logs/runs/a/m/n=10/eps=0.2", f"a warning\n{took('run', 2.5, 4.0, 70.5)}"),
        ("cm08/logs/runs/a/m/n=10/eps=0.3", "error: it failed\n"),
        ("cm08/logs/runs/a/m/n=10/eps=1", took("run", 0.3, 0.3, 0)),
        ("wdbc/logs/tuned/a", took("tune", 1.0, 1.0, 20)),
    ):
        path = Path(f"results/{name}.log")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(line)
    rows = {row[:2]: row[2:] for row in costs.per_rule(costs.measured())}
    assert rows["run", "cm08"] == pytest.approx((3, 4.3, 1.5, 2.5, 6.3, 70.5))
    assert rows["tune", "wdbc"] == pytest.approx((1, 1.0, 1.0, 1.0, 1.0, 20))


def attack(mechanism, epsilon, proven, audited, verdict):
    return {
        **{"mechanism": mechanism, "attack": "opposite_corner", "epsilon": epsilon},
        **{"epsilon_claimed": epsilon, "epsilon_proven": proven, "epsilon_audited": audited},
        **{
            "confidence": 0.95,
            "epsilon_pair": "",
            "verdict": verdict,
            "replay": "holds",
            "adjacency": "replace-one",
        },
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
    rows = [row | {"low_bits": "broken: 99 %" if k == 2 else ""} for k, row in enumerate(rows)]
    write_csv(paths.LEDGER(), list(rows[0]), [row.values() for row in rows])


def test_the_ledger_has_one_line_per_mechanism_its_worst(ledger):
    actual = ledgers.ledger()
    rows = actual["picture"]["rows"]
    assert [(row["name"], row["family"]) for row in rows] == [
        ("Laplace per weight, as written", "Forms as their authors printed or ran them"),
        ("of ones own", "Selection, sampling and others"),
        ("SGD, norm-Laplace noise", "Noise on gradients"),
    ]
    assert actual["others"] == []
    worst, own, sound = rows
    assert worst["verdict"] == "refutes the claim" and worst["why"].startswith(
        "The worst of 3 attacks, "
    )
    assert worst["text"] == (
        "claimed 1, proven 10, attacked 4, the replay agrees; broken by low-order bits"
    )
    assert sound["verdict"] == "consistent with the claim" and "at epsilon 1: " in sound["why"]
    assert own["verdict"] == "more than claimed by proof"
    marks = dict(worst["marks"])
    assert marks["claimed"] < marks["attacked"] < marks["proven"]
    assert worst["bar"][0] == marks["claimed"] and worst["bar"][1] > 0
    assert len(actual["attacks"]) == 7
    classes = [badge_class(row[1]) for row in actual["attacks"]]
    assert classes == ["good", "good", "bad", "bad", "mild", "mild", "plain"]
    assert actual["summary"] == (
        "consistent with the claim (1), refutes the claim (1), more than claimed by proof (1)"
    )


def test_the_ledgers_picture_has_the_worst_and_a_table_has_the_others(project):
    names = [f"own_{k}" for k in range(17)] + ["amp_released"]
    rows = [
        attack(
            name,
            1,
            20 - k,
            19 - k if k < 10 else 0.5,
            "refutes the claim" if k < 10 else "consistent",
        )
        for k, name in enumerate(names)
    ]
    write_csv(paths.LEDGER(), list(rows[0]), [row.values() for row in reversed(rows)])
    actual = ledgers.ledger()
    assert [row["mechanism"] for row in actual["picture"]["rows"]][:10] == names[:10]
    assert len(actual["picture"]["rows"]) == ledgers.DRAWN and len(actual["others"]) == 3
    drawn = plot_ledger.ledger(pd.read_csv(paths.LEDGER()))
    labels = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    assert len(labels) == plot_ledger.DRAWN and labels[-1].startswith("own 0: ")
    page = whole([])
    assert page.count('class="audited"') == len(names)
    assert len(re.findall(r'<tr id="ledger-\w+" class="audited"', page)) == 3
    assert 'id="ledger-amp_released" class="audited" data-what="released program"' in page


def test_figures_bear_the_verdicts_on_what_they_show(decided, judged, monkeypatch):
    captions = dict(
        re.findall(r'<figure id="cm08-(\w+)">.*?<figcaption>(.*?)</figcaption>', judged, re.S)
    )
    claims = {row["id"]: row["verdict"] for row in Gathered(decided, {}).verdicts("claims")}
    shown = {
        "figure_2a": ["cm08-2"],
        "figure_2c": ["cm08-3", "cm08-4"],
        "figure_1": ["cm08-1"],
    }
    for name, ids in shown.items():
        found = re.findall(r'<a class="badge (\w+)" href="#([\w-]+)">([^<]*)</a>', captions[name])
        assert [id for _, id, _ in found] == ids
        for look, id, text in found:
            outcome = sources.outcome(claims[id])
            assert (look, text) == (sources.look(outcome), f"{id}: {outcome}")
    rows = Gathered(decided, {}).verdicts("published")
    spec = decided.figures["figure_1"]  # shows the six printed means
    said = figure_verdicts.of_numbers(decided, spec, rows)
    assert sum(map(int, re.findall(r"\d+", said))) == 6 and said in captions["figure_1"]
    one = spec.model_copy(update={"datasets": ["cm08_separable"]})
    of_one = figure_verdicts.of_numbers(decided, one, rows)
    assert sum(map(int, re.findall(r"\d+", of_one))) == 3
    assert figure_verdicts.of_numbers(decided, decided.figures["figure_2c"], rows) == ""
    assert {n for n, said in captions.items() if figure_verdicts.NOTHING in said} == {"tuning"}
    monkeypatch.setattr(figure_verdicts, "of_claims", lambda cards: {})
    decided.figures = {"figure_2c": decided.figures["figure_2c"]}
    caption = page_of(decided).partition('id="cm08-figure_2c"')[2].partition("</figure>")[0]
    assert figure_verdicts.NOTHING in caption


def test_of_attacks_that_find_nothing_the_ledger_shows_the_one_whose_replay_refutes():
    verdict = "claimed, not proven: this attack does not refute it"
    found = attack("of_ones_own", 1, "", 0.1, verdict) | {"replay": "refutes the claim: its scale"}
    shown = ledgers.entry([attack("of_ones_own", 1, "", 0.9, verdict), found])
    assert shown["text"] == "claimed 1, attacked 0.1, the replay refutes the claim"


def proven(mechanism, claimed, epsilon, options="{}", reason="by proof", dataset="a"):
    return {
        **{"experiment": "study", "dataset": dataset, "method": "m", "mechanism": mechanism},
        **{"options": options, "train_size": 9, "epsilon_claimed": claimed},
        **{"epsilon_proven": epsilon, "reason": reason},
    }


def lines_with(cells):
    write_csv(paths.AUDITED_CELLS(), list(cells[0]), [cell.values() for cell in cells])
    actual = ledgers.ledger()
    return {row["mechanism"]: row for row in actual["picture"]["rows"]}, actual["summary"]


def test_the_ledger_shows_the_worst_proof_over_all_cells_of_the_run(ledger):
    cells = [proven("dp_sgd", e, "inf", reason="no bound", dataset=f"at {e}") for e in (0.1, 1, 10)]
    rows, summary = lines_with(
        [
            *cells,
            proven("dp_sgd", 1, 1),
            # Preparation voids this cell, which says nothing about the mechanism.
            proven("of_ones_own", 1, "inf", reason="scaling looked at the private rows; alone 1"),
        ]
    )
    sgd, own = rows["dp_sgd"], rows["of_ones_own"]
    assert sgd["verdict"] == "more than claimed by proof"
    assert sgd["text"] == (
        "claimed 1, proven none, attacked 0.9, 3 of 4 cells of this run prove more than is claimed, "
        "the replay agrees"
    )
    assert dict(sgd["marks"])["proven"] == 100.0 and sgd["name"] == "SGD, norm-Laplace noise"
    assert (
        "study, at 1, m, n = 9, claims 1, and no finite epsilon is proven: no bound." in sgd["why"]
    )
    assert "cells of this run" not in own["text"]
    assert summary == "more than claimed by proof (2), refutes the claim (1)"


def test_a_worse_proof_of_some_cells_accuses_only_their_variant(ledger):
    classical = '{"calibration": "classical"}'
    rows, _ = lines_with([proven("dp_sgd", 10, 20, classical), proven("dp_sgd", 10, 10)])
    assert rows["dp_sgd"]["name"] == "SGD, norm-Laplace noise (only with calibration: classical)"
    assert "claimed 10, proven 20, attacked 0.9" in rows["dp_sgd"]["text"]
    # A refuted claim stays refuted, and a proof that is no worse than the attack's changes no number.
    rows, _ = lines_with([proven("laplace_coordinates", 1, 3), proven("dp_sgd", 1, 1)])
    assert rows["laplace_coordinates"]["verdict"] == "refutes the claim"
    assert rows["laplace_coordinates"]["text"].startswith(
        "claimed 1, proven 10, attacked 4, 1 of 1"
    )
    assert rows["dp_sgd"]["verdict"] == "consistent with the claim"


def test_cards_and_the_ledgers_lines_are_linked(experiment):
    name, experiment.figures = "objective_perturbation_cm08", {}
    rows = [attack(name, 1, 1, 0.5, "consistent with the claim")]
    rows.append(attack("dp_sgd", 1, 1, 0.5, "consistent with the claim"))
    write_csv(paths.LEDGER(), list(rows[0]), [row.values() for row in rows])
    page = page_of(experiment)
    card = page.partition('id="source-chaudhuri_monteleoni_2008"')[2].partition("</article>")[0]
    assert f'href="#ledger-{name}"' in card and "#ledger-dp_sgd" not in card
    line = page.partition(f'id="ledger-{name}"')[2].partition("</li>")[0]
    assert 'href="#source-chaudhuri_monteleoni_2008">CM08</a>' in line
    assert "#source-" not in page.partition('id="ledger-dp_sgd"')[2].partition("</li>")[0]


def test_places_on_an_axis():
    row = {"bar": None, "marks": {"a": 0.0, "b": 10.0, "c": math.inf}}
    actual = dots.scaled([row, {"bar": (0.1, 10.0), "marks": {}}], log=True)
    assert dict(actual["rows"][0]["marks"]) == {"a": 0.0, "b": 75.0, "c": 100.0}
    assert [text for _, text in actual["ticks"]] == ["0.1", "1", "10"]
    actual = dots.scaled([{"bar": (0, 40), "marks": {"a": 20}}], unit=" %")
    assert actual["ticks"][1] == (47.62, "20 %") and actual["rows"][0]["bar"] == (0.0, 95.24)


def test_in_a_browser(experiment, browser, tmp_path):
    from chromium import Chromium

    lost = next(c for c in experiment.cells("learning") if c.method == "objective_perturbation")
    Path(experiment.run_path(lost)).unlink()
    file = tmp_path / "report.html"
    file.write_text(page_of(experiment), encoding="utf-8")
    with Chromium(browser, tmp_path / "profile", width=390, height=800) as page:
        page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1,
                  mobile=True)  # fmt: skip
        page.open(file.as_uri())
        # The first tab stop skips the table of contents, and the keyboard reaches all scrollable parts.
        page.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
        assert page.evaluate("document.activeElement.className") == "skip"
        stops = "[...document.querySelectorAll('.scroll, summary, th button')].every(e => e.tabIndex >= 0)"
        assert page.evaluate(stops)
        images = page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 300)")
        assert images and all(images)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("document.querySelectorAll('.gaps tbody tr').length") == 1
        assert page.evaluate("document.querySelector('a.save').href").startswith("data:image/webp")

        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        table = (
            "unpack(document.querySelector('a.csv[download^=\"cm08-tuned\"]')).then(b => b.text())"
        )
        assert page.evaluate(table).startswith("lambda,error_mean,")
        cells = "document.querySelector('#cm08 details.cells table')"
        shown = f"[...{cells}.tBodies[0].rows].filter(r => !r.hidden)"
        heads = page.evaluate(f"[...{cells}.tHead.rows[0].cells].map(c => c.textContent)")
        column = heads.index("error")
        click = f"{cells}.tHead.rows[0].cells[{column}].querySelector('button').click()"
        values = f"{shown}.map(r => r.cells[{column}].textContent)"
        for direction, reverse in (("ascending", False), ("descending", True)):
            page.evaluate(click)
            state = f"{cells}.tHead.rows[0].cells[{column}].ariaSort"
            assert page.evaluate(state) == direction
            texts = page.evaluate(values)
            assert texts[-1] == ""  # the missing cell is last in either order
            numbers = [float(text) for text in texts if text]
            assert len(numbers) > 20 and numbers == sorted(numbers, reverse=reverse)

        field = f"{cells}.parentElement.previousElementSibling.querySelector('input')"
        typing = "f.value = 'without 10000'; f.dispatchEvent(new Event('input'))"
        page.evaluate(f"(f => {{ {typing} }})({field})")
        rows = page.evaluate(f"{shown}.map(r => r.textContent)")
        assert len(rows) == 2 and all("without privacy" in row for row in rows)
        page.evaluate(f"(f => {{ {typing.replace('without 10000', '')} }})({field})")

        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
        field = "document.querySelector('.search input')"
        typing = "f.value = 'output_perturbation 10000 0.2'; f.dispatchEvent(new Event('input'))"
        page.evaluate(f"(f => {{ {typing} }})({field})")
        buttons = "[...document.querySelectorAll('.found button')]"
        assert page.evaluate(f"{buttons}.length") == 2  # one result per data set
        page.evaluate(f"{buttons}[0].click()")
        chosen = page.evaluate("document.querySelector('.chosen').textContent")
        assert "output perturbation" in chosen and "10000" in chosen
        top = page.evaluate("document.querySelector('.chosen').getBoundingClientRect().top")
        assert 0 < top < 800 and page.evaluate("document.querySelector('.found').hidden")

        # Sources, claims and figures are found, too, and shown at the top, where nothing covers them.
        for words, found in (
            ("source chaudhuri privacy-preserving", "source-chaudhuri_monteleoni_2008"),
            ("claim cm08-4 chance", "cm08-4"),
            ("figure 2a separable", "cm08-figure_2a"),
        ):
            typed = f"f.value = '{words}'; f.dispatchEvent(new Event('input'))"
            page.evaluate(f"(f => {{ {typed} }})({field})")
            page.evaluate(f"{buttons}[0].click()")
            assert page.evaluate("document.querySelector('.chosen').id") == found
            box = f"document.getElementById('{found}').getBoundingClientRect()"
            assert page.evaluate(
                f"(b => document.getElementById('{found}').contains("
                f"document.elementFromPoint(b.left + 9, b.top + 9)))({box})"
            )
            listed = "document.querySelector('.found')"
            page.evaluate(f"(f => {{ {typed} }})({field})")
            assert page.evaluate(f"{listed}.getBoundingClientRect().left") >= 0
            assert page.evaluate(f"{listed}.getBoundingClientRect().right") <= 390

        shown = "getComputedStyle(document.querySelector('nav')).display"
        page.call("Emulation.setEmulatedMedia", media="print")
        assert page.evaluate(shown) == "none"
        page.call("Emulation.setEmulatedMedia", media="screen")
        assert page.evaluate(shown) != "none"

        dark = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(dark)
        page.evaluate("document.getElementById('theme').click()")
        assert page.evaluate(dark) != before

        assert page.named("Runtime.exceptionThrown") == []
        assert [e for e in page.named("Runtime.consoleAPICalled") if e["type"] == "error"] == []
        assert [e for e in page.named("Log.entryAdded") if e["entry"]["level"] == "error"] == []
        urls = [e["request"]["url"] for e in page.named("Network.requestWillBeSent")]
        assert urls and not [url for url in urls if not re.match("file:|data:", url)]
        assert sum(url.startswith("file:") for url in urls) == 1


def test_without_scripts_the_page_reads_whole(experiment, browser, tmp_path):
    from chromium import Chromium

    experiment.figures = {}
    file = tmp_path / "report.html"
    file.write_text(page_of(experiment), encoding="utf-8")
    with Chromium(browser, tmp_path / "profile", width=1000) as page:
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.open(file.as_uri())
        outline = page.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
        assert outline[0] == "Which method should I use?" and len(outline) == 5
        assert page.evaluate("document.querySelector('.search') === null")
        assert page.evaluate("document.querySelector('th button') === null")
        folded = "document.querySelector('#cm08 > details')"
        assert page.evaluate(f"{folded}.open = true; {folded}.querySelector('td').clientHeight > 5")


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
        urls = json.dumps([e["request"]["url"] for e in page.named("Network.requestWillBeSent")])
        assert "192.0.2.1" in urls
