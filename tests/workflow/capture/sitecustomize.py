"""On the path of every Python that a test's workflow starts: writes down what each job imported.

One JSON file per job in the folder CAPTURE: its arguments, the project's files it executed, and the
installed packages it loaded.
"""

import atexit
import os
import sys


def _write():
    import json
    import uuid
    from pathlib import Path

    script = Path(sys.argv[0]).resolve()
    if script.parent.name != "scripts" or script.suffix != ".py":
        return
    paths = {name: getattr(module, "__file__", None) for name, module in [*sys.modules.items()]}
    files = {name: Path(path).resolve() for name, path in paths.items() if path}
    record = {
        "arguments": sys.argv[1:],
        "script": script.name,
        "project": sorted(
            {
                path.relative_to(script.parent).as_posix()
                for path in (script, *files.values())
                if path.is_relative_to(script.parent)
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


if "CAPTURE" in os.environ:
    atexit.register(_write)
