import csv
import hashlib
import importlib.util
import io
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_release import rows as releasing
from study.configuration.data_set_keys import Above, DataSet, Rows, Target
from study.data import readers

GOOD = "a,b,y\n1,2,yes\n3,-4.5e1,no\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(content):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / "t.csv").write_bytes(data)
        return "t.csv"

    return write


def read(path, positive="yes", **entry):
    values = {"source": {"csv": path}, "label": "y", "positive": positive} | entry
    return readers.read(DataSet.model_validate(values), "t")


def test_a_good_file(write):
    table = read(write(GOOD))
    np.testing.assert_array_equal(table.X, [[1, 2], [3, -45]])
    np.testing.assert_array_equal(table.y, [1, -1])
    assert table.columns == ("a", "b")
    assert not np.isfinite(table.bound)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + GOOD,  # byte order mark
        GOOD.replace("\n", "\r\n"),
        GOOD + "\n\n",  # empty lines are not rows
        GOOD.replace(",", " , ").replace("a ,", "a,"),
        GOOD.replace("yes", '"yes"'),
    ],
)
def test_other_spellings_of_the_same_file(write, text):
    table = read(write(text))
    np.testing.assert_array_equal(table.X, [[1, 2], [3, -45]])
    np.testing.assert_array_equal(table.y, [1, -1])


def test_only_the_columns_with_bounds_are_read_in_their_order(write):
    path = write("id,b,a,y\nx1,2,1,yes\nx2,4,3,no\n")
    table = read(path, bounds={"a": [0, 4], "b": [0, 4]})
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


