"""Figures of private gradient descent: accuracy, losses, decision regions, moved boundaries."""

from textwrap import fill

import numpy as np

from plots import style
from plots.relations import Curves, Scales, level, relation
from sources.hoseinpour_2023.tables import Columns, by_column
from study.configuration.inputs import ANALYSIS, DRAWS
from study.configuration.kinds import figure
from study.configuration.options import Comparison, Options

PLAIN, PRETRAINED, NONE = "#0072B2", "#D55E00", "#000000"
CLASSES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")


@figure(DRAWS, Columns)
def pretraining(experiment, spec, draws):
    """Training accuracy against epsilon, with and without pre-training; published values are hollow.

    The source prints single draws, so bands contain 95 % of our single draws. Horizontal lines show
    non-private descents: from zero weights, from pre-trained weights, on public rows only, and run to
    convergence.
    """
    printed = by_column(experiment, spec.options["published"], draws)
    accuracy = 100 * (1 - draws["train_error"])
    groups = accuracy.groupby([draws["method"].rename("curve"), draws["epsilon"]], sort=False)
    frame = groups.agg(
        mean="mean", low=lambda v: v.quantile(0.025), high=lambda v: v.quantile(0.975)
    )
    frame = level(frame.reset_index())
    sides = (("plain", PLAIN, "o", "from zero"), ("pretrained", PRETRAINED, "s", "pre-trained"))
    looks = {}
    for side, colour, marker, name in sides:
        for method in spec.options[side]:
            if experiment.methods[method].private:
                looks[method] = style.look(name, colour, marker)
            else:
                looks[method] = style.look(f"{name}, without privacy", colour, line="--")
    for baseline, line in (("public_only", ":"), ("converged", "-.")):
        method = spec.options[baseline]
        if method:
            looks[method] = style.look(experiment.methods[method].title, NONE, line=line)
    noiseless = [method for method in looks if not experiment.methods[method].private]
    plain = frame["curve"].isin(noiseless)
    frame.loc[plain, ["low", "high"]] = frame.loc[plain, ["mean", "mean"]].to_numpy()
    note = f"mean and 95 % of {groups.size().max():.0f} draws"
    some = any(printed.values())
    name = "claimed" if some else "privacy parameter"
    fig = relation(
        spec,
        frame[frame["curve"].isin(looks)],
        looks,
        "epsilon",
        Curves("mean", ("low", "high"), noiseless),
        Scales((rf"{name} $\varepsilon$", "training accuracy, percent"), log="x", within=(0, 100)),
        note + (f",\nhollow: published\n{_residual(experiment, frame, printed)}" if some else ""),
    )
    for side, colour, marker, _ in sides if some else ():
        theirs = {epsilon: value for epsilon, value in printed[side].items() if epsilon < np.inf}
        look = {"linestyle": "", "marker": marker, "markersize": 7, "markerfacecolor": "none"}
        fig.axes[0].plot([*theirs], [*theirs.values()], color=colour, **look)
    return fig


def _residual(experiment, frame, printed):
    """How far our means are from the printed values, to which data and steps were fitted."""
    private = frame[[experiment.methods[method].private for method in frame["curve"]]]
    apart = {}
    for row in private.itertuples():
        started = experiment.methods[row.curve].options.get("pretrain")
        theirs = printed["pretrained" if started else "plain"].get(row.epsilon)
        if theirs is not None:
            apart[row.curve, row.epsilon] = abs(row.mean - theirs)
    if not apart:
        return ""
    worst = max(apart, key=apart.get)
    return (
        f"(fitted to these, ours miss them by\n{np.mean([*apart.values()]):.1f} points on average, "
        rf"{apart[worst]:.1f} at $\varepsilon$ = {worst[1]:g})"
    )


@figure(ANALYSIS)
def loss_traces(experiment, spec, path):
    """Mean training loss against the iteration; bands contain 95 % of the draws."""
    import pandas as pd

    frame, looks = pd.read_csv(path), {}
    frame["curve"] = frame["method"] + frame["epsilon"].astype(str)
    for curve, method, epsilon in (
        frame[["curve", "method", "epsilon"]].drop_duplicates().to_numpy()
    ):
        chosen = experiment.methods[method]
        private = np.isfinite(epsilon)
        name = (chosen.title or method) + (rf", $\varepsilon$ = {epsilon:g}" if private else "")
        colour = PRETRAINED if chosen.options.get("pretrain") else PLAIN
        looks[curve] = style.look(name, colour, line="-" if private else "--")
    return relation(
        spec,
        frame,
        looks,
        "iteration",
        Curves(
            "loss_mean",
            ("loss_low", "loss_high"),
            [curve for curve, look in looks.items() if look["linestyle"] == "--"],
        ),
        Scales(("iteration", "mean training loss"), bottom=None),
        "bands: 95 % of the draws",
    )


class DecisionRegions(Options):
    published: Comparison | None = None


