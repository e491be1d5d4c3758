"""Each line becomes a row of integers, independently of other lines, with an exact bound on its norm."""

import csv
import io
import math
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dp_privacy.errors import Refused
from dp_release import rows
from dp_release.formats import Format
from dp_release.rows import ONE, Category, Label, Number, Schema, Unused
from lattices import from_floats
from project import PEAK_MB, ROOT

COLUMNS = (
    Number("age", 0, 120),
    Category("smokes", ("no", "yes", "unknown, not asked")),
    Unused("name"),
    Number("income", "-1e3", "2.5e5"),
    Category("ill", ("0", "1")),
)
SCHEMA = Schema(COLUMNS, "ill")
NUMERIC = Schema((*COLUMNS[:4], Number("cost", -1, 3)), "cost", radius="0.4")
LINES = [
    b"30,no,Ann,1000,0",
    b"45.5,yes,Bob,250000,1",
    b'120,"unknown, not asked","Eve ""E"" Smith",-1e3,1',
    b" 7 ,no,,\t12.5 ,0",
]
LINE = st.binary(max_size=80).map(lambda line: line.replace(b"\n", b""))
ODD_CELLS = (
    b"|30|1_000|inf|-Infinity|nan|0x10|1e400|-1e-400|.5|5.|1e999999999999|+3|--3|yes|no|"
    b'"yes"|"|""|1\r|\x0c1|\xff|\x00|\xd9\xa3|\xef\xbc\x91|1 2|1e|e5|.|' + b"9" * 300
)
CELL = st.one_of(
    st.sampled_from(ODD_CELLS.split(b"|")),
    st.binary(max_size=12).map(lambda cell: cell.replace(b"\n", b"")),
    st.floats().map(lambda x: repr(x).encode()),
)


def parse(schema, lines, n=None):
    return schema.rows(lines, len(lines) if n is None else n)


def norms(V):
    """Squared norms in Python's integers, which cannot overflow."""
    return [sum(int(v) ** 2 for v in row) for row in V]


