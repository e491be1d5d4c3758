"""Write and read model.json: one model with its guarantee, as plain data.

Keys:

    format        FORMAT, or LEVELS for noise of a norm's law, or OFFSET if there is an offset, too
    name, title, method, unit, premise, rows (n, public), training_rows (without held-out rows)
    schema        `rows.Schema.facts`: columns in the file's order with bounds, categories, reference
                  levels, codes and replacements of missing cells; the target; the `separator` (what
                  requests call the delimiter) and, if they are not the default, `decimal`, `encoding`,
                  `header` and `comment` (`dp_release.formats`)
    columns       `rows.Schema.names`, the names of the d columns of a row: `column=level` for a level
                  other than the reference level; the last is `constant`
    person        only if a person is protected: {column, people, most, count} of `dp_release.persons`.
                  `rows` and `training_rows` then count slots, `most` for each of the people
    classes       names of the labels -1 and 1; null for a number
    target        null for classes; otherwise {name, low, high}, where [low, high] is mapped to [-1, 1]
    loss          {name, tau or null}: the link is logistic for `logistic`, and the identity for `log_cosh`
    lambda        of the ridge penalty lambda/2 ||weights||^2
    parts         part -> {step, scale, integers}: the release itself, integers in units of 2^step with
                  noise of standard deviation scale * 2^step. `weights` always; `hessian`, `scores` or
                  `square` (sums over rows, `dp_release.statistics`) if the method has them
    tilt          {step, scale} of the noise in the objective
    weights       (d,), for predictions: a row of integers v (`rows.Schema`) has the score weights . v 2^-20
    coefficients  (d,), the weights in the columns' own units and, if numeric, the target's; the last is
                  the intercept
    table         null, or per column {column, estimate, standard_error, low, high, p_value, says},
                  corrected for the ridge's bias, with 95 % intervals that include the noise; where `says`
                  is a sentence, the numbers are null
    estimates, covariance  null, or the numbers behind the table, in the columns' own units
    holdout       null, or {rows, step, scale, integers} of `dp_release.holdout` (and in LEVELS {law}), and
                  the errors
    guarantee     {epsilon, delta, adjacency, reason, profile: [[epsilon, delta], ..], premises: [..],
                  meaning: of `dp_release.meaning`, for a prior probability of 1/2}
    spent         the book's sums including this release: {epsilon, delta, of_epsilon, of_delta,
                  releases, previews}, and `settings_changed`, how often the request changed after a
                  preview of the rows (absent in older models)
    made_by       {code, libraries, arithmetic} of `dp_release.making`
    date          the day on which the release began
    released_by, contact, labels  of the request, if it states them
    found         absent, or what the release found bounds from (`dp_release.bounds`): {epsilon, the cost
                  alone at the release's delta; columns: [{column, least, most, outside, low, high,
                  stands_out, step, scale, integers, parts}, ..]}. `schema` has the bounds that were found

Models of older code have no date. In LEVELS and OFFSET, rows are of map 2 (`dp_release.contrasts`), so the
weights have other columns than the table and the coefficients, and there are further keys:

    weight_columns  the columns of `weights` and of `parts`: all levels, and `constant` only without
                  categories. A matrix in `parts` has the entries and factors of `norm_models.entries`
    law           of the request; why: why the rule chose the law of the parts, or empty
    parts, tilt   those with noise of a norm's law have {law: hull or l2}: `scale` is then S of
                  `dp_release.norm_noise`

In OFFSET there are also

    parts         `rate`, the first part: half the sum of the number of rows and of all labels -1 and 1
    offset        log odds that follow from it (`dp_release.rate`), which are added to every score; the
                  intercepts in `coefficients`, `table` and `estimates` contain them
"""

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dp.inference import answered
from dp_privacy.errors import Refused
from dp_release import bounds, contrasts, holdout, meaning, models, rows, statistics
from dp_release.norm_noise import Noise
from dp_release.rate import RATE
from dp_release.request import BUT_A_PREVIEW, GAUSSIAN, PREMISES, WITHOUT_A_LOOK, Request

__all__ = ["Model", "load"]

