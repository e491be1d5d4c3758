"""The repository tracks only text files, except the files named here."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NO_TEXTS = {f"workflow/report/{name}.png" for name in ("answer", "keeps", "holds", "leaks")}


def is_text(content):
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def test_every_tracked_file_is_a_text():
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("this copy of the project is no git repository")
    tracked = {name for name in done.stdout.split("\0") if (ROOT / name).is_file()}
    assert "README.md" in tracked
    assert {name for name in tracked if not is_text((ROOT / name).read_bytes())} == NO_TEXTS
