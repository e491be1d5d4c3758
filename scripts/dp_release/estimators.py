"""Private models with scikit-learn's conventions, for tables that have not been preprocessed.

    model = PrivateClassifier.load("releases/visits/model.json")
    model.predict_proba(frame)     # columns by name, in any order, in their own units
    model.guarantee_

As in `dp_release.rows`, numbers are clipped to public bounds, and categories looked up in public lists.
Every cell of a list or a frame is read by itself. But the types of an array, or of a frame's columns, may
come from all rows: pandas makes numbers of "01" unless another cell is text. `fit` refuses types that do
not match what is stated, and cannot detect more. So read text: `pandas.read_csv(path, dtype=str,
keep_default_na=False)`, or make a release with `release.py`.

`fit` makes a release and spends from a budget book (`dp_release.book`). It records the spending before
it draws noise. The next `fit` resumes an interrupted release, with the same draw.

A new name in the book needs `preview(X, y)` of the very rows, whose output is for their owner alone, and
`spend=True`; otherwise an error states the cost. If the release of this name
is finished, `fit` loads the stored model and spends nothing. It raises an error if that release was made
from other rows. *That error is for the owner of the rows*: it reveals without noise whether two tables are
equal, and must not influence any publication. Publish only model.json.

`fit` refuses calls from scikit-learn's modules that fit repeatedly (`REPEATING`), such as
cross-validation, since each fit would be another release. To compare settings, use `release.py forecast`,
or `dp.estimators` on rows that are not private. In a pipeline, it refuses earlier steps that learn from
the rows, such as a scaler; steps that are stateless or in a `FrozenEstimator` are allowed. The guarantee
is for tables with one row per person, unless `person` is stated, and `groups` in `fit`. Two things break
it undetected: copies of
a person's row (bootstrap, oversampling), and steps that were fitted to the same rows by hand, or look at
several rows at once (scaler, imputer, feature selection).

Like `release.py`, `fit` disables core dumps and keeps debuggers from attaching. A traceback that shows
variables may show the rows.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Self

import numpy as np
from scipy.sparse import issparse

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import Pipeline
    from sklearn.utils import Tags, get_tags
    from sklearn.utils.validation import column_or_1d
except ImportError as error:
    raise ImportError(
        f"private estimators need scikit-learn ({error}): pip install 'dp-linear-models[learn]'",
        name=error.name,
    ) from error

from dp_privacy.errors import Refused
from dp_release import bounds as found
from dp_release import files, making, rows, using
from dp_release.book import LINES, Book, Budget
from dp_release.bounds import FIND
from dp_release.formats import Format
from dp_release.request import ALONE, PURE, Request

__all__ = ["PrivateClassifier", "PrivateRegressor"]

REPEATING = tuple(
    f"sklearn.{name}"
    for name in (
        *("model_selection", "ensemble", "calibration", "feature_selection", "inspection"),
        *("multiclass", "multioutput", "semi_supervised", "impute", "linear_model"),
    )
)
NOTHING = (b"nan", b"None", b"<NA>", b"NaT")  # missing objects as text
SPECIAL = re.compile(rb'["\r]|\xef\xbb\xbf')  # cells with these, or with the delimiter, are quoted


class _Private(BaseEstimator):
    """Base of both estimators, with the parameters of `PrivateClassifier`."""

    def __init__(
        self,
        release=None,
        *,
        book=None,
        budget=None,
        n_rows=None,
        columns=None,
        target=None,
        unit=None,
        epsilon=1.0,
        delta=None,
        method=None,
        options=None,
        holdout=None,
        premise=None,
        decimal=".",
        spend=False,
        person=None,
        law="gaussian",
    ):
        self.release = release
        self.book = book
        self.budget = budget
        self.n_rows = n_rows
        self.columns = columns
        self.target = target
        self.unit = unit
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.options = options
        self.holdout = holdout
        self.premise = premise
        self.decimal = decimal
        self.spend = spend
        self.person = person
        self.law = law

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The estimator of a published model.

        Parameters
        ----------
        path : str or pathlib.Path
            model.json of a release.

        Returns
        -------
        PrivateClassifier or PrivateRegressor

        Raises
        ------
        dp_privacy.errors.Refused
            If the file holds no model of this kind.
        """
        model = files.load(path)
        if (model.classes is None) != issubclass(cls, RegressorMixin):
            what = "two classes" if model.classes else "a number"
            raise Refused(f"{path}: is a model of {what}, which {cls.__name__} is not for")
        return cls(release=model.document["name"])._with(model)

    def _with(self, model):
        self.model_ = model
        self.feature_names_in_ = np.array(using.names(model), dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.coefficient_names_ = np.array(model.schema.names[:-1], dtype=object)
        self.coef_, self.intercept_ = model.coefficients[:-1], model.coefficients[-1]
        self.guarantee_ = model.document["guarantee"]
        self.table_ = model.document["table"]
        return self

    def fit(self, X: object, y: object, groups: object = None) -> Self:
        """Make the release, or load the stored one. See the module's docstring.

        Parameters
        ----------
        X : pandas.DataFrame, array or list of records, (n, columns)
            The columns of an array or a list are x0, x1, ... A record of a list contributes nothing if its
            number of cells is not that of the parameter `columns`, which must be a dict. Cells that NumPy
            or pandas converted with others before this call were not read by themselves: see the module's
            docstring.
        y : array or list, (n,)
            The target's values. A row whose value is missing, or none of those stated, contributes nothing.
            True and False also count as the classes 1 and 0.
        groups : array or list, (n,), or None
            With `person`, whose each row is: text, or a list. A row without one contributes nothing.

        Returns
        -------
        PrivateClassifier or PrivateRegressor

        Raises
        ------
        dp_privacy.errors.Refused
            For missing parameters, unproven settings, a new name without `spend`, rows without a `preview`
            under these settings, columns of another type than stated, and fits on parts or copies of the
            rows or after a step that learned from them.
        """
        request, book, data, _ = self._asked(X, y, groups)
        self._check_spending(request, book)
        # `guard` sets an exception hook for commands, which would hide the caller's errors.
        hook = sys.excepthook
        making.guard()
        sys.excepthook = hook
        content = making.make(request, book, data, header=False)
        with book.locked():
            if not book.same_rows(request.name, data):
                raise Refused(
                    f"the release {self.release!r} is done, and was made of other rows: load its model, or "
                    f"release these rows under another name"
                )
        return self._with(files.parse(content))

    def preview(self, X: object, y: object, groups: object = None) -> None:
        """Print how `fit` would read the rows, for their owner alone. `fit` needs it before it spends.

        The book records that these rows were seen under these settings, and nothing of what is printed. Do
        not publish the output, also not in a notebook. Settings that change afterwards are counted on the
        model's card.

        Parameters
        ----------
        X, y, groups
            As for `fit`.

        Raises
        ------
        dp_privacy.errors.Refused
            For missing parameters, unproven settings, and fits on parts or copies of the rows.
        """
        request, book, data, inferred = self._asked(X, y, groups)
        print(*making.preview(request, book, data, header=False), *inferred, sep="\n")

    def _asked(self, X, y, groups=None):
        """(request, book, the rows as a file's content, private sentences about inferred types)."""
        _check_caller()
        pure = self.law == PURE or self.method == ALONE
        if (groups is None) != (self.person is None):
            raise Refused(
                "state person, the public numbers of people and of their rows, and give fit and preview "
                "groups: whose each row is"
            )
        if self.person is not None and self.n_rows is not None:
            raise Refused("state either n_rows or person, whose number of people is public instead")
        free = {"delta"} if pure else set()
        free |= {"n_rows"} if self.person is not None else set()
        for name in _STATED:
            if getattr(self, name) is None and name not in free:
                raise Refused(f"state {name}: nothing of it is taken from the rows")
        if y is None:
            raise Refused(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        width = len(self.columns) if isinstance(self.columns, dict) else None
        names, dtypes, records = _records(X, width)
        target = self._target(str(getattr(y, "name", None) or "target"))
        dtype, labels = _labels_of(y)
        count = len(records)
        if self.person is None and count != self.n_rows:
            raise Refused(
                f"there are {count} rows, and n_rows = {self.n_rows} are stated, which is public: part of "
                f"the rows, as in a cross validation, would need a release of its own"
            )
        if len(labels) != count:
            raise Refused(f"there are {count} rows, and {len(labels)} labels")
        columns = self._columns(names)
        # The rows become a table of text, in which "," cannot be both marks.
        format = Format(delimiter=";" if self.decimal == "," else ",", decimal=self.decimal)
        ids = () if self.person is None else (rows.Unused(_IDS),)
        schema = rows.Schema([*columns, target, *ids], target.name, format)
        for column, each in zip([*columns, target], [*dtypes, dtype], strict=True):
            _check_values(column)
            _check_type(column, each, label=column is target)
        ends = [[label] for label in _read_labels(labels, target, format)]
        if self.person is not None:
            own = _read_ids(groups, count, format)
            ends = [[*end, each] for end, each in zip(ends, own, strict=True)]
        data = _table(_read(records, columns, format), ends, format.separator)
        public = {"rows": self.n_rows}
        if self.person is not None:
            public = {"person": {"column": _IDS, **self.person}}
        law = PURE if pure else self.law
        spends = {} if pure and self.delta is None else {"delta": self.delta}
        request = Request.parsed(
            {
                "name": self.release,
                "schema": schema.facts,
                **public,
                "unit": self.unit,
                "epsilon": self.epsilon,
                **spends,
                "law": law,
                "method": self.method or self._METHOD,
                "options": self.options or {},
                "holdout": self.holdout,
                "premise": self.premise,
            }
        )
        inferred = [
            _of_types(column, [record[k] for record in records])
            for k, (column, each) in enumerate(zip(columns, dtypes, strict=True))
            if each is not None  # of a list, each cell is as it was given
        ]
        inferred += [] if dtype is None else [_of_types(target, labels)]
        book = Book(self.book, Budget.of(self.budget), self.unit)
        return request, book, data, [each for each in inferred if each]

    def _check_spending(self, request, book):
        """Refuse a new name without `spend`, stating its cost. This creates no book."""
        if self.spend is True:
            return
        cost, said = tuple(map(float, request.cost)), "(epsilon {:g}, delta {:g})".format
        spent, of = (0.0, 0.0), book.budget
        if (book.path / LINES).exists():
            with book.locked():
                book.stored(request, making.made_by())
                sums = book.spent()
            if request.name in (name for name, *_ in sums.releases):
                return
            spent, of = (float(sums.epsilon), float(sums.delta)), sums.budget
        raise Refused(
            f"the release {request.name!r} is not made yet, and would spend {said(*cost)}: of the budget "
            f"{said(*map(float, of))}, {said(*spent)} is spent. State spend=True to spend it, once"
        )

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = json.dumps(self.model_.document).encode()
        return state

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        if "model_" in state:
            self.model_ = files.parse(self.model_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic, tags.target_tags.required = True, True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _columns(self, names):
        stated = self.columns
        if not isinstance(stated, dict):
            stated = dict.fromkeys(names, stated)
        for name in names:
            if name not in stated:
                raise Refused(f"state bounds or categories of the column {name!r}")
        return [_column(name, stated[name]) for name in names]

    def _scores(self, X):
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} has no model yet: load one, or fit")
        scores = using.scores(self.model_, using.design(self.model_, self._cells(X)))
        if np.isnan(scores).any():
            raise ValueError(
                f"row {int(np.flatnonzero(np.isnan(scores))[0])} has a cell that is no number or in no "
                f"category of the model, or not {self.n_features_in_} cells, so there is no prediction"
            )
        return scores

    def _cells(self, X):
        names, _, records = _records(X, self.n_features_in_)
        if hasattr(X, "columns"):
            missing = [name for name in self.feature_names_in_ if name not in names]
            if missing:
                raise ValueError(f"the frame has no column {missing[0]!r}, which the model needs")
            for name in self.feature_names_in_:
                if names.count(name) > 1:
                    raise ValueError(f"the frame has the column {name!r} twice")
            places = [names.index(name) for name in self.feature_names_in_]
            records = [[record[k] for k in places] for record in records]
        elif len(names) != self.n_features_in_:
            raise ValueError(
                f"X has {len(names)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        schema = self.model_.schema
        return _read(records, [schema.columns[k] for k in schema.used], schema.format)


class PrivateClassifier(ClassifierMixin, _Private):
    """A private model of two classes.

    The guarantee is void if a step that was fitted to the same rows, such as a scaler, has changed them. In
    a pipeline, `fit` refuses such steps. It cannot see those that were fitted by hand. Numbers need no
    scaler, since their bounds scale them.

    `fit` needs every parameter whose default is None, except `method`, `options`, `holdout` and `person`.

    Parameters
    ----------
    release : str
        Name in the book, for one release.
    book : str or pathlib.Path
        The budget book's folder: keep it next to the rows, and just as private.
    budget : dict
        {"epsilon": .., "delta": ..}, the total of all releases in the book.
    n_rows : int
        Public number of rows.
    columns : dict or tuple
        Column -> (low, high), a list of categories, or a `dp_release.rows.Number` or `Category`, which
        can also state `codes` for missing cells and what replaces them. Two numbers are bounds. A tuple
        gives the same bounds to all columns. Bounds and categories must not be derived from the rows.
        With "find" or {"find": {"least": 0, "most": 1e6}} in place of bounds, the release finds them, and
        pays for them (`dp_release.bounds`).
    target : list
        Two public labels, the negative one first, or a `dp_release.rows.Category` or `Label`.
    unit : str
        Meaning of a row in words: whom the guarantee protects.
    epsilon, delta : float
        Cost of the release; a `law` "pure" needs no delta.
    method : str or None
        By default one that gives confidence intervals.
    options : dict or None
        The method's options.
    holdout : float or None
        Share of the rows held out to measure errors.
    premise : str
        How these settings were chosen: one of `dp_release.request.PREMISES`.
    decimal : str
        Decimal mark of numbers that are text: "." or ",".
    spend : bool
        Whether `fit` may make and pay for a new release.
    person : dict or None
        {"people": .., "most": ..}, and perhaps "count", of `dp_release.persons.Persons`, in place of
        `n_rows`. The release then protects a person with several rows, and `fit` needs `groups`.
    law : str
        Of the noise: "gaussian", "pure" (without a delta), "mixed" or "rule" (`dp_release.request`).

    Attributes
    ----------
    coef_ : numpy.ndarray, (1, k)
        Log odds per unit of the columns `coefficient_names_`.
    intercept_ : numpy.ndarray, (1,)
        Log odds where all columns are 0.
    classes_ : numpy.ndarray, (2,)
        Labels.
    guarantee_ : dict
        Guarantee for the people whose rows the model was fitted on.
    table_ : list of dict or None
        Regression table, with intervals that include the noise.

    Methods
    -------
    load
        The estimator of a published model.
    preview
        How `fit` would read the rows, for their owner alone.
    fit
        Make the release, or load the stored one.
    decision_function, predict_proba, predict
        Scores or predictions of new rows.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 100, (2000, 1))
    >>> y = np.where(X[:, 0] > rng.uniform(0, 100, 2000), "yes", "no")
    >>> asked = {"n_rows": 2000, "columns": (0, 100), "target": ["no", "yes"], "delta": 1e-6}
    >>> asked |= {"budget": {"epsilon": 1, "delta": 1e-6}, "unit": "one row is one person"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asked |= {"book": f"{folder}/book", "premise": "public example", "spend": True}
    ...     model = PrivateClassifier("example", **asked)
    ...     model.preview(X, y)
    ...     model = model.fit(X, y)
    PRIVATE: for the owner of the rows alone. Publish nothing of this: nothing pays for it.
    0 lines (0.0%) of 2,000 would count nothing.
    x0: 2,000 cells are read.
    target: 2,000 cells are read.
    Of the others, 973 are 'no' and 1,027 are 'yes'.
    >>> print(model.predict([[5.0], [95.0]]), model.guarantee_["epsilon"])
    ['no' 'yes'] 1.0
    """

    _METHOD = "noise_aware_logistic"

    def _with(self, model):
        super()._with(model)
        self.classes_ = np.array(_labels(model))
        self.coef_, self.intercept_ = self.coef_[None], np.array([self.intercept_])
        return self

    def _target(self, name):
        if isinstance(self.target, rows.Category | rows.Label):
            return self.target._replace(name=name)
        if len(self.target) != 2:
            what = "multiclass" if len(self.target) > 2 else "1 class"
            raise Refused(
                f"Only binary classification is supported. The type of the target is {what}: state two "
                f"classes, the negative one first"
            )
        return rows.Category(name, tuple(map(_plain, self.target)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class, tags.classifier_tags.poor_score = False, True
        return tags

    def decision_function(self, X: object) -> np.ndarray:
        """Log odds of the second class.

        Parameters
        ----------
        X : pandas.DataFrame or array, (n, columns)
            Rows in the columns' own units. A frame's columns may have any order.

        Returns
        -------
        numpy.ndarray, (n,)

        Raises
        ------
        ValueError
            If a column is missing, or a cell is not a number or a listed category.
        """
        return self._scores(X)

    def predict_proba(self, X: object) -> np.ndarray:
        """Probabilities of both classes.

        Parameters
        ----------
        X
            As for `decision_function`.

        Returns
        -------
        numpy.ndarray, (n, 2)
        """
        second = using.probabilities(self._scores(X))
        return np.stack([1 - second, second], axis=1)

    def predict(self, X: object) -> np.ndarray:
        """Predicted classes.

        Parameters
        ----------
        X
            As for `decision_function`.

        Returns
        -------
        numpy.ndarray, (n,)
        """
        numbers = using.classes(self._scores(X))
        return self.classes_[numbers]


class PrivateRegressor(RegressorMixin, _Private):
    """A private model of a numeric target.

    As for `PrivateClassifier`, a step that was fitted to the same rows voids the guarantee.

    Parameters
    ----------
    target : tuple
        The target's public bounds (low, high), "find", or a `dp_release.rows.Number`. Other parameters
        are those of `PrivateClassifier`.

    Attributes
    ----------
    coef_ : numpy.ndarray, (k,)
        Change of the target per unit of the columns `coefficient_names_`.
    intercept_ : float
        The target where all columns are 0.
    guarantee_, table_
        As for `PrivateClassifier`.

    Methods
    -------
    load, preview, fit
        As for `PrivateClassifier`.
    predict
        Predictions for new rows.

    Examples
    --------
    >>> try:  # public values are never inferred from the rows, so all must be stated
    ...     PrivateRegressor("example", n_rows=10, target=(0, 1)).fit([[1.0]] * 10, [1.0] * 10)
    ... except Refused as error:
    ...     print(error)
    state book: nothing of it is taken from the rows
    """

    _METHOD = "noise_aware_log_cosh"

    def _target(self, name):
        return _column(name, self.target)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def predict(self, X: object) -> np.ndarray:
        """Predictions in the target's own units, within its bounds.

        Parameters
        ----------
        X
            As for `PrivateClassifier.decision_function`.

        Returns
        -------
        numpy.ndarray, (n,)
        """
        return self._scores(X)


_IDS = "groups"  # the column of ids in the table that is released
_STATED = ("release", "book", "budget", "n_rows", "columns", "target", "unit", "delta", "premise")


def _check_caller():
    frame = sys._getframe()
    while frame := frame.f_back:
        module, caller = frame.f_globals.get("__name__") or "", frame.f_locals.get("self")
        if f"{module}.".startswith(tuple(f"{name}." for name in REPEATING)):
            raise Refused(
                f"{'.'.join(module.split('.')[:2])} fits on parts or copies of the rows, or several times, "
                f"each of which would be a release of its own: compare settings with `release.py "
                f"forecast`, or on rows that are not private with `dp.estimators`"
            )
        if isinstance(caller, Pipeline):
            _check_steps(caller.steps[:-1])
        elif module.startswith("sklearn.compose."):
            # TransformedTargetRegressor fits its transformer to the labels.
            _check_steps([("transformer", getattr(caller, "transformer", None))])


def _check_steps(steps):
    """Refuse steps that learn from the rows. Those that need no `fit` are stateless."""
    for name, step in steps:
        if step is None or step == "passthrough" or isinstance(step, FrozenEstimator):
            continue
        if not isinstance(step, BaseEstimator) or get_tags(step).requires_fit:
            raise Refused(
                f"the step {name!r} ({type(step).__name__}) learns from the same rows, which breaks the "
                f"guarantee: leave it out, or fit it to public rows and wrap it in a FrozenEstimator"
            )


def _listed(column):
    """The values that a column lists."""
    if isinstance(column, rows.Category):
        return column.values
    return (*column.negative, *column.positive) if isinstance(column, rows.Label) else ()


def _check_values(column):
    for value in _listed(column):
        if isinstance(value, str) and value != value.replace("\n", " ").strip(" \t"):
            raise Refused(
                f"state the category {value!r} of {column.name!r} without line feeds and without spaces "
                f"around it: cells are read without them"
            )


def _check_type(column, dtype, label=False):
    """Refuse a column that is not of the stated kind. This depends on rows only through the dtype.

    A record decides the dtype of a column whose types were inferred. So it must not change how others are
    read: types are allowed only where they mean the same as the text in a file.
    """
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)  # of a Categorical
    kind = "text" if dtype is None else _KINDS.get(dtype.kind, "of another kind")
    values = _listed(column)
    stated = set(map(_kind, values)) or {"numbers"}
    if kind == "text" or (label and kind == "booleans" and _is_binary(column)):
        return
    named = " and ".join(sorted(stated))
    if kind in stated and "text" not in stated:
        if dtype.kind != "f" or all(abs(value) <= 2**53 for value in values):
            return
        named += " beyond 2^53, which floats do not tell apart"
    said = f"{kind} (of the dtype {dtype}), and"
    if label:
        raise Refused(
            f"Unknown label type: y is {said} the target is stated as {named}: convert y, or state the "
            f"target as it stands in y"
        )
    if kind == "dates":
        remedy = "give the time since a public date, as a number"
    else:
        remedy = "read the rows as text (dtype=str in pandas), or state the column as it stands"
    raise Refused(f"the column {column.name!r} is {said} it is stated as {named}: {remedy}")


def _of_types(column, cells):
    """A sentence if a column of text seems to be read part by part with inferred types; otherwise "".

    Such a reader makes a number of "01" unless a cell of the same part is text. To refuse the column would
    let a record decide, so only its owner is told.
    """
    if "text" not in map(_kind, _listed(column)):
        return ""
    cells = [cell for cell in map(_plain, cells) if isinstance(cell, str | bool | int | float)]
    # NaN is a missing cell.
    kinds = Counter(_kind(cell) for cell in cells if isinstance(cell, str) or cell == cell)
    numbers = kinds["numbers"] + kinds["booleans"]
    if not (numbers and kinds["text"]):
        return ""
    return (
        f"{column.name}: {numbers:,} cells are numbers, true or false, beside {kinds['text']:,} of text. "
        f"If types were inferred, other cells decided this: read the rows as text (dtype=str in pandas)."
    )


# Objects (O) are read one by one.
_KINDS = dict.fromkeys("iuf", "numbers") | dict.fromkeys("USTO", "text")
_KINDS |= dict.fromkeys("mM", "dates") | {"b": "booleans"}


def _kind(value):
    kinds = {bool: "booleans", str: "text", int: "numbers", float: "numbers"}
    return next((kind for type_, kind in kinds.items() if isinstance(value, type_)), None)


def _is_binary(column):
    values = _listed(column)
    return set(values) == {0, 1} and set(map(_kind, values)) == {"numbers"}


def _labels(model):
    target = model.schema.columns[model.schema.target]
    if isinstance(target, rows.Category):
        return target.values
    if len(target.negative) == len(target.positive) == 1:
        return (*target.negative, *target.positive)
    return model.classes


def _column(name, domain):
    if isinstance(domain, str) and domain == FIND:
        return found.number(name, True)
    if isinstance(domain, dict) and domain.keys() == {FIND}:
        return found.number(name, domain[FIND])
    if isinstance(domain, rows.Number | rows.Category):
        return domain._replace(name=name)
    if isinstance(domain, Iterable) and not isinstance(domain, str):
        values = tuple(map(_plain, domain))
        kinds = set(map(_kind, values))
        if len(values) == 2 and kinds == {"numbers"}:
            return rows.Number(name, *values)
        if None not in kinds and (kinds == {"numbers"} or "numbers" not in kinds):
            return rows.Category(name, values, values[0] if values else None)
    raise Refused(f"{name!r} needs bounds (low, high), or a list of categories")


def _plain(value):
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value  # `item` makes a number of a date in nanoseconds
    return value.item() if isinstance(value, np.generic) else value


def _is_list(X):
    return not (issparse(X) or hasattr(X, "columns") or hasattr(X, "__array__"))


def _records(X, width):
    """Names, dtypes and records of a table. A record of a list that has not `width` cells is None."""
    if issparse(X):
        raise TypeError("Sparse data was passed for X, but dense data is required")
    if _is_list(X):
        if width is None:
            raise Refused(
                "state the columns of a list by name (x0, x1, ...): nothing of it is taken from the rows"
            )
        records = [_record(record, width) for record in X]
        dtypes, shape = [None] * width, (len(records), width)
    elif hasattr(X, "columns"):
        # A loop keeps the integers of a Categorical with missing cells; `to_numpy` makes floats of them.
        cells = [list(X.iloc[:, k]) for k in range(X.shape[1])]
        dtypes, shape, records = list(X.dtypes), X.shape, list(zip(*cells, strict=True))
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X is a frame, or "
                f"an array of rows and columns"
            )
        if array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        dtypes, shape, records = [array.dtype] * array.shape[1], array.shape, list(map(list, array))
    for size, what in zip(shape, ("sample", "feature"), strict=True):
        if not size:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required."
            )
    names = X.columns if hasattr(X, "columns") else [f"x{k}" for k in range(shape[1])]
    return list(map(str, names)), dtypes, records


def _record(record, width):
    if isinstance(record, list | tuple) or getattr(record, "ndim", 0) == 1:
        cells = list(record)
        return cells if len(cells) == width else None
    return None


def _labels_of(y):
    """The dtype of y, or None for a list, and its values."""
    if _is_list(y):
        return None, [(_record(value, 1) or [value])[0] for value in y]
    if hasattr(y, "columns"):
        column_or_1d(np.empty(y.shape), warn=True)  # refuses several columns, and warns of one
        y = y.iloc[:, 0]
    if hasattr(y, "iloc"):
        return y.dtype, list(y)
    y = np.asarray(y)
    return y.dtype, list(column_or_1d(y, warn=True))


def _read(records, columns, format):
    """The cells of each record, or None where the record is None."""
    readers = [_cell_reader(column, format) for column in columns]
    return [
        record and [read(value) for read, value in zip(readers, record, strict=True)]
        for record in records
    ]


def _read_labels(labels, target, format):
    """The cells of labels. True and False, also as text, count as stated numbers 1 and 0."""
    cells = list(map(_cell_reader(target, format), labels))
    if _is_binary(target):
        cells = [{b"true": b"1", b"false": b"0"}.get(cell.lower(), cell) for cell in cells]
    return cells


def _read_ids(groups, count, format):
    """The cells of ids.

    Numbers of one dtype are refused: a reader makes 1 of "01", so that two people become one, unless a
    third person's id is text.
    """
    dtype, values = _labels_of(groups)
    if dtype is not None and _KINDS.get(dtype.kind) != "text":
        raise Refused(
            f"groups are of the dtype {dtype}, for which other rows may have decided: read them as text "
            f"(dtype=str in pandas), or give a list"
        )
    if len(values) != count:
        raise Refused(f"there are {count} rows, and {len(values)} groups")
    return list(map(_cell_reader(None, format), values))


def _cell_reader(column, format):
    """A function from a value to its cell in a file, which is the same whatever the other values are.

    Missing objects become a missing cell. Text such as "None" does so only if it is no category. Text that
    the encoding lacks becomes an invalid cell.
    """
    listed = _listed(column)
    listed = {value.encode() for value in listed if isinstance(value, str)}
    missing = next((cell for cell in rows.EMPTY if cell not in listed), b"")

    def read(value):
        value = _plain(value)
        if isinstance(value, str):
            try:
                cell = str.encode(value, format.encoding)
            except UnicodeEncodeError:
                return b"\0"
        elif isinstance(value, bytes):
            cell = value
        else:
            try:
                cell = str(value).encode(errors="surrogatepass")
            except Exception:  # such as an integer of too many digits
                return b"\0"
            if cell in NOTHING:
                return missing
            if isinstance(value, int | float | Decimal) and format.decimal == ",":
                cell = cell.replace(b".", b",")
        cell = cell.replace(b"\n", b" ").strip(b" \t")
        return missing if cell in NOTHING and cell not in listed else cell

    return read


def _table(records, ends, delimiter):
    """A headerless CSV file's content. A record that is None becomes an empty line, which is invalid.

    ends: a record's last cells, its label and perhaps its id.
    """

    def quoted(cell):
        special = delimiter in cell or SPECIAL.search(cell)
        return b'"' + cell.replace(b'"', b'""') + b'"' if special else cell

    lines = (
        b"" if cells is None else delimiter.join(map(quoted, [*cells, *end]))
        for cells, end in zip(records, ends, strict=True)
    )
    return b"".join(line + b"\n" for line in lines)
