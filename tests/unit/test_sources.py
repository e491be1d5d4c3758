"""The published files, and what experiments say about them: what is wrong is refused in one sentence."""

import copy

import pytest

from study import sources
from study.config import ConfigError, load
from study.experiment import Experiment


@pytest.fixture(scope="module")
def known():
    _, experiments, datasets = load({"seed": 1, "experiments": ["cm08"]})
    return experiments, sources.load(), datasets


def test_what_stands_is_valid(known):
    sources.check(known[0], known[1], known[2])


def test_every_claim_and_defect_is_decided_or_says_why_not(known):
    experiments, published, _ = known
    for key, source in published.items():
        own = [e for e in experiments.values() if e.values.get("source") == key]
        if not own:
            continue
        for section in ("claims", "defects"):
            decided = {name for experiment in own for name in experiment.values[section]}
            assert set(source.statements(section)) == decided, f"{key}: {section}"


def test_every_printed_table_is_compared_with_something(known):
    experiments, published, _ = known
    for key, source in published.items():
        own = [e for e in experiments.values() if e.values.get("source") == key]
        compared = {s["values"].split("/")[1] for e in own for s in e.published.values()}
        assert not own or compared == set(source.values["tables"]), key


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("published/figure_1/rows/0/dataset", "cm08_seperable", "did you mean 'cm08_separable'"),
        ("published/figure_1/rows/0/method", "output_pertubation", "did you mean 'output_perturb"),
        ("published/figure_1/rows/0/value", "old_method/separable", "has no 'old_method'"),
        ("published/figure_1/rows/0/value", "{size}", "unknown placeholder"),
        ("published/figure_1/layout", "number", "is not a number"),
        ("claims/cm08-1/checks/0/kind", "lower_then", "did you mean 'lower_than'"),
        ("claims/cm08-1/checks/0/options/lover", "x", "did you mean 'lower'"),
        ("claims/cm08-6/checks/0/analysis", "excess", "did you mean 'excess_risk'"),
        ("claims/cm08-99", {"checks": []}, "has no such id"),
        ("defects/cm08-sd", {}, "needs either checks or not_tested"),
        ("source", "cm09", "'cm09' is not known"),
    ],
)
def test_mistakes_are_refused_with_the_nearest_name(known, path, value, message):
    experiments, published, datasets = known
    values = copy.deepcopy(experiments["cm08"].values)
    here = values
    *parents, last = path.split("/")
    for part in parents:
        here = here[int(part) if isinstance(here, list) else part]
    here[last] = value
    with pytest.raises(ConfigError, match=message) as caught:
        sources.check({"cm08": Experiment("cm08", values)}, published, datasets)
    assert "\n" not in str(caught.value)


def test_a_required_option_is_missed(known):
    experiments, published, datasets = known
    values = copy.deepcopy(experiments["cm08"].values)
    del values["claims"]["cm08-1"]["checks"][0]["options"]["higher"]
    with pytest.raises(ConfigError, match="the option 'higher' is missing"):
        sources.check({"cm08": Experiment("cm08", values)}, published, datasets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("key: other\n", "must be 'made'"),
        ("claim: []\n", "unknown key 'claim'; did you mean 'claims'"),
        ("tables: {t: {row: [1, null]}}\n", "must be"),
        ("tables: {t: none}\n", "is no number and no .csv file"),
        ("tables: {t: absent.csv}\n", "cannot be read"),
        ("claims: [{id: a, says: x}, {id: a, says: y}]\n", "'a' stands twice"),
        ("figures: {4.1: x, 4.10: y}\n", "stands twice"),
    ],
)
def test_published_files_are_validated(tmp_path, monkeypatch, text, message):
    import yaml

    from checks import source

    whole = {"key": "made", "short": "M", "settings": {}, "tables": {}, "claims": [], "defects": []}
    key = text.partition(":")[0]
    whole.pop(key, None)
    (tmp_path / "made.yaml").write_text(yaml.safe_dump(whole) + text)
    monkeypatch.setattr(source, "FOLDER", tmp_path)
    with pytest.raises(ConfigError, match=message):
        sources.load()
