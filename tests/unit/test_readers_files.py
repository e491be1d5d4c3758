import gzip
import io
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from study.configuration.data_set_keys import DataSet, Idx, Rows
from study.data import readers
from study.data.readers_idx import read_idx, read_images

PAGE = b"<!doctype HTML>\n<html><head><title>Sign in</title></head></html>"


def idx(values, kind=0x08):
    values = np.asarray(values)
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, kind, values.ndim, *values.shape)
    return header + values.astype(np.uint8).tobytes()


IMAGES = np.arange(3 * 2 * 2).reshape(3, 2, 2)


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("name", ["images-idx3-ubyte", "images-idx3-ubyte.gz"])
def test_idx_values(tmp_path, name):
    content = idx(IMAGES)
    path = write(
        tmp_path, name, gzip.compress(content, mtime=0) if name.endswith("gz") else content
    )
    actual = read_idx(path, 3)
    assert actual.dtype == np.uint8
    np.testing.assert_array_equal(actual, IMAGES)


def test_images_with_a_test_part(tmp_path):
    paths = {
        "images": write(tmp_path, "a", idx(IMAGES)),
        "labels": write(tmp_path, "b", idx([4, 9, 4])),
        "test_images": write(tmp_path, "c", idx(IMAGES[:1] + 100)),
        "test_labels": write(tmp_path, "d", idx([7])),
    }
    X, y, columns, train_rows = read_images(Idx(**paths))
    np.testing.assert_array_equal(X[2], [8, 9, 10, 11])
    np.testing.assert_array_equal(X[3], [100, 101, 102, 103])
    assert y.tolist() == [4, 9, 4, 7] and train_rows == 3 and X.dtype == np.uint8
    assert columns == ("pixel_0_0", "pixel_0_1", "pixel_1_0", "pixel_1_1")
    paths["labels"] = write(tmp_path, "e", idx([4, 9]))
    with pytest.raises(ValueError, match=r"has 3 images, but .* 2 labels"):
        read_images(Idx(**paths))


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("x.gz", gzip.compress(idx(IMAGES), mtime=0)[:-9], "is cut off"),
        ("x.gz", gzip.compress(idx(IMAGES), mtime=0)[:-6] + b"\0" * 6, "is damaged"),
        ("x.gz", idx(IMAGES), "is not a gzip file"),
        (
            "x.gz",
            gzip.compress(idx([1, 2, 3]), mtime=0),
            r"the magic number is 0x00000801, not 0x00000803",
        ),
        ("x", idx(IMAGES, kind=0x0D), "magic number is 0x00000d03"),
        ("x.gz", PAGE, "is a web page"),
        ("x", idx(IMAGES)[:-2], r"announces 12 values, but 10 follow"),
        ("x", idx(IMAGES) + b"\0", r"announces 12 values, but 13 follow"),
    ],
)
def test_bad_idx_files(tmp_path, name, content, match):
    path = write(tmp_path, name, content)
    with pytest.raises(ValueError, match=match) as problem:
        read_idx(path, 3)
    assert path in str(problem.value)


BANK = '"age";"job";"y"\n41;"admin.";"no"\n52;"retired";"yes"\n'


def archive(tmp_path, name="bank.zip", text=BANK, members=("bank/full.csv", "bank/notes.txt")):
    path = tmp_path / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as handle:
        handle.writestr("bank/", "")
        for member in members:
            handle.writestr(member, text)
    return path


def entry(**changes):
    source = {"csv": "bank.zip", "member": "bank/full.csv", "delimiter": ";"}
    base = {
        "label": "y",
        "positive": "yes",
        "bounds": {"age": [0, 100]},
        "categories": {"job": ["admin.", "retired", "student"]},
    }
    return DataSet.model_validate(base | {"source": source} | changes)


def test_zip_member_with_semicolons_quotes_and_categories(tmp_path):
    dataset = entry()
    dataset.source.csv = str(archive(tmp_path))
    table = readers.read(dataset, "bank")
    assert table.columns == ("age", "job=admin.", "job=retired", "job=student")
    np.testing.assert_array_equal(table.X, [[41, 1, 0, 0], [52, 0, 1, 0]])
    assert table.y.tolist() == [-1, 1]
    assert table.groups == (("job=admin.", "job=retired", "job=student"),)


def test_the_categories_are_the_listed_ones_whatever_the_rows(tmp_path):
    dataset = entry(categories={"job": ["admin.", "student"]})
    dataset.source.csv = str(archive(tmp_path))
    with pytest.raises(ValueError, match=r"column 'job', row 3: 'retired' is not among"):
        readers.read(dataset, "bank")


