"""One raw file, from mirrors or from its addresses, with its checksum verified."""

import argparse

import yaml

from study import downloads, jobs, paths

FILES = paths.HOME / "config/files.yaml"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="the file's name at its addresses")
    parser.add_argument("--sha256", help="what the content must have")
    parser.add_argument(
        "--url", action="append", help=f"an address; those of {FILES} if none is given"
    )
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()

    known = (
        {} if arguments.url else yaml.safe_load(FILES.read_text(encoding="utf-8"))[arguments.name]
    )
    wanted = downloads.Wanted(
        arguments.name,
        tuple(arguments.url or known["urls"]),
        arguments.sha256,
        known.get("page"),
    )
    downloads.fetch(wanted, arguments.out, downloads.environment_mirrors())


if __name__ == "__main__":
    jobs.run(main)
