"""Puts scripts/ on the path of the tools, which stand one folder below it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
