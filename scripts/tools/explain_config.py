"""Writes config/README.md, which explains every key of the configuration, to standard output.

Keys, values and meanings come from the schemas. Mechanisms, steps and kinds come from the code; their
docstrings' first paragraphs explain them.
"""

import argparse
import inspect
import re
from collections import defaultdict

import home  # noqa: F401, first: it makes scripts/ importable

from dp.mechanisms import MECHANISMS
from study import paths
from study.configuration import kinds, options, sources
from study.configuration.validation import SCHEMAS, in_yaml, read_yaml
from study.data.preparation import STEPS

INTRODUCTION = """\
# Configuration

`python scripts/tools/explain_config.py > config/README.md` writes this page from the schemas in
`workflow/schemas`. Edit those.

| file | what it holds |
|---|---|
| `config/config.yaml` | the seed, and what a plain run makes; always loaded |
| `config/datasets.yaml` | data sets by name |
| `config/sources/<key>/source.yaml` | what one source says: printed numbers, claims, defects, readings |
| `config/sources/<key>/printed.yaml` | its numbers, read once more |
| `config/sources/<key>/<name>.yaml` | an experiment that regenerates them |
| `config/experiments/<name>.yaml` | an experiment of our own; a name with `_` first is a template's |
| `config/files.yaml` | downloads by name: addresses and checksums |
| `config/audit.yaml` | what is audited, and how |
| `config/releases/<name>.yaml` | of a study: one model that may be published |
| `config/smoke.yaml` | an overlay: every experiment at toy size |
| `config/real.yaml` | an overlay: further real data, which are downloaded |
| `config/full.yaml` | an overlay: the published protocols at full size |

**Templates** to copy: [an experiment](experiments/_template.yaml), [a source](sources/_template),
and at the end of [`datasets.yaml`](datasets.yaml) a data set. For every kind of table, figure, analysis and
check, the last column below names an entry that uses it. [CONTRIBUTING](../.github/CONTRIBUTING.md) shows
how to add a kind.

A study in its own folder may have any of these files in its own `config/`, and needs none. Entries there
add to the entries here, or take the places of those with the same names.

**Overlays** are given on the command line and change `config/config.yaml`:

    snakemake --cores 2 --configfile config/smoke.yaml my_changes.yaml -- cm08

Mappings are merged, and lists and values are replaced. A later overlay wins, and `null` removes an entry of
an experiment. An overlay changes experiments under `settings`, and their own files stay as they are. The
three overlays above name a size, such as `sizes: {smoke: true}`. Each experiment's file says what its sizes
are.

```yaml
experiments: [cm08]
settings:
  cm08:
    restarts: 20
    sweeps: {epsilon: {epsilons: [0.05, 0.1]}}
    figures: {figure_2a: null}
```

With the same overlays, `configuration.json` has what an experiment then runs with:

    snakemake --cores 1 --configfile my_changes.yaml -- results/cm08/configuration.json

Everything that needs no rows is checked before a job starts. Some errors end the run: an unknown key or
name, a value of the wrong type or out of range, and a data file of your own that is missing or lacks a
column. One sentence then names file, key and the nearest valid name. The job `prepare` checks what the
rows hold, such as labels. YAML reads `1e-3` as text, so write `1.0e-3` or `0.001`. It reads `yes`, `no`,
`on` and `off` as true and false, `010` as 8, and `14:00` as 840. Among categories, labels, names and
replacements of missing cells, such text must be in quotes.

In the tables below, `<...>` stands for a name of your choice, and a *required* key must be given.
"""

CHECKS = """\
Entries of `claims` and `defects` name them: `{kind: lower_than, options: {lower: a, higher: b}}`. An
option without a value here is required. `sweep`, `datasets`, `methods`, `train_size` and `epsilon` choose
the cells. Each is one value or a list, and without it all cells are chosen. The last two may be
`smallest` or `largest`. A check that needs an analysis names it, or a table, beside its `kind`.
"""

