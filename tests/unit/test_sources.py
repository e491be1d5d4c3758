"""Each fault in published files, or in experiments' statements about them, is refused in one sentence."""

import ast
import copy
import re
from functools import cache

import pytest
import yaml

from configured import configured
from dp.mechanisms import MECHANISMS
from project import ROOT
from study import paths
from study.configuration import publications, sources
from study.configuration.config import ConfigError, load
from study.configuration.experiment import Experiment
from study.dependencies import canonical_code


@pytest.fixture(scope="module")
def known():
    _, experiments, datasets = configured()
    return experiments, sources.load(), datasets


def test_published_files_and_their_experiments_are_valid(known):
    publications.check(known[0], known[1], known[2])


def test_an_experiment_alone_is_what_it_is_among_all(known):
    # Results of the SGD experiment decide a claim of the logistic-regression experiment.
    for name, others in (("einarsson_logistic", {"einarsson_sgd"}), ("frontier_inference", set())):
        only = sources.concerned([name])
        assert only.keys() == {name} | others
        read = sources.load(only)
        assert read == {key: known[1][key] for key in read}
        _, alone, datasets = load({"seed": 1, "experiments": ["cm08"]}, only=only)
        publications.check(alone, read, datasets)
        for each, experiment in alone.items():
            assert experiment.to_json() == known[0][each].to_json()


def test_every_claim_and_defect_is_decided_or_says_why_not(known):
    experiments, published, _ = known
    for key, facts in published.items():
        own = [e for e in experiments.values() if e.source == key]
        if not own:
            continue
        for section in ("claims", "defects"):
            decided = {name for experiment in own for name in experiment.section(section)}
            assert set(facts.statements(section)) == decided, f"{key}: {section}"


def test_every_printed_table_is_compared_with_something(known):
    experiments, published, _ = known
    for key, facts in published.items():
        own = [e for e in experiments.values() if e.source == key]
        compared = {s.values.split("/")[1] for e in own for s in e.published.values()}
        assert not own or compared == set(facts.tables), key


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("published/figure_1/rows/0/dataset", "cm08_seperable", "did you mean 'cm08_separable'"),
        ("published/figure_1/rows/0/method", "output_pertubation", "did you mean 'output_perturb"),
        ("published/figure_1/rows/0/value", "old_method/separable", "has no 'old_method'"),
        ("published/figure_1/rows/0/value", "{size}", "unknown placeholder"),
        ("published/figure_1/layout", "number", "is not a number"),
        ("figures/figure_2c/options/printed_axis", "settings/axes", "settings has no 'axes'"),
        ("claims/cm08-1/checks/0/kind", "lower_then", "did you mean 'lower_than'"),
        ("claims/cm08-1/checks/0/options/lover", "x", "did you mean 'lower'"),
        ("claims/cm08-6/checks/0/analysis", "excess", "did you mean 'excess_risk'"),
        ("claims/cm08-6/checks/0/table", "figure_1", "no option 'table'"),
        ("claims/cm08-99", {"not_tested": "x"}, "has no such id"),
        ("defects/cm08-sd", {}, "needs either checks or not_tested"),
        ("source", "cm09", "'cm09' is not known"),
    ],
)
def test_mistakes_are_refused_with_the_nearest_name(known, path, value, message):
    experiments, published, datasets = known
    values = experiments["cm08"].settings()
    here = values
    *parents, last = path.split("/")
    for part in parents:
        here = here[int(part) if isinstance(here, list) else part]
    here[last] = value
    with pytest.raises(ConfigError, match=message) as caught:
        publications.check(experiments | {"cm08": Experiment("cm08", values)}, published, datasets)
    assert "\n" not in str(caught.value)


LOWER = "lower: nonprivate, higher: output_perturbation"
CHECKS = [
    (
        "lower_than",
        "lower: nonprivat, higher: x",
        "lower: no method 'nonprivat'; did you mean 'nonp",
    ),
    (
        "lower_than",
        f"{LOWER}, sweep: lerning",
        "sweep: no sweep 'lerning'; did you mean 'learning'",
    ),
    ("lower_than", f"{LOWER}, datasets: [cm08_seperable]", "did you mean 'cm08_separable'"),
    ("lower_than", f"{LOWER}, epsilon: smalest", "no value 'smalest'; did you mean 'smallest'"),
    ("lower_than", f"{LOWER}, epsilon: true", "must be a number or a list or text, not true/false"),
    ("lower_than", f"{LOWER}, share: 1e-1", "share: '1e-1' is text, not a number: write 0.1"),
    ("level", "method: nonprivate", "no option 'method'; did you mean 'methods'"),
    ("monotone", "along: epsilons", "along: no value 'epsilons'; did you mean 'epsilon'"),
    ("lower_than", f"{LOWER}, column: 3", "column: must be text, not a number"),
    (
        "lower_across",
        "method: nonprivate, epsilon: 1, experiment: einarson_sgd, other_method: x, other_epsilon: 1",
        "experiment: no experiment 'einarson_sgd'; did you mean 'einarsson_sgd'",
    ),
    (
        "neighbours_lose",
        "mechanism: dp_sdg, n: 9, d: 2, epsilon: 1, lam: 1",
        "mechanism: no mechanism 'dp_sdg'; did you mean 'dp_sgd'",
    ),
    (
        "printed",
        "left: tables/figure_1, operator: '=', right: 1",
        "left: tables/figure_1 is not a number",
    ),
    (
        "printed",
        "left: tables/figure_1/standard_lr/separable/0, operator: '>', right: 1",
        "operator: no operator '>'",
    ),
    ("cost_falls", "private: nonprivate, without: []", "private: must be a list, not text"),
]


