"""Draws the coefficients of a release with their intervals."""

import textwrap

from plots import style

WIDTH = 60  # characters per line of a title
SHARE = 10  # coefficients are per 1/SHARE of the distance between a column's bounds


def coefficients(document):
    """One line per coefficient except the intercept: estimate and 95 % interval, or its sentence.

    A numeric column's coefficient is per tenth of the distance between its public bounds, so columns are
    comparable. document: the content of model.json, whose table says why an interval is missing.
    """
    steps = {
        c["name"]: (float(c["high"]) - float(c["low"])) / SHARE
        for c in document["schema"]["columns"]
        if c["kind"] == "number"
    }
    table = document["table"]
    if table is None:
        pairs = zip(document["columns"], document["coefficients"], strict=True)
        table = [{"column": c, "estimate": e, "low": None, "says": ""} for c, e in pairs]
    rows = [row for row in table if row["column"] != "constant"]
    fig, axes = style.figure(6.4, 1.1 + 0.3 * len(rows))
    for y, row in enumerate(reversed(rows)):
        step = steps.get(row["column"], 1.0)
        if row["low"] is not None:
            axes.plot(
                [step * row["low"], step * row["high"]], [y, y], color="#0072B2", linewidth=1.5
            )
        if row["estimate"] is not None:
            axes.plot(step * row["estimate"], y, "o", color="#0072B2", markersize=5)
        if row["says"]:
            axes.text(0, y, row["says"], va="center", ha="center", fontsize=8, color="#555555")
    axes.axvline(0, color="#555555", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(rows)), [_label(row["column"], steps) for row in reversed(rows)])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    unit = "log odds" if document["classes"] else f"units of {document['schema']['target']}"
    interval = "95 % intervals, " if document["table"] else ""
    epsilon = document["guarantee"]["epsilon"]
    axes.set_xlabel(f"coefficient, {unit} ({interval}epsilon = {epsilon:g})")
    title = document["title"] or document["name"]
    axes.set_title("\n".join(textwrap.wrap(title, WIDTH)), fontsize=10)
    axes.grid(axis="y", visible=False)
    return fig


def _label(column, steps):
    return f"{column} (per {steps[column]:.3g})" if column in steps else column
