"""Forked jobs have the same streams, status, folder and ending as jobs that start an interpreter."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from project import ROOT
from study.jobs import ask, cost, fork

SCRIPTS = ROOT / "scripts"
JOB = SCRIPTS / "job.py"


@pytest.fixture(scope="module")
def forks():
    folder = tempfile.mkdtemp(prefix="dp-")  # a socket's path must be short
    servers = fork.begin(folder)
    yield folder, servers
    for server in servers:
        server.stdin.close()
        assert server.wait(10) == 0
    assert not Path(folder).exists()


def start(folder, *words, **settings):
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | settings
    command = [sys.executable, "-IS", SCRIPTS / "study/jobs/ask.py", folder, *words]
    return subprocess.Popen(command, **settings)


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def children(server):
    return Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()


def test_a_fork_is_like_a_job_that_is_started(forks, tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").write_text("x\n2\n")
    words = (JOB, "concatenate", "a.csv", "b.csv", "--out")
    status, out, err = ended(start(forks[0], *words, "of_fork.csv", cwd=tmp_path))
    assert (status, out) == (0, "")
    assert cost.LINE.fullmatch(err.strip())[1] == "concatenate"
    done = subprocess.run([sys.executable, *words, "c.csv"], cwd=tmp_path, check=True)
    assert done.returncode == 0
    assert (tmp_path / "of_fork.csv").read_bytes() == (tmp_path / "c.csv").read_bytes() != b""


def test_status_and_message_are_those_of_the_job(forks, tmp_path):
    words = JOB, "concatenate"
    status, _, err = ended(start(forks[0], *words, "none.csv", "--out", "o.csv", cwd=tmp_path))
    assert status == 1 and err.startswith("error: ") and "none.csv" in err
    status, _, err = ended(start(forks[0], *words, "--nonsense"))
    assert status == 2 and "concatenate: error:" in err
    status, out, _ = ended(start(forks[0], JOB, "table", "--help"))
    assert status == 0 and out.startswith("usage: table ")


def test_an_unknown_job_is_refused_with_the_nearest_name():
    done = subprocess.run([sys.executable, JOB, "agregate"], capture_output=True, text=True)
    assert done.returncode == 1 and "did you mean 'aggregate'?" in done.stderr


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_a_fork_ends_with_who_asked_and_the_other_way_round(forks, tmp_path):
    """The job waits for a named pipe, so the test can kill it in time."""
    os.mkfifo(tmp_path / "in.csv")
    light, _ = forks[1]
    for kill_the_job in (False, True):
        words = (JOB, "concatenate", tmp_path / "in.csv", "--out", tmp_path / "o.csv")
        process = start(forks[0], *words)
        wait_for(lambda: children(light))
        if kill_the_job:
            os.kill(int(children(light)[0]), signal.SIGKILL)
            assert ended(process)[0] == ask.KILLED
        else:
            process.kill()
            ended(process)
        wait_for(lambda: not children(light))


def test_without_the_processes_a_job_starts_by_itself(tmp_path):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    process = start(tmp_path, JOB, "concatenate", "--help", env=environment)
    status, out, _ = ended(process)
    assert status == 0 and out.startswith("usage: concatenate ")


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
