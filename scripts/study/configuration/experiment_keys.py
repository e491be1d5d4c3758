"""The keys of an experiment's file, config/experiments/<name>.yaml or config/sources/<key>/<name>.yaml."""

from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Len
from pydantic import Field

from study.configuration.section import (
    DISTINCT,
    MADE,
    BelowOne,
    Count,
    Either,
    Maybe,
    Name,
    Names,
    Number,
    Positive,
    Section,
    Several,
    Share,
)

Lambda = Positive | Literal["published", "tuned", "searched", "selected", "rule"]
Sizes = int | list[int]
Epsilons = Number | list[Number] | None
Changes = dict[str, Any]


class WholeRange(Section):
    """Whole numbers at equal distances."""

    from_: Count
    """First value of a range."""
    to: Count
    """Last value of a range, included."""
    step: Count
    """Distance between neighbours of a range."""


class Range(Section):
    """Numbers at equal distances."""

    from_: Positive
    """First value of a range."""
    to: Positive
    """Last value of a range, included."""
    step: Positive
    """Distance between neighbours of a range."""


class LambdaTable(Section):
    """A lambda for each training size."""

    train_sizes: Annotated[list[Count], Len(1), DISTINCT]
    """Training sizes."""
    lambdas: Annotated[list[Positive], Len(1)]
    """The value at each training size."""


class Selection(Section):
    """How a setting is selected privately."""

    law: Maybe[Literal["logarithmic", "geometric", "poisson"]] = None
    """Distribution of the number of runs; by default, logarithmic."""
    runs: Maybe[Positive] = None
    """Average number of runs; by default, 3."""
    share: Maybe[Share] = None
    """Share of a run's budget for its score; by default, 0.1."""
    score: Maybe[Literal["noisy", "exact"]] = None
    """`exact` has no noise, as is often done. It costs more than is claimed."""


class Search(Section):
    """How settings are chosen by cross-validation."""

    method: str
    """The method whose settings are tried."""
    grid: Either[Annotated[dict[str, Annotated[list[Any], Len(1)]], Len(1)] | Literal["published"]]
    """`lambda` and options of the method, each with the values to try, the preferred one first. Without
    `lambda`, the mechanism's rule gives it. Or `published`, the source's grid."""
    published: dict[str, str] = {}
    """`lambda`, an option or `simulations` -> the path in config/sources/<source>/source.yaml of what the
    source states: values, the preferred one first, or the number of simulations. A printed value or claim
    that fails after a search with fewer is not tested."""
    folds: Several
    """Folds of each simulation's training rows."""
    simulations: Maybe[Count] = None
    """Number of simulations or folds, the first ones; by default, all."""
    instead: Maybe[dict[str, str]] = None
    """A data set of the experiment -> one of config/datasets.yaml with the same rows prepared differently,
    for the search to use instead."""
    by: Literal["error", "bounded_loss"] = "error"
    """What the search minimises: the error (for numbers, the mean squared error), or the bounded loss of
    private selection."""
    rows: Literal["private", "public"] = "private"
    """Rows of the validation errors. `private`: those that methods train on, which is not paid for.
    `public`: the data set's public or holdout rows, at the epsilon that gives the same noise for their
    number."""
    selection: Selection = Field({}, validate_default=True)
    """For methods with `lambda: selected`, which draw settings from the grid, run with each, and release
    the best run. Epsilon pays for runs and scores. Values of the grid replace the method's own."""


class TuningGrid(Section):
    """Logarithmic grid of candidates."""

    low: Positive
    """Smallest lambda."""
    high: Positive
    """Largest lambda."""
    values: Several
    """Number of candidates."""


class Tune(Section):
    """How lambda is tuned, whether or not the tuned value is used."""

    grid: TuningGrid
    folds: Several
    """Folds of the tuning's own cross-validation."""
    loss: str = "logistic"
    """Loss of the non-private fits."""
    lasso: Maybe[Literal["mean", "summed", "standardised", "lassoglm"]] = None
    """Tunes the lasso in place of an L2 penalty. The value says what lambda stands for, like the option
    penalty_scale of mechanisms."""


class Fit(Section):
    """A fit without privacy, which methods may share."""

    name: str
    """Its name."""
    options: dict[str, Any]
    """Its options."""


class Family(Section):
    """The methods of an entry with `vary`."""

    vary: list[str]
    """The options that differ."""
    title: Either[str | None]
    """The family's title."""
    members: list[str]
    """Labels of the methods."""


