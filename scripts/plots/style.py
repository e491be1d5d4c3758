"""The project's one figure style: a colour, a marker and a line per mechanism, the same everywhere.

Colours are Okabe and Ito's, told apart by colour-blind readers; markers and line styles tell the
mechanisms apart in greyscale too.
"""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

# mechanism: (name in legends, colour, marker, line style)
MECHANISMS = {
    "nonprivate": ("without privacy", "#000000", "", "--"),
    "output_perturbation": ("output perturbation", "#0072B2", "o", "-"),
    "objective_perturbation_cm08": ("objective perturbation, as printed", "#E69F00", "s", "-"),
    "objective_perturbation": ("objective perturbation, repaired", "#009E73", "^", "-"),
    "noiseless_linear": ("least squares by the same steps", "#777777", "", "-."),
    "truncated_logistic": ("truncated logistic, without privacy", "#777777", "", "-."),
    "functional_laplace": ("functional mechanism, Laplace", "#0072B2", "v", "-"),
    "functional_gaussian": ("functional mechanism, Gaussian", "#D55E00", "P", "-"),
    "functional_logistic": ("functional mechanism, truncated logistic", "#009E73", "v", "-"),
    "sufficient_statistics": ("sufficient statistics", "#0072B2", "D", "-"),
    "adassp": ("AdaSSP", "#E69F00", "X", "-"),
    "subsample_aggregate": ("subsample and aggregate", "#009E73", "h", "-"),
    "posterior_sampling": ("posterior sampling", "#CC79A7", "*", "-"),
    "gradient_descent": ("gradient descent, without privacy", "#000000", "", "--"),
    "dp_gd": ("private gradient descent", "#0072B2", "o", "-"),
}
# For mechanisms and variants without an entry above, in the order in which they come.
SPARE = ("#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
SPARE_MARKERS = ("D", "v", "P", "X", "*")
# Ten classes: colours told apart by colour-blind readers (Petroff 2021), for points with markers.
TEN = (
    *("#3F90DA", "#FFA90E", "#BD1F01", "#94A4A2", "#832DB6"),
    *("#A96B59", "#E76300", "#B9AC70", "#717581", "#92DADD"),
)
TEN_MARKERS = ("o", "s", "^", "v", "D", "P", "X", "*", "<", ">")

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


def looks(methods):
    """Label -> {label, color, marker, linestyle} for an experiment's methods, for `Axes.plot`.

    methods: label -> {mechanism, title, ...}. A mechanism's first method has the mechanism's own
    look; further variants of it take spare ones.
    """
    found, used = {}, set()
    spare = iter(zip(SPARE, SPARE_MARKERS, strict=True))
    for label, method in methods.items():
        known = MECHANISMS.get(method["mechanism"])
        if known and method["mechanism"] not in used:
            name, colour, marker, line = known
            used.add(method["mechanism"])
        else:
            name, line = label.replace("_", " "), "-"
            colour, marker = next(spare, ("#555555", "."))
        found[label] = {
            "label": method.get("title", name),
            "color": colour,
            "marker": marker,
            "linestyle": line,
        }
    return found


def figure(width=6.4, height=4.2, **subplots):
    """Figure and axes in the project's style."""
    mpl.rcParams.update(PARAMETERS)
    return plt.subplots(figsize=(width, height), layout="constrained", **subplots)


def halo():
    """A white edge around text that lies on points."""
    from matplotlib.patheffects import withStroke

    return withStroke(linewidth=3, foreground="white")


def save(fig, *paths):
    """Write a figure to every path, with no date inside: equal figures are equal files."""
    for path in paths:
        pdf = str(path).endswith(".pdf")
        fig.savefig(path, metadata={"CreationDate": None} if pdf else None)
    plt.close(fig)
