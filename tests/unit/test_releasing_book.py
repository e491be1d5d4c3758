"""Tests the budget book: a killed release has one draw and one entry, and gets no epsilon back."""

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from dp_privacy.errors import Refused
from dp_release import card, disk, files, making, meaning, models, rows
from dp_release.book import UNREAD, Book, Budget
from dp_release.request import METHODS, PREMISES, RANGES, Request
from project import ROOT

UNIT = "one row is one person"
SCHEMA = rows.Schema(
    [rows.Number("age", 0, 100), rows.Category("ill", ("no", "yes"))],
    "ill",
)
LINES = [b"%d,%s" % (20 + k, b"yes" if k % 3 else b"no") for k in range(40)]
VALUES = {
    "name": "first",
    "schema": SCHEMA.facts,
    "rows": len(LINES),
    "unit": UNIT,
    "epsilon": 1,
    "delta": 1e-6,
    "method": "gaussian_objective_perturbation",
    "premise": "chosen without these rows",
}
REQUEST = Request.parsed(VALUES)
PLAN = REQUEST.plan()
MEANING = meaning.Meaning(0.5, (0.01,), (0.02,), (0.7,), 0.6)
CALLS = ("fsync", "link", "unlink", "mkdir", "write", "ftruncate", "fchmod")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Compute the plan and the code's description, which are public, only once."""
    monkeypatch.setattr(Request, "plan", lambda self, n=None: PLAN)
    monkeypatch.setattr(files, "PROFILE", (1.0,))
    monkeypatch.setattr(files.meaning, "meaning", lambda profile: MEANING)
    maker = making.made_by()
    monkeypatch.setattr(making, "made_by", lambda: maker)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"age,ill\n" + b"\n".join(LINES) + b"\n")
    return path


def book(table, epsilon=2, delta="2e-6", unit=UNIT):
    return Book(table.parent / "b.book", Budget.of({"epsilon": epsilon, "delta": delta}), unit)


def look(table, request=REQUEST, **options):
    return making.preview(request, book(table, **options), table)


def made(table, request=REQUEST, **options):
    return making.make(request, book(table, **options), table)


def make(table, request=REQUEST, **options):
    """The release, with a preview if it needs one."""
    try:
        return made(table, request, **options)
    except Refused as error:
        if str(error) != UNREAD:
            raise
    look(table, request, **options)
    return made(table, request, **options)


def events(table):
    path = table.parent / "b.book/book.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def counted(table, event, name="first"):
    return sum(e["event"] == event and e.get("name") == name for e in events(table))