FORMAT, LEVELS, OFFSET = "dp-release 1", "dp-release 2", "dp-release 3"
SILENT = "the release tells too little about this coefficient"
UNITS = "its error is beyond the machine's numbers: state the columns' bounds in other units"
PROFILE = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # multiples of epsilon
MACHINE = (
    "Nobody who sees the release can tell HMAC-SHA512 under a secret key from random bits.",
    "Numbers are IEEE binary64, and matrix products sum plain products in some order.",
    "exp and tanh have a relative error of at most 4 units in the last place.",
    "The rows that were evaluated are those that were prepared, and the code that ran is the code that "
    "is named here.",
    "The number of rows is public.",
)
# in place of the last one
PERSON = (
    "The number of people, {people:,}, is public; the number of rows is not.",
    "All rows of a person have the same text in `{column}`, byte by byte, and no two people share one. The "
    "data holder claims this, and nothing can check it.",
)

NEVER = (
    "A tilt of a probability below 1e-26 is never drawn. A delta of 0 does not count it, just as no delta "
    "counts that HMAC-SHA512 may be broken."
)

KEYS = (
    *("name", "title", "method", "unit", "premise", "rows", "training_rows", "schema", "columns"),
    *("classes", "target", "loss", "lambda", "parts", "tilt", "weights", "coefficients", "table"),
    *("estimates", "covariance", "holdout", "guarantee", "spent", "made_by"),
)


class Model(NamedTuple):
    """A published model.

    Attributes
    ----------
    document : dict
        All of model.json.
    schema : dp_release.rows.Schema
    weights : numpy.ndarray, (d,)
        Weights for rows of `reads`.
    coefficients : numpy.ndarray, (d,)
        Weights in the columns' own units, the intercept last.
    classes : list[str] or None
        Names of the labels -1 and 1, None for numbers.
    target : tuple of float or None
        A numeric target's bounds.
    reads : dp_release.rows.Schema
        Of the rows that the weights are for; its columns are other ones in `LEVELS` and `OFFSET`.
    offset : float
        Of all scores, in log odds.
    """

    document: dict
    schema: rows.Schema
    weights: np.ndarray
    coefficients: np.ndarray
    classes: list[str] | None
    target: tuple[float, float] | None
    reads: rows.Schema
    offset: float = 0.0


def load(path: str | Path) -> Model:
    """Read a model from model.json.

    Parameters
    ----------
    path : str or pathlib.Path

    Returns
    -------
    Model

    Raises
    ------
    dp_privacy.errors.Refused
        If the file holds no model.

    Examples
    --------
    >>> try:
    ...     load("nothing.json")
    ... except Refused as error:
    ...     print(error)
    nothing.json: cannot be read (No such file or directory)
    """
    try:
        return parse(Path(path).read_bytes())
    except OSError as error:
        raise Refused(f"{path}: cannot be read ({error.strerror})") from None
    except Refused as error:
        raise Refused(f"{path}: {error}") from None


def parse(content: bytes) -> Model:
    """Read a model from its file's content. Raises `Refused` if it is no model."""
    try:
        document = json.loads(content, parse_constant=_no_number)
        known = FORMAT, LEVELS, OFFSET
        if document["format"] not in known:
            raise Refused(f"has another format than {', '.join(map(repr, known))}")
        for key in KEYS:
            document[key]
        reads = schema = rows.from_facts(document["schema"])
        target = document["target"]
        if document["format"] != FORMAT:
            reads = contrasts.all_levels(schema)
        model = Model(
            document,
            schema,
            np.array(document["weights"], dtype=float),
            np.array(document["coefficients"], dtype=float),
            document["classes"],
            target and (float(target["low"]), float(target["high"])),
            reads,
            float(document["offset"]) if document["format"] == OFFSET else 0.0,
        )
        _check(model)
        return model
    except Refused as error:
        raise Refused(f"is not the model of a release: {error}") from None
    except KeyError as error:
        raise Refused(f"is not the model of a release: it has no {error}") from None
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise Refused(f"is not the model of a release ({type(error).__name__})") from None


