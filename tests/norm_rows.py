"""Rows of the coverage analysis's designs as a release reads them, in map 1 or map 2."""

from fractions import Fraction
from math import isqrt

import numpy as np

from analyses import designs
from dp_release import files, rows
from dp_release.contrasts import all_levels, body, own_units, with_references

# Design -> sizes of its columns in order: 1 for a number, otherwise the number of levels of a category.
SHAPES = {
    "rare_level": (1, 1, 1, 3),
    "many_levels": (1, 1, 1, 5, 1, 1),
    "imbalanced_rare": (1, 1, 1, 2),
    "hospital": (1, 1, 1, 4, 1),
    "clinic": (1, 1, 1, 2),
    "rare_outcome": (1, 1, 1, 2),
    "two_categories": (1, 3, 3),
}
NAMES = [*designs.CHOSEN, *designs.HELD_OUT]
# Designs with 1 to 2 % of the rows in one class, on which nothing was chosen.
FRESH = {
    "fresh_three": (designs.normals([0.5] * 3, [0.9, -0.4, 0], -4.3), (1, 1, 1)),
    "fresh_condition": (designs.hospital(0.15, [0.6, 0.4], 0.8, -4.3), (1, 1, 1, 2)),
    "fresh_two": (designs.normals([0.6] * 2, [0.6, -0.8], -4.8), (1, 1)),
}


def design_of(name):
    """A design of the analysis, or one of `FRESH`."""
    if name in FRESH:
        return designs.DESIGNS["plain"]._replace(table=FRESH[name][0])
    return designs.DESIGNS[name]


def shape(name):
    if name in FRESH:
        return FRESH[name][1]
    d = len(designs.DESIGNS[name].table.theta)
    return SHAPES.get(name, (1,) * (d if _balls(name) else d - 1))


def _balls(name):
    """Whether a design's columns are numbers in [-1, 1] with a norm of at most 1, without a constant."""
    return design_of(name).table is designs.BALLS


def schema(sizes, numbers=False):
    columns = [
        rows.Number(f"x{k}", -1, 1)
        if size == 1
        else rows.Category(f"x{k}", tuple(f"l{v}" for v in range(size)), "l0")
        for k, size in enumerate(sizes)
    ]
    target = rows.Number("y", -1, 1) if numbers else rows.Label("y", ("1",), ("-1",))
    return rows.Schema([*columns, target], "y")


class Rows:
    """A design's rows in both maps, and its coefficients in the columns' own units."""

    def __init__(self, name):
        self.name, self.sizes = name, shape(name)
        design = design_of(name)
        self.numbers = design.loss.residual
        self.stated = schema(self.sizes, self.numbers)
        self.levels = all_levels(self.stated)
        self.body, self.u = body(self.levels), Fraction(self.levels.each, rows.ONE)
        theta = design.table.theta
        self.unit = 1.0 if _balls(name) else np.sqrt(len(theta))
        self.truth = theta / self.unit
        if _balls(name):
            self.truth = np.append(self.truth, 0.0)
        self.units = (
            files.own_units(self.stated),
            own_units(with_references(self.stated), self.levels),
        )

    def draw(self, n, rng):
        """(V of map 1, V of map 2, y)."""
        if self.name in FRESH:
            X = FRESH[self.name][0].rows(n, rng)
            chance = 1 / (1 + np.exp(-X @ FRESH[self.name][0].theta))
            y = np.where(rng.random(n) < chance, 1.0, -1.0)
        else:
            X, y = designs.draw(self.name, n, rng)
        Z = X * self.unit
        if _balls(self.name):
            Z = np.column_stack([Z, np.ones(n)])
        # Numbers in [-1, 1], dummies 0 or 1 and the constant 1, scaled as `rows.Schema` does.
        first = np.trunc(self.stated.each * Z).astype(np.int64)
        parts, at = [], 0
        for size in self.sizes:
            if size == 1:
                parts.append(Z[:, at : at + 1])
                at += 1
            else:
                dummies = Z[:, at : at + size - 1]
                parts += [1 - dummies.sum(axis=1, keepdims=True), dummies]
                at += size - 1
        if self.levels.constant is not None:
            parts.append(np.ones((n, 1)))
        second = np.trunc(self.levels.each * np.round(np.hstack(parts), 12)).astype(np.int64)
        y = np.trunc(y * rows.ONE).astype(np.int32) if self.numbers else y.astype(np.int32)
        return rows.shortened(first), rows.shortened(second), y


def u_of(parts):
    """u of a schema with so many columns and the radius 1."""
    return Fraction(isqrt(4**rows.DIGITS // parts), rows.ONE)
