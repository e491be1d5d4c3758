"""The style of all figures: every mechanism has a fixed colour, marker and line style.

Colour-blind readers can distinguish the colours (Okabe and Ito). In greyscale, markers and line styles
distinguish the mechanisms.
"""

import io
from pathlib import Path

import numpy as np

from study.jobs.files import atomic

LIGHTEST = 0.75  # of viridis: lighter curves are hard to see
DECADES = 1e3  # a shorter logarithmic axis also has ticks at 2 and 5
COLOURS = 256  # number of colours of a PNG's palette

# mechanism: (name in legends, colour, marker, line style)
LOOKS = {
    "nonprivate": ("without privacy", "#000000", "", "--"),
    "output_perturbation": ("output perturbation", "#0072B2", "o", "-"),
    "objective_perturbation_cm08": ("objective perturbation, as printed", "#E69F00", "s", "-"),
    "objective_perturbation": ("objective perturbation, repaired", "#009E73", "^", "-"),
    "noiseless_linear": ("least squares by the same steps", "#777777", "", "-."),
    "truncated_logistic": ("truncated logistic, without privacy", "#777777", "", ":"),
    "functional_laplace": ("functional mechanism, Laplace", "#0072B2", "v", "-"),
    "functional_gaussian": ("functional mechanism, Gaussian", "#D55E00", "P", "-"),
    "functional_logistic": ("functional mechanism, truncated logistic", "#009E73", "v", "-"),
    "sufficient_statistics": ("sufficient statistics", "#0072B2", "D", "-"),
    "adassp": ("AdaSSP", "#E69F00", "X", "-"),
    "boosted_adassp": ("boosted AdaSSP, repaired", "#009E73", "H", "-"),
    "iterative_hessian_mixing": ("iterative Hessian mixing", "#332288", "^", "-"),
    "tukey_em": ("TukeyEM", "#8C564B", "o", "-"),
    "subsample_aggregate": ("subsample and aggregate", "#332288", "h", "-"),
    "posterior_sampling": ("posterior sampling", "#CC79A7", "*", "-"),
    "gradient_descent": ("gradient descent, without privacy", "#000000", "", "-."),
    "dp_gd": ("private gradient descent", "#56B4E9", "p", "-"),
    "dp_gd_mean_clip": ("gradient descent, mean clipped", "#56B4E9", "D", "-"),
    "nonprivate_sum": ("without privacy, as run", "#000000", "", ":"),
    "laplace_coordinates": ("Laplace per weight, as written", "#D55E00", "v", "-"),
    "laplace_coordinates_sum": ("Laplace per weight, as run", "#CC79A7", "D", "--"),
    "laplace_l1": ("Laplace per weight, repaired", "#56B4E9", "P", "-"),
    "dp_sgd": ("SGD, norm-Laplace noise", "#8C564B", "X", "-"),
    "sgd": ("SGD without noise", "#000000", ".", "-."),
    "dp_sgd_as_run": ("SGD with noise, as run", "#D55E00", "X", "--"),
    "projected_minimiser": ("minimiser on projections", "#777777", "", "--"),
    "sgd_as_run": ("SGD without noise, as run", "#000000", ".", ":"),
    "distributed_lasso": ("distributed lasso", "#0072B2", "H", "-"),
    "distributed_lasso_as_run": ("distributed lasso, as run", "#0072B2", "H", "--"),
    "dp_distributed_lasso": ("distributed lasso, Gaussian noise", "#E69F00", "<", "-"),
    "lasso_output_perturbation": ("lasso output perturbation, as run", "#D55E00", "X", "-"),
    "elastic_net_output_perturbation": ("elastic net output perturbation", "#CC79A7", ">", "-"),
    "gaussian_objective_perturbation": ("objective perturbation, Gaussian", "#D55E00", "*", "-"),
    "knorm_objective_perturbation": ("objective perturbation, norm of a body", "#882255", ">", "-"),
    "output_perturbation_gaussian": ("output perturbation, Gaussian", "#0072B2", "<", "-"),
    "preconditioned_gd": ("preconditioned gradient descent", "#332288", "d", "-"),
    "dp_newton": ("private Newton", "#CC79A7", "h", "-"),
    "dp_sgd_poisson": ("SGD, Poisson batches", "#8C564B", "v", "-"),
    "counts_regression": ("Poisson regression, without privacy", "#000000", "", "-"),
    "counts_rate": ("mean count alone", "#999999", "v", "-"),
    "counts_gd": ("Poisson regression, gradient descent", "#56B4E9", "h", "-"),
    "counts_objective_perturbation": (
        "Poisson regression, objective perturbation",
        "#D55E00",
        "D",
        "-",
    ),
    "counts_knorm_objective_perturbation": (
        "Poisson regression, norm of a body",
        "#332288",
        ">",
        "-",
    ),
    "amp": ("AMP, as published", "#E69F00", "H", "-"),
    "private_selection": ("private selection", "#332288", "D", "-"),
    "objective_perturbation_redberg": ("Redberg et al., as published", "#56B4E9", "s", "-"),
}
# Programs that authors released, by the mechanism that rewrites them: whose, or which version, and what.
PROGRAMS = {
    "adassp_released": "Wang 2018: AdaSSP's experiments",
    "amp_released": "Iyengar et al. 2019: AMP",
    "boosted_adassp_released": "Tang et al. 2024: boosted AdaSSP",
    "cells_released": "BinAgg 0.1.0: linear regression",
    "functional_centred_released": "diffprivlib 0.6.6: linear regression",
    "functional_released": "diffprivlib 0.6.6: linear regression, no intercept",
    "least_squares_released": "DPrivStats: dp_lm, private design",
    "logit_with_errors_released": "dp-statsmodels: Logit",
    "moments_in_fifths_released": "dp-statsmodels: OLS",
    "newton_released": "Ganesh et al. 2023: damped Newton, a baseline",
    "objective_unscaled_released": "diffprivlib 0.6.6: logistic regression",
    "poisson_sgd_released": "Opacus: SGD with a target epsilon",
    "tukey_em_released": "Amin et al. 2023: TukeyEM",
}
# A variant has its mechanism's colour and another marker and line. These have the same ones in every
# figure: label -> colour, if it has its own, marker and line.
VARIANTS = {
    "objective_clipped": (None, "D", "--"),
    "objective_knorm_offset": (None, "v", "--"),
    "gop_add_remove": (None, "P", "-."),
    "preconditioned_gd_add_remove": (None, ">", "-."),
    "objective_log_cosh_wide": (None, "D", "--"),
    "boosted_adassp_wide": (None, "v", "--"),
    "adassp_thirds": (None, "D", "--"),
    "adassp_spectral": (None, "P", "-."),
    "hessian_mixing_clipped": (None, "*", "--"),
    # Where the lasso's rows are.
    **dict.fromkeys(("pca_distributed", "pixels_distributed"), ("#0072B2", "H", "-")),
    **dict.fromkeys(("pca_weights", "pixels_weights"), ("#0072B2", "D", "--")),
    **dict.fromkeys(("pca_single", "pixels_single"), ("#E69F00", "^", "-")),
    **dict.fromkeys(("pca_central", "pixels_central"), ("#009E73", "s", "-")),
    "as_written": ("#D55E00", "v", "-"),
    "repaired": ("#882255", "P", "-"),
}
MOST = 6  # colours of private mechanisms in one figure; further ones are grey
GREY = "#777777"
UNCOLOURED = ("#000000", GREY, "#999999")
# Colours of mechanisms without a style in LOOKS, as far as those of the figure leave them.
SPARE = ("#CC79A7", "#56B4E9", "#D55E00", "#009E73", "#E69F00", "#0072B2")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))  # of one colour's curves
FAMILY = 4  # variants of one mechanism from which on their colours go from dark to light
# Level lines of further non-private methods.
BASELINES = (("#777777", "-."), ("#777777", ":"))

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")  # for a family of curves
# Ten colours that colour-blind readers can distinguish (Petroff 2021).
TEN = (
    *("#3F90DA", "#FFA90E", "#BD1F01", "#94A4A2", "#832DB6"),
    *("#A96B59", "#E76300", "#B9AC70", "#717581", "#92DADD"),
)

