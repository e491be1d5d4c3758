"""The keys of config/audit.yaml."""

from typing import Annotated, Any

from annotated_types import Ge, Len

from study.configuration.section import (
    BelowOne,
    Count,
    Maybe,
    Name,
    Positive,
    Section,
    Share,
)

Epsilons = Annotated[list[Positive], Len(1)]
PositivePairs = Annotated[list[Annotated[list[Positive], Len(2, 2)]], Len(1)]
Trials = Annotated[int, Ge(4)]


class AttackSettings(Section):
    """An attack on a mechanism."""

    pair: Maybe[str] = None
    """A pair in scripts/dp_audit/pairs.py; by default, the label. A pair's test or exact loss may be for
    other mechanisms. Then trial releases find a test, and the ledger says why there is no exact loss."""
    epsilons: Maybe[Epsilons] = None
    """The claimed epsilons to attack, if the mechanism has an epsilon."""
    delta: BelowOne = 0
    """delta of (epsilon, delta)-DP."""
    options: dict[str, Any] = {}
    """Options of the mechanism, and `lam` and `bound`, besides those of the pair."""
    trials: Maybe[Trials] = None
    """Releases on each data set, for this attack alone."""


class ExactLosses(Section):
    """Privacy losses from densities, in results/audit/exact.csv."""

    delta: Share
    """delta of the Gaussian rows."""
    objective_perturbation: PositivePairs
    """Pairs of epsilon and n lambda."""
    gaussian_tilt: PositivePairs
    """Pairs: epsilon, and n lambda over the least value for which a Gaussian tilt's Jacobian is free."""
    classical_gaussian: Epsilons
    """Epsilons that the classical formula claims."""
    redrawn_functional: Epsilons
    """Epsilons of the functional mechanism with hidden re-draws."""
    laplace_coordinates: Epsilons
    """Epsilons of Laplace noise calibrated to an L2 bound."""
    laplace_dimension: Count
    """Number of weights of `laplace_coordinates`."""
    found_bounds: PositivePairs
    """Pairs of epsilon and the number of columns whose bounds a release finds."""


class AuditSettings(Section):
    """config/audit.yaml, with the changes of `audit` in config/config.yaml."""

    enabled: bool = True
    """Whether a plain run makes the ledger. The target `audit` always does."""
    strict: bool = False
    """Whether the audit fails if an attack or a replay finds more than a mechanism of the study claims. The
    ledger is still made."""
    trials: Trials
    """Releases on each of a pair's two data sets. Half of them choose the test; the others are tested. An
    attack takes at most 50,000 if the exact loss on the pair shows that it cannot refute the claim."""
    confidence: Share
    """Probability with which all lower bounds for a mechanism hold together."""
    default: dict[str, Epsilons]
    """Attacks on every private mechanism without an entry in `mechanisms`: pair -> the claimed epsilons to
    attack."""
    mechanisms: Annotated[dict[str, Annotated[dict[Name, AttackSettings], Len(1)]], Len(1)]
    """Mechanism -> attack's label -> its settings."""
    found_also_by: dict[str, str] = {}
    """Mechanism -> who else has shown its fault, and where."""
    exact: ExactLosses
