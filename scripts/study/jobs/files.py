"""Write files atomically, and numbers in them in canonical form."""

import csv
import json
import os
from contextlib import contextmanager
from pathlib import Path

from study.canonical import number


@contextmanager
def atomic(path, mode="w"):
    """Open a temporary file that is renamed to `path` if the block ends without an error."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    options = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with temporary.open(mode, **options) as handle:
            yield handle
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_csv(path, columns, rows):
    with atomic(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([number(value) for value in row] for row in rows)


def read_csv(path):
    with Path(path).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def write_json(path, value):
    with atomic(path) as handle:
        json.dump(value, handle, indent=1, ensure_ascii=False)
        handle.write("\n")


def read_json(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))
