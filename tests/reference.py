"""Reference values of tests/vectors, for tests other than `tests/unit/test_vectors.py`."""

from pathlib import Path

import yaml

VECTORS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "vectors").glob("*.yaml"))
}


def values(name, *inputs, function=None):
    """[(inputs.., expected)] of a file's cases; of one function or mechanism only, if it is named."""
    return [
        (*(case["inputs"][key] for key in inputs), case["expected"])
        for case in VECTORS[name]["cases"]
        if function in (None, case.get("function"), case.get("mechanism"))
    ]
