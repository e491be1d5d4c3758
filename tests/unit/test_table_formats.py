"""Tables as other programs export them: a benchmark and a release read the same cells, or say why not.

A table that is known is written in the manner of a program, and must be read as it was. The benchmark's
reader and the release's have only the definition of the keys in common.
"""

import codecs
import csv
import encodings.aliases
import gzip
import io
import math

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_privacy.errors import Refused
from dp_release import files, making, rows, using
from dp_release.formats import SINGLE_BYTE, Format
from study import paths
from study.configuration import releases
from study.configuration.data_set_keys import DataSet, Rows
from study.data import origins, readers

N = 60
AGES = [20 + 7 * k % 61 for k in range(N)]
INCOMES = [round(17.3 * k % 97 + 1000 * (k % 4), 1) for k in range(N)]
SEXES = [("weiblich", "männlich")[k % 5 // 3] for k in range(N)]
ILL = [("nein", "ja")[k % 7 // 4] for k in range(N)]
TABLE = list(zip(range(N), AGES, INCOMES, SEXES, ILL, strict=True))
NAMES = ["id", "age", "income", "sex", "ill"]
BOUNDS = {"age": [18, 90], "income": [0, 5000]}
ENTRY = {
    "label": "ill",
    "positive": "ja",
    "bounds": BOUNDS,
    "categories": {"sex": ["weiblich", "männlich"]},
}
RELEASE = {
    "data": "clinic",
    "rows": N,
    "unit": "one row is one person",
    "budget": {"epsilon": 2, "delta": 2e-6},
    "epsilon": 1,
    "delta": 1e-6,
    "method": "noise_aware_logistic",
    "premise": "chosen without these rows",
}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Function from a file's content, keys of `source:` and changes to (entry, loader of a release)."""

    def make(content, source=None, entry=None, release=None, name="rows.csv"):
        (tmp_path / name).write_bytes(content)
        dataset = ENTRY | {"source": {"csv": str(tmp_path / name), **(source or {})}}
        dataset |= entry or {}
        values = RELEASE | {"book": str(tmp_path / "clinic.book")} | (release or {})
        (tmp_path / "datasets.yaml").write_text(yaml.safe_dump({"clinic": dataset}))
        (tmp_path / "model.yaml").write_text(yaml.safe_dump(values))
        own = {
            "datasets.yaml": [tmp_path / "datasets.yaml"],
            "releases/*.yaml": [tmp_path / "model.yaml"],
        }
        shipped = paths.configuration

        def load():
            with monkeypatch.context() as patch:
                patch.setattr(
                    paths, "configuration", lambda *names: own.get(names[0]) or shipped(*names)
                )
                return releases.load("model")

        return dataset, load

    return make


def benchmark(dataset):
    """The table, after the checks of a configuration."""
    resolved = DataSet.model_validate(dataset | {"steps": []})
    origins.resolve("clinic", resolved, {})
    readers.check_columns(resolved)
    return readers.read(resolved, "clinic")


def released(load):
    """(numbers (n, 2), category or -1, label) of a release's rows, from its integers."""
    asked = load()
    schema = rows.from_facts(asked.request.schema)
    lines = rows.split_lines(making.data_of(asked.path), asked.header, schema.format)
    V, y = schema.rows(lines, asked.request.rows)
    numbers = []
    for name, (low, high) in BOUNDS.items():
        share = V[:, schema.names.index(name)] / schema.each
        numbers.append((share * (high - low) + high + low) / 2)
    male = V[:, schema.names.index("sex=männlich")] > 0
    return np.column_stack(numbers), np.where(y == 0, -1, male), y


def said(load):
    asked = load()
    book = asked.book
    return making.preview(asked.request, book, asked.path, asked.header)


def check(dataset, load, kept=range(N), records=TABLE):
    """Both read the records, except that a release's rows of others than `kept` are zeros."""
    table = benchmark(dataset)
    expected = [
        [age, income, sex == "weiblich", sex == "männlich"] for _, age, income, sex, _ in records
    ]
    assert table.X.tolist() == expected
    assert table.y.tolist() == [1 if ill == "ja" else -1 for *_, ill in records]
    numbers, male, y = released(load)
    kept = np.isin(np.arange(len(y)), list(kept))
    np.testing.assert_allclose(numbers[kept], [row[:2] for row in expected], atol=0.01)
    assert male[kept].tolist() == [row[3] for row in expected]
    assert (y[kept] == table.y).all() and not y[~kept].any()


def written(records=TABLE, names=NAMES, delimiter=",", decimal=".", end="\n", **how):
    """A CSV file's text."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, **how)
    writer.writerow(names)
    for record in records:
        writer.writerow(
            [
                str(cell).replace(".", decimal) if isinstance(cell, float) else cell
                for cell in record
            ]
        )
    return out.getvalue()


def german(**how):
    return written(delimiter=";", decimal=",", **how)


GERMAN = {"delimiter": ";", "decimal": ","}
SPREADSHEET = ("\ufeff" + german(end="\r\n")).encode()
PADDED = "".join(
    f"{name:<12}\t" if k < 4 else f"{name}   \r\n"
    for row in [NAMES, *TABLE]
    for k, name in enumerate(row)
)
EXPORTS = {
    "a spreadsheet's semicolons, with a mark of UTF-8": (SPREADSHEET, GERMAN),
    "the same with a line sep=": (b"\xef\xbb\xbfsep=;\r\n" + SPREADSHEET[3:], GERMAN),
    "a program for DOS": (german().encode("cp850"), GERMAN | {"encoding": "cp850"}),
    "an old Macintosh": (
        written(delimiter="\t").encode("mac-roman"),
        {"delimiter": "\t", "encoding": "macroman"},
    ),
    "quoted cells": (written(quoting=csv.QUOTE_ALL).encode(), {}),
    "tabs with blanks around cells": (PADDED.encode(), {"delimiter": "\t"}),
    "bars, also at the ends of lines": (written(delimiter="|", end="|\n").encode(), {"delimiter": "|"}),
    "an office's title": (
        ("Tabelle 4.1; Befragung\n\nStand: \"2025\n" + german()).encode("latin-1"),
        GERMAN | {"encoding": "latin-1", "header": 4},
    ),
    "comments above the names": (
        ("# made by a device\n# 3 channels\n\n" + written()).encode(),
        {"comment": "#"},
    ),
    "compressed": (gzip.compress(written().encode()), {}),
    "numbers with exponents": (
        written([(k, f"{a:e}", f"{i:+.6E}", s, y) for k, a, i, s, y in TABLE]).encode(),
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_is_read_as_it_was(study, name):
    content, source = EXPORTS[name]
    dataset, load = study(
        content, source, name="rows.csv.gz" if name == "compressed" else "rows.csv"
    )
    check(dataset, load)
    assert said(load)[1] == f"0 lines (0.0%) of {N} would count nothing."


def test_a_file_without_names(study):
    content = written().partition("\n")[2].encode()
    check(*study(content, {"names": NAMES}))


def test_notes_below_a_table_are_no_rows_in_a_benchmark_and_count_nothing_in_a_release(study):
    text = (
        written()
        + "\n__________\n_ Source: made up, simulated, by hand, without rounding, in one go\n"
    )
    dataset, load = study(text.encode(), {"comment": "_"}, release={"rows": N + 3})
    check(dataset, load)
    preview = said(load)
    assert (
        preview[1]
        == f"3 lines (4.8%) of {N + 3} would count nothing, 3 for another number of cells."
    )
    assert preview[2].startswith("2 lines (3.2%) are comments, which count nothing")
    # A row that somebody has commented out has all cells.
    lines = written().splitlines(keepends=True)
    lines[5] = "#" + lines[5]
    dataset, load = study("".join(lines).encode(), {"comment": "#"})
    left = [record for k, record in enumerate(TABLE) if k != 4]
    check(dataset, load, [k for k in range(N) if k != 4], left)
    # Without the key, a benchmark names it.
    dataset, load = study(text.encode())
    with pytest.raises(ValueError, match=r"row 63 has 1 cell, .* set `comment` to the text"):
        benchmark(dataset)


def replaced(age, income, sex, ill):
    """The table with these values in the 2nd, 3rd, 4th and 5th of ten rows."""
    new = {1: age, 2: income, 3: sex, 4: ill}
    return [
        tuple(new.get(j, cell) if k % 10 == j else cell for j, cell in enumerate(record))
        for k, record in enumerate(TABLE)
    ]


CODED = replaced(999, -9.0, "99", "9")
CODES = {
    "age": {"codes": [997, 999], "is": 40},
    "income": {"codes": [-9], "is": 1500.5},
    "sex": {"codes": ["99"], "is": "männlich"},
    "ill": {"codes": [9], "is": "nein"},
}
FILLED = replaced(40, 1500.5, "männlich", "nein")


@pytest.mark.parametrize("export", [written, german])
def test_codes_of_missing_values(study, export):
    """As SPSS writes them: 999, -9 (-9,0), 99 and 9, which by value is 9,0."""
    source = GERMAN if export is german else {}
    how = {"delimiter": ";", "decimal": ","} if export is german else {}
    content = written(CODED, **how).encode()
    dataset, load = study(content, source, {"missing": CODES})
    check(dataset, load, records=FILLED)
    assert "ill: 6 cells are missing, replaced by the stated value." in said(load)
    # Without a replacement, a benchmark names the code and the rule, and a release has rows of zeros.
    dataset, load = study(content, source, {"missing": CODES | {"ill": {"codes": [9]}}})
    with pytest.raises(
        ValueError,
        match=r"column 'ill', row 6: '9' is a code .*`missing: \{ill: \{codes: \[9\], is: drop",
    ):
        benchmark(dataset)
    _, _, y = released(load)
    assert [k for k in range(N) if not y[k]] == list(range(4, N, 10))
    # In a benchmark, the rows can be left out.
    rule = CODES | {"ill": {"codes": [9], "is": "drop"}}
    table = benchmark(dataset | {"missing": rule})
    assert len(table.y) == N - N // 10
    # "*" is for all columns without a rule of their own, also the label.
    _, load = study(content, source, {"missing": {"*": {"codes": [999, -9, 99, 9]}}})
    _, _, y = released(load)
    assert [k for k in range(N) if not y[k]] == [k for k in range(N) if k % 10 in (1, 2, 3, 4)]


def test_undeclared_codes_are_shown(study):
    _, load = study(
        written(CODED).encode(), entry={"bounds": {"age": [18, 1000], "income": [-10, 5000]}}
    )
    preview = said(load)
    assert any(
        line.startswith("age: 6 numbers are 999, beyond 98 % of the others.")
        and line.endswith("`missing: {age: {codes: [999]}}`.")
        for line in preview
    )
    assert any("'9' (6)" in line for line in preview)
    assert any(line.startswith("sex: 6 cells are no number or in no category") for line in preview)
    _, load = study(written(CODED).encode(), release={"negative": "nein"})
    assert any("neither 'nein' nor 'ja'" in line and "'9'" in line for line in said(load))


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        (list(range(13)) * 50, []),  # a scale has ends
        ([0, 1] * 300, []),
        (list(range(18, 91)) * 10 + [99] * 30, ["99"]),
        ([1, 2, 3, 4, 5] * 100 + [98] * 10 + [99] * 20, ["98", "99"]),
        ([1, 2, 3, 4, 5] * 100 + [-9] * 10 + [-8] * 20 + [9] * 7, ["9", "-9", "-8"]),
        (list(np.linspace(90, 180, 1000)) + [0] * 40, ["0"]),  # a blood pressure
        (list(np.linspace(90, 180, 1000)) + [0] * 10, []),  # one in a hundred, but no more
        (list(range(100)) * 10 + [50] * 300, []),  # frequent, but in the middle
        ([7] * 500, []),
    ],
)
def test_numbers_that_stand_apart(numbers, found):
    from dp_release import preview

    schema = rows.Schema([rows.Number("x", -1000, 1000), rows.Number("y", 0, 1)], "y")
    looked = preview.preview(schema, [f"{x},1".encode() for x in numbers], len(numbers)).columns[0]
    assert set(looked.suspects(len(numbers))) == set(found)


def test_what_stands_between_thousands_is_never_misread(study):
    """1.234 is no 1.234 where numbers have a decimal comma, and 1,234 no 1.234 elsewhere."""
    for cell, source, likely in (
        (
            "1.234,5",
            GERMAN,
            "a point, or marks between thousands; write numbers in the file like 1234,5",
        ),
        ("1.234", GERMAN, "a point, or marks between thousands"),
        ("1 234,5", GERMAN, "a point, or marks between thousands"),
        ("1,234", {"delimiter": ";"}, 'a decimal comma (set `decimal: ","`), or marks between'),
        ("1'234.5", {"delimiter": ";"}, 'a decimal comma (set `decimal: ","`), or marks between'),
    ):
        records = [(k, a, cell if k == 3 else k, s, y) for k, a, _, s, y in TABLE]
        dataset, load = study(written(records, delimiter=";").encode(), source)
        with pytest.raises(ValueError) as error:
            benchmark(dataset)
        assert f"column 'income', row 5: {cell!r} is not a number: it has {likely}" in str(
            error.value
        )
        assert any(line.startswith(f"income: 1 cells have {likely}") for line in said(load))
        _, _, y = released(load)
        assert np.flatnonzero(y == 0).tolist() == [3]


def test_letters_in_another_encoding_are_named_and_never_lost_unseen(study):
    content = german().encode("cp1252")
    dataset, load = study(content, GERMAN)
    with pytest.raises(
        ValueError, match=r"not UTF-8 text: row 5, column 4 is likely 'männlich'; set `enc"
    ):
        benchmark(dataset)
    assert any(
        "line 4 below the names, it is likely 'männlich', so set" in line for line in said(load)
    )
    _, _, y = released(load)
    assert [k for k in range(N) if y[k]] == [k for k in range(N) if SEXES[k] == "weiblich"]
    # The other way round, too.
    dataset, load = study(german().encode(), GERMAN | {"encoding": "latin-1"})
    assert any("so set `encoding: utf-8`" in line for line in said(load))
    with pytest.raises(Refused, match="cannot be in a file of the encoding ascii"):
        rows.Schema(
            [rows.Category("sex", ("männlich", "w")), rows.Number("y", 0, 1)],
            "y",
            Format(encoding="ascii"),
        )


def test_a_quoted_line_feed_is_read_by_a_benchmark_and_named_by_a_preview(study):
    notes = [f"called\nback, {k}" if k % 10 == 0 else "fine" for k in range(N)]
    records = [(*record, note) for record, note in zip(TABLE, notes, strict=True)]
    lines = N + N // 10
    dataset, load = study(written(records, [*NAMES, "note"]).encode(), release={"rows": lines})
    assert benchmark(dataset).X[:, 0].tolist() == AGES
    preview = said(load)
    assert preview[2] == (
        "In 12 lines (18.2%) quotes are invalid. A record is one line: replace line feeds in quotes by "
        "spaces."
    )
    _, _, y = released(load)
    assert (y != 0).sum() == N - N // 10


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"decimal": ","}, "decimal: a comma cannot also be the delimiter"),
        ({"delimiter": "."}, "delimiter: must be in no number"),
        ({"delimiter": ";;"}, "delimiter: must be one ASCII character"),
        ({"encoding": "utf-16"}, "encoding: in 'utf-16', a byte of one character could be read as"),
        ({"encoding": "utf-7"}, "encoding: in 'utf-7', a byte"),
        ({"encoding": "latin-11111"}, "encoding: 'latin-11111' is no known encoding"),
        ({"comment": "ü"}, "comment: must be ASCII"),
        ({"comment": 'a"b'}, "comment: must hold no quote and no delimiter"),
        (
            {"header": 2, "names": ["a", "b"]},
            "header: `names` are for a file without a line of names",
        ),
        ({"header": 0}, "header: must be the number of the line"),
    ],
)
def test_keys_that_no_reader_can_keep_are_refused_by_both(study, keys, message):
    with pytest.raises(Refused) as error:
        Format.of(keys)
    assert str(error.value).startswith(message)
    source = Rows.model_construct(csv="rows.csv", **keys)
    resolved = DataSet.model_construct(**ENTRY | {"source": source, "steps": []})
    with pytest.raises(ValueError) as error:
        origins.resolve("clinic", resolved, {})
    assert str(error.value).startswith(f"source.{message}")


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (
            {"sex": {"codes": ["weiblich"]}},
            "missing.sex: 'weiblich' cannot be a category and a code",
        ),
        ({"ill": {"codes": ["ja"]}}, "missing.ill: 'ja' cannot be a category and a code"),
        ({"*": {"codes": ["ja"]}}, "missing.*: 'ja' cannot be a category and a code"),
        ({"sex": {"codes": [9], "is": "divers"}}, "missing.sex: 'divers' is neither"),
        ({"age": {"codes": [9], "is": "old"}}, "missing.age: must be 'drop' or a number"),
        ({"agee": {"codes": [9]}}, "missing.agee: no such column is read; did you mean 'age'"),
        ({"*": {"codes": [9], "is": 1}}, "missing.*: every other column takes 'drop' alone"),
    ],
)
def test_codes_that_cannot_be_are_refused(missing, message):
    values = {"source": {"csv": "rows.csv"}, "missing": missing, "steps": []}
    resolved = DataSet.model_validate(ENTRY | values)
    with pytest.raises(ValueError) as error:
        origins.resolve("clinic", resolved, {})
    assert str(error.value).startswith(message)


def test_encodings_of_single_bytes_are_that():
    """Each byte stands for one character or none, no two for the same, and ASCII is itself."""
    known = {
        codecs.lookup(name).name
        for name in set(encodings.aliases.aliases.values()) - {"mbcs", "oem"}
    }
    taken = [name for name in known if SINGLE_BYTE.fullmatch(name)]
    assert len(taken) > 40
    for name in taken:
        assert Format.of({"encoding": name}).encoding == name
        assert bytes(range(128)).decode(name) == bytes(range(128)).decode("ascii")
        letters = [bytes([byte]).decode(name, "ignore") for byte in range(256)]
        some = [letter for letter in letters if letter]
        assert all(len(letter) == 1 for letter in some) and len(set(some)) == len(some)
        assert all(letter.encode(name) == bytes([letters.index(letter)]) for letter in some)


def test_requests_keep_only_what_is_not_the_default():
    columns = [rows.Number("a", 0, 1), rows.Category("y", ("no", "yes"))]
    plain = rows.Schema(columns, "y").facts
    assert list(plain) == ["columns", "target", "separator", "radius", "constant"]
    assert plain["columns"][0] == {"kind": "number", "name": "a", "low": 0, "high": 1}
    same = Format.of({"decimal": ".", "encoding": "UTF8", "header": 1})
    assert rows.Schema(columns, "y", same).facts == plain
    coded = [columns[0]._replace(codes=(-9,)), columns[1]]
    form = Format.of(
        {"delimiter": ";", "decimal": ",", "encoding": "latin1", "header": 4, "comment": "#"}
    )
    facts = rows.Schema(coded, "y", form).facts
    assert {key: facts[key] for key in facts if key not in plain} == {
        "decimal": ",", "encoding": "iso8859-1", "header": 4, "comment": "#",
    }  # fmt: skip
    again = rows.from_facts(facts)
    assert again.format == form and again.columns == tuple(coded) and again.facts == facts


CELLS = ["1", "2,5", "2.5", " 7 ", "", "NA", "x", "-9", "-9,0", "-9.0", '"4"', "1e2", '"a;b"', "#3"]
CELLS += ["9", "+1", '" 5 "', "ü", '"#4"', "99", "inf", "nan", "1_0", "0,1", ",5", "5,"]
cells, labels = st.sampled_from(CELLS), st.sampled_from(["p", "q", "9", "", "9,0"])


@settings(max_examples=150)
@given(
    records=st.lists(st.tuples(cells, cells, labels), min_size=1, max_size=4),
    decimal=st.sampled_from([".", ","]),
    comment=st.sampled_from(["", "#"]),
    codes=st.sampled_from([(), (-9,), ("x", 9)]),
)  # fmt: skip
def test_two_readers_read_each_line_alike(tmp_path_factory, records, decimal, comment, codes):
    """What a benchmark reads or refuses in a file of one row is what a release reads in this line."""
    keys = {"delimiter": ";", "decimal": decimal, **({"comment": comment} if comment else {})}
    schema = rows.Schema(
        [
            rows.Number("a", -100, 100, codes=codes),
            rows.Category("c", ("1", 2.5, "a;b", "ü"), codes=()),
            rows.Label("y", ("p",), codes=(9,)),
        ],
        "y",
        Format.of(keys),
    )
    entry = {
        "label": "y",
        "positive": "p",
        "bounds": {"a": [-100, 100]},
        "categories": {"c": ["1", 2.5, "a;b", "ü"]},
        "missing": {"y": {"codes": [9]}, **({"a": {"codes": list(codes)}} if codes else {})},
    }
    path = tmp_path_factory.mktemp("alike") / "t.csv"
    lines = [";".join(record).encode() for record in records]
    V, labels = schema.rows(lines, len(lines))
    for line, v, label in zip(lines, V, labels, strict=True):
        # Further rows, since a benchmark needs both labels.
        path.write_bytes(b"a;c;y\n" + line + b"\n0;1;p\n0;1;q\n")
        try:
            values = entry | {"source": {"csv": str(path), **keys}}
            table = readers.read(DataSet.model_validate(values), "t")
        except ValueError:
            assert not label and not v.any()
            continue
        if len(table.y) == 2:  # a comment
            assert not label and not v.any() and comment
            continue
        assert table.y[0] == label
        number = min(max(table.X[0, 0], -100), 100)
        assert v[0] == math.trunc(schema.each * number / 100)
        assert (table.X[0, 1:] > 0).tolist() == (v[1:5] > 0).tolist()


def test_new_rows_are_read_in_the_format_of_the_model():
    """A model's predictions for an export are those of a model without a format for plain text."""
    columns = [
        rows.Number("age", 18, 90),
        rows.Number("income", 0, 5000),
        rows.Category("sex", ("weiblich", "männlich"), "weiblich"),
        rows.Label("ill", ("ja",)),
    ]
    form = Format.of(GERMAN | {"encoding": "cp1252", "header": 3, "comment": "#"})
    weights = np.array([0.5, -2.0, 1.0, 0.1])

    def model(format):
        schema = rows.Schema(columns, "ill", format)
        return files.Model({}, schema, weights, weights, ["not ja", "ja"], None, schema)

    expected = list(using.of_file(model(Format()), written().encode()))
    assert len(expected) == N + 1 and all(label for label, _ in expected)
    for above in ("Title\n\n", "", "sep=;\n"):
        data = (above + german()).encode("cp1252")
        assert list(using.of_file(model(form), data)) == expected
    lines = german().splitlines(keepends=True)
    lines[3] = "#" + lines[3]
    actual = list(using.of_file(model(form), "".join(lines).encode("cp1252")))
    assert actual[3] == ("", "") and actual[4:] == expected[4:]
