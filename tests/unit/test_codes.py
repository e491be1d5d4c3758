"""Codes in YAML, such as 010 and 14:00, stand for their text, or are refused."""

import datetime
import re

import pytest

from study.configuration.data_set_keys import DataSet, Rows
from study.configuration.validation import ConfigError, read_yaml
from study.data import readers

# All forms of plain scalars that YAML 1.1 (and PyYAML) converts: https://yaml.org/type/
CONVERTED = [
    *["~", "Null", "yes", "No", "TRUE", "false", "on", "Off"],
    *["0", "-7", "+7", "1_000", "010", "-010", "0b101", "0x1F", "14:00", "190:20:30"],
    *["1.0", "-1.5", "1.50", ".5", "5.", "1_0.5", "2.5E-1", "190:20:30.15"],
    *[".inf", "-.Inf", "+.INF", ".nan", ".NaN", ".NAN", "0.1234567890123456789", "1.0e+999"],
    *["2024-01-01", "2024-02-30", "2001-12-14t21:59:43.10-05:00"],
    "2001-12-14 21:59:43",
    *["<<", "="],
]
# Text, although other programs convert them.
TEXT = ["y", "n", "08", "1e3", "0o17", "06:0:0:a", "_1", "N/A", "1.2.3"]


@pytest.mark.parametrize("text", CONVERTED + TEXT)
def test_a_code_in_yaml_is_its_text_or_refused(text, tmp_path):
    place, rows = tmp_path / "datasets.yaml", tmp_path / "t.csv"
    entry = (
        f"t:\n  source: {{csv: {rows}}}\n  label: y\n  positive: p\n"
        f"  categories: {{c: [{text}, other]}}"
    )
    place.write_text(entry)
    rows.write_text(f"c,y\n{text},p\nother,q\n")
    try:
        values = read_yaml(place)["t"]
    except ConfigError as problem:
        assert re.fullmatch(
            rf"{place}: line 5: categories: {re.escape(text)} is .+ in YAML: write it in quotes",
            str(problem),
        )
        assert text not in TEXT
        quoted = entry.replace(f"[{text},", f'["{text}",')
        place.write_text(quoted)
        values = read_yaml(place)["t"]
        assert values["categories"]["c"] == [text, "other"]
    # What is not refused is found in the file as it stands there: "other" comes after it.
    source = Rows(csv=values["source"]["csv"])
    dataset = DataSet.model_construct(**values | {"source": source})
    assert readers.read(dataset, "t").X.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("missing", "{c: 010}"),
        ("missing", "{c: {codes: [9, 010]}}"),
        ("missing", "{010: drop}"),
        ("categories", "{010: [a, b]}"),
        ("bounds", "{010: [0, 1]}"),
        ("steps", "[{scale_range: {010: [0, 1]}}]"),
        ("label", "010"),
        ("positive", "010"),
        ("positive", "[a, 010]"),
        ("positive", "{above: 010}"),
        ("negative", "010"),
        ("classes", "[a, b, 010]"),
        ("reference", "{c: 010}"),
        ("target", "{column: 010, bounds: [0, 1]}"),
        ("source", "{csv: t.csv, names: [010, b]}"),
    ],
)
def test_codes_are_checked_wherever_they_are_written(key, value, tmp_path):
    place = tmp_path / "datasets.yaml"
    place.write_text(f"t:\n  title: 010\n  {key}: {value}\n")
    with pytest.raises(
        ConfigError, match=r"line 3: \w+: 010 is the number 8 in YAML: write it in quotes"
    ):
        read_yaml(place)
    place.write_text(f"t:\n  title: 010\n  {key}: {value.replace('010', repr('010'))}\n")
    read_yaml(place)


def test_other_values_in_yaml_stay_as_yaml_reads_them(tmp_path):
    place = tmp_path / "datasets.yaml"
    place.write_text(
        "names: [a, null, ~]\nbounds: {a: [010, 1]}\npositive: true\nwhen: 2024-01-01\n"
    )
    values = read_yaml(place)
    assert values["names"] == ["a", None, None] and values["positive"] is True
    assert values["bounds"] == {"a": [8, 1]} and values["when"] == datetime.date(2024, 1, 1)
    place.write_text("title: 2024-02-30\n")
    with pytest.raises(ConfigError, match=r"not valid YAML \(day .*\): write text in quotes"):
        read_yaml(place)
    place.write_text("a: &b {c: 1}\nd: {<<: *b, e: 2}\n")
    assert read_yaml(place)["d"] == {"c": 1, "e": 2}
    place.write_text("a: &b {c: ['01']}\ncategories: {<<: *b, e: [f]}\n")
    assert read_yaml(place)["categories"] == {"c": ["01"], "e": ["f"]}
    place.write_text("a: &b {c: [010]}\ncategories: {<<: *b, e: [f]}\n")
    with pytest.raises(ConfigError, match="line 1: categories: 010 is the number 8"):
        read_yaml(place)
    place.write_text("[a, b]: c\n")
    with pytest.raises(ConfigError, match=r"line 1: not valid YAML \(a key must be text\)"):
        read_yaml(place)