NO_ROW = (
    ": delete lines that are no rows, such as notes below the table, or set `comment` to the text with "
    "which they begin"
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv: is empty"),
        ("\n\n", "t.csv: is empty"),
        ("a,b,y\n", "t.csv: has a header but no rows"),
        ("a,b,z\n1,2,yes\n", "t.csv: has no column 'y' (it has: a, b, z)"),
        ("a,b,yy\n1,2,yes\n", "t.csv: has no column 'y'; did you mean 'yy'?"),
        (
            "a;b,c;y\n1;2;yes\n",
            "t.csv: has no column 'y'; its cells seem to be separated by \";\": "
            'set `delimiter: ";"`',
        ),
        (
            'a\t"y"\n1\tyes\n',
            "t.csv: has no column 'y'; its cells seem to be separated by \"\\t\": "
            'set `delimiter: "\\t"`',
        ),
        ('"a\nb",z\n1,yes\n', "t.csv: has no column 'y' (it has: 'a\\nb', z)"),
        ("y\nyes\nno\n", "t.csv: has no column besides the label"),
        (
            "a,a,y\n1,2,yes\n",
            "t.csv: the header names 'a' twice: give each column that is used its own name",
        ),
        ("a,b,y\n1,2,yes\n3,no\n", f"t.csv: row 3 has 2 cells, the header 3{NO_ROW}"),
        (
            "a,b,y\n1,2,yes\n3,4,no,5\n",
            "t.csv: row 3 has 4 cells, the header 3: a cell with a delimiter, such as a decimal comma, "
            "must be in quotes",
        ),
        (
            "a,b,y\n1,2,yes,,\n3,4,no,,\n",
            "t.csv: row 2 has 5 cells, the header 3: delete the delimiters at the ends of rows, or end "
            "the header with as many",
        ),
        (
            "a,b,y,,\n1,2,yes\n3,4,no\n",
            "t.csv: row 2 has 3 cells, the header 5: delete the delimiters at the end of the header",
        ),
        ("a,b,y\n1,2,yes\n3,4,no\n\nSource: x\n", f"t.csv: row 5 has 1 cell, the header 3{NO_ROW}"),
        (
            "Table 1\n\na,b,y\n1,2,yes\n3,4,no\n",
            "t.csv: has no column 'y'; line 3 has all names: set `header: 3`",
        ),
        *(
            (
                f'a,b,y\n1,"{cell}",yes\n3,4,no\n',
                f"t.csv: column 'b', row 2: {cell!r} is not a number: it has a decimal comma, or marks "
                f"between thousands; write numbers in the file like 1234.5",
            )
            for cell in ("49,5", "1.234,5", "1 234,5", "1'234,5")
        ),
        ('a,b,y\n1,"1,x",yes\n3,4,no\n', "t.csv: column 'b', row 2: '1,x' is not a number"),
        ("a,b,y\n1,2,yes\n\n3,x,no\n", "t.csv: column 'b', row 4: 'x' is not a number"),
        ("a,b,y\n1,,yes\n3,4,no\n", "t.csv: column 'b', row 2: the cell is empty"),
        ("a,b,y\n1,2,yes\n3,NaN,no\n", "t.csv: column 'b', row 3: 'NaN' is not a finite number"),
        ("a,b,y\n1_000,2,yes\n3,4,no\n", "t.csv: column 'a', row 2: '1_000' is not a number"),
        ("a,b,y\n1,٤,yes\n3,4,no\n", "t.csv: column 'b', row 2: '٤' is not a number"),
        ("a,b,y\n1,NA,yes\n3,4,no\n", "t.csv: column 'b', row 2: 'NA' is not a number"),
        ("a,b,y\n1,?,yes\n3,4,no\n", "t.csv: column 'b', row 2: '?' is not a number"),
        (
            "a,b,y\n1,1e999,yes\n3,4,no\n",
            "t.csv: column 'b', row 2: '1e999' is not a finite number",
        ),
        # A line break in quotes is part of its cell.
        ('a,b,y\n1,"2\n3",yes\n3,4,no\n', "t.csv: column 'b', row 2: '2\\n3' is not a number"),
        ('a,b,y\n1,2,"n\no"\n3,x,no\n', "t.csv: column 'b', row 3: 'x' is not a number"),
        ("a,b,y\n1,2,yes\n   \n3,4,no\n", f"t.csv: row 3 has 1 cell, the header 3{NO_ROW}"),
        ("a,b,y\n1,2,\n3,4,no\n", "t.csv: column 'y', row 2: the label is missing"),
        (
            "a,b,y\n1,2,yes\n3,4,yes\n",
            "t.csv: column 'y': every row has the label 'yes' (labels found: 'yes')",
        ),
        (
            "a,b,y\n1,2,1\n3,4,0\n",
            "t.csv: column 'y': no row has the label 'yes' (labels found: '0', '1')",
        ),
        ("a,b,y\n1,2,yes\n3,4,?\n", "t.csv: column 'y', row 3: the label is missing"),
        pytest.param(
            b"a,b,y\n1,2,\xe9\n",
            "t.csv: is not UTF-8 text: row 2, column 3 is likely '\u00e9'; set `encoding: latin-1`, or "
            "save the file as UTF-8",
            id="Latin-1",
        ),
        pytest.param(
            b'a,b,y\n1,"2\n3",yes\n4,m\x92x,no\n',
            "t.csv: is not UTF-8 text: row 3, column 2 is likely 'm\u2019x'; set `encoding: cp1252`, or "
            "save the file as UTF-8",
            id="Windows-1252",
        ),
        (
            "a,b,y\n1,2,yes\n".encode("utf-16"),
            "t.csv: is not UTF-8 text (likely UTF-16): save it as UTF-8",
        ),
    ],
)
def test_a_bad_file_names_file_column_and_row(write, content, message):
    with pytest.raises(ValueError) as caught:
        read(write(content))
    said, _, advice = str(caught.value).partition("; `missing: ")
    assert said == message
    cell = re.search("'(NA|NaN|null|\\?)' is not|is empty$|label is missing", message)
    assert bool(advice) == bool(cell and "column" in message)