def killed(function):
    """Whether a function was killed in a fork. Otherwise, it must succeed or refuse."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            function()
            status = 0
        except Refused:
            status = 4
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) in (0, 4)
    return False


def dying(number, half=False):
    """Kill this process before its `number`th change to the disk, or midway if `half` and it is a write."""
    count = 0

    def wrap(call, name):
        def wrapped(*arguments, **named):
            nonlocal count
            count += 1
            if count == number:
                if half and name == "write":
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return wrapped

    for name in CALLS:
        setattr(os, name, wrap(getattr(os, name), name))


def of_key(key):
    V, y = SCHEMA.rows(LINES, len(LINES))
    return models.release(PLAN, V, y, key).parts["weights"]


@pytest.mark.parametrize("half", [False, True])
def test_killed_anywhere_it_ends_in_one_draw_and_one_entry(table, half):
    seen = set()
    for number in range(1, 200):
        folder = table.parent / "b.book"
        ended = not killed(lambda number=number: (dying(number, half), make(table)))
        lines = folder / "book.jsonl"
        lines = lines.read_bytes().split(b"\n")[:-1] if lines.exists() else []
        begun = any(b'"begin"' in line for line in lines)
        key = folder / "first/key"
        key = key if key.exists() else disk.prepared(key)
        key = key.read_bytes() if key.exists() else None
        content = make(table)
        actual = files.parse(content).document["parts"]["weights"]["integers"]
        if begun and key is not None and any(key):  # otherwise nothing was drawn, or all was stored
            assert actual == of_key(key)
            seen.add("resumed")
        assert make(table) == content == (folder / "first/model.json").read_bytes()
        assert counted(table, "begin") == counted(table, "done") == 1
        assert counted(table, "open", None) == 1
        left = sorted(path.name for path in (folder / "first").iterdir())
        assert left == ["model.json"]
        shutil.rmtree(folder)
        if ended:
            break
    assert number > 15 and seen == {"resumed"}


def test_two_kills_in_one_release(table):
    for first in range(8, 20, 3):
        for second in range(3, 12, 4):
            folder = table.parent / "b.book"
            assert killed(lambda first=first: (dying(first), make(table)))
            killed(lambda second=second: (dying(second), make(table)))
            content = make(table)
            assert content == make(table)
            assert counted(table, "begin") == counted(table, "done") == 1
            shutil.rmtree(folder)


def test_on_a_full_disk_nothing_is_lost(table, monkeypatch):
    write = os.write
    for number in range(1, 10):
        count = 0

        def full(handle, content, number=number):
            nonlocal count
            count += 1
            if count == number:
                write(handle, content[:7])
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(handle, content)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            try:
                make(table)
                break
            except Refused as error:
                assert "No space left" in str(error)
        key = table.parent / "b.book/first/key"
        begun = (table.parent / "b.book/book.jsonl").read_bytes().count(b'"begin"')
        drawn = of_key(key.read_bytes()) if begun else None
        content = make(table)
        assert content == make(table)
        assert drawn in (None, files.parse(content).document["parts"]["weights"]["integers"])
        assert counted(table, "begin") == counted(table, "done") == 1
        shutil.rmtree(table.parent / "b.book")
    assert number == 8  # seven writes (two keys, four lines, one model), and a run that completes


def test_two_processes_at_once_make_one_release(table):
    gate, opened = os.pipe()
    children = []
    for k in range(4):
        child = os.fork()
        if child == 0:
            os.read(gate, 1)
            (table.parent / f"out{k}").write_bytes(make(table))
            os._exit(0)
        children.append(child)
    os.write(opened, b"gogo")
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert len({(table.parent / f"out{k}").read_bytes() for k in range(4)}) == 1
    assert counted(table, "begin") == counted(table, "done") == 1


def test_a_name_that_is_done_opens_no_rows(table):
    content = make(table)
    table.unlink()
    assert make(table) == content
    os.utime(table.parent)
    table.write_bytes(b"anything else\n")
    assert make(table) == content


def test_names_differ_and_seeds_change_nothing(table):
    first, second = make(table), make(table, REQUEST._replace(name="second"))
    np.random.seed(1)  # noqa: NPY002 (must have no effect)
    integers = [files.parse(c).document["parts"]["weights"]["integers"] for c in (first, second)]
    assert integers[0] != integers[1]
    commitments = [e["commitment"] for e in events(table) if e["event"] == "begin"]
    assert len(set(commitments)) == 2
    table.parent.joinpath("b.book").rename(table.parent / "other.book")
    np.random.seed(1)  # noqa: NPY002
    assert files.parse(make(table)).document["parts"]["weights"]["integers"] not in integers


def test_a_release_that_was_begun_goes_on_with_the_same_only(table, monkeypatch):
    def begun():
        monkeypatch.setattr(Book, "finish", lambda *_: os._exit(0))
        make(table)

    assert not killed(begun)
    assert counted(table, "begin") == 1 and counted(table, "done") == 0
    with pytest.raises(Refused, match="another release named 'first'"):
        make(table, REQUEST._replace(epsilon=0.5))
    original = table.read_bytes()
    table.write_bytes(original.replace(b"20,no", b"20,yes"))
    with pytest.raises(Refused, match="rows are not those"):
        make(table)
    table.write_bytes(original)
    with monkeypatch.context() as patch:
        maker = making.made_by()
        patch.setattr(making, "made_by", lambda: maker | {"code": "0"})
        with pytest.raises(Refused, match="another version of the code"):
            make(table)
        patch.setattr(making, "made_by", lambda: maker | {"libraries": {}})
        with pytest.raises(Refused, match="another version"):
            make(table)
        patch.setattr(making, "made_by", lambda: maker | {"arithmetic": "0"})
        with pytest.raises(Refused, match="another processor, BLAS, number of threads"):
            make(table)
    key = table.parent / "b.book/first/key"
    key_bytes = key.read_bytes()
    key.write_bytes(bytes(32))
    with pytest.raises(Refused, match="key of 'first' is lost"):
        make(table)
    key.write_bytes(key_bytes)
    actual = files.parse(make(table)).document["parts"]["weights"]["integers"]
    assert actual == of_key(key_bytes) and not key.exists()
    assert counted(table, "begin") == counted(table, "done") == 1


def test_arithmetic_is_of_kernels_threads_and_environment():
    """Each case runs in its own process, since libraries choose their kernels when they load."""
    script = "from dp_release import making; print(making.arithmetic())"
    plain = {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT / "scripts"),
        "PATH": os.environ["PATH"],
    }
    results = [
        subprocess.run(
            [sys.executable, "-c", script], env=plain | more, stdout=-1, check=True
        ).stdout
        for more in (
            {},
            {"HOME": "/"},
            {"OPENBLAS_CORETYPE": "Nehalem"},
            {"OMP_NUM_THREADS": "2"},
            {"NPY_DISABLE_CPU_FEATURES": "X86_V3"},
        )
    ]
    assert results[0] == results[1] and len(set(results)) == 4


@pytest.mark.parametrize(
    "reported",
    [
        [{"internal_api": "openblas", "architecture": "Nehalem", "num_threads": 1}],
        [{"internal_api": "openblas", "architecture": "Haswell", "num_threads": 2}],
        [{"internal_api": "mkl", "architecture": "Haswell", "num_threads": 1}],
    ],
)
def test_arithmetic_is_of_the_loaded_blas(monkeypatch, reported):
    """The description names the loaded BLAS even if no environment variable does."""
    before = [{"internal_api": "openblas", "architecture": "Haswell", "num_threads": 1}]
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: before)
    first = making.arithmetic()
    assert making.arithmetic() == first
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: reported)
    assert making.arithmetic() != first
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)  # optional for `dp`
    assert making.arithmetic() not in (first, "")


def test_a_key_that_was_put_there_beforehand_is_not_used(table):
    path = table.parent / "b.book/first/key"
    disk.private_folder(table.parent / "b.book")
    disk.private_folder(path.parent)
    disk.place(path, bytes(32), 0o600)
    with pytest.raises(Refused, match=r"first/key is there, and no line .* 'first'"):
        make(table)
    path.rename(disk.prepared(path))  # as if the run had been killed before it wrote its line
    actual = files.parse(make(table)).document["parts"]["weights"]["integers"]
    assert actual != of_key(bytes(32))


def test_lines_that_were_taken_out_at_the_end_are_noticed(table):
    """A missing last newline changes nothing. Missing lines are noticed while the release's files exist."""
    make(table)
    path = table.parent / "b.book/book.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines)[:-1])
    make(table)
    assert path.read_bytes() == b"".join(lines)
    second = REQUEST._replace(name="second", epsilon=1.5)
    for count, message in (
        (3, "key of 'first' is lost"),
        (2, "model.json is"),
        (1, "model.json is"),
        (0, "model.json is"),
    ):
        for torn in (b"", lines[count][:-2]):
            path.write_bytes(b"".join(lines[:count]) + torn)
            before = path.read_bytes()
            for request in (REQUEST, second)[: 1 if count == 3 else 2]:
                with pytest.raises(Refused, match=message):
                    make(table, request)
            assert path.read_bytes() == before
    path.write_bytes(b"".join(lines))
    with pytest.raises(Refused, match="more cannot be"):
        make(table, second)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document | {"name": "other"},
        lambda document: document | {"made_by": {"code": "0", "libraries": {}}},
        lambda document: document | {"spent": document["spent"] | {"releases": 2}},
        lambda document: document | {"guarantee": document["guarantee"] | {"epsilon": 2.0}},
        lambda document: [],
    ],
)
def test_the_model_of_another_release_is_not_taken(table, monkeypatch, change):
    """A model without a "done" line is adopted only if its facts are those of the release that began."""
    with monkeypatch.context() as patch:
        patch.setattr(Book, "_done", lambda *_: os._exit(0))
        assert not killed(lambda: make(table))
    model = table.parent / "b.book/first/model.json"
    original = model.read_bytes()
    model.chmod(0o600)
    model.write_bytes(json.dumps(change(json.loads(original))).encode())
    with pytest.raises(Refused, match="is not what was begun as 'first'"):
        make(table)
    assert counted(table, "done") == 0
    model.write_bytes(original)
    assert make(table) == original and counted(table, "done") == 1


