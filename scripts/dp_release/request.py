"""Requests for releases. They hold only public facts, and are checked before any row is read."""

import hashlib
import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from dp import losses
from dp.mechanisms import MECHANISMS
from dp_privacy.errors import Refused
from dp_release import bounds, contrasts, holdout, models, norm_models, rows
from dp_release import persons as people
from dp_release.persons import Persons

__all__ = ["PREMISES", "Request"]

NAME = r"[A-Za-z0-9][A-Za-z0-9_]{0,63}"
CHOSEN_WITHOUT = "chosen without these rows"
BENCHMARKED = "chosen without these rows, although a benchmark of them exists"
PUBLIC_EXAMPLE = "public example"
PREMISES = {
    CHOSEN_WITHOUT: "Method, epsilon, columns, bounds and categories were chosen without a look at these "
    "rows, and no result of a benchmark on them was seen.",
    BENCHMARKED: "Method, epsilon, columns, bounds and categories were chosen without a look at these "
    "rows. A benchmark of the same rows exists; nothing was chosen by its results.",
    PUBLIC_EXAMPLE: "The rows are public. This release is an example and protects nobody.",
}
WITHOUT_A_LOOK = "chosen without a look at these rows"
BUT_A_PREVIEW = f"{WITHOUT_A_LOOK}, but for what a preview shows"  # if they changed after one


class Method(NamedTuple):
    """A method of a release.

    plan: (n, d, epsilon, delta, **options) -> `models.Plan` with Gaussian noise, None without one. numbers:
    whether the target is a number; None allows numbers and two classes. persons: whether a proof covers
    people with several rows.
    """

    plan: Callable | None
    numbers: bool | None
    options: tuple[str, ...]
    persons: bool = False


def _weights_alone(n, d, epsilon, delta, loss, tau=0.25, **options):
    if loss == "log_cosh":
        loss = losses.LogCosh(tau)
    return models.objective_perturbation(n, d, epsilon, delta, loss, **options)


# Ranges of numeric options, outside which models are useless or floats overflow.
RANGES = {"output": (1e-6, 1), "covariance": (1e-6, 1), "radius": (1e-3, 1e6), "tau": (1e-3, 1e3)}
SHARES = ("output", "covariance", "radius")
ALONE = "knorm_objective_perturbation"  # weights with delta 0
GAUSSIAN, PURE, MIXED, RULE = "gaussian", "pure", "mixed", "rule"
METHODS = {
    "noise_aware_logistic": Method(
        models.noise_aware_logistic, False, ("robust", "offset", *SHARES), True
    ),
    "noise_aware_log_cosh": Method(
        models.noise_aware_log_cosh, True, ("robust", "tau", *SHARES), True
    ),
    "gaussian_objective_perturbation": Method(
        _weights_alone, None, ("tau", "output", "radius"), True
    ),
    ALONE: Method(None, None, ("tau", "offset")),
}
TABLES = (GAUSSIAN, PURE, MIXED, RULE)
LAWS = {  # of the noise that a method may have, first its own
    "noise_aware_logistic": TABLES,
    "noise_aware_log_cosh": TABLES,
    "gaussian_objective_perturbation": (GAUSSIAN,),
    ALONE: (PURE,),
}
# Keys that requests did not have at first. At their default, they are left out of digests, so that books
# know older requests again.
LATER = ("released_by", "contact", "labels", "person", "law")


