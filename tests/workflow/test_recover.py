import os
import signal

import pytest

from project import TINY


@pytest.mark.slow
def test_recovery_beside_a_live_run_is_refused(fresh):
    project = fresh("alive")
    run = project.start("--cores", 1, *TINY)
    try:
        project.wait_for(lambda: list((project / ".snakemake/locks").glob("*.lock")))
        os.killpg(run.pid, signal.SIGSTOP)  # the run is alive until this test ends
        output = project.python("scripts/tools/recover.py", "--cores", 1, *TINY, ok=False)
        number = f"process {run.pid} of this machine"  # the message may also name a fork
        assert output.startswith("recover: a Snakemake run of this folder is alive (process ")
        assert number in output and output.endswith("stop it with Ctrl-C where it was started\n")
        # Without the project's check, Snakemake would advise --unlock, and obey it.
        for words in (TINY, ("--unlock", *TINY)):
            output = project.snakemake(*words, ok=False)
            assert "another run of this folder is alive (process " in output and number in output
            assert "--unlock" not in output and "recover.py" not in output
        assert list((project / ".snakemake/locks").glob("*.lock")), "unlocked"
        assert run.poll() is None
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    output = project.snakemake(*TINY, ok=False)
    assert "a run of this folder was killed" in output and "scripts/tools/recover.py" in output
    output = project.python("scripts/tools/recover.py", "--cores", 1, "--dry-run", *TINY)
    assert "unlocking and resuming" in output
    assert not list((project / ".snakemake/alive").glob("*"))