def test_the_sum_never_exceeds_the_budget(table):
    make(table, epsilon=2.5)
    make(table, REQUEST._replace(name="second"), epsilon=2.5)
    before = events(table)
    with pytest.raises(
        Refused, match=r"budget is \(epsilon 2.5, .* \(epsilon 2, .* more cannot be"
    ):
        make(table, REQUEST._replace(name="third"), epsilon=2.5)
    with pytest.raises(Refused, match="delta"):
        make(table, REQUEST._replace(name="third", epsilon=0.1, delta=1.5e-6), epsilon=2.5)
    assert events(table) == before and not (table.parent / "b.book/third").exists()
    with pytest.raises(Refused, match="states another one: state this one"):
        make(table, epsilon=3)
    with pytest.raises(Refused, match="unit is"):
        make(table, epsilon=2.5, unit="one row is one visit")
    with book(table, 2.5).locked() as opened:
        with pytest.raises(Refused, match="spent already"):
            opened.raise_to(Budget.of({"epsilon": 1, "delta": "1e-5"}), "less")
        with pytest.raises(Refused, match="why"):
            opened.raise_to(Budget.of({"epsilon": 9, "delta": "1e-5"}), " ")
        opened.raise_to(Budget.of({"epsilon": 3, "delta": "3e-6"}), "a second study")
    third = files.parse(make(table, REQUEST._replace(name="third"), epsilon=3, delta="3e-6"))
    assert third.document["spent"] == {
        **{"epsilon": 3, "delta": 3e-6, "of_epsilon": 3, "of_delta": 3e-6},
        **{"releases": 3, "previews": 3, "settings_changed": 0},
    }
    with Book(table.parent / "b.book").locked() as opened:
        spent = opened.spent()
    assert (spent.epsilon, spent.delta) == (3, Fraction(3, 10**6))
    assert [name for name, *_ in spent.releases] == ["first", "second", "third"]


