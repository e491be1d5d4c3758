"""The keys of config/releases/<name>.yaml."""

from typing import Annotated, Any, Literal

from annotated_types import Gt, Le, Len

from study.configuration.data_set_keys import Cell
from study.configuration.section import (
    AS_WRITTEN,
    BelowOne,
    Count,
    Maybe,
    NotEmpty,
    Number,
    Positive,
    Section,
    Share,
)


class Spending(Section):
    """What all releases of the book may spend together."""

    epsilon: Positive
    """The sum of epsilons."""
    delta: BelowOne = 0
    """The sum of deltas."""


class Person(Section):
    """A person with several rows."""

    column: str
    """The column that says whose a row is. Ids are compared byte by byte. A row without one counts
    nothing."""
    most: Count
    """The most rows of a person that are used: the first ones in the file that are read. Noise grows with
    it."""
    people: Count
    """The public number of people. If there are more in the file, the key chooses who counts nothing."""
    count: Maybe[Literal["rows", "persons"]] = None
    """`rows` (the default): every row counts. `persons`: a person's rows weigh one over their number, with
    the noise of one row per person. What is estimated is then a mean over people."""


class ReleaseRequest(Section):
    """One model of own rows that may be published. The book records its name, which can be used once."""

    title: Maybe[str] = None
    """The card's heading: what the model is of."""
    released_by: Maybe[str] = None
    """Who publishes the model; the card says so."""
    contact: Maybe[str] = None
    """Whom readers of the card may ask."""
    labels: dict[str, NotEmpty] = {}
    """Words for the table and the figure: column -> words, and for a level `column=level` -> words."""
    data: str
    """A data set of datasets.yaml: one CSV whose columns have public bounds or categories."""
    rows: Maybe[Count] = None
    """The public number of lines, without the header; needed unless `person` is stated. A line counts
    nothing if it has more than 64 KiB (or more than 200 bytes per column of the file, if that is more)."""
    unit: NotEmpty
    """What one row is, such as `one row is one person`. The guarantee protects this unit, or a person with
    `person`."""
    person: Maybe[Person] = None
    """Protects a person with several rows, in place of a row. The number of people is then public, and
    that of rows is not."""
    book: NotEmpty
    """The folder of the budget book of these people, beside their rows. All studies of them share it. Only
    its owner may read it: keep it out of repositories and shared backups."""
    budget: Spending
    """What all releases of the book may spend together. The first release fixes it."""
    epsilon: Annotated[float, Gt(0), Le(50), AS_WRITTEN]
    """Epsilon that this release spends."""
    delta: Maybe[Share] = None
    """Delta that this release spends, needed unless the law is `pure`. It should be far below one over the
    number of rows."""
    method: str
    """`noise_aware_logistic` (two classes) and `noise_aware_log_cosh` (a number) give a table with
    intervals. `knorm_objective_perturbation` (with delta 0) and `gaussian_objective_perturbation` give only
    weights, with less noise."""
    law: Maybe[Literal["gaussian", "pure", "mixed", "rule"]] = None
    """The noise's law: by default `gaussian`. For a table, `pure` takes no delta, and `mixed` has Gaussian
    noise on the Hessian alone; `rule` lets a public rule choose one of the two. Both usually have narrower
    intervals than `gaussian`, above all with categories. `knorm_objective_perturbation` is `pure`."""
    options: dict[str, Any] = {}
    """Options of the method: `robust`, `tau` and, for the law `gaussian`, `radius`, `output`, `covariance`.
    For two classes under another law, `offset: paid` spends a tenth of epsilon on the class rate first,
    which a rare class needs; `none` does not, and `rule`, the default, decides by public numbers. A rule
    gives lambda."""
    reference: dict[str, Cell] = {}
    """Column -> the level with which its other levels are compared; by default, the first one listed."""
    negative: Maybe[str | Number | Annotated[list[Cell], Len(1)]] = None
    """The label or labels that become -1. As in `positive`, quote `yes`, `no`, `true` and `false`. Rows
    with other labels then count nothing. By default, every label becomes -1 that is neither missing nor
    `positive`."""
    holdout: Maybe[Share] = None
    """The share of rows to hold out. The model does not learn from them, and the release counts errors on
    them, with noise."""
    premise: Literal[
        "chosen without these rows",
        "chosen without these rows, although a benchmark of them exists",
        "public example",
    ]
    """How the settings above were chosen. The card says so."""
