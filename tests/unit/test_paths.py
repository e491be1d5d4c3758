"""Paths of any experiment are short enough for every file system."""

import pytest

from configured import configured

LONGEST = 200


@pytest.mark.parametrize("overlays", [(), ("real", "full")])
def test_no_path_of_a_cell_is_long(overlays):
    experiments = configured(*overlays)[1]
    paths = [e.run_path(cell) for e in experiments.values() for cell in e.cells()]
    paths += [e.fit_path(cell) for e in experiments.values() for cell in e.cells()]
    # The log has the longest path of a job's files.
    longest = max(filter(None, paths), key=len)
    assert len(longest) + len("logs/") < LONGEST, longest
