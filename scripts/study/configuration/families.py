"""Combine lists of values into the candidates of a search, or into the methods of a family.

A method with the key `vary` is a family: it stands for several ordinary methods, its members.
"""

import fnmatch
import itertools
import json
import re

from study import canonical
from study.configuration.experiment_keys import Family, Method


def expand(grid):
    """(lambda, options) of every combination of values, in listed order."""
    names = list(grid)
    combinations = (
        dict(zip(names, values, strict=True)) for values in itertools.product(*grid.values())
    )
    return [(each.pop("lambda", None), each) for each in combinations]


def shown(value):
    """An option's value as text, with null, true and false as in YAML."""
    as_json = value is None or isinstance(value, (bool, list, dict))
    return json.dumps(value) if as_json else canonical.number(value)


def spelled(value):
    """An option's value as part of a label, with `p` for a point and `m` for a minus: 0p5, 1em05."""
    text = shown(value)
    return text if isinstance(value, str) else text.replace(".", "p").replace("-", "m")


def labels(name, method):
    """(label, varied values) of every method that an entry of `methods` stands for."""
    vary = method.vary or {}
    template = method.label or name + "".join(f"_{key}{{{key}}}" for key in vary)
    members = []
    for lam, options in expand(vary):
        values = {key: lam if key == "lambda" else options[key] for key in vary}
        members.append((_filled(template, values, spelled), values))
    return members


def _filled(template, values, write):
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", write(value))
    return template


def resolve(value, without, fail):
    """Put members in place of families, and labels in place of patterns in lists of methods.

    value: the validated configuration, which also gets the key "families". without: labels of members
    that an overlay removes.
    """
    methods, members, families = value.methods, {}, {}
    for name, method in methods.items():
        for label, varied in labels(name, method):
            if label in without:
                continue
            if method.vary:
                _check_label(name, label, method, members, methods, fail)
                families.setdefault(name, []).append(label)
                members[label] = _member(method, name, varied)
            else:
                members[label] = method
    if families:
        value.families = {
            name: Family(vary=list(methods[name].vary), title=methods[name].title, members=own)
            for name, own in families.items()
        }
    value.methods = members
    for entries in (value.sweeps, value.tables, value.figures, value.analyses):
        for entry in entries.values():
            if entry.methods:
                entry.methods = named(entry.methods, members)
            options = getattr(entry, "options", {})
            for key in {"plain", "pretrained"} & options.keys():
                options[key] = named(options[key], members)
            panels = options.get("panels")
            if isinstance(panels, dict):
                options["panels"] = {title: named(panels[title], members) for title in panels}


def named(methods, labels):
    """A list of methods with, in place of a pattern such as `private_m*`, the labels that it matches."""
    if not isinstance(methods, list) or not all(isinstance(name, str) for name in methods):
        return methods
    found = []
    for name in methods:
        found += fnmatch.filter(labels, name) or [name]  # what no label matches is refused later
    return list(dict.fromkeys(found))


def _check_label(name, label, method, members, methods, fail):
    key = f"methods.{name}"
    unknown = [each for each in re.findall(r"{(.*?)}", label) if each not in method.vary]
    if unknown:
        raise fail(f"{key}.label", f"names {{{unknown[0]}}}, which is not varied")
    if not re.search(r"^[A-Za-z0-9][A-Za-z0-9_]*$", label):
        raise fail(
            key, f"makes the label {label!r}: it may hold letters, digits and underscores only"
        )
    if label in members or label in methods:
        raise fail(
            key,
            f"makes the label {label!r}, which another method has: give it a 'label' that tells "
            f"them apart, such as {name}_{'_'.join(f'{{{each}}}' for each in method.vary)}",
        )


def _member(method, name, values):
    settings = {k: v for k, v in method.mapping().items() if k not in ("vary", "label", "title")}
    title = method.title or ""
    if any(f"{{{key}}}" in title for key in values):
        settings["title"] = _filled(title, values, shown)
    lam = {key: value for key, value in values.items() if key == "lambda"}
    varied = {key: value for key, value in values.items() if key != "lambda"}
    return Method(**{"mechanism": name} | settings | lam | {"options": varied | method.options})
