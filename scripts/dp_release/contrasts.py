"""Rows with all levels of every category, and the linear map from their weights to a table.

Noise of a norm (`dp_release.norm_noise`) is for rows that lie in a small public body. So with this *map 2*
of rows, a category has a column for each level, and no reference. There is a constant column only without
categories, because the levels of a category add up to it. A number is a column as in map 1
(`dp_release.rows`), and is scaled by its own bounds.

Scores of valid rows are linear in the columns of map 1, too. So contrasts with a reference level, and the
intercept, are linear in the weights. With several categories, some directions of weights change no score
(adding to the levels of one what is taken from those of another); contrasts and intercept do not depend on
them.
"""

from fractions import Fraction

import numpy as np

from dp_release import rows
from dp_release.norm_noise import Body


def all_levels(schema: rows.Schema) -> rows.Schema:
    """The schema of map 2, for the same lines."""
    columns = [
        column._replace(reference=None)
        if isinstance(column, rows.Category) and k != schema.target
        else column
        for k, column in enumerate(schema.columns)
    ]
    return _like(schema, columns, constant=not _categories(schema))


def with_references(schema: rows.Schema) -> rows.Schema:
    """The schema whose columns a table of map 2 has: without a reference level, the first is it."""
    columns = [
        column._replace(reference=column.values[0])
        if isinstance(column, rows.Category) and k != schema.target and column.reference is None
        else column
        for k, column in enumerate(schema.columns)
    ]
    return _like(schema, columns, constant=True)


def _like(schema, columns, constant):
    target = schema.columns[schema.target].name
    return rows.Schema(columns, target, schema.format, schema.radius, constant)


def _categories(schema):
    return [k for k in schema.used if isinstance(schema.columns[k], rows.Category)]


def releveled(V: np.ndarray, stated: rows.Schema, levels: rows.Schema) -> np.ndarray:
    """Simulated rows of map 2 from valid ones of map 1 (n, d), neither of them shortened."""
    parts, at = [], 0
    for k in stated.used:
        column = stated.columns[k]
        if isinstance(column, rows.Number):
            parts.append(np.trunc(V[:, at : at + 1] * (levels.each / stated.each)))
            at += 1
            continue
        others = [value for value in column.values if value != column.reference]
        found = V[:, at : at + len(others)] != 0
        at += len(others)
        for value in column.values:
            some = (
                ~found.any(axis=1) if value == column.reference else found[:, others.index(value)]
            )
            parts.append(levels.each * some[:, None])
    if levels.constant is not None:
        parts.append(np.full((len(V), 1), levels.each))
    return np.concatenate(parts, axis=1).astype(np.int32)


def body(schema: rows.Schema) -> Body:
    """The body in which rows of map 2 lie."""
    blocks, place = [], 0
    for k in schema.used:
        column = schema.columns[k]
        size = len(column.values) if isinstance(column, rows.Category) else 1
        if isinstance(column, rows.Category):
            blocks.append(tuple(range(place, place + size)))
        place += size
    return Body(schema.d, tuple(blocks))


def of_number(column: rows.Number, a: float) -> tuple[float, float]:
    """(factor, offset) of a column in a row, where a number x is a (2 x - low - high)/(high - low)."""
    low, high = (Fraction(str(value)) for value in (column.low, column.high))
    return a * float(2 / (high - low)), -a * float((low + high) / (high - low))


def in_units_of_target(schema: rows.Schema, T: np.ndarray, shift: np.ndarray) -> None:
    """Change (T, shift) in place from scores s to l + (h - l)(s + 1)/2, if the target is a number."""
    if schema.numbers:
        target = schema.columns[schema.target]
        low, high = (Fraction(str(value)) for value in (target.low, target.high))
        T *= float((high - low) / 2)
        shift[-1] = float((high + low) / 2)


def own_units(stated: rows.Schema, levels: rows.Schema) -> tuple[np.ndarray, np.ndarray]:
    """(T, shift) such that T weights + shift are the coefficients of `stated`, in the columns' own units.

    stated: from `with_references`. levels: of map 2. T: (stated.d, levels.d). As `files.own_units`.
    """
    a = levels.each / rows.ONE
    T, shift = np.zeros((stated.d, levels.d)), np.zeros(stated.d)
    i = j = 0  # of the next coefficient, and of the next weight
    for k in stated.used:
        column = stated.columns[k]
        if isinstance(column, rows.Number):
            T[i, j], T[-1, j] = of_number(column, a)
            i, j = i + 1, j + 1
            continue
        reference = j + column.values.index(column.reference)
        T[-1, reference] = a
        for value in column.values:
            if value != column.reference:
                T[i, j + column.values.index(value)] = a
                T[i, reference] = -a
                i += 1
        j += len(column.values)
    if levels.constant is not None:
        T[-1, levels.constant] = a
    in_units_of_target(stated, T, shift)
    return T, shift


def span(body: Body) -> np.ndarray:
    """An orthonormal basis (d, k) of the directions that change the scores of valid rows."""
    directions = [np.eye(body.count)[column] for column in body.singles]
    for block in body.blocks:
        for level in block[1:]:
            directions.append(np.zeros(body.count))
            directions[-1][[level, block[0]]] = 1, -1
    if body.blocks:
        directions.append(np.zeros(body.count))
        directions[-1][[block[0] for block in body.blocks]] = 1
    return np.linalg.qr(np.array(directions).T)[0]


def table_map(body: Body) -> np.ndarray:
    """(k, d): numbers, contrasts of levels with the first, as weights; without the intercept."""
    lines = [np.eye(body.count)[column] for column in body.singles]
    if not body.blocks:
        lines.pop()  # the constant
    for block in body.blocks:
        for level in block[1:]:
            lines.append(np.zeros(body.count))
            lines[-1][[level, block[0]]] = 1, -1
    return np.array(lines).reshape(len(lines), body.count)


def design(body: Body, u: float) -> np.ndarray:
    """The mean (d, d) of x x' for a public design: see `norm_models.predicted`."""
    singles, blocks = body.singles, body.blocks
    M = np.zeros((body.count, body.count))
    for column in singles:
        M[column, column] = u * u / 9
    if not blocks:
        M[-1, -1] = u * u  # the constant
    for a in blocks:
        for b in blocks:
            M[np.ix_(a, b)] = u * u / (len(a) * len(b))
        M[np.ix_(a, a)] = u * u / len(a) * np.eye(len(a))
    return M
