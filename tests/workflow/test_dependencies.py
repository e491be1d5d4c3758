"""Every project file that a job executes is part of its rule's `library` digest."""

import ast
import base64
import itertools
import json
import math
import re
import subprocess
import sys

import pytest
import yaml

from configured import configured
from dp.mechanisms import MECHANISMS
from project import ROOT
from study.configuration import audits, kinds, sources
from study.configuration.code import modules_of, modules_of_checks, of_entry
from study.dependencies import digest, files_of_job

SCRIPTS = ROOT / "scripts"
SCRIPT_OF = {
    "tables": "jobs/table.py",
    "figures": "jobs/figure.py",
    "analyses": "jobs/analyse.py",
}


def jobs(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def argument(job, name):
    return job["arguments"][job["arguments"].index(name) + 1]


def modules_by_name(job):
    arguments = job["arguments"]
    if job["script"] == "jobs/report.py":
        sections = (*kinds.SECTIONS.values(), kinds.CHECKS)
        return sorted({kind.module for section in sections for kind in section.values()})
    if job["script"] == "jobs/audited_cells.py":
        return sorted(map(MECHANISMS.module, MECHANISMS))
    if job["script"] == "jobs/exact_losses.py":
        return sorted(map(MECHANISMS.module, audits.EXACT))
    if job["script"] == "jobs/replay.py":
        names = set()
        for name, _, attack in json.loads(argument(job, "--attacks")):
            if name in MECHANISMS:
                names |= {name, (MECHANISMS[name].defaults() | attack["options"]).get("of")}
        return sorted(MECHANISMS.module(name) for name in names - {None})
    if "--mechanism" in arguments:
        name = argument(job, "--mechanism")
        if name not in MECHANISMS:
            return []  # the auditor's null control
        options = json.loads(argument(job, "--options" if "--options" in arguments else "--attack"))
        options = MECHANISMS[name].defaults() | options.get("options", options)
        return [MECHANISMS.module(each) for each in (name, options.get("of")) if each]
    if "--experiment" not in arguments or not argument(job, "--experiment").startswith("{"):
        return []
    experiment = json.loads(argument(job, "--experiment"))
    if job["script"] == "jobs/guarantees.py":
        return sorted(map(MECHANISMS.module, used_by(experiment)))
    if job["script"] in ("jobs/check.py", "jobs/readings.py"):
        section = argument(job, "--section") if "--section" in arguments else "claims"
        entries = experiment[section].values()
        checks = [check for entry in entries for check in entry.get("checks", ())]
        used = {c["options"]["mechanism"] for c in checks if "mechanism" in c["options"]}
        loaded = {kinds.CHECKS[check["kind"]].module for check in checks}
        return sorted(loaded | set(map(MECHANISMS.module, used)))
    if "--name" in arguments:
        (section,) = (name for name, script in SCRIPT_OF.items() if script == job["script"])
        entry = experiment[section][argument(job, "--name")]
        kind = kinds.SECTIONS[section][entry["kind"]]
        used = used_by(experiment)
        for program in entry["options"].get("programs", {}).values():
            used |= {program["mechanism"], program["repaired"]}
        any_of_them = "dp/registry.py" in job["project"]
        return [kind.module, *(sorted(map(MECHANISMS.module, used)) if any_of_them else [])]
    return []


def used_by(experiment):
    """Mechanisms of an experiment's methods, and those that they call."""
    methods = experiment["methods"].values()
    run = {method["options"].get("of") for method in methods} - {None}
    return {method["mechanism"] for method in methods} | run


def recorded_library(project, output):
    name = base64.b64encode(output.encode()).decode()
    folder = project / ".snakemake/metadata"
    parts = [name[k : k + 254] for k in range(0, len(name), 254)]
    path = folder.joinpath(*(f"@{part}" for part in parts[:-1]), parts[-1])
    (library,) = (
        value
        for value in json.loads(path.read_text())["params"]
        if re.fullmatch(r"'[0-9a-f]{12}'", value)
    )
    return library.strip("'")


def check(project):
    """Check that each job executed only files of `files_of_job`, and that its rule digests those files.

    Jobs are forks, which share only imports of packages.
    """
    seen, unknown = set(), set()
    for job in jobs(project.captured):
        if job["script"] == "jobs/download.py":
            continue  # a download's checksum determines the file, whatever the code
        modules = modules_by_name(job)
        known = {
            path.relative_to(SCRIPTS).as_posix() for path in files_of_job(job["script"], *modules)
        }
        output = next(a for a in itertools.pairwise(job["arguments"]) if a[0].startswith("--out"))
        empty = "jobs/__init__.py"  # it has a docstring alone
        missed = sorted({*job["project"]} - known - {empty})
        if recorded_library(project, output[1]) != digest(job["script"], *modules):
            missed.append("recorded another digest")
        unknown |= {(job["script"], output[1], file) for file in missed}
        seen.add(job["script"])
    assert not unknown, "executed by a job whose rule does not depend on it"
    return seen


def test_every_file_that_a_job_executes_is_in_its_digest(finished):
    expected = {
        "jobs/prepare.py",
        "jobs/tune.py",
        "jobs/fit.py",
        "jobs/run.py",
        "jobs/guarantees.py",
        "jobs/aggregate.py",
        "jobs/provenance.py",
    }
    assert check(finished) >= expected | {"jobs/table.py", "jobs/figure.py"}


def code_of(experiment):
    """What an experiment's jobs load by name: kinds of entries and of checks, and mechanisms."""
    entries = {
        (section, entry.kind, of_entry(experiment, section, label, script))
        for section, script in SCRIPT_OF.items()
        for label, entry in experiment.section(section).items()
    }
    ran = {("methods", *modules_of(method)) for method in experiment.methods.values()}
    checks = {
        ("checks", module)
        for section in ("claims", "defects")
        for module in modules_of_checks(experiment, section)
    }
    return entries | ran | checks


def with_own_code(experiments):
    """Names of experiments without those, the largest first, whose code all others together have."""
    code = {name: code_of(experiment) for name, experiment in experiments.items()}
    for name in sorted(code, key=lambda name: -len(experiments[name].cells())):
        if code[name] <= set().union(*(code[other] for other in code if other != name)):
            del code[name]
    return [name for name in experiments if name in code]


def without_repetitions():
    """Configuration changes that remove jobs with the same code as another job.

    Remaining: experiments that have code of their own, with one reading; one data set per sweep, and
    one size and epsilon per data set; one figure and table per kind; one attack per mechanism, and few
    releases.
    """
    settings, drawn, same = {}, set(), {}
    listed, smoke, _ = configured("smoke")
    needed = with_own_code({name: smoke[name] for name in listed.experiments})
    for name, (experiment, _, _) in sources.experiments().items():
        others = list(experiment.get("readings", ()))[1:]
        settings[name] = {"readings": dict.fromkeys(others)} if others else {}
        settings[name] |= {"together": []} if experiment.get("together") else {}
        if name not in needed:
            continue
        for label, sweep in smoke[name].sweeps.items():
            listed_values = {
                key: getattr(sweep, key) for key in ("train_sizes", "epsilons", "datasets")
            }
            one = {key: each[:1] for key, each in listed_values.items() if isinstance(each, list)}
            one = same.setdefault((name, *one.get("datasets", ())), one)
            settings[name].setdefault("sweeps", {})[label] = dict(one)
        for section in ("figures", "tables"):
            for label, entry in smoke[name].section(section).items():
                loaded = of_entry(smoke[name], section, label, SCRIPT_OF[section])
                code = section, entry.kind, loaded
                if code in drawn:
                    settings[name].setdefault(section, {})[label] = None
                drawn.add(code)
    attacks, few, attacked = {}, {"trials": 1000}, set()
    loaded = audits.load({})
    for each in loaded.attacks():
        chosen = attacks.setdefault(each.mechanism, {})
        code = each.mechanism, loaded.mechanisms[each.mechanism][each.label].options.get("of")
        if code in attacked:
            chosen.setdefault(each.label)  # null removes it
        else:
            chosen[each.label] = few | (
                {"epsilons": [each.epsilon]} if each.epsilon < math.inf else {}
            )
        attacked.add(code)
    programs = smoke["released_code"].analyses["cases"].options["programs"]
    fewer = {
        name: few | {"attacks": dict.fromkeys(program["attacks"], few)}
        for name, program in programs.items()
    }
    settings["released_code"] = {"analyses": {"cases": {"options": {"programs": fewer}}}}
    return {
        "experiments": needed,
        "settings": {name: changes for name, changes in settings.items() if changes},
        "audit": {"mechanisms": attacks},
    }


@pytest.mark.slow
def test_every_file_of_all_experiments_is_in_its_digest(fresh, tmp_path):
    project = fresh("smoke")
    project.write("fewer.yaml", yaml.safe_dump(without_repetitions()))
    overlays = ("--configfile", "config/smoke.yaml", "fewer.yaml")
    project.captured = tmp_path
    project.snakemake(*overlays, capture=tmp_path, timeout=3000)
    assert check(project) == {
        f"jobs/{path.name}" for path in (SCRIPTS / "jobs").glob("[!_]*.py")
    } - {
        "jobs/download.py",
        "jobs/forecasts.py",
    }


def test_modules_are_loaded_by_name_only_in_known_places():
    """`study.dependencies` would miss an import by name anywhere else."""
    results = set()
    for path in SCRIPTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node, "attr", getattr(node, "id", None))
            if name in ("import_module", "__import__", "runpy", "exec_module"):
                results.add(path.relative_to(SCRIPTS).as_posix())
    assert results == {
        "dp/registry.py",
        "dp_audit/programs.py",  # a program that a person names; no job imports it
        "study/configuration/kinds.py",  # a kind's module is digested with its job
        "study/data/readers_table.py",  # pyarrow, if it is installed
        "study/jobs/fork.py",  # imports what jobs import anyway
        "study/jobs/script.py",  # the file of a job, at which its digest starts
    }


def test_a_run_job_imports_numpy_and_nothing_else(finished, edited, tmp_path):
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*{m.partition('.')[0] for m in sys.modules})"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    captured = tmp_path / "captured"
    captured.mkdir()
    for job in jobs(finished.captured):
        if job["script"] in ("jobs/run.py", "jobs/fit.py"):
            words = ("scripts/job.py", job["script"][5:-3], *job["arguments"])
            edited.finish(edited.start(*words, capture=captured, program=()))
    runs = jobs(captured)
    assert {argument(job, "--mechanism") for job in runs if job["script"] == "jobs/run.py"} == {
        "nonprivate",
        "output_perturbation",
        "objective_perturbation",
    }
    for job in runs:
        assert set(job["packages"]) - set(bare) == {"numpy"}, job["script"]
        assert "study/configuration/kinds.py" not in job["project"]
        assert "study/configuration/config.py" not in job["project"]
        mechanisms = [p for p in job["project"] if re.match(r"dp/mechanisms/(?!__init__)", p)]
        assert len(mechanisms) <= 1 or job["script"] != "jobs/run.py"


def test_importing_the_mechanisms_imports_numpy_and_no_mechanism():
    code = (
        "import sys; sys.path.insert(0, 'scripts'); import dp.mechanisms;"
        "print(*[m for m in sys.modules if m.startswith('dp.mechanisms.')]);"
        "print(*{'scipy', 'pandas', 'sklearn', 'matplotlib', 'yaml', 'jsonschema'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["", ""]


def test_attacks_do_not_depend_on_how_experiments_are_configured():
    results = {str(path.relative_to(SCRIPTS)) for path in files_of_job("jobs/attack.py")}
    assert "dp_audit/audit.py" in results
    assert not results & {
        "study/configuration/config.py",
        "study/configuration/resolve.py",
        "study/configuration/kinds.py",
    }
