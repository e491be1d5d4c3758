"""Data files: what a bad one says, by file, column and row."""

import numpy as np
import pytest

from study import readers

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
    return readers.read({"source": {"csv": path}, "label": "y", "positive": positive} | entry, "t")


def test_a_good_file(write):
    table = read(write(GOOD))
    np.testing.assert_array_equal(table.X, [[1, 2], [3, -45]])
    np.testing.assert_array_equal(table.y, [1, -1])
    assert table.columns == ("a", "b")
    assert not np.isfinite(table.bound)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + GOOD,  # the mark that spreadsheets write first
        GOOD.replace("\n", "\r\n"),
        GOOD + "\n\n",  # empty lines are no rows
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
        ("a,b,y\n1,1_000,yes\n", "t.csv: column 'b', row 2: '1_000' is not a number"),
        ("a,b,y\n1,\u0661\u0662,yes\n", "t.csv: column 'b', row 2: '\u0661\u0662' is not a number"),
        ('a,b,y\n1,"2\n3",yes\n', "t.csv: column 'b', row 2: '2\\n3' is not a number"),
        ("y\nyes\nno\n", "t.csv: has no column besides the label"),
        ("a,a,y\n1,2,yes\n", "t.csv: the header names 'a' twice"),
        ("a,b,y\n1,2,yes\n3,no\n", "t.csv: row 3 has 2 cells, the header 3"),
        ("a,b,y\n1,2,yes\n3,4,no,5\n", "t.csv: row 3 has 4 cells, the header 3"),
        ("a,b,y\n1,2,yes\n\n3,x,no\n", "t.csv: column 'b', row 4: 'x' is not a number"),
        ("a,b,y\n1,,yes\n3,4,no\n", "t.csv: column 'b', row 2: the cell is empty"),
        ("a,b,y\n1,2,yes\n3,NaN,no\n", "t.csv: column 'b', row 3: 'NaN' is not a finite number"),
        ("a,b,y\n1,inf,yes\n3,4,no\n", "t.csv: column 'b', row 2: 'inf' is not a finite number"),
        ("a,b,y\n1,2,\n3,4,no\n", "t.csv: column 'y', row 2: the label is missing"),
        ("a,b,y\n1,2,yes\n3,4,nan\n", "t.csv: column 'y', row 3: the label is missing"),
        ("a,b,y\n1,2,yes\n3,4,NA\n", "t.csv: column 'y', row 3: the label is missing"),
        (
            "a,b,y\n1,2,yes\n3,4,yes\n",
            "t.csv: column 'y': every row has the label 'yes' (labels found: 'yes')",
        ),
        (
            "a,b,y\n1,2,1\n3,4,0\n",
            "t.csv: column 'y': no row has the label 'yes' (labels found: '0', '1')",
        ),
        (b"a,b,y\n1,2,\xe9\n", "t.csv: is not UTF-8 text"),
    ],
)
def test_a_bad_file_names_file_column_and_row(write, content, message):
    with pytest.raises(ValueError) as caught:
        read(write(content))
    assert str(caught.value) == message


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
    assert readers.count_rows(source) == 2
    table = read(source["csv"], source=source, bounds={"a": [0, 4], "b": [-50, 4]})
    np.testing.assert_array_equal(table.X, [[1, 2], [3, -45]])


def test_columns_are_checked_by_the_first_lines_alone(write):
    source = {"csv": write(GOOD + "3,not a number\n")}
    readers.check_columns({"source": source, "label": "y", "bounds": {"b": [0, 1]}})
    with pytest.raises(ValueError, match=r"t\.csv: has no column 'yy'; did you mean 'y'\?"):
        readers.check_columns({"source": source, "label": "yy"})
    with pytest.raises(ValueError, match=r"t\.csv: has no column 'c'"):
        readers.check_columns({"source": source, "label": "y", "categories": {"c": ["d"]}})
    source["names"] = ["a", "b", "label"]
    with pytest.raises(ValueError, match=r"t\.csv: has no column 'y'"):
        readers.check_columns({"source": source, "label": "y"})


def test_another_number_of_rows_than_the_configuration_says(write):
    path = write(GOOD)
    with pytest.raises(ValueError, match="has 2 rows, not the 3 that the configuration says"):
        readers.read({"source": {"csv": path, "rows": 3}, "label": "y", "positive": "yes"}, "t")


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
