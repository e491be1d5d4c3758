"""Recovery does not touch a run that is alive."""

import os
import signal

from project import TINY


def test_recovery_beside_a_live_run_is_refused(fresh):
    project = fresh("alive")
    run = project.start("--cores", 1, *TINY)
    try:
        project.wait_for(lambda: list((project / ".snakemake/locks").glob("*.lock")))
        output = project.python("scripts/tools/recover.py", "--cores", 1, *TINY, ok=False)
        assert output == (
            f"recover: a Snakemake run of this folder is alive (process {run.pid} of this machine): "
            "wait for its end, or stop it with Ctrl-C where it was started\n"
        )
        assert list((project / ".snakemake/locks").glob("*.lock")), "unlocked"
        assert run.poll() is None
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    # Once it is killed, recovery goes on.
    output = project.python("scripts/tools/recover.py", "--cores", 1, "--dry-run", *TINY)
    assert "unlocking and resuming" in output
    assert not list((project / ".snakemake/alive").glob("*"))
