"""What documents print runs, and their links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from project import ROOT

DOCUMENTS = [
    path
    for pattern in ("*.md", ".github/*.md", "*/README.md", "*/*/README.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.parts[len(ROOT.parts)].startswith(".venv")
]


def test_dp_in_ten_lines():
    text = (ROOT / "scripts/README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the Jacobian is free" in found.stdout


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if not (Path(path).parent / link).exists()]
    assert not missing
