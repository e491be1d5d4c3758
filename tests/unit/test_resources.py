"""Every rule states what it asks a scheduler for."""

import re

import pytest

from project import ROOT

RULES = {
    name: body
    for path in sorted((ROOT / "workflow/rules").glob("*.smk"))
    for name, body in re.findall(
        r"^rule (\w+):\n((?:    .*\n|\n)+)", path.read_text(), re.MULTILINE
    )
    if "    output:" in body
}


@pytest.mark.parametrize("name", RULES)
def test_threads_memory_and_minutes_are_stated(name):
    assert re.search(r"^    threads: ", RULES[name], re.MULTILINE)
    assert re.search(r"^        mem_mb=memory\(\d+\),$", RULES[name], re.MULTILINE)
    assert re.search(r"^        runtime=minutes\(\d*\),$", RULES[name], re.MULTILINE)