def test_sums_are_exact(table):
    for k in range(10):
        make(
            table, REQUEST._replace(name=f"r{k}", epsilon=0.1, delta=1e-7), epsilon=1, delta="1e-6"
        )
    with pytest.raises(Refused, match="more cannot be"):
        make(table, REQUEST._replace(name="r10", epsilon=0.1, delta=1e-7), epsilon=1, delta="1e-6")


def test_only_the_owner_reads_it(table):
    old = os.umask(0)
    try:
        make(table)
    finally:
        os.umask(old)
    folder = table.parent / "b.book"
    modes = {p.name: p.stat().st_mode & 0o777 for p in (folder, *folder.rglob("*"))}
    assert modes == {
        **{"b.book": 0o700, "book.jsonl": 0o600, "key": 0o600},
        **{"first": 0o700, "model.json": 0o444},
    }
    for path, mode in ((folder, 0o750), (folder / "book.jsonl", 0o604), (folder / "key", 0o640)):
        original = path.stat().st_mode
        path.chmod(mode)
        with pytest.raises(Refused, match="chmod"):
            make(table)
        path.chmod(original)
    make(table)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace(b'"epsilon": "1"', b'"epsilon": "0"'),
        lambda text: b"".join(text.splitlines(keepends=True)[::2]),
        lambda text: text + b"{}\n",
        lambda text: text + b"[1]\n",
        lambda text: text + b'{"chain": 1}\n',
        lambda text: text + b"\n",
        lambda text: text.replace(b'"done"', b'"gone"'),
        lambda text: b"\xff\n" + text,
    ],
)
def test_an_edited_line_is_noticed(table, damage):
    make(table)
    path = table.parent / "b.book/book.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Refused, match="was changed"):
        make(table, REQUEST._replace(name="second"))


def test_an_edited_model_and_a_lost_key_of_the_book_are_noticed(table):
    make(table)
    model = table.parent / "b.book/first/model.json"
    model.chmod(0o600)
    model.write_bytes(model.read_bytes() + b" ")
    with pytest.raises(Refused, match="was changed"):
        make(table)
    (table.parent / "b.book/key").unlink()
    with pytest.raises(Refused, match="is missing"):
        make(table)


def test_places_that_cannot_hold_a_book(table):
    budget = Budget.of({"epsilon": 1, "delta": 1e-6})
    with pytest.raises(Refused, match="make it first"):
        making.make(REQUEST, Book(table.parent / "no/b.book", budget, UNIT), table)
    with pytest.raises(Refused, match="no book"), Book(table.parent / "no.book").locked():
        pass
    (table.parent / "c.book").mkdir(mode=0o700)
    (table.parent / "c.book/book.jsonl").symlink_to(table)
    with pytest.raises(Refused, match="cannot be used"):
        making.make(REQUEST, Book(table.parent / "c.book", budget, UNIT), table)