# metric: its name on axes
TITLES = {
    "error": "test error",
    "log_loss": "test log loss",
    "auc": "test AUC",
    "mse": "test mean squared error",
    "mae": "test mean absolute error",
    "r2": "test $R^2$",
    "deviance": "test deviance",
    "d2": "test $D^2$, the share of deviance explained",
}

PARAMETERS = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.markersize": 4,
    "lines.linewidth": 1.5,
    "svg.hashsalt": "dp",
}


def name(mechanism):
    """A mechanism's displayed name."""
    if mechanism in LOOKS:
        return LOOKS[mechanism][0]
    return PROGRAMS.get(mechanism) or mechanism.replace("_", " ")


def look(label, colour, marker="", line="-"):
    """A curve's label and style, as keyword arguments of `Axes.plot`."""
    return {"label": label, "color": colour, "marker": marker, "linestyle": line}


def looks(methods):
    """Label -> `look` for an experiment's methods.

    methods: label -> `Method`. A mechanism has the same colour in all figures, except if MOST others come
    first or it is not in LOOKS. Its variants have its colour, and differ in marker and line. Many variants
    of one mechanism alone are from dark to light.
    """
    colours = _colours(methods)
    private = {label: m for label, m in methods.items() if m.mechanism in colours}
    shades_of = {}
    if len(private) >= FAMILY and len(colours) == 1:
        shades_of = ordered([label for label, m in private.items() if label != m.mechanism])
    chosen, seen, drawn = {}, set(), set()
    baselines = iter(BASELINES)
    for label, method in methods.items():
        mechanism, known = method.mechanism, LOOKS.get(method.mechanism)
        first = mechanism not in seen
        seen.add(mechanism)
        name = known[0] if known and first else label.replace("_", " ")
        if mechanism == "nonprivate" and not first:
            colour, line = next(baselines, BASELINES[-1])
            chosen[label] = look(method.title or name, colour, line=line)
        elif label in shades_of:
            chosen[label] = shades_of[label] | {"label": method.title or name}
        else:
            _, own, marker, line = known or (None, None, MARKERS[len(chosen) % len(MARKERS)], "-")
            colour = colours.get(mechanism, own)
            if label in VARIANTS:
                special, marker, line = VARIANTS[label]
                colour = special or colour
            elif not first and label != mechanism:
                marker = MARKERS[len(chosen) % len(MARKERS)]
            if (colour, line) in drawn:
                free = (each for each in LINES if (colour, each) not in drawn)
                line = next(free, LINES[len(chosen) % len(LINES)])
            drawn.add((colour, line))
            chosen[label] = look(method.title or name, colour, marker, line)
    return chosen


