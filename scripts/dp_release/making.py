"""Make and store a model of the rows in a file, and charge the budget book."""

import ctypes
import gzip
import hashlib
import importlib.util
import json
import os
import platform
import re
import resource
import sys
import zlib
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import scipy
import scipy.linalg  # loads the BLAS that `arithmetic` records

from dp_privacy.errors import Refused
from dp_release import bounds, files, holdout, models, persons, rows
from dp_release import preview as private
from dp_release.book import Book
from dp_release.request import Request

__all__ = ["make", "preview"]

STOPPED = (
    "the release stopped while rows were read. The same command goes on with the same draw; "
    "`release.py preview` shows its owner what the rows hold"
)
OTHER_COUNT = (
    "the file does not have the header and the number of lines that are stated, which are public: "
    "a record is one line, and line feeds in quotes split it"
)


# Prefixes of environment variables that choose kernels or threads of numerical libraries.
CHOOSING = re.compile("(BLIS|GLIBC|GOMP|GOTO|KMP|LD|MKL|NPY|OMP|OPENBLAS|VECLIB)_")

# The packages whose code a release records: another version does not go on with it.
PACKAGES = ("dp", "dp_audit", "dp_privacy", "dp_release")


def made_by() -> dict:
    """Digests of the `PACKAGES` and of `arithmetic`, and versions of libraries."""
    digest = hashlib.sha256()
    for name in PACKAGES:
        folder = Path(importlib.util.find_spec(name).origin).parent
        for path in sorted(folder.rglob("*.py")):
            content = path.read_bytes()
            place = f"{name}/{path.relative_to(folder)}"
            digest.update(f"{place}\0{len(content)}\0".encode() + content)
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    versions |= {"scipy": scipy.__version__, "machine": platform.machine()}
    return {"code": digest.hexdigest(), "libraries": versions, "arithmetic": arithmetic()}


def arithmetic() -> str:
    """A digest of what determines numerical kernels and the order of sums in this process.

    A different order changes a minimiser's last bits, so a rerun could differ.
    """
    facts = [
        _built(np),
        _built(scipy),
        _loaded(),
        _features(),
        platform.libc_ver(),
        sorted((key, value) for key, value in os.environ.items() if CHOOSING.match(key)),
    ]
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


def _built(library):
    return sorted(library.show_config(mode="dicts").items())