@pytest.mark.parametrize(("kind", "options", "message"), CHECKS)
def test_names_and_values_in_checks(known, kind, options, message):
    experiments, published, datasets = known
    check = {"kind": kind, "options": yaml.safe_load(f"{{{options}}}")}
    claims = {"claims": {"cm08-1": {"checks": [check]}}}
    changed = Experiment("cm08", experiments["cm08"].values | claims)
    with pytest.raises(ConfigError, match=message) as caught:
        publications.check(experiments | {"cm08": changed}, published, datasets)
    expected = (
        "config/sources/chaudhuri_monteleoni_2008/source.yaml: claims.cm08-1.checks[0].options"
    )
    assert str(caught.value).startswith(expected) and "\n" not in str(caught.value)


def test_a_required_option_is_missed(known):
    experiments, published, datasets = known
    values = experiments["cm08"].settings()
    del values["claims"]["cm08-1"]["checks"][0]["options"]["higher"]
    with pytest.raises(ConfigError, match="the option 'higher' is missing"):
        publications.check({"cm08": Experiment("cm08", values)}, published, datasets)


def test_names_that_an_overlay_takes_away_or_adds_stay_valid(known):
    experiments, published, datasets = known
    values = experiments["cm08"].settings()
    del values["sweeps"]["table"], values["methods"]["output_perturbation"]
    publications.check({"cm08": Experiment("cm08", values)}, published, datasets)
    # dp_sgd_d4 is only in config/smoke.yaml.
    values = experiments["einarsson_sgd"].settings()
    assert "dp_sgd_d4" not in values["methods"]
    values["claims"] = {
        "e18-6": {"checks": [{"kind": "level", "options": {"methods": "dp_sgd_d4"}}]}
    }
    changed = experiments | {"einarsson_sgd": Experiment("einarsson_sgd", values)}
    publications.check(changed, published, datasets)


@pytest.mark.parametrize("printed", ["0.1", None, float("nan"), True, [0.1], {"a": 1}])
def test_what_is_printed_is_a_number(known, printed):
    experiments, published, datasets = known
    facts = copy.deepcopy(published["chaudhuri_monteleoni_2008"])
    facts.tables["figure_1"] = {"a": [0.1, printed]}
    spec = {"title": "x", "values": "tables/figure_1", "rows": [], "layout": "number"}
    row = {"dataset": "cm08_separable", "method": "nonprivate", "train_size": 1}
    for layout, path in (("number", "a/1"), ("mean_sd", "a")):
        spec |= {"layout": layout, "rows": [{**row, "value": path}]}
        values = experiments["cm08"].values | {"published": {"figure_1": spec}, "claims": {}}
        with pytest.raises(
            ConfigError, match=r"published.figure_1: tables/figure_1/a(/1)? is not a "
        ):
            publications.check({"cm08": Experiment("cm08", values)}, {facts.key: facts}, datasets)


