"""Read and check a request for a release, config/releases/<name>.yaml.

Only the data file's header line is read, for the order of columns. If it lacks a stated column, the first
lines are searched for the one that has them all.
"""

import gzip
import json
import math
import os
import zlib
from collections import Counter
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from dp_privacy.errors import Refused
from dp_release import bounds as found
from dp_release import making, rows
from dp_release.book import MODEL, Book, Budget
from dp_release.formats import BOM, Format, likely_encoding
from dp_release.request import BENCHMARKED, CHOSEN_WITHOUT, PUBLIC_EXAMPLE, Request
from study import paths
from study.configuration.data_set_keys import Above, DataSet, Finding, Found, Missing, Rows
from study.configuration.faults import nearest
from study.configuration.release_files import data_sets, download, downloads, read
from study.configuration.release_files import entry as data_set
from study.configuration.validation import problem
from study.data.preparation import STEPS
from study.data.readers import drops, label_column, missing_rule, other_delimiter, table_files
from study.data.readers_table import TOP, remedy

SUFFIXES = (".parquet", ".pkl", ".pickle", ".zip", ".xz", ".bz2", ".tgz", ".tar.gz")


class Asked(NamedTuple):
    request: Request
    book: Book
    path: Path
    header: bool


def load(name):
    """A release's `Asked`. Raises ConfigError or `Refused`.

    A finished release does not need its file of rows: the columns' order is that of the stored model.
    """
    file, values = read(name)
    place, entry = data_set(values.data, file)
    try:
        path = _path(entry)
        source = entry.source
        header = source.names is None
        try:
            format = Format.of(source.mapping())
        except Refused as error:
            raise Refused(f"source.{error}") from None
        names = _names(path, source, format, Path(values.book).expanduser() / name / MODEL)
        schema = _schema(entry, names, format, values, path)
    except Refused as error:
        raise problem(place, values.data, str(error)) from None
    try:
        _check_benchmarks(values, path)
        request = Request.parsed(
            {key: value for key, value in values.plain().items() if key in Request._fields}
            | {"name": name, "schema": schema.facts, "unit": values.unit + _group(entry, values)}
            | {"taken_as_public": entry.premise or ""}
        )
        book = Book(values.book, Budget.of(values.budget.plain()), request.unit)
    except Refused as error:
        raise problem(file, "", str(error)) from None
    return Asked(request, book, path, header)


def check(name):
    """Raise ConfigError or `Refused` if the release cannot be made.

    Nothing is checked while the rows are still to be downloaded. The digest of the arithmetic depends on
    the number of threads, so only the release's job checks it.
    """
    if any(not Path(path).exists() for path in download(name)):
        return
    release = load(name)
    check_place(release, f"releases/{name}")
    with release.book.locked() as book:
        known = {key: value for key, value in making.made_by().items() if key != "arithmetic"}
        if book.stored(release.request, known) is None:
            making.planned(release.request)


def finished(name):
    """What is said if a release is asked for again that is finished; None if it is not. Opens no rows."""
    book = Book(read(name)[1].book)
    with book.locked():
        day = book.made(name)
    return day and is_of(name, day)


def is_of(name, day):
    """What is said of a finished release. day: that on which it began."""
    return f"releases/{name}: this is the model of {day}; `release.py check {name}` compares rows"


def check_place(release, folder):
    """Refuse if `folder` has a model that the budget book lacks: a second model would be published.

    Also refuse a book in `folder`, as `check_book` does.
    """
    check_book(release, folder)
    there = Path(folder) / MODEL
    own = release.book.path / release.request.name / MODEL
    if there.exists() and not (own.exists() and there.read_bytes() == own.read_bytes()):
        raise Refused(
            f"{there} is a model of this name that {release.book.path} did not make: what it has "
            f"cost is not in this book. Use the book that made it, or another name; "
            f"or take it away, if nobody has seen it"
        )


def check_book(release, folder="releases"):
    """Refuse a book, which says when rows were seen, in `folder` or another folder of releases."""
    book = release.book.path.resolve()
    if any(book.is_relative_to(Path(place).resolve()) for place in (folder, "releases")):
        raise Refused(
            f"the book {release.book.path} is among files that may be published, and it may not: move it "
            f"beside the rows"
        )


def _path(entry: DataSet):
    """The file of rows. Raises `Refused` unless the entry names one text file."""
    file = entry.source.csv
    if not isinstance(file, str):
        raise Refused("a release takes rows from one file: `source: {csv: ..}`")
    if entry.source.member is not None:
        raise Refused("source.member: a release reads a file of its own: unpack it")
    if "://" in file or file.lower().endswith(SUFFIXES):
        raise Refused("a release reads a file of text, also .gz: save the table as CSV")
    return _local(file)


