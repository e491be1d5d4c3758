"""What image data look like: examples, values of pixels, distances to the mean of a class."""

import math
from pathlib import Path

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from dp.data.components import distances_to_class_mean
from plots import style
from study.data.prepared import Prepared
from study.jobs.files import read_json

LOOKS = (("#0072B2", "-"), ("#D55E00", "--"), ("#000000", ":"))


class Images:
    """The training rows of a prepared data set as stored, one image each, with their classes.

    X: (n, d). y: (n,). names: label -> the class' name. title: of the data set. side: of an image.
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
    fig.suptitle(f"{spec['title']}: {_titles(data)}", fontsize=11)
    return fig


def farthest_images(experiment, spec, paths):
    """The images farthest from the mean of their class, one line per class, the farthest first."""
    (path,) = paths.values()
    images = Images(path)
    count = spec["options"]["count"]
    distances = distances_to_class_mean(images.X, images.y)
    # Classes are in two blocks side by side, since ten lines do not fit on a page well.
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
    fig.suptitle(f"{spec['title']}: {images.title}", fontsize=11)
    return fig


def pixel_density(experiment, spec, paths):
    """Density of the pixels' values over all training images, on a logarithmic axis."""
    fig, axes = style.figure()
    for path, (colour, line) in zip(paths.values(), LOOKS, strict=False):
        images = Images(path)
        counts = np.bincount(images.X.ravel(), minlength=int(images.X.max()) + 1)
        bins = np.array_split(counts, min(len(counts), spec["options"]["bins"]))
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
    axes.set_title(spec["title"], loc="left")
    axes.legend()
    return fig


def distance_violins(experiment, spec, paths):
    """Distribution, per class, of the images' Euclidean distance to the mean of their class."""
    import seaborn  # its import takes as long as all others of this job

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
    axes.set_title(f"{spec['title']}: {images.title}", loc="left")
    return fig


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _titles(data):
    return ", ".join(images.title for images in data)
