"""Draws claimed, proven and audited epsilon of the worst mechanisms on a logarithmic axis."""

import numpy as np

from plots import style

DRAWN = 15  # number of mechanisms; the table has all
COLOURS = {"claimed": "#000000", "proven": "#0072B2", "audited": "#D55E00", "pair": "#999999"}


def ledger(frame):
    """A row for each of the DRAWN worst mechanisms, the worst at the top; an infinite epsilon is an arrow.

    A mechanism is shown by the attack and epsilon where the audited epsilon exceeds the claimed one by the
    largest factor. If it never exceeds the claimed one, the proven epsilon takes its place. If neither
    exceeds the claimed epsilon anywhere, the row is that of the epsilon nearest to 1.
    """
    frame = frame.loc[[_shown(rows) for _, rows in frame.groupby("mechanism", sort=False)]]
    for kind in ("audited", "proven"):
        frame[kind] = (frame[f"epsilon_{kind}"] / frame["epsilon_claimed"]).fillna(0)
    frame = frame.sort_values(["audited", "proven"], kind="stable").tail(DRAWN)
    frame = frame.reset_index(drop=True)
    finite = frame[["epsilon_claimed", "epsilon_proven", "epsilon_audited", "epsilon_pair"]]
    finite = finite.to_numpy(float)
    finite = finite[np.isfinite(finite) & (finite > 0)]
    low, high = finite.min() / 3, finite.max() * 3
    fig, axes = style.figure(width=8.0, height=1.6 + 0.26 * len(frame))
    places = np.arange(len(frame))
    claimed, proven, audited, on_pair = (
        frame[f"epsilon_{name}"].to_numpy(float)
        for name in ("claimed", "proven", "audited", "pair")
    )
    none = np.isinf(proven)
    axes.hlines(
        places,
        np.where(claimed > 0, claimed, low),
        np.where(none, high, np.maximum(proven, low)),
        color=COLOURS["proven"],
        linewidth=0.8,
        alpha=0.5,
    )
    axes.plot(
        np.where(none, np.nan, np.maximum(proven, low)), places, "o", markersize=7,
        markerfacecolor="none", color=COLOURS["proven"], label="proven upper bound",
    )  # fmt: skip
    axes.plot(
        np.where(none, high, np.nan), places, ">", markersize=7, color=COLOURS["proven"],
        clip_on=False, label="proven: none",
    )  # fmt: skip
    axes.plot(claimed.clip(low), places, "|", color=COLOURS["claimed"], markersize=11,
              markeredgewidth=1.8, label="claimed by the source")  # fmt: skip
    axes.plot(on_pair, places, "x", color=COLOURS["pair"], markersize=5,
              label="exact on this pair, from its density")  # fmt: skip
    positive = audited > 0
    axes.plot(np.where(positive, audited, np.nan), places, "D", color=COLOURS["audited"],
              markersize=5, label="audited lower bound")  # fmt: skip
    axes.plot(np.where(positive, np.nan, low), places, "<", color=COLOURS["audited"], markersize=5,
              clip_on=False, label="audited: 0")  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(-0.7, len(frame) - 0.3)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_yticks(places, _names(frame), fontsize=8)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(r"$\varepsilon$ (smaller is more private)")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    levels = sorted({f"{100 * level:g} %" for level in frame["confidence"]})
    axes.set_title(
        f"Privacy ledger, the worst {len(frame)}: {' or '.join(levels)} confidence\n"
        "in all of a mechanism's lower bounds",
        loc="left",
    )
    fig.legend(loc="outside upper center", ncols=3, fontsize=8)
    return fig


def _shown(rows):
    """Index of the row of a mechanism that is drawn."""
    for kind in ("audited", "proven"):
        factor = rows[f"epsilon_{kind}"] / rows["epsilon_claimed"]
        if (factor > 1 + 1e-3).any():  # a smaller excess is due to the solver's error
            return factor.idxmax()
    return np.abs(np.log(rows["epsilon"])).idxmin()


def _names(frame):
    return [
        f"{style.name(row.mechanism)}: "
        f"{row.attack.replace('_', ' ')}, "
        + (rf"$\varepsilon$ = {row.epsilon:g}" if np.isfinite(row.epsilon) else "none claimed")
        for row in frame.itertuples()
    ]
