"""Fixtures of all tests."""

import os

import pytest

from project import ENVIRONMENT, TINY, Project

# Processes share the processors, so each has one thread. This comes before any import of numpy.
for name, value in ENVIRONMENT.items():
    os.environ.setdefault(name, value)


@pytest.fixture(scope="session")
def fresh(tmp_path_factory):
    """A function that makes another copy of the project, in which nothing has run."""
    return lambda name="project": Project.copy(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def finished(fresh, tmp_path_factory):
    """A copy in which the tiny experiment has run on two cores. Tests only read it.

    `.output`: what Snakemake printed; `.captured`: the folder that names what its jobs imported.
    """
    project = fresh("finished")
    project.captured = tmp_path_factory.mktemp("captured")
    project.output = project.snakemake(*TINY, capture=project.captured)
    return project


@pytest.fixture
def edited(finished, tmp_path):
    """A copy of `finished`, with its results, that a test may edit."""
    return finished.duplicate(tmp_path / "project")
