"""Bounds of columns of numbers that a release finds in its own rows, and pays for.

BINS. For a column with public outer bounds [least, most], the edges are least, most, and between them 0 and
+-2^j for the `OCTAVES` largest j that matter. A cell's exact number is in the bin [edge, next edge) that
holds it, in the first bin if it is smaller, and in the last one if it is larger. A cell that is no number,
and a line that is no record, are in no bin. So a line's bin depends on this line and on public numbers.

RELEASE. The number of lines in each bin, plus discrete Gaussian noise on a fine lattice. A range follows
from these noisy counts and public numbers:

- A bin *stands out* if its noisy count is at least tau. Noise lifts any empty bin of any column to tau with
  probability at most `BETA`, so the range of the bins that stand out is seldom too wide, and every bin of 2
  tau lines is in it.
- The range grows by the next bin while that has at least `NEAR` standard deviations. So an empty bin is
  added in 7 of 100 cases, which costs a factor of two, not the column.
- Bins at the ends are left out again, the emptiest first, while they hold together at most half of the
  share `outside` of the noisy counts in the range.
- If no bin stands out, the bounds are [least, most].

Then the range is cut into `PARTS` equal parts, which are bins for a second release of noisy counts, with as
much noise, and the same rule. (Its steps are small, so the next part belongs to the range from one standard
deviation on.) So a column far from 0, such as a year, gets bounds of its own size.

THEOREM 3. Let c columns be found, with noise of the parameter mu_j for column j, and let every person have
at most K rows (K = 1 if a row is a person). For noise of standard deviation s on both counts of a column,
mu_j = 2 K/s suffices. The bounds, and what is released of the rows under these bounds, then have together
the divergence of the rest, with its Gaussian parameter mu replaced by sqrt(mu^2 + mu_1^2 + .. + mu_c^2).
Proof. For any bins, a row adds a unit vector, or nothing. Replacing a row replaces one unit vector, which
changes the counts by at most sqrt(2), and K rows by at most K sqrt(2). Counts are exact integers, so lemma
2 (`dp_release.lattice`) with rho = 0 makes each release of counts, given earlier ones, sqrt(2) K/s-GDP up
to its total variation. The second bins follow from the first release. Gaussian releases compose adaptively,
so both are 2 K/s-GDP, and all columns together mu_b-GDP, mu_b^2 = sum of mu_j^2. Bounds are
post-processing. For *every* value of the bounds, the row of integers of a line depends on this line alone,
has a norm of at most 2^20, and its target is in [-1, 1] (`dp_release.rows`); n, d, lambda, noises and
solver limits are equal for all bounds. So theorem 1 (`dp_release.tilt`) and lemma 2 hold for the rest with
the same numbers, whatever the bounds are. The rest's bound E delta_tilt(e - L), L ~ N(mu^2/2, mu^2), holds
for every real e, in both directions, since replace-one is symmetric. Dominating pairs compose adaptively
(Zhu, Dong, Wang, AISTATS 2022, theorem 10): both together have at most E E delta_tilt(e - L_b - L), and L_b
+ L is one Gaussian loss of the parameter sqrt(mu^2 + mu_b^2). This is what `models.Plan.delta_at`
evaluates. With a holdout, only training rows are counted, so bounds and model together are A of theorem 2
(`dp_release.holdout`).

The target may be such a column, too. Thresholds of labels (`above`) and lists of categories may not: they
must be public.

WHAT IS LOST. Values beyond the bounds are clipped, and so are small groups with unusual values. The noise
on a coefficient, in the column's own units, grows with the range that is not filled. If nothing stood out,
the column is nearly constant between its bounds, and `silenced` gives it and the constant no interval.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from dp_privacy.accounting import gaussian_epsilon
from dp_privacy.errors import Refused
from dp_release import lattice, rows
from dp_release.draws import Stream

SHARE = 0.1  # default share of mu^2 for all columns together
OUTSIDE = 0.01  # default share of the counted rows that bounds may leave out
BETA = 1e-3  # probability that some empty bin stands out
PARTS = 8  # parts of the range, in the second counts
# Standard deviations at which a bin beside those that stand out belongs to them, in both counts.
NEAR = (1.5, 1.0)
OCTAVES = 60  # powers of two up to the largest bound; numbers below the least of them are near 0
SMALLEST = -256  # least exponent of an edge, so every edge is a bound that `dp_release.rows` reads
LEAST, MOST = -(10**9), 10**9  # default outer bounds
NOTHING = "no numbers stood out of the noise, so the bounds are too wide for an interval"
KEYS = ("share", "outside", "least", "most")
FIND = "find"


def number(
    name: str, stated: object, missing: rows.Value | None = None, codes: tuple = ()
) -> rows.Number:
    """A column whose bounds are found. stated: true, or a mapping with some of `KEYS`."""
    values = {} if stated is True else stated
    if not isinstance(values, dict) or values.keys() - set(KEYS):
        raise Refused(
            f"{name!r}: `find` is true, or a mapping with some of the keys {', '.join(KEYS)}"
        )
    low, high = values.get("least", LEAST), values.get("most", MOST)
    own = {key: values[key] for key in ("share", "outside") if key in values}
    return rows.Number(name, low, high, missing, codes, own)


def columns(schema: rows.Schema) -> dict[str, rows.Number]:
    """The columns whose bounds are found."""
    named = {column.name: column for column in schema.columns}
    return {name: c for name, c in named.items() if getattr(c, "find", None) is not None}


def check(schema: rows.Schema) -> None:
    """Raise `Refused` if a column's `find` has other values than those that are proven."""
    for name, column in columns(schema).items():
        for key, value in column.find.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if key == "share" and not (number and 1e-6 <= value < 1):
                raise Refused(f"{name!r}: find.share is a share of the budget, 1e-6 to below 1")
            if key == "outside" and not (number and 0 <= value < 0.5):
                raise Refused(f"{name!r}: find.outside is a share of the rows, 0 to below 0.5")
            if key not in ("share", "outside"):
                raise Refused(f"{name!r}: find has no key {key!r}")


