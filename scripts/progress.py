"""How far a run has come: jobs done and to do per experiment, while it runs or after it stopped.

python scripts/progress.py                                   # once
python scripts/progress.py --watch 60                        # every minute, until all is done
python scripts/progress.py --configfile config/real.yaml -- einarsson_sgd
"""

import argparse
import sys
import time
from pathlib import Path

from reporting.plan import planned
from study import jobs


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help="as for snakemake; everything where not given")
    parser.add_argument("--configfile", nargs="+", default=[], help="overlays, as for snakemake")
    parser.add_argument("--watch", type=float, metavar="SECONDS", help="again and again")
    arguments = parser.parse_args()
    print("Asking Snakemake for the plan ...", file=sys.stderr)
    plan = [Watched(job) for job in planned(arguments.configfile, arguments.targets)]
    while True:
        print(table(plan), flush=True)
        if arguments.watch is None or all(job.done() for job in plan):
            return
        time.sleep(arguments.watch)


class Watched:
    """A planned job, done once its file is there and newer than when the plan was made."""

    def __init__(self, job):
        self.experiment = job.experiment
        self.path = Path(job.file)
        self.finished = not job.pending
        self.before = self._written()

    def _written(self):
        try:
            return self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def done(self):
        if not self.finished:
            now = self._written()
            self.finished = now is not None and now != self.before
        return self.finished


def table(plan):
    """One line per experiment, "(shared)" for what several use, and the sum."""
    totals = {}
    for job in plan:
        for name in (job.experiment or "(shared)", "all"):
            done, jobs = totals.get(name, (0, 0))
            totals[name] = (done + job.done(), jobs + 1)
    lines = [f"{time.strftime('%H:%M:%S'):<24}{'done':>8}{'of':>8}"]
    for name, (done, jobs) in sorted(totals.items(), key=lambda item: (item[0] == "all", item[0])):
        bar = "#" * (20 * done // jobs)
        lines.append(f"{name:<24}{done:>8}{jobs:>8}{100 * done // jobs:>5} % {bar:<20}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    jobs.run(main)
