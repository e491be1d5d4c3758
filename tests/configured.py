"""The project's configuration, loaded once per process. Tests must not change it."""

from functools import cache

from snakemake.utils import update_config

from project import ROOT
from study import dependencies
from study.configuration import config, sources
from study.configuration.config import read_yaml
from study.configuration.experiment_keys import Entry


@cache
def configured(*overlays):
    """The configuration, experiments and data sets with these overlays from config/."""
    merged, files = {}, [ROOT / f"config/{name}.yaml" for name in ("config", *overlays)]
    for file in files:
        update_config(merged, read_yaml(file))
    return config.load(merged, [*files[1:], files[0]])


def entry(**values):
    """A table, figure or analysis with these keys."""
    return Entry(**{"kind": "made", "title": "made"} | values)


def changed(name, **settings):
    """An experiment and its readings (`config/README.md`), with changed settings."""
    arguments = {"seed": 1, "experiments": [name], "settings": {name: settings} if settings else {}}
    return config.load(arguments, only=sources.concerned({name}))[1]


def forget_files():
    """Clear all that `study.dependencies` has cached, because files of code have changed."""
    for function in vars(dependencies).values():
        getattr(function, "cache_clear", int)()
