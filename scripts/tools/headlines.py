"""Puts the headline pictures and numbers of a finished default run into the documents.

    python scripts/tools/headlines.py

It copies them from results/ to workflow/report/, and writes their sentences between the marks
`<!-- headline: ... -->` and `<!-- end -->` of README.md and the guides.
"""

import argparse
import shutil
import sys
from pathlib import Path

import home

from reporting import headlines
from study import paths
from study.jobs.files import read_json

SHOWN = paths.HOME / "workflow/report"


def main():
    argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[home.ARGUMENTS],
    ).parse_args()
    copies = {paths.HEADLINE(picture=name): f"{name}.png" for name in headlines.PICTURES}
    copies |= {paths.HEADLINES(): "headlines.json", paths.ACROSS("png"): "answer.png"}
    if lost := [path for path in copies if not Path(path).exists()]:
        sys.exit(f"error: there is no {lost[0]}: a run without targets makes it")
    for path, name in copies.items():
        shutil.copyfile(path, SHOWN / name)
    said = headlines.sentences(read_json(SHOWN / "headlines.json"))
    for path in headlines.documents():
        text = path.read_text(encoding="utf-8")
        path.write_text(headlines.in_document(text, said), encoding="utf-8")


if __name__ == "__main__":
    main()
