"""Convert coefficients of prepared rows to the units of a table's columns."""

import math
from typing import NamedTuple

import numpy as np

from study.configuration.data_set_keys import DataSet

STEPS = ("scale_to_bounds", "constant_feature", "clip")


class Units(NamedTuple):
    """The map from coefficients of prepared columns to those of the table's columns.

    names: names of the table's k coefficients. kept: indices of the k prepared columns that are not
    reference levels. matrix: T (k, k); the table's coefficients are T times those of the kept columns.
    """

    names: list
    matrix: np.ndarray
    kept: list

    @staticmethod
    def of(meta: dict, reference: dict) -> "Units":
        """The units of a prepared data set. Raises ValueError for an unknown level, or if units are lost.

        reference: column -> reference level, by default the first.

        The preparation mapped a number x with bounds [low, high] to 2 (x - low)/(high - low) - 1, and a
        level to 0 or 1. No row is longer than the clipping radius, so clipping only divided rows by it.
        """
        steps = {step["step"]: step.get("options", {}) for step in meta["steps"]}
        categories, bounds = meta["categories"], steps.get("scale_to_bounds", {})
        radius = steps.get("clip", {}).get("radius")
        problem = lost(list(steps), radius, len(bounds), len(categories))
        if problem:
            raise ValueError(f"{meta['dataset']}: {problem}")
        left_out = references(categories, reference)
        names = [name for name in meta["columns"] if name not in left_out]
        T = np.eye(len(names)) / radius
        for j, column in enumerate(names):
            if column in bounds:
                low, high = bounds[column]
                T[j, j] *= 2 / (high - low)
                T[-1, j] = -(2 * low / (high - low) + 1) / radius
        kept = [k for k, name in enumerate(meta["columns"]) if name not in left_out]
        return Units(names, T, kept)


def references(categories: dict, chosen: dict) -> set:
    """The names of the prepared columns that are reference levels."""
    for column, level in chosen.items():
        if column not in categories:
            raise ValueError(f"reference: {column!r} is no column with `categories`")
        if str(level) not in map(str, categories[column]):
            known = ", ".join(map(str, categories[column]))
            raise ValueError(f"reference: {level!r} is no level of {column!r} (levels: {known})")
    return {f"{name}={chosen.get(name, known[0])}" for name, known in categories.items()}


def of_entry(entry: DataSet) -> str | None:
    """The result of `lost` for a data set's entry in the configuration."""
    bounds, steps = entry.bounds, entry.all_steps()
    radius = dict(steps).get("clip", {}).get("radius")
    if entry.source.csv is None or not bounds or "*" in bounds:
        return "a regression table needs a CSV whose `bounds` name every column of numbers"
    if entry.positive is None:
        return "a regression table is for two classes: give it a `label` and `positive`"
    return lost([name for name, _ in steps], radius, len(bounds), len(entry.categories or {}))


def lost(steps: list, radius: float | None, numbers: int, categories: int) -> str | None:
    """Why coefficients have no units after these steps, with a remedy; None if they have units.

    numbers, categories: how many columns are numeric, and how many categorical. The longest possible row
    has every number at a bound, one level of each category, and the constant.
    """
    longest = math.sqrt(numbers + categories + 1)
    if steps == list(STEPS) and radius >= longest * (1 - 1e-12):  # type: ignore[operator]
        return None
    if steps == list(STEPS):
        reason = f"`clip` to the radius {radius:g} shortens rows"
    else:
        reason = f"its steps are {', '.join(steps[1:]) or 'none'}"
    return (
        f"coefficients have units only if numbers are scaled and no row is shortened, and {reason}. Write "
        f"`steps: [{{constant_feature: {{}}}}, {{clip: {{radius: {_up(longest)}}}}}]`"
    )


def _up(radius):
    return f"{math.ceil(radius * 1e4) / 1e4:.4f}"
