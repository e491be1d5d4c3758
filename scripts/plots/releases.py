"""Draws the coefficients of a release with their intervals."""

import textwrap

from plots import style

WIDTH = 60  # characters per line of a title
ALIKE = 20  # maximum factor between the extents of rows with one axis
MOST = 20  # maximum number of axes, because many are slow to draw
ROW, AXIS = 0.3, 0.35  # inches of a row, and of an axis with its numbers


def coefficients(document):
    """One line per coefficient except the intercept: estimate and 95 % interval, or its sentence.

    All numbers are those of the table, per unit of the column. Rows that follow each other share an axis if
    their extents are alike; otherwise the large ones would hide the small ones. document: the content of
    model.json, whose table says why an interval is missing.
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
    for axes, rows in zip(grid[:, 0], parts, strict=True):
        _draw(axes, rows)
    unit = "log odds" if document["classes"] else f"units of {document['schema']['target']}"
    interval = "95 % intervals, " if document["table"] else ""
    epsilon = document["guarantee"]["epsilon"]
    axes.set_xlabel(
        f"coefficient as in the table: {unit} per unit of the column\n({interval}epsilon = {epsilon:g})"
    )
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


def _draw(axes, rows):
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
    axes.set_yticks(range(len(rows)), [row["column"] for row in reversed(rows)])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(axis="y", visible=False)
