"""Reads the arguments of a Snakemake run, and explains errors in its profile and targets."""

import os
import shutil
import sys
from difflib import get_close_matches
from pathlib import Path

from study import paths
from study.configuration.faults import nearest

PROFILES = "workflow/profiles"
PROGRAMS = {"slurm": "sbatch", "lsf": "bsub"}  # Snakemake's plugin -> what it submits jobs with
DATA = "data"  # the folder of data sets, whose files need no experiment


def arguments():
    """This process's arguments, parsed by Snakemake's parser; None in another program."""
    from snakemake.cli import get_argument_parser

    if "snakemake" not in {part.removesuffix(".py") for part in Path(sys.argv[0]).parts[-2:]}:
        return None
    try:
        return get_argument_parser().parse_args(sys.argv[1:])
    except (Exception, SystemExit):  # Snakemake accepted the arguments, so ignore this error
        return None


def has_targets(parsed):
    """Whether the arguments name targets or, on a compute node, the jobs of a submission."""
    return bool(parsed.targets or parsed.target_jobs)


def experiments(parsed, available, root, listed):
    """The names of the experiments that the targets need; None if they may need others.

    parsed: the result of `arguments`. root: the folder of all results. listed: returned if there are no
    targets.
    """
    # With these options, the run may need rules of other experiments.
    others = ("forcerun", "until", "omit_from", "prioritize", "batch", "list_rules")
    if parsed is None or any(getattr(parsed, option, None) for option in others):
        return None
    if not has_targets(parsed):
        return listed
    names = set()
    for rule, wildcards in parsed.target_jobs or ():
        if "experiment" in wildcards:
            names.add(wildcards["experiment"].partition("/")[0])
        elif rule not in ("download", "prepare"):
            return None
    for target in parsed.targets:
        if target in available:
            names.add(target)
        elif (folder := _folder(target, root)) != DATA:
            names.add(folder)
    return names if names <= {*available} else None


def datasets(parsed, root):
    targets = () if parsed is None else parsed.targets
    return {Path(each).stem for each in targets if _folder(each, root) == DATA}


def _folder(target, root):
    """A target's folder below `root`, or "". For files of data sets it is DATA, even outside `root`."""
    path = Path(os.path.normpath(target))
    below = path.relative_to(root).parts if path.is_relative_to(root) else ()
    return DATA if path.parts[:1] == (DATA,) else "".join(below[:1])


def no_profile(profile, directory=None):
    """An error message if the workflow profile is missing (Snakemake would ignore this); otherwise "".

    directory: the argument --directory. With it, the folder where Snakemake was started is unknown, so any
    relative path is accepted.
    """
    if profile in (None, "none") or any(
        Path(place, profile).exists() for place in ("", "profiles")
    ):
        return ""
    if directory and not Path(profile).is_absolute():
        return ""
    shipped = sorted(path.name for path in (paths.HOME / PROFILES).glob("*"))
    near = get_close_matches(Path(profile).name, shipped, n=1)
    folder = str(paths.HOME / PROFILES) if paths.in_study() else PROFILES
    if near:
        return f"no profile {profile!r}; did you mean {f'{folder}/{near[0]}'!r}?"
    return f"no profile {profile!r} ({folder} has {', '.join(shipped)})"


def no_scheduler(parsed):
    """An error message if the profile's scheduler is not on this machine; otherwise "".

    Without this check, each of thousands of jobs would fail by itself. A dry run submits nothing.
    """
    from snakemake.cli import get_argument_parser

    if (
        parsed.dryrun
        or parsed.unlock
        or not (parsed.workflow_profile and Path(parsed.workflow_profile).is_dir())
    ):
        return ""
    parser = get_argument_parser(profiles=[Path(parsed.workflow_profile)])
    asked = parser.parse_args(sys.argv[1:])
    program = PROGRAMS.get(asked.executor)
    if asked.executor == "cluster-generic":
        program = str(asked.cluster_generic_submit_cmd).partition(" ")[0]
    if program is None or shutil.which(program):
        return ""
    return (
        f"the profile {parsed.workflow_profile!r} submits jobs with {program}, which this machine does not "
        f"have: start the run on a login node of the cluster, or use --cores all in place of the profile"
    )


def no_target(target, rules, files, made):
    """An error message if `target` is not a target of the workflow; otherwise "".

    rules: names of rules that may be targets. files: folder -> all its result files; the key "" lists some
    files of other folders. made: whether the target matches some rule's output.
    """
    path = os.path.normpath(target)
    if target in rules or Path(target).exists():
        return ""
    known = [file for folder in files for file in files[folder]]
    folder = next((name for name in files if name and Path(path).is_relative_to(name)), None)
    if path in known or (made and folder is None):
        return ""
    if folder:
        return f"no target {target!r}{nearest(path, files[folder])}"
    # The target may be a figure's or table's name, without its folder.
    alike = [file for file in known if Path(file).stem == Path(path).stem]
    if "/" in path and not alike:
        alike = get_close_matches(path, known, n=1)
    if alike:
        return f"no target {target!r}; did you mean {get_close_matches(path, alike, 1, 0)[0]!r}?"
    return f"no target {target!r}{nearest(path, sorted(rules))}"
