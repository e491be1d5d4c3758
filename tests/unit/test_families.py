"""With `vary`, an entry of `methods` stands for one labelled method per combination of settings."""

import copy
import itertools
import json
import re

import pytest

from configured import changed, configured
from dp.mechanisms import MECHANISMS
from jobs.aggregate import COLUMNS
from project import ROOT
from study import lambdas
from study.configuration import families, publications, sources
from study.configuration.config import ConfigError
from study.configuration.experiment_keys import Method
from study.configuration.resolve import experiment as resolved
from study.configuration.validation import in_file, read_yaml

FAMILY = {
    "vary": {"dimensions": [4, None], "batch": [10, 5]},
    "mechanism": "dp_sgd",
    "options": {"loss": "huber"},
}
MEMBERS = [
    "sgd_dimensions4_batch10",
    "sgd_dimensions4_batch5",
    "sgd_dimensionsnull_batch10",
    "sgd_dimensionsnull_batch5",
]


@pytest.fixture(scope="module")
def loaded():
    return configured()[1:]


@pytest.fixture
def study(loaded):
    def make(methods, without=(), **changes):
        value = {
            "title": "A study",
            "datasets": ["wdbc_row_norm"],
            "folds": 5,
            "restarts": 2,
            "lambda": 0.01,
            "methods": methods,
            "sweeps": {"main": {"train_sizes": [400], "epsilons": [1]}},
        }
        value = copy.deepcopy(value | changes)
        return resolved("study", value, in_file("study.yaml"), loaded[1], without)

    return make


@pytest.mark.parametrize(
    ("value", "label", "cell"),
    [
        *((None, "null", "null"), (True, "true", "true"), (False, "false", "false")),
        *((1, "1", "1"), (0, "0", "0"), (1.0, "1", "1"), (0.5, "0p5", "0.5")),
        *((1e-5, "1em05", "1e-05"), (-2, "m2", "-2"), (0.1 + 0.2, "0p3", "0.3")),
        ("huber", "huber", "huber"),
    ],
)
def test_spelling(value, label, cell):
    ((actual, _),) = families.labels("f", Method(vary={"x": [value]}))
    assert (actual, families.shown(value)) == (f"f_x{label}", cell)


def test_members_are_what_one_writes_by_hand(study):
    by_hand = {
        f"sgd_{'all' if d is None else d}_{batch}": {
            "mechanism": "dp_sgd",
            "options": {"dimensions": d, "batch": batch, "loss": "huber"},
        }
        for d, batch in itertools.product([4, None], [10, 5])
    }
    family = FAMILY | {"label": "sgd_{dimensions}_{batch}"}
    expected = study(by_hand).methods
    actual = study({"sgd": family}).methods
    assert [label.replace("null", "all") for label in actual] == list(expected)
    assert list(actual.values()) == list(expected.values())
    assert [json.dumps(m.options) for m in actual.values()] == [
        json.dumps(m.options) for m in expected.values()
    ]


def test_lambda_is_varied_too(study):
    family = {"mechanism": "nonprivate", "vary": {"lambda": [0.5, 0.1], "penalty": ["l1"]}}
    experiment = study({"f": family})
    assert {label: method.lambda_ for label, method in experiment.methods.items()} == {
        "f_lambda0p5_penaltyl1": 0.5,
        "f_lambda0p1_penaltyl1": 0.1,
    }
    assert {m.options["penalty"] for m in experiment.methods.values()} == {"l1"}
    assert experiment.varied() == ["lambda", "penalty"]


def test_titles_are_filled_in_or_name_the_family(study):
    methods = study({"sgd": FAMILY | {"title": "{dimensions} columns"}}).methods
    assert [m.title for m in methods.values()] == ["4 columns"] * 2 + ["null columns"] * 2
    named = study({"sgd": FAMILY | {"title": "private"}})
    assert not any(method.title for method in named.methods.values())
    assert named.families["sgd"].title == "private"