class Method(Section):
    """What a method runs; with `vary`, a family of methods."""

    NEEDS = {"label": ("vary",)}

    mechanism: Maybe[str] = None
    """A name from scripts/dp/mechanisms; by default, the label."""
    title: Maybe[str] = None
    """Name in legends and tables. With `vary`, `{<option>}` in it is filled in; without `{<option>}`, it
    names the family."""
    options: dict[str, Any] = {}
    """Options of the mechanism, such as loss or calibration."""
    vary: Maybe[Annotated[dict[str, Annotated[list[Any], Len(1), DISTINCT]], Len(1)]] = None
    """Options of the mechanism, and `lambda`, each with a list of values. The entry is then a family: one
    method per combination, in the lists' order, the last option changing fastest. Lists of methods in
    sweeps, tables, figures and analyses may have patterns of labels, such as `"steps_b*"`. An overlay
    replaces a list of values, and `null` for a member's label removes the member. results.csv has a column
    for every varied option."""
    label: Maybe[str] = None
    """Label of each method of `vary`, with `{<option>}` filled in; by default,
    `<name>_<option>{<option>}..`. Values, including `null`, `true` and `false`, are spelled as in YAML.
    Numbers have 9 significant digits, with `p` for the point and `m` for a minus: `0p5`, `1em05`. Two
    methods with one label are refused."""
    delta: Either[BelowOne | Literal["rule", "squared"]] = 0
    """delta of (epsilon, delta)-differential privacy: a number or, for n training rows, `rule`, min(1e-6,
    1/(10 n)), or `squared`, 1/n^2, as in some sources."""
    lambda_: Maybe[Lambda] = None
    """As above, for this method alone."""
    after_results: Maybe[Literal[True]] = None
    """Whether its settings were changed after results had been seen. It then stands beside the recommended
    methods, and does not compete."""
    simulations: Maybe[Several] = None
    """As above, for this method alone. It may share no fit with others."""
    search: Maybe[str] = None
    """The search that chooses lambda and options (`lambda: searched`), or from whose settings private
    selection draws (`lambda: selected`)."""
    private: Annotated[bool | None, MADE] = None
    """Whether the mechanism is private."""
    fit: Annotated[Fit | None, MADE] = None
    """The fit without privacy that it shares."""


class Sweep(Section):
    """A product of training sizes and epsilons."""

    train_sizes: Either[Annotated[list[Count], Len(1)] | WholeRange]
    """Numbers of training rows, nested prefixes of each fold: a list or a range."""
    epsilons: Either[Annotated[list[Positive], Len(1)] | Range]
    """Privacy parameters of private methods: a list or a range."""
    datasets: Maybe[Names] = None
    """Only these data sets; all if not given."""
    methods: Maybe[Names] = None
    """Only these methods; all if not given."""


class Entry(Section):
    """A table, figure or analysis."""

    kind: str
    """What it shows or computes: a function below @table, @figure or @analysis."""
    title: str
    """Heading or caption. `{train_size}` and `{epsilon}` stand for its cells' values: one, two, or the ends
    of several. An option's name, its own or its analysis', stands for the option's value."""
    sweep: Maybe[str | Annotated[list[str], Len(1)]] = None
    """For kinds that show cells: the sweep that has them, or a list of sweeps."""
    analysis: Maybe[str] = None
    """For kinds that show an analysis: its name."""
    datasets: Maybe[Names] = None
    """Only these data sets; all if not given."""
    methods: Maybe[Names] = None
    """Only these methods; all if not given."""
    options: dict[str, Any] = {}
    """Options of the kind, such as log_error."""
    suffix: Annotated[str | None, MADE] = None
    """The extension of an analysis's file."""


class Check(Section):
    """A computation that must hold."""

    kind: str
    """A function below @check in scripts/checks or scripts/sources."""
    analysis: Maybe[str] = None
    """For kinds that read an analysis: its name."""
    table: Maybe[str] = None
    """A table to read in place of an analysis."""
    options: dict[str, Any] = {}
    """Arguments of the check."""


class Statement(Section):
    """How a claim or defect of the source is decided."""

    not_tested: Maybe[str] = None
    """Why nothing here can decide it; without checks."""
    given: Maybe[str] = None
    """A printed value, as <comparison>/<number of its value>, such as that of the model without noise. Only
    readings that come near this value decide the statement; the main one counts as a reading, too."""
    again: Maybe[str] = None
    """The id of the statement, of this or another source, that says the same. This one is shown, and not
    counted."""
    trivia: Maybe[str] = None
    """Why it is no result, such as a consequence of a proof or of other printed numbers. It is shown, and
    counted among the other numbers."""
    checks: Maybe[Annotated[list[Check], Len(1)]] = None
    """All must hold."""