FIGURES = """\
The docstring of the function that draws a kind, `@figure(...)` and `def <kind>` in `scripts/plots` or
`scripts/sources`, explains its options. In figures of curves, `beside` puts the legend
beside the axes, `metric` shows another metric than the error, and `from_zero` starts the axis of errors at
0. `own_axes` gives every panel its own y axis, which starts at `least` if values are below it.
"""

RELEASES = """\
One model of a study's own rows that may be published: `snakemake --cores 1 -- releases/<name>/model.json`.
`release.py preview <name>` must come first.
[An example, and what it protects against](../workflow/guides/release_a_model.md).
Columns are those of the data set: numbers with `bounds`, and `categories`. Other columns are ignored.
A release adds a constant column by itself. If the data set states `steps` for benchmarks, they may only be
`constant_feature` and then `clip`.
"""

ABOUT = {"checks": CHECKS, "figures": FIGURES}

SOURCE = """\
What one source says, as printed, and what decides it. An experiment names the folder as its `source`. The
experiment's section `published` says which cells regenerate which numbers. A number is named by its path,
such as `tables/table_2/all_rows/0`. A study may have a file `config/published/<key>.yaml` instead, and the
checks in the experiment's sections `claims` and `defects`.
"""

TYPES = {
    "array": "list",
    "object": "mapping",
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
}
# `Mechanism.delta` -> its text in the table.
DELTAS = {"none": "none", "needed": "needed", "optional": "0 or more"}
NEEDS = ("sweep", "analysis")  # keys that an entry must have (`datasets` has a default)
# Place in `study.paths` -> what its files contain, in the order of a run.
PLACES = {
    "DATA": "rows that mechanisms see; beside them, as `.json`, what was done to them",
    "TUNED": "error of every lambda; as `.json`, the chosen one",
    "SEARCH": "settings that a search chose; as `.csv`, the error of every candidate",
    "FIT": "fits without privacy that several methods share",
    "RUN": "one cell: a row per draw",
    "GUARANTEES": "every cell: where its settings come from, and what is proven",
    "CELLS": "every cell: means, intervals, guarantees",
    "ANALYSIS": "an analysis, `csv` or `npz`",
    "TABLE": "a table",
    "FIGURE": "a figure, as `.pdf` too",
    "COMPARED": "printed numbers beside ours, under every reading: what the files below judge",
    "READINGS": "printed values and claims under every reading of the source",
    "VERDICTS": "`published`: printed values beside ours; `claims`, `defects`: what decided each",
    "TIMING": "seconds and memory of every job",
    "PROVENANCE": "commit, versions, machine, seed",
    "CONFIGURATION": "the experiment's configuration, overlays merged",
    "MADE": "the configuration to which the folder of results belongs",
    "ATTACK": "one attack on one mechanism",
    "ATTACKS": "all attacks on one mechanism",
    "LEDGER": "all attacks; its figure as `.png` and `.pdf`",
    "PROFILES": "delta against epsilon: proven, claimed, and found by attacks",
    "BY_SOURCE": "all that a source says: verdicts, and the numbers that decide them",
    "HELD": "a study's own mechanisms, if no attack and no replay refutes a claim (`strict: true`)",
    "EXACT": "privacy losses from densities",
    "REPLAY": "how far one record moves what gets noise, of every private mechanism",
    "SPENDING": "where each method's settings come from, and what that costs",
    "AUDITED_CELLS": "every cell's epsilon: claimed, proven, audited",
    "HEADLINES": "the numbers in the sentences of the first screens",
    "HEADLINE": "the pictures of the first screens: `keeps`, `holds`, `leaks`",
    "RECOMMENDATIONS": "which method to use for each question",
    "ACROSS": "the methods across questions; its figure as `.png`",
    "COSTS": "what the jobs cost",
    "FORECASTS": "what to expect of each release that a study asks for",
    "REPORT": "all of it on one page",
    "PARTIAL_REPORT": "the same for an unfinished run, if `report.html` shows more",
}
LIMITS = {
    "minimum": "≥",
    "exclusiveMinimum": ">",
    "maximum": "≤",
    "exclusiveMaximum": "<",
}


