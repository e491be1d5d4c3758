"""Documents, as weighted terms in RCV1's format, are read and folded."""

import gzip

import numpy as np
import pytest

from study.configuration.data_set_keys import DataSet, File, Rows, Sparse
from study.data import readers
from study.data.origins import resolve
from study.data.readers_sparse import fold, read_documents

VECTORS = "7  1:0.6 5:0.8\n12  2:1\n3  1:0.6 2:-0.8\n"
TOPICS = "CCAT 7 1\nGCAT 12 1\nCCAT 3 1\nMCAT 3 1\n"


def source(tmp_path, vectors=VECTORS, topics=TOPICS, **changes):
    files = {"vectors": vectors, "topics": topics}
    for name, text in files.items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    paths = {name: str(tmp_path / f"{name}.gz") for name in files}
    return Sparse(**paths | {"topic": "CCAT", "columns": 64} | changes)


def test_documents_are_folded_rows_and_a_topic(tmp_path):
    entry = DataSet(source=Rows(sparse=source(tmp_path), rows=3), positive="CCAT")
    table = readers.read(entry, "news")
    place, sign = fold(np.array([1, 2, 5]), 64)
    assert len(set(place)) == 3 and set(sign) <= {-1.0, 1.0}
    expected = np.zeros((3, 64))
    expected[0, place[[0, 2]]] = sign[[0, 2]] * (0.6, 0.8)
    expected[1, place[1]] = sign[1]
    expected[2, place[:2]] = sign[:2] * (0.6, -0.8)
    np.testing.assert_array_equal(table.X, expected)
    assert table.y.tolist() == [1, -1, 1] and len(table.columns) == 64


def test_folding_keeps_inner_products_on_average():
    """Squared norms of folded blocks have the mean and variance of Weinberger et al. (2009)."""
    x = np.full(40, 40**-0.5)
    squares = []
    for block in range(2000):
        place, sign = fold(np.arange(40 * block, 40 * block + 40), 200)
        squares.append((np.bincount(place.astype(int), sign * x, 200) ** 2).sum())
    deviation = np.sqrt(2 * (1 - 1 / 40) / 200)
    assert np.mean(squares) == pytest.approx(1.0, abs=4 * deviation / np.sqrt(2000))
    assert np.std(squares) == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors": "7  1:0.6\n12  2\n"}, r"vectors.gz: line 2: a term is not <whole number>:"),
        ({"vectors": "7  1:nan\n"}, "line 1: a term is not"),
        ({"vectors": "7  1:0.6\n\n"}, "line 2: has too few words"),
        ({"vectors": ""}, "vectors.gz: has no rows"),
        ({"topics": "CCAT\n"}, r"topics.gz: line 1: has too few words: 'CCAT'"),
        ({"topic": "C15"}, "topics.gz: no document has the topic 'C15'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_documents(source(tmp_path, **changes))


def test_files_are_found_by_name():
    named = Sparse(vectors="v.gz", topics="own/t", topic="CCAT", columns=4)
    missing = DataSet(source=Rows(sparse=named.but(topics="t")), positive="CCAT")
    entry = DataSet(source=Rows(sparse=named), positive="CCAT")
    resolve("news", entry, {"v.gz": File(urls=["https://a.example/v.gz"], sha256="0" * 64)})
    assert entry.source.sparse.vectors == "data/raw/v.gz"
    with pytest.raises(ValueError, match=r"source.sparse.topics: no file 't'"):
        resolve("news", missing, {"v.gz": {"urls": []}})
