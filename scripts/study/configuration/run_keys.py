"""The keys of config/config.yaml and its overlays."""

from typing import Annotated, Any

from annotated_types import Ge
from pydantic import Field, StringConstraints

from study.configuration.section import DISTINCT, MADE, Names, NotEmpty, Section

_FOLDER = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$"


class Data(Section):
    """Sources of downloads."""

    mirrors: Annotated[list[NotEmpty], DISTINCT] = []
    """Folders or addresses with files named as in config/files.yaml. They are tried in order, after those
    in the environment variable DP_DATA_MIRROR and before the files' own addresses."""


class Configuration(Section):
    """config/config.yaml and its overlays."""

    seed: Annotated[int, Ge(0)]
    """The only seed. Every random draw derives from it and from the purpose of the draw."""
    experiments: Names
    """Experiments that a plain run makes, in this order, each a file in config/experiments/ or
    config/sources/<key>/. Every experiment, listed or not, is also a target."""
    results: Annotated[str, StringConstraints(pattern=_FOLDER)] = "results"
    """The folder of all results. It belongs to one configuration, that is, one ordered set of overlays and
    settings; another one is refused there."""
    sizes: dict[str, bool] = {}
    """The `sizes` of experiments to merge into them, in this order and before `settings`.
    config/smoke.yaml, config/real.yaml and config/full.yaml name one each."""
    not_with: list[str] = []
    """Overlays that cannot be combined with this one. A run with both is refused."""
    audit: dict[str, Any] = {}
    """Changes to config/audit.yaml, as `settings` for experiments."""
    settings: dict[str, dict[str, Any]] = {}
    """Changes to single experiments: experiment name -> any keys of its file. Mappings are merged, and
    lists and values are replaced. Null removes an entry, such as a method or a figure."""
    data: Data = Field({"mirrors": []}, validate_default=True)
    files: Annotated[dict[str, Any] | None, MADE] = None
    """The files that are downloaded."""