class Protocol(Section):
    """How each printed number was made, so that ours are resampled in the same way."""

    folds: Count
    """Folds or simulations that it is over."""
    draws: Maybe[Count] = None
    """Draws of the noise on each; by default, as many as ours."""
    shared: bool = False
    """Whether all folds have the same draws, as with one seed for each."""
    data_drawn: bool = False
    """Whether the data set is itself a draw. A row may have its own value."""
    sd: Literal["folds", "draws"] = "folds"
    """What a printed standard deviation is over: means of folds, or all draws."""


class PrintedRow(Section):
    """Which value is compared with which cell."""

    value: str
    """Path below `values`, with {train_size} and {epsilon} filled in."""
    dataset: Maybe[str] = None
    """Data set of the cell."""
    method: Maybe[str] = None
    """Method of the cell."""
    train_size: Maybe[Sizes] = None
    """As above, for this row."""
    epsilon: Either[Epsilons] = None
    """As above, for this row."""
    column: Maybe[str] = None
    """As above, for this row."""
    data_drawn: Maybe[bool] = None
    """As in protocol, for this row."""
    unlike: Maybe[str] = None
    """As above, for this row."""
    where: dict[str, Any] = {}
    """Further columns, and the values that they must have."""


class Comparison(Section):
    """A comparison with printed values of the source."""

    checks: ClassVar[tuple] = ()  # it is none of a statement, which has checks

    title: str
    """Heading."""
    values: str
    """Place in config/sources/<source>/source.yaml, a path such as tables/table_2."""
    layout: Literal["number", "mean_sd"] = "number"
    """What is there: a number, or a mean with its standard deviation."""
    quantity: Literal["error", "accuracy", "accuracy_percent", "value", "setting"] = "error"
    """What is printed. `value`: a column that is not an error. `setting`: what the source chose. A private
    method's value is undecided unless the noiseless value of its data, above it or else below it, is
    near."""
    again: Maybe[bool] = None
    """Whether the source prints these numbers elsewhere, too. They are shown, and not counted."""
    trivia: Maybe[str] = None
    """Why these numbers are no results, such as counts, or a column that follows from another one. They are
    shown, and counted among the other numbers, as settings and standard deviations are."""
    bound: Maybe[Literal["at_least", "at_most"]] = None
    """Whether the source prints a bound, as in "no less than". Ours agrees if it is on the same side."""
    analysis: Maybe[str] = None
    """The analysis that has our values; by default, results.csv has them."""
    table: Maybe[str] = None
    """The table that has our values, in place of an analysis."""
    column: Maybe[str] = None
    """Column of our values, with {epsilon} filled in; by default, error_mean. Without a table or analysis,
    it may be one that the mechanism reports per draw, such as noise_variance."""
    decimals: Maybe[Annotated[int, Ge(0)]] = None
    """The least number of decimals of a printed number, for tables that mix notations; by default, that of
    the column's longest number."""
    train_size: Maybe[Sizes] = None
    """Training rows of the published run, or several."""
    epsilon: Either[Epsilons] = None
    """Epsilon of the published run, or several."""
    protocol: Maybe[Protocol] = None
    """How each printed number was made, so that ours are resampled in the same way; by default, as ours."""
    implied_epsilon: bool = False
    """Whether to compute the epsilon that each value implies."""
    calibrated: Maybe[str] = None
    """Why agreement is no evidence: parameters were chosen to match."""
    unlike: Maybe[str] = None
    """Settings that the source does not state, or chose otherwise. A value that fails is not tested."""
    note: Maybe[str] = None
    """What a reader must know."""
    rows: Annotated[list[PrintedRow], Len(1)]
    """Which value is compared with which cell."""


class LeftOpen(Section):
    """What the source leaves open, and its readings."""

    open: str
    """The choice that the source does not state, and why it matters."""
    main: str
    """What the main results use."""
    others: Annotated[dict[Name, Changes], Len(1)]
    """Other value -> its changes of this experiment, merged as `settings` are. `instead`, a mapping,
    replaces names or numbers in data sets, sweeps, comparisons and claims."""
    decides: Maybe[Names] = None
    """Entries of `published` and `claims` to which the reading applies; by default, all that cells decide.
    Each reading also makes the table, analysis or tuning that decides another entry."""


