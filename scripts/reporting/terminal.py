"""Shows a run on the terminal: a line every half minute, and failures at once.

Snakemake prints the rule, files and reason of every job. Here, its own handler of the terminal gets only
warnings and errors, and what is not part of a run. Snakemake's log, in .snakemake/log, has everything.
"""

import logging
import re
import threading
import time
from pathlib import Path

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.logging import LogEvent

EVERY = 30  # seconds
LAST = 10  # lines of a failed job's log
# Snakemake's second message about a failed command repeats the command, with everything in its prefix.
REPEATED = re.compile(r"returned non-zero exit status|died with <Signals")


class Terminal(logging.Handler):
    """Takes the place of Snakemake's handler of the terminal.

    Parameters
    ----------
    handler : logging.StreamHandler
        Snakemake's handler.
    """

    def __init__(self, handler):
        super().__init__()
        self.handler = handler
        self.name = handler.name
        self.is_run = False  # a report, a lint or an unlocking is no run, and shown as it is
        self.progress = None
        self._ended = threading.Event()

    def emit(self, record):
        event = getattr(record, "event", None)
        self.is_run = self.is_run or event == LogEvent.WORKFLOW_STARTED
        if not self.is_run:
            self.handler.handle(record)
        elif event == LogEvent.JOB_FINISHED and self.progress:
            self.progress.finished(record.job_id)
        elif event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR):
            self.write(failure(record))
        elif record.msg == NOTHING_TO_BE_DONE_MSG or (
            record.levelno >= logging.WARNING and not REPEATED.search(record.getMessage())
        ):
            self.handler.handle(record)

    def begin(self, seconds, talks=True):
        """Follow the progress, and print it if `talks`. seconds: id of each job -> expected seconds."""
        self.progress = Progress(seconds)
        if talks:
            threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self):
        while not self._ended.wait(EVERY):
            self.write(self.progress.line())

    def end(self):
        self._ended.set()

    def write(self, text):
        self.handler.stream.write(f"{text}\n")
        self.handler.flush()


class Progress:
    """How many jobs of a run are done, and their share of the expected seconds.

    Parameters
    ----------
    seconds : dict
        Id of each job -> expected seconds.
    clock : callable, optional
        Returns the time in seconds.
    """

    def __init__(self, seconds, clock=time.monotonic):
        self.seconds, self.clock = seconds, clock
        self.start = clock()
        self.done = set()

    def finished(self, job):
        self.done.add(job)

    def elapsed(self):
        return self.clock() - self.start

    def line(self):
        done = self.seconds.keys() & self.done
        share = sum(self.seconds[job] for job in done) / (sum(self.seconds.values()) or 1.0)
        left = f", {duration(self.elapsed() * (1 - share) / share)} left" if share else ""
        return f"{len(done):,} of {len(self.seconds):,} jobs ({100 * share:.0f} %){left}"


def duration(seconds):
    if seconds < 60:
        return "less than a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 90 * 60 else f"about {seconds / 3600:.1f} h"


def failure(record):
    """What failed, and the last lines of its logs. record: Snakemake's, on a job or a group of jobs."""
    jobs = getattr(record, "job_error_info", None) or [vars(record)]
    lines = []
    for job in jobs:
        made = ", ".join(map(str, job["output"]))
        lines.append(f"error: the job {job['rule_name']} failed{made and f', which makes {made}'}")
    logs = [log for job in jobs for log in job["log"]] + list(getattr(record, "aux_logs", ()))
    for log in dict.fromkeys(map(str, logs)):
        try:
            text = Path(log).read_text(encoding="utf-8", errors="replace").rstrip()
        except OSError:
            lines.append(f"  its log {log} cannot be read")
            continue
        last = text.splitlines()[-LAST:]
        lines.append(f"  its log {log} {'ends:' if last else 'is empty'}")
        lines += [f"    {line}" for line in last]
    return "\n".join(lines)
