"""Record which configurations made the results in a folder, and what its report shows.

A configuration's name is its Snakemake arguments, such as "--configfile config/real.yaml", or "" for
config/config.yaml alone.
"""

import hashlib
import html
import json
import re
import shlex
from pathlib import Path

from study import lambdas, paths
from study.jobs.files import read_json, write_json

# Only a report's beginning is read, because reports may be many megabytes long.
HEAD = re.compile(r'<meta name="shows" content="([^"]*)">')


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


def of_experiment(experiment, seed):
    """Run file -> digest of all settings that determine its content, except code and data."""
    digests = {}
    for name, method in experiment.methods.items():
        choice = experiment.values.get(lambdas.WORDS.get(method["lambda"]))
        if method["lambda"] == "searched":
            choice = choice[method["search"]]
        draws = (experiment.split(name), experiment.values.get("restarts"))
        digests[name] = _digest(seed, method, draws, choice)
    return {experiment.run_path(cell): digests[cell.method] for cell in experiment.cells()}


def of_audit(audits, seed):
    """File of an attack -> digest of the settings that determine its content."""
    return {
        attack.path: _digest(seed, audits.attack(attack.mechanism, attack.label))
        for attack in audits.attacks()
    }


def _digest(*settings):
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def refusal(folder, configuration, made):
    """Why a configuration may not make these files in a folder of results; None if it may.

    A configuration may not replace a file that another configuration made with other settings. If both
    recorded the same settings for the file, a later change of settings is assumed to apply to both.
    """
    known = _read(folder)
    mine = known.get(configuration, {})
    for other, theirs in known.items():
        if other == configuration:
            continue
        for path, digest in theirs.items():
            if made.get(path, digest) != digest != mine.get(path) and Path(path).exists():
                return (
                    f"{paths.results(folder)} holds results of {called(other)}, and {path} among "
                    f"them would be replaced, since {called(configuration)} has other settings: "
                    f"choose another folder (--config results=NAME, or `results: NAME` in an "
                    f"overlay), or remove {paths.results(folder)}"
                )
    return None


def keep(folder, configuration, made):
    known = _read(folder)
    new = {
        other: {path: d for path, d in theirs.items() if made.get(path, d) == d}
        for other, theirs in known.items()
    } | {configuration: made}
    if new != known:
        write_json(paths.MADE(folder=folder), new)


def _read(folder):
    path = Path(paths.MADE(folder=folder))
    return read_json(path) if path.exists() else {}


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


def refused_page(path, configuration, names):
    """Why a report of these experiments may not replace the existing page; None if it may."""
    old = page(path)
    if old is None or old["configuration"] == configuration:
        return None
    lost = [name for name, count in old["experiments"].items() if count and name not in names]
    return lost and (
        f"{path} is the report of {called(old['configuration'])} and shows {', '.join(lost)} too, "
        f"which {called(configuration)} does not list: choose another folder (--config results=NAME, "
        f"or `results: NAME` in an overlay), or remove the page"
    )
