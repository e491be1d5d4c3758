"""Draws the coefficients of a release with their intervals, and what its guarantee leaves an attacker."""

import textwrap

from plots import style

WIDTH = 60  # characters per line of a title
ALIKE = 20  # maximum factor between the extents of rows with one axis
MOST = 20  # maximum number of axes, because many are slow to draw
ROW, AXIS = 0.3, 0.35  # inches of a row, and of an axis with its numbers


def coefficients(document, words=None):
    """One line per coefficient except the intercept: estimate and 95 % interval, or its sentence.

    All numbers are those of the table, per unit of the column. Rows that follow each other share an axis if
    their extents are alike; otherwise the large ones would hide the small ones. document: the content of
    model.json, whose table says why an interval is missing. words: column -> words, otherwise its name.
    """
    table = document["table"]
    if table is None:
        pairs = zip(document["columns"], document["coefficients"], strict=True)
        table = [
            {"column": c, "estimate": e, "low": None, "high": None, "says": ""} for c, e in pairs
        ]
    parts = _alike([row for row in table if row["column"] != "constant"])
    heights = [AXIS + ROW * len(rows) for rows in parts]
    fig, grid = style.figure(
        *(6.4, 0.7 + sum(heights)), nrows=len(parts), squeeze=False, height_ratios=heights
    )
    words = words or {}
    for axes, rows in zip(grid[:, 0], parts, strict=True):
        _draw(axes, rows, words)
    unit = "log odds" if document["classes"] else f"units of {document['schema']['target']}"
    interval = "95 % intervals, " if document["table"] else ""
    epsilon, rows = document["guarantee"]["epsilon"], document["training_rows"]
    against = [
        f"{c['name']}={c['reference']}" for c in document["schema"]["columns"] if "reference" in c
    ]
    levels = f"; levels against {', '.join(against)}" if against else ""
    said = f"{unit} per unit of the column{levels} ({interval}{rows:,} rows, epsilon = {epsilon:g})"
    said = said.replace("95 % ", "95 %\N{NO-BREAK SPACE}")
    axes.set_xlabel("\n".join(textwrap.wrap(said, WIDTH)))
    title = document["title"] or document["name"]
    grid[0, 0].set_title("\n".join(textwrap.wrap(title, WIDTH)), fontsize=10)
    return fig


def _alike(rows):
    """Rows in their order, in lists whose extents differ by at most a factor of ALIKE.

    The last list, if there are MOST, takes all that are left.
    """
    parts, least, most = [[]], 0.0, 0.0
    for row in rows:
        extent = max((abs(row[key]) for key in ("estimate", "low", "high") if row[key]), default=0)
        alike = not extent or not most or most / ALIKE <= extent <= ALIKE * least
        if not alike and len(parts) < MOST:
            parts.append([])
            least = most = 0.0
        if extent:
            least, most = min(least or extent, extent), max(most, extent)
        parts[-1].append(row)
    return parts


def _draw(axes, rows, words):
    axes.axvline(0, color="#555555", linewidth=0.8, linestyle=":")
    for y, row in enumerate(reversed(rows)):
        if row["low"] is not None:
            axes.plot([row["low"], row["high"]], [y, y], color="#0072B2", linewidth=1.5)
        if row["estimate"] is not None:
            axes.plot(row["estimate"], y, "o", color="#0072B2", markersize=5)
        if row["says"]:
            at = axes.get_yaxis_transform()  # in the middle, wherever 0 is
            look = {"va": "center", "ha": "center", "fontsize": 8, "color": "#555555"}
            axes.text(0.5, y, row["says"], transform=at, **look)
    axes.set_yticks(
        range(len(rows)), [words.get(row["column"], row["column"]) for row in reversed(rows)]
    )
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(axis="y", visible=False)


def tradeoff(document, true):
    """The largest share of true accusations against the share of false ones.

    document: of model.json. true: at equidistant shares of false ones from 0 to 1.
    """
    fig, axes = style.figure(3.4, 3.2)
    axes.plot([k / (len(true) - 1) for k in range(len(true))], true, color="#0072B2")
    axes.plot([0, 1], [0, 1], color="#555555", linewidth=0.8, linestyle=":")
    look = {"fontsize": 8, "color": "#555555"}
    axes.text(0.7, 0.66, "a guess", ha="left", va="top", **look)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("share of false accusations")
    axes.set_ylabel("share of true ones, at most")
    guarantee = document["guarantee"]
    axes.set_title(
        f"epsilon = {guarantee['epsilon']:g}, delta = {guarantee['delta']:g}", fontsize=10
    )
    return fig
