"""Benchmarks on public rows in scikit-learn's own tools: cross-validation, searches, pipelines.

    search = GridSearchCV(BenchmarkClassifier(bounds=(0, 100)), {"epsilon": [0.1, 1, 10]})

*A model of these estimators must not be published as private.* Their noise follows from a seed and is made
of ordinary floats, each fit of a cross-validation is another release, and nothing counts what all of them
cost. So the rows must be public. `dp_release.estimators` makes a model that may be published.
"""

import warnings
from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.special import expit

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import Tags, check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        f"estimators need scikit-learn ({error}): pip install 'dp-linear-models[learn]'",
        name=error.name,
    ) from error

from dp.mechanisms import MECHANISMS
from dp_privacy.errors import Refused

__all__ = ["BenchmarkClassifier", "BenchmarkRegressor"]

DELTA = 1e-6


class _Benchmark(BaseEstimator):
    """Base of both estimators: rows are clipped to bounds, scaled to norm 1 at most, and get a constant."""

    def __init__(
        self,
        epsilon=1.0,
        *,
        bounds=None,
        delta=None,
        mechanism=None,
        options=None,
        lam=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.mechanism = mechanism
        self.options = options
        self.lam = lam
        self.random_state = random_state

    def _learn(self, X, targets):
        mechanism = MECHANISMS[self.mechanism or "knorm_objective_perturbation"]
        options = self._RECOMMENDED if self.mechanism is None else {}
        options = options | (self.options or {})
        design = self._design(X)
        n, d = design.shape
        facts = {
            "coordinate_bound": 1 / np.sqrt(d),
            "column_bounds": [1 / np.sqrt(d)] * d,
        }
        asked = {name: facts[name] for name in mechanism.facts if name in facts} | options
        needs = mechanism.private and mechanism.delta == "needed"
        asked |= {
            "epsilon": self.epsilon,
            "delta": DELTA * needs if self.delta is None else self.delta,
        }
        lam = mechanism.rule_lambda(n, d, **asked) if self.lam is None else self.lam
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        release = mechanism.release(
            design, targets, lam=lam, rng=np.random.default_rng(seed), **asked
        )
        if release.weights.ndim > 2:
            raise Refused(f"{mechanism.name} has weights for each class: take one for two classes")
        self.status_ = str(release.status[0])
        if self.status_ != "ok":
            warnings.warn(f"the draw failed ({self.status_}): its weights are 0", stacklevel=3)
        self._weights = release.weights[0]
        self._offset = float(np.ravel(release.info.get("intercept", 0.0))[0])
        self.guarantee_ = mechanism.guarantee(n, d, lam=lam, **asked)
        low, high = self._ends(X.shape[1])
        slopes = 2 * self._weights[:-1] / ((high - low) * np.sqrt(d))
        constant = self._weights[-1] / np.sqrt(d) + self._offset
        return slopes, float(constant - slopes @ ((low + high) / 2))

    def _ends(self, columns):
        if self.bounds is None:
            raise Refused("state bounds: (low, high) of all columns, or a pair for each column")
        bounds = np.asarray(self.bounds, dtype=float)
        if bounds.shape not in ((2,), (columns, 2)) or not (bounds[..., 0] < bounds[..., 1]).all():
            raise Refused(
                f"bounds are (low, high) of all columns, or such a pair for each of the {columns} "
                f"columns, with low below high"
            )
        return np.broadcast_to(bounds, (columns, 2)).T

    def _design(self, X):
        low, high = self._ends(X.shape[1])
        unit = 2 * (np.clip(X, low, high) - low) / (high - low) - 1
        constant = np.ones((len(X), 1))
        return np.hstack([unit, constant]) / np.sqrt(X.shape[1] + 1)

    def _scores(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._design(X) @ self._weights + self._offset


class BenchmarkClassifier(ClassifierMixin, _Benchmark):
    """A benchmark's classifier of two classes, for public rows alone.

    Cross-validation, searches and pipelines of scikit-learn may fit it as often as they like. *Its models
    must not be published as private*: see the module's docstring.

    Parameters
    ----------
    epsilon : float
        Of one fit.
    bounds : tuple or sequence of tuples
        (low, high) of all columns, or a pair for each column. Cells beyond them are clipped. They must not
        be derived from the rows, or the comparison flatters every method.
    delta : float or None
        Of one fit; by default 1e-6 if the mechanism needs one, otherwise 0.
    mechanism : str or None
        A name in `dp.mechanisms.MECHANISMS`; by default the recommended method.
    options : dict or None
        The mechanism's options.
    lam : float or None
        lambda relative to the mean loss; by default the mechanism's rule of public numbers.
    random_state : int, numpy.random.RandomState or None
        Seed of the noise.

    Attributes
    ----------
    coef_ : numpy.ndarray, (1, k)
        Log odds per unit of each column, within the bounds.
    intercept_ : numpy.ndarray, (1,)
        Log odds where all columns are 0.
    classes_ : numpy.ndarray, (2,)
        Labels.
    status_ : str
        "ok", or how the draw failed.
    guarantee_ : dp_privacy.accounting.Guarantee
        What the mechanism would guarantee for one fit, in real arithmetic and with secret noise.

    Methods
    -------
    fit
        One draw.
    decision_function, predict_proba, predict
        Scores or predictions of new rows.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 100, (2000, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> model = BenchmarkClassifier(epsilon=1.0, bounds=(0, 100), random_state=1)
    >>> bool(cross_val_score(model, X, y, cv=3).mean() > 0.95)
    True
    """

    _RECOMMENDED = {"clip": 0.75}

    def fit(self, X: np.ndarray, y: np.ndarray | Sequence) -> Self:
        """One draw of the mechanism.

        Parameters
        ----------
        X : numpy.ndarray or pandas.DataFrame, (n, columns)
            Public rows, of numbers.
        y : numpy.ndarray or list, (n,)
            Labels of two classes.

        Returns
        -------
        BenchmarkClassifier

        Raises
        ------
        dp_privacy.errors.Refused
            Without bounds, and for settings that the mechanism refuses.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            what = type_of_target(y) if len(self.classes_) > 2 else "1 class"
            raise Refused(
                f"Only binary classification is supported. The type of the target is {what}"
            )
        slopes, constant = self._learn(X, 2 * numbers - 1)
        self.coef_, self.intercept_ = slopes[None], np.array([constant])
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Log odds of the second class.

        Parameters
        ----------
        X : numpy.ndarray or pandas.DataFrame, (n, columns)
            Rows, clipped to the bounds.

        Returns
        -------
        numpy.ndarray, (n,)
        """
        return self._scores(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of both classes.

        Parameters
        ----------
        X
            As for `decision_function`.

        Returns
        -------
        numpy.ndarray, (n, 2)
        """
        second = expit(self._scores(X))
        return np.stack([1 - second, second], axis=1)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicted classes.

        Parameters
        ----------
        X
            As for `decision_function`.

        Returns
        -------
        numpy.ndarray, (n,)
        """
        second = self._scores(X) > 0
        return self.classes_[second.astype(int)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class, tags.classifier_tags.poor_score = False, True
        return tags


class BenchmarkRegressor(RegressorMixin, _Benchmark):
    """A benchmark's model of a number, for public rows alone: see `BenchmarkClassifier`.

    Parameters
    ----------
    epsilon, bounds, delta, mechanism, options, lam, random_state
        As for `BenchmarkClassifier`.
    target : tuple
        (low, high) of the target, whose values beyond them are clipped.

    Attributes
    ----------
    coef_ : numpy.ndarray, (k,)
        Change of the target per unit of each column, within the bounds.
    intercept_ : float
        The target where all columns are 0.
    status_, guarantee_
        As for `BenchmarkClassifier`.

    Methods
    -------
    fit
        One draw.
    predict
        Predictions for new rows.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 10, (2000, 1))
    >>> model = BenchmarkRegressor(bounds=(0, 10), target=(0, 20), random_state=1)
    >>> bool(model.fit(X, 2 * X[:, 0]).score(X, 2 * X[:, 0]) > 0.9)
    True
    """

    _RECOMMENDED = {"loss": "log_cosh"}

    def __init__(
        self,
        epsilon=1.0,
        *,
        bounds=None,
        delta=None,
        mechanism=None,
        options=None,
        lam=None,
        random_state=None,
        target=None,
    ):
        super().__init__(
            epsilon,
            bounds=bounds,
            delta=delta,
            mechanism=mechanism,
            options=options,
            lam=lam,
            random_state=random_state,
        )
        self.target = target

    def fit(self, X: np.ndarray, y: np.ndarray | Sequence) -> Self:
        """One draw of the mechanism.

        Parameters
        ----------
        X : numpy.ndarray or pandas.DataFrame, (n, columns)
            Public rows, of numbers.
        y : numpy.ndarray or list, (n,)
            Numbers.

        Returns
        -------
        BenchmarkRegressor

        Raises
        ------
        dp_privacy.errors.Refused
            Without bounds or target, and for settings that the mechanism refuses.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if self.target is None or not self.target[0] < self.target[1]:
            raise Refused("state target: (low, high) of the target, with low below high")
        low, high = self.target
        self._middle, self._half = (low + high) / 2, (high - low) / 2
        slopes, constant = self._learn(X, (np.clip(y, low, high) - self._middle) / self._half)
        self.coef_ = slopes * self._half
        self.intercept_ = self._middle + constant * self._half
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predictions in the target's own units, within its bounds.

        Parameters
        ----------
        X
            As for `BenchmarkClassifier.decision_function`.

        Returns
        -------
        numpy.ndarray, (n,)
        """
        scores = np.clip(self._scores(X), -1, 1)
        return self._middle + self._half * scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