def test_a_pattern_stands_for_the_labels_that_it_matches(study):
    experiment = study(
        {"nonprivate": {}, "sgd": FAMILY},
        sweeps={
            "main": {"train_sizes": [400], "epsilons": [1], "methods": ["nonprivate", "sgd_*"]},
            "both": {"train_sizes": [99], "epsilons": [1], "methods": ["*_batch5", MEMBERS[1]]},
        },
        tables={
            "errors": {"kind": "errors", "title": "T", "sweep": "main", "methods": ["sgd_*"]},
        },
        figures={
            "panels": {
                "kind": "accuracy_panels",
                "title": "T",
                "sweep": "main",
                "options": {"panels": {"a": ["nonprivate", "sgd_*"]}, "baseline": "nonprivate"},
            }
        },
    )
    assert experiment.sweeps["main"].methods == ["nonprivate", *MEMBERS]
    assert experiment.sweeps["both"].methods == [MEMBERS[1], MEMBERS[3]]
    assert experiment.tables["errors"].methods == MEMBERS
    assert experiment.figures["panels"].options["panels"]["a"] == ["nonprivate", *MEMBERS]
    assert {cell.method for cell in experiment.cells("main")} == {"nonprivate", *MEMBERS}


@pytest.mark.parametrize("name", ["sgd", "sdg_*"])
def test_a_familys_name_and_a_pattern_without_a_match_are_no_methods(study, name):
    sweep = {"train_sizes": [400], "epsilons": [1], "methods": [name]}
    with pytest.raises(ConfigError, match=f"sweeps.main.methods: no method '{re.escape(name)}'"):
        study({"sgd": FAMILY}, sweeps={"main": sweep})


def test_checks_name_the_members_of_a_family(loaded):
    value = read_yaml(ROOT / "config/sources/chaudhuri_monteleoni_2008/cm08.yaml")
    value["methods"]["family"] = {
        "mechanism": "dp_sgd",
        "vary": {"batch": [5, 50]},
        "label": "b{batch}",
    }

    def check(label):
        options = {"lower": label, "higher": "nonprivate"}
        checks = [{"kind": "lower_than", "options": options}]
        of_claims = value | {"claims": {"cm08-1": {"checks": checks}}}
        made = resolved("cm08", copy.deepcopy(of_claims), in_file("cm08.yaml"), loaded[1])
        publications.check(loaded[0] | {"cm08": made}, sources.load(), loaded[1])

    check("b50")
    for label in ("b500", "family"):
        with pytest.raises(ConfigError, match=f"no method '{label}'"):
            check(label)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"vary": {"dimension": [4]}},
            r"methods.sgd.vary: no option 'dimension'; did you mean 'dimensions'\?",
        ),
        (
            {"vary": {"batch": [10, 0.5]}},
            "methods.sgd.vary.batch: dp_sgd: batch must be a whole number of at least 1, not 0.5",
        ),
        ({"vary": {"lambda": [0]}}, "methods.sgd.vary.lambda: lambda must be a finite number > 0"),
        ({"vary": {"batch": 5}}, "methods.sgd.vary.batch: must be a list, not a number"),
        (
            {"label": "b{batch}"},
            "makes the label 'b10', which another method has.*tells them apart",
        ),
        ({"label": "nonprivate"}, "makes the label 'nonprivate', which another method has"),
        (
            {"label": "{dimensions}_{batches}"},
            "methods.sgd.label: names {batches}, which is not varied",
        ),
        (
            {"label": "{dimensions} {batch}"},
            "label '4 10': it may hold letters, digits and underscores",
        ),
        ({"options": {"batch": 7}}, "the method has 'batch' in 'options' too"),
        (
            {"lambda": "searched", "search": "rate"},
            "the method has 'batch' in 'searches.rate' too: leave it out of one of them",
        ),
        ({"mechanism": "dp_sdg"}, r"methods.sgd: no mechanism 'dp_sdg'; did you mean 'dp_sgd'\?"),
    ],
)
def test_mistakes_are_told_in_a_sentence(study, changes, message):
    searches = {"rate": {"method": "nonprivate", "grid": {"batch": [1]}, "folds": 2}}
    with pytest.raises(ConfigError, match=message) as caught:
        study({"nonprivate": {}, "sgd": FAMILY | changes}, searches=searches)
    assert str(caught.value).startswith("study.yaml: ") and "\n" not in str(caught.value)


