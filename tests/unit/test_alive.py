import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from project import ROOT
from study.jobs import alive


@pytest.fixture
def signs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(alive, "BEAT", 0.5)
    alive.SIGNS.mkdir(parents=True)
    return alive.SIGNS


def test_a_run_on_another_machine_is_alive_if_its_sign_is_renewed(signs):
    (signs / "dead-1").write_text("1")
    ended = threading.Event()

    def renew():
        while not ended.wait(0.2):
            (signs / "login-2").write_text(str(time.time_ns()))

    (signs / "login-2").write_text("0")
    thread = threading.Thread(target=renew)
    thread.start()
    assert alive.elsewhere() == ["login-2"]
    ended.set()
    thread.join()
    assert alive.elsewhere() == []
    alive.forget()
    assert not list(signs.iterdir())


def test_a_run_leaves_a_sign_until_it_ends(signs):
    alive.begin()
    try:
        end = time.monotonic() + 120
        while not list(signs.iterdir()):
            assert time.monotonic() < end
        (sign,) = signs.iterdir()
        first = sign.read_text()
        while sign.read_text() in (first, ""):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        alive.end()
    assert not list(signs.iterdir())
    alive._ended.clear()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are read from /proc")
def test_a_program_that_waits_for_a_run_is_no_further_run(tmp_path):
    waits = ("sh", "-c", '"$@"; true', "snakemake")  # as `timeout 60 snakemake` does

    program = tmp_path / "snakemake"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT / 'scripts')!r})\n"
        "from study.jobs import alive\n"
        "print(alive.here(sys.argv[1]), flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [*waits, sys.executable, str(program), str(tmp_path)]
    pipes = {"stdin": -1, "stdout": -1, "text": True, "cwd": tmp_path}
    with subprocess.Popen(command, **pipes) as first:
        assert first.stdout.readline() == "[]\n"
        with subprocess.Popen(command, **pipes) as second:
            assert second.stdout.readline() == f"[{first.pid}]\n"
            assert alive.here(tmp_path) == sorted((first.pid, second.pid))
            second.communicate()
        first.communicate()
    assert alive.here(tmp_path) == []
