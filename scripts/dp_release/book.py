"""The budget book: the costs and models of all releases from the rows of one group of people.

A book is a private folder (0700) next to the rows, for all studies of the same people:

    book.jsonl            a line per event, written to disk before anything depends on it
    key                   the book's key for digests of rows and for the chain, never deleted
    <name>/key            the key of one release, until the release is finished
    <name>/model.json     the model of a finished release

Every line has a field `chain`, a keyed digest of the line and of the previous `chain`. So the book detects
edited lines and lines removed from the middle. While a release's folder exists, it also detects that this
release's lines were removed from the end. It does not detect an older copy of the whole book, or `preview`
and `raise` lines removed from the end. Events:

    open      budget (epsilon, delta), adjacency and unit
    preview   the owner looked at the rows: the request's name and target; digests of the request, of the
              request without its name, and of the rows. Nothing of what was seen
    begin     a release: name, cost, digests of request, rows, code and arithmetic, versions of libraries,
              a commitment to its key, and how often settings changed after a look at the rows. This
              spends the cost, and needs a preview of these rows under this request. `parts` says what
              each part of a release with noise of a norm's law adds to the cost, [part, epsilon, delta]
    bounds    bounds that a release found, with the noisy counts that they follow from, before anything
              is computed from them; a resumed release reads them (`dp_release.bounds`)
    done      name and SHA-256 of model.json
    raise     a new budget, with the reason

Epsilons and deltas add up. Basic composition is a privacy filter, so later settings may depend on earlier
releases (Rogers, Roth, Ullman, Vadhan, NeurIPS 2016).

An interrupted release resumes with its key, and so with the same draw. It needs the same rows, request,
code, libraries and arithmetic, because a choice among reruns with the same noise would invalidate the
proof. Once the model is stored, the key is deleted, and the name returns this model, whatever the rows are.
"""

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from dp_privacy.accounting import REPLACE_ONE
from dp_privacy.errors import Refused
from dp_release import bounds, disk
from dp_release.draws import new_key
from dp_release.request import Request

__all__ = ["Book", "Budget"]

LINES, KEY, MODEL = "book.jsonl", "key", "model.json"
# One sentence for "no preview", "a preview of other rows" and "a preview of another request".
UNREAD = (
    "a release begins only after a preview of these very rows under this very request, so nothing is "
    "spent: run `release.py preview` (in Python, `preview(X, y)`), read it, and repeat the command"
)
# Keys of model.json copied from the request.
STATED = ("name", "title", "schema", "rows", "unit", "method", "premise")


class Budget(NamedTuple):
    """A book's budget, as exact decimals.

    Attributes
    ----------
    epsilon, delta : fractions.Fraction
        Limits on the sums over all releases.

    Methods
    -------
    of
        A budget from a dictionary.

    Examples
    --------
    >>> Budget.of({"epsilon": 2, "delta": "2e-6"})
    Budget(epsilon=Fraction(2, 1), delta=Fraction(1, 500000))
    """

    epsilon: Fraction
    delta: Fraction

    @staticmethod
    def of(values: dict) -> "Budget":
        """The budget {"epsilon": .., "delta": ..}; without a delta, it is pure.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Budget

        Raises
        ------
        dp_privacy.errors.Refused
            Unless epsilon is positive and delta is 0 or between 0 and 1.
        """
        try:
            values = {"delta": 0} | values
            budget = Budget(*(Fraction(str(values[key])) for key in ("epsilon", "delta")))
        except (KeyError, ValueError, ZeroDivisionError):
            raise Refused("the budget needs an epsilon and a delta, which are numbers") from None
        if not (budget.epsilon > 0 and 0 <= budget.delta < 1):
            raise Refused("the budget needs a positive epsilon, and a delta from 0 to below 1")
        return budget


class Begun(NamedTuple):
    """A release that has begun.

    key: its secret key. spent: the book's totals, for model.json. day: when it began.
    """

    key: bytes
    spent: dict
    day: str


