"""Read tables in blocks of rows: CSV text, Parquet, and pandas' pickles with a known checksum.

A block has row numbers (a file's first line is row 1) and columns by name. A numeric column is `Numbers`.
Any other column is a pair (codes, texts) with cells texts[codes].

Polars reads the text of a block as text, and converts it by columns. If quotes in a block are not around
whole cells, or one is closed in a later block, the csv module reads this block and all that follow.
"""

import csv
import hashlib
import importlib
import io
import itertools
import json
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dp_release.formats import BOM, Format, likely_encoding
from study.data.readers_text import AGAIN, brief, open_text

BLOCK = 1 << 23  # characters of a CSV file read at a time
BLOCK_ROWS = 1 << 16
BLANK = " \t\n\r"  # what may stand around a cell
TOP = 100  # number of lines in which names are sought
DELIMITERS = ";\t,|"
PICKLE = re.compile(r"\.(pkl|pickle)(\.\w+)?$")
MAGIC = {b"\xfd7zXZ\0": "xz", b"\x1f\x8b": "gzip", b"BZh": "bz2"}


class Numbers(NamedTuple):
    """A numeric column: floats, and cells texts[codes] at places where they are no finite numbers."""

    values: np.ndarray
    places: np.ndarray
    codes: np.ndarray
    texts: list


def is_pickle(path):
    return PICKLE.search(str(path)) is not None


def is_parquet(path):
    return str(path).endswith(".parquet")


def read_blocks(path, choose, *, sha256=None, **csv_options):
    """Read a file in blocks (row numbers, columns).

    choose: a function from all column names to (names of numeric columns, names of text columns). If it
    chooses no columns, rows are only counted. sha256: a pickle's checksum. csv_options: member, names, and
    keys of `dp_release.formats.Format`.
    """
    if is_pickle(path):
        return _pickle_blocks(path, choose, sha256)
    if is_parquet(path):
        return _parquet_blocks(path, choose)
    return _csv_blocks(path, choose, **csv_options)


def _csv_blocks(path, choose, *, member=None, names=None, **keys):
    format = Format.of(keys)
    try:
        with _decoded(path, member, format) as handle:
            read, header = (0, names) if names else _names(path, handle, format)
            numeric, text = choose([name for name in header if name is not None])
            where = {name: header.index(name) for name in (*numeric, *text)}
            blocks = _whole_lines(handle)
            for lines in blocks:
                frame = _parsed(lines, format.delimiter, len(header), where.values())
                if frame is None:
                    rest = itertools.chain([lines], blocks)
                    yield from _records(path, rest, read, header, where, text, format)
                    return
                kept, first = np.ones(len(frame), bool), frame.to_series(0)
                if format.comment:
                    starts = first.str.strip_chars_start().str.starts_with(format.comment)
                    kept &= ~starts.fill_null(False).to_numpy()
                # Only a row whose last cell is null can be empty or too short.
                if frame.to_series(-1).null_count():
                    rows = list(csv.reader(io.StringIO(lines), delimiter=format.delimiter))
                    kept &= np.fromiter(map(bool, rows), bool)
                    part = itertools.compress(enumerate(rows, 1), kept)
                    _check_widths(path, read, part if where else (), header)
                numbers = read + 1 + np.flatnonzero(kept)
                read += len(frame)
                if not kept.all():
                    frame = frame.filter(kept)
                if len(numbers):
                    series = {name: frame[str(place)] for name, place in where.items()}
                    yield numbers, _converted(series, text, format)
    except csv.Error as error:
        raise ValueError(f"{path}: is not a CSV file ({error})") from None


def _names(path, handle, format):
    """The number of rows up to the line that names the columns, and the names."""
    read, lines = 0, iter(handle.readline, "")
    for line in lines:
        if format.is_above(read, line.encode()):
            read += 1
            continue
        row = next(csv.reader(itertools.chain([line], lines), delimiter=format.delimiter))
        if not read:  # a mark of UTF-8 before text in another encoding
            row[0] = row[0].removeprefix(BOM.decode(format.encoding, "replace"))
        return read + 1, [name.strip() for name in row]
    raise ValueError(f"{path}: is empty")


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


def _parsed(lines, delimiter, width, places):
    """The first, the last and these columns of whole lines, as a frame of text, one row per record.

    None if Polars does not read them as the csv module does.
    """
    content = lines.encode()
    if not _are_around_cells(content, delimiter):
        return None
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # a job has one processor
    import polars as pl

    try:
        return pl.read_csv(
            io.BytesIO(content),
            has_header=False,
            separator=delimiter,
            schema=dict.fromkeys(map(str, range(width)), pl.String),
            columns=sorted({0, *places, width - 1}),
            missing_columns="insert",  # if the first row is too short
        )
    except pl.exceptions.PolarsError:
        return None


def _are_around_cells(content, delimiter):
    """Whether all quotes are around whole cells. Polars may read others unlike the csv module."""
    if b'"' not in content:
        return True
    content = np.frombuffer(b"\n%b\n" % content, np.uint8)
    places = np.flatnonzero(content == ord('"'))
    beside = [ord(letter) for letter in (delimiter, "\n", '"')]  # two quotes in a cell are one
    return len(places) % 2 == 0 and bool(
        np.isin(content[places[::2] - 1], beside).all()
        and np.isin(content[places[1::2] + 1], beside).all()
    )


def _check_widths(path, read, rows, header):
    """Refuse rows (number, cells) that are too short or too long."""
    for number, row in rows:
        if len(row) != len(header):
            raise ValueError(_wrong_width(path, read + number, row, header))


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
    return (
        f"{problem}: delete lines that are no rows, such as notes below the table, or set `comment` to the "
        f"text with which they begin"
    )


