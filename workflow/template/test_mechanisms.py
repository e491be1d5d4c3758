"""Tests that the mechanisms in mechanisms/ keep the workflow's contract, that no record decides how they
treat the others, and that neither replay nor attack refutes them.

The environment variable DP_HOME must name the workflow's checkout.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
HOME = Path(os.environ["DP_HOME"])


def run(*words):
    environment = os.environ | {"DP_MECHANISMS": "mechanisms"}
    command = [sys.executable, "-m", *map(str, words)]
    done = subprocess.run(command, cwd=HERE, env=environment, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    done.check_returncode()
    return done.stdout


def test_mechanisms(capsys):
    files = sorted((HERE / "mechanisms").glob("*.py"))
    names = [name for f in files for name in re.findall(r'@register\("(\w+)"\)', f.read_text())]
    tests = [HOME / f"tests/unit/test_{of}.py" for of in ("mechanisms", "branches")]
    run("pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", " or ".join(names))
    # The contract's replays find most faults within seconds. The audit attacks the mechanisms.
    output = run("snakemake", "--snakefile", HOME / "Snakefile", "--cores", 2, "--", "audit")
    with capsys.disabled():
        for name in names:
            print(*re.findall(rf"^{name}: .*; replay: .*$", output, flags=re.MULTILINE), sep="\n")
