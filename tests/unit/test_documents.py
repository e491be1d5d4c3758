"""Programs and commands in documents run, and link targets exist."""

import csv
import re
import shlex
import subprocess
import sys

import pytest
import yaml

from checks import statements
from project import ROOT
from reporting import recommendations
from study.configuration.sources import experiment_files

DOCUMENTS = [
    path
    for pattern in ("*.md", ".github/*.md", "*/README.md", "*/*/README.md", "workflow/guides/*.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.parts[len(ROOT.parts)].startswith(".venv")
]


@pytest.mark.parametrize(
    ("document", "prints"),
    [
        ("scripts/dp/README.md", "the Jacobian is free"),
        ("scripts/README.md", "all rounding is paid for"),
        ("scripts/dp_release/README.md", "\n(2, 2) 1.0\nTrue\n"),
        ("workflow/guides/add_a_mechanism.md", "\nexceeds this pair needs epsilon 1.4\n"),
    ],
)
def test_a_printed_program_prints_what_is_told(document, prints):
    text = (ROOT / document).read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    program = "\n".join(each for each in programs if "print(" in each)
    process = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert prints in f"\n{process.stdout}"
    assert "guides" not in document or f"# {prints.strip()}\n" in program


GUIDES = sorted((ROOT / "workflow/guides").glob("*.md"))


def test_the_readme_leads_to_each_guide():
    matches = re.findall(
        r"\]\((workflow/guides/\w+\.md)\) \|$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert {ROOT / each for each in matches} == {*GUIDES}


@pytest.mark.parametrize(
    ("guide", "columns", "row"),
    [
        (
            "choose_a_method",
            recommendations.COLUMNS,
            {"task": "classes", "method": "m", "epsilon": 1, "standing": "not beaten"},
        ),
        ("check_a_paper", statements.COLUMNS, {"id": "m", "verdict": "reproduced"}),
    ],
)
def test_a_guide_reads_columns_that_are_written(guide, columns, row, tmp_path):
    text = (ROOT / f"workflow/guides/{guide}.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (python -c .*)$", text, flags=re.MULTILINE)
    path = tmp_path / re.search(r"'(results/.*?\.csv)'", command)[1]
    path.parent.mkdir(parents=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerow(row)
    words = [sys.executable, *shlex.split(command)[1:]]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"\bm\b", done.stdout)


def headings(path):
    """Link anchors of a document's headings."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in titles}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for file, heading in re.findall(
        r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", path.read_text(encoding="utf-8")
    ):
        target = path.parent / file if file else path
        assert target.exists(), file
        assert not heading or heading in headings(target), f"{file}#{heading}"


def drawn_rules():
    text = (ROOT / "workflow/README.md").read_text(encoding="utf-8")
    (picture,) = re.findall(r"^```mermaid\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return picture, set(re.findall(r"^    (\w+) --> (\w+)$", picture, flags=re.MULTILINE))


@pytest.mark.parametrize(
    "profile",
    sorted((ROOT / "workflow/profiles").glob("*/config.yaml")),
    ids=lambda p: p.parent.name,
)
def test_no_group_of_a_profile_waits_for_a_rule_that_waits_for_it(profile):
    """Snakemake submits a group's jobs together, so it refuses a group that waits for itself."""
    _, edges = drawn_rules()
    groups = yaml.safe_load(profile.read_text(encoding="utf-8")).get("groups", {})
    for group in set(groups.values()):
        members = {rule for rule, name in groups.items() if name == group}
        after, new = set(), members
        while new := {b for a, b in edges if a in new} - members - after:
            after |= new
        assert not [(a, b) for a, b in edges if a in after and b in members], group


@pytest.mark.slow
def test_the_picture_of_the_rules_is_what_snakemake_prints(fresh):
    output = fresh("graph").python(
        *("-m", "snakemake", "--rulegraph", "mermaid-js", "--configfile", "config/real.yaml"),
    )
    names = dict(re.findall(r"^\s*(id\d+)\[(\w+)\]$", output, flags=re.MULTILINE))
    matches = re.findall(r"^\s*(id\d+) --> (id\d+)$", output, flags=re.MULTILINE)
    printed = {(names[first], names[second]) for first, second in matches}
    picture, drawn = drawn_rules()
    assert drawn == {edge for edge in printed if edge[1] not in ("all", "report")}
    rules = set(re.findall(r"^    (\w+)(?: -->|$)", picture, re.MULTILINE)) | {e for _, e in drawn}
    assert rules == set(names.values()) - {"all", "report"}


FOLDERS = ("config/", "envs/", "scripts/", "tests/", "workflow/", ".venv")


def commands():
    """Document and command of each indented line that calls a program, without comments."""
    for path in DOCUMENTS:
        for line in path.read_text(encoding="utf-8").splitlines():
            match = re.match(r"    ((?:sh|bash|python|snakemake|\.venv/bin/\S+) .*)", line)
            if match:
                yield str(path.relative_to(ROOT)), match[1].split("  #")[0].strip()


@pytest.mark.parametrize(("document", "command"), list(commands()))
def test_a_printed_command_names_what_exists(document, command):
    words = shlex.split(command)
    for word in words:
        if word.startswith(FOLDERS) and not word.startswith((".venv-", "config/README.md")):
            assert (ROOT / word).exists(), word
    rules = "".join(p.read_text() for p in (ROOT / "workflow/rules").glob("*.smk"))
    known = {*experiment_files()}
    known |= {*re.findall(r"^rule (\w+):", rules, flags=re.MULTILINE), "my_study"}
    targets = (
        words[words.index("--") + 1 :] if words[0].endswith("snakemake") and "--" in words else []
    )
    made = ("results/", "releases/", "data/raw/")
    assert all(target in known or target.startswith(made) for target in targets)