def test_a_source_needs_neither_settings_nor_defects(tmp_path, monkeypatch):
    from study import facts

    (tmp_path / "made.yaml").write_text(
        "key: made\nshort: M\ntables: {t: {row: [1]}}\nclaims: [{id: a, says: x}]\n"
    )
    monkeypatch.setattr(facts, "files", lambda: {"made": tmp_path / "made.yaml"})
    loaded = sources.load()["made"]
    assert loaded == facts.read("made")
    assert loaded.settings == {} and loaded.statements("defects") == {}
    (tmp_path / "made.yaml").write_text("key: made\nshort: M\n")
    assert sources.load()["made"] == facts.read("made")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("key: other\n", "must be 'made'"),
        ("claim: []\n", "unknown key 'claim'; did you mean 'claims'"),
        ("tables: {t: {row: [1, null]}}\n", "must be"),
        ("tables: {t: none}\n", "is neither a number nor a .csv file"),
        ("tables: {t: absent.csv}\n", "cannot be read"),
        ("claims: [{id: a, says: x}, {id: a, says: y}]\n", "duplicate id 'a'"),
        ("figures: {4.1: x, 4.10: y}\n", "duplicate key"),
    ],
)
def test_published_files_are_validated(tmp_path, monkeypatch, text, message):
    from study import facts

    whole = {"key": "made", "short": "M", "settings": {}, "tables": {}, "claims": [], "defects": []}
    key = text.partition(":")[0]
    whole.pop(key, None)
    (tmp_path / "made.yaml").write_text(yaml.safe_dump(whole) + text)
    monkeypatch.setattr(facts, "files", lambda: {"made": tmp_path / "made.yaml"})
    with pytest.raises(ConfigError, match=message):
        sources.load()


@cache
def content(path):
    """The text that counts: without comments, docstrings and references to equal statements."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return "{} {}".format(*canonical_code(ast.parse(text)))
    return re.sub(r"^ *(#|again: ).*$", "", text, flags=re.MULTILINE)


def test_outside_its_two_folders_a_source_stands_in_few_lists():
    texts = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for folder in ("config", "scripts", "workflow")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".yaml", ".py", ".smk")
    }
    del texts["scripts/tools/explain_config.py"]
    of_source, experiments = {}, sources.experiments()
    for name, path in sources.experiment_files().items():
        of_source.setdefault(paths.source_of(path), []).append(name)
    lists = {"config/config.yaml", "config/smoke.yaml", "config/datasets.yaml", "config/files.yaml"}
    for key in sources.load():
        ours = {
            f"config/experiments/{name}.yaml"
            for name in of_source[None]
            if experiments[name][0].get("source") == key
        }
        own = [name for name in of_source.get(key, ()) if name not in MECHANISMS]
        names = re.compile(rf"\b({'|'.join([key, *own])})\b")
        files = {
            path
            for path, text in texts.items()
            if names.search(text)
            and names.search(content(ROOT / path))
            and not path.startswith((f"config/sources/{key}/", f"scripts/sources/{key}/"))
        }
        assert files <= lists | ours, key


def test_every_source_says_in_ten_lines_where_one_starts():
    for path in (ROOT / "config/sources").iterdir():
        lines = (path / "README.md").read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 10 and any("source.yaml" in line for line in lines), path.name


def test_what_says_the_same_exists_and_counts():
    statements = [
        entry
        for source in sources.load().values()
        for section in ("claims", "defects")
        for entry in source.statements(section).values()
    ]
    counted = {entry.id for entry in statements if not entry.again}
    again = {entry.again for entry in statements if entry.again}
    assert again and again <= counted


def test_numbers_of_a_defect_must_be_printed(tmp_path, monkeypatch):
    folder = tmp_path / "config/sources/made_2020"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    text = "key: made_2020\nshort: M\ntables: {t: {a: [1, 2]}}\n"
    text += "defects: [{id: d, what: w, numbers: [tables/t/b/0], not_tested: x}]\n"
    (folder / "source.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"defects\.d\.numbers: tables/t has no 'b'"):
        sources.load()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("headline_number: tables/t/b/0", "headline_number: tables/t has no 'b'"),
        ("headline_claims: [c-2]", "headline_claims: no claim 'c-2'; did you mean 'c-1'"),
        ("headline_original: '2'", "headline_original: no key '2' in figures"),
        ("link: page 3", "link: "),
        ("stated: {rows: {file: s}}", "stated: no reading 'rows'"),
        (
            "stated: {r: {fiel: s}}",
            "stated.r: the reading has no value 'fiel'; did you mean 'file'",
        ),
    ],
)
def test_a_headline_names_what_the_file_has(tmp_path, monkeypatch, line, message):
    folder = tmp_path / "config/sources/made_2020"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    text = "key: made_2020\nshort: M\ntables: {t: {a: [1, 2]}}\nfigures: {1: curve}\n"
    text += "claims: [{id: c-1, says: s, not_tested: x}]\n"
    text += "readings: {r: {open: o, main: shuffled, others: {file: {}}}}\n"
    good = "headline_number: tables/t/a/0\nheadline_claims: [c-1]\nheadline_original: '1'\n"
    good += "stated: {r: {file: s}}\n"
    (folder / "source.yaml").write_text(text + good)
    assert sources.load()["made_2020"].headline_claims == ["c-1"]
    (folder / "source.yaml").write_text(text + line + "\n")
    with pytest.raises(ConfigError, match=re.escape(message)):
        sources.load()
