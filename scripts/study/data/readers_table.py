"""Read tables in blocks of rows: CSV text, Parquet, and pandas' pickles with a known checksum.

A block has row numbers (a file's first line is row 1) and columns by name. A numeric column is an array of
floats, with NaN for missing cells. Any other column is a pair (codes, texts) with cells texts[codes].
"""

import csv
import hashlib
import importlib
import io
import itertools
import re
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from study.data.readers_text import AGAIN, brief, open_text

BLOCK = 1 << 23  # characters of a CSV file read at a time
BLOCK_ROWS = 1 << 16
PLAIN_DELIMITERS = (",", ";", "\t", "|", ":")
PICKLE = re.compile(r"\.(pkl|pickle)(\.\w+)?$")
MAGIC = {b"\xfd7zXZ\0": "xz", b"\x1f\x8b": "gzip", b"BZh": "bz2"}


def is_pickle(path):
    return PICKLE.search(str(path)) is not None


def is_parquet(path):
    return str(path).endswith(".parquet")


def read_blocks(path, choose, *, sha256=None, **csv_options):
    """Read a file in blocks (row numbers, columns).

    choose: a function from all column names to (names of numeric columns, names of text columns). If it
    chooses no columns, rows are only counted. sha256: a pickle's checksum. csv_options: member, delimiter,
    names and comment.
    """
    if is_pickle(path):
        return _pickle_blocks(path, choose, sha256)
    if is_parquet(path):
        return _parquet_blocks(path, choose)
    return _csv_blocks(path, choose, **csv_options)


def _csv_blocks(path, choose, *, member=None, delimiter=",", names=None, comment=None):
    try:
        with _utf8(path, member, delimiter) as handle:
            read, header = 0, names
            if names is None:
                for row in csv.reader(iter(handle.readline, ""), delimiter=delimiter):
                    read += 1
                    if row and not (comment and row[0].startswith(comment)):
                        header = [name.strip() for name in row]
                        break
                else:
                    raise ValueError(f"{path}: is empty")
            numeric, text = choose([name for name in header if name is not None])
            where = {name: header.index(name) for name in (*numeric, *text)}
            blocks = _whole_lines(handle)
            for lines in blocks:
                while comment and names and lines.startswith(comment):
                    lines, read = lines.partition("\n")[2], read + 1
                names = None  # only the first block may begin with comments
                parts = _parts(lines, delimiter)
                if parts is None:
                    rest = map(io.StringIO, itertools.chain([lines], blocks))
                    rows = csv.reader(itertools.chain.from_iterable(rest), delimiter=delimiter)
                    yield from _records(path, rows, read, header, where, text)
                    return
                content, ends, delimiters, filled = parts
                numbers = read + 1 + np.flatnonzero(filled)
                read += len(filled)
                if not len(numbers):
                    continue
                columns = {}
                if where:
                    widths = 1 + np.diff(np.searchsorted(delimiters, ends), prepend=0)
                    if (widths != len(header)).any():
                        bad = int(np.argmax(widths != len(header)))
                        line = content[ends[bad - 1] + 1 if bad else 0 : ends[bad]].decode()
                        cells = next(csv.reader([line], delimiter=delimiter))
                        raise ValueError(_wrong_width(path, numbers[bad], cells, header))
                    columns = _parsed(content, delimiter, len(header), where, text)
                yield numbers, columns
    except csv.Error as error:
        raise ValueError(f"{path}: is not a CSV file ({error})") from None


def _whole_lines(handle):
    rest = []
    while part := handle.read(BLOCK):
        cut = part.rfind("\n") + 1
        rest.append(part[:cut])
        if cut:
            yield "".join(rest)
            rest = []
        rest.append(part[cut:])
    if any(rest):
        yield "".join(rest)


