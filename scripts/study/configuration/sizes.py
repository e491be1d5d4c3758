"""Find experiments that run at smaller sizes than their files state; their results are not findings."""

import math

from study.configuration.experiment import Experiment

# Options of analyses that count as sizes: smaller numbers or shorter lists mean less work.
OPTIONS = (
    *("train_size", "train_sizes", "epsilons", "restarts", "replicates", "draws", "resamples"),
    *("simulations", "trials", "repeats", "points", "epochs", "iterations"),
)
REPEATED = ("folds", "simulations")


def toy(experiments):
    """Whether there are experiments, and all run at smaller sizes than their files state."""
    reduced = [bool(experiment.smaller) for experiment in experiments]
    return bool(reduced) and all(reduced)


def smaller(ours, file):
    """Descriptions of the sizes that are smaller in an experiment than in its file.

    ours, file: the resolved `Experiment` with and without overlays. Other data sets or methods do not count
    as smaller. Neither do more simulations with fewer draws each, because intervals are over simulations.
    """
    (count, what), (of, _) = map(_repeated, (ours, file))
    reductions = _less(what, count, of)
    if count <= of:
        reductions += _less("draws of the noise in a cell", count * _draws(ours), of * _draws(file))
    for name, sweep in file.sweeps.items():
        own = ours.sweeps.get(name)
        if own is None:
            reductions.append(f"no sweep {name}")
            continue
        largest = [max(each.train_sizes) for each in (own, sweep)]
        reductions += _less(f"training rows at most in the sweep {name}", *largest)
        for key, what in (("train_sizes", "training sizes"), ("epsilons", "epsilons")):
            reductions += _less(
                f"{what} in the sweep {name}", len(getattr(own, key)), len(getattr(sweep, key))
            )
    for name, search in file.searches.items():
        own = ours.searches.get(name)
        if own:
            reductions += _less(f"fits in the search {name}", *map(_fits, (own, search)))
    for name, analysis in file.analyses.items():
        own = ours.analyses.get(name)
        if own:
            reductions += _options(f"of the analysis {name}", own.options, analysis.options)
    return reductions


def _repeated(experiment: Experiment):
    for name in REPEATED:
        if getattr(experiment, name):
            return getattr(experiment, name), name
    return 1, "repetitions"


def _draws(experiment: Experiment):
    return experiment.restarts or 1


def _fits(search):
    parts = math.prod(getattr(search, name) or 1 for name in REPEATED)
    return parts * math.prod(map(len, search.grid.values()))


def _less(what, ours, file):
    return [f"{ours:,} instead of {file:,} {what}"] if ours < file else []


def _options(where, ours, file):
    reductions = []
    for key, value in file.items():
        own = ours.get(key)
        if isinstance(value, dict) and isinstance(own, dict):
            reductions += _options(f"{where}, {key}", own, value)
        elif key not in OPTIONS or own is None:
            continue
        elif isinstance(value, list):
            reductions += _less(f"values of {key} {where}", len(own), len(value))
            reductions += _less(f"as the largest of {key} {where}", max(own), max(value))
        else:
            reductions += _less(f"as {key} {where}", own, value)
    return reductions
