import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROWS = "".join(f"{20 + k % 60};{'yes' if k % 3 else 'no'}\n" for k in range(60))
TABLE = f"age;answer\n{ROWS}"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The workflow with one download, `survey.csv`, and a data set whose source is a URL."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("scripts", "workflow", "profiles"):
        folder.joinpath(name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "config", folder / "config")
    shutil.copy(ROOT / "Snakefile", folder)
    served = folder / "served"
    served.mkdir()
    served.joinpath("survey.csv").write_text(TABLE)
    served.joinpath("own.csv").write_text(TABLE)
    write_files(folder, hashlib.sha256(TABLE.encode()).hexdigest())
    datasets = folder / "config/datasets.yaml"
    common = {"label": "answer", "positive": "yes", "bounds": {"age": [0, 100]}}
    more = {
        "survey": {"source": {"csv": "survey.csv", "delimiter": ";", "rows": 60}, **common},
        "short": {"source": {"csv": "served/survey.csv", "delimiter": ";", "rows": 61}, **common},
        "own": {"source": {"csv": (served / "own.csv").as_uri(), "delimiter": ";"}, **common},
    }
    datasets.write_text(datasets.read_text() + yaml.safe_dump(more))
    return folder


def write_files(folder, sha256):
    files = folder / "config/files.yaml"
    known = yaml.safe_load((ROOT / "config/files.yaml").read_text())
    for file in known.values():
        file["urls"] = ["http://127.0.0.1:9/nothing"]
    known["survey.csv"] = {"urls": ["http://127.0.0.1:9/survey.csv"], "sha256": sha256}
    files.write_text(yaml.safe_dump(known))


def snakemake(folder, *words, mirror=None, config=()):
    environment = {key: value for key, value in os.environ.items() if key != "DP_DATA_MIRROR"}
    environment |= {"DP_DATA_MIRROR": str(mirror)} if mirror else {}
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    command += ["--config", "experiments=[wdbc]", *config, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


def test_from_the_mirror_to_prepared_rows(project):
    done = snakemake(
        project, "--", "results/data/survey.npz", "results/data/own.npz", mirror=project / "served"
    )
    assert done.returncode == 0, done.stderr
    assert project.joinpath("data/raw/survey.csv").read_text() == TABLE
    assert project.joinpath("data/raw/own-own.csv").read_text() == TABLE
    # Content does not depend on mirrors, so changing them reruns no job.
    again = snakemake(
        *(project, "-n", "--", "results/data/survey.npz"), config=["data={mirrors: [/nowhere]}"]
    )
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.slow
def test_without_a_file_its_experiments_say_so_and_the_others_run(project):
    counts, other = "results/einarsson_data/analyses/class_counts.csv", "results/data/wdbc_clip.npz"
    done = snakemake(project, "--", counts, other)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("einarsson_data did not")]
    assert len(said) == 1 and "t10k-images-idx3-ubyte.gz" in said[0] and "DP_DATA_MIRROR" in said[0]
    assert (project / other).exists() and not (project / counts).exists()


@pytest.mark.slow
def test_any_other_failed_job_stops_a_run_with_downloads(project):
    counts, other = "results/einarsson_data/analyses/class_counts.csv", "results/data/wdbc_ball.npz"
    first, at_once = "results/data/short.npz", ("--prioritize", "results/data/short.npz")
    done = snakemake(project, *at_once, "--", counts, first, other)
    assert done.returncode == 1 and "has 60 rows, not the 61" in done.stderr
    assert not (project / first).exists() and not (project / other).exists()
    done = snakemake(project, *at_once, "--keep-going", "--", counts, first, other)
    assert done.returncode == 1 and (project / other).exists()


@pytest.mark.slow
def test_a_wrong_checksum_leaves_what_was_good(project):
    raw = project / "data/raw/survey.csv"
    done = snakemake(project, "--", "data/raw/survey.csv", mirror=project / "served")
    assert done.returncode == 0 and raw.read_text() == TABLE
    wrong = "0" * 64
    write_files(project, wrong)
    failed = snakemake(project, "--", "data/raw/survey.csv", mirror=project / "served")
    assert failed.returncode == 1
    digest = hashlib.sha256(TABLE.encode()).hexdigest()
    assert f"expected SHA-256 {wrong}, found {digest}" in failed.stdout + failed.stderr
    assert raw.read_text() == TABLE
    assert not list(raw.parent.glob(".*")) and not list(raw.parent.glob("*.part"))
