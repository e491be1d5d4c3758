"""Derive readings: further experiments, one for each interpretation of what a source leaves open.

An experiment's section `readings` names choices that its source does not state. Every value of a choice,
except the main one, is an overlay, merged like `settings`. A reading runs only cells that differ from the
main experiment's and affect verdicts on printed values or claims. It shares the main experiment's draws,
so differences are paired.
"""

from study import paths
from study.configuration import needs
from study.configuration.experiment import Reading
from study.configuration.faults import nearest
from study.configuration.resolve import experiment as resolve
from study.configuration.validation import merge, problem
from study.facts import in_words

# Sections that a reading does not inherit, except tables and analyses that its verdicts need.
WITHOUT = ("figures", "tables", "analyses", "defects", "readings", "together", "title")
INSTEAD = ("datasets", "sweeps", "published", "claims")


def derived(base, value, where, datasets, runs=True):
    """Name -> `Experiment` of every reading of an experiment, in configured order. Raises ConfigError.

    base: the resolved experiment. value: its configuration with all overlays, not yet resolved. runs:
    whether mechanisms must accept the settings.
    """

    def fail(key, text):
        return problem(where(key.split(".")), key, text)

    overlays, readings = {}, {}
    for name, reading in base.readings.items():
        if reading.main in reading.others:
            raise fail(f"readings.{name}.others", f"has the main value {reading.main!r} too")
        for other, overlay in reading.others.items():
            overlays[f"{name}.{other}"] = (overlay, reading)
        decides = {*base.published, *base.claims}
        for entry in reading.decides or ():
            if entry not in decides:
                text = f"no comparison or claim {entry!r}{nearest(entry, sorted(decides))}"
                raise fail(f"readings.{name}.decides", text)
            if entry in base.claims and base.claims[entry].not_tested:
                text = f"{entry!r} is not tested, and no reading changes that"
                raise fail(f"readings.{name}.decides", text)
    sets = [[label] for label in overlays]
    for number, labels in enumerate(base.together):
        for label in labels:
            if label not in overlays:
                raise fail(
                    "together", f"[{number}]: no reading {label!r}{nearest(label, overlays)}"
                )
        sets.append(labels)
    for labels in sets:
        name = "__".join([base.name, *(label.replace(".", "_") for label in labels)])
        if name in readings:
            raise fail("readings", f"two of them would be called {name!r}")
        readings[name] = _reading(name, base, value, labels, overlays, where, datasets, runs)
    return readings


def _reading(name, base, value, labels, overlays, where, datasets, runs):
    chosen = [overlays[label] for label in labels]
    own = {key: item for key, item in value.items() if key not in WITHOUT}
    decides = [set(reading.decides) for _, reading in chosen if reading.decides]
    decides = set.union(*decides) if len(decides) == len(chosen) else None  # None: all by cells
    decided = needs.Decided(needs.comparisons(base), needs.claims(base))
    if decides:
        decided = needs.Decided(
            [name for name in base.published if name in decides],
            [name for name in base.claims if name in decides],
        )
    for section, names in needs.made(base, decided).items():
        own[section] = {name: value[section][name] for name in names}
    instead = {}
    for overlay, _ in chosen:
        tuned = {method.lambda_ for method in base.methods.values()} & {"tuned"}
        for section in sorted({"searches", *["tune"] * len(tuned)} & overlay.keys()):
            text = f"a reading shares {section!r} with its experiment: fix lambda or the options instead"
            raise problem(where(["readings"]), f"readings: {' and '.join(labels)}", text)
        own = merge(own, {key: item for key, item in overlay.items() if key != "instead"})
        instead |= {str(old): new for old, new in overlay.get("instead", {}).items()}
    own["sweeps"] = {
        key: sweep
        for key, sweep in own["sweeps"].items()
        if not set(own["datasets"]).isdisjoint(sweep.get("datasets", own["datasets"]))
    }
    for sweep in own["sweeps"].values():
        if "datasets" in sweep:
            sweep["datasets"] = [name for name in sweep["datasets"] if name in own["datasets"]]
    for section in INSTEAD:
        if section in own:
            own[section] = _replaced(own[section], instead)
    for section, names in decided._asdict().items():
        own[section] = {name: own[section][name] for name in names}

    def where_read(path=()):
        return f"{where(['readings', *path])}: readings.{' and '.join(labels)}"

    own["title"] = f"{base.title}; read as {', '.join(labels)}"
    resolved = resolve(name, own, where_read, datasets, runs=runs)
    changed, shared = cells(base, resolved)
    return Reading(
        name,
        resolved.values,
        paths.reading(base.name, name.removeprefix(f"{base.name}__")),
        of=base.name,
        label=" and ".join(in_words(label.replace(".", ": ")) for label in labels),
        left_open="; ".join(reading.open for _, reading in chosen),
        tunes=resolved.tune != base.tune,
        own=changed,
        shared=shared,
    )


def _replaced(value, instead):
    """A copy of `value` in which names and numbers, but not keys, are replaced as `instead` says."""
    if isinstance(value, dict):
        return {key: _replaced(item, instead) for key, item in value.items()}
    if isinstance(value, list):
        items = []
        for item in (_replaced(item, instead) for item in value):
            if item not in items or item in value:  # two names may get the same replacement
                items.append(item)
        return items
    return instead.get(str(value), value)


def cells(base, reading):
    """(own, shared) cells of a reading: all that its verdicts need, if they differ or not."""

    def settings(experiment, method):
        return experiment.methods[method], experiment.split(method), experiment.restarts

    changed = {
        name
        for name in reading.methods
        if name not in base.methods or settings(base, name) != settings(reading, name)
    }
    known, needed = {*base.cells()}, needs.cells(reading)
    own, shared = [], []
    for cell in reading.cells():
        if cell in needed:
            differs = cell.method in changed or cell not in known
            (own if differs else shared).append(cell)
    return own, shared
