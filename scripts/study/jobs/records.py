"""Record which configuration a folder of results belongs to, and what its report shows.

A configuration's name is its Snakemake arguments, such as "--configfile config/real.yaml", or "" for
config/config.yaml alone.
"""

import html
import json
import re
import shlex
from pathlib import Path

from study import paths
from study.jobs.files import read_json, write_json

# Only a report's beginning is read, because reports may be many megabytes long.
HEAD = re.compile(r'<meta name="shows" content="([^"]*)">')
# The folders of default runs and of runs with real data, which earlier versions wrote to DEFAULT, too.
DEFAULT, OF_REAL = "results", "results-real"
REAL = re.compile(r"--configfile \S*config/real\.yaml")


def words(files, values):
    """The arguments that name a configuration. files: its overlays. values: the values of --config."""
    files = [_called(Path(file)) for file in files]
    pairs = [f"{key}={v if isinstance(v, str) else json.dumps(v)}" for key, v in values.items()]
    pairs = [shlex.quote(word) for word in pairs]
    return " ".join(
        [*(["--configfile", *files] if files else []), *(["--config", *pairs] if pairs else [])]
    )


def _called(file):
    """A configuration file's path, relative to this folder or to $DP_HOME."""
    home = paths.HOME.resolve()
    if file.is_relative_to(Path.cwd()):
        return shlex.quote(str(file.relative_to(Path.cwd())))
    if file.is_relative_to(home):
        return f'"${paths.HOME_VARIABLE}"/{shlex.quote(str(file.relative_to(home)))}'
    return shlex.quote(str(file))


def refusal(configuration):
    """Why a configuration may not write to the folder of results; None if it may.

    A folder belongs to the first configuration that writes to it.
    """
    owners = _owners()
    if not owners or configuration in owners:
        return None
    return (
        f"{paths.results()}/ holds results of {called(owners[0])}, and {called(configuration)} needs a "
        f"folder of its own: choose one (--config results=NAME, or `results: NAME` in an overlay), or "
        f"remove {paths.results()}/"
    )


def keep(configuration):
    if not Path(paths.MADE()).exists():
        write_json(paths.MADE(), {"configuration": configuration})


def _owners():
    path = Path(paths.MADE())
    return [read_json(path)["configuration"]] if path.exists() else [*_older(paths.results())]


def _older(root):
    """Configuration -> its existing run files, as earlier versions recorded them.

    Several configurations could share a folder of results.
    """
    made = {}
    for path in _older_files(root):
        for configuration, files in read_json(path).items():
            there = {file for file in files if Path(file).exists()}
            made.setdefault(configuration, set()).update(there)
    return made


def _older_files(root):
    folders = ("*", paths.reading("*", "*"))
    return sorted(path for each in folders for path in Path(root).glob(f"{each}/logs/made.json"))


def left_behind(configuration):
    """Name once the real cells that an earlier version left in the folder of default runs, or None."""
    if configuration and not REAL.fullmatch(configuration):
        return None
    older = _older(DEFAULT)
    real = next(filter(REAL.fullmatch, older), None)
    cells = older.get(real, set()) - older.get("", set())
    if not cells:
        return None
    for path in _older_files(DEFAULT):
        path.unlink()
    experiments = ", ".join(sorted({Path(cell).parts[1] for cell in cells}))
    return (
        f"{DEFAULT}/ holds cells of {called(real)} ({len(cells):,} of {experiments}), which now writes to "
        f"{OF_REAL}/. If this version of the code made them, take them there before its next run: "
        f"`mkdir -p {OF_REAL} && cp -an {DEFAULT}/. {OF_REAL}/; rm -f {OF_REAL}/logs/made.json`; "
        "there, Snakemake compares their dates only. Otherwise, leave them: that run makes them again."
    )


def called(configuration):
    return f"`{configuration}`" if configuration else "config/config.yaml alone"


def page(path):
    """{configuration, experiments: name -> number of cells} of a report; None if there is no report."""
    try:
        with Path(path).open(encoding="utf-8") as handle:
            head = HEAD.search(handle.read(100_000))
    except FileNotFoundError:
        return None
    return json.loads(html.unescape(head[1])) if head else None


def shows_less(new, old):
    counts = new["experiments"]
    return new["configuration"] != old["configuration"] or any(
        count > counts.get(name, 0) for name, count in old["experiments"].items()
    )