@pytest.mark.parametrize(
    "values",
    [{}, {"epsilon": "x", "delta": 1}, {"epsilon": 0, "delta": 0.1}, {"epsilon": 1, "delta": 1}],
)
def test_a_budget_is_two_numbers(values):
    with pytest.raises(Refused, match="the budget needs"):
        Budget.of(values)


def edited(data):
    return data.replace(b"20,no", b"21,no")


def in_another_order(data):
    head, first, second, *rest = data.split(b"\n")
    return b"\n".join([head, second, first, *rest])


@pytest.mark.parametrize(
    ("seen", "data"),
    [
        (None, bytes),
        (REQUEST, edited),
        (REQUEST, in_another_order),
        (REQUEST, lambda data: data.replace(b"\n", b"\r\n")),
        (REQUEST._replace(name="second"), bytes),
        (REQUEST._replace(epsilon=0.5), bytes),
        (REQUEST._replace(schema=SCHEMA.facts | {"radius": 0.5}), bytes),
        (REQUEST._replace(premise="public example"), bytes),
    ],
)
def test_nothing_is_spent_on_rows_that_were_not_read(table, seen, data):
    """No preview, a preview of other rows, and one of another request give the same sentence."""
    original = table.read_bytes()
    if seen is not None:
        table.write_bytes(data(original))
        look(table, seen)
        table.write_bytes(original)
    with pytest.raises(Refused) as error:
        made(table)
    assert str(error.value) == UNREAD
    assert counted(table, "begin") == 0 and not (table.parent / "b.book/first").exists()
    look(table)
    assert made(table) and counted(table, "begin") == 1


def test_a_preview_in_another_book_counts_nothing(table):
    """Digests are keyed by the book, and lines copied from another book are noticed."""
    look(table)
    line = (table.parent / "b.book/book.jsonl").read_bytes().splitlines(keepends=True)[1]
    other = Book(table.parent / "c.book", book(table).budget, UNIT)
    with pytest.raises(Refused, match="only after a preview"):
        making.make(REQUEST, other, table)
    with (table.parent / "c.book/book.jsonl").open("ab") as file:
        file.write(line)
    with pytest.raises(Refused, match="was changed"):
        making.make(REQUEST, other, table)


def test_a_preview_is_in_the_book_before_it_is_shown(table, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Book, "_append", full)
        with pytest.raises(Refused, match="No space left"):
            look(table)
    said = look(table)
    assert said[0].startswith("PRIVATE") and "ill: 40 cells are read." in said
    (line,) = (e for e in events(table) if e["event"] == "preview")
    assert line.keys() == {"at", "chain", "event", "name", "target", "request", "settings", "rows"}
    assert sorted(p.name for p in table.parent.rglob("*")) == [
        "b.book",
        "book.jsonl",
        "key",
        table.name,
    ]


WIDER = REQUEST._replace(schema=SCHEMA.facts | {"radius": 0.5})


@pytest.mark.parametrize(
    ("looks", "changes"),
    [
        (["first"], 0),
        (["first", "first"], 0),
        (["wider", "first"], 1),
        (["first", "wider", "first"], 2),
        (["first", "wider"], 2),  # the request returns to what was seen first
        (["renamed", "titled", "first"], 0),  # names and titles are no settings
        (["other name, wider", "first"], 1),
        (["first", "other name, wider"], 0),  # another release of the same rows, seen later
        (["edited, wider", "first"], 1),  # nearly the same rows
        (["edited, other name, wider", "first"], 1),
        (["other target", "first"], 1),
        (["edited, other target", "first"], 0),
    ],
)
def test_cards_say_how_often_settings_changed_after_a_look(table, looks, changes):
    original, other = table.read_bytes(), SCHEMA.facts | {"target": "age"}
    other = REQUEST._replace(name="second", schema=other, method="noise_aware_log_cosh")
    requests = {
        **{"first": REQUEST, "wider": WIDER, "other target": other},
        **{"renamed": REQUEST._replace(name="second"), "titled": REQUEST._replace(title="Ill")},
        "other name, wider": WIDER._replace(name="second"),
    }
    for words in looks:
        table.write_bytes(edited(original) if words.startswith("edited") else original)
        look(table, requests[words.removeprefix("edited, ")])
    table.write_bytes(original)
    document = files.parse(made(table)).document
    assert document["spent"]["settings_changed"] == changes
    premise, said = document["guarantee"]["premises"][0], card.card(document)
    times = f"The settings changed {changes} time{'s' * (changes != 1)} after a look at the rows."
    assert (times in said) == (changes > 0) == ("but for what a preview shows" in premise)
    assert premise.startswith(
        "Method, epsilon, columns, bounds and categories were chosen without a look"
    )
    assert premise in said
    if not changes:
        assert "settings changed" not in said and premise == PREMISES[REQUEST.premise]