def test_rows_by_hand():
    V, y = parse(SCHEMA, LINES)
    K = SCHEMA.each
    assert K == math.isqrt(4**20 // 4) == ONE // 2
    assert SCHEMA.names == [
        *("age", "smokes=no", "smokes=yes", "smokes=unknown, not asked", "income", "constant"),
    ]
    income = [
        int(K * (2 * Fraction(x) - 249_000) / 251_000) for x in (1000, 250_000, -1000, "12.5")
    ]
    age = [int(K * (Fraction(x) / 60 - 1)) for x in (30, "45.5", 120, 7)]
    expected = [
        [age[0], K, 0, 0, income[0], K],
        [age[1], 0, K, 0, income[1], K],
        [age[2], 0, 0, K, income[2], K],
        [age[3], K, 0, 0, income[3], K],
    ]
    assert V.tolist() == expected and y.tolist() == [-1, 1, 1, -1]
    assert income[1] == K == -income[2]


@pytest.mark.parametrize("schema", [SCHEMA, NUMERIC])
@pytest.mark.parametrize("where", range(4))
@settings(max_examples=150)
@given(line=st.one_of(LINE, st.lists(CELL, min_size=4, max_size=6).map(b",".join)))
@example(line=b"")
@example(line=b"\r")
@example(line=b"1e400,yes,x,-1e400,1")
@example(line=b"1e-999999999999999999999,yes,x,1,1")
@example(line=b'30,yes,"a\x85b\x0c",5,1\r')
def test_any_bytes_in_a_line_change_that_row_alone(schema, where, line):
    before, y = parse(schema, LINES)
    changed = [*LINES[:where], line, *LINES[where + 1 :]]
    data = b"header\n" + b"\n".join(changed) + b"\n"
    assert rows.split_lines(data) == changed
    after, y2 = parse(schema, rows.split_lines(data))
    others = np.arange(4) != where
    assert (before[others] == after[others]).all() and (y[others] == y2[others]).all()
    assert max(norms(after)) <= 4**20
    assert after.shape == before.shape and after.dtype == np.int32
    alone, label = parse(schema, [line])
    assert (alone[0] == after[where]).all() and label[0] == y2[where]
    if y2[where] == 0 and not schema.numbers:
        assert not after[where].any()
    if not after[where].any():
        assert y2[where] == 0


@pytest.mark.parametrize(
    "cell",
    (
        b"1_000|inf|infinity|nan|NaN|0x1f|\xd9\xa3|\xef\xbc\x91\xef\xbc\x92||.|1,5|1e|e5|1e+|+|- 5|1 000|"
        b"1\x0c|\x851|1d5|" + b"1" * 201
    ).split(b"|"),
)  # some are Arabic and fullwidth digits
def test_what_is_no_number_makes_the_row_zero(cell):
    V, y = parse(SCHEMA, [cell + b",no,,5,1", b"5,no,," + cell + b",1"])
    assert not V.any() and not y.any()


@pytest.mark.parametrize(
    "line",
    (
        b"5,maybe,,5,1|5,NO,,5,1|5,no,,5,2|5,no,,5,|5,no,5,1|5,no,,,5,1|5;no;;5;1|"
        b'5,"no,,5,1|5,n"o",,5,1|5,"no"x,,5,1|5,no ,,5,1\r\r'
    ).split(b"|"),
)
def test_records_that_do_not_fit_are_zero(line):
    V, y = parse(SCHEMA, [line])
    assert not V.any() and not y.any()  # the constant and the label are also zero


def test_a_longest_line_is_public():
    name = b"5,no,%b,5,1"
    fits = rows.LONGEST_LINE - len(name % b"")
    for filling in (b"a" * fits, b'"' + b'""' * (fits // 2 - 2) + b'"'):
        assert parse(SCHEMA, [name % filling])[0].any()
        V, y = parse(SCHEMA, [name % (filling + b" " * 4)])
        assert not V.any() and not y.any()
    columns = [Number(f"x{k}", 0, 1) for k in range(400)]
    assert parse(Schema(columns, "x0"), [b",".join([b"1" + b" " * 198] * 400)])[0].all()


def test_a_quoted_cell_takes_no_memory_beside_its_own():
    """A reader that stored each letter separately would take 130 MB for a cell of 1 MB."""
    code = (
        f"{PEAK_MB}\nfrom dp_release import rows\n"
        "line = b'5,\"' + b'a' * (1 << 22) + b'\"\"' * (1 << 22) + b'\",1'\n"
        "before, cells = peak_mb(), rows.cells_of(line, b',')\n"
        "assert len(cells) == 3 and len(cells[1]) == 1 << 23\n"
        "assert peak_mb() - before < 60, peak_mb() - before\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "scripts", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("separator", [b",", b"\t", b" ", b";"])
def test_quoted_cells_between_any_separators(separator):
    cells = [b"a", b"", b'"', b"b c,\t;d"]
    line = separator.join([b'"a"', b'""', b'""""', b'"b c,\t;d"'])
    assert rows.cells_of(line, separator) == cells
    for broken in (b'"a""', b'"a"b', b'a"', b'"' * 7):
        assert rows.cells_of(separator.join([b"1", broken, b"2"]), separator) is None


@pytest.mark.parametrize(
    "cell, value",
    [
        *((b"1e2", 100), (b"+.5E1", 5), (b"00012", 12), (b"12.", 12), (b"-0", 0), (b"1e400", 120)),
        *((b"-1e400", 0), (b"1e-400", Fraction(1, 10**400)), (b"0e99999999999999", 0)),
        *((b"1e99999999999999", 120), (b"1e-99999999999999", 0), (b"121", 120), (b"-5", 0)),
        *((b"0.1", Fraction(1, 10)), (b" \t7\t ", 7), (b"1200e-1", 120)),
    ],
)
def test_numbers_are_exact_and_clipped(cell, value):
    V, _ = parse(SCHEMA, [cell + b",no,,5,1"])
    exact = SCHEMA.each * (Fraction(value) / 60 - 1)
    assert V[0, 0] == math.trunc(exact)


def test_targets():
    lines = [b"1,no,,5," + y for y in (b"-1", b"3", b"1", b"99", b"1.5", b"no")]
    V, y = parse(NUMERIC, lines)
    assert y.tolist() == [-ONE, ONE, 0, ONE, ONE // 4, 0]
    assert V[4].any() and not V[5].any()


def test_lines_end_at_line_feeds_only():
    data = b"a\x0cb\x85c\r\nd\x1ce\n\nf"
    assert rows.split_lines(data, header=False) == [b"a\x0cb\x85c\r", b"d\x1ce", b"", b"f"]
    assert rows.split_lines(b"h\n1\n") == [b"1"] and rows.split_lines(b"h\n1") == [b"1"]
    assert rows.split_lines(b"h\n1\n\n") == [b"1", b""]


def test_the_number_of_rows_is_public():
    for lines in (LINES, LINES[:1], [], LINES * 3):
        V, y = parse(SCHEMA, lines, n=5)
        assert len(V) == len(y) == 5
        assert (V[:1] == parse(SCHEMA, LINES[:1], 1)[0]).all() or not lines


def test_a_memory_of_cells_changes_nothing(monkeypatch):
    lines = [f"{k / 7},no,,{k * 31 % 900},1".encode() for k in range(300)]
    before = parse(Schema(COLUMNS, "ill"), lines)
    monkeypatch.setattr(rows, "KEPT", 3)
    after = parse(Schema(COLUMNS, "ill"), lines)
    assert (before[0] == after[0]).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (((Number("a", 0, 1), Number("a", 0, 1)), "a"), "different names"),
        (((Number("a", 0, 1), Number("b", 0, 1)), "c"), "no column is the target 'c'"),
        (((Number("a", 1, 1), Number("b", 0, 1)), "b"), "low < high"),
        (((Number("a", 0, "inf"), Number("b", 0, 1)), "b"), "not a bound"),
        (((Number("a", 0, 1e300), Number("b", 0, 1)), "b"), "not a bound"),
        (((Number("a", 0, 1), Category("b", ("0", "1", "2"))), "b"), "two categories"),
        (((Category("a", ("x", "x")), Number("b", 0, 1)), "b"), "must be different"),
        (((Unused("a"), Number("b", 0, 1)), "b", Format(), 1, False), "no column is left"),
        (((Number("a", 0, 1), Number("b", 0, 1)), "b", Format("5")), "delimiter"),
        (((Number("a", 0, 1), Number("b", 0, 1)), "b", Format(), 2), "radius"),
        (((Number("a", 0, 1), Label("b", (True,))), "b"), "is true, .* quote it"),
        (((Number("a", 0, 1), Label("b", ("y",), ("n", False))), "b"), "is false, .* quote it"),
    ],
)
def test_schemas_that_define_no_rows_are_refused(arguments, message):
    with pytest.raises(Refused, match=message):
        Schema(*arguments)


def check_norms():
    """In exact arithmetic, long rows are shortened to a norm of at most 2^20, but no more than needed."""
    rng = np.random.default_rng(7)
    for d in (1, 2, 7, 300):
        for size in (1, 1000, ONE, ONE + 1, 1 << 24, (1 << 31) - 1):
            V = rng.integers(-size, size + 1, (200, d))
            V[0] = size
            V[1] = -size
            V[2, 1:] = 0
            V[3] = [ONE, 1, *[0] * d][:d]  # exceeds the allowed norm by a relative 5e-13
            actual = rows.shortened(V)
            squares = norms(actual)
            assert max(squares) <= 4**20
            for before, row, after in zip(V, actual, squares, strict=True):
                exact = sum(int(v) ** 2 for v in before)
                if exact <= 4**20:
                    assert (row == before).all()
                else:
                    assert (
                        after
                        >= (ONE - 2 * math.sqrt(d) - 2 - math.isqrt(exact) / 2**21) ** 2 * 0.999
                    )
                    assert (np.sign(row) * np.sign(before) >= 0).all()


def test_norms_are_bounded_exactly():
    check_norms()


def test_the_widest_and_largest_rows():
    for V in (
        np.full((3, rows.WIDEST), (1 << 31) - 1),
        np.full((3, rows.WIDEST), -(1 << 31)),
        np.full((3, rows.WIDEST), 1 << 23),
        np.array([[-(1 << 31), 1]] * 3),
    ):
        assert max(norms(rows.shortened(V))) <= 4**20


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_releases_bound_whatever_rows_they_get(dtype):
    info = np.iinfo(dtype)
    V = np.array([[info.min, info.max], [0, 0], [1, 2]], dtype=dtype)
    for numbers in (False, True):
        X, y = rows.bounded(V, np.array([info.min, 0, info.max], dtype), numbers)
        assert X.dtype == np.float32 and max(norms(X.astype(float) * ONE)) <= 4**20
        assert (X.astype(float) * ONE % 1 == 0).all()
        assert set(np.abs(y)) <= {0.0, 1.0} or (np.abs(y) <= 1).all()
        assert y[1] == 0


def test_rows_of_floats_are_truncated_and_bounded():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((500, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    long = np.array([sum(Fraction(x) ** 2 for x in row) > 1 for row in X.tolist()])
    assert 0.2 < long.mean() < 0.8  # about half of the normalised rows are longer than 1
    V, _ = from_floats(X, np.ones(500, int))
    assert max(norms(V)) <= 4**20 and np.abs(V / ONE - X).max() < 3 / ONE
    X[0, 0], X[1, 1], X[2, 2] = np.nan, np.inf, 1e300
    V2, y2 = from_floats(X, np.ones(500, int))
    assert (V2[3:] == V[3:]).all() and not V2[:2].any() and y2[:3].tolist() == [0, 0, 1]
    assert max(norms(V2)) <= 4**20 and V2[2, 2] >= ONE - 2
    _, y3 = from_floats(X[3:6], np.array([0.5, -7.0, np.nan]))
    assert y3.tolist() == [ONE // 2, -ONE, 0]


TABLES = st.lists(
    st.lists(st.text('a",; \t\r\n', max_size=6), min_size=2, max_size=2), min_size=1, max_size=5
)


@given(TABLES)
def test_records_are_those_of_another_reader(table):
    """Whatever quoted cells hold, also line feeds, there is one record per row that was written."""
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    actual = [rows.cells_of(line, b",") for line in rows.records(out.getvalue().encode(), b",")]
    assert actual == [[cell.encode() for cell in row] for row in table]


@given(
    st.lists(
        st.sampled_from([b'"', b'"a', b'b"', b'""', b'a"b', b",", b"c", b"\n", b"\r\n"]),
        max_size=30,
    )
)
def test_records_lose_no_byte_and_only_join_what_is_valid(parts):
    data = b"".join(parts)
    actual = list(rows.records(data, b","))
    assert b"\n".join(actual) == data.removesuffix(b"\n")
    for record in actual:
        assert b"\n" not in record or rows.cells_of(record, b",") is not None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'1,"a\nb"\n2,c\n', [b'1,"a\nb"', b"2,c"]),
        (b'1,"a\r\nb"\r\n2,c\r\n', [b'1,"a\r\nb"\r', b"2,c\r"]),
        (b'1,"a\n2,b\n3,c\n', [b'1,"a', b"2,b", b"3,c"]),  # a quote without an end loses one record
        (b'1,"a\n2,"b"\n3,c\n', [b'1,"a', b'2,"b"', b"3,c"]),
        (b'1,5" long\n2,"b\nc"\n', [b'1,5" long', b'2,"b\nc"']),
        (b'"' + b"a\n" * rows.LONGEST_LINE + b'"\n', None),
        (b"", []),
        (b"\n\n", [b"", b""]),
    ],
)
def test_a_record_ends_where_its_quotes_do(data, expected):
    actual = list(rows.records(data, b","))
    assert actual == (data.split(b"\n")[:-1] if expected is None else expected)


def test_open_quotes_take_no_time():
    """Each of these lines has an open quote. Joining each with all that follow would take minutes."""
    data = b'"a,b,c\n' * 50_000
    start = time.process_time()
    assert len(list(rows.records(data, b","))) == 50_000
    assert time.process_time() - start < 20
