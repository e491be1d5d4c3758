"""Private models with scikit-learn's conventions, for tables that have not been preprocessed.

    model = PrivateClassifier.load("releases/visits/model.json")
    model.predict_proba(frame)     # columns by name, in any order, in their own units
    model.guarantee_

As in `dp.releasing.rows`, numbers are clipped to public bounds, and categories looked up in public lists.

`fit` makes a release and spends from a budget book (`dp.releasing.book`). It records the spending before
it draws noise. The next `fit` resumes an interrupted release, with the same draw.

A new name in the book needs `preview(X, y)` of the very rows, whose output is for their owner alone, and
`spend=True`; otherwise an error states the cost. If the release of this name
is finished, `fit` loads the stored model and spends nothing. It raises an error if that release was made
from other rows. *That error is for the owner of the rows*: it reveals without noise whether two tables are
equal, and must not influence any publication. Publish only model.json.

`fit` refuses calls from scikit-learn's modules that fit repeatedly (`REPEATING`), such as
cross-validation, since each fit would be another release. To compare settings, use `release.py forecast`,
or rows that are not private. The guarantee is for tables with one row per person. Two things break it
undetected: copies of a person's row (bootstrap, oversampling), and earlier steps fitted to the same rows
(scaler, imputer, feature selection).

Like `release.py`, `fit` disables core dumps and keeps debuggers from attaching. A traceback that shows
variables may show the rows.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import column_or_1d

from dp.errors import Refused
from dp.releasing import files, making, rows, using
from dp.releasing.book import LINES, Book, Budget
from dp.releasing.request import Request

__all__ = ["PrivateClassifier", "PrivateRegressor"]

REPEATING = tuple(
    f"sklearn.{name}"
    for name in (
        *("model_selection", "ensemble", "calibration", "feature_selection", "inspection"),
        *("multiclass", "multioutput", "semi_supervised"),
    )
)


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
        spend=False,
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
        self.spend = spend

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
        dp.errors.Refused
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

    def fit(self, X: object, y: object) -> Self:
        """Make the release, or load the stored one. See the module's docstring.

        Parameters
        ----------
        X : pandas.DataFrame or array, (n, columns)
            The columns of an array are x0, x1, ...
        y : array, (n,)
            The target's values.

        Returns
        -------
        PrivateClassifier or PrivateRegressor

        Raises
        ------
        dp.errors.Refused
            For missing parameters, unproven settings, a new name without `spend`, rows without a `preview`
            under these settings, and fits on parts or copies of the rows.
        """
        request, book, data = self._asked(X, y)
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

    def preview(self, X: object, y: object) -> None:
        """Print how `fit` would read the rows, for their owner alone. `fit` needs it before it spends.

        The book records that these rows were seen under these settings, and nothing of what is printed. Do
        not publish the output, also not in a notebook. Settings that change afterwards are counted on the
        model's card.

        Parameters
        ----------
        X, y
            As for `fit`.

        Raises
        ------
        dp.errors.Refused
            For missing parameters, unproven settings, and fits on parts or copies of the rows.
        """
        request, book, data = self._asked(X, y)
        print(*making.preview(request, book, data, header=False), sep="\n")

    def _asked(self, X, y):
        """(request, book, the rows as a file's content)."""
        _check_caller()
        for name in _STATED:
            if getattr(self, name) is None:
                raise Refused(f"state {name}: nothing of it is taken from the rows")
        if y is None:
            raise Refused(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        names, cells = _cells(X)
        called, y = str(getattr(y, "name", None) or "target"), column_or_1d(y, warn=True)
        count = len(cells[0])
        if count != self.n_rows:
            raise Refused(
                f"there are {count} rows, and n_rows = {self.n_rows} are stated, which is public: part of "
                f"the rows, as in a cross validation, would need a release of its own"
            )
        if len(y) != count:
            raise Refused(f"there are {count} rows, and {len(y)} labels")
        target = self._target(called)
        y = _labelled(y, target)
        schema = rows.Schema([*self._columns(names), target], target.name)
        data = _table([*cells, list(map(_cell, y.astype(object)))])
        request = Request.parsed(
            {
                "name": self.release,
                "schema": schema.facts,
                "rows": self.n_rows,
                "unit": self.unit,
                "epsilon": self.epsilon,
                "delta": self.delta,
                "method": self.method or self._METHOD,
                "options": self.options or {},
                "holdout": self.holdout,
                "premise": self.premise,
            }
        )
        return request, Book(self.book, Budget.of(self.budget), self.unit), data

    def _check_spending(self, request, book):
        """Refuse a new name without `spend`, stating its cost. This creates no book."""
        if self.spend is True:
            return
        cost, said = (request.epsilon, request.delta), "(epsilon {:g}, delta {:g})".format
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
        scores = using.scores(self.model_, using.design(self.model_, self._records(X)))
        if np.isnan(scores).any():
            raise ValueError(
                f"row {int(np.flatnonzero(np.isnan(scores))[0])} has a cell that is no number or in no "
                f"category of the model, so there is no prediction"
            )
        return scores

    def _records(self, X):
        names, cells = _cells(X)
        if hasattr(X, "columns"):
            missing = [name for name in self.feature_names_in_ if name not in names]
            if missing:
                raise ValueError(f"the frame has no column {missing[0]!r}, which the model needs")
            for name in self.feature_names_in_:
                if names.count(name) > 1:
                    raise ValueError(f"the frame has the column {name!r} twice")
            cells = [cells[names.index(name)] for name in self.feature_names_in_]
        elif len(names) != self.n_features_in_:
            raise ValueError(
                f"X has {len(names)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return list(zip(*cells, strict=True))


class PrivateClassifier(ClassifierMixin, _Private):
    """A private model of two classes.

    `fit` needs every parameter whose default is None, except `method`, `options` and `holdout`.

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
        Column -> (low, high), a list of categories, or a `dp.releasing.rows.Number` or `Category`. A tuple
        gives the same bounds to all columns. Bounds and categories must not be derived from the rows.
    target : list
        Two public labels, the negative one first.
    unit : str
        Meaning of a row in words: whom the guarantee protects.
    epsilon, delta : float
        Cost of the release.
    method : str or None
        By default one that gives confidence intervals.
    options : dict or None
        The method's options.
    holdout : float or None
        Share of the rows held out to measure errors.
    premise : str
        How these settings were chosen: one of `dp.releasing.request.PREMISES`.
    spend : bool
        Whether `fit` may make and pay for a new release.

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

    Parameters
    ----------
    target : tuple
        The target's public bounds (low, high). Other parameters are those of `PrivateClassifier`.

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
        return _column(name, tuple(self.target))

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


_STATED = ("release", "book", "budget", "n_rows", "columns", "target", "unit", "delta", "premise")


def _check_caller():
    frame = sys._getframe()
    while frame := frame.f_back:
        module = frame.f_globals.get("__name__") or ""
        if f"{module}.".startswith(tuple(f"{name}." for name in REPEATING)):
            raise Refused(
                f"{'.'.join(module.split('.')[:2])} fits on parts or copies of the rows, or several times, "
                f"each of which would be a release of its own: compare settings with `release.py "
                f"forecast`, or on rows that are not private"
            )


def _labelled(y, target):
    """y as numbers, text or booleans, like the target. Errors depend on y only through its dtype."""
    if isinstance(target, rows.Number):
        stated = {"numbers"}
    else:
        stated = {_KINDS[np.asarray(value).dtype.kind] for value in target.values}
    kind = _KINDS.get(y.dtype.kind, "of another kind")
    if kind == "booleans" and isinstance(target, rows.Category) and set(target.values) == {0, 1}:
        return y if stated == {"booleans"} else y.astype(int)
    if len(stated) == 1 and kind not in stated:
        raise Refused(
            f"Unknown label type: y is {kind} (of the dtype {y.dtype}), and the target is stated as "
            f"{stated.pop()}: convert y, or state the target as it stands in y"
        )
    return y


_KINDS = dict.fromkeys("iuf", "numbers") | dict.fromkeys("USO", "text") | {"b": "booleans"}


def _labels(model):
    target = model.schema.columns[model.schema.target]
    if isinstance(target, rows.Category):
        return target.values
    if len(target.negative) == len(target.positive) == 1:
        return (*target.negative, *target.positive)
    return model.classes


def _column(name, domain):
    if isinstance(domain, rows.Number | rows.Category):
        return domain._replace(name=name)
    if isinstance(domain, Iterable) and not isinstance(domain, str):
        values = tuple(map(_plain, domain))
        numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in values]
        if len(values) == 2 and all(numbers):
            return rows.Number(name, *values)
        if not any(numbers):
            return rows.Category(name, values, values[0] if values else None)
    raise Refused(f"{name!r} needs bounds (low, high), or a list of categories")


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _cells(X):
    """The names and cells of the columns of a frame or array (n, columns)."""
    if issparse(X):
        raise TypeError("Sparse data was passed for X, but dense data is required")
    if hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
        values = [X.iloc[:, k].to_numpy(dtype=object) for k in range(len(names))]
        shape = X.shape
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X is a frame, or "
                f"an array of rows and columns"
            )
        if array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        shape = array.shape
        names, values = [f"x{k}" for k in range(shape[1])], array.astype(object).T
    for size, what in zip(shape, ("sample", "feature"), strict=True):
        if not size:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required."
            )
    return names, [list(map(_cell, column)) for column in values]


def _cell(value):
    if isinstance(value, bytes):
        return value
    text = str(_plain(value)).encode(errors="replace")
    return b"" if text in (b"nan", b"None", b"<NA>", b"NaT") else text.strip(b" \t")


def _table(columns):
    """A headerless CSV file's content, from columns of cells. Spaces replace line feeds."""

    def quoted(cell):
        if b"," in cell or b'"' in cell or b"\n" in cell or b"\r" in cell:
            cell = b'"' + cell.replace(b'"', b'""').replace(b"\n", b" ") + b'"'
        return cell

    return b"".join(b",".join(map(quoted, record)) + b"\n" for record in zip(*columns, strict=True))