def shares(schema: rows.Schema) -> dict[str, float]:
    """Each found column's share of mu^2: as stated, or `SHARE` divided by the number of found columns."""
    found = columns(schema)
    return {name: c.find.get("share", SHARE / len(found)) for name, c in found.items()}


def edges(column: rows.Number) -> list[int | float | str]:
    """The public edges of a column's bins, from `least` to `most`, which are as written."""
    low, high = rows.fraction(column.low), rows.fraction(column.high)
    size = max(abs(low), abs(high))
    top = size.numerator.bit_length() - size.denominator.bit_length() + 1  # 2^top >= size
    exponents = range(max(top - OCTAVES, SMALLEST), top + 1)
    powers = list(map(_power, exponents))
    inner = [*((-each, -exact) for each, exact in reversed(powers)), (0, Fraction(0)), *powers]
    return [column.low, *(each for each, exact in inner if low < exact < high), column.high]


@cache
def _power(j):
    """2^j as it is written, and the exact number that is read from there."""
    written = 1 << j if j >= 0 else 2.0**j
    return written, rows.fraction(written)


def options(schema: rows.Schema) -> dict[str, tuple[float, int]]:
    """Column -> (share of mu^2, number of bins): the option `find` of `models.objective_perturbation`."""
    found = columns(schema)
    return {name: (part, len(edges(found[name])) - 1) for name, part in shares(schema).items()}


def noise(mu: Fraction, bins: int, bits: int = lattice.BITS, most: int = 1) -> lattice.Noise:
    """The noise on both counts of a column. most: the largest number of rows of a person."""
    return lattice.covering(Fraction(2 * most), mu, bins + PARTS, bits)


def counts(
    schema: rows.Schema, lines: Iterable[bytes], ends: dict[str, list]
) -> dict[str, list[int]]:
    """Each column's exact number of lines in each bin. ends: column -> edges of its bins."""
    places = [k for k, column in enumerate(schema.columns) if column.name in ends]
    readers = [
        _bin_of(schema.columns[k], ends[schema.columns[k].name], schema.format) for k in places
    ]
    total = {name: [0] * (len(each) - 1) for name, each in ends.items()}
    for line in lines:
        cells = schema.split(line)
        for k, read in zip(places, readers, strict=True) if cells is not None else ():
            place = read(cells[k])
            if place is not None:
                total[schema.columns[k].name][place] += 1
    return total


def _bin_of(column: rows.Number, ends: list, format: rows.Format) -> Callable[[bytes], int | None]:
    """A function from a cell to the bin of the number that the model reads there, or None."""
    inner = [rows.fraction(each) for each in ends[1:-1]]
    number_of = rows.number_reader(column, format)

    def read(cell):
        found = number_of(cell)
        return None if found is None else bisect_right(inner, rows.value_of(found))

    return rows.remembered(read)


class Found(NamedTuple):
    """A column's bounds, and the noisy counts that they follow from, in units of the noise's spacing.

    parts: the second counts, empty if no bin stood out.
    """

    low: int | float | str
    high: int | float | str
    integers: list[int]
    parts: list[int]


def find(
    schema: rows.Schema,
    noises: dict[str, lattice.Noise],
    count: Callable[[dict[str, list]], dict[str, Sequence[int]]],
    key: bytes,
) -> dict[str, Found]:
    """Release noisy counts, and the bounds that follow from them.

    noises: of `models.Plan.found`. count: edges of each column -> exact counts. key: the release's secret
    key.
    """
    ends = {name: edges(column) for name, column in columns(schema).items()}
    first = _released(count(ends), noises, key, "bounds")
    ranges = {n: within(schema, n, noises, ends[n], noisy) for n, noisy in first.items()}
    cut = {name: parts(*each) for name, each in ranges.items() if each is not None}
    second = _released(count(cut), noises, key, "parts") if cut else {}
    found = {}
    for name in ends:
        low, high = ends[name][0], ends[name][-1]
        if name in cut:
            own = within(schema, name, noises, cut[name], second[name], again=True)
            low, high = own or ranges[name]
        found[name] = Found(low, high, first[name], second.get(name, []))
    return found