@contextmanager
def _decoded(path, member, format):
    """`open_text`, but the error for other text also says where it is, and what it may be."""
    # The mark at the start of some UTF-8 files is no text.
    encoding = "utf-8-sig" if format.encoding == "utf-8" else format.encoding
    with open_text(path, member, encoding) as handle:
        try:
            yield handle
        except UnicodeDecodeError:
            raise ValueError(
                f"{path}: is not {format.encoding.upper()} text{_undecoded(path, member, format)}"
            ) from None


def _undecoded(path, member, format):
    # Every byte is a character of Latin-1.
    with open_text(path, member, "latin-1") as handle:
        if handle.read(2) in ("\xff\xfe", "\xfe\xff"):
            return " (likely UTF-16): save it as UTF-8"
    with open_text(path, member, "latin-1") as handle:
        for number, row in enumerate(csv.reader(handle, delimiter=format.delimiter), 1):
            for column, cell in enumerate(row, 1):
                cell = cell.encode("latin-1")
                try:
                    cell.decode(format.encoding)
                except UnicodeDecodeError:
                    likely = likely_encoding(cell)
                    text = brief(cell.decode(likely, "replace"))
                    remedy = f"set `encoding: {likely}`, or save the file as UTF-8"
                    if likely == format.encoding:
                        remedy = "save the file as UTF-8"
                    return f": row {number}, column {column} is likely {text!r}; {remedy}"
    return ": save it as UTF-8"


def keys_for(path, names, *, member=None, **keys):
    """`remedy` for a file; "" if it is no text."""
    format = Format.of(keys)
    if is_pickle(path) or is_parquet(path):
        return ""
    with open_text(path, member, "latin-1") as handle:
        top = [line.encode("latin-1") for line in itertools.islice(handle, TOP)]
    return remedy(top, names, format)


def remedy(top, names, format):
    """Which keys to state so that one of a file's first lines names all columns; "" if none does."""
    for delimiter in dict.fromkeys([format.delimiter, *DELIMITERS]):
        for k, line in enumerate(top):
            text = line.removeprefix(BOM).decode(format.encoding, "replace")
            with suppress(csv.Error):
                row = next(csv.reader([text], delimiter=delimiter), [])
                if not set(names) <= set(map(str.strip, row)):
                    continue
                other = (
                    "" if delimiter == format.delimiter else f"`delimiter: {json.dumps(delimiter)}`"
                )
                if k == format.names_at(top):
                    return (
                        f"; its cells seem to be separated by {json.dumps(delimiter)}: set {other}"
                    )
                joined = " and ".join(filter(None, [other, f"`header: {k + 1}`"]))
                return f"; line {k + 1} has all names: set {joined}"
    return ""


def _records(path, blocks, read, header, where, text, format):
    """Yield blocks of rows, parsed by the csv module."""
    import polars as pl

    lines = itertools.chain.from_iterable(map(io.StringIO, blocks))
    rows = enumerate(csv.reader(lines, delimiter=format.delimiter), 1)
    rows = ((number, row) for number, row in rows if row and not format.is_comment(row))
    while part := list(itertools.islice(rows, BLOCK_ROWS)):
        _check_widths(path, read, part if where else (), header)
        cells = list(zip(*(row for _, row in part), strict=bool(where)))
        series = {name: pl.Series(cells[place], dtype=pl.String) for name, place in where.items()}
        numbers = read + np.array([number for number, _ in part])
        yield numbers, _converted(series, text, format)


def _converted(series, text, format):
    """Columns of a block from Polars' series of text, in which empty cells may be null."""
    return {
        name: _coded(cells) if name in text else _numbers(cells, format)
        for name, cells in series.items()
    }


def _coded(cells):
    import polars as pl

    cells = cells.fill_null("")
    texts = cells.unique(maintain_order=True)
    codes = cells.cast(pl.Enum(texts)).to_physical().to_numpy()
    return codes.astype(np.int64), texts.to_list()


def _numbers(cells, format):
    import polars as pl

    if format.decimal == ",":  # a point becomes what is in no number
        cells, text = cells.str.replace_all(".", "_", literal=True), cells
        cells = cells.str.replace(",", ".", literal=True)
    else:
        text = cells
    numbers = cells.cast(pl.Float64, strict=False)
    if numbers.null_count():  # perhaps there are blanks around them
        numbers = cells.str.strip_chars(BLANK).cast(pl.Float64, strict=False)
    values = numbers.fill_null(np.nan).to_numpy(writable=True)
    odd = ~np.isfinite(values)
    return Numbers(values, np.flatnonzero(odd), *_coded(text.filter(odd)))


def _values(series, numeric):
    """A block's column, from a pandas Series. Missing text cells become empty strings."""
    import pandas as pd

    kind = series.dtype
    if isinstance(kind, pd.CategoricalDtype):
        codes, texts = series.cat.codes.to_numpy(), series.cat.categories
    elif numeric and pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        values = np.array(series.to_numpy(float, na_value=np.nan))
        places = np.flatnonzero(~np.isfinite(values))
        texts, codes = np.unique(values[places], return_inverse=True)
        texts = ["" if np.isnan(text) else repr(float(text)) for text in texts]
        return Numbers(values, places, codes, texts)
    else:
        codes, texts = pd.factorize(series)
    texts = [*map(_text, texts), ""]
    return codes % len(texts), texts  # a missing cell has the code -1, which becomes the last


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