@pytest.mark.parametrize("name", ["wdbc.data", "wdbc.data.gz"])
def test_headerless_table(tmp_path, name):
    text = b"842302,M,17.99,10.38\n842517,B,20.57,17.77\n"
    path = write(tmp_path, name, gzip.compress(text, mtime=0) if name.endswith("gz") else text)
    names = [None, "diagnosis", "radius", "texture"]
    X, labels, columns = readers.read_csv(path, "diagnosis", names=names)
    np.testing.assert_array_equal(X, [[17.99, 10.38], [20.57, 17.77]])
    assert labels == ["M", "B"] and columns == ["radius", "texture"]
    with pytest.raises(ValueError, match=r"column 'radius', row 3: 'x' is not a number"):
        readers.read_csv(write(tmp_path, "b", text + b"1,M,x,3\n"), "diagnosis", names=names)
    with pytest.raises(ValueError, match=r"row 3 has 3 cells, the header 4"):
        readers.read_csv(write(tmp_path, "c", text + b"1,M,3\n"), "diagnosis", names=names)


def test_zip_without_the_member(tmp_path):
    path = archive(tmp_path)
    with pytest.raises(
        ValueError, match=r"has no member 'full.csv' \(it has: bank/full.csv, bank/"
    ):
        readers.read_csv(path, "y", member="full.csv")
    with pytest.raises(ValueError, match="holds 2 files; name one"):
        readers.read_csv(path, "y")
    alone = archive(tmp_path, "one.zip", members=("full.csv",))
    assert readers.read_csv(alone, "y", ["age"], delimiter=";")[1] == ["no", "yes"]


def test_a_member_of_a_compressed_tar(tmp_path):
    """California housing has this form: a headerless table and a description."""
    path, text = tmp_path / "housing.tgz", b"-122.23,37.88,452600.0\n-118.4,34.1,500001.0\n"
    with tarfile.open(path, "w:gz") as handle:
        for name, content in (
            ("homes/about.txt", b"about\n" * 900),
            ("homes/homes.data", text * 900),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            handle.addfile(member, io.BytesIO(content))
    format = {"member": "homes/homes.data", "names": ["longitude", "latitude", "value"]}
    X, values, columns = readers.read_csv(path, "value", numbers=True, **format)
    assert X.shape == (1800, 2) and columns == ["longitude", "latitude"]
    assert X[-1].tolist() == [-118.4, 34.1] and values[:2] == [452600, 500001]
    with pytest.raises(
        ValueError, match=r"has no member 'x' \(it has: homes/about.txt, homes/homes.d"
    ):
        readers.read_csv(path, "value", member="x")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"housing.tgz: the .* (damaged|cut off)"):
        readers.read_csv(path, "value", **format)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.csv", PAGE, "is a web page"),
        ("a.zip", PAGE, "is a web page"),
        ("a.zip", b"not an archive", "the archive is damaged"),
        ("a.csv.gz", gzip.compress(b"a,y\n1,no\n" * 99, mtime=0)[:-8], "is cut off"),
    ],
)
def test_bad_tables(tmp_path, name, content, match):
    path = write(tmp_path, name, content)
    with pytest.raises(ValueError, match=match) as problem:
        readers.read_csv(path, "y")
    assert path in str(problem.value)


@pytest.mark.parametrize(("place", "value", "said"), [(8, 1, "is encrypted"), (10, 77, "method")])
def test_zip_that_cannot_be_unpacked(tmp_path, place, value, said):
    path = archive(tmp_path, members=("full.csv",))
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + place] = value
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"cannot be unpacked \(.*{said}.*\); zip it again"):
        readers.read_csv(path, "y")


def test_classes_are_numbered_as_the_configuration_lists_them():
    actual = readers.class_numbers([9, 4, 4], [4, 7, 9], "here")
    assert actual.tolist() == [2, 0, 0]
    with pytest.raises(
        ValueError, match=r"here: the label '5' is not among the classes \(4, 7, 9\)"
    ):
        readers.class_numbers([4, 5], [4, 7, 9], "here")


def test_bundled_digits_are_bytes():
    table = readers.read(DataSet(source=Rows(sklearn="digits", rows=1797)), "digits")
    assert table.X.dtype == np.uint8 and table.X.shape == (1797, 64) and table.X.max() == 16
    assert table.classes == tuple("0123456789")
    assert np.bincount(table.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