def _released(exact, noises, key, what):
    """Noisy counts of each column."""
    return {
        name: lattice.released(
            map(Fraction, each),
            noises[name]._replace(count=len(each)),
            Stream(key, f"{what} of {name}"),
        )
        for name, each in exact.items()
    }


def parts(low: int | float | str, high: int | float | str) -> list[int | float | str]:
    """The ends of `PARTS` equal parts of a range, or of one part if floats do not tell more apart."""
    start, stop = rows.fraction(low), rows.fraction(high)
    inner = [start + (stop - start) * k / PARTS for k in range(1, PARTS)]
    ends = [low, *(int(e) if e.denominator == 1 else float(e) for e in inner), high]
    exact = list(map(rows.fraction, ends))
    return ends if exact == sorted(set(exact)) else [low, high]


def threshold(noises: dict[str, lattice.Noise], name: str, bins: int | None = None) -> int:
    """The count, in units of the spacing, at which a bin stands out: tau. bins: of all columns together."""
    from scipy.special import ndtri

    if bins is None:
        bins = sum(noise.count - PARTS for noise in noises.values())
    return math.ceil(-float(ndtri(BETA / bins)) * noises[name].scale)


def outside(column: rows.Number) -> Fraction:
    """The public share of the counted rows that a column's bounds may leave out."""
    return Fraction(str(column.find.get("outside", OUTSIDE)))


def within(
    schema: rows.Schema,
    name: str,
    noises: dict[str, lattice.Noise],
    ends: Sequence[int | float | str],
    noisy: Sequence[int],
    again: bool = False,
) -> tuple[int | float | str, int | float | str] | None:
    """The range of the bins that stand out, by post-processing of noisy counts; None if none does.

    again: whether these are the second counts.
    """
    tau = threshold(noises, name, PARTS * len(noises) if again else None)
    standing = [k for k, each in enumerate(noisy) if each >= tau]
    if not standing:
        return None
    first, last = standing[0], standing[-1]
    near = NEAR[again] * noises[name].scale
    while first > 0 and noisy[first - 1] >= near:
        first -= 1
    while last < len(noisy) - 1 and noisy[last + 1] >= near:
        last += 1
    left = outside(columns(schema)[name]) / 2 * sum(noisy[first : last + 1])
    while first < last and (least := min(noisy[first], noisy[last])) <= left:
        left -= max(least, 0)
        if least == noisy[last]:
            last -= 1
        else:
            first += 1
    return ends[first], ends[last + 1]


def settled(facts: dict, found: dict[str, Found]) -> dict:
    """The facts of a schema (`rows.Schema.facts`) with bounds that were found as stated ones."""
    each = []
    for column in facts["columns"]:
        if column["name"] in found and FIND in column:
            own = found[column["name"]]
            column = {key: v for key, v in column.items() if key != FIND}
            column |= {"low": own.low, "high": own.high}
        each.append(column)
    return facts | {"columns": each}


def document(schema: rows.Schema, plan: object, found: dict[str, Found]) -> dict:
    """What model.json says of the bounds that were found. plan: `models.Plan`."""
    each = []
    for name, own in found.items():
        column, noise = columns(schema)[name], plan.found[name]
        each.append(
            {
                "column": name,
                "least": column.low,
                "most": column.high,
                "outside": float(outside(column)),
                "low": own.low,
                "high": own.high,
                "stands_out": stands_out(plan.found, name),
                "step": noise.step,
                "scale": noise.scale,
                "integers": own.integers,
                "parts": own.parts,
            }
        )
    return {"epsilon": alone(plan.found, plan.delta), "columns": each}


def silenced(table: list[dict] | None, found: dict[str, Found]) -> list[dict] | None:
    """A regression table without intervals of columns for which nothing stood out, and of the constant."""
    nothing = [name for name, own in found.items() if not own.parts]
    if table is None or not nothing:
        return table
    silent, keys = {*nothing, "constant"}, ("column", "says")
    return [
        {key: row[key] if key in keys else None for key in row} | {"says": NOTHING}
        if row["column"] in silent
        else row
        for row in table
    ]


def stands_out(noises: dict[str, lattice.Noise], name: str) -> int:
    """tau of a column in lines."""
    return math.ceil(threshold(noises, name) * noises[name].spacing)


def alone(noises: dict[str, lattice.Noise], delta: float) -> float:
    """The epsilon of all bounds alone, at the release's delta."""
    mu = lattice.above(lattice.together(list(noises.values())))
    return gaussian_epsilon(1 / mu, delta)