class Spent(NamedTuple):
    """A book's totals. releases: (name, epsilon, delta, whether done), in order.

    parts: name -> part -> (epsilon, delta), for releases whose line has them.
    """

    epsilon: Fraction
    delta: Fraction
    budget: Budget
    releases: list[tuple[str, Fraction, Fraction, bool]]
    previews: int
    parts: dict[str, dict[str, tuple[Fraction, Fraction]]] = {}

    def lines(self) -> list[str]:
        """One line per release, with one for each of its parts, then the totals."""
        lines = []
        for name, epsilon, delta, done in self.releases:
            state = "done" if done else "begun, not done: the same command goes on with it"
            lines.append(f"{name}: epsilon {float(epsilon):g}, delta {float(delta):g}, {state}")
            for part, (own, delta) in self.parts.get(name, {}).items():
                lines.append(f"    {part}: epsilon {float(own):g}, delta {float(delta):g}")
        lines.append(
            f"spent: epsilon {float(self.epsilon):g} of {float(self.budget.epsilon):g}, "
            f"delta {float(self.delta):g} of {float(self.budget.delta):g}"
        )
        if self.previews:
            lines.append(f"previews: {self.previews}")
        return lines

    def admits(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether the budget has as much left."""
        return (
            self.epsilon + epsilon <= self.budget.epsilon
            and self.delta + delta <= self.budget.delta
        )

    def beside(self, request: Request) -> str:
        """What a release would cost, what is spent, and whether too little is left, as a sentence each."""
        begun = request.name in (name for name, *_ in self.releases)
        refused = (
            ""
            if begun or self.admits(*request.cost)
            else " It would be refused: too little is left."
        )
        return (
            f"The release would cost epsilon {request.epsilon:g} and delta "
            f"{float(request.cost[1]):g}. Spent are "
            f"epsilon {float(self.epsilon):g} of {float(self.budget.epsilon):g} and delta "
            f"{float(self.delta):g} of {float(self.budget.delta):g}.{refused}"
        )


class Book:
    """The folder of a budget book.

    Use a book only inside `with book.locked():`.

    Parameters
    ----------
    path : str or pathlib.Path
        The folder, next to the rows.
    budget : Budget or None
        Set by the first use; later uses must restate it. With None, the book is only read.
    unit : str or None
        Meaning of a row, in words. Later uses must restate it, like `budget`.

    Methods
    -------
    spent
        Spent epsilon and delta, and the releases.
    same_rows, same_request
        Whether a release was made from these rows, and under this request.
    raise_to
        Replace the budget.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = Book(f"{folder}/book", Budget.of({"epsilon": 2, "delta": 2e-6}), "one row is one person")
    ...     with book.locked():
    ...         found = book.spent()
    >>> print(found.epsilon, found.budget.epsilon, found.releases)
    0 2 []
    """

    def __init__(
        self, path: str | Path, budget: Budget | None = None, unit: str | None = None
    ) -> None:
        self.path, self.budget, self.unit = Path(path).expanduser(), budget, unit
        self._file, self._key, self._events = -1, b"", []
        self._end, self._torn = 0, False  # offset after complete lines; whether more follows

    @contextlib.contextmanager
    def locked(self) -> Iterator["Book"]:
        """Read the book under an exclusive lock, and yield it. Raises `Refused` if it cannot be used."""
        try:
            with self._lock():
                self._read()
                if self.budget is not None:
                    self._open()
                yield self
        except OSError as error:
            where = error.filename or self.path
            raise Refused(f"the book cannot be used: {where}: {error.strerror}") from None

    @contextlib.contextmanager
    def _lock(self):
        if self.budget is None and not (self.path / LINES).exists():
            raise Refused(f"there is no book at {self.path}")
        disk.private_folder(self.path)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        self._file = os.open(self.path / LINES, flags, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            disk.check_private(self.path / LINES)
            disk.sync(self.path)
            yield
        finally:
            os.close(self._file)
            self._file = -1

    def _read(self):
        """Read and verify all events. An incomplete last line is ignored, since nothing depended on it."""
        size = os.fstat(self._file).st_size
        content = os.pread(self._file, size, 0)
        self._end = content.rfind(b"\n") + 1
        self._events, self._key = [], self._own_key(size)
        for line in content[: self._end].splitlines():
            event = self._verified(line)
            if event is None:
                raise Refused(f"{self.path / LINES}: line {len(self._events) + 1} was changed")
            self._events.append(event)
        last = self._verified(content[self._end :])
        if last is not None:
            os.write(self._file, b"\n")
            os.fsync(self._file)
            self._events.append(last)
            self._end = size + 1
        self._torn = self._end < size
        self._check_folders()

    def _verified(self, line):
        """The event of the next line, or None if this book did not write it there."""
        try:
            event = json.loads(line)
            chain = event.pop("chain")
        except (ValueError, KeyError, AttributeError, TypeError):
            return None
        return event | {"chain": chain} if chain == self._chained(event) else None

    def _check_folders(self):
        """Refuse the book if a release has a folder but no line, because its cost is unknown."""
        named = {event["name"] for event in self._events if event["event"] == "begin"}
        for folder in sorted(self.path.iterdir()):
            files = [file for file in (KEY, MODEL) if os.path.lexists(folder / file)]
            if files and folder.name not in named:
                raise Refused(
                    f"{folder / files[0]} is there, and no line of the book names {folder.name!r}: lines "
                    f"were removed from its end, or the file is of another book"
                )

    def _own_key(self, size):
        """The book's key, created if the book is empty. size: that of book.jsonl, in bytes."""
        with contextlib.suppress(FileNotFoundError):
            return disk.read_private(self.path / KEY)
        if size:
            raise Refused(f"{self.path / KEY} is missing: the book cannot be read")
        disk.place(self.path / KEY, new_key(), 0o600)
        return disk.read_private(self.path / KEY)

    def _keyed(self, purpose, *parts):
        digest = hmac.new(self._key, purpose + b"\0", "sha256")
        for part in parts:
            digest.update(part)
        return digest.hexdigest()

    def _chained(self, event):
        before = self._events[-1]["chain"] if self._events else ""
        return self._keyed(b"line", before.encode(), json.dumps(event, sort_keys=True).encode())

    def _append(self, event):
        """Append a line, and return its event. It is on disk if this returns, and absent if it raises."""
        event = event | {"chain": self._chained(event)}
        line = json.dumps(event, sort_keys=True).encode() + b"\n"
        if self._torn:
            os.ftruncate(self._file, self._end)
            self._torn = False
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._end)
            raise
        self._end += len(line)
        self._events.append(event)
        return event

    def _open(self):
        """Write the first line, or check budget and unit."""
        if not self._events:
            self._append(
                {
                    "event": "open",
                    "at": _today(),
                    "epsilon": str(self.budget.epsilon),
                    "delta": str(self.budget.delta),
                    "adjacency": REPLACE_ONE,
                    "unit": self.unit,
                }
            )
            return
        if self._events[0]["unit"] != self.unit:
            raise Refused(
                f"the book's unit is {self._events[0]['unit']!r}, and the release states another one: "
                f"rows of other people, or of another kind, need a book of their own"
            )
        if self._budget() != self.budget:
            raise Refused(
                f"the book's budget is {said(self._budget())}, and the release states another one: state "
                f"this one, or change it with `release.py raise`"
            )

    def _budget(self, before=None):
        stated = [e for e in self._events[:before] if e["event"] in ("open", "raise")]
        return Budget(*(Fraction(stated[-1][key]) for key in ("epsilon", "delta")))

    def _of(self, event, name):
        """(line number, event) of a release, or (0, None)."""
        for k, entry in enumerate(self._events):
            if entry["event"] == event and entry["name"] == name:
                return k, entry
        return 0, None

    def spent(self, before: int | None = None) -> Spent:
        """The spent budget.

        Parameters
        ----------
        before : int or None
            Number of lines to count; None for all.

        Returns
        -------
        Spent
        """
        events = self._events[:before]
        done = {event["name"] for event in events if event["event"] == "done"}
        releases = [
            (e["name"], Fraction(e["epsilon"]), Fraction(e["delta"]), e["name"] in done)
            for e in events
            if e["event"] == "begin"
        ]
        total = (sum((each[k] for each in releases), Fraction(0)) for k in (1, 2))
        previews = sum(event["event"] == "preview" for event in events)
        parts = {
            e["name"]: {part: tuple(map(Fraction, cost)) for part, *cost in e["parts"]}
            for e in events
            if e["event"] == "begin" and "parts" in e
        }
        return Spent(*total, self._budget(before), releases, previews, parts)

    def stored(self, request: Request, made_by: dict) -> bytes | None:
        """model.json of a finished release, or None if the release may be made. Reads no row.

        made_by: from `dp_release.making.made_by`. Raises `Refused` if the name belongs to another
        request, the budget is too small, model.json was changed, or an interrupted release cannot resume.
        """
        name = request.name
        folder = self.path / name
        _, begun = self._of("begin", name)
        if begun is None:
            self._admit(request)
            return None
        if begun["request"] != request.digest():
            raise Refused(
                f"the book has another release named {name!r}, and a release cannot change: give this one "
                f"another name and its own share of the budget"
            )
        _, done = self._of("done", name)
        if done is None and (folder / MODEL).exists():
            done = self._adopted(request)
        if done is not None:
            content = (folder / MODEL).read_bytes()
            if hashlib.sha256(content).hexdigest() != done["model"]:
                raise Refused(f"{folder / MODEL} was changed after it was made")
            disk.destroy(folder / KEY)
            disk.prepared(folder / MODEL).unlink(missing_ok=True)
            return content
        other = [key for key, value in made_by.items() if begun["made_by"].get(key) != value]
        if other:
            what = "version of the code or of its libraries"
            if other == ["arithmetic"]:
                what = "processor, BLAS, number of threads or environment of numerical libraries"
            raise Refused(
                f"{name!r} was begun by another {what}, and resumes only with that one: its cost is spent"
            )
        self._resumed(begun)
        return None

    def _adopted(self, request):
        """Add the missing "done" line of a release killed after it wrote model.json."""
        k, begun = self._of("begin", request.name)
        self._resumed(begun)  # a release keeps its key until its "done" line is written
        path = self.path / request.name / MODEL
        content = path.read_bytes()
        try:
            document = json.loads(content)
            stated = document["guarantee"] | {
                "made_by": document["made_by"],
                "spent": document["spent"],
            }
            stated |= {key: document[key] for key in STATED}
        except (ValueError, KeyError, TypeError):
            stated = {}
        wanted = {key: getattr(request, key) for key in STATED}
        wanted |= dict(zip(("epsilon", "delta"), map(float, request.cost), strict=True))
        wanted["schema"] = bounds.settled(request.schema, self.kept_bounds(request.name) or {})
        wanted |= {"made_by": begun["made_by"], "spent": _summary(self.spent(k + 1), begun)}
        if any(stated.get(key) != value for key, value in wanted.items()):
            raise Refused(
                f"{path} is not what was begun as {request.name!r}: it is of another release"
            )
        return self._done(request.name, content)

    def _admit(self, request):
        epsilon, delta = request.cost
        spent = self.spent()
        if not spent.admits(epsilon, delta):
            raise Refused(
                f"the budget is {said(spent.budget)}, and {said(spent)} of it is spent: "
                f"{said(Budget(epsilon, delta))} more cannot be spent. `release.py raise` changes the "
                f"budget, and asks for the reason"
            )

    def _resumed(self, begun):
        """The key of an interrupted release."""
        path = self.path / begun["name"] / KEY
        for file in (path, disk.prepared(path)):
            with contextlib.suppress(FileNotFoundError):
                key = disk.read_private(file)
                if hashlib.sha256(key).hexdigest() == begun["commitment"]:
                    if not path.exists():
                        disk.settle(path)
                    return key
        raise Refused(
            f"the key of {begun['name']!r} is lost, so the release cannot resume: its cost is spent, and "
            f"another release needs another name"
        )

    def begin(
        self,
        request: Request,
        data: bytes,
        made_by: dict,
        parts: dict[str, tuple[Fraction, Fraction]] | None = None,
    ) -> Begun:
        """Spend the cost, or resume an interrupted release.

        data: the rows' bytes. parts: of a plan's `costs`, for the owner to see.

        Call this only after `stored` returned None, under the same lock. Raises `Refused`, before anything
        is spent, if the owner saw no preview of these rows under this request.
        """
        name, look = request.name, self._look(request, data)
        k, begun = self._of("begin", name)
        if begun is not None:
            if not hmac.compare_digest(begun["rows"], look["rows"]):
                raise Refused(
                    f"the rows are not those with which {name!r} was begun, so it cannot resume: its cost "
                    f"is spent"
                )
            return Begun(self._resumed(begun), _summary(self.spent(k + 1), begun), begun["at"])
        if not any(look.items() <= event.items() for event in self._events):
            raise Refused(UNREAD)
        self._admit(request)
        cost = tuple(map(sum, zip(*parts.values(), strict=True))) if parts else request.cost
        if cost != request.cost:
            raise RuntimeError("the parts do not add up to the cost: nothing was spent")
        key, folder = new_key(), self.path / name
        disk.private_folder(folder)
        disk.destroy(folder / KEY)  # left by a run killed before it wrote a line
        disk.prepare(folder / KEY, key, 0o600)  # renamed once a line commits to the key
        epsilon, delta = request.cost
        begun = self._append(
            {
                "event": "begin",
                "at": _today(),
                "name": name,
                "epsilon": str(epsilon),
                "delta": str(delta),
                "request": request.digest(),
                "made_by": made_by,
                "rows": look["rows"],
                "commitment": hashlib.sha256(key).hexdigest(),
                "settings_changed": self._changes(look),
                **_listed(parts),
            }
        )
        disk.settle(folder / KEY)
        return Begun(key, _summary(self.spent(), begun), begun["at"])

    def keep_bounds(self, name: str, found: dict[str, bounds.Found]) -> None:
        """Record the bounds that a release found."""
        columns = {column: own._asdict() for column, own in found.items()}
        self._append({"event": "bounds", "name": name, "columns": columns})

    def kept_bounds(self, name: str) -> dict[str, bounds.Found] | None:
        """The recorded bounds of a release: column -> `bounds.Found`."""
        _, event = self._of("bounds", name)
        return event and {key: bounds.Found(**own) for key, own in event["columns"].items()}

    def _look(self, request, data):
        """What a `preview` line says, without its date."""
        return {
            "event": "preview",
            "name": request.name,
            "target": request.schema["target"],
            "request": request.digest(),
            "settings": request.settings(),
            "rows": self._keyed(b"rows", data),
        }

    def _changes(self, look):
        """How often settings changed after a look at these rows, up to `look`, which is in the book.

        Counts previews of these rows under any name, and of other rows with the same target, because a
        corrected table shows nearly the same. Later previews under other names do not count.
        """
        looks = [
            event
            for event in self._events
            if event["event"] == "preview"
            and (event.get("rows") == look["rows"] or event.get("target") == look["target"])
        ]
        while looks[-1]["name"] != look["name"]:
            looks.pop()
        return sum(a["settings"] != b["settings"] for a, b in pairwise([*looks, look]))

    def same_rows(self, name: str, data: bytes) -> bool:
        """Whether a release was begun with these rows. Only their owner may learn the answer.

        Parameters
        ----------
        name : str
        data : bytes
            The file's content.

        Returns
        -------
        bool
        """
        _, begun = self._of("begin", name)
        return hmac.compare_digest(begun["rows"], self._keyed(b"rows", data))

    def same_request(self, request: Request) -> bool:
        """Whether the release of this name was begun under this request.

        Parameters
        ----------
        request : dp_release.request.Request

        Returns
        -------
        bool
        """
        _, begun = self._of("begin", request.name)
        return begun["request"] == request.digest()

    def made(self, name: str) -> str | None:
        """The day on which a finished release began, or None if there is none of this name."""
        return self._of("begin", name)[1]["at"] if self._of("done", name)[1] else None

    def finish(self, request: Request, content: bytes) -> None:
        """Store model.json, and destroy the release's key."""
        folder = self.path / request.name
        disk.place(folder / MODEL, content, 0o444)
        self._done(request.name, content)
        disk.destroy(folder / KEY)

    def _done(self, name, content):
        event = {"event": "done", "name": name, "model": hashlib.sha256(content).hexdigest()}
        return self._append(event)

    def previewed(self, request: Request, data: bytes) -> None:
        """Record that the owner previewed these rows under this request. Cards report the number."""
        self._append(self._look(request, data) | {"at": _today()})

    def raise_to(self, budget: Budget, reason: str) -> None:
        """Replace the budget.

        Parameters
        ----------
        budget : Budget
            At least what is already spent.
        reason : str
            Kept in the book.

        Raises
        ------
        dp_privacy.errors.Refused
            Without a reason, or if more is already spent.
        """
        spent = self.spent()
        if not reason.strip():
            raise Refused("say why the budget changes: the book keeps the reason")
        if budget.epsilon < spent.epsilon or budget.delta < spent.delta:
            raise Refused(f"{said(spent)} is spent already")
        event = {"event": "raise", "at": _today(), "reason": reason}
        self._append(event | {"epsilon": str(budget.epsilon), "delta": str(budget.delta)})


def _listed(parts):
    """The parts' costs as a line has them, exactly; nothing for a release that is one part."""
    return {"parts": [[part, *map(str, cost)] for part, cost in parts.items()]} if parts else {}


def _summary(spent, begun):
    """The book's totals as model.json states them. begun: the release's line.

    Lines of older books have no `settings_changed`, and neither have their models.
    """
    changed = {key: begun[key] for key in ("settings_changed",) if key in begun}
    return {
        "epsilon": float(spent.epsilon),
        "delta": float(spent.delta),
        "of_epsilon": float(spent.budget.epsilon),
        "of_delta": float(spent.budget.delta),
        "releases": len(spent.releases),
        "previews": spent.previews,
        **changed,
    }


def said(spent: Spent | Budget) -> str:
    """Epsilon and delta in words."""
    return f"(epsilon {float(spent.epsilon):g}, delta {float(spent.delta):g})"


def _today():
    return datetime.now(UTC).date().isoformat()
