"""Records the imports of jobs: every Python process of a test's workflow imports this file.

The folder CAPTURE gets one JSON file per job, with its arguments, the executed project files, and
the loaded packages.
"""

import atexit
import os
import sys
from pathlib import Path

FORK = Path("study", "jobs", "fork.py")  # the process that starts jobs as forks of itself


def _started_by_fork():
    """The scripts' folder if this process is a fork that runs a job."""
    main = Path(getattr(sys.modules["__main__"], "__file__", None) or "").resolve()
    return main.parents[2] if main.parts[-3:] == FORK.parts else None


def _started_by_itself():
    """The scripts' folder if this process is an interpreter that runs a job."""
    program = Path(*sys.orig_argv[1:2]).resolve()  # at exit, `__main__` has no `__file__`
    return program.parent if program.parts[-2:] == ("scripts", "job.py") else None


def _write():
    import json
    import uuid

    scripts = _started_by_fork() or _started_by_itself()
    if scripts is None:
        return
    main = sys.modules["__main__"]  # which multiprocessing knows by another name, too
    modules = {name: module for name, module in sys.modules.items() if module is not main}
    paths = {name: getattr(module, "__file__", None) for name, module in modules.items()}
    files = {name: Path(path).resolve() for name, path in paths.items() if path}
    record = {
        "arguments": sys.argv[1:],
        "script": f"jobs/{sys.argv[0]}.py",
        "project": sorted(
            {
                path.relative_to(scripts).as_posix()
                for path in files.values()
                if path.is_relative_to(scripts)
            }
        ),
        "packages": sorted(
            {
                name.partition(".")[0]
                for name, path in files.items()
                if "site-packages" in path.parts
            }
        ),
    }
    Path(os.environ["CAPTURE"], f"{uuid.uuid4()}.json").write_text(json.dumps(record))


def _import_anew():
    """Make a fork forget the project modules that it inherits, and record those that its job imports."""
    scripts = _started_by_fork()
    if not scripts:
        return
    for name, module in [*sys.modules.items()]:
        path = getattr(module, "__file__", None)
        if (
            module is not sys.modules["__main__"]
            and path
            and Path(path).resolve().is_relative_to(scripts)
        ):
            del sys.modules[name]
    from study.jobs import script

    run = script.run

    def run_and_write(main):
        try:
            run(main)
        finally:
            _write()

    script.run = run_and_write  # a fork ends without running exit handlers


if "CAPTURE" in os.environ:
    atexit.register(_write)
    os.register_at_fork(after_in_child=_import_anew)