def test_all_columns_with_empty_cells_are_named_at_once(write):
    rows = "".join(f"{k},{k},{k},{k},yes\n" for k in range(3, 70_000))
    text = "a,b,c,d,y\n1,,2,3,yes\n" + rows + "1,NA,?,,no\n1,2,3,4,nan\n"
    with pytest.raises(ValueError) as caught:
        read(write(text))
    assert str(caught.value) == (
        "t.csv: column 'b', row 2: the cell is empty; `missing: {b: drop, c: drop, d: drop, y: drop}` "
        "leaves out the rows without a value, and another value in place of `drop` fills them in"
    )
    with pytest.raises(ValueError, match=r"column 'c', .*`missing: \{c: drop, d: drop\}`"):
        read(write(text), missing={"b": 0, "y": "drop"})
    # If `missing` cannot replace the first bad cell, the error only names that cell.
    with pytest.raises(ValueError, match=r"row 2: 'x' is not a number$"):
        read(write("a,b,y\n1,x,yes\n1,,no\n"))


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(ValueError, match=r"none\.csv: cannot be read \(No such file"):
        read(str(tmp_path / "none.csv"))
    with pytest.raises(ValueError, match=r"cannot be read \(Is a directory\)"):
        read(str(tmp_path))


def test_a_missing_feature_and_a_label_as_feature(write):
    path = write(GOOD)
    with pytest.raises(ValueError, match=r"t\.csv: has no column 'c' \(it has: a, b, y\)"):
        read(path, bounds={"c": [0, 1]})
    with pytest.raises(ValueError, match=r"t\.csv: the label 'y' is no feature"):
        read(path, bounds={"y": [0, 1]})


def test_a_line_break_within_quotes_ends_no_row(write):
    text = 'a;b;note;y\n1;2;"one\ntwo";yes\n\n3;-45;plain;no\n'
    source = {"csv": write(text), "delimiter": ";"}
    assert readers.count_rows(Rows.model_validate(source)) == 2
    table = read(source["csv"], source=source, bounds={"a": [0, 4], "b": [-50, 4]})
    np.testing.assert_array_equal(table.X, [[1, 2], [3, -45]])


def test_columns_are_checked_by_the_first_lines_alone(write):
    source = Rows(csv=write(GOOD + "3,not a number\n"))
    entry = DataSet(source=source, label="y")
    readers.check_columns(entry.but(bounds={"b": [0, 1]}))
    with pytest.raises(ValueError, match=r"t\.csv: has no column 'yy'; did you mean 'y'\?"):
        readers.check_columns(entry.but(label="yy"))
    with pytest.raises(ValueError, match=r"t\.csv: has no column 'c'"):
        readers.check_columns(entry.but(categories={"c": ["d"]}))
    with pytest.raises(ValueError, match=r"t\.csv: has no column 'y'"):
        readers.check_columns(entry.but(source=source.but(names=["a", "b", "label"])))


def test_another_number_of_rows_than_the_configuration_says(write):
    path = write(GOOD)
    with pytest.raises(ValueError, match="has 2 rows, not the 3 that the configuration says"):
        read(path, source={"csv": path, "rows": 3})


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (["1", "0"], 1),
        (["1.0", "0.0"], 1),
        (["1", "-1"], 1.0),
        (["1", "0"], "1"),
        (["True", "False"], True),
        (["true", "false"], True),
        (["b", "a"], "b"),
        (["10", "1_0"], 10),
    ],
)
def test_a_positive_label_is_found_as_it_is_meant(labels, positive):
    assert readers.two_classes(labels, positive, "here").tolist() == [1, -1]


