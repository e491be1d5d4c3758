"""Forecasts the releases that a study asks for, without reading its rows."""

from dp_privacy.errors import Refused
from dp_release import forecast, rows
from study.configuration import release_files, releases
from study.configuration.validation import ConfigError
from study.jobs import script
from study.jobs.files import write_json

DRAWS = 20  # number of simulated releases per forecast


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--out", required=True, help=".json: what the report shows per release")
    arguments = parser.parse_args()
    write_json(arguments.out, [forecast_of(name) for name in release_files.of_study()])


def forecast_of(name):
    """{name, title, method, cost, says} of a release; method and cost are "" without a forecast."""
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
