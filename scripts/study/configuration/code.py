"""Find modules that a job loads by name, and digest the code of tables, figures and analyses."""

from dp.mechanisms import MECHANISMS
from study.configuration import kinds, options
from study.configuration.experiment import Experiment
from study.dependencies import digest, looks_up_mechanisms


def modules_of(method):
    """The modules of a method's mechanism and of the other mechanism that it may run."""
    taken = MECHANISMS[method.mechanism].defaults() | method.options
    return [MECHANISMS.module(each) for each in (method.mechanism, taken.get("of")) if each]


def mechanism_modules(experiment: Experiment):
    return sorted(
        {module for method in experiment.methods.values() for module in modules_of(method)}
    )


def of_entry(experiment: Experiment, section, name, script):
    entry = experiment.section(section)[name]
    loaded = [kinds.SECTIONS[section][entry.kind].module]
    if looks_up_mechanisms(script, *loaded):
        loaded += mechanism_modules(experiment)
        loaded += map(MECHANISMS.module, _named_mechanisms(entry.options))
    return digest(script, *sorted(set(loaded)))


def _named_mechanisms(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [name for item in value for name in _named_mechanisms(item)]
    return [value] if isinstance(value, str) and value in MECHANISMS else []


def modules_of_checks(experiment: Experiment, section):
    """The modules that the checks of a section load by name."""
    modules = set()
    entries = experiment.section(section).values()
    for check in (check for entry in entries for check in entry.checks or ()):
        kind = kinds.CHECKS[check.kind]
        named = options.named(kind.options, check.options, options.Mechanism)
        modules |= {kind.module, *map(MECHANISMS.module, named)}
    return sorted(modules)