class Request(NamedTuple):
    """The public facts of a release.

    Attributes
    ----------
    name : str
        Name in the book.
    schema : dict
        `dp_release.rows.Schema.facts`.
    rows : int
        Public number of lines. With `person`, the number of slots, people times most, which is not stated.
    unit : str
        Meaning of a row, in words.
    epsilon, delta : float
        Cost of the release. Under the law "pure", delta is 0, and may be left out.
    method : str
        One of `METHODS`.
    premise : str
        How these settings were chosen: one of `PREMISES`.
    options : dict
        The method's options, all public.
    holdout : float or None
        Share of rows held out to measure errors.
    title : str
    taken_as_public : str
        Doubtful facts taken as public.
    released_by, contact : str
        Who publishes the model, and whom readers may ask, for its card.
    labels : dict
        Words for the table and the figure: of a column, and of a level as `column=level`.
    person : dict or None
        The fields of `dp_release.persons.Persons`, if a person is protected and not a row.
    law : str
        Of the noise: "gaussian"; "pure" or "mixed" (`dp_release.norm_models`), for rows with all levels; or
        "rule", which of these two a public rule chooses.

    Methods
    -------
    parsed
        A checked request from a dictionary.
    plan
        The plan, from public numbers.

    Examples
    --------
    >>> schema = rows.Schema([rows.Number("age", 0, 120), rows.Category("ill", ("no", "yes"))], "ill")
    >>> asked = {"name": "ill", "schema": schema.facts, "rows": 5000, "unit": "one row is one person"}
    >>> asked |= {"epsilon": 1, "delta": 1e-6, "premise": "public example"}
    >>> request = Request.parsed(asked | {"method": "noise_aware_logistic"})
    >>> request.plan().guarantee().epsilon
    1.0
    >>> try:
    ...     Request.parsed(asked | {"method": "dp_sgd"})
    ... except Refused as error:
    ...     print(str(error).partition(":")[0])
    'dp_sgd' draws in floating point, from a seed, and is for comparisons alone
    """

    name: str
    schema: dict
    rows: int
    unit: str
    epsilon: float
    delta: float
    method: str
    premise: str
    options: dict = {}
    holdout: float | None = None
    title: str = ""
    taken_as_public: str = ""
    released_by: str = ""
    contact: str = ""
    labels: dict = {}
    person: dict | None = None
    law: str = GAUSSIAN

    @staticmethod
    def parsed(values: dict) -> "Request":
        """A checked request from a dictionary.

        Parameters
        ----------
        values : dict
            The attributes by name; the first eight are required.

        Returns
        -------
        Request

        Raises
        ------
        dp_privacy.errors.Refused
            For a missing or unknown key, or a value for which privacy is not proven.
        """
        law = LAWS.get(values.get("method"), TABLES)[0]
        values = {"law": law} | values
        if values["law"] == PURE:
            values = {"delta": 0.0} | values
        unknown = sorted(values.keys() - set(Request._fields))
        missing = sorted(set(Request._fields[:8]) - values.keys())
        if values.get("person") is not None:
            if "rows" in values:
                raise Refused(
                    "state either rows or person, whose number of people is public instead"
                )
            missing = [key for key in missing if key != "rows"]
        if unknown or missing:
            said = f"has no key {unknown[0]!r}" if unknown else f"needs the key {missing[0]!r}"
            raise Refused(f"a release {said}")
        values = json.loads(json.dumps(values))
        if values.get("person") is not None and not missing:
            persons = people.of(values["person"], rows.from_facts(values["schema"]))
            values |= {"person": persons._asdict(), "rows": persons.slots}
        for key in ("epsilon", "delta", "holdout"):
            if isinstance(values.get(key), int) and not isinstance(values[key], bool):
                values[key] = float(values[key])
        request = Request(**values).checked()
        if request.law == GAUSSIAN:
            return request
        stated = contrasts.with_references(rows.from_facts(request.schema))
        return request._replace(schema=stated.facts)

    def checked(self) -> "Request":
        """The request itself. Raises `Refused` unless its release is provably private."""
        if not isinstance(self.name, str) or not re.fullmatch(NAME, self.name):
            raise Refused("a release's name has letters, digits and underscores, at most 64")
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise Refused("state the unit: what one row is, such as 'one row is one person'")
        if self.premise not in PREMISES:
            raise Refused(f"the premise is one of: {'; '.join(PREMISES)}")
        if not isinstance(self.rows, int) or isinstance(self.rows, bool) or self.rows < 1:
            raise Refused("state the number of rows, which is public")
        self._check_cost()
        schema = rows.from_facts(self.schema)
        persons = people.of(self.person, schema)
        count, one, some = self.rows, "row", "rows"
        if persons is not None:
            count, one, some = persons.people, "person", "people"
        if self.delta * count > 1:
            raise Refused(
                f"delta = {self.delta:g} is more than one over the {count} {some}, so a release of "
                f"one whole {one} could satisfy it: make it far smaller"
            )
        self._check_method()
        self._check_law()
        if schema.numbers and self.options.get("offset") == norm_models.PAID:
            raise Refused("the option 'offset' is for two classes: leave it out")
        if persons is not None and persons.slots != self.rows:
            raise Refused("rows are people times most")
        bounds.check(schema)
        if persons is not None and bounds.columns(schema):
            raise Refused(
                "bounds are found by counting rows, of which a person may have several: state the bounds, "
                "or leave `person` out"
            )
        if METHODS[self.method].numbers not in (None, schema.numbers):
            other = [name for name, m in METHODS.items() if m.numbers in (None, schema.numbers)]
            what = "a number" if schema.numbers else "two classes"
            raise Refused(f"the target is {what}: the method is one of {', '.join(other)}")
        if schema.constant is None:
            raise Refused(
                "a release needs the constant column: add the step `constant_feature: {}`"
            )
        if self.holdout is not None and not (
            isinstance(self.holdout, float) and 0 < self.holdout < 1
        ):
            raise Refused("the holdout is a share of the rows, between 0 and 1")
        self._check_words(schema)
        return self

    def _check_cost(self):
        pure = self.law == PURE and self.delta == 0 and isinstance(self.delta, float)
        for key in ("epsilon",) if pure else ("epsilon", "delta"):
            value = getattr(self, key)
            if not isinstance(value, float) or not 0 < value < math.inf:
                raise Refused(f"{key} must be a positive number")
        if self.law == PURE and not pure:
            raise Refused("the law pure spends no delta: leave it out")

    def _check_law(self):
        laws = LAWS[self.method]
        if self.law not in laws:
            raise Refused(f"{self.method} has the law {' or '.join(laws)}, not {self.law!r}")
        if self.law == GAUSSIAN:
            if "offset" in self.options:
                raise Refused(f"the option 'offset' is not for the law {GAUSSIAN}: leave it out")
            return
        if self.person is not None:
            raise Refused(
                f"with person, the law is {GAUSSIAN}: the others are for one row per person"
            )
        if bounds.columns(rows.from_facts(self.schema)):
            raise Refused(
                f"bounds that are found need the law {GAUSSIAN}: state bounds, or leave it out"
            )
        for key in self.options.keys() & set(SHARES):
            raise Refused(f"the option {key!r} is for the law {GAUSSIAN} alone: leave it out")

    def _check_words(self, schema):
        for key in ("released_by", "contact"):
            if not isinstance(getattr(self, key), str):
                raise Refused(f"{key} is a text")
        known = [*schema.names[:-1], *(c["name"] for c in self.schema["columns"] if "values" in c)]
        if not isinstance(self.labels, dict):
            raise Refused("labels are columns, or `column=level`, each with its words")
        for key, words in self.labels.items():
            if key not in known:
                raise Refused(f"labels: there is no {key!r} among {', '.join(known)}")
            if not isinstance(words, str) or not words.strip():
                raise Refused(f"labels: {key!r} needs words")

    def _check_method(self):
        known = ", ".join(METHODS)
        if self.method not in METHODS:
            if self.method in MECHANISMS.added():
                why = "is a mechanism of your own, of which nothing is proven for a real machine"
            elif self.method in MECHANISMS:
                why = "draws in floating point, from a seed, and is for comparisons alone"
            else:
                why = "is no method"
            raise Refused(f"{self.method!r} {why}: a release takes one of {known}")
        if self.person is not None and not METHODS[self.method].persons:
            proven = ", ".join(name for name, method in METHODS.items() if method.persons)
            raise Refused(
                f"{self.method} is proven for one row per person: with person, take one of {proven}"
            )
        if not isinstance(self.options, dict):
            raise Refused("options are names with values")
        if {"lam", "lambda"} & self.options.keys():
            raise Refused("lambda follows from public numbers by rule, and cannot be given")
        for key, value in self.options.items():
            if key not in METHODS[self.method].options:
                taken = ", ".join(METHODS[self.method].options)
                raise Refused(f"{self.method} takes no option {key!r} here (it takes: {taken})")
            _check_option(key, value)

    def plan(self, n: int | None = None) -> models.Plan:
        """The plan, from public numbers.

        Parameters
        ----------
        n : int or None
            Number of training rows; None for all.

        Returns
        -------
        dp_release.models.Plan
        """
        schema, n = self.read_as(), self.rows if n is None else n
        options = dict(self.options)
        if self.law != GAUSSIAN:
            return self._choice(schema, n).plan
        if self.person is not None:
            options["persons"] = self.persons
        if METHODS[self.method].numbers is None:
            options["loss"] = "log_cosh" if schema.numbers else "logistic"
        if bounds.columns(schema):
            options["find"] = bounds.options(schema)
        try:
            return METHODS[self.method].plan(n, schema.d, self.epsilon, self.delta, **options)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise Refused(f"{self.method}: {error}") from None

    def read_as(self) -> rows.Schema:
        """The schema of the rows that are released: of map 1 or, for noise of a norm's law, map 2."""
        schema = rows.from_facts(self.schema)
        return schema if self.law == GAUSSIAN else contrasts.all_levels(schema)

    def why(self) -> str:
        """Why the public rule chooses its law, in a sentence; empty if the law is stated."""
        return self._choice(self.read_as(), self.training).why if self.law == RULE else ""

    def warning(self) -> str:
        """What a class rate costs, if the request insists on one that the public rule would not pay."""
        if self.law == GAUSSIAN or self.options.get("offset") != norm_models.PAID:
            return ""
        options = self.options | {"offset": norm_models.NONE}
        try:
            paid = self.plan(self.training)
            law = self.law if self.law != RULE else MIXED if paid.delta else PURE
            plain = self._replace(law=law, options=options).plan(self.training)
        except Refused:  # the release says so itself
            return ""
        return norm_models.warning(paid, plain)

    @property
    def training(self) -> int:
        """The number of rows that are learnt from. With `person`, people are held out with all rows."""
        if self.holdout is None:
            return self.rows
        each = 1 if self.person is None else self.persons.most
        return self.rows - each * holdout.size(self.rows // each, self.holdout)

    def _choice(self, schema, n):
        loss = losses.LogCosh(self.options.get("tau", 0.25)) if schema.numbers else "logistic"
        offset = self.options.get("offset", norm_models.BY_RULE)
        body, u = contrasts.body(schema), Fraction(schema.each, rows.ONE)
        robust = self.options.get("robust", schema.numbers)
        about = n, body, u, self.epsilon

        def made(first):
            if self.method == ALONE:
                return norm_models.weights_alone(*about, loss, offset=first)
            if self.law == PURE:
                return norm_models.pure_table(*about, loss, robust, offset=first)
            return norm_models.mixed_table(*about, self.delta, loss, robust, offset=first)

        try:
            if self.law == RULE:
                return norm_models.table(*about, self.delta, loss, robust, offset)
            return norm_models.Choice(norm_models.with_offset(made, offset), "")
        except (TypeError, ValueError, ArithmeticError) as error:
            raise Refused(f"{self.method}: {error}") from None

    @property
    def persons(self) -> Persons | None:
        """Whom the release protects; None if a row."""
        return None if self.person is None else Persons(**self.person)

    @property
    def classes(self) -> list[str] | None:
        schema = rows.from_facts(self.schema)
        return class_names(schema.columns[schema.target])

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        """(epsilon, delta) as decimals, exactly as written; a delta of 0 if the rule chooses "pure"."""
        delta = self.plan(self.training).delta if self.law == RULE else self.delta
        return Fraction(str(self.epsilon)), Fraction(str(delta))

    def digest(self) -> str:
        """A digest. Keys that older requests do not have are left out at their defaults."""
        values = self._asdict()
        for key in LATER:
            if values[key] == self._field_defaults[key]:
                del values[key]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def settings(self) -> str:
        """A digest without name and words, which say nothing of what is computed."""
        return self._replace(name="", title="", released_by="", contact="", labels={}).digest()


def _check_option(key, value):
    if key == "offset":
        if value not in norm_models.OFFSETS:
            raise Refused(f"the option 'offset' is {', '.join(norm_models.OFFSETS)}, not {value!r}")
        return
    if key not in RANGES:
        if not isinstance(value, bool):
            raise Refused(f"the option {key!r} is true or false, not {value!r}")
        return
    low, high = RANGES[key]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and low <= value <= high):
        raise Refused(f"the option {key!r} is a number between {low:g} and {high:g}, not {value!r}")


def class_names(target: rows.Column) -> list[str] | None:
    """Names of the labels -1 and 1 of a target, or None for numbers."""
    if isinstance(target, rows.Number):
        return None
    if isinstance(target, rows.Category):
        return [str(value) for value in target.values]
    if target.above is not None:
        return [f"at most {target.above}", f"above {target.above}"]
    positive = " or ".join(map(_text, target.positive))
    return [" or ".join(map(_text, target.negative)) or f"not {positive}", positive]


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)
