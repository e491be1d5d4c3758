"""A randomly damaged data file gives rows, or one sentence that says what is wrong.

A plain run damages each file 50 times, and `-m slow` DP_FAULTS times.
"""

import gzip
import io
import os
import random
import struct
import zipfile

import numpy as np
import pytest

from study.configuration.data_set_keys import DataSet
from study.data import readers

ROWS = 40
TEXT = 'age,job,"note, of two\nlines",y\n' + "".join(
    f'{20 + k},{"ab"[k % 2]},"said ""{k}""\nthen left",{"yes" if k % 3 else "no"}\n'
    for k in range(ROWS)
)
ODD = [
    *(b"1_000", "\u0661\u0662".encode(), "\uff11".encode(), b"nan", b"-inf", b"1e999", b"0x10"),
    *(b'"', b'"a\nb"', b"\n", b"\r", b"\r\n", b"\0", b",", b",,", b";", b"\t", b" ", b"", b"1,5"),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"\x1f\x8b", b"PK\x03\x04", b"<html>", b"yes"),
    *(b"9" * 400, b"x" * 5000, b"x" * 140_000, b"''", b"=1+1", b"\xc2\xa05"),
]


def zipped(text, method):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in (("in/rows.csv", text), ("in/notes.txt", "none")):
            # The member has a fixed timestamp, so faults damage the same bytes in every run.
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def idx(values):
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return header + values.astype(np.uint8).tobytes()


LABELS = idx(np.arange(ROWS) % 3)
IMAGES = idx(np.arange(ROWS * 4).reshape(ROWS, 2, 2))
CSV = {
    "rows.csv": TEXT.encode(),
    "rows.csv.gz": gzip.compress(TEXT.encode(), mtime=0),
    "rows.zip": zipped(TEXT, zipfile.ZIP_DEFLATED),
    "stored.zip": zipped(TEXT, zipfile.ZIP_STORED),
}
FILES = CSV | {"images": IMAGES, "images.gz": gzip.compress(IMAGES, mtime=0), "labels": LABELS}


def entry(name, folder):
    if name in CSV:
        source = {"csv": str(folder / name)}
        if name.endswith(".zip"):
            source["member"] = "in/rows.csv"
        return {
            **{"source": source, "label": "y", "positive": "yes"},
            **{"bounds": {"age": [0, 100]}, "categories": {"job": ["a", "b"]}},
        }
    paths = {"images": "images", "labels": "labels", name.partition(".")[0]: name}
    idx = {key: str(folder / path) for key, path in paths.items()}
    return {"source": {"idx": idx, "rows": ROWS}, "classes": [0, 1, 2]}


def damage(content, rng):
    start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    end = min(end, start + rng.choice([1, 2, 4, 30, 10**6]))
    done = rng.choice(["cut", "flip", "odd", "odd", "cell", "gone", "twice", "random"])
    if done == "cut":
        return content[:start]
    if done == "flip" and start < len(content):
        return (
            content[:start] + bytes([content[start] ^ 1 << rng.randrange(8)]) + content[start + 1 :]
        )
    if done == "cell":  # the content between two commas
        cells = content.split(b",")
        cells[rng.randrange(len(cells))] = rng.choice(ODD)
        return b",".join(cells)
    if done == "gone":
        return content[:start] + content[end:]
    if done == "twice":
        return content[:end] + content[start:]
    if done == "random":
        return content[:start] + rng.randbytes(end - start) + content[end:]
    return content[:start] + rng.choice(ODD) + content[start:]


def outcome(name, folder):
    """The table, or None if a one-line error refuses the file."""
    dataset = DataSet.model_validate(entry(name, folder))
    try:
        table = readers.read(dataset, "toy")
    except ValueError as error:
        said = str(error)
        if len(said.splitlines()) == 1 and len(said) < 700 and str(folder) in said:
            return None
        raise AssertionError(
            f"the message is no short line with the file's name: {said[:700]}"
        ) from None
    assert np.isfinite(table.X).all() and len(table.X) == len(table.y) > 0
    assert table.X.shape[1] == len(table.columns)
    if name in CSV:
        readers.check_columns(dataset)
        assert readers.count_rows(dataset.source) == len(table.X)
    return table


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_what_is_not_damaged_is_read(folder, name):
    assert len(outcome(name, folder).X) == ROWS


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "count",
    [50, pytest.param(int(os.environ.get("DP_FAULTS", "1000")), marks=pytest.mark.slow)],
)
def test_damage(folder, name, count):
    refused, faults = 0, []
    for seed in range(count):
        (folder / name).write_bytes(damage(FILES[name], random.Random(seed)))
        try:
            refused += outcome(name, folder) is None
        except Exception as error:
            faults.append(f"{seed}: {type(error).__name__}: {str(error)[:500]}")
    assert not faults, "\n".join(faults[:20])
    assert refused > count / 4


@pytest.mark.parametrize("cell", ["1_000", "\u0661\u0662", "\uff11", "0x10", "1,5", "1 2"])
def test_a_number_is_written_in_plain_digits(folder, cell):
    (folder / "rows.csv").write_text(f'age,job,y\n1,a,yes\n"{cell}",b,no\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"column 'age', row 3: .* is not a number"):
        readers.read(DataSet.model_validate(entry("rows.csv", folder)), "toy")