def _local(file):
    return Path(f"{paths.RAW}/{file}" if file in downloads() else file).expanduser()


def _names(path, source: Rows, format, model):
    """The columns of the file, in order; None if unused. model: the file of the finished release."""
    if path.is_file():
        if source.names is not None:
            return source.names
        top = list(islice(_lines(path), max(TOP, format.header)))
        with suppress(Refused):
            return rows.header(b"".join(top), format)
        return []  # the line is no header, and perhaps another one is
    if model.is_file():
        columns = json.loads(model.read_bytes())["schema"]["columns"]
        return [None if c["name"] == f"column {k}" else c["name"] for k, c in enumerate(columns, 1)]
    known = source.csv in downloads()
    what = f"`snakemake --cores 1 -- {path}` downloads it" if known else "put it there"
    raise Refused(f"source.csv: no file {str(path)!r}; {what}")


def _lines(path):
    """Yield the lines of a file, of at most 1 MiB each."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as handle:
            yield from iter(lambda: handle.readline(1 << 20), b"")
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise Refused(f"source.csv: {path} cannot be read ({why})") from None


def _check_names(stated, names, source, path, everything):
    """Refuse stated columns that the file lacks, or has twice. everything: whether `bounds` has "*"."""
    counts = Counter(filter(None, names))
    for name in stated:
        if name not in counts:
            raise Refused(
                f"the file has no column {name!r}{_hint(name, stated, names, source, path)}"
            )
    for name in counts if everything else stated:
        if counts[name] > 1:
            raise Refused(
                f"the file has {counts[name]} columns {name!r}, which a release uses: columns need "
                f"different names"
            )


def _hint(name, stated, names, source: Rows, path):
    """What is probably wrong if the file has no column of this name."""
    known, format = list(filter(None, names)), Format.of(source.mapping())
    if source.names is not None:
        return nearest(name, known)
    top = list(islice(_lines(path), TOP)) if path.is_file() else []
    said = remedy(top, stated, format)
    if said:
        return said
    other = other_delimiter(known, format.delimiter, name)
    if other:
        return f"; its cells seem to be separated by {other}: set `delimiter: {other}`"
    first = b"".join(top[format.names_at(top) :][:1]).removeprefix(BOM).rstrip(b"\r\n")
    if not known:
        return ": its first line is no header of column names"
    if b"\r" in first:
        return ", and its lines end in a carriage return alone: save it with line feeds"
    if "\N{REPLACEMENT CHARACTER}" in first.decode(format.encoding, errors="replace"):
        likely = likely_encoding(first)
        return f", and its header is not {format.encoding.upper()}: set `encoding: {likely}`"
    # Without a header, the first line is a record, whose cells are private: none is listed.
    near = get_close_matches(name, known, n=1)
    return nearest(name, near) if near else ": is the first line a header?"


def _schema(entry: DataSet, names, format, values, path):
    """The `rows.Schema` of an entry. names: the file's columns, in order; None for unused columns."""
    _check_entry(entry)
    person = values.person
    if bool(values.rows) == (person is not None):
        raise Refused(
            "state `rows`, or `person` to protect a person with several rows: one of them is public"
        )
    if person is None and entry.source.rows not in (None, values.rows):
        raise Refused(f"source.rows: is not the {values.rows} of the release")
    target = label_column(entry)
    bounds, categories = entry.bounds or {}, entry.categories or {}
    references = values.reference
    rules = entry.missing or {}
    coded = [key for key, rule in rules.items() if isinstance(rule, Missing)]
    stated = [target, *(key for key in (*bounds, *coded) if key != "*"), *categories]
    stated += [] if person is None else [person.column]
    _check_names(stated, names, entry.source, path, "*" in bounds)
    for name, level in references.items():
        if level not in categories.get(name, ()):
            raise Refused(f"reference: {level!r} is no category of a column {name!r}")
    columns = []
    titles = [f"column {k}" if name is None else name for k, name in enumerate(names, 1)]
    titles = rows.different(titles)
    for title, name in zip(titles, names, strict=True):
        codes, value = missing_rule(rules, name)
        if name == target:
            columns.append(_target(entry, name, values, value, codes))
        elif name in categories:
            levels = tuple(categories[name])
            reference = references.get(name, levels[0])
            columns.append(rows.Category(name, levels, reference, value, codes))
        elif name and (name in bounds or ("*" in bounds and not _is_id(name, person))):
            columns.append(_number(name, bounds.get(name, bounds.get("*")), value, codes))
        else:
            columns.append(rows.Unused(title))
    used = sum(isinstance(c, rows.Number | rows.Category) and c.name != target for c in columns)
    return rows.Schema(columns, target, format, _radius(entry, used + 1))


def _is_id(name, person):
    return person is not None and name == person.column