def test_books_and_models_without_digests_of_previews_open_again(table, monkeypatch):
    """Older books have previews that name no rows, and releases that count no changed settings."""
    append = Book._append

    def older(self, event):
        new = ("settings_changed", "target", "request", "settings", "rows")
        drop = new[:1] if event["event"] == "begin" else new if event["event"] == "preview" else ()
        return append(self, {key: value for key, value in event.items() if key not in drop})

    look(table)
    with monkeypatch.context() as patch:
        patch.setattr(Book, "_append", older)
        look(table)
        patch.setattr(Book, "_done", lambda *_: os._exit(0))
        assert not killed(lambda: made(table))
    content = made(table)  # adopts model.json, whose sums are those of its book
    document = files.parse(content).document
    assert counted(table, "done") == 1 and "settings_changed" not in document["spent"]
    assert document["spent"]["previews"] == 2
    assert "looked at the rows 2 times" in card.card(document)
    assert "settings changed" not in card.card(document)
    with monkeypatch.context() as patch:
        patch.setattr(Book, "_append", older)
        second = REQUEST._replace(name="second")
        look(table, second)
    with pytest.raises(Refused, match="only after a preview"):
        made(table, second)  # it is unknown what was seen
    assert make(table, second)


def test_changes_of_a_finished_release_and_the_book_in_lines(table):
    """A book opened without a budget compares also after the budget was raised."""
    with pytest.raises(Refused, match="no finished release 'first' to compare with"):
        look(table)
        making.changes(REQUEST, Book(table.parent / "b.book"), table)
    make(table)
    with book(table).locked() as opened:
        opened.raise_to(Budget.of({"epsilon": 3, "delta": 2e-6}), "more is asked")
    plain = Book(table.parent / "b.book")
    day = events(table)[0]["at"]
    assert making.changes(REQUEST, plain, table) == (day, [])
    other, rows_now = REQUEST._replace(title="Ill"), table.read_bytes()
    assert making.changes(other, plain, edited(rows_now)) == (day, ["the rows", "the request"])
    with plain.locked():
        spent = plain.spent()
    assert spent.lines() == [
        "first: epsilon 1, delta 1e-06, done",
        "spent: epsilon 1 of 3, delta 1e-06 of 2e-06",
        "previews: 1",
    ]
    assert spent.beside(REQUEST._replace(epsilon=0.5)) == (
        "The release would cost epsilon 0.5 and delta 1e-06. Spent are epsilon 1 of 3 and delta 1e-06 of "
        "2e-06."
    )
    more = REQUEST._replace(name="second", epsilon=2.5)
    assert spent.beside(more).endswith("It would be refused: too little is left.")


ODD = [b"", b"41 (HIV+),yes", b"\xff\x00,\r", b"1e999,yes", b'"', b"nan,spy"]


def test_what_rows_hold_changes_no_message(table):
    head, *lines = table.read_bytes().splitlines()
    for k, odd in enumerate(ODD):
        lines[k] = odd
    table.write_bytes(b"\n".join([head, *lines]))
    make(table)
    messages = set()
    for content in (
        b"\n".join([head, *lines, b""]) + b"1,yes\n",
        b"\n".join([head, *lines[:-1]]),
        b"",
        b"age,sick\n" + b"\n".join(lines),
        b'a"b\n' + b"\n".join(lines),
    ):
        table.write_bytes(content)
        before = events(table)
        with pytest.raises(Refused) as error:
            make(table, REQUEST._replace(name="second"))
        messages.add(str(error.value))
        assert events(table) == before
    assert messages <= {making.OTHER_COUNT, "the line is no header of column names"}


