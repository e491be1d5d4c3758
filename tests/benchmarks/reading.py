"""Times the reading of a table of 10 million rows and 10 columns, and `scripts/jobs/prepare.py` on it.

    python tests/benchmarks/reading.py [rows] [plain|quoted|missing|gzip]

The table, in a temporary folder (2 GB), contains nine numbers and a label per row. One process reads it,
and another prepares it as the workflow does. The output is wall-clock and CPU seconds, and peak memory.
The exit status is 1 if reading 10 million rows takes more than 3 GB, or more than 60 s by both measures.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60, 3000  # seconds, MB
COLUMNS = [f"x{k}" for k in range(9)]

READ = """
import resource, sys
sys.path.insert(0, "scripts")
from study.configuration.data_set_keys import DataSet
from study.data import readers
table = readers.read(DataSet.model_validate_json(sys.argv[1]), "large")
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
PREPARE = """
import resource, runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, "scripts")
runpy.run_path(sys.argv[0], run_name="__main__")
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def write(path, rows, kind):
    """Write numbers with nine decimals. If kind is "missing", every hundredth cell of x0 is empty."""
    rng = np.random.default_rng(0)
    with gzip.open(path, "wt", compresslevel=1) if kind == "gzip" else path.open("w") as handle:
        handle.write(",".join([*COLUMNS, "y"]) + "\n")
        for start in range(0, rows, 1000):
            count = min(1000, rows - start)
            cells = [[f"{value:.9f}" for value in row] for row in rng.random((count, 9))]
            for k, row in enumerate(cells):
                if kind == "missing" and k % 100 == 0:
                    row[0] = ""
                label = "yes" if (start + k) % 3 else "no"
                row.append(f'"{label}"' if kind == "quoted" else label)
            handle.write("".join(",".join(row) + "\n" for row in cells))


def measured(code, *arguments):
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    return time.perf_counter() - start, *map(float, done.stdout.split())


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    kind = sys.argv[2] if len(sys.argv) > 2 else "plain"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.csv.gz" if kind == "gzip" else "large.csv")
        write(path, rows, kind)
        entry = {
            "source": {"csv": str(path), "rows": rows},
            "label": "y",
            "positive": "yes",
            "bounds": {name: [0, 1] for name in COLUMNS},
            "missing": {"x0": 0.5},
            "steps": [{"row_norm": {}}],
        }
        print(f"{rows} rows, {kind}, {path.stat().st_size / 1e6:.0f} MB")
        text = "{}: {:.1f} s, processor {:.1f} s, {:.0f} MB"
        wall, cpu, peak = measured(READ, json.dumps(entry))
        print(text.format("read", wall, cpu, peak))
        out = ["--seed", "1", "--out-npz", f"{folder}/t.npz", "--out-json", f"{folder}/t.json"]
        job = [
            "scripts/job.py",
            "prepare",
            "--dataset",
            "large",
            "--entry",
            json.dumps(entry),
            *out,
        ]
        print(text.format("prepare", *measured(PREPARE, *job)))
        if min(wall, cpu) > LIMIT[0] * max(1, rows / 1e7) or peak > LIMIT[1] * max(1, rows / 1e7):
            sys.exit("over the limit")


if __name__ == "__main__":
    main()