class Schema:
    def __init__(self, name):
        self.root = read_yaml(SCHEMAS / f"{name}.schema.yaml")
        # definition -> the keys that refer to it; the page explains each definition once
        self.shared = defaultdict(list)

    def table(self):
        yield from _table(self.rows(self.root, ""))
        for name, keys in self.shared.items():
            *most, last = (f"`{key}`" for key in keys)
            yield f"\nEvery entry of {', '.join(most)} and {last} has these keys:\n"
            yield from _table(self.rows(self.root["$defs"][name], ""))

    def rows(self, schema, path):
        schema = self.resolve(schema)
        for key, value in schema.get("properties", {}).items():
            yield from self.row(
                f"{path}.{key}".lstrip("."), value, key in schema.get("required", ())
            )
        items = self.resolve(schema.get("items", {}))
        if "properties" in items:
            yield from self.rows(items, f"{path}[]")
        other = schema.get("additionalProperties")
        if isinstance(other, dict):
            definition = other.get("$ref", "").rsplit("/", 1)[-1]
            named = f"{path}.<name>".lstrip(".")
            if definition:
                if "properties" in self.resolve(other):  # the facts of a source have no fixed keys
                    self.shared[definition].append(path)
            elif "description" in other:
                yield from self.row(named, other, False)
            else:
                yield from self.rows(other, named)

    def row(self, path, schema, required):
        full = self.resolve(schema)
        if "description" not in full:
            raise ValueError(f"{self.root['title']}: {path} has no description")
        notes = ["*required*"] if required else []
        if "default" in full and full["default"] not in ({}, []):
            notes.append(f"default `{in_yaml(full['default'])}`")
        value = ", ".join([self.value(full), *notes])
        yield f"`{path}`", value, " ".join(full["description"].split())
        yield from self.rows(schema, path)

    def value(self, schema):
        if "enum" in schema:
            return " or ".join(f"`{value}`" for value in schema["enum"])
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        words = schema.get("pattern", "").strip("^()$").split("|")
        words = [f"`{word}`" for word in words if word.isalpha()]
        names = [TYPES[kind] for kind in kinds if not (kind == "string" and words)]
        if {"object", "array"} < set(kinds):
            return "anything"
        text = " or ".join([*words, *names])
        if "items" in schema and self.resolve(schema["items"]).get("items") != schema["items"]:
            inner = self.resolve(schema["items"])
            items = re.sub(r"\b(number|mapping|list)\b", r"\1s", self.value(inner))
            text = text.replace("list", f"list of {items}")
        limits = [f"{sign} {schema[key]}" for key, sign in LIMITS.items() if key in schema]
        return " ".join([text, *limits])

    def resolve(self, schema):
        if "$ref" not in schema:
            return schema
        return {**self.root["$defs"][schema["$ref"].rsplit("/", 1)[1]], **schema}


def _table(rows, head=("key", "value", "meaning")):
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _options(defaults):
    """Options with their defaults, except defaults that have no YAML form, such as REQUIRED."""
    shown = []
    for name, default in defaults.items():
        plain = isinstance(default, (str, int, float, bool, list, tuple, dict, type(None)))
        shown.append(f"`{name}: {in_yaml(default)}`" if plain else f"`{name}`")
    return ", ".join(shown) or "none"


def _first_line(docstring):
    return (docstring or "").strip().partition("\n\n")[0].replace("\n", " ")


def _kind_options(kind):
    fields = options.fields(kind.options).items()
    return _options({k: f.default for k, f in fields if k not in ("analysis", "table")})


