"""A download takes the first address with the right content, and a good file is never lost."""

import errno
import hashlib
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from study.data import downloads
from study.data.downloads import Wanted, fetch

CONTENT = bytes(range(256)) * 40
SHA = hashlib.sha256(CONTENT).hexdigest()
PAGE = b"<!DOCTYPE html>\n<html><body>Log in to the network</body></html>"
NOWHERE = "http://127.0.0.1:9/file.bin"  # the discard port, where nothing listens


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT, except in /page (HTML), /lie (wrong), /empty, /gone (404) and /cut (truncated)."""

    def do_GET(self):
        self.server.requests.append((self.path, self.headers.get("Range")))
        folder = self.path.strip("/").split("/")[0]
        body = {"page": PAGE, "lie": b"something else", "empty": b""}.get(folder, CONTENT)
        if folder == "gone":
            self.send_error(404)
            return
        header = self.headers.get("Range")
        start = (
            int(header.removeprefix("bytes=").rstrip("-")) if header and folder == "ranges" else 0
        )
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start : 5000 if folder == "cut" else None])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.requests = []
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        running.url = f"http://127.0.0.1:{running.server_port}"
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def out(tmp_path):
    return tmp_path / "raw" / "file.bin"


def wanted(*urls, sha256=SHA):
    return Wanted("file.bin", urls, sha256, "https://example.org/data")


def files(out):
    return sorted(path.name for path in out.parent.iterdir())


def test_mirrors_come_first_and_addresses_in_order(server, out, tmp_path):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    mirror.joinpath("file.bin").write_bytes(CONTENT)
    fetch(wanted(f"{server.url}/file.bin"), out, [str(mirror)])
    assert out.read_bytes() == CONTENT and not server.requests
    out.unlink()
    fetch(
        wanted(f"{server.url}/gone/file.bin", f"{server.url}/file.bin"),
        out,
        [server.url + "/page/"],
    )
    assert out.read_bytes() == CONTENT
    paths = [path for path, _ in server.requests]
    assert paths == ["/page/file.bin", "/gone/file.bin", "/file.bin"]
    assert files(out) == ["file.bin"]


def test_a_good_file_is_not_fetched_again(out):
    out.parent.mkdir()
    out.write_bytes(CONTENT)
    fetch(wanted(NOWHERE), out)


@pytest.mark.parametrize("folder", ["lie", "page"])
def test_wrong_content_replaces_nothing_and_leaves_nothing(server, out, folder):
    out.parent.mkdir()
    out.write_bytes(b"an older good version")
    with pytest.raises(ValueError, match="wrong checksum") as problem:
        fetch(wanted(f"{server.url}/{folder}/file.bin"), out)
    message = str(problem.value)
    digest = hashlib.sha256(PAGE if folder == "page" else b"something else").hexdigest()
    for part in ("file.bin", SHA, digest, "https://example.org/data", "DP_DATA_MIRROR"):
        assert part in message
    assert ("web page" in message) == (folder == "page")
    assert out.read_bytes() == b"an older good version" and files(out) == ["file.bin"]


def test_a_wrong_mirror_does_not_keep_the_file_away(server, out, tmp_path):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    mirror.joinpath("file.bin").write_bytes(b"another file of this name")
    fetch(wanted(f"{server.url}/file.bin"), out, [str(mirror)])
    assert out.read_bytes() == CONTENT


def test_an_interrupted_download_is_continued(server, out):
    with pytest.raises(OSError, match=r"the connection broke \(.*5000 bytes read, 5240 more"):
        fetch(wanted(f"{server.url}/cut/file.bin"), out)
    assert not out.exists() and files(out) == [".file.bin.part"]
    fetch(wanted(f"{server.url}/ranges/file.bin"), out)
    # The downloader writes whole blocks of 1024 bytes.
    assert server.requests[-1] == ("/ranges/file.bin", "bytes=4096-")
    assert out.read_bytes() == CONTENT and files(out) == ["file.bin"]


def test_what_remains_of_another_file_is_not_built_upon(server, out):
    out.parent.mkdir()
    part = out.with_name(".file.bin.part")
    part.write_bytes(b"x" * 1000)
    fetch(wanted(f"{server.url}/ranges/file.bin"), out)
    assert [header for _, header in server.requests] == ["bytes=1000-", None]
    assert out.read_bytes() == CONTENT


def test_a_server_without_ranges_sends_all_again(server, out):
    out.parent.mkdir()
    out.with_name(".file.bin.part").write_bytes(CONTENT[:1000])
    fetch(wanted(f"{server.url}/file.bin"), out)
    assert out.read_bytes() == CONTENT


def test_no_network_and_no_mirror_says_how_to_set_one(out):
    with pytest.raises(OSError, match="no mirror is set") as problem:
        fetch(wanted(NOWHERE), out)
    message = str(problem.value)
    for part in (
        "file.bin",
        NOWHERE,
        "export DP_DATA_MIRROR=",
        "mirrors",
        "https://example.org/data",
    ):
        assert part in message
    assert not out.exists()


def test_a_mirror_folder_that_does_not_exist(out, tmp_path):
    with pytest.raises(OSError, match=r"the folder .*nowhere does not exist"):
        fetch(wanted(NOWHERE), out, [str(tmp_path / "nowhere")])
    with pytest.raises(OSError, match="no such file in this mirror"):
        fetch(wanted(NOWHERE), out, [str(tmp_path)])


def test_a_full_disk(server, out, monkeypatch):
    out.parent.mkdir()
    out.write_bytes(b"an older good version")
    opened = Path.open

    class Full:
        def __init__(self, handle):
            self.handle = handle

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.handle.close()

        def write(self, chunk):
            self.handle.write(chunk[:10])
            raise OSError(errno.ENOSPC, "No space left on device")

    def open_full(self, mode="r", *arguments, **options):
        handle = opened(self, mode, *arguments, **options)
        return Full(handle) if self.name.endswith(".part") and "r" not in mode else handle

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(OSError, match="No space left on device") as problem:
        fetch(wanted(f"{server.url}/file.bin"), out)
    assert str(out) in str(problem.value) and "make room" in str(problem.value)
    assert out.read_bytes() == b"an older good version" and files(out) == ["file.bin"]


def test_a_file_without_a_known_checksum(server, out):
    fetch(wanted(f"{server.url}/file.bin", sha256=None), out)
    assert out.read_bytes() == CONTENT
    for folder, problem in (("page", "is a web page"), ("empty", "the answer is empty")):
        with pytest.raises(ValueError, match=problem):
            fetch(wanted(f"{server.url}/{folder}/file.bin", sha256=None), out)
    assert files(out) == ["file.bin"]


def test_mirrors_of_the_environment(monkeypatch):
    monkeypatch.setenv("DP_DATA_MIRROR", " /a b/c, https://mirror.example.org/ ,")
    assert downloads.environment_mirrors() == ["/a b/c", "https://mirror.example.org/"]
    monkeypatch.delenv("DP_DATA_MIRROR")
    assert downloads.environment_mirrors() == []


def test_a_file_of_an_installed_package(out, tmp_path, monkeypatch):
    package = tmp_path / "carrier"
    package.joinpath("data").mkdir(parents=True)
    package.joinpath("__init__.py").write_text("raise RuntimeError('is not to be imported')")
    package.joinpath("data/rows.bin").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(tmp_path)
    fetch(wanted("installed:carrier#data/rows.bin"), out)
    assert out.read_bytes() == CONTENT and files(out) == ["file.bin"]
    out.unlink()
    for place, problem in (
        ("installed:nobody#data/rows.bin", "the package nobody is not installed"),
        (
            "installed:carrier#data/other.bin",
            "the installed package carrier has no file data/other",
        ),
        ("installed:pytest_is_a_module#x", "is not installed"),
    ):
        with pytest.raises(OSError, match=problem):
            fetch(wanted(place), out)
    package.joinpath("data/rows.bin").write_bytes(b"another version's file")
    with pytest.raises(ValueError, match="wrong checksum"):
        fetch(wanted("installed:carrier#data/rows.bin"), out)
    assert files(out) == []


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder of wheels, in place of the package index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("carrier/rows.bin", CONTENT)
        information = "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\nRequires-Python: <3\n"
        wheel.writestr(
            "carrier-1.0.dist-info/METADATA", information + "Requires-Dist: nobody-has-this\n"
        )
        kind = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr("carrier-1.0.dist-info/WHEEL", kind)
        wheel.writestr("carrier-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_a_member_of_a_wheel(out, wheels):
    """The wheel may require another Python and nonexistent packages."""
    fetch(wanted("pypi:carrier==1.0#carrier/rows.bin"), out)
    assert out.read_bytes() == CONTENT and files(out) == ["file.bin"]
    fetch(wanted(NOWHERE, "pypi:carrier==2.0#carrier/rows.bin"), out)  # the good file stays
    out.unlink()
    for place, problem in (
        ("pypi:carrier==2.0#carrier/rows.bin", r"pip cannot download carrier==2.0 \(No matching"),
        ("pypi:carrier==1.0#carrier/cells.bin", "py3-none-any.whl has no member carrier/cells.bin"),
    ):
        with pytest.raises(OSError, match=problem) as caught:
            fetch(wanted(place), out)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="wrong checksum"):
        fetch(wanted("pypi:carrier==1.0#carrier/rows.bin", sha256="0" * 64), out)
    assert files(out) == []


def test_an_index_that_does_not_answer(out, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(OSError, match="the package index cannot be reached"):
        fetch(wanted("pypi:carrier==1.0#rows.bin"), out)
