"""Compares this package with every reference value in this file's folder.

    python -m dp.vectors.check            where the package is installed
    PYTHONPATH=scripts:tests python -m vectors.check    in a checkout

It prints one line per file, and which cases it skipped because a library is missing. README.md describes
the format. The exit code is 1 if a value differs or nothing was compared.
"""

import importlib
import sys
from pathlib import Path

EXTRAS = {"dp_accounting": "accounting", "sklearn": "learn", "pytest": "test"}  # module: its extra


def read() -> dict:
    """Content of every file, {module, cases}, by file name."""
    import yaml

    files = sorted(Path(__file__).parent.glob("*.yaml"))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if it exists
    return {path.stem: yaml.load(path.read_text(encoding="utf-8"), loader) for path in files}


def value(module: str, case: dict) -> float:
    if "mechanism" in case:
        mechanism = importlib.import_module("dp.mechanisms").MECHANISMS[case["mechanism"]]
        return float(mechanism.guarantee(**case["inputs"]).epsilon)
    return float(getattr(importlib.import_module(module), case["function"])(**case["inputs"]))


def agrees(actual: float, case: dict) -> bool:
    expected = case["expected"]  # may be infinite
    return actual == expected or abs(actual - expected) <= case["tolerance"] * abs(expected)


def missing(error: BaseException) -> str | None:
    """Module of an extra whose absence caused an error, or None for another cause."""
    while error is not None:
        if isinstance(error, ImportError) and (name := (error.name or "").split(".")[0]) in EXTRAS:
            return name
        error = error.__cause__
    return None


def main() -> int:
    agreed = wrong = 0
    for name, vectors in read().items():
        good, without = 0, {}
        for case in vectors["cases"]:
            try:
                actual = value(vectors["module"], case)
            except Exception as error:
                if (library := missing(error)) is None:
                    raise
                without[library] = without.get(library, 0) + 1
                continue
            good += agrees(actual, case)
            if not agrees(actual, case):
                wrong += 1
                print(f"{name}: {case} gives {actual!r}")
        agreed += good
        print(f"{name}: {good} of {len(vectors['cases'])} agree")
        for library, cases in without.items():
            extra = f"pip install 'dp-linear-models[{EXTRAS[library]}]'"
            print(f"{name}: {cases} skipped, which need {library}: {extra}")
    print(f"{agreed} agree, {wrong} differ")
    return int(wrong > 0 or agreed == 0)


if __name__ == "__main__":
    sys.exit(main())