def _parts(lines, delimiter):
    """(bytes, ends of rows, ends of other cells, mask of rows that are not empty) of whole lines.

    Empty rows are removed here, because pandas would also remove lines that contain only spaces. The result
    is None if pandas and the csv module might disagree, such as on quotes inside a cell, or on a cell that
    continues in the next block.
    """
    if delimiter not in PLAIN_DELIMITERS or "\0" in lines or lines.startswith("\ufeff"):
        return None
    content = np.frombuffer((lines if lines.endswith("\n") else lines + "\n").encode(), np.uint8)
    ends, cells = content == ord("\n"), content == ord(delimiter)
    if '"' in lines:
        quotes = content == ord('"')
        places = np.flatnonzero(quotes)
        beside = ends | cells | quotes  # two quotes in a cell stand for one quote
        before, behind = places[::2] - 1, places[1::2] + 1
        if len(places) % 2 or not (beside[before[before >= 0]].all() and beside[behind].all()):
            return None
        outside = (np.cumsum(quotes, dtype=np.uint8) & 1) == 0
        ends, cells = ends & outside, cells & outside
    places = np.flatnonzero(ends)
    filled = np.diff(places, prepend=-1) > 1
    if not filled.all():
        kept = np.ones(len(content), bool)
        kept[places[~filled]] = False
        content, ends, cells = content[kept], ends[kept], cells[kept]
    return content.tobytes(), np.flatnonzero(ends), np.flatnonzero(cells), filled


def _wrong_width(path, number, cells, header):
    """Say that a row is too short or too long (pandas would pad or truncate it), and how to mend it."""
    few = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
    problem = f"{path}: row {number} has {few}, the header {len(header)}"
    if len(cells) > len(header):
        if any(cells[len(header) :]):
            return f"{problem}: a cell with a delimiter, such as a decimal comma, must be in quotes"
        return (
            f"{problem}: delete the delimiters at the ends of rows, or end the header with as many"
        )
    if not any(header[len(cells) :]):
        return f"{problem}: delete the delimiters at the end of the header"
    return f"{problem}: delete lines that are no rows, such as notes below the table"


@contextmanager
def _utf8(path, member, delimiter):
    """`open_text`, but the error for other text also says where it is, and what it may be."""
    with open_text(path, member) as handle:
        try:
            yield handle
        except UnicodeDecodeError:
            raise ValueError(
                f"{path}: is not UTF-8 text{_not_utf8(path, member, delimiter)}"
            ) from None


def _not_utf8(path, member, delimiter):
    # Every byte is a character of Latin-1.
    with open_text(path, member, "latin-1") as handle:
        if handle.read(2) in ("\xff\xfe", "\xfe\xff"):
            return " (likely UTF-16): save it as UTF-8"
    with open_text(path, member, "latin-1") as handle:
        for number, row in enumerate(csv.reader(handle, delimiter=delimiter), 1):
            for column, cell in enumerate(row, 1):
                try:
                    cell.encode("latin-1").decode()
                except UnicodeDecodeError:
                    # Windows-1252 has letters and quotation marks where Latin-1 has control characters.
                    windows = any("\x80" <= letter <= "\x9f" for letter in cell)
                    kind = "Windows-1252" if windows else "Latin-1"
                    text = cell.encode("latin-1").decode("cp1252", "replace")
                    return (
                        f": row {number}, column {column} is likely {brief(text)!r} in {kind}; save the "
                        f"file as UTF-8"
                    )
    return ": save it as UTF-8"


def first_row(path, names, *, member=None, delimiter=",", **_):
    """The number of the first row, among the first 100 of a CSV file, that has all `names`; or None."""
    if is_pickle(path) or is_parquet(path):
        return None
    with open_text(path, member) as handle, suppress(csv.Error, UnicodeDecodeError):
        rows = itertools.islice(csv.reader(handle, delimiter=delimiter), 100)
        for number, row in enumerate(rows, 1):
            if names <= set(map(str.strip, row)):
                return number
    return None


