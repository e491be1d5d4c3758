"""A run shows its progress by expected seconds, and each failure with the end of its log."""

import io
import logging
import subprocess
import time

import pytest
from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.logging import LogEvent

from reporting import forecast, terminal
from study import paths
from study.configuration.experiment import Experiment


@pytest.fixture
def shown():
    """(logger, text so far) of a terminal on which a run has started."""
    stream = io.StringIO()
    logger = logging.Logger("run")
    own = logging.StreamHandler(stream)
    logger.handler = terminal.Terminal(own)
    logger.addHandler(logger.handler)
    return logger, stream.getvalue


def start(logger):
    logger.info("host: mine", extra={"event": LogEvent.WORKFLOW_STARTED})


def test_only_what_belongs_to_a_run_is_left_out(shown):
    logger, text = shown
    logger.info("Unlocked working directory.")
    assert text() == "Unlocked working directory.\n"
    start(logger)
    logger.info("rule run:", extra={"event": LogEvent.JOB_INFO})
    logger.info("Select jobs to execute...")
    for status in (1, -15):
        logger.error(str(subprocess.CalledProcessError(status, "python x")))
    assert text() == "Unlocked working directory.\n"
    logger.info(NOTHING_TO_BE_DONE_MSG)
    logger.warning("a warning")
    logger.error("no such file")
    assert text().splitlines()[1:] == [NOTHING_TO_BE_DONE_MSG, "a warning", "no such file"]


def test_progress_is_a_share_of_seconds_and_not_of_jobs():
    now = [100.0]
    seconds = dict.fromkeys(range(3999), 1.0) | {"long": 1.0 + 4000 * 3}
    progress = terminal.Progress(seconds, clock=lambda: now[0])
    assert progress.line() == "0 of 4,000 jobs (0 %)"
    for number in range(3999):
        progress.finished(number)
    now[0] += 200
    # 3,999 of 16,000 seconds are done after 200 seconds, and the others take three times as long.
    assert progress.line() == "3,999 of 4,000 jobs (25 %), about 10 min left"
    progress.finished("long")
    assert progress.line() == "4,000 of 4,000 jobs (100 %), less than a minute left"
    assert terminal.duration(3 * 3600) == "about 3.0 h"


def test_jobs_that_a_run_finishes_are_counted_and_printed(shown, monkeypatch):
    logger, text = shown
    monkeypatch.setattr(terminal, "EVERY", 0.01)
    start(logger)
    logger.handler.begin({1: 2.0, 2: 2.0})
    logger.info("Finished", extra={"event": LogEvent.JOB_FINISHED, "job_id": 2})
    deadline = time.monotonic() + 10
    while "1 of 2 jobs (50 %)" not in text() and time.monotonic() < deadline:
        time.sleep(0.01)
    logger.handler.end()
    assert "1 of 2 jobs (50 %)" in text()


def test_a_failure_is_shown_with_the_last_lines_of_its_log(shown, tmp_path):
    logger, text = shown
    start(logger)
    log, empty = tmp_path / "a.log", tmp_path / "b.log"
    log.write_text("".join(f"line {number}\n" for number in range(30)))
    empty.touch()
    job = {"rule_name": "run", "output": ["cell.csv"], "log": [str(log)]}
    logger.error("Error in rule run", extra={"event": LogEvent.JOB_ERROR, **job})
    lines = text().splitlines()
    assert lines[0] == "error: the job run failed, which makes cell.csv"
    assert lines[1] == f"  its log {log} ends:"
    assert lines[2:] == [f"    line {number}" for number in range(20, 30)]

    group = [job, {"rule_name": "fit", "output": [], "log": [str(tmp_path / "none.log")]}]
    extra = {"event": LogEvent.GROUP_ERROR, "job_error_info": group, "aux_logs": [str(empty)]}
    logger.error("Error in group", extra=extra)
    said = text()
    assert "error: the job fit failed\n" in said and f"its log {empty} is empty" in said
    assert f"its log {tmp_path / 'none.log'} cannot be read" in said


def test_every_job_has_expected_seconds():
    rows = [{"rule": "run", "experiment": "e", "jobs": 1, "work": 1000, "cpu_seconds": 1.05}]
    cell = paths.RUN(experiment="e", dataset="d", method="m", size=500, epsilon=1)
    method = {"mechanism": "output_perturbation", "private": True}
    stated = {"methods": {"m": method}, "folds": 5, "restarts": 2}
    values = {"e": Experiment("e", stated)}
    outputs = {7: ("run", cell), 8: ("all", None), 9: ("download", "data/raw/a.csv")}
    seconds = forecast.seconds(outputs, values, rows)
    # 500 rows x 5 folds x 2 draws are five times the recorded work, besides the start of a job.
    assert seconds == {7: pytest.approx(0.05 + 5 * 1.0), 8: 0.05, 9: 0.05}
