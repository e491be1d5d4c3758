"""Convert each line of a file to a row of integers of bounded norm.

Line feeds separate records. From each line and public numbers only, `Schema.rows` computes a row v of
integers, with ||v|| <= 2^20 exactly; v stands for v 2^-20. An invalid line becomes the row of zeros with
the label 0, which adds nothing to a gradient. A line is invalid if its number of cells is wrong, its quotes
are invalid, it is a comment, or a cell has no valid number or category. To bound memory, lines of more than
64 KiB (or 200 bytes per column, if that is more) are invalid, too. So a changed line changes only its row,
and no message reveals its content.

A number is [+-] digits [. digits] [e [+-] digits] in ASCII, between spaces or tabs. Digits may be missing
on one side of the point, which is a comma if the `Format` says so. Its exact value x is clipped to public
bounds [low, high] and mapped to trunc(K (2 x - low - high)/(high - low)), where K = floor(2^20/sqrt(c)) and
c counts the numeric columns, the categorical columns and the constant. A category is coded as K in its own
column; a reference level has no column. So the squared norm is at most c K^2 <= 4^20. Rows are divided by a
public `radius` <= 1 and, if they become too long, shortened. A cell in `EMPTY` that is no listed category
is missing, and so is one of the column's `codes`. The column's `missing` replaces it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dp.rows import BLOCK_ROWS, slices
from dp_privacy.errors import Refused
from dp_release.formats import BOM, PLAIN, Format

__all__ = ["Category", "Label", "Number", "Schema"]

DIGITS = 20
ONE = 1 << DIGITS  # maximum norm of a row
WIDEST = 1 << 14  # maximum number of columns
NUMBER = re.compile(rb"([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?")
LONGEST_CELL = 200  # bytes; a longer cell is not a number
LONGEST_LINE = 1 << 16  # bytes; a longer line is invalid, except with many columns
FAR = 1000  # decimal exponent beyond which a number is 0 or exceeds every bound
KEPT = 1 << 16  # maximum number of cached cells per column
OPEN: list[bytes] = []  # what `_parsed` returns for a line in which a quote has no end
EMPTY = (b"", b"nan", b"na", b"n/a", b"null", b"?")  # missing cells, ignoring case
Value = str | float | int | bool


class Number(NamedTuple):
    """A column of numbers.

    Attributes
    ----------
    name : str
        Name in the file's header.
    low, high : float or int or str
        Public bounds, exactly as written. Cells are clipped to them.
    missing : float or int or str or None
        Replaces missing cells; if None, their rows become zeros.
    codes : tuple
        Further values that stand for a missing cell, such as -9. They are compared as categories are.
    find : dict or None
        How a release finds narrower bounds between these (`dp_release.bounds`); None for bounds as stated.
    """

    name: str
    low: float | int | str
    high: float | int | str
    missing: Value | None = None
    codes: tuple[Value, ...] = ()
    find: dict | None = None


class Category(NamedTuple):
    """A column with public categories. Text is compared byte by byte, numbers by value.

    Attributes
    ----------
    name, missing, codes
        As in `Number`.
    values : tuple
        Categories.
    reference : str or float or int or bool or None
        Reference level, which has no column.
    """

    name: str
    values: tuple[Value, ...]
    reference: Value | None = None
    missing: Value | None = None
    codes: tuple[Value, ...] = ()


class Label(NamedTuple):
    """A target of two classes, -1 and 1.

    Attributes
    ----------
    name, missing, codes
        As in `Number`.
    positive : tuple
        Values of the class 1.
    negative : tuple
        Values of the class -1; by default all others that are not missing.
    above : float or int or str or None
        Larger numbers have the class 1, all others -1.
    """

    name: str
    positive: tuple[Value, ...] = ()
    negative: tuple[Value, ...] = ()
    above: float | int | str | None = None
    missing: Value | None = None
    codes: tuple[Value, ...] = ()


class Unused(NamedTuple):
    """A column that is never read."""

    name: str


Column = Number | Category | Label | Unused
KINDS = {"number": Number, "category": Category, "label": Label, "unused": Unused}


class Schema:
    """Public facts about a file, which define its rows.

    Parameters
    ----------
    columns : Sequence
        `Number`, `Category`, `Label` or `Unused`, in the file's order.
    target : str
        Predicted column. A `Label` or a `Category` of two values becomes -1 and 1. A `Number` is
        mapped to [-1, 1].
    format : dp_release.formats.Format
        How the file's text stands for cells.
    radius : float or str
        Maximum norm, as a share of the largest possible: 0.001 to 1.
    constant : bool
        Whether to add a constant column, for an intercept.

    Methods
    -------
    rows
        Convert lines of a file to rows of integers.

    Examples
    --------
    >>> schema = Schema([Number("age", 0, 120), Category("ill", ("no", "yes"))], target="ill")
    >>> V, y = schema.rows([b"30,no", b"90,yes", b"what does not parse"], n=3)
    >>> print(schema.names, V.shape, y)
    ['age', 'constant'] (3, 2) [-1  1  0]
    """

    def __init__(
        self,
        columns: Sequence[Column],
        target: str,
        format: Format = PLAIN,
        radius: float | str = 1,
        constant: bool = True,
    ) -> None:
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            raise Refused("two columns have the same name: columns need different names")
        if target not in names:
            raise Refused(f"no column is the target {target!r}")
        format = format.checked()
        share = fraction(radius)
        if share is None or not Fraction(1, 1000) <= share <= 1:
            raise Refused(f"the radius must be between 0.001 and 1, not {radius}")
        used = [c for c in columns if c.name != target and not isinstance(c, Unused)]
        count = len(used) + constant
        if not count:
            raise Refused("no column is left to predict from")
        squared = 4**DIGITS / Fraction(count)
        self.each = math.floor(math.isqrt(math.floor(squared)) / share)
        self.columns, self.radius = tuple(columns), radius
        self.format, self.separator, self.names = format, format.separator, []
        self.longest = max(LONGEST_LINE, LONGEST_CELL * len(columns))
        self.cells: list[Callable | None] = []  # per column: cell reader, None if unused
        for column in columns:
            if column.name == target:
                self.numbers = isinstance(column, Number)
                self.cells.append(_target(column, format))
            elif isinstance(column, Unused):
                self.cells.append(None)
            else:
                self.cells.append(_reader(column, len(self.names), self.each, format))
                self.names += _titles(column)
        self.target = names.index(target)
        self.used = [k for k, cell in enumerate(self.cells) if cell and k != self.target]
        self.constant = len(self.names) if constant else None
        self.names += ["constant"] * constant
        if len(self.names) > WIDEST:
            raise Refused(f"{len(self.names)} columns are more than {WIDEST}")

    @property
    def d(self) -> int:
        """Number of columns of a row."""
        return len(self.names)

    @property
    def facts(self) -> dict:
        """The schema as plain data, which `from_facts` reads."""
        kinds = {kind: name for name, kind in KINDS.items()}
        columns = [{"kind": kinds[type(c)]} | _plain(c) for c in self.columns]
        return {
            "columns": columns,
            "target": self.columns[self.target].name,
            **self.format.facts,
            "radius": self.radius,
            "constant": self.constant is not None,
        }

    def record(self, line: bytes, v: np.ndarray) -> int:
        """Write a line's row, not yet shortened, into v (d,), which must be zero, and return the label.

        The label is -1, 1 or a target in units of 2^-20, and 0 for an invalid line.
        """
        cells = self.split(line)
        if cells is None:
            return 0
        label = self.cells[self.target](cells[self.target])
        if label is None or not self.row([cells[k] for k in self.used], v):
            return 0
        return label

    def split(self, line: bytes) -> list[bytes] | None:
        """A line's cells, one per column, or None if the line is invalid."""
        line = line.removeprefix(BOM)  # of any line, so that no line's place matters
        cells = cells_of(line, self.separator) if len(line) <= self.longest else None
        if cells is None or len(cells) != len(self.cells) or self.format.is_comment(cells):
            return None
        return cells

    def row(self, cells: Sequence[bytes], v: np.ndarray) -> bool:
        """Write the row of cells, one per column of `used`, into v (d,), which must be zero.

        Return False, and leave v unchanged, if a cell is invalid.
        """
        values = [self.cells[k](cell) for k, cell in zip(self.used, cells, strict=True)]
        if None in values:
            return False
        for column, value in values:
            if column is not None:
                v[column] = value
        if self.constant is not None:
            v[self.constant] = self.each
        return True

    def rows(self, lines: Iterable[bytes], n: int) -> tuple[np.ndarray, np.ndarray]:
        """Convert lines of a file to rows of integers.

        Parameters
        ----------
        lines : Iterable[bytes]
            Lines after the header. If there are fewer than n, zeros fill the rest.
        n : int
            Public number of lines.

        Returns
        -------
        V : numpy.ndarray of int32, (n, d)
            Rows in units of 2^-20, zeros for invalid lines.
        y : numpy.ndarray of int32, (n,)
            Labels -1 and 1, or targets in units of 2^-20; 0 in rows of zeros.
        """
        V, y = np.zeros((n, self.d), np.int32), np.zeros(n, np.int32)
        for i, line in zip(range(n), lines, strict=False):
            y[i] = self.record(line, V[i])
        return shortened(V), y


