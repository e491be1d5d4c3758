"""A file is complete or absent, and tables write numbers in one way."""

import json
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from project import ROOT
from study.jobs.files import atomic, read_json, write_csv, write_json


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "folder" / "a.txt"
    with atomic(path) as handle:
        handle.write("half")
        handle.flush()
        assert not path.exists()
        handle.write(" whole")
    assert path.read_text() == "half whole"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_error_inside_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(error), atomic(path) as handle:
        handle.write("new")
        raise error
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_while_rows_are_made_leaves_the_old_table(tmp_path):
    path = tmp_path / "a.csv"
    write_csv(path, ("a",), [[1]])

    def rows():
        yield [2]
        raise ValueError

    with pytest.raises(ValueError):
        write_csv(path, ("a",), rows())
    assert path.read_text() == "a\n1\n"
    assert len([*tmp_path.iterdir()]) == 1


def test_a_value_that_json_cannot_hold_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert len([*tmp_path.iterdir()]) == 1


def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    code = (
        "import sys, time; sys.path.insert(0, 'scripts'); from study.jobs.files import atomic\n"
        f"with atomic({str(path)!r}) as handle:\n"
        "    handle.write('new'); handle.flush(); print('written', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"written\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert path.read_text() == "old"


def test_bytes_and_text_are_written_as_they_are(tmp_path):
    with atomic(tmp_path / "a.bin", "wb") as handle:
        handle.write(b"\x00\r\n")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\r\n"
    with atomic(tmp_path / "a.txt") as handle:
        handle.write("ε\n")
    assert (tmp_path / "a.txt").read_bytes() == "ε\n".encode()


def test_a_tables_numbers(tmp_path):
    row = [1, np.int64(2), 0.1 + 0.2, np.float64(1) / 3, math.nan, -0.0, math.inf, "a,b", True]
    write_csv(tmp_path / "a.csv", "abcdefghi", [row])
    expected = 'a,b,c,d,e,f,g,h,i\n1,2,0.3,0.333333333,,0,inf,"a,b",True\n'
    assert (tmp_path / "a.csv").read_bytes() == expected.encode()


def test_json_is_readable_and_ends_with_a_line_end(tmp_path):
    write_json(tmp_path / "a.json", {"b": [1, 2.5], "a": "ε"})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"b": [1, 2.5], "a": "ε"}
    assert "ε" in text and text.endswith("}\n")


def test_writing_again_renews_the_time_of_a_file(tmp_path):
    """If an output kept its old modification time, Snakemake would consider it out of date."""
    path = tmp_path / "a.csv"
    write_csv(path, ("a",), [[1]])
    os.utime(path, (1e9, 1e9))
    write_csv(path, ("a",), [[1]])
    assert path.stat().st_mtime > 1e9
