"""Tests a study's release: the printed example, one draw, and no trace of what was not paid for."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dp.solvers.newton import minimise
from dp_release import rows
from project import ENVIRONMENT, ROOT

pytestmark = pytest.mark.slow
ROWS = 2311
DATASETS = """
clinic:
  source: {csv: clinic.csv}
  label: readmitted
  positive: "yes"
  bounds: {age: [18, 98], visits: [0, 20]}
  categories: {ward: [general, surgery]}
"""
RELEASE = f"""
data: clinic
rows: {ROWS}
unit: one row is one patient
book: own.book
budget: {{epsilon: 2, delta: 2.0e-6}}
epsilon: 1
delta: 1.0e-6
method: noise_aware_logistic
negative: "no"
premise: chosen without these rows
"""
FILES = ["card.md", "coefficients.png", "model.json", "table.csv", "tradeoff.png"]


def study(folder):
    shutil.copytree(ROOT / "workflow/template", folder)
    return folder


def run(folder, *words, ok=True):
    words = [
        str(ROOT / ".venv/bin" / words[0]) if words[0] == "snakemake" else words[0],
        *words[1:],
    ]
    environment = os.environ | ENVIRONMENT | {"DP_HOME": str(ROOT)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        words, cwd=folder, env=environment, stdout=-1, stderr=-2, text=True, check=False
    )
    assert (done.returncode == 0) == ok, done.stdout
    return done.stdout


def release(folder, name, *words, ok=True):
    command = ("snakemake", "-s", ROOT / "Snakefile", "--cores", "1", *words)
    return run(folder, *map(str, command), "--", f"releases/{name}/model.json", ok=ok)


def tool(folder, *words, ok=True):
    return run(folder, "python", str(ROOT / "scripts/tools/release.py"), *words, ok=ok)


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_printed_example_makes_one_draw_and_is_ignored_by_git(tmp_path):
    """Forced reruns, touched files and deleted releases do not change what the guide's four lines made."""
    text = (ROOT / "workflow/guides/release_a_model.md").read_text(encoding="utf-8")
    blocks = re.findall(r"((?:^    .*\n)+)", text, re.MULTILINE)
    (lines,) = (block for block in blocks if "export DP_HOME" in block)
    checkout = tmp_path / "checkout"  # the guide's commands run here; `../my_study` is beside it
    checkout.symlink_to(ROOT)
    printed = run(
        tmp_path,
        "bash",
        "-ec",
        f"cd -L checkout\n{lines.replace('$PWD', str(checkout))}".replace(
            "../my_study", str(tmp_path / "my_study")
        ),
    )
    folder = tmp_path / "my_study"
    assert "affairs: epsilon 1, delta 1e-06, done" in printed
    first = content(folder / "releases/affairs")
    assert list(first) == FILES and b"Premise: public example" in first["card.md"]
    (folder / "config/releases/affairs.yaml").touch()
    (folder / "data/raw/fair.csv").touch()
    release(folder, "affairs", "-F")
    assert content(folder / "releases/affairs") == first
    said = "releases/affairs: this is the model of "
    shutil.rmtree(folder / "releases")
    fair = folder / "data/raw/fair.csv"
    fair.write_bytes(fair.read_bytes()[:-1000])  # other rows
    assert release(folder, "affairs").count(said) == 1
    assert content(folder / "releases/affairs") == first
    book = (folder / "affairs.book/book.jsonl").read_text()
    assert [book.count(f'"{event}"') for event in ("open", "begin", "done")] == [1, 1, 1]
    run(folder, "git", "init", "-q")
    files = run(folder, "git", "ls-files", "--others", "--exclude-standard").split()
    assert "config/releases/affairs.yaml" in files
    assert not [name for name in files if "affairs.book" in name or name.startswith("releases")]


