"""The keys of config/sources/<key>/source.yaml."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from annotated_types import Len
from pydantic import StringConstraints
from typing_extensions import TypeAliasType

from study.configuration.section import Either, Maybe, Number, Section

# Type checkers do not resolve unions that name themselves.
if TYPE_CHECKING:
    Facts: TypeAlias = Any
    Values: TypeAlias = Any
else:
    Facts = TypeAliasType(
        "Facts", Either[str | Number | bool | list["Facts"] | dict[Any, "Facts"] | None]
    )
    Listed, Named = Annotated[list["Values"], Len(1)], Annotated[dict[Any, "Values"], Len(1)]
    Values = TypeAliasType("Values", Either[str | Number | Listed | Named])


class _Decided(Section):
    experiment: Maybe[str] = None
    """Which experiment decides it, if the folder has not just one."""
    not_tested: Maybe[str] = None
    """Why nothing here can decide it; without checks."""
    given: Maybe[str] = None
    """As in an experiment's `claims`."""
    again: Maybe[str] = None
    """As in an experiment's `claims`."""
    trivia: Maybe[str] = None
    """As in an experiment's `claims`."""
    checks: Maybe[list[dict[str, Any]]] = None
    """As in an experiment's `claims`: all must hold."""


FigureName = Annotated[str, StringConstraints(pattern="^[^/]+/[^/]+$")]
Link = Annotated[str, StringConstraints(pattern="^https?://")]


class Claim(_Decided):
    """What the source says about its results."""

    id: str
    """Name of the statement in tables."""
    where: Maybe[str] = None
    """Section or figure."""
    shown_in: Maybe[list[FigureName]] = None
    """<experiment>/<figure> of each figure that shows it, and so bears its verdict in the report."""
    says: str
    """The statement."""
    size: ClassVar[None] = None


class Defect(_Decided):
    """What is wrong with the source's method or numbers."""

    id: str
    """Name of the defect in tables."""
    what: str
    """What is wrong."""
    size: Maybe[str] = None
    """How much it matters."""
    numbers: Maybe[list[str]] = None
    """Paths of printed numbers that it is about. They are judged here, and not compared with ours again."""
    where: ClassVar[None] = None
    shown_in: ClassVar[None] = None

    @property
    def says(self) -> str:
        return self.what


class Document(Section):
    """Facts of one published document, as printed. Only what compares with them reads them."""

    key: str
    """The folder's name, by which experiments name their source."""
    short: str
    """Abbreviation used in tables."""
    cited: Maybe[str] = None
    """Authors, year and title with its subtitle, and in brackets the kind or venue, for the report; with a
    semicolon between two documents."""
    link: Maybe[Link] = None
    """Where the document is."""
    program: Maybe[str] = None
    """The authors' program, and where it is. Without one, what holds is *replicated*, in ACM's terms."""
    headline: Maybe[FigureName] = None
    """<experiment>/<figure>, the source's best-known figure, for the report."""
    headline_original: Maybe[str] = None
    """The key in `figures` that describes this figure in the source."""
    headline_claims: list[str] = []
    """Ids of the claims for which the source is best known, for the report."""
    headline_number: Maybe[str] = None
    """Path of the printed number for which it is, for the report."""
    adjacency: Maybe[str] = None
    """Which data sets are neighbours in the source's guarantee."""
    objective: Maybe[str] = None
    """What is minimised."""
    mechanisms: Facts = None
    """Noise as printed."""
    other_methods_named: Maybe[list[str]] = None
    """Methods named but not evaluated."""
    settings: Facts = {}
    """Protocol: data, sizes, epsilons, regularisation, folds."""
    tables: dict[Any, Values] = {}
    """Printed numbers by table. A text that ends in .csv names a file beside this one."""
    figures: Facts = None
    """What each figure shows."""
    claims: list[Claim] = []
    """What the source says about its results."""
    defects: list[Defect] = []
    """What is wrong with the source's method or numbers."""
    readings: dict[str, dict[str, Any]] = {}
    """What the source leaves open, as in an experiment. The key `experiment` is needed unless the folder
    has exactly one."""
    stated: dict[str, dict[str, str]] = {}
    """Reading -> value -> what the text says for this value. Other values of the reading, perhaps the main
    one, contradict the text, and the report says so."""
    together: list[Annotated[list[str], Len(2)]] = []
    """Readings that also run together, as in an experiment."""
