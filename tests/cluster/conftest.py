"""Starts a temporary Slurm for this folder's tests, or skips them with a reason."""

import shutil

import pytest
from runs import CELLS, OVERLAY, RESULTS, on, run_files
from slurm import missing, slurm


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    reason = missing()
    if reason:
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("slurm")
    for folder in (root, *root.parents[:3]):
        if folder.stat().st_mode & 0o055 != 0o055:
            folder.chmod(0o755)  # munge refuses a socket in a folder that others cannot enter
    with slurm(root / "cluster") as running:
        yield running
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def prepared(fresh):
    """A copy with data and fits made on this machine, but without run files."""
    project = fresh("prepared")
    project.snakemake(*OVERLAY, "--until", "fit", "--", RESULTS)
    assert not run_files(project)
    return project


@pytest.fixture(scope="session")
def local(prepared, tmp_path_factory):
    """The results of CELLS from a run without a scheduler."""
    project = prepared.duplicate(tmp_path_factory.mktemp("local") / "project")
    project.snakemake(*CELLS)
    return (project / RESULTS).read_bytes()


@pytest.fixture
def project(prepared, cluster, tmp_path):
    copy = on(cluster, prepared.duplicate(tmp_path / "project"))
    yield copy
    copy.end()