@pytest.mark.parametrize("where", ["dp_release.rows.Schema.rows", "dp_release.models.release"])
def test_a_fault_while_rows_are_read_tells_nothing(table, monkeypatch, where):
    def fails(*arguments):
        raise MemoryError("cell 41 (HIV+)")

    with monkeypatch.context() as patch:
        patch.setattr(where, fails)
        with pytest.raises(Refused) as error:
            make(table)
    assert str(error.value) == making.STOPPED and error.value.__cause__ is None
    assert make(table) and counted(table, "begin") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "a/b"}, "name has letters"),
        ({"unit": " "}, "state the unit"),
        ({"premise": "trust me"}, "premise is one of"),
        ({"rows": 0}, "number of rows"),
        ({"rows": 2.5}, "number of rows"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": "1"}, "epsilon must be"),
        ({"delta": True}, "delta must be"),
        ({"delta": 0.026}, "more than one over the 40 rows"),
        ({"method": "output_perturbation"}, "for comparisons alone"),
        ({"method": "nothing"}, "is no method"),
        ({"method": "noise_aware_log_cosh"}, "target is two classes"),
        ({"options": {"lambda": 0.1}}, "lambda follows from public numbers"),
        ({"options": {"lam": 0.1}}, "lambda follows from public numbers"),
        ({"options": {"robust": True}}, "takes no option 'robust'"),
        ({"options": {"bits": 3}}, "takes no option 'bits'"),
        ({"options": ["radius"]}, "options are names"),
        *(
            ({"options": {key: value}}, f"option '{key}' is a number between")
            for key, values in {
                "radius": (0, -1, math.inf, math.nan, "20"),
                "output": (1e-300, 2.0, None),
                "tau": (True, 0.0),
            }.items()
            for value in values
        ),
        *(
            (
                {"method": "noise_aware_logistic", "options": {key: value}},
                f"option '{key}' is",
            )
            for key, value in (
                ("covariance", 0),
                ("covariance", 1.5),
                ("robust", 2),
                ("robust", -1),
            )
        ),
        ({"holdout": 1.5}, "holdout is a share"),
        ({"schema": SCHEMA.facts | {"constant": False}}, "constant"),
        ({"more": 1}, "no key 'more'"),
    ],
)
def test_refusals_of_a_request(change, message):
    with pytest.raises(Refused, match=message):
        Request.parsed(VALUES | change)


def test_options_at_their_ends_make_a_plan_or_a_sentence(monkeypatch):
    monkeypatch.undo()
    for key, ends in RANGES.items():
        for end in ends:
            method = "noise_aware_logistic" if key == "covariance" else VALUES["method"]
            request = Request.parsed(VALUES | {"method": method, "options": {key: end}})
            try:
                assert request.plan().delta_at(1.0) <= 1e-6
            except Refused as error:
                assert "shares of mu" in str(error)

    def overflows(*arguments, **options):
        raise OverflowError("too large")

    method = METHODS["noise_aware_logistic"]._replace(plan=overflows)
    monkeypatch.setitem(METHODS, "noise_aware_logistic", method)
    with pytest.raises(Refused, match="noise_aware_logistic: too large"):
        Request.parsed(VALUES | {"method": "noise_aware_logistic"}).plan()


def test_a_process_is_guarded_once_rows_are_read(table, monkeypatch):
    """An error before the guard is shown unchanged, since no row was read."""
    order = []
    second = REQUEST._replace(name="second")
    look(table), look(table, second)
    monkeypatch.setattr(making, "guard", lambda: order.append("guard"))
    monkeypatch.setattr(making, "planned", lambda request: order.append("plan") or PLAN)
    monkeypatch.setattr(making, "read", lambda path: order.append("rows") or path.read_bytes())
    making.make(REQUEST, book(table), table, alone=True)
    assert order == ["plan", "guard", "rows"]
    made(table, second)
    assert order[3:] == ["plan", "rows"]


def test_a_request_needs_its_keys_and_has_one_digest():
    with pytest.raises(Refused, match="needs the key 'unit'"):
        Request.parsed({k: v for k, v in VALUES.items() if k != "unit"})
    assert Request.parsed(VALUES | {"epsilon": 1.0}).digest() == REQUEST.digest()
    assert Request.parsed(VALUES | {"epsilon": 1.5}).digest() != REQUEST.digest()
    assert REQUEST.cost == (1, Fraction(1, 10**6)) and REQUEST.classes == ["no", "yes"]