def _colours(methods):
    """Mechanism -> colour, for all that are coloured, or grey because a figure has no more colours."""
    mechanisms = dict.fromkeys(method.mechanism for method in methods.values())
    colours = {name: LOOKS[name][1] for name in mechanisms if name in LOOKS}
    colours = {name: colour for name, colour in colours.items() if colour not in UNCOLOURED}
    spare = iter([colour for colour in SPARE if colour not in colours.values()])
    colours = {
        name: colours.get(name) or next(spare, GREY)
        for name in mechanisms
        if name in colours or name not in LOOKS
    }
    few = [*dict.fromkeys(colours.values())][:MOST]
    return {name: colour if colour in few else GREY for name, colour in colours.items()}


def canvas(width=6.4, height=4.2):
    """An empty figure in this style."""
    import matplotlib as mpl

    mpl.use("Agg")  # draws without a display

    import matplotlib.pyplot as plt

    mpl.rcParams.update(PARAMETERS)
    return plt.figure(figsize=(width, height), layout="constrained")


def figure(width=6.4, height=4.2, **subplots):
    """Figure and axes in this style."""
    fig = canvas(width, height)
    return fig, fig.subplots(**subplots)


def columns(panels):
    """The number of columns of a figure with this number of panels."""
    return 2 if panels in (2, 4) else min(panels, 3)


def shades(count):
    """Colours of an ordered family from dark to light (part of viridis), distinct in greyscale, too."""
    from matplotlib import colormaps

    return [colormaps["viridis"](LIGHTEST * k / max(1, count - 1)) for k in range(count)]


def ordered(names):
    """Name -> `look` for an ordered family of curves."""
    return {
        name: look(name, colour, MARKERS[k % len(MARKERS)])
        for k, (name, colour) in enumerate(zip(names, shades(len(names)), strict=True))
    }


def replicates(experiment, frame, interval=True):
    r"""Legend text such as "mean of 12 simulations x 10 draws,\n95 % interval over simulations".

    interval: whether the text names the interval.
    """
    what = experiment.repetitions
    means, over = [], []
    frame = frame if "data_sets" in frame else frame.assign(data_sets=1)
    for data_sets, rows in sorted(frame.groupby("data_sets"), reverse=True):
        draws = int(rows["restarts"].max())
        repeated = experiment.repeated(data_sets)
        parts = [(data_sets, repeated), (int(rows["folds"].max()), what), (draws, "draws")]
        means.append(" x ".join(f"{n} {name}" for n, name in parts if n > 1 or name == what))
        over.append(repeated if data_sets > 1 else what)
    text = f"mean of {' or '.join(means)}"
    return text + (f",\n95 % interval over {' or '.join(over)}" if interval else "")


