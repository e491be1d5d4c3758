"""Downloads a raw file and verifies its checksum."""

import yaml

from study import paths
from study.data import downloads
from study.jobs import script


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--name", required=True, help="the file's name at its addresses")
    parser.add_argument("--sha256", help="what the content must have")
    parser.add_argument(
        "--url", action="append", help="an address; those of config/files.yaml if none is given"
    )
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()

    known = {}
    for path in () if arguments.url else paths.configuration("files.yaml"):
        known |= yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    known = known.get(arguments.name, {})
    wanted = downloads.Wanted(
        arguments.name,
        tuple(arguments.url or known["urls"]),
        arguments.sha256,
        known.get("page"),
        known.get("unpacked"),
    )
    downloads.fetch(wanted, arguments.out, downloads.environment_mirrors())