class ExperimentFile(Section):
    """An experiment. One without sweeps only describes its data."""

    NEEDS = {"sweeps": ("methods", "restarts", "lambda"), "methods": ("sweeps",)}

    title: str
    """One line for reports."""
    source: Maybe[str] = None
    """Key of the published document (config/sources) that it regenerates."""
    datasets: Names
    """Names from config/datasets.yaml."""
    folds: Maybe[Several] = None
    """Cross-validation folds. The test part of each fold stays fixed along a learning curve."""
    divisions: Maybe[Several] = None
    """How often rows are divided into folds anew, unless simulated alike (`data_replicates`). Divisions
    share the draws. Intervals are then over divisions of the same rows, as for a source with these rows."""
    simulations: Maybe[Several] = None
    """In place of `folds`: reshuffles of the training rows, whose prefixes are the nested training subsets.
    All are tested on the data set's test part. Without one, each reshuffle leaves out a quarter of the rows
    for its test."""
    subsets: Maybe[Literal["training", "whole"]] = None
    """What a training size counts. `training` (the default): the first rows of each fold's training part.
    `whole`: the first rows of the data set in its own order, which are then cut into the folds."""
    labels: Maybe[Literal["signs", "zero_one", "one_zero"]] = None
    """How labels enter the loss. `signs` (the default): as -1 and 1. By mistake, some programs use 0 and 1:
    `zero_one` has the label 1 as 1, and `one_zero` the label -1 as 1. A row of label 0 then has the margin
    0 for all weights, like a row of zeros."""
    draws: Maybe[Literal["own", "shared", "fresh"]] = None
    """A fold's draws of the noise. `own` (the default): its own, with the same unit draws at every training
    size and epsilon. `shared`: common to all folds, as in a program that resets its seed for each fold.
    `fresh`: its own, anew at every training size and epsilon."""
    restarts: Maybe[Count] = None
    """Independent draws of the noise per fold."""
    lambda_: Maybe[Lambda] = None
    """Regularisation in addition to the mean loss, for methods that state none. It is a number,
    `published`, `tuned`, `searched` (for methods with a `search`), `selected` (the same, privately: see
    `selection` of `searches`), or `rule`. The rule is the mechanism's function of n, d, epsilon, delta and
    public bounds. It looks at no row, and gives 0 if no lambda is needed."""
    lambda_published: Either[Positive | LambdaTable | None] = None
    """The source's value, for lambda `published`: one number, or one per training size."""
    searches: dict[Name, Search] = {}
    """Settings chosen by cross-validation, anew for every training size (and epsilon). In each simulation
    the candidate of least validation error wins, and the most frequent winner is used. Lower error breaks
    ties, then the order of preference."""
    tune: Maybe[Tune] = None
    recommends: Maybe[Literal[True] | Names] = None
    """Whether its cells, or those of the named sweeps, enter results/recommendations.csv, which says which
    method to use. The methods must compete under equal conditions, and one must be without privacy."""
    methods: Annotated[dict[Name, Method], Len(1)] = {}
    """Label of a method -> what it runs."""
    sweeps: Annotated[dict[Name, Sweep], Len(1)] = {}
    """Which cells run. Each sweep is a product of sizes and epsilons."""
    analyses: dict[Name, Entry] = {}
    """Computations that are not a sweep of cells, by name, in results/<experiment>/analyses/<name>.csv (or
    .npz)."""
    tables: dict[Name, Entry] = {}
    """Tables by name, in results/<experiment>/tables/<name>.csv."""
    figures: dict[Name, Entry] = {}
    """Figures by name, in results/<experiment>/figures/<name>.png and .pdf."""
    published: dict[Name, Comparison] = {}
    """Comparisons with the source's printed values, by name, in results/<experiment>/published.csv."""
    readings: dict[Name, LeftOpen] = {}
    """What the source leaves open, by name. Every other value runs as an experiment
    `<experiment>__<name>_<value>` with the same draws, for cells that differ and that printed values and
    claims need. Its results are in results/<experiment>/readings/<name>_<value>/, and the outcomes in
    results/<experiment>/readings.csv."""
    together: list[Annotated[list[str], Len(2), DISTINCT]] = []
    """Readings that also run together, each a list of `<name>.<value>`. All others run one at a time."""
    claims: dict[str, Statement] = {}
    """Claims of the source by id, with the checks that decide them, unless the source's file has these."""
    defects: dict[str, Statement] = {}
    """The same for defects of the source, and the computations that show them."""
    sizes: Maybe[dict[str, Changes]] = None
    """Name, such as `smoke` -> changes of this experiment, merged as `settings` are if the configuration's
    `sizes` have the name."""
    families: Annotated[dict[str, Family] | None, MADE] = None
    """The families of methods, by name."""
    smaller: Annotated[list[str] | None, MADE] = None
    """What is smaller than in the experiment's file."""
