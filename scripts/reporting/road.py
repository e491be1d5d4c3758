"""Builds the first part of a study's page: forecasts of its releases, computed without reading rows."""

from pathlib import Path

from dp.errors import Refused
from dp.releasing import forecast, rows
from study import paths
from study.configuration import releases
from study.configuration.validation import ConfigError

DRAWS = 20  # number of simulated releases per forecast


def road():
    """{name, title, method, cost, says} of each of a study's releases; None outside a study."""
    if not paths.in_study():
        return None
    return [_release(path.stem) for path in sorted(Path("config/releases").glob("*.yaml"))]


def _release(name):
    card = {"name": name, "title": name.replace("_", " "), "method": "", "cost": ""}
    try:
        request = releases.load(name).request
        study = forecast.Study(rows.from_facts(request.schema))
        accuracy, gain, *_ = forecast.outlook(request, study, DRAWS).sentences()
    except (Refused, ConfigError) as error:
        return card | {"says": [f"No forecast: {error}."]}
    return {
        "name": name,
        "title": request.title or card["title"],
        "method": request.method.replace("_", " "),
        "cost": f"{request.rows:,} rows, epsilon {request.epsilon:g}, delta {request.delta:g}",
        "says": [*study.said(), accuracy.replace("_", " "), gain],
    }
