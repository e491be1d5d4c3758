import fcntl
import os
import resource
import sys
from pathlib import Path

import hypothesis
import pytest

from project import COLLECTED, ENVIRONMENT, TINY, Project, Tool

# This must precede numpy's import.
for name, value in ENVIRONMENT.items():
    os.environ.setdefault(name, value)

# Crashing daemons must leave no core dump.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# Hypothesis draws the same examples in each run, however long one takes.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same")


def pytest_configure(config):
    """Tests use paths relative to the project's folder, wherever pytest starts."""
    if "DP_MECHANISMS" in os.environ:  # the folder of a study's own mechanisms
        os.environ["DP_MECHANISMS"] = str(Path(os.environ["DP_MECHANISMS"]).resolve())
    os.chdir(config.rootpath)


def pytest_collection_modifyitems(config, items):
    """Run the slowest files first, so none is left for the end."""
    items.sort(key=lambda item: "workflow" not in item.path.parts)
    config.stash[COLLECTED] = [item.nodeid for item in items]


def pytest_make_parametrize_id(val, argname):
    """Use the argument's name as the id of bytes: compressed bytes contain a time, so ids would vary."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def figures_closed():
    """Close each test's figures, which Matplotlib would keep."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture(scope="session")
def fresh(tmp_path_factory):
    """Function that copies the project without results."""
    return lambda name="project": Project.copy(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Read-only copy in which the tiny experiment has run on two cores, once for all test processes.

    `.output`: Snakemake's output; `.captured`: the folder of its jobs' recorded imports.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of all processes
    folder, captured, output = (base / f"finished{part}" for part in ("", "-captured", ".txt"))
    with (base / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not output.exists():
            captured.mkdir()
            said = Project.copy(folder).snakemake(*TINY, capture=captured)
            output.write_text(said, encoding="utf-8")
    project = Project(folder)
    project.captured, project.output = captured, output.read_text(encoding="utf-8")
    return project


@pytest.fixture
def edited(finished, tmp_path):
    """Editable copy of `finished`, with its results."""
    return finished.duplicate(tmp_path / "project")


@pytest.fixture
def release_tool(tmp_path):
    """Commands of scripts/tools/release.py in `tmp_path`."""
    return Tool("release", tmp_path)
