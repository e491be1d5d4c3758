"""The cross-validation scheme, drawn with a data set's own numbers."""

from plots import style
from study.files import read_json

TRAIN, TEST = "#56B4E9", "#E69F00"


def folds(experiment, spec, paths):
    """One line per fold: the part it is tested on, and the parts it is trained on."""
    if len(paths) != 1:
        raise ValueError("a figure of the folds shows exactly one data set: name it in 'datasets'")
    ((_, path),) = paths.items()
    rows = read_json(path.removesuffix(".npz") + ".json")["rows"]
    count = experiment.folds
    # as dp.data.split_folds cuts: sizes differ by at most one, the larger parts first
    sizes = [rows // count + (part < rows % count) for part in range(count)]
    fig, axes = style.figure(width=7.2, height=0.52 * count + 1.5)
    for fold in range(count):
        start = 0
        for part, size in enumerate(sizes):
            tested = part == fold
            axes.barh(
                fold,
                size,
                left=start,
                height=0.68,
                color=TEST if tested else TRAIN,
                edgecolor="white",
                hatch="//" if tested else "",
                label=("test" if tested else "training") if fold == 0 and part < 2 else None,
            )
            axes.text(
                start + size / 2,
                fold,
                f"{size:,}",
                ha="center",
                va="center",
                fontsize="small",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85},
            )
            start += size
    axes.set_yticks(range(count), [f"fold {k + 1}" for k in range(count)])
    axes.invert_yaxis()
    axes.grid(False)
    axes.set_xlim(0, rows)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel(f"the {rows:,} rows, shuffled once")
    axes.set_title(spec["title"], loc="left")
    fig.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig
