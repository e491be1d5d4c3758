"""Figures of Einarsson (2018)."""

import json
import math
import textwrap
from itertools import cycle
from pathlib import Path

import numpy as np

from dp.mechanisms import MECHANISMS
from dp_privacy.accounting import gaussian_sigma
from plots import style
from plots.relations import BAND, Curves, Mark, Printed, Scales, level, relation
from study import arguments, facts
from study.canonical import epsilon as canonical
from study.configuration import printed_values
from study.configuration.cell import Cell
from study.configuration.experiment import data_path
from study.configuration.inputs import ANALYSIS, CELLS, DATA, DRAWS, NOTHING, SEARCHES
from study.configuration.kinds import figure
from study.configuration.options import Comparison, Options
from study.data.components import distances_to_class_mean
from study.data.prepared import Prepared
from study.jobs.files import read_json

LOOKS = (("#0072B2", "-"), ("#D55E00", "--"), ("#000000", ":"))
PRINTED = (":", "--", "-.")


class Images:
    """The stored training rows X (n, d) of a prepared image data set, with their classes y (n,).

    names: label -> class name. side: the number of pixels on a side of an image.
    """

    def __init__(self, path):
        prepared, meta = Prepared(path), read_json(Path(path).with_suffix(".json"))
        self.X, self.y = prepared.X, prepared.y
        self.names = {int(label): name for label, name in meta["labels"].items()}
        self.title = meta["title"]
        self.side = math.isqrt(self.X.shape[1])
        if self.side**2 != self.X.shape[1]:
            raise ValueError(f"{path}: rows of {self.X.shape[1]} values are not square images")

    def of(self, label):
        """Row numbers of a class."""
        return np.flatnonzero(self.y == label)

    def show(self, axes, row):
        """Draw one image, dark ink on white."""
        image = self.X[row].reshape(self.side, self.side)
        axes.imshow(image, cmap="gray_r", vmin=0, vmax=self.X.max(), interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set(visible=True, color="#BBBBBB", linewidth=0.5)


@figure(DATA)
def digit_images(experiment, spec, paths):
    """The first training image of every class, one row of images per data set."""
    data = [Images(path) for path in paths.values()]
    width = max(len(images.names) for images in data)
    fig, grid = style.figure(
        0.75 * width, 0.95 * len(data) + 0.4, nrows=len(data), ncols=width, squeeze=False
    )
    for images, line in zip(data, grid, strict=True):
        for axes in line:
            axes.axis("off")
        for axes, (label, name) in zip(line, images.names.items(), strict=False):
            axes.axis("on")
            images.show(axes, images.of(label)[0])
            axes.set_xlabel(name)
    fig.suptitle(f"{spec.title}: {_titles(data)}", fontsize=11, wrap=True)
    return fig


class FarthestImages(Options):
    count: int = 5


@figure(DATA, FarthestImages)
def farthest_images(experiment, spec, paths):
    """The images farthest from their class mean, one line per class, the farthest first."""
    (path,) = paths.values()
    images = Images(path)
    count = spec.options["count"]
    distances = distances_to_class_mean(images.X, images.y)
    # Ten lines would not fit on a page, so classes are in two blocks.
    lines = math.ceil(len(images.names) / 2)
    fig, grid = style.figure(
        0.62 * (2 * count + 1), 0.78 * lines + 0.5, nrows=lines, ncols=2 * count + 1, squeeze=False
    )
    for axes in grid.flat:
        axes.axis("off")
    for k, (label, name) in enumerate(images.names.items()):
        block, line = divmod(k, lines)
        rows = images.of(label)
        rows = rows[np.argsort(-distances[rows], kind="stable")[:count]]
        for place, row in enumerate(rows):
            axes = grid[line, block * (count + 1) + place]
            axes.axis("on")
            images.show(axes, row)
            axes.set_xlabel(_number(distances[row]), fontsize=7, labelpad=1)
            if place == 0:
                axes.set_ylabel(name, rotation=0, labelpad=10, va="center", fontsize=11)
    fig.suptitle(f"{spec.title}: {images.title}", fontsize=11, wrap=True)
    return fig


BINS = 64  # maximum number of bins of a density


@figure(DATA)
def pixel_density(experiment, spec, paths):
    """Density of pixel values over all training images, on a logarithmic axis."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    fig, axes = style.figure()
    for path, (colour, line) in zip(paths.values(), LOOKS, strict=False):
        images = Images(path)
        counts = np.bincount(images.X.ravel(), minlength=int(images.X.max()) + 1)
        bins = np.array_split(counts, min(len(counts), BINS))
        widths = np.array([len(part) for part in bins])
        density = np.array([part.sum() for part in bins]) / widths / counts.sum()
        edges = np.concatenate([[0], np.cumsum(widths)]) - 0.5
        zeros = counts[0] / counts.sum()
        axes.stairs(
            density,
            edges,
            color=colour,
            linestyle=line,
            linewidth=1.5,
            label=f"{images.title}: {zeros:.1%} of the pixels are 0",
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("value of a pixel (0 is background)")
    axes.set_ylabel("density")
    style.title(axes, spec.title)
    axes.legend()
    return fig


@figure(DATA)
def distance_violins(experiment, spec, paths):
    """Distribution of the images' Euclidean distance to their class mean, per class."""
    import seaborn  # slow to import

    (path,) = paths.values()
    images = Images(path)
    distances = distances_to_class_mean(images.X, images.y)
    fig, axes = style.figure(7.2, 4.2)
    seaborn.violinplot(
        {name: distances[images.of(label)] for label, name in images.names.items()},
        ax=axes,
        **{"color": "#56B4E9", "linecolor": "#0072B2", "linewidth": 0.8, "saturation": 1},
        inner_kws={"box_width": 5, "whis_width": 0},
        cut=0,
        density_norm="width",
    )
    axes.set_xlabel("class (dark: the middle half, white: the median)")
    axes.set_ylabel("Euclidean distance to the class mean,\nin units of a pixel's value")
    axes.set_ylim(bottom=0)
    axes.grid(visible=False, axis="x")
    style.title(axes, f"{spec.title}: {images.title}")
    return fig


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _titles(data):
    return ", ".join(images.title for images in data)


LINES = (
    *(("#000000", "-"), ("#0072B2", "--"), ("#D55E00", ":")),
    *(("#009E73", "-."), ("#CC79A7", "-"), ("#56B4E9", "--")),
)


@figure(ANALYSIS)
def component_scatter(experiment, spec, path):
    """First two principal components of every training row, one panel per data set."""
    with np.load(path) as arrays:
        names = spec.datasets or [str(name) for name in arrays["datasets"]]
        panels = {
            name: {
                key: arrays[f"{name}/{key}"]
                for key in ("title", "scores", "y", "labels", "names", "explained")
            }
            for name in names
        }
    fig, grid = style.figure(
        5.6 * len(panels) + (0.8 if len(panels) == 1 else 0), 5.0, ncols=len(panels), squeeze=False
    )
    for axes, panel in zip(grid[0], panels.values(), strict=True):
        _scatter(axes, panel)
    style.heading(fig, spec.title)
    return fig


def _scatter(axes, panel):
    import pandas as pd
    import seaborn  # slow to import

    names = dict(zip(panel["labels"], map(str, panel["names"]), strict=True))
    colours = dict(zip(names.values(), style.TEN, strict=False))
    frame = pd.DataFrame(panel["scores"][:, :2], columns=["first", "second"])
    frame["class"] = [names[label] for label in panel["y"]]
    seaborn.scatterplot(
        frame.sample(frac=1, random_state=0),  # shuffled, so that no class hides the others
        **{"x": "first", "y": "second", "hue": "class", "style": "class", "ax": axes},
        hue_order=list(names.values()),
        style_order=list(names.values()),
        palette=colours,
        markers=style.MARKERS[: len(names)],
        s=float(np.clip(9000 / len(frame), 1.5, 14)),
        **{"alpha": 0.6, "linewidth": 0, "rasterized": True},
    )
    for name, centre in frame.groupby("class")[["first", "second"]].mean().iterrows():
        axes.annotate(
            name,
            centre,
            **{"ha": "center", "va": "center", "fontsize": 12, "fontweight": "bold"},
            color=colours[name],
            path_effects=[style.halo()],
            zorder=5,
        )
    legend = axes.legend(title="class", loc="center left", bbox_to_anchor=(1.0, 0.5))
    for handle in legend.legend_handles:
        handle.set(alpha=1, markersize=6)
    first, second = panel["explained"][:2]
    axes.set_xlabel(f"first component ({first:.1%} of the variance)")
    axes.set_ylabel(f"second component ({second:.1%})")
    axes.set_title(str(panel["title"]), loc="left")


@figure(ANALYSIS)
def explained_variance(experiment, spec, path):
    """Share of the variance that the first components explain together, one curve per data set."""
    import pandas as pd

    frame = pd.read_csv(path)
    frame = frame[frame["dataset"].isin(spec.datasets or frame["dataset"])]
    two = frame[frame["components"] == 2].set_index("dataset")
    looks = {
        name: style.look(f"{row.title}: two explain {row.explained:.1%}", colour, line=line)
        for (name, row), (colour, line) in zip(two.iterrows(), LINES, strict=False)
    }
    labels = ("number of principal components", "share of the variance explained")
    frame = frame.assign(curve=frame["dataset"])
    curves = Curves("explained", band=None, together=len(LINES))
    fig = relation(spec, frame, looks, "components", curves, Scales(labels, within=(0, 1.02)))
    fig.axes[0].set_xlim(left=0)
    return fig


class NoiseDensities(Options):
    noise: str = "laplace"
    epsilons: list = [0.1, 0.5, 1, 10]
    deltas: list = [1e-05]


@figure(NOTHING, NoiseDensities)
def noise_densities(experiment, spec, _):
    """Laplace or normal densities for several epsilons (and deltas), sensitivity 1.

    Normal densities have the standard deviation of the analytic calibration.
    """
    options = spec.options
    fig, axes = style.figure()
    z = np.linspace(-6, 6, 1201)
    colours = style.shades(len(options["epsilons"]))
    for epsilon, colour in zip(options["epsilons"], colours, strict=True):
        if options["noise"] == "laplace":
            density = epsilon / 2 * np.exp(-epsilon * np.abs(z))
            axes.plot(z, density, color=colour, label=rf"$\varepsilon$ = {epsilon:g}")
            continue
        for delta, line in zip(options["deltas"], ("-", "--", ":", "-."), strict=False):
            sigma = gaussian_sigma(epsilon, delta)
            density = np.exp(-((z / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi))
            label = rf"$\varepsilon$ = {epsilon:g}, $\delta$ = {delta:g}"
            axes.plot(z, density, color=colour, linestyle=line, label=label)
    axes.set_xlabel("noise on a quantity of sensitivity 1")
    axes.set_ylabel("density")
    axes.set_yscale("log")
    axes.set_ylim(1e-4, 2 * max(line.get_ydata().max() for line in axes.lines))
    style.title(axes, spec.title)
    axes.legend(fontsize="small")
    return fig


class EpsilonFamily(Options):
    log: bool = False
    show: str = "error"
    published: list[Comparison] | None = None


@figure(CELLS, EpsilonFamily)
def epsilon_family(experiment, spec, frame):
    """Test error, or the width of its 95 % interval, against training rows: one curve per epsilon.

    With several private methods, each epsilon has its own panel, with one curve per method. Non-private
    methods are black. Options: log (both axes logarithmic), show ("error" or "width"), published (printed
    errors, drawn as crosses).
    """
    options = spec.options
    frame = frame.assign(curve=frame["method"], width=frame["error_high"] - frame["error_low"])
    finite = sorted(e for e in frame["epsilon"].unique() if np.isfinite(e))
    names = {value: rf"$\varepsilon$ = {canonical(value)}" for value in finite}
    methods = {m: v for m, v in experiment.methods.items() if m in set(frame["method"])}
    behind = [m for m in methods if not methods[m].private]
    looks = style.looks(methods)
    for method, line in zip(behind, ("--", ":", "-."), strict=False):
        looks[method] |= {"color": "#000000", "marker": "", "linestyle": line}
    if len(methods) > len(behind) + 1:
        frame["panel"] = frame["epsilon"].map(names)
    else:
        frame["curve"] = frame["epsilon"].map(names).fillna(frame["method"])
        # The last curve is drawn above the others.
        looks = style.ordered(names.values()) | {method: looks[method] for method in behind}
    error = options["show"] == "error"
    marks = [
        Mark(names[v.epsilon], v.dataset, v.value, v.sd, v.train_size)
        for comparison in options.get("published") or ()
        for v in printed_values.values(experiment, comparison, frame)
        if v.epsilon in names and v.dataset in set(frame["dataset"])
    ]
    return relation(
        spec.but(options=options | {"beside": True}),
        frame,
        looks,
        "train_size",
        Curves("error_mean" if error else "width", BAND if error else None, behind, together=99),
        Scales(
            ("training rows", "test error" if error else "width of the 95 % interval"),
            log="xy" if options["log"] else "",
        ),
        style.replicates(experiment, frame, interval=error),
        Printed(marks),
    )


@figure(CELLS)
def proven_curve(experiment, spec, frame):
    """Test error against each method's proven epsilon.

    If the proven epsilon exceeds the source's, the curve moves to the right. Methods without a finite
    proven epsilon are only named in the legend's title.
    """
    methods = {m: v for m, v in experiment.methods.items() if m in set(frame["method"])}
    looks, private = style.looks(methods), frame["method"].map(lambda m: methods[m].private)
    proven = [_proven(experiment, row) for row in frame[private].to_dict("records")]
    frame = frame.assign(curve=frame["method"])
    frame.loc[private, "epsilon"] = proven
    unproven = set(frame.loc[private & np.isinf(frame["epsilon"]), "method"])
    lost = [f"no finite $\\varepsilon$: {looks.pop(m)['label']}" for m in methods if m in unproven]
    size = int(frame["train_size"].max())
    return relation(
        spec.but(title=f"{spec.title}, {size:,} training rows"),
        level(frame[~frame["method"].isin(unproven)]),
        looks,
        "epsilon",
        Curves(behind=[m for m in looks if not methods[m].private]),
        Scales((r"proven $\varepsilon$ (replace-one)", "test error"), log="x"),
        "\n".join(lost),
    )


def _proven(experiment, row):
    """The mechanism's proven epsilon at a cell's settings, without the cost of tuning them."""
    cell = Cell(*(row[key] for key in Cell._fields))
    meta = read_json(data_path(cell.dataset, "json"))
    options, settings = arguments.of_cell(experiment, cell, meta)
    mechanism = MECHANISMS[experiment.methods[cell.method].mechanism]
    return arguments.guarantee(mechanism, meta, cell.train_size, options, **settings).epsilon


class SearchGrid(Options):
    x: str = "batch"
    y: str = "lambda"
    show: str = "wins"


@figure(SEARCHES, SearchGrid)
def search_grid(experiment, spec, paths):
    """A heat map over two options of the grid, per method and epsilon.

    options["x"], options["y"]: the options that vary along columns and rows. options["show"]: "wins" or
    "error_mean". wins: the number of simulations in which the two values had the smallest cross-validation
    error, summed over training sizes and further options. error_mean: this error, averaged over training
    sizes and minimised over further options.
    """
    import pandas as pd
    import seaborn  # slow to import

    options = spec.options
    x, y, show = options["x"], options["y"], options["show"]
    tables = []
    for cell, path in paths.items():
        table = pd.read_csv(path)
        if missing := {x, y, show} - set(table):
            raise ValueError(f"{path} has no column {missing.pop()!r}: it has {', '.join(table)}")
        tables.append(table.assign(**cell._asdict()))
    wins = show == "wins"
    keys = ["method", "epsilon", y, x]
    scores = pd.concat(tables).groupby(["dataset", "train_size", *keys], sort=False)[show]
    scores = (scores.sum() if wins else scores.min()).groupby(keys, sort=False)
    scores = (scores.sum() if wins else scores.mean()).unstack().sort_index(axis="columns")
    values = scores.index.unique(y).sort_values(ascending=False)
    maps = {key: part.droplevel([0, 1]) for key, part in scores.groupby(level=[0, 1], sort=False)}
    looks = style.looks(experiment.methods)
    count = style.columns(len(maps))
    rows = -(-len(maps) // count)
    fig, grid = style.figure(
        3.4 * count + 0.4, 2.7 * rows + 0.6, nrows=rows, ncols=count, sharey=True, squeeze=False
    )
    for axes, ((method, epsilon), table) in zip(grid.flat, maps.items(), strict=False):
        seaborn.heatmap(
            table := table.reindex(values),
            ax=axes,
            annot=table.map(lambda value: f"{value:.3g}" if value else ""),
            fmt="",
            annot_kws={"fontsize": "small"},
            cmap=seaborn.light_palette(style.LOOKS["output_perturbation"][1], as_cmap=True),
            vmin=0 if wins else scores.min().min(),
            vmax=scores.max().max(),
            cbar=False,
            linewidths=0.5,
            xticklabels=[f"{value:g}" for value in table.columns],
            yticklabels=[f"{value:g}" for value in table.index],
        )
        axes.grid(visible=False)
        axes.tick_params(length=0, labelrotation=0)
        if len(table.columns) > 10:  # level ones would run into each other
            axes.tick_params(axis="x", labelrotation=90)
        axes.set(xlabel=_option(x), ylabel=_option(y) if axes in grid[:, 0] else "")
        private = rf", $\varepsilon$ = {canonical(epsilon)}" if np.isfinite(epsilon) else ""
        axes.set_title(looks[method]["label"] + private, loc="left", fontsize="medium")
    for axes in grid.flat[len(maps) :]:
        axes.set_visible(False)
    style.heading(fig, spec.title)
    return fig


def _option(option):
    return r"$\lambda$" if option == "lambda" else option.replace("_", " ")


class DiscardedFeatures(Options):
    published: Comparison | None = None


@figure(DRAWS, DiscardedFeatures)
def discarded_features(experiment, spec, draws):
    """Number of features with a weight below 1e-100: a bar per method and training size, and its range.

    options["published"]: printed numbers, drawn as lines, each in a style of its own.
    """
    counts = draws.groupby(["method", "train_size"])["discarded"].agg(["mean", "min", "max"])
    looks = style.looks(_shown(experiment, draws))
    sizes = sorted(draws["train_size"].unique())
    width = 0.8 / len(looks)
    fig, axes = style.figure(8.0, 4.2)
    for k, (method, look) in enumerate(looks.items()):
        rows = counts.loc[method].reindex(sizes)
        places = np.arange(len(sizes)) + (k - (len(looks) - 1) / 2) * width
        bars = {"color": look["color"], "edgecolor": "white", "label": look["label"]}
        axes.bar(
            places, rows["mean"], width, hatch="" if look["linestyle"] == "-" else "//", **bars
        )
        below, above = rows["mean"] - rows["min"], rows["max"] - rows["mean"]
        axes.errorbar(
            places, rows["mean"], [below, above], color="#555555", linestyle="", capsize=2
        )
        for place, count, top in zip(places, rows["mean"], rows["max"], strict=True):
            axes.annotate(f"{count:.0f}", (place, top), ha="center", va="bottom", fontsize=8)
    printed = printed_values.values(experiment, spec.options.get("published"), draws)
    for value, line in zip((v for v in printed if v.method in looks), cycle(PRINTED), strict=False):
        look = looks[value.method]
        label = f"{value.value:g} printed, {look['label']}"
        axes.axhline(value.value, color=style.ink(look["color"]), linestyle=line, label=label)
    axes.set_ylim(bottom=-0.02 * axes.get_ylim()[1])  # sets a line at 0 apart from the axis
    axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    axes.grid(visible=False, axis="x")
    axes.set(xlabel="training rows", ylabel="discarded features: mean, range")
    style.title(axes, spec.title)
    fig.legend(loc="outside lower left", ncols=2, fontsize="small")
    return fig


class HeaviestPixels(Options):
    heaviest: list = [30, 15]


@figure(ANALYSIS, HeaviestPixels)
def heaviest_pixels(experiment, spec, path):
    """Discarded pixels, and the largest positive and negative weights, drawn over a 4 and a 9."""
    heaviest = spec.options["heaviest"]
    with np.load(path) as arrays:
        methods, weights, examples, size = (
            arrays[key] for key in ("methods", "weights", "examples", "train_size")
        )
    side = round(np.sqrt(weights.shape[1]))
    columns = 1 + len(heaviest)
    fig, grid = style.figure(
        1.75 * columns * 2, 2.0 * len(methods) + 0.6,
        nrows=len(methods), ncols=2 * columns, squeeze=False,
    )  # fmt: skip
    for row, method, w in zip(grid, methods, weights, strict=True):
        title = experiment.methods[method].title or str(method).replace("_", " ")
        gone = np.flatnonzero(np.abs(w) < 1e-100)
        order = np.argsort(-np.abs(w))
        for k, example in enumerate(examples):
            panels = row[k * columns : (k + 1) * columns]
            for axes in panels:
                axes.imshow(example.reshape(side, side), cmap="Greys", alpha=0.55)
                axes.set_xticks([])
                axes.set_yticks([])
                axes.grid(visible=False)
                axes.set_xlim(-0.5, side - 0.5)
                axes.set_ylim(side - 0.5, -0.5)
            _mark(panels[0], gone, side, "#0072B2", "x")
            panels[0].set_title(f"{len(gone)} discarded", fontsize="small")
            for axes, count in zip(panels[1:], heaviest, strict=True):
                top = order[: min(count, len(w) - len(gone))]
                _mark(axes, top[w[top] > 0], side, "#D55E00", "+")
                _mark(axes, top[w[top] < 0], side, "#009E73", "o")
                axes.set_title(f"{len(top)} heaviest", fontsize="small")
        row[0].set_ylabel("\n".join(textwrap.wrap(title, 22)), fontsize="small")
    fig.suptitle(
        f"{spec.title}, {int(size):,} training rows (+ for 9, o for 4, x discarded)",
        x=0.01, ha="left",
    )  # fmt: skip
    return fig


def _mark(axes, pixels, side, colour, marker):
    filled = {"facecolors": "none"} if marker == "o" else {}
    colours = {"edgecolors": colour, **filled} if filled else {"color": colour}
    axes.scatter(
        pixels % side, pixels // side, marker=marker, s=22 * (16 / side), linewidths=1.2, **colours
    )


def _shown(experiment, frame):
    shown = set(frame["method"])
    return {label: method for label, method in experiment.methods.items() if label in shown}


def _choices(paths):
    """The searches' choices: cell coordinates, lambda and every option."""
    import pandas as pd

    rows = []
    for cell, path in paths.items():
        chosen = json.loads(Path(path).with_suffix(".json").read_text(encoding="utf-8"))
        rows.append(cell._asdict() | {"lambda": chosen["lambda"]} | chosen["options"])
    return pd.DataFrame(rows)


@figure(SEARCHES)
def searched_settings(experiment, spec, paths):
    """Chosen batch size and lambda against the training size, as points of one colour per epsilon."""
    frame = _choices(paths)
    fig, grid = style.figure(10.4, 3.9, ncols=2)
    values = sorted(frame["epsilon"].unique())
    for (value, colour), marker in zip(
        zip(values, _colours(values), strict=True), style.MARKERS, strict=False
    ):
        rows = frame[frame["epsilon"] == value].sort_values("train_size")
        look = {"color": colour, "marker": marker, "markersize": 7, "linestyle": ""}
        look["label"] = _curve(value)
        # Points are shifted sideways, since choices are few and equal ones would hide each other.
        step = 0.012 * np.ptp(frame["train_size"])
        x = rows["train_size"] + step * (values.index(value) - (len(values) - 1) / 2)
        grid[0].plot(x, rows["batch"], **look)
        grid[1].plot(x, rows["lambda"], **look)
    for axes, name in zip(grid, ("chosen batch size", r"chosen $\lambda$"), strict=True):
        axes.set_ylabel(name)
        axes.set_yscale("log")
        style.log_ticks(axes.yaxis)
        axes.set_xlabel("training rows")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    style.heading(fig, spec.title)
    grid[1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    return fig


@figure(ANALYSIS)
def iterations(experiment, spec, path):
    """Objective and gradient norm against the iteration, one curve per epsilon."""
    import pandas as pd

    frame = pd.read_csv(path)
    fig, grid = style.figure(8.6, 3.9, ncols=2)
    values = sorted(frame["epsilon"].unique())
    for value, colour in zip(values, _colours(values), strict=True):
        rows = frame[frame["epsilon"] == value]
        for axes, column in zip(grid, ("objective", "gradient_norm"), strict=True):
            axes.plot(rows["step"], rows[column], color=colour, label=_curve(value))
    for axes, name in zip(grid, ("objective", "norm of its gradient"), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("iteration")
        axes.set_ylabel(name)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    style.title(grid[0], spec.title)
    grid[1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    return fig


def _colours(values):
    """A colour per epsilon, black without noise."""
    finite = style.shades(sum(np.isfinite(v) for v in values))
    return [*finite, *["#000000"] * (len(values) - len(finite))]


def _curve(value):
    return rf"$\varepsilon$ = {canonical(value)}" if np.isfinite(value) else "without noise"


# The next two figures show weights before the noise, and the noise added to them (E18 figure 4.17, table
# A.1).


@figure(ANALYSIS)
def weights_and_noise(experiment, spec, path):
    """Box plots of values on an arcsinh scale, and of magnitudes on a log scale, per training size.

    Whiskers extend at most 1.5 times the height of the box, on the figure's scale.
    """
    import seaborn  # slow to import

    with np.load(path) as arrays:
        sizes, epsilons, weights, noise = (
            arrays[key] for key in ("sizes", "epsilons", "weights", "noise")
        )
    fig, grid = style.figure(
        *(3.2 * len(sizes) + 0.4, 6.4),
        **{"nrows": 2, "ncols": len(sizes), "sharex": True, "sharey": "row", "squeeze": False},
    )
    grid[0, 0].set_yscale("asinh")  # set first, because seaborn computes boxes on this scale
    grid[1, 0].set_yscale("log")
    names = [*(canonical(e) for e in epsilons), "weights"]
    look = {"palette": [*style.shades(len(epsilons)), "#999999"], "saturation": 1, "fliersize": 2}
    look |= {"boxprops": {"alpha": 0.6}, "medianprops": {"color": "#000000"}, "width": 0.7}
    for column, size, before, added in zip(grid.T, sizes, weights, noise, strict=True):
        values = dict(zip(names, [*added, before], strict=True))
        magnitudes = {name: np.abs(v[v != 0]) for name, v in values.items()}
        for axes, shown in zip(column, (values, magnitudes), strict=True):
            seaborn.boxplot(shown, ax=axes, **look)
            axes.grid(axis="x", visible=False)
            axes.tick_params(axis="x", rotation=90)
        column[0].axhline(0, color="#000000", linewidth=0.6)
        column[0].set_title(f"{size:,} training rows", loc="left")
    grid[0, 0].set_ylabel("value (arcsinh scale)")
    grid[1, 0].set_ylabel("magnitude, zeros left out")
    fig.supxlabel(r"noise at privacy parameter $\varepsilon$, and the weights it hides")
    style.heading(fig, spec.title)
    return fig


@figure(DRAWS, printed=True)
def table_a_1(experiment, spec, draws):
    """Table A.1 as curves against training rows: mean and variance of weights, variance of the noise.

    The noise has one curve per epsilon. Crosses are printed values at this run's sizes.
    """
    printed = facts.read(experiment.source).tables["table_a_1"]
    draws = draws[draws["noise_variance"].notna()]
    sizes, epsilons = (sorted(draws[name].unique()) for name in ("train_size", "epsilon"))
    fig, grid = style.figure(11.4, 3.9, ncols=3)
    curves = [(name, name, "#000000", "") for name in ("weights_mean", "weights_variance")]
    of_noise = [
        ("noise_variance", f"noise_variance_eps_{canonical(e)}", colour, canonical(e))
        for e, colour in zip(epsilons, style.shades(len(epsilons)), strict=True)
    ]
    crosses = [size for size in sizes if size in printed]
    for column, name, colour, at in [*curves, *of_noise]:
        axes = grid[["weights_mean", "weights_variance"].index(column) if not at else 2]
        rows = draws[draws["epsilon"].map(canonical) == at] if at else draws
        means = rows.groupby("train_size")[column].mean().reindex(sizes)
        axes.plot(sizes, means, color=colour, linewidth=1.2, label=rf"$\varepsilon$ = {at}")
        values = [printed[size].get(name, np.nan) for size in crosses]
        axes.plot(crosses, values, color=colour, linestyle="", marker="x", markersize=4.5)
    titles = ("mean of the weights", "variance of the weights", "variance of the noise")
    for axes, title in zip(grid, titles, strict=True):
        axes.set_title(title, loc="left", fontsize="medium")
        axes.set_xlabel("training rows")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    grid[2].set_yscale("log")
    grid[2].legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    told = f", x printed at {len(crosses)} sizes" if crosses else ""
    simulations = draws.groupby(["dataset", "train_size"])["fold"].nunique().min()
    style.heading(fig, f"{spec.title}, mean of {simulations} simulations{told}")
    return fig
