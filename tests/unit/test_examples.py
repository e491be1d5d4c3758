import csv
import json
import os
import subprocess
import sys

import pytest

from project import ROOT


def run(name, folder):
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/examples" / name, folder],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "scripts"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    tables = {}
    for path in folder.glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            tables[path.stem] = list(csv.DictReader(file))
    return done.stdout, tables


@pytest.mark.slow
def test_own_mechanism(tmp_path):
    _, tables = run("own_mechanism.py", tmp_path)
    good, halved = tables["ledger"]
    assert good["replay"] == "holds" and halved["replay"] == "exceeds"
    assert float(good["epsilon_replay"]) == pytest.approx(1.0, abs=0.01)
    assert 0.3 < float(good["epsilon_attack"]) <= 1.0
    assert 1.0 < float(halved["epsilon_attack"]) <= float(halved["epsilon_replay"])
    errors = [
        float(row["error"]) for row in tables["comparison"] if row["method"] == good["mechanism"]
    ]
    assert len(tables["comparison"]) == 12 and errors[0] > errors[-1]
    assert (tmp_path / "comparison.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_published_table(tmp_path):
    first, tables = run("published_table.py", tmp_path)
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert model["guarantee"]["epsilon"] == 1.0
    # the survey's best known relation: happier marriages, fewer affairs
    (row,) = [row for row in tables["table"] if row["column"] == "rate_marriage"]
    assert float(row["high"]) < 0
    assert "protects nobody" in (tmp_path / "card.md").read_text(encoding="utf-8")
    again, _ = run("published_table.py", tmp_path)
    assert again == first
    assert len(list((tmp_path / "survey.book").glob("*/model.json"))) == 1