def test_the_printed_request_for_own_rows_is_forecast_previewed_made_and_used(tmp_path):
    """The guides' data set, request and commands work with the rows in another folder."""
    guides = ROOT / "workflow/guides"
    text = (guides / "release_a_model.md").read_text(encoding="utf-8")
    data, request, *_ = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"((?:^    .*\n)+)", text, re.MULTILINE)
    (commands,) = (block for block in blocks if "preview readmission" in block)
    forecasts = re.findall(
        r"^    .* forecast readmission .*\n",
        (guides / "choose_a_method.md").read_text(),
        re.MULTILINE,
    )
    assert len(forecasts) == 3
    folder, secure = study(tmp_path / "my_study"), tmp_path / "secure"
    secure.mkdir()
    with (folder / "config/datasets.yaml").open("a") as file:
        file.write(data.replace("/secure", str(secure)))
    request = request.replace("/secure", str(secure))
    (folder / "config/releases/readmission.yaml").write_text(request)
    rng = np.random.default_rng(1)
    lines = ["patient;age;visits;sex;ward;readmitted"]
    for k, age in enumerate(rng.integers(18, 99, 3000)):
        visits = ("", -9)[k % 100 == 0] if k % 50 == 0 else min(rng.poisson(4), 20)
        label = "yes" if rng.random() < age / 120 else "no"
        sex = "female" if k % 2 else "male"
        lines.append(f"{k};{age},0;{visits};{sex};surgery;{label}")
    (secure / "clinic.csv").write_text("\n".join(lines) + "\n")
    # The key is secret, so each run draws different noise. Both predictions are eight standard
    # deviations of the noise from the threshold.
    new = "ward;age;visits;sex\nsurgery;20,0;1;male\nsurgery;95;1;female\n"
    (folder / "new.csv").write_text(new)
    # Fewer simulated releases than the default show as well that the commands work.
    few = ("forecast readmission ", "forecast readmission --draws 20 ")
    printed = run(folder, "bash", "-ec", ("".join(forecasts) + commands).replace(*few))
    assert printed.count("On simulated rows, at epsilon") == 4
    assert "visits: 60 cells are missing, replaced" in printed
    predicted = (folder / "p.csv").read_text().splitlines()
    assert predicted[0] == "prediction,probability"
    assert [line.split(",")[0] for line in predicted[1:]] == ["no", "yes"]
    assert list(content(folder / "releases/readmission")) == FILES


def table(seed):
    """Lines of a table, with cells that must not appear in any output."""
    rng, lines = np.random.default_rng(seed), []
    for k in range(ROWS):
        ward = ("general", "surgery")[rng.integers(2)]
        answer = "no" if rng.random() < 0.3 else "yes"
        age, visits = rng.integers(18, 98), "" if rng.random() < 0.1 else rng.poisson(3)
        lines.append(f"P{seed}x{k},{age},{ward},{visits},{answer},zzq{seed}".encode())
    return lines


def forbidden(lines, data, seed):
    """Private strings, and private numbers as strings, that were not paid for."""
    schema = rows.Schema(
        [
            *(rows.Unused("id"), rows.Number("age", 18, 98)),
            *(
                rows.Category("ward", ("general", "surgery"), "general"),
                rows.Number("visits", 0, 20),
            ),
            *(rows.Label("readmitted", ("yes",), ("no",)), rows.Unused("note")),
        ],
        "readmitted",
    )
    V, y = schema.rows(lines, ROWS)
    X, y = V[y != 0] / rows.ONE, y[y != 0]
    results = {f"zzq{seed}", f"P{seed}x"}
    results |= {hashlib.new(name, data).hexdigest() for name in ("md5", "sha1", "sha256", "sha512")}
    counts = [len(y), ROWS - len(y), (y > 0).sum(), (y < 0).sum(), (V[:, 1] > 0).sum(), len(data)]
    results |= {str(count) for count in counts}
    results |= {f"{np.mean(y > 0):.4f}", f"{np.linalg.norm(X, axis=1).max():.6f}"}
    weights = minimise(X, y, 1e-4)[0][0]
    results |= {f"{weight:.6f}"[:8] for weight in weights}
    scores = X @ weights
    return results | {f"{np.mean((scores > 0) != (y > 0)):.5f}"}


