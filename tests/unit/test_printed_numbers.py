"""Every number that a source prints is in its source.yaml, and in published.csv next to this project's.

A person wrote the printed.yaml beside each source.yaml from the source itself:

    results:    # what the source measured or chose: its `tables` contain these and no others
      <place>: {at: <path in source.yaml>, values: [..]}     # or count: <n>, for a long table
    again:      # results that the text repeats elsewhere
      <place>: {<path of one number>: <the number>}
    settings:   # what the source set: source.yaml contains these among others
      <place>: {at: <path>, values: [..]}
    by_claim:       # claim -> results, as a pattern, that it judges together
    without_ours:   # results that this project compares with no number of its own
      <why>: [<path>, ..]
"""

import fnmatch
import re
from collections import Counter

import pytest
import yaml

from configured import configured
from project import ROOT
from study import canonical
from study.configuration.experiment import Reading
from study.configuration.printed_values import expand
from study.configuration.sources import load as load_sources

FILES = sorted((ROOT / "config/sources").glob("[!_]*/printed.yaml"))


@pytest.fixture(scope="module")
def sources():
    return load_sources()


@pytest.fixture(scope="module")
def experiments():
    return configured()[1]


@pytest.fixture(params=FILES, ids=lambda path: path.parent.name)
def printed(request):
    empty = {"results": {}, "again": {}, "settings": {}, "by_claim": {}, "without_ours": {}}
    return request.param.parent.name, empty | yaml.safe_load(
        request.param.read_text(encoding="utf-8")
    )


def leaves(value, path):
    """Path -> number or string, for each one that a value contains."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return {path: value}
    values = {}
    for key, item in items:
        number = isinstance(key, (int, float))
        values |= leaves(item, f"{path}/{canonical.epsilon(key) if number else key}")
    return values


def numbers(value):
    """Count each number, also in strings."""
    counts = Counter()
    for path, leaf in leaves(value, "").items():
        if isinstance(leaf, (int, float)):
            counts[float(leaf)] += 1
        elif isinstance(leaf, str):
            counts.update(map(float, re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", leaf)))
        assert leaf is None or isinstance(leaf, (int, float, str)), path
    return counts


def table_numbers(source):
    """All numbers in a source's tables, by path, without column names."""
    paths = leaves(source.tables, "tables")
    return {path: value for path, value in paths.items() if "/columns/" not in path}


def test_every_source_has_a_list(sources):
    assert sorted(sources) == [path.parent.name for path in FILES]


def test_every_result_is_stored_and_no_other(printed, sources):
    key, places = printed
    stored, wanted = table_numbers(sources[key]), 0
    for place, entry in places["results"].items():
        here = [value for path, value in stored.items() if f"{path}/".startswith(f"{entry['at']}/")]
        if "count" in entry:
            assert len(here) == entry["count"], place
        else:
            assert Counter(map(float, here)) == numbers(entry["values"]), place
        wanted += len(here)
    assert wanted == len(stored), "source.yaml has results that the list does not"


def test_what_a_text_repeats_is_what_its_table_prints(printed, sources):
    key, places = printed
    for place, values in places["again"].items():
        for path, value in values.items():
            assert sources[key].look_up(path) == value, f"{place}: {path}"


def test_every_setting_is_stored(printed, sources):
    key, places = printed
    for place, entry in places["settings"].items():
        stored = numbers(sources[key].look_up(entry["at"]))
        missing = [value for value in entry["values"] if float(value) not in stored]
        assert not missing, f"{place}: {missing}"


def test_every_result_has_a_row_of_published_csv(printed, sources, experiments):
    key, places = printed
    compared = set()
    for experiment in experiments.values():
        if experiment.source != key or isinstance(experiment, Reading):
            continue
        for spec in experiment.published.values():
            ends = ("/0", "/1") if spec.layout == "mean_sd" else ("",)
            compared |= {item["path"] + end for item in expand(spec) for end in ends}
    without = tuple(f"{path}/" for each in places["without_ours"].values() for path in each)
    stored = {path for path in table_numbers(sources[key]) if not f"{path}/".startswith(without)}
    for claim, pattern in places["by_claim"].items():
        assert claim in sources[key].statements("claims")
        compared |= set(fnmatch.filter(stored, pattern))
    assert stored == compared