def _no_number(word):
    raise Refused(f"{word} is no number")


def _check(model):
    """Raise `Refused`, or another error that `parse` catches, if a model is inconsistent."""
    document, d = model.document, model.schema.d
    shapes = {
        "weights": (model.reads.d,),
        "coefficients": (d,),
        "estimates": (d,),
        "covariance": (d, d),
    }
    for key, shape in shapes.items():
        if document[key] is None and key in ("estimates", "covariance"):
            continue
        values = np.array(document[key], dtype=float)
        if values.shape != shape or not np.isfinite(values).all():
            raise Refused(f"{key} are not {' x '.join(map(str, shape))} numbers")
    read = document.get("weight_columns", model.schema.names)
    if document["columns"] != model.schema.names or read != model.reads.names:
        raise Refused("its columns are not those of its schema")
    table = document["table"]
    if table is not None and [row["column"] for row in table] != model.schema.names:
        raise Refused("its table is not of its columns")
    if not math.isfinite(model.offset):
        raise Refused("its offset is no number")
    named = isinstance(model.classes, list) and [type(name) for name in model.classes] == [str, str]
    bounded = model.target is not None and -math.inf < model.target[0] < model.target[1] < math.inf
    if (named, bounded) != (not model.schema.numbers, model.schema.numbers) or (
        None not in (model.classes, model.target)
    ):
        raise Refused("it is neither of two classes nor of a number with bounds")
    for key in ("epsilon", "delta", "adjacency", "reason", "profile", "premises", "meaning"):
        document["guarantee"][key]


def content(
    request: Request,
    made: models.Release | holdout.Release,
    spent: dict,
    made_by: dict,
    day: str,
    found: dict[str, bounds.Found] | None = None,
) -> bytes:
    """The content of model.json.

    spent, made_by, day: of the book. found: the bounds that the release found.
    """
    measured = isinstance(made, holdout.Release)
    release, paid = (made.model, made.package) if measured else (made, made.plan)
    plan, asked = release.plan, rows.from_facts(request.schema)
    facts = bounds.settled(request.schema, found or {})
    schema = rows.from_facts(facts)
    target = schema.columns[schema.target]
    T, shift = told(request, schema)
    weights = release.floats("weights")
    coefficients = T @ weights + shift
    coefficients[-1] += release.offset()
    guarantee = paid.guarantee()
    table, estimates, covariance = table_of(release, schema.names, T, shift)
    table = bounds.silenced(table, found or {})
    document = {
        "format": FORMAT if request.law == GAUSSIAN else LEVELS,
        "name": request.name,
        "title": request.title,
        "method": request.method,
        "unit": request.unit,
        "premise": request.premise,
        "rows": request.rows,
        "training_rows": plan.problem.n,
        "schema": facts,
        "columns": schema.names,
        "classes": request.classes,
        "target": {"name": target.name, "low": float(target.low), "high": float(target.high)}
        if schema.numbers
        else None,
        "loss": {"name": plan.problem.loss.name, "tau": getattr(plan.problem.loss, "tau", None)},
        "lambda": plan.problem.lam,
        "parts": {
            part: _law(plan.noises[part]) | {"integers": integers}
            for part, integers in release.parts.items()
        },
        "tilt": _law(plan.tilt.noise),
        "weights": weights.tolist(),
        "coefficients": coefficients.tolist(),
        "table": table,
        "estimates": estimates,
        "covariance": covariance,
        "holdout": made.document() if measured else None,
        "guarantee": {
            "epsilon": request.epsilon,
            "delta": float(request.cost[1]),
            "adjacency": guarantee.adjacency,
            "reason": guarantee.reason,
            "profile": [[e * request.epsilon, paid.delta_at(e * request.epsilon)] for e in PROFILE],
            "premises": _premises(request, spent, found, guarantee.delta),
            "meaning": meaning.meaning(guarantee.profile)._asdict(),
        },
        "spent": spent,
        "made_by": made_by,
        "date": day,
    }
    if request.law != GAUSSIAN:
        document |= {"weight_columns": request.read_as().names, "law": request.law}
        document["why"] = request.why()
    if RATE in release.parts:
        document |= {"format": OFFSET, "offset": release.offset()}
    if found:
        document["found"] = bounds.document(asked, plan, found)
    if request.person is not None:
        document["person"] = request.person
    for key in ("released_by", "contact", "labels"):
        if getattr(request, key):
            document[key] = getattr(request, key)
    return written(document)