def test_labels_are_told_apart_by_every_digit(tmp_path, write):
    large = 2**53
    labels = [str(large), str(large + 1), f"{large + 1}.0"]
    assert readers.two_classes(labels, large + 1, "here").tolist() == [-1, 1, 1]
    assert readers.two_classes(labels, Above(above=large), "here").tolist() == [-1, 1, 1]
    assert readers.class_numbers(labels, [large, large + 1], "here").tolist() == [0, 1, 1]
    path = write("a,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
    assert read(path, positive=large + 1).y.tolist() == [-1, 1, 1]
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = {"a": [1, 2, 3, None], "y": [large, large + 1, None, large]}
    table = str(tmp_path / "t.parquet")
    parquet.write_table(pa.table(values), table)
    got = read(table, positive=large + 1, missing={"a": 7, "y": "drop"})
    assert got.y.tolist() == [-1, 1, -1] and got.X.tolist() == [[1], [2], [7]]


LISTED = [
    "1",
    1,
    0.1,
    2**53 + 1,
    "a",
    "True",
    "?",
    "010",
]
SPELLINGS = [
    "1",
    "1.0",
    "+1",
    "1e0",
    "01",
    "0.1",
    ".10",
    "-2.0",
    str(2**53),
    str(2**53 + 1),
    "a",
]
SPELLINGS += [
    "A",
    "true",
    "NA",
    "?",
    "",
    "010",
    "1e20",
]
SPELLINGS += ["100000000000000000000", "1_0", "\u0661", "nan", "inf", "x"]


@pytest.mark.parametrize("value", LISTED, ids=repr)
def test_a_benchmark_reads_listed_values_as_a_release_does(value, write):
    other = "other"
    categories = releasing.Schema(
        [releasing.Category("c", (value, other)), releasing.Category("y", ("no", "yes"))],
        target="y",
    )
    labels = releasing.Schema(
        [releasing.Number("a", 0, 1), releasing.Label("y", (value,))], target="y"
    )
    for cell in SPELLINGS:
        V, y = categories.rows([f"{cell},yes".encode()], n=1)
        path = write(f"c,y\n{cell},yes\n{other},no\n")
        try:
            X = read(path, categories={"c": [value, other]}).X
        except ValueError as problem:
            assert "is not among the categories" in str(problem) and y[0] == 0, cell
        else:
            assert y[0] == 1 and X[0].tolist() == (V[0, :2] > 0).tolist(), cell
        # A label may be positive, or another, or missing.
        _, y = labels.rows([f"1,{cell}".encode()], n=1)
        path = write(f"a,y\n1,{cell}\n1,{other}\n1,{value}\n")
        try:
            got = read(path, positive=value).y[0]
        except ValueError as problem:
            got = 0
            assert "the label is missing" in str(problem), cell
        assert got == y[0], cell


def test_unused_columns_may_be_nameless_or_named_twice(write):
    path = write("id,a,note,note,y,,\n1,2,p,q,yes,,\n2,3,p,q,no,,\n")
    assert read(path, bounds={"a": [0, 4]}).X.tolist() == [[2], [3]]
    readers.check_columns(DataSet(source=Rows(csv=path), label="y", bounds={"a": [0, 4]}))
    # Without bounds, all columns are features, but the nameless ones behind the last name.
    path = write("a,b,y,,\n1,2,yes,,\n3,4,no,,\n")
    assert read(path).columns == ("a", "b")
    path = write("a,y,a\n1,yes,2\n3,no,4\n")
    with pytest.raises(
        ValueError, match=r"the header names 'a' twice: give each column that is used"
    ):
        read(path, bounds={"a": [0, 4]})


def test_a_positive_yes_that_yaml_made_true_is_explained():
    with pytest.raises(ValueError, match="YAML reads yes, no, on and off as true and false"):
        readers.two_classes(["yes", "no"], True, "here")
    # Text stays text: "1" is not "1.0".
    with pytest.raises(ValueError, match=r"no row has the label '1' \(labels found"):
        readers.two_classes(["1.0", "0.0"], "1", "here")


def test_the_breast_cancer_data():
    X, labels, columns = readers.read_sklearn("breast_cancer")
    assert X.shape == (569, 30) and len(columns) == 30
    assert (labels.count("malignant"), labels.count("benign")) == (212, 357)


CELLS = [
    "1",
    "-2.5e3",
    " 7 ",
    "",
    "NA",
    "x",
    "nan",
    "1_0",
    "٣",
    '"4"',
    '"a,b"',
    '"c\nd"',
    '"',
    "inf",
]


def by_the_cell(text, columns, label):
    """Rows by a plain loop over the csv module, or None if a cell is refused."""
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    header, rows = rows[0], rows[1:]
    if not rows or any(len(row) != len(header) for row in rows):
        return None
    places = [header.index(name) for name in columns]
    cells = [[row[place].strip() for place in places] for row in rows]
    labels = [row[header.index(label)].strip() for row in rows]
    number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
    if not all(number.fullmatch(cell) for row in cells for cell in row):
        return None
    if any(label.lower() in readers.EMPTY for label in labels):
        return None
    return [[float(cell) for cell in row] for row in cells], labels


row = st.lists(st.sampled_from(CELLS), min_size=1, max_size=4)
good = st.tuples(st.sampled_from(CELLS), st.sampled_from(CELLS[:3]), st.sampled_from(["p", '"q"']))


@settings(max_examples=150)
@given(
    rows=st.lists(good | row, max_size=5),
    block=st.integers(1, 30),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    blank=st.booleans(),
)
def test_blocks_of_any_size_hold_what_a_loop_over_cells_reads(rows, block, end, blank):
    text = end.join(["note,b,y", *(",".join(cells) for cells in rows), *([""] if blank else [])])
    with TemporaryDirectory() as folder, mock.patch("study.data.readers_table.BLOCK", block):
        path = Path(folder, "t.csv")
        path.write_bytes(text.encode())
        expected = by_the_cell(path.read_text(), ["b"], "y")
        try:
            X, labels, _ = readers.read_csv(str(path), "y", ["b"])
        except ValueError as problem:
            assert expected is None, problem
        else:
            assert (X.tolist(), labels) == expected


def test_missing_cells_become_what_the_configuration_says(write):
    path = write("a,job,y\n1,,yes\n?,clerk,no\nNA,?,no\n4,clerk,no\n5,clerk,\n")
    entry = {"categories": {"job": ["clerk", "unknown"]}, "bounds": {"a": [0, 9]}}
    counts = Counter()
    source = DataSet.model_validate(
        {"source": {"csv": path, "rows": 5}, "label": "y", "positive": "yes"} | entry
    )
    missing = {"a": 2, "job": "unknown", "y": "drop"}
    table = readers.read(source.but(missing=missing), "t", counts)
    np.testing.assert_array_equal(table.X, [[1, 0, 1], [2, 1, 0], [2, 0, 1], [4, 1, 0]])
    assert table.y.tolist() == [1, -1, -1, -1]
    assert counts == {"a": 2, "job": 2, "y": 1, "rows dropped": 1}
    with pytest.raises(ValueError, match=r"column 'a', row 3: '\?' is not a number"):
        readers.read(source.but(missing={"job": "unknown", "y": "drop"}), "t")
    with pytest.raises(ValueError, match=r"t.csv: column 'y': every row has the label 'no'"):
        readers.read(source.but(missing={"*": "drop"}, positive="no"), "t")
    # A listed category is never a missing cell, even if it is "?" or "".
    listed = source.but(categories={"job": ["clerk", "?", ""]}, missing={"a": 2, "y": "no"})
    np.testing.assert_array_equal(
        readers.read(listed, "t").X[:, 1:], [[0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]]
    )


def test_several_files_one_after_the_other(write, tmp_path):
    write(GOOD)
    other = tmp_path / "u.csv"
    other.write_text("b,a,y\n6,5,no\n")
    table = read(["t.csv", str(other)])
    np.testing.assert_array_equal(table.X, [[1, 2], [3, -45], [5, 6]])
    other.write_text("b,a,z,y\n6,5,1,no\n")
    with pytest.raises(ValueError, match=r"u.csv: has other columns than t.csv \('z'\)"):
        read(["t.csv", str(other)])


def test_comments_at_the_top_are_no_rows(write):
    for names, text in ((None, "|note\na,y\n1,u\n2,v\n"), (["a", "y"], "|note\n\n1,u\n2,v\n")):
        X, labels, _ = readers.read_csv(write(text), "y", names=names, comment="|")
        assert X.tolist() == [[1], [2]] and labels == ["u", "v"]


def test_a_label_above_a_number(write):
    path = write("a,y\n1,0\n2,0.1\n3,7\n")
    table = read(path, positive={"above": 0})
    assert table.y.tolist() == [-1, 1, 1] and table.pair == ("at most 0", "above 0")
    assert read(path, positive=[7, "0"]).y.tolist() == [1, -1, 1]
    with pytest.raises(ValueError, match="column 'y': 'x' is not a number"):
        read(write("a,y\n1,x\n2,1\n"), positive={"above": 0})


def test_a_pickle_is_read_under_its_checksum_alone(tmp_path):
    frame = pd.DataFrame(
        {"a": [1, 2, 3], "b": [0.5, None, 2.0], "c": ["u", None, "v"], "y": [0, 1, 1]}
    )
    path = tmp_path / "t.pkl.xz"
    frame.to_pickle(path, compression="xz")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    entry = DataSet(
        source=Rows(csv=str(path), sha256=sha256),
        label="y",
        positive=1,
        bounds={"b": [0, 2], "a": [0, 3]},
        categories={"c": ["u", "v"]},
    )
    with pytest.raises(ValueError, match="column 'b', row 2: the cell is empty"):
        readers.read(entry, "t")
    table = readers.read(entry.but(missing={"b": 1, "c": "v"}), "t")
    np.testing.assert_array_equal(table.X, [[0.5, 1, 1, 0], [1, 2, 0, 1], [2, 3, 0, 1]])
    assert table.y.tolist() == [-1, 1, 1]
    del entry.source.sha256
    with pytest.raises(ValueError, match="is read only where its SHA-256 is configured"):
        readers.read(entry, "t")
    # Loading a pickle runs code, so a file with another checksum must not be loaded.
    path.write_bytes(b"cos\nmkdir\n(S'" + str(tmp_path / "ran").encode() + b"'\ntR.")
    entry.source.sha256 = sha256
    with pytest.raises(ValueError, match="wrong checksum"):
        readers.read(entry, "t")
    assert not (tmp_path / "ran").exists()


def test_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    if importlib.util.find_spec("pyarrow") is None:
        path.write_bytes(b"PAR1")
        with pytest.raises(
            ValueError, match=r"needs pyarrow: install it .* or save the table as CSV"
        ):
            read(str(path))
        return
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 2.0], "y": ["yes", "no", "no"]})
    frame.to_parquet(path)
    with pytest.raises(ValueError, match="column 'b', row 2: the cell is empty"):
        read(str(path))
    table = read(str(path), missing={"b": 1})
    np.testing.assert_array_equal(table.X, [[1, 0.5], [2, 1], [3, 2]])
    path.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="cannot be read"):
        read(str(path))


def test_a_target_is_clipped_to_its_bounds_and_mapped(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("age,visits\n20,0\n30,5\n40,20\n50,77\n60,-3\n")
    entry = DataSet(
        source=Rows(csv=str(path)),
        target=Target(column="visits", bounds=[0, 20]),
        bounds={"age": [0, 100]},
    )
    table = readers.read(entry, "mine")
    assert table.y.tolist() == [-1, -0.5, 1, 1, -1]
    assert table.target == ("visits", 0, 20) and table.classes == () and table.columns == ("age",)
    path.write_text("age,visits\n20,many\n")
    with pytest.raises(ValueError, match="column 'visits', row 2: 'many' is not a number"):
        readers.read(entry, "mine")


def test_a_target_that_comes_with_scikit_learn():
    from sklearn.datasets import load_diabetes

    entry = DataSet(
        source=Rows(sklearn="diabetes"), target=Target(column="progression", bounds=[0, 350])
    )
    table = readers.read(entry, "diabetes")
    bunch = load_diabetes(scaled=False)
    assert (bunch.data == table.X).all()
    assert table.y == pytest.approx(bunch.target / 175 - 1)