def from_facts(facts: dict) -> Schema:
    """The schema that `Schema.facts` describes."""
    columns = []
    for each in facts["columns"]:
        rest = {key: tuple(v) if isinstance(v, list) else v for key, v in each.items()}
        columns.append(KINDS[rest.pop("kind")](**rest))
    format = Format.of(facts | {"delimiter": facts["separator"]})
    return Schema(columns, facts["target"], format, facts["radius"], facts["constant"])


def _plain(column):
    fields = column._asdict().items()
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in fields}
    return {key: v for key, v in plain.items() if v is not None and (key != "codes" or v)}


def header(data: bytes, format: Format = PLAIN) -> list[str]:
    """The column names in a file."""
    lines = split_lines(data, header=False)
    return header_names(b"".join(lines[format.names_at(lines) :][:1]), format)


def header_names(line: bytes, format: Format) -> list[str]:
    """The column names in a header."""
    cells = cells_of(line.removeprefix(BOM), format.separator)
    if cells is None:
        raise Refused("the line is no header of column names")
    return [cell.decode(format.encoding, errors="replace").strip() for cell in cells]


def different(names: list[str]) -> list[str]:
    """Names of a file's columns. Those that occur more than once, such as "", become "column k"."""
    counts = Counter(names)
    return [name if counts[name] == 1 else f"column {k}" for k, name in enumerate(names, 1)]


