"""Runs one job of the workflow: `python scripts/job.py NAME [arguments ...]`.

A job is a file of `scripts/jobs`. Without its name, or with `--help`, this program lists all.
"""

import sys
from pathlib import Path

from study.jobs import script

NAMES = sorted(path.stem for path in Path(__file__).with_name("jobs").glob("[!_]*.py"))


def main():
    name, *words = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(f"usage: job.py NAME [arguments ...]\n\nNAME: {', '.join(NAMES)}")
    elif name not in NAMES:
        from dp_privacy.errors import did_you_mean  # no job needs it

        sys.exit(f"error: no job {name!r} in scripts/jobs{did_you_mean(name, NAMES)}")
    else:
        script.start(name, words)


if __name__ == "__main__":
    main()
