"""Read the facts of published documents, and look them up by path.

The files are config/sources/<key>/source.yaml and a study's config/published/<key>.yaml.
"""

import csv
import math
import re

from study import canonical, paths
from study.configuration.source_keys import Document

# Keys that say how a claim or defect is decided, not what the source states.
DECIDES = ("not_tested", "given", "again", "trivia", "checks")
# Keys of what the report shows first, which decide nothing.
SHOWS = ("link", "program", "headline_original", "headline_claims", "headline_number", "stated")


class Source(Document):
    """A published document."""

    def look_up(self, path):
        """The value at a path such as 'tables/table_2/separable/1'. Raises KeyError if there is none."""
        here = self.mapping()
        for depth, part in enumerate(path.split("/")):
            children = enumerate(here) if isinstance(here, list) else ()
            children = here.items() if isinstance(here, dict) else children
            keys = {_spelling(key): value for key, value in children}
            if part not in keys:
                parent = "/".join(path.split("/")[:depth])
                raise KeyError(f"{parent or self.key} has no {part!r} (it has: {', '.join(keys)})")
            here = keys[part]
        return here

    def facts(self):
        left_out = (*SHOWS, "readings", "together")
        facts = {k: v for k, v in self.plain().items() if k not in left_out}
        for section in ("claims", "defects"):
            facts[section] = [
                {k: v for k, v in entry.items() if k not in ("experiment", "shown_in", *DECIDES)}
                for entry in facts[section]
            ]
        return facts

    def statements(self, section):
        return {entry.id: entry for entry in getattr(self, section)}

    def read_tables(self, folder):
        """Read the tables that are CSV files in the source's folder."""
        for name, table in self.tables.items():
            if isinstance(table, str) and table.endswith(".csv"):
                self.tables[name] = read_table(folder / table)


def in_words(name):
    """The name of a reading or of its value for readers, with 0.05 instead of 0p05."""
    return re.sub(r"(\d)p(\d)", r"\1.\2", name.replace("_", " "))


def _spelling(key):
    is_number = isinstance(key, (int, float)) and not isinstance(key, bool)
    return canonical.epsilon(key) if is_number else str(key)


def read_table(path):
    """The content of a CSV file of numbers: first column's value -> {other column's name: value}.

    Raises ValueError if a name or first value repeats, a row has the wrong length, or a cell is not a
    finite number.
    """
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            header, *rows = list(csv.reader(handle))
    except (OSError, ValueError, csv.Error) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    if len(set(header)) < len(header) or "" in header:
        raise ValueError(f"{path}: the header repeats a name, or leaves one out")
    table = {}
    for number, row in enumerate(rows, 2):
        try:
            values = [canonical.parse(text) for text in row]
        except ValueError as error:
            raise ValueError(f"{path}: row {number}: {error}") from None
        if len(row) != len(header) or not all(map(math.isfinite, values)):
            raise ValueError(f"{path}: row {number}: needs {len(header)} finite numbers")
        if values[0] in table:
            raise ValueError(f"{path}: row {number}: duplicate {header[0]} {row[0]}")
        table[values[0]] = dict(zip(header[1:], values[1:], strict=True))
    return table


def files():
    """The file of every source, by key. A study's file replaces a shipped file with the same key.

    Templates (names with a leading dot or _) are left out.
    """
    by_key = {}
    for path in paths.configuration("published/*.yaml", "sources/*/source.yaml"):
        by_key[paths.source_of(path) or path.stem] = path
    return {key: path for key, path in by_key.items() if key[0] not in "._"}


def read(key):
    """The `Source` with this key. `study.configuration.sources` validates its file."""
    import yaml

    path = files()[key]
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    source = Source.model_validate(yaml.load(path.read_text(encoding="utf-8"), loader))
    source.read_tables(path.parent)
    return source
