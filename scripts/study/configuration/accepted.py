"""Remembers which settings mechanisms have accepted, so that each run does not ask them again.

Jobs do ask again, so nothing is promised by what is remembered.
"""

import hashlib
import sys
from pathlib import Path

from study.dependencies import digest
from study.kept import Kept

KEPT = Kept(Path(__file__).parent / "__pycache__/accepted.json", most=50_000)


def once(ask, asked, script, *modules):
    """Call `ask`, unless it has returned before where `asked`, all code and Python were the same.

    script, modules: the code that `ask` executes, as for `study.dependencies.digest`.
    """
    said = repr((sys.version, digest(script, *modules), asked))
    key = hashlib.sha256(said.encode()).hexdigest()[:24]
    if key not in KEPT.values:
        ask()
        KEPT.values[key] = 1
