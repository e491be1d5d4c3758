"""Draws proven profiles delta(epsilon), with the claimed point and the audited points."""

import numpy as np

from plots import style
from plots.ledger import COLOURS

LEAST = 1e-8  # the smallest delta of the axis
WORST = 15  # panels; the page has tables of all mechanisms
WIDEST = 2.0  # the largest epsilon of the axis, over the audited one
COLUMNS = ("profile_epsilon", "profile_delta", "audited_delta", "audited_epsilon")


def profiles(frame):
    """One panel per mechanism with a proven profile, with the audited points of the tightest attack.

    The WORST mechanisms are drawn, whose attacks come nearest to the proof. Their
    epsilons are shares of the epsilon at which they run, so that panels have common axes.

    frame: the content of ledger.csv. If a panel's proof is right, its audited points lie below its curve,
    except with the audit's error probability. Points at epsilon 0 are not drawn: they bound nothing.
    """
    there = [_nearest(rows) for _, rows in _with_profile(frame).groupby("mechanism", sort=False)]
    shown = sorted(there, key=_share, reverse=True)[:WORST]
    count = max(len(shown), 1)
    columns = min(count, 3)
    lines = -(-count // columns)
    fig, grid = style.figure(
        max(3.0 * columns, 5.0), 2.5 * lines + 0.9, nrows=lines, ncols=columns, squeeze=False,
        sharex=True, sharey=True,
    )  # fmt: skip
    for axes, row in zip(grid.flat, shown, strict=False):
        epsilon, delta, audited_delta, audited = (_numbers(row[name]) for name in COLUMNS)
        unit = row["epsilon"]
        epsilon, audited = epsilon / unit, audited / unit
        axes.plot(epsilon, delta, color=COLOURS["proven"], label="proven upper bound")
        if row["delta"] > 0:
            axes.plot(row["epsilon_claimed"] / unit, row["delta"], "+", color=COLOURS["claimed"],
                      markersize=11, markeredgewidth=1.8, label="claimed by the source")  # fmt: skip
        positive = audited > 0
        axes.plot(audited[positive], audited_delta[positive], "D", color=COLOURS["audited"],
                  label="audited lower bounds")  # fmt: skip
        axes.set_yscale("log")
        axes.set_ylim(LEAST, 1)
        axes.set_xlim(0, WIDEST)
        axes.set_title(
            f"{style.name(row['mechanism'])}\n{row['attack'].replace('_', ' ')}, {row['adjacency']}",
            loc="left",
            fontsize=8,
        )
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel(r"$\delta$")
    for axes in grid.flat[max(len(shown) - columns, 0) : len(shown)]:
        axes.set_xlabel(r"$\varepsilon$ / $\varepsilon$ asked for")
        axes.tick_params(labelbottom=True)
    title = rf"Privacy profiles $\delta(\varepsilon)$, the {len(shown)} tightest of {len(there)}"
    style.heading(fig, title if shown else "No mechanism here has a proven profile")
    if shown:
        handles, labels = max(
            (axes.get_legend_handles_labels() for axes in grid.flat),
            key=lambda legend: len(legend[0]),
        )
        fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return fig


def _with_profile(frame):
    there = [name for name in COLUMNS if name in frame]
    return frame.dropna(subset=there) if len(there) == len(COLUMNS) else frame.iloc[:0]


def _nearest(rows):
    """The attack with the largest ratio of audited to proven epsilon at its deltas."""
    return max((row for _, row in rows.iterrows()), key=_share)


def _share(row):
    epsilon, delta, audited_delta, audited = (_numbers(row[name]) for name in COLUMNS)
    positive = delta > 0
    logs = np.log(delta[positive])
    proven = np.interp(-np.log(audited_delta), -logs, epsilon[positive])
    return np.max(np.where(proven > 0, audited / np.maximum(proven, 1e-12), 0.0))


def _numbers(text):
    return np.array([float(word) for word in str(text).split()])