def _examples():
    """An example for each (section, kind), from an experiment of the default run if possible."""
    files = sources.experiments()
    listed = read_yaml(paths.HOME / "config/config.yaml")["experiments"]
    examples = {}
    for name in dict.fromkeys([*listed, *files]):
        values, *_ = files[name]
        for section in kinds.SECTIONS:
            for label, entry in (values.get(section) or {}).items():
                examples.setdefault((section, entry["kind"]), f"`{name}`: `{label}`")
        for section in ("claims", "defects"):
            for label, entry in (values.get(section) or {}).items():
                for check in entry.get("checks", ()):
                    examples.setdefault(("checks", check["kind"]), f"`{name}`: `{label}`")
    return examples


def _places():
    places = {name: p for name, p in vars(paths).items() if isinstance(p, paths.Place)}
    if set(places) != set(PLACES):
        raise ValueError(f"PLACES must explain {sorted(set(places) ^ set(PLACES))}")
    for name, meaning in PLACES.items():
        yield f"`{places[name]()}`".replace("{", "<").replace("}", ">"), meaning


def lines():
    yield INTRODUCTION
    yield "## `config/config.yaml` and overlays\n"
    yield from Schema("config").table()
    yield "\n## `config/datasets.yaml`\n"
    yield from Schema("datasets").table()
    yield "\n### Preparation steps\n"
    yield from _table(
        (
            (
                f"`{name}`",
                _options(
                    {
                        p.name if p.kind is not p.VAR_KEYWORD else "<column>": p.default
                        for p in [*inspect.signature(step.apply).parameters.values()][1:]
                    }
                ),
                "yes: no guarantee after it" if step.private_rows else "no",
                step.what,
            )
            for name, step in STEPS.items()
        ),
        ("step", "options", "looks at private rows", "what it does"),
    )
    yield "\n## `config/files.yaml`\n"
    yield from Schema("files").table()
    yield "\n## `config/audit.yaml`\n"
    yield from Schema("audit").table()
    yield "\n## `config/releases/<name>.yaml`\n"
    yield RELEASES
    yield from Schema("release").table()
    yield "\n## Experiments: `config/sources/<key>/<name>.yaml`, `config/experiments/<name>.yaml`\n"
    yield from Schema("experiment").table()
    examples = _examples()
    for section, section_kinds in (kinds.SECTIONS | {"checks": kinds.CHECKS}).items():
        yield f"\n### Kinds of {section}\n"
        if section in ABOUT:
            yield ABOUT[section]
        yield from _table(
            (
                (
                    f"`{name}`",
                    f"`{kind.inputs.needs}`" if kind.inputs.needs in NEEDS else "",
                    _kind_options(kind),
                    _first_line(inspect.getdoc(kind.function)),
                    examples.get((section, name), ""),
                )
                for name, kind in section_kinds.items()
            ),
            (
                *("kind", "needs", "options"),
                "what it decides" if section == "checks" else "what it shows",
                "example",
            ),
        )
    yield "\n### Mechanisms\n"
    yield (
        "Without a delta, a mechanism claims pure epsilon-DP; one that needs a delta is refused at 0. What "
        "it really guarantees is in the [ledger](../workflow/README.md#the-privacy-ledger).\n"
    )
    yield from _table(
        (
            (
                f"`{name}`",
                DELTAS[mechanism.delta] if mechanism.private else "not private",
                _options(mechanism.defaults()),
                _first_line(inspect.getdoc(type(mechanism))),
            )
            for name, mechanism in sorted(MECHANISMS.items())
        ),
        ("mechanism", "delta", "options", "what it is"),
    )
    yield "\n## `config/sources/<key>/source.yaml`\n"
    yield SOURCE
    yield from Schema("source").table()
    yield "\n## Where results are\n"
    yield (
        "Below the folder that the key `results` of `config/config.yaml` names. What a reading of an "
        "experiment makes is in `<experiment>/readings/<name>_<value>/`.\n"
    )
    yield from _table(_places(), ("file", "what it holds"))


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    for line in lines():
        print(line)


if __name__ == "__main__":
    main()