def written(document: dict) -> bytes:
    """The bytes of a document's model.json. So whoever has a document knows the file's digest."""
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def told(request: Request, schema: rows.Schema) -> tuple[np.ndarray, np.ndarray]:
    """(T, shift): coefficients of the schema's columns, in their units, are T weights + shift."""
    if request.law == GAUSSIAN:
        return own_units(schema)
    return contrasts.own_units(schema, request.read_as())


def _law(noise):
    law = {"law": noise.law} if isinstance(noise, Noise) else {}
    return {"step": noise.step, "scale": noise.scale} | law


def _premises(request, spent, found, delta):
    premise = PREMISES[request.premise]
    if found:  # by the release, which pays for it
        premise = premise.replace("columns, bounds", "columns, stated bounds")
    if spent.get("settings_changed"):
        premise = premise.replace(WITHOUT_A_LOOK, BUT_A_PREVIEW)
    also = [f"Taken as public: {request.taken_as_public}."] if request.taken_as_public else []
    never = [] if delta else [NEVER]
    if request.person is None:
        return [premise, *also, *MACHINE, *never]
    persons = (said.format(**request.person) for said in PERSON)
    return [premise, *also, *MACHINE[:-1], *persons, *never]


def own_units(schema: rows.Schema) -> tuple[np.ndarray, np.ndarray]:
    """(T (d, d), shift (d,)) such that coefficients in the columns' own units are T weights + shift.

    Let `a` = `schema.each` 2^-20. A number x becomes `a` (2 x - low - high)/(high - low), and a category's
    level or the constant becomes `a`. So scores are linear in the columns of rows that are not clipped or
    shortened. For a target with bounds [l, h], a score s is the prediction l + (h - l)(s + 1)/2.
    """
    a, d = schema.each / rows.ONE, schema.d
    T, shift, j = a * np.eye(d), np.zeros(d), 0
    for k, column in enumerate(schema.columns):
        if k == schema.target or isinstance(column, rows.Unused):
            continue
        if isinstance(column, rows.Number):
            T[j, j], T[-1, j] = contrasts.of_number(column, a)
            j += 1
        else:
            j += len(column.values) - (column.reference is not None)
    contrasts.in_units_of_target(schema, T, shift)
    return T, shift


def table_of(
    release: models.Release, names: list[str], T: np.ndarray, shift: np.ndarray
) -> tuple[list | None, list | None, list | None]:
    """(table, estimates, covariance) in the columns' own units; each is None without a Hessian."""
    if statistics.HESSIAN not in release.parts:
        return None, None, None
    described = release.plan.described(release)
    estimates = T @ described.weights + shift
    estimates[-1] += release.offset()
    with np.errstate(over="ignore", invalid="ignore"):  # bounds such as [0, 1e100] overflow
        covariance = T @ described.covariance @ T.T
        printed = answered(covariance[None], (T @ described.unresolved @ T.T)[None])
        some = np.diagonal(covariance) > 0
        ends = described.intervals(estimates[None], covariance[None], T, printed & some)
    keys = ("estimate", "standard_error", "low", "high", "p_value")
    table = []
    for j, name in enumerate(names):
        values = {key: float(statistic[0, j]) for key, statistic in zip(keys, ends, strict=True)}
        held = some[j] and math.isfinite(covariance[j, j])
        said = "" if printed[0, j] and held else SILENT if held else UNITS
        if said or not all(map(math.isfinite, values.values())):
            values, said = dict.fromkeys(keys), said or SILENT
        table.append({"column": name, **values, "says": said})
    if not (some.all() and np.isfinite(estimates).all() and np.isfinite(covariance).all()):
        return table, None, None
    return table, estimates.tolist(), covariance.tolist()
