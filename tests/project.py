"""Copies the project, and runs Snakemake in the copies as a user would."""

import base64
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# The parts of a fresh checkout.
PARTS = ("Snakefile", "config", "envs", "profiles", "pyproject.toml", "scripts", "workflow")
TINY = ("--configfile", "tests/tiny.yaml")
CAPTURE = ROOT / "tests" / "workflow" / "capture"
COLLECTED = pytest.StashKey[list]()  # ids of this process's tests, quick and slow
# One thread a process, as processes share the cores; and no Slurm of this machine, which Snakemake's
# plug-in asks at every start (for nine seconds if its controller does not answer). Tests of a cluster
# set their own.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "SLURM_CONF": "/dev/null",
}
# Code that defines `peak_mb()`, the peak memory of its process in MB. `ru_maxrss` would include the peak of
# pytest, its parent.
PEAK_MB = """
import pathlib, re
def peak_mb():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024
"""


class Tool:
    """A program of scripts/tools, run in a folder."""

    def __init__(self, name, folder):
        self.path, self.folder = ROOT / f"scripts/tools/{name}.py", folder

    def __call__(self, *words, fails=False):
        """What a command says: its errors if it must fail."""
        words = [sys.executable, self.path, *words]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == fails, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr if fails and done.stderr else done.stdout


class Project:
    """A copy of the project."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.environment = {}  # environment variables for programs in the copy
        self.processes = []

    def __truediv__(self, path):
        return self.folder / path

    @classmethod
    def copy(cls, folder, source=ROOT, extra=("tests/tiny.yaml", "tests/cluster/cells.yaml")):
        ignore = shutil.ignore_patterns(".*")  # keep compiled Python files
        for part in (*PARTS, *extra):
            path, target = Path(source, part), Path(folder, part)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, target, ignore=ignore)
            else:
                shutil.copy2(path, target)
        if (ROOT / ".venv").exists():
            Path(folder, ".venv").symlink_to((ROOT / ".venv").resolve())
        return cls(folder)

    def duplicate(self, folder):
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder)

    def write(self, path, text):
        path = self / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def append(self, path, text):
        self.write(path, (self / path).read_text(encoding="utf-8") + text)

    def replace(self, path, old, new):
        text = (self / path).read_text(encoding="utf-8")
        assert old in text
        self.write(path, text.replace(old, new))

    def start(self, *arguments, capture=None, program=("-m", "snakemake")):
        """Start Snakemake, or another Python program, in its own process group.

        capture: a folder in which its jobs record their imports.
        """
        environment = os.environ | ENVIRONMENT
        if capture:
            environment |= {"CAPTURE": str(capture), "PYTHONPATH": str(CAPTURE)}
        environment |= self.environment
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compilation takes seconds
        process = subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def end(self):
        """Kill the processes that a failed test left running."""
        for process in self.processes:
            if process.poll() is None:
                self.kill(process)

    def finish(self, process, ok=True, timeout=600):
        """A process's output. ok: whether it must succeed; None allows both."""
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise AssertionError(f"not finished after {timeout} s:\n{output}") from None
        if ok is not None:
            assert (process.returncode == 0) == ok, output
        return output

    def kill(self, process):
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def snakemake(self, *arguments, ok=True, cores=2, capture=None, timeout=600):
        return self.finish(self.start("--cores", cores, *arguments, capture=capture), ok, timeout)

    def python(self, *arguments, ok=True, timeout=600):
        return self.finish(self.start(*arguments, program=()), ok, timeout)

    def plan(self, *arguments):
        """The jobs of a dry run, as "rule: first output file"."""
        output = self.snakemake("--dry-run", *arguments)
        jobs = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)+)", output, flags=re.MULTILINE)
        planned = set()
        for rule, body in jobs:
            made = re.search(r"^    output: ([^,\n]+)", body, flags=re.MULTILINE)
            if made:
                planned.add(f"{rule}: {made[1]}")
        return planned

    def log(self):
        """Snakemake's log of the latest run, which has what the terminal does not show."""
        return max((self / ".snakemake/log").iterdir()).read_text(encoding="utf-8")

    def wait_for(self, condition, seconds=300):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the condition was never met"
            time.sleep(0.02)

    def incomplete(self):
        """Paths of Snakemake's incomplete files, whose jobs are still running or were killed."""
        marks = [p for p in (self / ".snakemake/incomplete").glob("*") if p.is_file()]
        return [base64.b64decode(mark.name).decode() for mark in marks]

    def files(self, *folders):
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for folder in folders
            for path in sorted((self / folder).rglob("*"))
            if path.is_file()
        }