def _number(name, stated, missing, codes):
    """A column of numbers between stated bounds, or with bounds that the release finds."""
    if isinstance(stated, Found):
        find = stated.find
        if isinstance(find, Finding):  # YAML reads 1.0e9 as text, and 1.0e+9 as a number
            given = find.mapping().items()
            find = {key: float(v) if isinstance(v, str) else v for key, v in given}
        return found.number(name, find, missing, codes)
    return rows.Number(name, *stated, missing, codes)


def _target(entry: DataSet, name, values, missing, codes):
    if entry.target:
        return _number(name, entry.target.bounds, missing, codes)
    negative = [] if values.negative is None else values.negative  # which may be 0
    if isinstance(entry.positive, Above):
        if negative != []:
            raise Refused(
                "`negative` is for labels that are listed; leave it out beside `positive: {above: ..}`"
            )
        return rows.Label(name, above=entry.positive.above, missing=missing, codes=codes)
    positive, negative = (
        tuple(labels) if isinstance(labels, list) else (labels,)
        for labels in (entry.positive, negative)
    )
    return rows.Label(name, positive, negative, missing=missing, codes=codes)


def _check_entry(entry: DataSet):
    if entry.target and entry.target.log:
        raise Refused(
            "target.log: a release takes no logarithms: write them into the file and leave `log` out"
        )
    if not entry.target and None in (entry.label, entry.positive):
        raise Refused(
            "a release is of two classes, `positive` and others of a `label`, or of a `target`"
        )
    if not entry.bounds and not entry.categories:
        raise Refused(
            "the columns need public `bounds` or `categories`, which are not read off the rows"
        )
    if entry.public_share is not None:
        raise Refused("public_share: a release protects all rows alike: leave it out")
    for name in (name for step in entry.steps for name in step):
        if name in STEPS and STEPS[name].private_rows:
            raise Refused(f"steps: {name!r} looks at private rows without paying for it")
        if name in STEPS and STEPS[name].selects:
            raise Refused(f"steps: {name!r} selects rows, whose number would not be public")
    if drops(entry):
        raise Refused(
            "missing: in a release, a row with a missing cell is a row of zeros, which counts nothing, "
            "unless a value takes the cell's place: leave `drop` out"
        )


def _radius(entry: DataSet, count):
    """The clipping radius as a share of a row's largest possible norm.

    count: the number of columns, including the constant.
    """
    longest = math.sqrt(count)
    names = [name for step in entry.steps for name in step]
    if names and names not in (["constant_feature"], ["constant_feature", "clip"]):
        raise Refused(
            f"steps: a release has `steps: [{{constant_feature: {{}}}}, {{clip: {{radius: "
            f"{math.ceil(longest * 1e4) / 1e4:.4f}}}}}]`, perhaps with a smaller radius, or none"
        )
    radius = dict(entry.all_steps()).get("clip", {}).get("radius", longest)
    if not isinstance(radius, int | float) or not radius > 0:
        raise Refused("steps: clip: the radius must be a positive number")
    return 1 if radius >= longest * (1 - 1e-12) else radius / longest


def _group(entry, values):
    """Text appended to the unit: what is protected if a person is, or the data set's `unit`, or ""."""
    if values.person:
        return f" (a person is all rows with one {values.person.column!r})"
    unit = entry.unit
    return f" ({unit.row}; {unit.group} has at most {unit.rows} rows)" if unit else ""


def _check_benchmarks(values, path):
    """Refuse settings possibly chosen from results on the same rows: no budget pays for such a choice."""
    if values.premise != CHOSEN_WITHOUT:
        return
    same = {name for name, (_, entry) in data_sets().items() if _reads(entry, path)}
    for result in _benchmarked() if same else ():
        if result.stem in same:
            raise Refused(
                f"{result.parent.parent}/ has results of a benchmark on the same rows ({result.stem}): if "
                f"nothing was chosen by them, say so: `premise: {BENCHMARKED}` (or `{PUBLIC_EXAMPLE}`)"
            )


def _reads(entry: DataSet, path):
    """Whether an entry of datasets.yaml reads the file at `path`, under any name or through a link."""
    for file in table_files(entry.source):
        with suppress(OSError):  # the entry's file does not exist
            if _local(file).samefile(path):
                return True
    return False


def _benchmarked():
    """Yield data/<name>.json of all folders of results, below `paths.results()` and the working folder."""
    seen = set()
    for top in (".", paths.results()):
        for folder, inside, files in os.walk(top, followlinks=True):
            here = Path(folder).stat()
            if (here.st_dev, here.st_ino) in seen:  # already visited through a link
                inside.clear()
                continue
            seen.add((here.st_dev, here.st_ino))
            inside[:] = sorted(name for name in inside if not name.startswith("."))
            if Path(folder).name == "data":
                yield from (Path(folder) / name for name in files if name.endswith(".json"))