@figure(ANALYSIS, DecisionRegions)
def decision_regions(experiment, spec, path):
    """Decision regions of one draw and the training points, one row per method, one column per epsilon.

    options["published"]: the printed accuracies, shown with ours.
    """
    import pandas as pd

    with np.load(path) as arrays:
        result = {name: arrays[name] for name in arrays.files}
    methods, epsilons, weights = result["methods"], result["epsilons"], result["weights"]
    ran = pd.DataFrame({"method": [*experiment.methods], "train_size": len(result["X"])})
    printed = by_column(experiment, spec.options["published"], ran)
    rows, columns = len(methods), len(epsilons)
    shape = {"nrows": rows, "ncols": columns, "sharex": True, "sharey": True, "squeeze": False}
    fig, grid = style.figure(3.1 * columns, 3.1 * rows, **shape)
    X, y = result["X"], result["y"]
    limits = _limits(X)
    for row, method in enumerate(methods):
        for column, epsilon in enumerate(epsilons):
            axes, W = grid[row, column], weights[row, column]
            points, regions = _regions(W, limits)
            axes.contourf(
                *points,
                regions,
                levels=np.arange(len(result["classes"]) + 1) - 0.5,
                colors=CLASSES[: len(result["classes"])],
                alpha=0.25,
            )
            _scatter(axes, X, y, result["classes"], size=5)
            accuracy = 100 * ((X @ W).argmax(axis=1) == y).mean()
            started = experiment.methods[str(method)].options.get("pretrain")
            theirs = printed["pretrained" if started else "plain"].get(epsilon)
            title = rf"$\varepsilon$ = {epsilon:g}: {accuracy:.4g} %"
            title += "" if theirs is None else f" (printed {theirs:.4g} %)"
            axes.set_title(title, loc="left", fontsize="medium")
            axes.grid(False)
            _frame(axes, limits)
        title = fill(experiment.methods[str(method)].title or str(method), 24)
        grid[row, 0].set_ylabel(f"{title}\n$x_2$")
    for axes in grid[-1]:
        axes.set_xlabel("$x_1$")
    fig.suptitle(f"{spec.title} (one draw each, accuracy on its {len(X)} points)", wrap=True)
    fig.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=8)
    return fig


@figure(ANALYSIS)
def moved_boundaries(experiment, spec, path):
    """Decision boundaries before and after each move of a single point; the largest change is bold."""
    with np.load(path) as arrays:
        result = {name: arrays[name] for name in arrays.files}
    X, y, full, moved = (result[name] for name in ("X", "y", "full", "moved"))
    limits = _limits(X)
    before = _regions(full, limits)[1]
    after = [_regions(W, limits)[1] for W in moved]
    shares = np.array([(regions != before).mean() for regions in after])
    worst = int(shares.argmax())
    fig, axes = style.figure(width=6.6, height=5.2)
    for W, colour, width, alpha in (
        *((W, "#999999", 0.6, 0.5) for W in moved),
        (moved[worst], "#D55E00", 1.8, 1.0),
        (full, "#000000", 1.8, 1.0),
    ):
        _outline(axes, W, limits, colour, width, alpha)
    _scatter(axes, X, y, result["classes"], size=22)
    axes.annotate(
        "",
        xy=-X[worst, :2],
        xytext=X[worst, :2],
        arrowprops={"arrowstyle": "->", "color": "#D55E00", "linewidth": 1.5},
    )
    for colour, label in (
        ("#000000", f"all {len(X)} points"),
        (
            "#D55E00",
            f"after the move of one: {100 * shares[worst]:.2g} % of the area changes class",
        ),
        ("#999999", "after the move of any other one"),
    ):
        axes.plot([], [], color=colour, label=label)
    _frame(axes, limits)
    axes.grid(False)
    axes.set_xlabel("$x_1$")
    axes.set_ylabel("$x_2$")
    style.title(axes, spec.title)
    fig.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def _limits(X):
    """[low, high] of both drawn features, symmetric about 0 and a tenth beyond the largest value."""
    reach = 1.1 * np.abs(X[:, :2]).max()
    return np.array([[-reach, reach], [-reach, reach]])


def _regions(W, limits, steps=240):
    """Grid coordinates, and the predicted class at each."""
    axes = [np.linspace(low, high, steps) for low, high in limits]
    grid = np.meshgrid(*axes)
    features = np.stack([*grid, np.ones_like(grid[0])], axis=-1)
    return grid, (features @ W).argmax(axis=-1)


def _outline(axes, W, limits, colour, width, alpha):
    points, regions = _regions(W, limits)
    for label in np.unique(regions):
        axes.contour(
            *points, regions == label, levels=[0.5], colors=colour, linewidths=width, alpha=alpha
        )


def _scatter(axes, X, y, classes, size):
    for label, name in enumerate(classes):
        axes.scatter(
            *X[y == label, :2].T,
            s=size,
            color=CLASSES[label % len(CLASSES)],
            marker=style.MARKERS[label % len(style.MARKERS)],
            linewidth=0,
            label=f"class {name}",
        )


def _frame(axes, limits):
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    axes.set_aspect("equal")
