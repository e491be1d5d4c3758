"""Write numbers in paths and tables in a canonical form."""

import math
from functools import cache

import numpy as np

LONGEST = 100_000  # maximum number of values; a longer range must be a mistake
EPSILON_PATTERN = r"\d+(\.\d*[1-9])?|inf"


@cache
def epsilon(value):
    """An epsilon as '0.1', '1' or 'inf', without exponent, rounding error or '.0'."""
    value = float(value)
    if math.isinf(value):
        return "inf"
    return np.format_float_positional(float(f"{value:.12g}"), trim="-")


def number(value):
    """A number as text for a table: floats with 9 significant digits, "" for NaN and None."""
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        if math.isnan(value):
            return ""
        if value == 0:
            return "0"  # without the sign of -0.0
        return f"{value:.9g}"
    if isinstance(value, np.integer):
        return str(int(value))
    return str(value)


def parse(text):
    """The number in a cell of a CSV file. Raises ValueError for other text.

    `float` alone would also accept 1_000 and digits of other alphabets.
    """
    text = text.strip()
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def grid(values, whole=False):
    """A list, or an inclusive range {from, to, step}, as a sorted list of distinct numbers."""
    if isinstance(values, dict):
        steps = (values["to"] - values["from"]) / values["step"]
        if steps > LONGEST:
            raise ValueError(f"the range has more than {LONGEST} values")
        values = [values["from"] + k * values["step"] for k in range(math.floor(steps + 1e-9) + 1)]
    convert = int if whole else (lambda value: float(epsilon(value)))
    return sorted({convert(value) for value in values})
