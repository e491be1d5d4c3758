"""Read files of sources and experiments, and add a source's claims and readings to its experiments.

config/sources/<key>/ contains source.yaml, printed.yaml and experiments. config/experiments/ contains
experiments without a source. A study may have the same folders.
"""

from pathlib import Path

from study import facts, paths
from study.configuration.faults import nearest, wrong_type
from study.configuration.validation import ConfigError, problem, read_yaml, validate

OTHERS = ("source", "printed")  # files in a source's folder that are not experiments


def experiment_files():
    """Name -> file of every experiment, except templates (names with a leading dot or _).

    A study's file replaces a shipped file of the same name. Any other repeated name raises ConfigError.
    """
    files = {}
    for path in paths.configuration("experiments/*.yaml", "sources/*/*.yaml"):
        of_source = paths.source_of(path)
        if path.name[0] in "._" or (of_source and (path.stem in OTHERS or of_source[0] in "._")):
            continue
        other = files.get(path.stem)
        if other and _root(other) == _root(path):
            raise problem(
                path, "", f"the name {path.stem!r} is taken by {other}: rename one of them"
            )
        files[path.stem] = path
    return dict(sorted(files.items(), key=lambda item: (_root(item[1]) == Path("config"), item[0])))


def _root(path):
    return path.parents[2 if paths.source_of(path) else 1]


def load(experiments=None):
    """Key -> `study.facts.Source` of each source that `experiments` name, or of all if None."""
    sources, files, available = {}, facts.files(), experiment_files().keys()
    if experiments is not None:
        named = [value.get("source") for value, *_ in experiments.values()]
        files = {key: path for key, path in files.items() if key in named}
    for key, path in files.items():
        source = sources[key] = validate(read_yaml(path), facts.Source, str(path))
        if source.key != key:
            named = "folder" if paths.source_of(path) else "file"
            raise ConfigError(f"{path}: key: must be {key!r}, the {named}'s name")
        for section in ("claims", "defects"):
            ids = [entry.id for entry in getattr(source, section)]
            if len(set(ids)) < len(ids):
                twice = next(name for name in ids if ids.count(name) > 1)
                raise ConfigError(f"{path}: {section}: duplicate id {twice!r}")
        for entry in source.claims:
            for other in {shown.partition("/")[0] for shown in entry.shown_in or ()} - available:
                place = f"{path}: claims.{entry.id}.shown_in"
                raise ConfigError(f"{place}: no experiment {other!r}{nearest(other, available)}")
        try:
            source.read_tables(path.parent)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        for name, table in source.tables.items():
            if isinstance(table, str):
                raise ConfigError(
                    f"{path}: tables.{name}: {table!r} is neither a number nor a .csv file"
                )
        named = [
            (f"defects.{entry.id}.numbers", place)
            for entry in source.defects
            for place in entry.numbers or ()
        ]
        named += [("headline_number", source.headline_number)] * bool(source.headline_number)
        for key, place in named:
            try:
                source.look_up(place)
            except KeyError as error:
                raise ConfigError(f"{path}: {key}: {error.args[0]}") from None
        known = [entry.id for entry in source.claims]
        for name in (name for name in source.headline_claims if name not in known):
            raise ConfigError(f"{path}: headline_claims: no claim {name!r}{nearest(name, known)}")
        for name, values in source.stated.items():
            known = [*source.readings]
            if name not in known:
                raise ConfigError(f"{path}: stated: no reading {name!r}{nearest(name, known)}")
            known = [source.readings[name].get("main"), *source.readings[name].get("others", ())]
            for value in (value for value in values if value not in known):
                near = nearest(value, known)
                raise ConfigError(
                    f"{path}: stated.{name}: the reading has no value {value!r}{near}"
                )
        known = [*map(str, source.figures or ())]
        if source.headline_original and source.headline_original not in known:
            near = nearest(source.headline_original, known)
            raise ConfigError(
                f"{path}: headline_original: no key {source.headline_original!r} in figures{near}"
            )
    return sources