def _loaded():
    """Each loaded BLAS library with its kernels and threads. Without threadpoolctl: the number of cores."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return sorted(
        sorted((key, Path(str(value)).name) for key, value in each.items())  # without folders
        for each in threadpool_info()
        if each.get("user_api") != "openmp"  # other imports may load OpenMP
    )


def _features():
    """The processor's features that NumPy uses, from NumPy's private table."""
    with suppress(ImportError):
        from numpy._core._multiarray_umath import __cpu_features__

        return sorted(name for name, there in __cpu_features__.items() if there)
    return platform.processor()


def guard() -> None:
    """Prevent core dumps, tracebacks and attached debuggers in this process: they would show rows."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.excepthook = lambda kind, error, trace: print(f"error: {STOPPED}", file=sys.stderr)
    with suppress(OSError, AttributeError):  # PR_SET_DUMPABLE exists only on Linux
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def read(path: Path) -> bytes:
    """A file's content, decompressed if its name ends in .gz."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def planned(request: Request) -> models.Plan | holdout.Package:
    """The plan, including a requested holdout. Raises `Refused` if it cannot be proven private."""
    each = 1 if request.person is None else request.persons.most
    held = (request.rows - request.training) // each  # of people, if these are protected
    plan = request.plan(request.training)
    return holdout.package(plan, held) if held else plan


def data_of(path: Path | bytes) -> bytes:
    """The bytes of a file of rows, or these bytes themselves."""
    try:
        return path if isinstance(path, bytes) else read(path)
    except (OSError, EOFError, zlib.error):
        raise Refused(f"{path}: cannot be read") from None


def preview(request: Request, book: Book, path: Path | bytes, header: bool = True) -> list[str]:
    """How a release would read the rows, in sentences for their owner alone.

    The book records that these rows were seen under this request. Without that, `make` begins no release.

    Parameters
    ----------
    request, book, path, header
        As for `make`.

    Returns
    -------
    list[str]
        Private: show it to nobody else, and store it nowhere.

    See Also
    --------
    make : Its example uses this.
    """
    data, schema = data_of(path), rows.from_facts(request.schema)
    lines = rows.split_lines(data, header, schema.format)
    stated = request.rows if request.person is None else len(lines)
    outcome = private.preview(schema, lines, stated, request.classes)
    with book.locked():
        book.previewed(request, data)  # before anything of the rows is shown
    said = outcome.sentences(request.classes)
    if request.person is not None:
        said += private.of_people(persons.read(schema, lines, request.persons), request.persons)
    return [private.PRIVATE, *said]


def changes(request: Request, book: Book, path: Path | bytes) -> tuple[str, list[str]]:
    """The day of a finished release, and which of "the rows" and "the request" changed since.

    The answer is private: it tells without noise whether two tables are equal. Raises `Refused` if the
    book has no finished release of this name.
    """
    with book.locked():
        day = book.made(request.name)
        if day is None:
            raise Refused(f"the book has no finished release {request.name!r} to compare with")
        changed = []
        if not book.same_rows(request.name, data_of(path)):
            changed.append("the rows")
        if not book.same_request(request):
            changed.append("the request")
    return day, changed


def make(
    request: Request, book: Book, path: Path | bytes, header: bool = True, alone: bool = False
) -> bytes:
    r"""Content of model.json. A release is made only if the book has no finished release of this name.

    Parameters
    ----------
    request : dp_release.request.Request
    book : dp_release.book.Book
        Charged before anything is drawn. Unless the release is finished or was interrupted, it must have a
        `preview` of these rows under this request.
    path : pathlib.Path or bytes
        File of rows, or its content.
    header : bool
        Whether a line names the columns: the one of the schema's `format`.
    alone : bool
        Whether the process does nothing else. If so, `guard` runs before a row is read.

    Returns
    -------
    bytes
        For `dp_release.files.parse`. A name always returns the same bytes.

    Raises
    ------
    dp_privacy.errors.Refused
        Before rows are read, no message depends on them. Afterwards, the message is one of four constants,
        or says that the book cannot be used or that an interrupted release was begun with different rows.
        One constant stands for no preview, and for a preview of other rows or of another request.

    Examples
    --------
    >>> import tempfile
    >>> from dp_release.book import Budget
    >>> from dp_release.card import card, table_csv
    >>> from dp_release.using import of_file
    >>> schema = rows.Schema([rows.Number("age", 0, 120), rows.Category("ill", ("no", "yes"))], "ill")
    >>> asked = {"name": "ill", "schema": schema.facts, "rows": 2000, "unit": "one row is one person"}
    >>> asked |= {"epsilon": 1, "delta": 1e-6, "premise": "public example"}
    >>> request = Request.parsed(asked | {"method": "noise_aware_logistic"})
    >>> lines = ["age,ill"] + [f"{k % 90},{'no' if k % 90 < 50 else 'yes'}" for k in range(2000)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = Book(f"{folder}/book", Budget.of({"epsilon": 1, "delta": 1e-6}), request.unit)
    ...     data = "\n".join(lines).encode()
    ...     said = preview(request, book, data)
    ...     content = make(request, book, data)
    >>> print(said[1])
    0 lines (0.0%) of 2,000 would count nothing.
    >>> model = files.parse(content)
    >>> print(model.classes, model.document["guarantee"]["epsilon"])
    ['no', 'yes'] 1.0
    >>> print(card(model.document).splitlines()[0])
    # ill
    >>> print(table_csv(model.document).splitlines()[0].partition(",says,")[0])
    column,estimate,standard_error,low,high,p_value
    >>> [line[0] for line in of_file(model, b"age\n20\n90\n")]
    ['prediction', 'no', 'yes']
    """
    with book.locked():
        maker = made_by()
        content = book.stored(request, maker)
        if content is not None:
            return content
        plan = planned(request)
        if alone:
            guard()
        return _made(request, book, plan, data_of(path), header, maker)


def _names(data, format):
    return rows.different(rows.header(data, format))


def _made(request, book, plan, data, header, maker):
    schema = request.read_as()
    lines = rows.split_lines(data, header, schema.format)
    names = [column.name for column in schema.columns]
    if header and _names(data, schema.format) != names:
        raise Refused(OTHER_COUNT)
    if request.person is None and len(lines) != request.rows:
        raise Refused(OTHER_COUNT)
    begun = book.begin(request, data, maker, plan.costs())
    try:
        found = _bounds(request, book, plan, lines, begun.key)
        schema = request._replace(schema=bounds.settled(request.schema, found)).read_as()
        table = _table(request, schema, lines, begun.key)
        release = holdout.release if request.holdout else models.release
        made = release(plan, table.V, table.y, begun.key, table.shares)
        content = files.content(request, made, begun.spent, maker, begun.day, found)
    except Exception:
        raise Refused(STOPPED) from None
    book.finish(request, content)
    return content


def _table(request, schema, lines, key):
    if request.person is not None:
        return persons.table(schema, lines, request.persons, key)
    return persons.Table(*schema.rows(lines, request.rows), None)


def _bounds(request, book, plan, lines, key):
    """The bounds that the release finds, from the book if it has them: column -> `bounds.Found`.

    They are in the book before anything else is computed from them.
    """
    schema = rows.from_facts(request.schema)
    if not bounds.columns(schema):
        return {}
    found = book.kept_bounds(request.name)
    if found is None:
        noises = (plan.model if request.holdout else plan).found
        if request.holdout:  # bounds and model are of the same rows, as theorem 2 needs
            out = holdout.held_out(plan.n, plan.held, key)
            lines = [line for line, held in zip(lines, out, strict=True) if not held]
        found = bounds.find(schema, noises, partial(bounds.counts, schema, lines), key)
        book.keep_bounds(request.name, found)
    return found
