"""A throw-away Slurm for the tests of this folder, skipped with a reason where there can be none."""

import shutil

import pytest
from slurm import missing, slurm


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    reason = missing()
    if reason:
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("slurm")
    for folder in (root, *root.parents[:2]):
        folder.chmod(0o755)  # munge refuses a socket below a folder that others cannot enter
    with slurm(root / "cluster") as running:
        yield running
    shutil.rmtree(root, ignore_errors=True)
