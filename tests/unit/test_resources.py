from types import SimpleNamespace

import pytest

from project import ROOT
from study.configuration.data_set_keys import DataSet
from study.configuration.validation import validate

COMPONENT = {"class": "a", "mean": [0, 1], "deviation": [1, 1]}
TABLE = {"bounds": {"a": [0, 1], "b": [0, 1]}, "categories": {"c": ["u", "v", "w"]}}


@pytest.mark.parametrize(
    "source, megabytes",
    [
        ({"simulate": "separable", "rows": 9 * 10**6, "holdout": 10**6, "columns": 10}, 800),
        ({"simulate": "mixture", "rows": 100, "components": [COMPONENT, COMPONENT]}, 0.0016),
        ({"sklearn": "digits", "rows": 10**9}, 0),
        ({"csv": "not_here.csv", "rows": 10**7}, 80 * 5),
    ],
)
def test_memory_grows_with_the_rows(source, megabytes):
    """The declared size determines memory, so the file need not exist."""
    entry = {"source": source} | (TABLE if "csv" in source else {})
    rules = {"DATASETS": {"mine": validate(entry, DataSet, "made.yaml")}}
    exec((ROOT / "workflow/rules/resources.smk").read_text(), rules)
    wildcards = SimpleNamespace(dataset="mine")
    for attempt, factor in ((1, 1), (3, 4)):
        memory = rules["memory"](100, copies=2)(wildcards, attempt)
        assert memory == factor * (300 + 1.5 * max(100, 2 * megabytes))
        assert rules["memory"](100)(wildcards, attempt) == factor * 450
