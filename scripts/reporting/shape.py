"""Writes a source's printed tables in their own shape, our number and verdict beside each printed one."""

from reporting import sources
from study import facts

SAME = ("experiment", "dataset", "method")
LEGEND = "printed / ours (under the reading that agrees, if one does), and the verdict"


def tables(key, rows):
    """[(where it is printed, columns, [(line, cells)])] of a source's printed tables.

    rows: of the section `published` in results/verdicts/<source>.csv, perhaps with recorded ones.
    Percentages are fractions there. Of several methods or data sets that are compared with a number, the
    first that has a result is shown.
    """
    source, first, shaped = facts.read(key), {}, {}
    for row in rows:
        if row["where"] not in first or (row["ours"] and not first[row["where"]]["ours"]):
            first[row["where"]] = row
    printed = {where: [] for where in first}
    for row in rows:
        if all(row[key] == first[row["where"]][key] for key in SAME):
            printed[row["where"]].append(row | {"published": row["stated"]})
    for where, own in printed.items():
        *table, line, column = _parts(where)
        name = "/".join(table)
        titles = sources.columns_of(source, name)
        if column.isdigit() and int(column) < len(titles):
            column = titles[int(column)]
        shaped.setdefault(name, {}).setdefault(line, {})[column] = _cell(own)
    return [(name, *_rectangle(lines)) for name, lines in shaped.items()]


def _parts(where):
    """Table, line and column of a number; a table of one line has the line ""."""
    parts = where.split("/")
    return [*parts[:2], "/".join(parts[2:-1]), parts[-1]]


def _rectangle(lines):
    columns = list(dict.fromkeys(column for cells in lines.values() for column in cells))
    return columns, [(line, [cells.get(c, "") for c in columns]) for line, cells in lines.items()]


def _cell(rows):
    cell = sources.cell(rows, {})
    mark = sources.OUTCOMES[cell["outcome"]][0]
    return f"{cell['printed']} / {cell['ours'] or 'none'} {mark}"


def document(key, rows):
    """`lines` below the source's title."""
    return "\n".join([f"# {facts.read(key).cited or key}", "", *lines(key, rows), ""])


def lines(key, rows):
    """The tables in lines of Markdown. rows: of results/verdicts/<source>.csv."""
    own = [row for row in rows if row["section"] == "published"]
    if not own:
        return ["None of its numbers is compared."]
    shaped = tables(key, own)
    cells = "\n".join(cell for _, _, rest in shaped for _, line in rest for cell in line) + "\n"
    marks = [f"{m} {name}" for name, (m, *_) in sources.OUTCOMES.items() if f" {m}\n" in cells]
    text = [f"{LEGEND}: {', '.join(marks)}."]
    for name, columns, rest in shaped:
        text += ["", f"## {name.removeprefix('tables/').replace('_', ' ')}", ""]
        text += [_line(["", *columns]), _line(["---"] * (len(columns) + 1))]
        text += [_line([line.removeprefix("rows/"), *cells]) for line, cells in rest]
    return text


def _line(cells):
    return f"| {' | '.join(cell.replace('_', ' ') for cell in cells)} |"
