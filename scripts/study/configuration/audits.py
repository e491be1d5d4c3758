"""Read and check the audit's configured attacks, before anything runs."""

import math
from functools import partial
from typing import NamedTuple

from dp.mechanisms import MECHANISMS
from dp_audit import pairs
from dp_audit.audit import CONTROLS, check, find, suited
from dp_privacy.errors import Refused
from study import arguments, canonical, paths
from study.configuration import accepted
from study.configuration.audit_keys import AttackSettings, AuditSettings
from study.configuration.code import modules_of
from study.configuration.config import ConfigError, merge, read_yaml, validate
from study.configuration.experiment_keys import Method
from study.configuration.faults import nearest

EXACT = ("objective_perturbation_cm08", "objective_perturbation", "output_perturbation")


class Attack(NamedTuple):
    """A job: an attack on a mechanism, with one pair of neighbours and one epsilon."""

    mechanism: str
    label: str
    epsilon: float

    @property
    def path(self):
        epsilon = canonical.epsilon(self.epsilon)
        return paths.ATTACK(mechanism=self.mechanism, label=self.label, epsilon=epsilon)


class Audits:
    """The attacks that `settings` (`AuditSettings`) ask for."""

    def __init__(self, settings):
        self.settings = settings
        self.mechanisms = settings.mechanisms

    def attacks(self, mechanism=None):
        return [
            Attack(name, label, epsilon)
            for name, attacks in self.mechanisms.items()
            if mechanism in (None, name)
            for label, attack in attacks.items()
            for epsilon in attack.epsilons
        ]

    def first_attacks(self):
        """For every mechanism and label, the attack at the first epsilon."""
        first = {(attack.mechanism, attack.label): attack for attack in reversed(self.attacks())}
        return [attack for attack in self.attacks() if first[attack[:2]] == attack]

    def attack(self, mechanism, label):
        """{pair, delta, options, trials, confidence, family} of one attack, the same at all its epsilons.

        family: the number of attacks on the mechanism. Their bounds hold simultaneously with probability
        `confidence`.
        """
        attack = {
            "trials": self.settings.trials,
            "confidence": self.settings.confidence,
            "family": len(self.attacks(mechanism)),
            **self.mechanisms[mechanism][label].plain(),
        }
        del attack["epsilons"]
        return attack


def load(changes, experiments=None):
    """The `Audits` of config/audit.yaml, with changes, those of the section `audit` of a configuration.

    experiments: if not None, only their mechanisms, the controls, and mechanisms that a study adds or names
    in its config/audit.yaml are attacked.
    """
    files = paths.configuration("audit.yaml")
    where = " and ".join(map(str, files))
    where += ", with the changes of `audit` in the configuration" if changes else ""
    shipped, *own = (*map(read_yaml, files), changes)  # type: ignore[misc]
    attacks = shipped.get("mechanisms")
    attacks = attacks if isinstance(attacks, dict) else {}  # the schema reports other types
    listed, concerned = set(attacks), {*MECHANISMS, *CONTROLS}
    if experiments is not None:
        methods = [method for experiment in experiments for method in experiment.methods.values()]
        concerned = {method.mechanism for method in methods}
        concerned |= {method.options["of"] for method in methods if "of" in method.options}
        concerned |= {*MECHANISMS.added(), *CONTROLS}
        left_out = {name: attacks.pop(name) for name in listed - concerned}
        own = [_without(change, left_out) for change in own]
    for change in own:
        shipped = merge(shipped, change)
    values = validate(shipped, AuditSettings, where)
    for name in MECHANISMS:
        known = listed | values.mechanisms.keys()
        if name in concerned - known and find(name).private:
            attacks = _default(name, values)
            if values.strict and name in MECHANISMS.added() and not attacks:
                raise ConfigError(
                    f"{where}: {name} accepts no pair of `default`, so no attack could refute it: choose "
                    f"pairs for it under `mechanisms`, or leave `strict` out"
                )
            values.mechanisms |= attacks
    names = [*MECHANISMS, *CONTROLS]
    for name, attacks in values.mechanisms.items():
        if name not in names:
            raise ConfigError(f"{where}: mechanisms: no mechanism {name!r}{nearest(name, names)}")
        for label, attack in attacks.items():
            key = f"{where}: mechanisms.{name}.{label}"
            attack.pair = attack.pair or label
            private = find(name).private
            if bool(attack.epsilons) != private:
                problem = (
                    "is missing" if private else f"needs a private mechanism, and {name} is not one"
                )
                raise ConfigError(f"{key}: the key 'epsilons' {problem}")
            attack.epsilons = canonical.grid(attack.epsilons) if private else [math.inf]
            if attack.pair not in pairs.PAIRS:
                near = nearest(attack.pair, list(pairs.PAIRS))
                raise ConfigError(f"{key}: no pair {attack.pair!r}{near}")
            # If the audit is disabled, each attack is checked only by its own job.
            checked = values.enabled and arguments.can_check()
            modules = ()
            if name in MECHANISMS:
                modules = modules_of(Method(mechanism=name, options=attack.options))
            for epsilon in attack.epsilons if checked else ():
                asked = name, attack.pair, epsilon, attack.delta
                ask = partial(check, find(name), *asked[1:], **attack.options)
                try:
                    accepted.once(
                        ask, (asked, attack.options), "study/configuration/audits.py", *modules
                    )
                except (ValueError, TypeError) as error:
                    raise ConfigError(f"{key}: {error}") from None
    return Audits(values)


def _without(change, left_out):
    """A change, such as an overlay, without mechanisms in `left_out` for which it has no whole attack.

    An attack is whole if it has epsilons, or a label that is not among those left out.
    """
    mechanisms = change.get("mechanisms")
    if not isinstance(mechanisms, dict):
        return change

    def whole(name, label, attack):
        return label not in left_out[name] or "epsilons" in (attack or ())

    left = {
        name: attacks
        for name, attacks in mechanisms.items()
        if name not in left_out or any(whole(name, *item) for item in (attacks or {}).items())
    }
    return change | {"mechanisms": left}


def _default(name, values):
    """{name: attacks} of a mechanism on the default pairs that it accepts; {} if it accepts none."""
    delta = values.exact.delta if find(name).delta == "needed" else 0.0
    attacks = {}
    for pair, epsilons in values.default.items():
        options = suited(name, pair)
        try:
            for epsilon in epsilons:
                check(find(name), pair, epsilon, delta, **options)
        except Refused:
            continue
        attacks[pair] = AttackSettings(epsilons=epsilons, delta=delta, options=options)
    return {name: attacks} if attacks else {}
