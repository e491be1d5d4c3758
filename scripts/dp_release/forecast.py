"""Forecast the accuracy and interval widths of a release from releases of simulated rows.

Rows are simulated from public or guessed facts about columns. A forecast reads no real row, so it costs no
privacy. It takes seconds, or many minutes for a million rows.

A column of numbers has a beta distribution between its bounds with the expected mean and standard
deviation. Levels of a category have their expected shares. Columns are independent, except for expected
correlations of numbers (a Gaussian copula), which can make intervals several times wider. If no effects are
stated, one standard deviation of any column changes the score by the same amount, with alternating signs.
Effects also change widths, through the ridge and the Hessian's noise. Widths depend as much on the share of
the second class: `Study.said` says all that is assumed.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from dp import evaluation
from dp.seeds import generator
from dp.solvers.newton import minimise
from dp_privacy.errors import Refused
from dp_privacy.profiles import Profile
from dp_release import bounds, contrasts, files, holdout, making, models, rows
from dp_release.meaning import meaning
from dp_release.persons import PEOPLE, ROWS, Persons, Table, filled
from dp_release.rate import RATE
from dp_release.request import ALONE, GAUSSIAN, MIXED, PURE, RULE, Request, class_names

__all__ = [
    "Expected",
    "Outlook",
    "Study",
    "compared",
    "needed",
    "outlook",
    "prices",
    "share",
    "width",
]

EVEN = 0.5  # default share of the second class
FAR = 4  # deviations from the mean to the bounds of simulated rows, if bounds are to be found
SPREAD = 6  # default distance between the bounds, in standard deviations
GRID = (np.arange(4096) + 0.5) / 4096  # probabilities at which quantiles are tabulated
REFERENCE = 20_000  # number of simulated rows that determine a study's moments
TESTED = 5_000  # number of these rows on which accuracy is measured
SCORED = 20  # maximum number of releases whose accuracy is measured
WORK = 8_000_000  # approximate count of simulated numbers per epsilon
DRAWS = (9, 400)  # range of the number of releases per epsilon
TRIES = 5  # a search makes 1/TRIES as many releases per epsilon as the final forecast
LEAST, MOST = 0.02, 20.0  # range of tried epsilons
MOSTS = (1, 2, 3, 5)  # of a person's rows, whose prices are shown
EACH = {
    1: 0.5,
    2: 0.25,
    3: 0.125,
    4: 0.0625,
    5: 0.0625,
}  # assumed shares of people with so many rows
NEAR = 0.03  # relative precision of the search for an epsilon


class Expected(NamedTuple):
    """Public facts or guesses about a study's rows.

    Attributes
    ----------
    columns : dict
        Column -> {"mean": .., "deviation": ..}, or {level: share}. By default, the mean is the middle of
        the bounds, the deviation a sixth of the distance between them, and shares are equal.
    effects : dict
        Name in `Schema.names` -> coefficient in the column's own units, by default 0. If none is given, all
        columns have equal effects, scaled by `strength` or `explained`.
    positives : float or None
        Share of the second class, by default a half.
    strength : float
        Standard deviation of the log odds, for classes.
    explained : float
        Share of a numeric target's variance that the columns explain.
    correlations : dict
        (column, column) -> the correlation of two columns of numbers, by default 0.
    each : dict
        Number of rows of a person -> the share of people, by default `EACH`. Only for a release that
        protects people.
    """

    columns: dict = {}
    effects: dict = {}
    positives: float | None = None
    strength: float = 1.0
    explained: float = 0.3
    correlations: dict = {}
    each: dict = {}


class Study:
    """A distribution of rows of a schema.

    Parameters
    ----------
    schema : dp_release.rows.Schema
        Public facts about the file.
    expected : Expected or None
        Facts or guesses about its rows.
    seed : int
    """

    def __init__(
        self, schema: rows.Schema, expected: Expected | None = None, seed: int = 0
    ) -> None:
        self.expected, self.seed = expected or Expected(), seed
        self.found = list(bounds.columns(schema))
        self.schema = schema = _with_expected_bounds(schema, self.expected)
        unknown = self.expected.columns.keys() - {column.name for column in schema.columns}
        if unknown:
            raise Refused(f"there is no column {sorted(unknown)[0]!r} to expect anything of")
        self.positives = EVEN if self.expected.positives is None else self.expected.positives
        for name, share in (("positives", self.positives), ("explained", self.expected.explained)):
            if not 0 < share < 1:
                raise Refused(f"{name} is a share, strictly between 0 and 1")
        self._drawn = self._quantiles()
        V = self._columns(REFERENCE, generator(seed, "rows"))
        X, deviation = V / rows.ONE, 1.0
        if schema.numbers:
            self._middle, deviation = self._moments(schema.columns[schema.target])
        wanted = math.sqrt(self.expected.explained) if schema.numbers else self.expected.strength
        if not 0 < wanted < math.inf:
            raise Refused("the strength is a positive number")
        self.weights = self._effects() if self.expected.effects else self._equal(X)
        size = (X @ self.weights).std()
        if not self.expected.effects:
            self.weights *= wanted * deviation / size
            size = wanted * deviation
        if schema.numbers:
            if not size < deviation:
                raise Refused("the effects explain more than the target's variance")
            self._noise = math.sqrt(deviation**2 - size**2)
        scores = X @ self.weights
        self.weights[schema.constant] = self._intercept(scores) / (schema.each / rows.ONE)
        V, scores = V[:TESTED], (X @ self.weights)[:TESTED]
        self.tested = V, self._labels(scores, generator(seed, "labels"))
        self._without: dict[int, np.ndarray] = {}

    def _effects(self):
        T = np.diag(files.own_units(self.schema)[0]).copy()
        unknown = self.expected.effects.keys() - set(self.schema.names[:-1])
        if unknown:
            raise Refused(f"there is no column {sorted(unknown)[0]!r} to have an effect")
        T[-1] = 1.0
        return np.array([self.expected.effects.get(name, 0.0) for name in self.schema.names]) / T

    def _equal(self, X):
        """Weights (d,) of equal effects, not yet scaled."""
        spread = X.std(axis=0)
        signs = np.where(np.arange(len(spread)) % 2, -1.0, 1.0)
        weights = np.where(spread > 0, signs / np.where(spread > 0, spread, 1.0), 0.0)
        if not weights.any():
            raise Refused("no column varies: nothing can be forecast")
        return weights

    def _intercept(self, scores):
        if self.schema.numbers:
            return self._middle - scores.mean()
        low, high = -60.0, 60.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            share = (1 / (1 + np.exp(-(scores + middle)))).mean()
            low, high = (low, middle) if share > self.positives else (middle, high)
        return low

    def _moments(self, column):
        """(mean, deviation) of a column of numbers, mapped to [-1, 1]."""
        low, high = float(column.low), float(column.high)
        expected = self.expected.columns.get(column.name, {})
        if expected and set(expected) != {"mean", "deviation"}:
            raise Refused(f"of the numbers of {column.name!r} expect a mean and a deviation")
        mean = expected.get("mean", (low + high) / 2)
        deviation = expected.get("deviation", (high - low) / SPREAD)
        if not (low < mean < high and 0 < deviation**2 < (mean - low) * (high - mean)):
            raise Refused(
                f"no numbers between the bounds of {column.name!r} have the mean {mean:g} and the standard "
                f"deviation {deviation:g}"
            )
        return (2 * mean - low - high) / (high - low), 2 * deviation / (high - low)

    def _shares(self, column):
        expected = self.expected.columns.get(column.name)
        if expected is None:
            return np.full(len(column.values), 1 / len(column.values))
        expected, levels = {str(k): v for k, v in expected.items()}, list(map(str, column.values))
        shares = np.array([expected.get(level, 0.0) for level in levels])
        if expected.keys() - set(levels) or (shares < 0).any() or not shares.sum() > 0:
            raise Refused(f"of the levels of {column.name!r} expect shares, such as a: 0.2")
        return shares / shares.sum()

    def _quantiles(self):
        """Columns' quantiles on [-1, 1] at `GRID`, and a root (k, k) of the copula's correlation matrix."""
        from scipy.stats import beta

        quantiles = {}
        for k in self.schema.used:
            column = self.schema.columns[k]
            if isinstance(column, rows.Number):
                mean, deviation = self._moments(column)
                share, size = (mean + 1) / 2, (1 - mean**2) / deviation**2 - 1
                quantiles[column.name] = 2 * beta.ppf(GRID, share * size, (1 - share) * size) - 1
        names, R = list(quantiles), np.eye(len(quantiles))
        for pair, value in self.expected.correlations.items():
            if len(set(pair)) != 2 or not set(pair) <= quantiles.keys():
                raise Refused(
                    f"{' and '.join(pair)} are no two columns of numbers to be correlated"
                )
            i, j = map(names.index, pair)
            R[i, j] = R[j, i] = value
        try:
            return quantiles, np.linalg.cholesky(R)
        except np.linalg.LinAlgError:
            raise Refused("no columns have all these correlations at once") from None

    def _columns(self, n, rng):
        from scipy.special import ndtr

        schema, each, parts = self.schema, self.schema.each, []
        quantiles, root = self._drawn
        ranks = iter(ndtr(rng.standard_normal((n, len(root))) @ root.T).T)
        for k, column in enumerate(schema.columns):
            if k == schema.target or isinstance(column, rows.Unused):
                continue
            if isinstance(column, rows.Number):
                x = np.interp(next(ranks), GRID, quantiles[column.name])
                parts.append(np.trunc(each * x)[:, None])
            else:
                levels = rng.choice(len(column.values), n, p=self._shares(column))
                own = [i for i, value in enumerate(column.values) if value != column.reference]
                parts.append(each * (levels[:, None] == np.array(own)))
        parts.append(np.full((n, 1), each))
        return np.concatenate(parts, axis=1).astype(np.int32)

    def _labels(self, scores, rng):
        if self.schema.numbers:
            y = scores + self._noise * rng.standard_normal(len(scores))
            return np.trunc(np.clip(y, -1, 1) * rows.ONE).astype(np.int32)
        return np.where(rng.random(len(scores)) < 1 / (1 + np.exp(-scores)), 1, -1).astype(np.int32)

    def said(self) -> list[str]:
        """All that is assumed of the rows, in sentences. Widths and accuracy depend on it."""
        return [self._said_of_target(), self._said_of_effects(), *self._said_of_columns()]

    def _said_of_target(self):
        if self.schema.numbers:
            return (
                f"Assumed: the columns explain {self.expected.explained:.0%} of the target's variance "
                f"(--explained)."
            )
        second = class_names(self.schema.columns[self.schema.target])[1]
        said = f"Assumed: {self.positives:.3g} of the rows are {second!r}"
        if self.expected.positives is not None:
            return f"{said}, as stated."
        return (
            f"{said}, because no share is stated. Which share is it? State it with --positives, such as "
            f"--positives 0.1: the rarer a class, the wider are the intervals."
        )

    def _said_of_effects(self):
        if self.expected.effects:
            return "Assumed: effects are as stated, and 0 where none is stated."
        equal = (
            "Assumed: one standard deviation of any column has the same effect, with changing signs"
        )
        if self.schema.numbers:
            return f"{equal} (--effect)."
        return (
            f"{equal} (--effect), and the log odds have the standard deviation "
            f"{self.expected.strength:g} (--strength)."
        )

    def _said_of_columns(self):
        left = [
            column.name
            for k, column in enumerate(self.schema.columns)
            if column.name not in self.expected.columns
            and not isinstance(column, rows.Unused)
            and (k != self.schema.target or self.schema.numbers)
        ]
        if left:
            yield (
                f"Assumed of {', '.join(left)}: numbers lie around the middle of their bounds, with a "
                f"sixth of the bounds' distance as standard deviation, and levels are equally frequent "
                f"(--expect)."
            )
        if self.found:
            yield (
                f"Assumed of {', '.join(self.found)}: numbers lie within {FAR} standard deviations of the "
                f"expected mean. Their bounds are found."
            )
        if self.expected.correlations:
            yield "Assumed: columns are independent, except for the stated correlations."
        else:
            yield (
                "Assumed: columns are independent (--correlation). Where they are not, intervals are much "
                "wider."
            )

    def rows(
        self, n: int, draw: int, levels: rows.Schema | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Simulate (V, y) of n rows, as `Schema.rows` returns them. levels: of map 2, to have its rows."""
        V, y = self.unshortened(n, draw)
        V = V if levels is None else contrasts.releveled(V, self.schema, levels)
        return rows.shortened(V), y

    def unshortened(self, n: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
        """`rows` before long rows are shortened."""
        rng = generator(self.seed, "draw", draw)
        V = self._columns(n, rng)
        return V, self._labels(V @ (self.weights / rows.ONE), rng)

    def people(self, persons: Persons, draw: int) -> Table:
        """Simulate the rows of people, whose rows are independent: `filled` slots."""
        sizes, shares = self._each()
        rng = generator(self.seed, "people", draw)
        counts = np.minimum(rng.choice(sizes, persons.people, p=shares), persons.most)
        V, y = self.rows(int(counts.sum()), draw)
        each = np.split(np.arange(len(V)), np.cumsum(counts)[:-1])
        return filled([[(V[i], y[i]) for i in own] for own in each], self.schema.d, persons)

    def used(self, most: int) -> float:
        """The expected number of rows of a person that are used."""
        sizes, shares = self._each()
        return float(np.minimum(sizes, most) @ shares)

    def _each(self):
        each = self.expected.each or EACH
        sizes, shares = np.array(list(each)), np.array(list(each.values()), dtype=float)
        whole = np.issubdtype(sizes.dtype, np.integer) and (sizes >= 0).all() and sizes.any()
        if not (whole and (shares >= 0).all() and shares.sum() > 0):
            raise Refused("of people expect shares by their number of rows, such as 1:0.7,2:0.3")
        return sizes, shares / shares.sum()

    def said_of_people(self, persons: Persons) -> str:
        """What is assumed of the number of rows of a person."""
        sizes, shares = self._each()
        of = ", ".join(
            f"{share:.0%} have {size}" for size, share in zip(sizes, shares, strict=True)
        )
        state = "" if self.expected.each else " State it with --each, such as --each 1:0.7,2:0.3."
        return f"Assumed of the rows of each of {persons.people:,} people: {of}.{state}"

    def without(self, plan: models.Plan, draw: int, V: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Weights (d,) fitted to one draw of rows, without privacy and with almost no ridge."""
        if draw not in self._without:
            some = V.any(axis=1)  # slots of people may be empty
            V, y = V[some], y[some]
            X, labels = rows.bounded(V, y, plan.problem.loss.residual)
            lam, loss = 1e-3 / len(X), plan.problem.loss
            self._without[draw] = minimise(X, labels, lam, loss=loss, tolerance=1e-7)[0][0]
        return self._without[draw]

    def coefficients(self) -> np.ndarray:
        """The true coefficients (d,) in the columns' own units."""
        T, shift = files.own_units(self.schema)
        return T @ self.weights + shift


class Outlook(NamedTuple):
    """The forecast at one epsilon.

    Attributes
    ----------
    epsilon : float
    widths : dict
        Column -> geometric mean width of its 95 % interval, in the column's own units. Infinite if most
        releases have no interval; empty if the method has none.
    ranges : dict
        Column -> the 10 % and 90 % quantiles of the widths.
    accuracy, without : dict
        Means by metric, with and without privacy.
    kept : float
        Share of the gain (AUC - 1/2, or r2) that the private model keeps.
    held : float or None
        Half the width of the held-out error rate's 95 % interval; None without a holdout, or for a numeric
        target.
    profile : dp_privacy.profiles.Profile

    Methods
    -------
    sentences
        The forecast in words.
    """

    epsilon: float
    widths: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    accuracy: dict[str, float]
    without: dict[str, float]
    kept: float
    held: float | None
    profile: Profile

    def sentences(self, prior: float = 0.5) -> list[str]:
        """The forecast in words.

        Parameters
        ----------
        prior : float
            An attacker's prior probability (`dp_release.meaning`).

        Returns
        -------
        list[str]
        """
        metrics = [
            f"{name} {value:.4g} ({self.without[name]:.4g} without privacy)"
            for name, value in self.accuracy.items()
        ]
        said = [f"On simulated rows, at epsilon = {self.epsilon:g}: {', '.join(metrics)}."]
        said.append(f"The share of the gain without privacy that is left: {self.kept:.0%}.")
        if self.held is not None:
            said.append(f"The error on the held out rows would be known to +- {self.held:.2g}.")
        for name, width in self.widths.items():
            low, high = self.ranges[name]
            what = "is mostly not given"
            if width < math.inf:
                what = f"is about {width:.3g} wide ({low:.2g} to {high:.2g} in 8 of 10 releases)"
            said.append(f"{name}: its 95 % interval {what}.")
        return [*said, *meaning(self.profile, prior).sentences()]


def outlook(request: Request, study: Study, draws: int | None = None) -> Outlook:
    """The forecast for a request, from releases of simulated rows.

    Parameters
    ----------
    request : dp_release.request.Request
    study : Study
    draws : int or None
        Number of releases, by default from the numbers of rows and columns.

    Returns
    -------
    Outlook

    Examples
    --------
    >>> schema = rows.Schema([rows.Number("age", 0, 120), rows.Category("ill", ("no", "yes"))], "ill")
    >>> asked = {"name": "ill", "schema": schema.facts, "rows": 2000, "unit": "one row is one person"}
    >>> asked |= {"epsilon": 1, "delta": 1e-6, "premise": "public example"}
    >>> request = Request.parsed(asked | {"method": "noise_aware_logistic"})
    >>> found = outlook(request, Study(schema), draws=9)
    >>> print(list(found.widths), 0.5 < found.accuracy["auc"] < found.without["auc"] + 0.05)
    ['age', 'constant'] True
    """
    paid = making.planned(request)
    plan = paid.model if request.holdout else paid
    n, draws = plan.problem.n, draws or _draws(study, plan.problem.n)
    persons = request.persons
    if persons is not None:
        persons = persons._replace(people=n // persons.most)  # without those that are held out
    levels = None if request.law == GAUSSIAN else request.read_as()
    names, widths, weights, plain, tested = study.schema.names, [], [], [], []
    offsets = []
    for k in range(draws):
        learnt = study.people(persons, k) if persons else Table(*study.rows(n, k, levels), None)
        key, schema, found = generator(study.seed, "key", k).bytes(32), study.schema, {}
        V, y = learnt.V, learnt.y
        if plan.found:
            simulated = study.unshortened(n, k)
            found = _found(request, plan, study, simulated, key)
            schema = rows.from_facts(bounds.settled(request.schema, found))
            learnt = Table(*_under(schema, study.schema, *simulated), None)
        release = models.release(plan, learnt.V, learnt.y, key, learnt.shares)
        table = files.table_of(release, names, *files.told(request, schema))[0]
        table = bounds.silenced(table, found)
        if table is not None:
            ends = [(math.inf if row["low"] is None else row["high"] - row["low"]) for row in table]
            widths.append(ends)
        if k < SCORED:
            weights.append(release.floats("weights"))
            offsets.append(release.offset())
            tested.append(schema)
            plain.append(study.without(plan, k, *(study.rows(n, k) if levels else (V, y))))
    typical, ranges = _typical(np.array(widths)) if widths else ([], [])
    without = _accuracy(study, study.schema, np.array(plain))
    if plan.found:  # each under its own bounds
        each = [_accuracy(study, s, w[None]) for s, w in zip(tested, weights, strict=True)]
        accuracy = {name: float(np.mean([e[name] for e in each])) for name in without}
    else:
        accuracy = _accuracy(study, study.schema, np.array(weights), levels, np.array(offsets))
    gains = [(each["auc"] - 0.5) if "auc" in each else each["r2"] for each in (accuracy, without)]
    return Outlook(
        request.epsilon,
        dict(zip(names, typical, strict=False)),
        dict(zip(names, ranges, strict=False)),
        accuracy,
        without,
        gains[0] / gains[1] if gains[1] > 0 else math.nan,
        _held(paid, accuracy) if request.holdout else None,
        paid.guarantee().profile,
    )


class Price(NamedTuple):
    """The forecast if so many rows of a person are used at most. used: their expected number."""

    persons: Persons
    used: float
    outlook: Outlook


def prices(
    request: Request, study: Study, mosts: tuple[int, ...] = MOSTS, draws: int | None = None
) -> list[Price]:
    """Forecasts for other numbers of rows per person, for both ways to count them.

    Parameters
    ----------
    request : dp_release.request.Request
        With `person`.
    study : Study
    mosts : tuple of int
    draws : int or None
        As for `outlook`.

    Returns
    -------
    list of Price

    Examples
    --------
    >>> columns = [rows.Unused("id"), rows.Number("age", 0, 120), rows.Category("ill", ("no", "yes"))]
    >>> schema = rows.Schema(columns, "ill")
    >>> asked = {"name": "ill", "schema": schema.facts, "unit": "one row is one stay"}
    >>> asked |= {"epsilon": 1, "delta": 1e-6, "premise": "public example"}
    >>> asked |= {"person": {"column": "id", "people": 2000, "most": 2}}
    >>> request = Request.parsed(asked | {"method": "noise_aware_logistic"})
    >>> found = prices(request, Study(schema), (1, 3), draws=9)
    >>> print([(each.persons.most, each.persons.count, each.used) for each in found])
    [(1, 'rows', 1.0), (3, 'rows', 1.75), (3, 'persons', 1.75)]
    """
    found = []
    for most in mosts:
        for count in (ROWS, PEOPLE)[: 1 + (most > 1)]:  # with one row per person, they are equal
            persons = request.persons._replace(most=most, count=count)
            asked = request._replace(person=persons._asdict(), rows=persons.slots)
            found.append(Price(persons, study.used(most), outlook(asked, study, draws)))
    return found


def price_lines(found: list[Price]) -> list[str]:
    """Prices in words, a line each."""
    said = [
        "What `most`, the rows of a person that are used, costs: widths of 95 % intervals (- if they are "
        "mostly not given)."
    ]
    for persons, used, outlook in found:
        how = "every row counts" if persons.count == ROWS else "every person counts once"
        widths = ", ".join(
            f"{name} {width:.3g}" if width < math.inf else f"{name} -"
            for name, width in outlook.widths.items()
        )
        said.append(
            f"most {persons.most}, {how} (about {used * persons.people:,.0f} rows): "
            f"{widths or 'no intervals'}; {outlook.kept:.0%} of the gain is left."
        )
    return said


def compared(request: Request, study: Study, draws: int | None = None) -> list[str]:
    """What the request's noise and each other law would give, in a sentence each.

    Parameters
    ----------
    request : dp_release.request.Request
    study : Study
    draws : int or None
        Number of releases for each law, by default a fifth of those of a forecast.

    Returns
    -------
    list[str]
        With the keys of the request that choose a law.

    Examples
    --------
    >>> schema = rows.Schema([rows.Number("age", 0, 120), rows.Category("ill", ("no", "yes"))], "ill")
    >>> asked = {"name": "ill", "schema": schema.facts, "rows": 2000, "unit": "one row is one person"}
    >>> asked |= {"epsilon": 1, "delta": 1e-6, "premise": "public example"}
    >>> request = Request.parsed(asked | {"method": "noise_aware_logistic"})
    >>> for said in compared(request, Study(schema), draws=9):
    ...     print(said.partition(":")[0])
    Of tables and weights under other noise, at epsilon = 1
    `law
    `law
    `law
    `method
    The rule (`law
    """
    draws = draws or max(_draws(study, request.rows) // TRIES, DRAWS[0])
    table = "noise_aware_log_cosh" if study.schema.numbers else "noise_aware_logistic"
    options = {k: v for k, v in request.options.items() if k in ("robust", "tau")}
    delta = request.delta or min(1e-6, 0.1 / request.rows)
    about = {"method": table, "options": options, "delta": delta, "holdout": None}
    tables = {law: request._replace(**about, law=law) for law in (GAUSSIAN, PURE, MIXED, RULE)}
    tables[PURE] = tables[PURE]._replace(delta=0.0)
    first = {k: v for k, v in request.options.items() if k == "offset"}
    for law in (PURE, MIXED, RULE):
        tables[law] = tables[law]._replace(options=options | first)
    alone = request._replace(method=ALONE, law=PURE, delta=0.0, holdout=None)
    own = {k: v for k, v in options.items() if k == "tau"}
    alone = alone._replace(options=own | first)
    said = [f"Of tables and weights under other noise, at epsilon = {request.epsilon:g}:"]
    for law in (GAUSSIAN, PURE, MIXED):
        said.append(f"`law: {law}`: {_in_short(tables[law], study, draws)}")
    said.append(f"`method: {ALONE}`: {_in_short(alone, study, draws)}")
    with suppress(Refused):
        said.append(f"The rule (`law: rule`): {tables[RULE].why()}")
    return said


def _in_short(request, study, draws):
    try:
        found = outlook(request, study, draws)
        rated, warned = RATE in request.plan(request.training).noises, request.warning()
    except Refused as error:
        return f"no release: {error}."
    spends = f"delta {request.delta:g}" if request.delta else "no delta"
    spends += "; the class rate first" * rated
    kept = f"{found.kept:.0%} of the gain without privacy is left"
    warned = f" {warned}." if warned else ""
    if not found.widths:
        return f"{spends}; {kept}; no intervals.{warned}"
    widths = [
        f"{name} {width:.3g}" if width < math.inf else f"{name} mostly not given"
        for name, width in found.widths.items()
    ]
    return f"{spends}; {kept}; widths: {', '.join(widths)}.{warned}"


def _with_expected_bounds(schema, expected):
    """The schema of simulated rows: columns whose bounds are found get bounds around what is expected."""
    found, ends = bounds.columns(schema), {}
    for name, column in found.items():
        known = expected.columns.get(name, {})
        if set(known) != {"mean", "deviation"}:
            raise Refused(
                f"{name!r} has no stated bounds: say what you expect of it, --expect {name}=MEAN,DEVIATION"
            )
        reach = FAR * known["deviation"]
        low = max(float(column.low), known["mean"] - reach)
        high = min(float(column.high), known["mean"] + reach)
        ends[name] = bounds.Found(low, high, [], [])
    return rows.from_facts(bounds.settled(schema.facts, ends)) if found else schema


def _found(request, plan, study, simulated, key):
    """The bounds that a release finds in simulated rows (V, y)."""
    asked = rows.from_facts(request.schema)

    def count(ends):
        exact = {}
        for name, each in ends.items():
            x = _numbers(study.schema, name, *simulated)
            inner = np.array([float(edge) for edge in each[1:-1]])
            places = np.searchsorted(inner, x, side="right")
            exact[name] = np.bincount(places, minlength=len(each) - 1).tolist()
        return exact

    return bounds.find(asked, plan.found, count, key)


def _numbers(schema, name, V, y):
    """A column of numbers or the target in its own units, from unshortened rows of a schema."""
    (column,) = (c for c in schema.columns if c.name == name)
    target = schema.columns[schema.target].name == name
    share = y / rows.ONE if target else V[:, schema.names.index(name)] / schema.each
    low, high = float(column.low), float(column.high)
    return low + (share + 1) * (high - low) / 2


def _under(schema, other, V, y):
    """Rows (V, y) of the schema `other` under the bounds of `schema`, which has the same columns."""
    V, y = V.copy(), y
    for column in schema.columns:
        if column in other.columns or not isinstance(column, rows.Number):
            continue
        low, high = float(column.low), float(column.high)
        share = np.clip((2 * _numbers(other, column.name, V, y) - low - high) / (high - low), -1, 1)
        if column.name == schema.columns[schema.target].name:
            y = np.trunc(share * rows.ONE).astype(np.int32)
        else:
            V[:, schema.names.index(column.name)] = np.trunc(share * schema.each)
    return V, y


def price(request: Request, study: Study, found: Outlook, draws: int | None = None) -> list[str]:
    """What bounds cost that are found, in sentences: none if all are stated. found: of `outlook`.

    The same rows are released under stated bounds, which are around what is expected.
    """
    paid = making.planned(request)
    noises = (paid.model if request.holdout else paid).found
    if not noises:
        return []
    said = [
        f"{name}: a bin of numbers stands out from about {bounds.stands_out(noises, name):,} rows on."
        for name in noises
    ]
    stated = outlook(request._replace(schema=study.schema.facts), study, draws)
    for name, width in found.widths.items():
        other = stated.widths[name]
        if other < math.inf:
            less = "mostly not given" if width == math.inf else f"{width / other:.2g} times as wide"
            said.append(f"{name}: under stated bounds, {other:.3g} wide; under found ones, {less}.")
    return said


def _typical(widths):
    """Each column's geometric mean and (10 %, 90 %) quantiles of the widths (draws, d).

    The mean is over finite widths; unless more than half are finite, it is infinite.
    """
    finite = np.isfinite(widths)
    logs = np.where(finite, np.log(np.where(finite, widths, 1.0)), 0.0)
    mean = np.exp(logs.sum(axis=0) / np.maximum(finite.sum(axis=0), 1))
    ends = np.quantile(widths, [0.1, 0.9], axis=0, method="inverted_cdf")
    typical = np.where(finite.mean(axis=0) > 0.5, mean, np.inf)
    return typical.tolist(), list(map(tuple, ends.T.tolist()))


def _draws(study, n):
    return min(max(WORK // (n * study.schema.d), DRAWS[0]), DRAWS[1])


def _accuracy(study, schema, weights, levels=None, offsets=0.0):
    """Metrics of weights for rows of a schema, which has the study's columns and perhaps other bounds."""
    V, y = study.tested
    if schema is not study.schema:
        V, y = _under(schema, study.schema, V, y)
    if levels is not None:
        V = contrasts.releveled(V, schema, levels)
    V = rows.shortened(V)
    if schema.numbers:
        target = schema.columns[schema.target]
        unit = (float(target.high) - float(target.low)) / 2
        X, labels = rows.bounded(V, y, True)
        metrics = evaluation.regression(weights, X.astype(float), labels, unit=unit)
    else:
        X, labels = rows.bounded(V, y, False)
        metrics = evaluation.classification(weights, X.astype(float), labels, offsets)
    return {name: float(values.mean()) for name, values in metrics.items()}


def _held(package, accuracy):
    if package.model.problem.loss.residual:
        return None
    sums = (package.held * (2 * accuracy["error"] - 1), 0, 2 * package.held)
    noisy = [round(int(each) / package.noise.spacing) for each in sums]
    errors = holdout.measured(noisy, package.noise)
    return (errors["high"] - errors["low"]) / 2


def needed(
    request: Request, study: Study, enough: Callable[["Outlook"], bool], draws: int | None = None
) -> Outlook:
    """The forecast at about the smallest epsilon for which `enough` holds.

    All epsilons share simulated rows and keys.

    Parameters
    ----------
    request : dp_release.request.Request
        Its epsilon is replaced.
    study : Study
    enough : Callable
        Condition `Outlook` -> bool, for instance from `width` or `share`.
    draws : int or None
        Number of releases at the resulting epsilon. The search makes a fifth as many per epsilon, but at
        least 9.

    Returns
    -------
    Outlook

    Raises
    ------
    dp_privacy.errors.Refused
        If no epsilon up to 20 is sufficient.

    Examples
    --------
    >>> schema = rows.Schema([rows.Number("age", 0, 120), rows.Category("ill", ("no", "yes"))], "ill")
    >>> asked = {"name": "ill", "schema": schema.facts, "rows": 2000, "unit": "one row is one person"}
    >>> asked |= {"epsilon": 1, "delta": 1e-6, "premise": "public example"}
    >>> request = Request.parsed(asked | {"method": "noise_aware_logistic"})
    >>> found = needed(request, Study(schema), share(0.5), draws=9)
    >>> print(found.kept >= 0.5, found.epsilon < 1)
    True True
    """
    draws = draws or _draws(study, request.rows)
    few = max(draws // TRIES, DRAWS[0])

    def at(epsilon, draws=few):
        return outlook(request._replace(epsilon=float(f"{epsilon:.4g}")), study, draws)

    low, high = LEAST, 1.0
    while not enough(at(high)):
        if high >= MOST:
            raise Refused(f"no epsilon up to {MOST:g} is enough: more rows are needed")
        low, high = high, min(4 * high, MOST)
    while high > low * (1 + NEAR):
        middle = math.sqrt(low * high)
        try:
            tried = at(middle)
        except Refused:  # no private release is useful at this epsilon
            tried = None
        if tried is not None and enough(tried):
            high = middle
        else:
            low = middle
    result = at(high, draws)
    while not enough(result) and high < MOST:  # the search makes fewer releases, so it may err
        high *= 1 + 2 * NEAR
        result = at(high, draws)
    return result


def width(column: str, wanted: float) -> Callable[[Outlook], bool]:
    """A condition for `needed`: a column's interval is at most this wide.

    Parameters
    ----------
    column : str
        Name in `Outlook.widths`.
    wanted : float
        In the column's own units.

    Returns
    -------
    Callable

    Examples
    --------
    >>> enough = width("age", 0.02)
    """

    def enough(forecast):
        if column not in forecast.widths:
            raise Refused(f"there is no interval for a column {column!r}")
        return forecast.widths[column] <= wanted

    return enough


def share(wanted: float) -> Callable[[Outlook], bool]:
    """A condition for `needed`: at least this share of the gain without privacy is kept.

    Parameters
    ----------
    wanted : float
        In (0, 1].

    Returns
    -------
    Callable

    Examples
    --------
    >>> enough = share(0.9)
    """
    return lambda forecast: forecast.kept >= wanted
