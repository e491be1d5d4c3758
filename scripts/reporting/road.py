"""The first part of a study's page: forecasts of its releases, which a job made without reading rows."""

from pathlib import Path

from study import paths
from study.configuration import release_files
from study.jobs.files import read_json


def road():
    """{name, title, method, cost, says} of each of a study's releases; None outside a study."""
    if not paths.in_study():
        return None
    file = Path(paths.FORECASTS())
    made = {card["name"]: card for card in read_json(file)} if file.exists() else {}
    return [made.get(name) or _missing(name) for name in release_files.of_study()]


def _missing(name):
    says = f"No forecast yet: the target {paths.FORECASTS()} makes it."
    return {"name": name, "title": name.replace("_", " "), "method": "", "cost": "", "says": [says]}
