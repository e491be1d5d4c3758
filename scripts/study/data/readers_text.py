"""Read text from plain, compressed or archived files."""

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path

from study.data.downloads import looks_like_html

AGAIN = "delete it and download it again"


@contextmanager
def open_text(path, member=None, encoding="utf-8-sig"):
    """Open a file as text. member: the file to read in an archive.

    Raises ValueError for a web page, a damaged or truncated file, or an archive without the member.
    """
    path = Path(path)
    try:
        with path.open("rb") as raw:
            start = raw.read(512)
            raw.seek(0)
            if looks_like_html(start):
                raise ValueError(f"{path}: is a web page, not a data file; {AGAIN}")
            with _content(raw, start, path, member) as binary:
                yield io.TextIOWrapper(binary, encoding=encoding)
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile) or error.strerror is None:
            raise ValueError(f"{path}: the compressed file is damaged ({error}); {AGAIN}") from None
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except EOFError:
        raise ValueError(f"{path}: the compressed file is cut off; {AGAIN}") from None
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path}: the archive is damaged ({brief(error)}); {AGAIN}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not UTF-8 text") from None


def _content(raw, start, path, member):
    gzipped = start[:2] == b"\x1f\x8b"
    if member is None and path.suffix != ".zip":
        return gzip.open(raw) if gzipped else raw
    if gzipped:
        archive = tarfile.TarFile.gzopen(path.name, fileobj=raw)
        files = [each.name for each in archive if each.isfile()]
    else:
        archive = zipfile.ZipFile(raw)
        files = [name for name in archive.namelist() if not name.endswith("/")]
    if member is None and len(files) != 1:
        raise ValueError(
            f"{path}: holds {len(files)} files; name one as `member` ({listed(files, 10)})"
        )
    if member is not None and member not in files:
        raise ValueError(f"{path}: has no member {member!r} (it has: {listed(files, 10)})")
    if gzipped:
        return archive.extractfile(member)
    try:
        return archive.open(member or files[0])
    except RuntimeError as error:  # the member is encrypted, or compressed in an unknown way
        text = f"{path}: cannot be unpacked ({brief(error)}); zip it again without a password"
        raise ValueError(text) from None


def listed(names, most):
    return ", ".join(
        brief(name) if name.isprintable() else repr(brief(name)) for name in names[:most]
    )


def brief(text, most=80):
    text = str(text)
    return text if len(text) <= most else f"{text[:most]}..."
