"""Computes the positions of marks and ticks in the page's dot plots, in percent of the axis."""

import math

MOST = 1000.0  # larger values do not lengthen a logarithmic axis, so it ends at most at 10 MOST
STEPS = (0.5, 1, 2, 5, 10, 20, 25, 50)  # possible distances between ticks of a linear axis


def brief(text):
    """Text of three significant digits or, from 1,000 up, an integer; "" if absent, "none" if infinite."""
    if text in (None, ""):
        return ""
    value = float(text)
    if math.isinf(value):
        return "none"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def scaled(rows, unit="", log=False):
    """Positions {ticks, rows} from values [{marks: {kind: value}, bar: (low, high) or None, ...}].

    On a logarithmic axis, 0 and infinity are drawn at the ends. A linear axis begins at 0.
    """
    values = [v for row in rows for v in (*row["marks"].values(), *(row["bar"] or ()))]
    finite = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    if log:
        low, high = (
            math.log10(min(finite, default=0.1)),
            math.log10(min(MOST, max(finite, default=10.0))),
        )
        low, high = math.floor(low - 0.1), math.ceil(high + 0.1)
        every = -(-(high - low) // 6)
        ticks = [(10.0**k, f"{10.0**k:g}") for k in range(low + 1, high, every)]
    else:
        low, high = 0.0, max([1.0, *finite]) * 1.05
        step = next((s for s in STEPS if high / s <= 4), STEPS[-1])
        ticks = [(k * step, f"{k * step:g}{unit}") for k in range(int(high / step) + 1)]

    def place(value):
        if log:
            value = -math.inf if value <= 0 else math.log10(value)
        return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)

    return {
        "ticks": [(place(value), text) for value, text in ticks],
        "rows": [
            row
            | {
                "marks": [(kind, place(v)) for kind, v in row["marks"].items()],
                "bar": (start := place(row["bar"][0]), round(place(row["bar"][1]) - start, 2))
                if row["bar"]
                else None,
            }
            for row in rows
        ],
    }
