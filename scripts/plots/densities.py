"""Densities of the noise that mechanisms add."""

import numpy as np

from dp.accounting import gaussian_sigma
from plots import style


def noise_densities(experiment, spec, _):
    """Laplace or normal densities for several epsilons (and deltas), sensitivity 1.

    Normal densities have the standard deviation of the analytic calibration.
    """
    options = spec["options"]
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
    axes.set_title(spec["title"], loc="left")
    axes.legend(fontsize="small")
    return fig