def _parsed(content, delimiter, width, where, text):
    import pandas as pd  # a slow import: 0.6 s

    def parse(floats, only=None):
        dtypes = dict.fromkeys((where[name] for name in only or where), object)
        frame = pd.read_csv(
            io.BytesIO(content),
            sep=delimiter,
            header=None,
            names=range(width),
            usecols=list(dtypes),
            dtype=dtypes | {where[name]: float for name in floats},
            # Keep "NA", "null" and empty cells as text.
            na_filter=False,
            skip_blank_lines=False,
            low_memory=False,
        )
        return {name: frame[where[name]] for name in only or where}

    def fits(names, only=None):
        try:
            columns = parse(names, only)
        except ValueError:
            return None
        return columns if all(np.isfinite(columns[name]).all() for name in names) else None

    numeric = [name for name in where if name not in text]
    columns = fits(numeric)
    if columns is None:  # read a column as text if one of its cells is not a number
        columns = parse([name for name in numeric if fits([name], [name])])
    return {name: _values(column, name not in text) for name, column in columns.items()}


def _records(path, rows, read, header, where, text):
    """Yield blocks of rows, parsed by the csv module."""
    numbered = ((number, row) for number, row in enumerate(rows, read + 1) if row)
    while part := list(itertools.islice(numbered, BLOCK_ROWS)):
        for number, row in part:
            if where and len(row) != len(header):
                raise ValueError(_wrong_width(path, number, row, header))
        cells = list(zip(*(row for _, row in part), strict=bool(where)))
        columns = {}
        for name, place in where.items():
            columns[name] = None if name in text else _floats(cells[place])
            if columns[name] is None:
                import pandas as pd

                codes, texts = pd.factorize(np.array(cells[place], dtype=object))
                columns[name] = codes, list(texts)
        yield np.array([number for number, _ in part]), columns


def _floats(cells):
    """Strings as floats; None unless all are finite and `canonical.parse` accepts them."""
    together = "".join(cells)
    if "_" in together or not together.isascii():
        return None
    try:
        values = np.array(list(map(float, cells)))
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _values(series, numeric):
    """A block's column, from a pandas Series. Missing text cells become empty strings."""
    import pandas as pd

    kind = series.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return series.cat.codes.to_numpy(), [*map(_text, series.cat.categories), ""]
    if numeric and pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        return series.to_numpy(float, na_value=np.nan)
    codes, texts = pd.factorize(series)  # a missing cell gets the code -1
    return codes, [*map(_text, texts), ""]


def _text(value):
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def _parquet_blocks(path, choose):
    try:  # pyarrow is optional
        broken = importlib.import_module("pyarrow").ArrowException
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ValueError(
            f"{path}: is a Parquet file, which needs pyarrow: install it beside the other packages "
            f"(python -m pip install pyarrow), or save the table as CSV"
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            chosen = choose(list(file.schema_arrow.names))
            read = 0
            for batch in file.iter_batches(BLOCK_ROWS, columns=[*chosen[0], *chosen[1]]):
                # As floats, integers beside missing cells would lose digits.
                frame = batch.to_pandas(integer_object_nulls=True)
                yield _frame_block(frame, batch.num_rows, read, *chosen)
                read += batch.num_rows
    except (OSError, broken) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None


def _pickle_blocks(path, choose, sha256):
    """Yield blocks of a pickle, whose checksum must be the configured one: loading can run any code."""
    import pandas as pd

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    if sha256 is None:
        raise ValueError(f"{path}: is a pickle, which is read only where its SHA-256 is configured")
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != sha256:
        raise ValueError(
            f"{path}: wrong checksum: expected SHA-256 {sha256}, found {checksum}; {AGAIN}"
        )
    kind = next((kind for magic, kind in MAGIC.items() if content.startswith(magic)), None)
    frame = pd.read_pickle(io.BytesIO(content), compression=kind)
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"{path}: holds a {type(frame).__name__}, not a table")
    frame.columns = list(map(str, frame.columns))
    chosen = choose(list(frame.columns))
    for start in range(0, len(frame), BLOCK_ROWS):
        part = frame.iloc[start : start + BLOCK_ROWS]
        yield _frame_block(part, len(part), start, *chosen)


def _frame_block(frame, rows, read, numeric, text):
    numbers = read + 1 + np.arange(rows)
    return numbers, {name: _values(frame[name], name in numeric) for name in (*numeric, *text)}