def sizes(axes, values, narrow=False):
    """Label an axis of training sizes; a logarithmic one has ticks at some of them.

    narrow: whether the axes are a third as wide as a single figure's.
    """
    if axes.get_xscale() == "log":
        plain_ticks(axes, values, 0.3 if narrow else 0.12)
        return
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(4 if narrow else "auto", steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def plain_ticks(axes, sizes, share=0.12):
    """Label a logarithmic axis with some of the values, written out.

    share: the smallest distance between labels, as a share of the axis.
    """
    from matplotlib import ticker

    sizes = sorted(set(sizes), reverse=True)
    apart = max(1.6, (sizes[0] / sizes[-1]) ** share)
    chosen = [sizes[0]]
    for size in sizes[1:]:
        if size * apart <= chosen[-1]:
            chosen.append(size)
    axes.set_xticks(chosen, [f"{size:,.10g}" for size in chosen])
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def log_ticks(axis):
    """Write out the numbers of a logarithmic axis; a short one has ticks at 1, 2 and 5."""
    from matplotlib import ticker

    low, high = axis.get_view_interval()
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < DECADES * low else (1,)))
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axis.set_minor_formatter(ticker.NullFormatter())


def title(axes, text, **look):
    """Write a title, at the left, in as many lines as it needs."""
    return axes.set_title(text, loc="left", wrap=True, **look)


def heading(fig, text):
    """Write the title of a figure with several axes."""
    return fig.suptitle(text, x=0.01, ha="left", wrap=True)


def arrows(axes, x, y, colour):
    """Draw an arrow at the edge for each point beyond the y axis; return whether there is any."""
    low, high = sorted(axes.get_ylim())
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    look = {"color": colour, "linestyle": "", "markersize": 8, "clip_on": False, "zorder": 5}
    for beyond, edge, marker in ((y < low, low, r"$\downarrow$"), (y > high, high, r"$\uparrow$")):
        if beyond.any():
            axes.plot(x[beyond], np.full(beyond.sum(), edge), marker=marker, **look)
    return bool(((y < low) | (y > high)).any())


def log_errors(axes, means):
    """Make the axis of errors logarithmic, from half the smallest mean, because intervals may reach 0."""
    axes.set_yscale("log")
    means = np.asarray(means, dtype=float)
    if (means > 0).any():
        axes.set_ylim(bottom=0.5 * means[means > 0].min())


def ink(colour):
    """The colour for text, darkened to a contrast of 4.5 on white (WCAG 2)."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(colour))
    while True:
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        if 1.05 / (linear @ (0.2126, 0.7152, 0.0722) + 0.05) >= 4.5:
            return tuple(rgb)
        rgb = 0.95 * rgb


def halo():
    """A white outline for text on points."""
    from matplotlib.patheffects import withStroke

    return withStroke(linewidth=3, foreground="white")


def save(fig, *paths):
    """Write a figure to every path, without a date, so that equal figures give equal files."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    if engine := fig.get_layout_engine():
        dpi = mpl.rcParams["savefig.dpi"]
        fig.set_dpi(fig.dpi if dpi == "figure" else dpi)
        engine.execute(fig)
        fig.set_layout_engine(None)  # with an engine, each file would be drawn twice
    for path in paths:
        suffix, drawn = Path(path).suffix[1:], io.BytesIO()
        metadata = {"CreationDate": None} if suffix == "pdf" else None
        quick = {"pil_kwargs": {"compress_level": 1}} if suffix == "png" else {}  # see `small`
        fig.savefig(drawn, format=suffix, metadata=metadata, **quick)
        with atomic(path, "wb") as handle:
            handle.write(small(drawn.getvalue()) if suffix == "png" else drawn.getvalue())
    plt.close(fig)


def small(png):
    """A PNG's bytes with a palette of COLOURS: a quarter of the size, without a visible difference."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    # Dithering would add dots, which do not compress.
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    # Keep white; the octree would replace it by its leaf's mean colour.
    few.putpalette([255 if value >= 253 else value for value in few.getpalette()])
    written = io.BytesIO()
    few.save(written, "png", optimize=True)
    return min(png, written.getvalue(), key=len)