def texts(folder):
    results = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".png":
            results[str(path.relative_to(folder))] = path.read_text(errors="replace")
    return results


def recorded(folder):
    """Snakemake's records of a run, by file, without times, process ids and random names."""
    results = {}
    for name, text in texts(folder / ".snakemake").items():
        if name.startswith("metadata/"):
            values = json.loads(text)
            assert {"starttime", "endtime"} <= values.keys()
            text = {
                key: v
                for key, v in values.items()
                if key not in ("starttime", "endtime", "job_hash")
            }
        elif name.startswith("log/"):
            name = "log"
            text = re.sub(
                r"\d{4}-\d\d-\d\dT[\d.]+|\[\w{3} \w{3} +\d+ [\d:]+ \d+\]|\d:\d\d:\d\d\.\d+|/tmp/dp-\w+",
                "",
                text,
            )
            text = re.sub(r"(?m)^  .*$", "", text)  # lines about the machine and the command
        else:
            assert not text or "alive" in name or name.startswith("auxiliary"), name
            continue
        results[name] = text
    return results


def test_nothing_that_was_not_paid_for_is_left(tmp_path):
    records = []
    for seed in (1, 2):
        folder = study(tmp_path / f"{seed}/my_study")
        lines = table(seed)
        data = b"id,age,ward,visits,readmitted,note\n" + b"\n".join(lines) + b"\n"
        (folder / "clinic.csv").write_bytes(data)
        (folder / "config/datasets.yaml").write_text(DATASETS)
        (folder / "config/releases/own.yaml").write_text(RELEASE)
        if seed == 1:
            logs = []
            for before in (None, data.replace(b"general", b"surgery", 1)):
                if before is not None:  # a preview of other rows
                    (folder / "clinic.csv").write_bytes(before)
                    tool(folder, "preview", "own")
                    (folder / "clinic.csv").write_bytes(data)
                assert "only after a preview of these very rows" in release(folder, "own", ok=False)
                logs.append((folder / "releases/logs/own.log").read_text())
                assert not (folder / "releases/own").exists()
            assert logs[0] == logs[1]
            shutil.rmtree(folder / ".snakemake")
        looked = tool(folder, "preview", "own")
        assert looked.startswith("PRIVATE") and f"readmitted: {ROWS:,} cells are read." in looked
        printed = release(folder, "own")
        assert list(content(folder / "releases/own")) == FILES
        searched = {"printed": printed} | texts(folder / "releases") | texts(folder / ".snakemake")
        # The test's own folder has a number in its name, which may be one of the counts.
        searched = {name: text.replace(str(tmp_path), "") for name, text in searched.items()}
        for text in forbidden(lines, data, seed):
            pattern = re.compile(
                rf"(?<![\d.]){re.escape(text)}" if text[0].isdigit() else re.escape(text)
            )
            whole = re.compile(rf"(?<![\d.\w]){re.escape(text)}(?![\d.\w])")
            for name, within in searched.items():
                assert not (whole if text.isdigit() else pattern).search(within), (name, text)
        assert not (folder / "results").exists() and not (folder / "data").exists()
        records.append(recorded(folder))
    assert records[0].keys() == records[1].keys() and "log" in records[0]
    assert str(records[0]).replace("/1/", "/2/") == str(records[1])


def test_refusals_are_one_sentence_before_any_job(tmp_path):
    folder = study(tmp_path / "my_study")
    (folder / "clinic.csv").write_bytes(
        b"id,age,ward,visits,readmitted,note\n" + b"\n".join(table(1))
    )
    (folder / "config/datasets.yaml").write_text(DATASETS)
    path = folder / "config/releases/own.yaml"
    path.write_text(RELEASE.replace("epsilon: 1\n", "epsilon: 3\n"))
    output = release(folder, "own", ok=False)
    assert "error: the budget is (epsilon 2, delta 2e-06)" in output.splitlines()[-1]
    assert "`release.py raise` changes the budget" in output.splitlines()[-1]
    assert "Traceback" not in output and not (folder / "results").exists()
