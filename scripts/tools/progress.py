"""Shows how many jobs of an active or stopped run are done.

python scripts/tools/progress.py                                   # once
python scripts/tools/progress.py --watch 60                        # checks every minute, prints changes
python scripts/tools/progress.py --configfile config/real.yaml -- einarsson_sgd
"""

import sys
import time
from pathlib import Path

import home

from reporting.plan import planned
from study.jobs import script


def main():
    parser = home.run_arguments(__doc__)
    parser.add_argument("--watch", type=float, metavar="SECONDS", help="until all is done")
    arguments = parser.parse_args()
    print("Asking Snakemake for the plan ...", file=sys.stderr)
    started = time.time_ns()
    plan = [
        Watched(job, started)
        for job in planned(arguments.configfile, arguments.targets, home.START)
    ]
    shown = None
    while True:
        now = table(plan)
        if now != shown:
            print(f"{time.strftime('%H:%M:%S')}\n{now}", flush=True)
        shown = now
        if arguments.watch is None or all(job.done() for job in plan):
            return
        time.sleep(arguments.watch)


class Watched:
    """A planned job, which is done if its file is up to date."""

    def __init__(self, job, started):
        self.experiment = job.experiment
        self.path = Path(job.file)
        self.finished = not job.pending
        written = None if job.missing else self._written()
        self.outdated = written if written is not None and written < started else None

    def _written(self):
        try:
            return self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def done(self):
        if not self.finished:
            self.finished = self._written() not in (None, self.outdated)
        return self.finished


def table(plan):
    """One line per experiment, one for jobs that experiments share ("(shared)"), and one for the total."""
    totals = {}
    for job in plan:
        for name in (job.experiment or "(shared)", "all"):
            done, total = totals.get(name, (0, 0))
            totals[name] = (done + job.done(), total + 1)
    lines = [f"{'':<24}{'done':>8}{'of':>8}"]
    for name, (done, total) in sorted(totals.items(), key=lambda item: (item[0] == "all", item[0])):
        bar = "#" * (20 * done // total)
        lines.append(f"{name:<24}{done:>8}{total:>8}{100 * done // total:>5} % {bar:<20}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    script.run(main, job=False)
