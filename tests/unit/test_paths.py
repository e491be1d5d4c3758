"""Paths remain short enough for every file system, for any experiment."""

import pytest
from snakemake.utils import update_config

from project import ROOT
from study.configuration.config import load, read_yaml

LONGEST = 200


@pytest.mark.parametrize("overlays", [(), ("config/real.yaml", "config/full.yaml")])
def test_no_path_of_a_cell_is_long(overlays, monkeypatch):
    monkeypatch.chdir(ROOT)
    config = read_yaml("config/config.yaml")
    for overlay in overlays:
        update_config(config, read_yaml(overlay))
    experiments = load(config, ["config/config.yaml", *overlays])[1]
    paths = [e.run_path(cell) for e in experiments.values() for cell in e.cells()]
    paths += [e.fit_path(cell) for e in experiments.values() for cell in e.cells()]
    # Of a job's files, the log has the longest path.
    longest = max(filter(None, paths), key=len)
    assert len(longest) + len("logs/") < LONGEST, longest
