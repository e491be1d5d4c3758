"""Writes what a run has made so far as a page, which grows until report.html takes its place.

The page shows only files that no job of the run has still to make, so it never takes older results for the
run's. It names its pictures by their paths, which costs no time, and it stays true if the run is stopped.
"""

import threading
import time
from datetime import datetime
from pathlib import Path

from reporting import findings, ledger
from study import paths
from study.jobs.files import atomic, read_csv

EVERY = 15  # seconds
TEMPLATES = paths.HOME / "workflow/report"


class SoFar:
    """The page of one run.

    Parameters
    ----------
    experiments : list of Experiment
        In the page's order.
    attacks : list of study.configuration.audits.Attack
    waiting : callable
        Returns the set of files that jobs of the run have still to make.
    """

    def __init__(self, experiments, attacks, waiting):
        self.experiments, self.attacks, self.waiting = experiments, attacks, waiting
        self.cells = [[each.run_path(cell) for cell in each.cells()] for each in experiments]
        self.page = Path(paths.SO_FAR())
        self._rows = {}  # path of an attack -> its row
        self._shown = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def begin(self):
        self._began = time.time()
        self.page.unlink(missing_ok=True)  # that of an earlier run
        self._thread.start()

    def _follow(self):
        while not self._ended.wait(EVERY):
            self.write()

    def end(self):
        """Write the page for the last time, or remove it if there is a new report."""
        self._ended.set()
        self._thread.join()
        self.write()

    def write(self):
        """Write the page if there is anything new."""
        try:
            if self._reported():
                self.page.unlink(missing_ok=True)
            elif (content := self.content()) != self._shown:
                with atomic(self.page) as handle:
                    handle.write(rendered(content))
                self._shown = content
        except OSError:  # such as a full disk, which the jobs report
            return

    def _reported(self):
        report = Path(paths.REPORT())
        return report.exists() and report.stat().st_mtime >= self._began

    def content(self):
        waiting = self.waiting()
        experiments = [_experiment(each, waiting) for each in self.experiments]
        return {
            "experiments": [each for each in experiments if each["figures"] or each["verdicts"]],
            "cells": [
                (each.title, sum(path not in waiting for path in cells), len(cells))
                for each, cells in zip(self.experiments, self.cells, strict=True)
            ],
            "ledger": self._ledger(waiting),
            "mechanisms": len({attack.mechanism for attack in self.attacks}),
        }

    def _ledger(self, waiting):
        """A line for every attacked mechanism, in the configuration's order."""
        lines = {}
        for attack in self.attacks:
            if attack.path not in self._rows and _made(attack.path, waiting):
                self._rows[attack.path] = read_csv(attack.path)[0]
            if attack.path in self._rows:
                lines.setdefault(attack.mechanism, []).append(self._rows[attack.path])
        return [ledger.entry(rows) | {"attacks": len(rows)} for rows in lines.values()]


def _made(path, waiting):
    return path not in waiting and Path(path).exists()


def _experiment(experiment, waiting):
    """What the page says of an experiment; `verdicts` is None until all of its verdicts are there."""
    judged = [path for _, path in findings.files([experiment]) if str(path) in waiting]
    figures = (
        (spec.title, Path(paths.FIGURE(experiment=experiment.folder, name=name)))
        for name, spec in experiment.figures.items()
    )
    return {
        "name": experiment.name,
        "title": experiment.title,
        "figures": [
            (title, str(path.relative_to(paths.results())))
            for title, path in figures
            if _made(str(path), waiting)
        ],
        "verdicts": None if judged or experiment.smaller else findings.verdicts([experiment]),
    }


def rendered(content):
    import jinja2  # not before there is something to show

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True
    )
    at = f"{datetime.now().astimezone():%Y-%m-%d, %H:%M:%S %Z}"
    return environment.get_template("so_far.html.j2").render(at=at, **content)
