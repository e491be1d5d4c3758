"""Finds recorded digests that differ from those of current settings, code and data."""

from functools import cache

from checks.by_source import STAMPS
from checks.stamps import Stamper
from reporting import record
from reporting.plan import merged
from study.configuration import sources
from study.configuration.config import ConfigError, load


def stampers(configfile, names):
    """Experiment -> its `Stamper`. configfile: paths of the overlays, separated by spaces."""
    config, experiments, datasets = loaded(configfile, {*names})
    return {
        name: Stamper(experiments, name, datasets, config["files"], config["seed"])
        for name in names
        if name in experiments
    }


def loaded(configfile, names=None):
    """Configuration, experiments and data sets with these overlays. names: experiments; None for all."""
    only = names and sources.concerned(names & sources.experiment_files().keys())
    return load(*merged(configfile.split()), only=only)


@cache
def digests():
    """Recorded digests that have changed, including all digests of unreadable configurations."""
    rows, changed = record.read(), set()
    for configfile in {row["configfile"] for row in rows}:
        own = [row for row in rows if row["configfile"] == configfile and row["section"] != "run"]
        try:
            known = stampers(configfile, {row["experiment"] for row in own})
        except ConfigError:
            known = {}
        for row in own:
            now = known[row["experiment"]].stamps(row) if row["experiment"] in known else {}
            changed |= {row[stamp] for stamp in STAMPS if row[stamp] != now.get(stamp)}
    return sorted(changed)