def experiments(names=None):
    """Name -> (configuration, sizes, where) of these experiments, including entries from sources' files.

    names: None for all. sizes: name of a size -> changes, merged like `settings`. where: a function from a
    key's parts to the file's name.
    """
    available, entries = experiment_files(), {}
    names = [name for name in available if names is None or name in names]
    values = {name: read_yaml(available[name]) for name in names}
    files = facts.files()
    if len(names) < len(available):
        named = [value.get("source") for value in values.values()]
        files = {key: path for key, path in files.items() if key in named}
    added = _given(available, files)
    for name, value in values.items():
        path = available[name]
        sizes = value.pop("sizes", {})
        if not isinstance(sizes, dict):
            raise problem(path, "sizes", wrong_type("a mapping", sizes))
        for size, changes in sizes.items():
            if not isinstance(changes, dict):
                raise problem(path, f"sizes.{size}", wrong_type("a mapping", changes))
        source = value.get("source")  # the schema refuses a source that is not a string
        known = (source, name) if isinstance(source, str) else None
        file, sections = added.get(known, (path, {}))
        entries[name] = (_with(value, sections), sizes, _where(path, file, sections))
    for (key, name), (file, _) in added.items():
        if name in entries and entries[name][0].get("source") != key:
            raise problem(file, "", f"{name!r} names another source than {key!r}")
    return entries


def concerned(names):
    """As `experiments`, for these names and all experiments on which their claims and defects depend."""
    read, waiting = {}, {*names}
    available = experiment_files()
    while waiting:
        added = experiments(waiting)
        read |= added
        words = [
            _words([value.get("claims"), value.get("defects")]) for value, *_ in added.values()
        ]
        waiting = set().union(*words) & available.keys() - read.keys()
    return read


def _words(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return set().union(*map(_words, value))
    return {value} if isinstance(value, str) else set()


def _with(value, sections):
    value = dict(value)
    for section, entries in sections.items():
        own = value.get(section, type(entries)())
        if isinstance(own, type(entries)):  # the schema refuses other types
            value[section] = entries | own if isinstance(own, dict) else entries + own
    return value


def _where(own, source, added):
    """A function from a key's parts to the file that contains the key.

    own: the experiment's file. source: its source's file. added: section -> what the source's file adds.
    """

    def where(parts=()):
        section = parts[0] if parts else None
        entry = parts[1] if len(parts) > 1 else None
        if section not in added:
            return str(own)
        has_names = isinstance(
            added[section], dict
        )  # the items of the section `together` have none
        if has_names and entry not in added[section]:
            return str(own)
        return str(source)

    return where


def _given(available, files):
    """(source, experiment) -> (the source's file, section -> entries that it adds to the experiment)."""
    additions = {}
    for key, path in files.items():
        source = validate(read_yaml(path), facts.Source, str(path))
        own = [name for name, file in available.items() if paths.source_of(file) == key]

        def add(experiment, place, section, name, content, key=key, path=path, own=own):
            experiment = experiment or (own[0] if len(own) == 1 else None)
            if experiment is None:
                text = "the key 'experiment' is missing: it says which one decides this"
                raise problem(path, place, text)
            if experiment not in [*available]:
                near = nearest(experiment, list(available))
                raise problem(path, place, f"no experiment {experiment!r}{near}")
            sections = additions.setdefault((key, experiment), (path, {}))[1]
            sections.setdefault(section, {})[name] = content

        for section in ("claims", "defects"):
            for name, entry in source.statements(section).items():
                given = entry.mapping()
                decides = {k: v for k, v in given.items() if k in facts.DECIDES}
                if decides or entry.experiment:
                    add(entry.experiment, f"{section}.{name}", section, name, decides)
        for name, entry in source.readings.items():
            content = {k: v for k, v in entry.items() if k != "experiment"}
            add(entry.get("experiment"), f"readings.{name}", "readings", name, content)
        for labels in source.together:
            reading = labels[0].partition(".")[0]
            for (named, _), (_, sections) in additions.items():
                if named == key and reading in sections.get("readings", ()):
                    sections.setdefault("together", []).append(labels)
    return additions