def split_lines(data: bytes, header: bool = True, format: Format = PLAIN) -> list[bytes]:
    """The lines of a file; if one of them names the columns, only those below it."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines[format.names_at(lines) + 1 :] if header else lines


def records(data: bytes, separator: bytes, first: int = 0) -> Iterator[bytes]:
    """Yield the records of a file, in which quoted cells may hold line feeds, unlike in `split_lines`.

    first: the place, from 0, of the line with which they begin. A line with an open quote is joined with
    the lines up to the quote's end. If the result is invalid or longer than `LONGEST_LINE`, the line alone
    is a record, which is invalid.
    """
    lines, k = split_lines(data, header=False), first
    while k < len(lines):
        end = k + 1
        if _parsed(lines[k], separator) == OPEN:
            end = _end(lines, k, separator)
        yield b"\n".join(lines[k:end])
        k = end


def _end(lines, first, separator):
    """The end of the record that begins in the line `first`, which has an open quote."""
    size = len(lines[first])
    for k in range(first + 1, len(lines)):
        size += len(lines[k]) + 1
        if size > LONGEST_LINE:
            break
        if b'"' in lines[k]:  # it may close the quote
            cells = _parsed(b"\n".join(lines[first : k + 1]), separator)
            if cells != OPEN:
                return first + 1 if cells is None else k + 1
    return first + 1


def cells_of(line: bytes, separator: bytes) -> list[bytes] | None:
    """The cells of a line, which may be quoted; None if the quotes are invalid."""
    return _parsed(line, separator) or None


def _parsed(line, separator):
    """The cells of a line, OPEN if a quoted cell has no end, or None if quotes are otherwise invalid."""
    line = line.removesuffix(b"\r")
    if b'"' not in line:
        return [cell.strip(b" \t") for cell in line.split(separator)]
    cells, at = [], 0
    blank = b" \t".replace(separator, b"")
    # Possessive quantifiers avoid backtracking, which takes memory.
    quoted = re.compile(rb'[%b]*+"([^"]*+(?:""[^"]*+)*+)"[%b]*+' % (blank, blank))
    while True:
        match = quoted.match(line, at)
        if match:
            cell, at = match[1].replace(b'""', b'"'), match.end()
        else:
            end = line.find(separator, at)
            end = len(line) if end < 0 else end
            cell, at = line[at:end].strip(b" \t"), end
            if b'"' in cell:
                return OPEN if cell.startswith(b'"') else None
        cells.append(cell)
        if at == len(line):
            return cells
        if line[at : at + 1] != separator:
            return None
        at += 1


def decimal(cell: bytes) -> tuple[int, int] | None:
    """(m, e) for the number m 10^e in a cell, or None if the cell is not a number.

    An e above FAR becomes FAR, and a number with e below -FAR becomes 0.
    """
    match = NUMBER.fullmatch(cell) if len(cell) <= LONGEST_CELL else None
    if match is None:
        return None
    sign, whole, rest, only, exponent = match.groups()
    rest = rest or only or b""
    m, e = int((whole or b"") + rest), int(exponent or 0) - len(rest)
    if m == 0 or e < -FAR:
        return 0, 0
    return (-m if sign == b"-" else m), min(e, FAR)


def _affine(column, largest, format):
    """A function that clips a cell's number to the bounds and maps it to [-largest, largest]."""
    low, high = (_bound(column, value) for value in (column.low, column.high))
    if not low < high:
        raise Refused(f"the bounds of {column.name!r} must be [low, high] with low < high")
    number_of = number_reader(column, format)
    common = math.lcm(low.denominator, high.denominator)
    middle, width = int((low + high) * common), int((high - low) * common)

    def read(cell):
        number = number_of(cell)
        if number is None:
            return None
        m, e = number
        up, down = (10**e, 1) if e >= 0 else (1, 10**-e)
        over = largest * (2 * common * m * up - middle * down)
        size = min(abs(over) // (width * down), largest)
        return size if over > 0 else -size

    return remembered(read)


def number_reader(column: Number, format: Format) -> Callable[[bytes], tuple[int, int] | None]:
    """A function from a cell to its `decimal`, with a missing cell replaced if the column says by what."""
    instead = None if column.missing is None else decimal(str(column.missing).encode())
    if instead is None and column.missing is not None:
        raise Refused(f"missing cells of {column.name!r} must become a number")
    missing = is_missing(column.codes, format)

    def read(cell):
        return instead if missing(cell) else decimal(format.plain(cell))

    return read


def _bound(column, value):
    bound = fraction(value)
    if bound is None or abs(bound) > 10**100 or bound.denominator > 10**100:
        raise Refused(f"{value!r} is not a bound of the numbers of {column.name!r}")
    return bound


def fraction(value: float | str) -> Fraction | None:
    """The exact value of a number as written, or None if `value` is not a number."""
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        return None


def remembered(read: Callable) -> Callable:
    """Add a cache to `read`, because most columns have few distinct values."""
    known = {}

    def remembered(cell):
        if cell in known:
            return known[cell]
        value = read(cell)
        if len(known) < KEPT:
            known[cell] = value
        return value

    return remembered


def _titles(column):
    if isinstance(column, Number):
        return [column.name]
    return [f"{column.name}={value}" for value in column.values if value != column.reference]


def _reader(column, first, largest, format):
    """A function from a cell to (position in the row, value). A reference level has the position None."""
    if isinstance(column, Number):
        affine = _affine(column, largest, format)

        def number(cell):
            value = affine(cell)
            return None if value is None else (first, value)

        return number
    if isinstance(column, Label):
        raise Refused(f"{column.name!r} is a label, and so it is the target")
    if column.reference is not None and column.reference not in column.values:
        raise Refused(f"{column.reference!r} is no category of {column.name!r}")
    levels = [value for value in column.values if value != column.reference]
    places = [levels.index(v) + first if v in levels else None for v in column.values]
    return _looked_up(column, column.values, [(place, largest) for place in places], format)


def _target(column, format):
    if isinstance(column, Number):
        return _affine(column, ONE, format)
    if isinstance(column, Label):
        return _label(column, format)
    if isinstance(column, Unused) or len(column.values) != 2:
        raise Refused("the target is a column of numbers, or has two categories")
    return _looked_up(column, column.values, (-1, 1), format)


def _label(column, format):
    if (column.above is None) == (not column.positive):
        raise Refused(
            f"{column.name!r} needs the values that are positive, or the number above which"
        )
    for value in (*column.positive, *column.negative):
        if isinstance(value, bool):
            raise Refused(
                f"a label of {column.name!r} is {str(value).lower()}, which YAML also makes of yes, no, on "
                f"and off: quote it exactly as it is in the file"
            )
    if column.above is None:
        values = (*column.negative, *column.positive)
        labels = [-1] * len(column.negative) + [1] * len(column.positive)
        rest = None if column.negative else -1
        return _looked_up(column, values, labels, format, rest)
    threshold, instead = _bound(column, column.above), None
    if column.missing is not None:
        instead = decimal(str(column.missing).encode())
    missing = is_missing(column.codes, format)

    def read(cell):
        number = instead if missing(cell) else decimal(format.plain(cell))
        return None if number is None else 1 if value_of(number) > threshold else -1

    return remembered(read)


def _looked_up(column, values, results, format, rest=None):
    """A function that maps cells with values[k] to results[k], and other cells to `rest`.

    `column.missing` replaces missing cells; without it, they give None.
    """
    keys = {_key(value, format) for value in values}
    if not values or len(keys) < len(values) or len(set(values)) < len(values):
        raise Refused(f"the categories of {column.name!r} must be different, and at least one")
    place, instead = finder(values, format), None
    missing = is_missing(column.codes, format, values)
    if column.missing is not None:
        instead = rest
        found = finder(values, PLAIN)(str(column.missing).encode())
        if found is not None:
            instead = results[found]
        elif rest is None or str(column.missing).lower().encode() in EMPTY:
            raise Refused(f"missing cells of {column.name!r} must become one of its categories")

    def read(cell):
        if missing(cell):
            return instead
        k = place(cell)
        return rest if k is None else results[k]

    return remembered(read)


def is_missing(
    codes: Sequence[Value], format: Format, listed: Sequence[Value] = ()
) -> Callable[[bytes], bool]:
    """A function that says whether a cell is missing: one of the codes, or in EMPTY and not listed."""
    for code in codes:
        if finder(listed, PLAIN)(str(code).encode()) is not None:
            raise Refused(f"{code!r} cannot be a category and a code for a missing cell")
    coded, place = finder(codes, format), finder(listed, format)

    def missing(cell):
        return coded(cell) is not None or (cell.lower() in EMPTY and place(cell) is None)

    return missing


def finder(values: Sequence[Value], format: Format) -> Callable[[bytes], int | None]:
    """A function from a cell to the place of its value among listed values, or to None.

    Text is compared byte by byte, true and false without regard to case, and numbers by value.
    """
    known = {}
    for k, value in enumerate(values):
        known.setdefault(_key(value, format), k)

    def find(cell):
        if not known:
            return None
        if cell in known:
            return known[cell]
        if cell.lower() in (b"true", b"false"):
            return known.get(cell.lower())
        number = decimal(format.plain(cell))
        return None if number is None else known.get(value_of(number))

    return find


def _key(value, format):
    if isinstance(value, bool):
        return str(value).lower().encode()
    if isinstance(value, str):
        return format.encoded(value)
    number = fraction(value)
    if number is None:
        raise Refused(f"{value!r} is no category: state text, a number, true or false")
    return number


def value_of(pair: tuple[int, int]) -> Fraction:
    """The value of a pair (m, e) from `decimal`."""
    m, e = pair
    return Fraction(m * 10**e) if e >= 0 else Fraction(m, 10**-e)


def shortened(V: np.ndarray) -> np.ndarray:
    """Shorten integer rows (n, d) to norms of at most 2^20, exactly, as int32.

    Entries are clipped to [-2^31, 2^31]. A row v that is too long becomes trunc(2^20 v/r) with r =
    ceil(||v||). A row whose squares could overflow is first halved until they cannot; its norm is
    then still above 2^20.
    """
    out = np.empty(V.shape, np.int32)
    for part in slices(len(V), BLOCK_ROWS):
        block = np.clip(V[part].astype(np.int64), -(1 << 31), 1 << 31)
        # A row with an entry above 2^23 is too long. Otherwise, 2^14 squares sum to at most 2^60.
        while (large := (np.abs(block) > 1 << 23).any(axis=1)).any():
            block[large] = np.where(block[large] < 0, -(-block[large] // 2), block[large] // 2)
        squares = np.einsum("ij,ij->i", block, block)
        long = np.flatnonzero(squares > ONE * ONE)
        if len(long):
            length = np.sqrt(squares[long].astype(float)).astype(np.int64)
            for _ in range(2):  # the rounded root may be too small by 1 or 2
                length += length * length < squares[long]
            sizes = (np.abs(block[long]) << DIGITS) // length[:, None]
            block[long] = np.where(block[long] < 0, -sizes, sizes)
        out[part] = block
    return out


def bounded(V: np.ndarray, y: np.ndarray, numbers: bool) -> tuple[np.ndarray, np.ndarray]:
    """Bounded rows X (n, d) of float32 and labels y of float64, from any integers.

    X is exactly 2^-20 times the shortened V. With `numbers`, the targets y, given in units of 2^-20, are
    clipped to [-1, 1]. Otherwise, labels become their signs, and rows with the label 0 become zeros.
    """
    V, y = np.asarray(V), np.asarray(y)
    if V.dtype.kind not in "iu" or y.dtype.kind not in "iu":
        raise Refused("rows and labels must be integers, in units of 2^-20")
    if V.ndim != 2 or y.shape != V.shape[:1] or V.shape[1] > WIDEST:
        raise Refused(f"rows are (n, d) with d <= {WIDEST}, and labels (n,)")
    X, y = shortened(V).astype(np.float32), y.astype(np.int64)
    X *= np.float32(1 / ONE)
    if numbers:
        return X, np.clip(y, -ONE, ONE) / ONE
    X[y == 0] = 0
    return X, np.sign(y).astype(float)