def test_a_label_needs_a_vary(study):
    with pytest.raises(ConfigError, match=r"the key 'vary' is missing \('label' needs it\)"):
        study({"sgd": {"mechanism": "dp_sgd", "label": "x"}})


def test_values_of_searches_are_checked_too(study):
    searches = {"s": {"method": "sgd", "grid": {"lambda": [1], "batch": ["many"]}, "folds": 2}}
    with pytest.raises(ConfigError, match=r"searches.s.grid.batch: dp_sgd: batch must be a whole"):
        study({"sgd": {"mechanism": "dp_sgd"}}, searches=searches)


def test_overlays_change_a_family():
    changes = {
        "methods": {
            "dp_sgd_dimensions": {"vary": {"dimensions": [4, 50, 9]}, "lambda": 0.5},
            "sgd_d15": None,
        }
    }
    actual = changed("einarsson_sgd", **changes)["einarsson_sgd"]
    members = ["dp_sgd_d4", "dp_sgd_d50", "dp_sgd_d9"]
    assert [label for label in actual.methods if label.startswith("dp_sgd_d")] == members
    assert all(actual.methods[label].lambda_ == 0.5 for label in members)
    assert actual.methods["dp_sgd_d9"].options == {"dimensions": 9, "batch": 5}
    assert [label for label in actual.methods if label.startswith("sgd_d")] == [
        *("sgd_d50", "sgd_d100", "sgd_d200"),
    ]
    assert {"sgd_d200", "sgd_d50", *members} <= {c.method for c in actual.cells("dimensions")}
    assert "sgd_d15" not in {cell.method for cell in actual.cells()}


def test_no_option_has_the_name_of_a_column():
    """Varied options become columns of results.csv, so only `adjacency` may share a column's name."""
    for name, mechanism in MECHANISMS.items():
        assert set(mechanism.options) & set(COLUMNS) <= {"adjacency"}, name


SEARCH = {"grid": {"iterations": [5, 10]}, "folds": 2}


def selected(study, search=(), **method):
    method = {"mechanism": "dp_gd", "delta": 1e-6, "lambda": "selected", "search": "s"} | method
    methods = {"by_rule": {"mechanism": "dp_gd", "delta": 1e-6}, "m": method}
    return study(methods, searches={"s": {"method": "by_rule"} | SEARCH | dict(search)})


def test_settings_of_a_search_are_selected(study):
    search = {"selection": {"runs": 7, "law": "geometric"}}
    options = {"learning_rate": 2, "iterations": 3}  # the search's grid replaces this value
    experiment = selected(study, search, options=options)
    actual = experiment.methods["m"]
    assert actual.mechanism == "private_selection"
    assert actual.options == {
        "of": "dp_gd",
        "settings": {"learning_rate": 2},
        "grid": SEARCH["grid"],
        "runs": 7,
        "law": "geometric",
    }
    lam = experiment.regularisation(actual, "wdbc_row_norm", 400, 1.0)
    assert lam == lambdas.parse(lam.text) == lambdas.Selected()
    assert lam.file is None and lam.settings() == (None, {})


def test_members_of_a_family_select_each_for_itself(study):
    experiment = selected(study, vary={"learning_rate": [1, 2]})
    results = {label: m.options for label, m in experiment.methods.items() if label != "by_rule"}
    assert [options["settings"] for options in results.values()] == [
        {"learning_rate": 1},
        {"learning_rate": 2},
    ]
    assert all(options["grid"] == SEARCH["grid"] for options in results.values())


@pytest.mark.parametrize(
    ("search", "method", "message"),
    [
        ({"method": "m"}, {}, "searches.s.method: is selected from this grid itself"),
        ({"selection": {"runs": 1}}, {}, "mean above 1"),
        ({}, {"mechanism": "nonprivate"}, "no privacy to pay with"),
        ({"rows": "public"}, {"lambda": "searched"}, "neither public nor holdout rows"),
    ],
)
def test_mistakes_of_selections_are_told_in_a_sentence(study, search, method, message):
    with pytest.raises(ConfigError, match=message) as caught:
        selected(study, search, **method)
    assert "\n" not in str(caught.value)
