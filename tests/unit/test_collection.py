"""Every process collects the same tests, whatever the time, user, language or folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from project import COLLECTED

ROOT = Path(__file__).resolve().parents[2]
# Code of `sitecustomize`, which Python imports first.
CLOCK = """
import time
clock, clock_ns = time.time, time.time_ns
time.time = lambda: clock() + {days} * 86400
time.time_ns = lambda: clock_ns() + {days} * 86400 * 10**9
"""


def collected(folder, days, **changes):
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(CLOCK.format(days=days))
    command = ["-m", "pytest", "--collect-only", "-q", "-n", "0", "-m", "slow or not slow"]
    done = subprocess.run(
        [
            sys.executable,
            *command,
            "-c",
            ROOT / "pyproject.toml",
            "--rootdir",
            ROOT,
            ROOT / "tests",
        ],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "HOME": str(folder)} | changes,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    # pytest prints ids relative to the folder in which it starts.
    return [line[line.index("tests/") :] for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_ids_depend_on_neither_time_nor_user_nor_process(tmp_path, request):
    here = request.config.stash[COLLECTED]
    changes = {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    there = collected(tmp_path / "there", days=777, **changes)
    assert here == [name for name in there if name in {*here}]


def test_no_id_holds_bytes(request):
    """Bytes make ids long, and compressed bytes contain the time."""
    ids = [item.nodeid for item in request.session.items]
    assert not [name for name in ids if "\\x" in name]
