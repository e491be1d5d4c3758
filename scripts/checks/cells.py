"""Checks of claims about errors, decided from results.csv and from tables of analyses."""

import math

import numpy as np

from checks.paired import cell_of, difference, slope
from checks.results import Lost, Missing, lost
from checks.statements import Outcome
from checks.verdicts import counted
from dp import metrics
from study import canonical
from study.configuration.inputs import ANALYSIS, RESULTS
from study.configuration.kinds import check
from study.configuration.options import (
    At,
    Axis,
    Cells,
    DataSets,
    Method,
    Methods,
    Options,
    Other,
    OtherMethod,
    Point,
    Procedure,
    Rows,
    Sweeps,
)


def spell(value):
    return f"{value:.4g}"


def _place(row):
    epsilon = row["epsilon"]
    place = f"{row['dataset']}, n = {row['train_size']:.0f}"
    return place if math.isinf(epsilon) else f"{place}, epsilon = {canonical.epsilon(epsilon)}"


def ok(frame, column="error_mean"):
    frame = _present(frame, column)
    for row in frame.to_dict("records"):
        if failed := why_failed(row):
            raise Lost(failed)
    return frame


def _present(frame, column):
    """The rows that have a value in a column, or of which too many draws failed."""
    if column not in frame:
        raise Missing(f"the results have no column {column!r}")
    failed = np.array([why_failed(row) != "" for row in frame.to_dict("records")], dtype=bool)
    frame = frame[failed | frame[column].notna()]
    if frame.empty:
        raise Missing("this run has no cell that this check reads")
    return frame


def why_failed(row):
    """Why a row's mean is not comparable, because too many draws failed; "" if it is."""
    failed = lost(row.get("status", "ok"))
    where = f"{row['method']} at {_place(row)}"
    return failed and f"{failed} ({where}): the mean over the other draws is not comparable"


class LowerThan(Options):
    lower: Method
    higher: Method
    sweep: Sweeps | None = None
    datasets: DataSets | None = None
    train_size: At | None = None
    epsilon: At | None = None
    share: float = 1.0
    factor: float = 1.0
    per_dataset: bool = True
    column: str = "error_mean"


@check(RESULTS, LowerThan)
def lower_than(
    results,
    *,
    lower,
    higher,
    sweep,
    datasets,
    train_size,
    epsilon,
    share,
    factor,
    per_dataset,
    column,
):
    """The mean error of `lower` is below `factor` times that of `higher` at no less than a `share` of
    their common points, on each data set or, if per_dataset is false, on all data sets together. A
    non-private method is compared at every epsilon of the other method.
    column: a column to compare instead of the mean error, such as error_sd_folds.

    A point counts for the claim if the 95 % interval of `lower` minus `factor` times `higher`, paired by
    fold, lies below zero. It counts against the claim if this interval lies above zero. The claim is
    undecided if it depends on the remaining points. It is not tested if it depends on points at which too
    many draws failed.
    """
    where = {"sweep": sweep, "datasets": datasets, "train_size": train_size, "epsilon": epsilon}
    pairs, failed = _comparable(paired_rows(results, lower, higher, column, where))
    points = []
    for first, second in pairs:
        gap, low, high = difference(results, first, second, column, factor)
        certain = not math.isnan(high)
        below, above = (high < 0, low > 0) if certain else (gap < 0, gap >= 0)
        points.append((second["dataset"], bool(below), bool(above), gap, low, high, first, second))
    what = "" if column == "error_mean" else f", {column.replace('_', ' ')}"
    names = dict.fromkeys([point[0] for point in points] + [place for place, _ in failed])
    names = list(names) if per_dataset else ["all data"]
    texts, worst_case, best_case, shares = [], [], [], []
    for dataset in names:
        group = [point for point in points if dataset in (point[0], "all data")]
        unknown = sum(dataset in (place, "all data") for place, _ in failed)
        number = len(group) + unknown
        below, above = (sum(point[k] for point in group) for k in (1, 2))
        worst_case.append(_reached(share, below, above + unknown, number))
        best_case.append(_reached(share, below + unknown, above, number))
        if not group:
            texts.append(f"{dataset}{what}: {unknown} points not comparable")
            continue
        shares.append(below / number)
        worst = max(group, key=lambda point: point[3])
        end = f", difference {spell(worst[3])} [{spell(worst[4])}, {spell(worst[5])}]"
        open_points = len(group) - below - above
        texts.append(
            f"{dataset}{what}: {lower} is below {_times(factor)}{higher} at {below} of {number} "
            f"points{f', {open_points} within chance' if open_points else ''}"
            f"{f', {unknown} not comparable' if unknown else ''} (at worst "
            f"{spell(worst[6][column])} against {spell(worst[7][column])}"
            f"{end if worst[4] < worst[5] else ''} at "
            f"{_place(worst[6] if math.isfinite(worst[6]['epsilon']) else worst[7]).partition(', ')[2]})"
        )
    if _all(worst_case) is not _all(best_case):
        raise Lost(failed[0][1])
    return Outcome(_all(worst_case), "; ".join(texts), min(shares), share)


def _reached(share, below, above, number):
    """Whether a `share` of a number of points is below, if all other points are within chance."""
    if below / number >= share:
        return True
    return None if (number - above) / number >= share else False


def counted_interval(results, row, column, gap, low, high):
    """A difference's interval, or the difference itself if it has none.

    An interval of mean errors is widened by half a test row on either side.
    """
    ends = tuple(gap if math.isnan(end) else end for end in (low, high))
    return counted(ends, results.test_rows(cell_of(row))) if column == "error_mean" else ends


def paired_rows(results, first, second, column, where):
    """Pairs of rows of two methods at their common points, even those where draws failed.

    A non-private row is paired with every epsilon of the other method.
    """
    frames = [
        _present(results.cells(methods=method, **where), column) for method in (first, second)
    ]
    private = [not frame["epsilon"].map(math.isinf).any() for frame in frames]
    keys = ["dataset", "train_size", *(["epsilon"] if all(private) else [])]
    rows = [frame.to_dict("records") for frame in frames]
    pairs = [
        (one, other)
        for one in rows[0]
        for other in rows[1]
        if all(one[key] == other[key] for key in keys)
    ]
    if not pairs:
        raise Missing(f"{first} and {second} have no point in common")
    return pairs


def _comparable(pairs):
    """The pairs whose means can be compared, and (data set, why) of the others."""
    reasons = [why_failed(one) or why_failed(other) for one, other in pairs]
    failed = [
        (other["dataset"], why) for (_, other), why in zip(pairs, reasons, strict=True) if why
    ]
    pairs = [pair for pair, why in zip(pairs, reasons, strict=True) if not why]
    if not pairs:
        raise Lost(reasons[0])
    return pairs, failed


def _times(factor):
    return "" if factor == 1 else f"{factor:g} x "


class Similar(Point):
    method: Method
    other: Method
    within: float
    relative: float = 0.0
    column: str = "error_mean"


@check(RESULTS, Similar)
def similar(results, *, method, other, within, relative, column, **where):
    """At every common point, two mean errors differ by at most `within` plus `relative` times the larger
    error. A non-private method is compared at every epsilon of the other method.
    column: a column to compare instead of the mean error.

    This is an equivalence test: the claim holds if the 95 % interval of every difference, paired by
    fold, lies within these bounds. It fails if an interval lies entirely outside, and is undecided
    otherwise. Intervals of mean errors reach half a test row further (`verdicts.counted`).
    """
    outside, inside, same, gaps = [], [], [], []
    pairs, failed = _comparable(paired_rows(results, method, other, column, where))
    for first, second in pairs:
        gap, low, high = difference(results, first, second, column)
        same.append(gap == 0 < abs(first[column]) and not low < high)
        low, high = counted_interval(results, first, column, gap, low, high)
        limit = within + relative * max(first[column], second[column]) + 1e-12
        outside.append(low > limit or high < -limit)
        inside.append(-limit <= low and high <= limit)
        place = first if math.isfinite(first["epsilon"]) else second
        gaps.append((abs(gap) - limit + within, gap, low, high, first, second, place))
    if failed and not any(outside):
        raise Lost(failed[0][1])
    if all(same):
        return Outcome(
            None, f"{method} and {other} are the same in every fold, which tests nothing"
        )
    excess, gap, low, high, first, second, place = max(gaps, key=lambda point: point[0])
    text = (
        f"{method} and {other} differ by at most {spell(abs(gap))} [{spell(low)}, {spell(high)}] over "
        f"{len(gaps)} points{f', {len(failed)} not comparable' if failed else ''} "
        f"({spell(first[column])} and {spell(second[column])} at {_place(place)})"
    )
    holds = False if any(outside) else True if all(inside) else None
    return Outcome(holds, text, float(excess), within)


class Level(Cells):
    at_least: float = -math.inf
    at_most: float = math.inf
    share: float = 1.0
    column: str = "error_mean"


@check(RESULTS, Level)
def level(results, *, at_least, at_most, share, column, **where):
    """The mean error, or another column, lies in [at_least, at_most] in at least a `share` of the cells.

    A cell counts as inside or outside this range only if its whole 95 % interval is. The claim is undecided
    if it depends on the remaining cells.
    """
    frame = ok(results.cells(**where), column)
    inside, possible = (mask.mean() for mask in _in_range(frame, column, at_least, at_most))
    ends = [frame.loc[frame[column].idxmin()], frame.loc[frame[column].idxmax()]]
    text = " to ".join(f"{spell(end[column])} ({_place(end)})" for end in ends)
    if len(frame) == 1:
        text = f"{spell(ends[0][column])} ({_place(ends[0])})"
    if len(frame) > 1 and (share < 1 or inside < possible):
        text += f", {round(inside * len(frame))} of {len(frame)} cells inside"
        open_cells = round((possible - inside) * len(frame))
        text += f", {open_cells} within chance" if open_cells else ""
    if column == "error_mean":
        at_least, at_most = max(at_least, 0.0), min(at_most, 1.0)
    limits = f"between {at_least:g} and {at_most:g}"
    what = column.removesuffix("_mean").replace("_", " ")
    number, threshold = float(inside), share
    if share == 1:  # report the cell nearest to a limit, or farthest beyond it
        _, number, threshold = min(
            (sign * (value - limit), float(value), limit)
            for value in frame[column]
            for sign, limit in ((1, at_least), (-1, at_most))
        )
    holds = True if inside >= share else None if possible >= share else False
    return Outcome(holds, f"{what} {text}; wanted {limits}", number, threshold)


def _all(holds):
    return False if False in holds else None if None in holds else True


def _in_range(frame, column, least, most):
    """Masks of cells whose 95 % interval is inside [least, most], and of cells whose interval overlaps it.

    A cell without an interval is judged by its mean.
    """
    name = column.removesuffix("_mean")
    low, high = (
        frame[name + end].fillna(frame[column]) if name + end in frame else frame[column]
        for end in ("_low", "_high")
    )
    return (low >= least) & (high <= most), (high >= least) & (low <= most)


class LowerAcross(Options):
    method: Method
    epsilon: float
    experiment: Other
    other_method: OtherMethod
    other_epsilon: float
    as_prepared: dict | None = None


@check(RESULTS, LowerAcross)
def lower_across(results, *, method, epsilon, experiment, other_method, other_epsilon, as_prepared):
    """On every common data set, a method has a lower mean error than another experiment's method. The two
    are compared at the stated epsilons, and each at its largest training size. The claim is undecided if
    a 95 % interval of the difference, for independent means, contains zero.
    as_prepared: the other experiment's data set -> our data set, if it has the same rows but another
    preparation.
    """
    own = ok(results.cells(methods=method, epsilon=epsilon, train_size="largest"))
    other = results.other(experiment)
    other = other[(other["method"] == other_method) & (other["epsilon"] == other_epsilon)]
    other = ok(other.sort_values("train_size").groupby("dataset").tail(1))
    other = other.assign(dataset=other["dataset"].replace(as_prepared or {}))
    pairs = own.merge(other, on="dataset", suffixes=("", "_other"))
    if pairs.empty:
        raise Missing(f"{experiment} ran on other data")
    texts, verdicts = [], []
    for row in pairs.to_dict("records"):
        gap = row["error_mean_other"] - row["error_mean"]
        widths = (row[f"error_high{end}"] - row[f"error_low{end}"] for end in ("", "_other"))
        half = np.nan_to_num(math.hypot(*widths) / 2)
        verdicts.append(True if gap > half else None if gap > -half else False)
        texts.append(
            f"{row['dataset']}: {method} at epsilon = {epsilon:g} {spell(row['error_mean'])}, "
            f"{other_method} at epsilon = {other_epsilon:g} {spell(row['error_mean_other'])}, "
            f"difference {spell(-gap)} +- {spell(half)}"
        )
    return Outcome(_all(verdicts), "; ".join(texts))


class TimeRatio(Options):
    analysis: str
    first: Procedure
    second: Procedure
    at_least: float = 0.0
    at_most: float = math.inf
    fits: int = 1


@check(ANALYSIS, TimeRatio)
def time_ratio(results, *, analysis, first, second, at_least, at_most, fits):
    """On every data set, the shortest time of a single fit by the procedure `first`, divided by that of
    `second`, lies in [at_least, at_most]. The claim fails only if the ratios of all repeats lie outside.
    fits: the number of runs of `first` that a protocol of many draws needs in place of one run of `second`.
    """
    ratios, lowest, highest = (fits * r for r in _time_ratios(results, analysis, first, second))
    runs = f"{fits} runs of {first} take" if fits > 1 else f"{first} takes"
    text = _times_text(f"{runs} {{:.2g}} times {second}", ratios, lowest, highest)
    verdicts = [
        True if at_least <= r <= at_most else None if low <= at_most and high >= at_least else False
        for r, low, high in zip(ratios, lowest, highest, strict=True)
    ]
    worst = min(ratios, key=lambda r: min(r / at_least if at_least else math.inf, at_most / r))
    threshold = at_most if math.isfinite(at_most) else at_least
    return Outcome(_all(verdicts), text, float(worst), threshold)


def _times_text(template, ratios, lowest, highest):
    return "; ".join(
        f"{template.format(ratios[name])} on {name} ({lowest[name]:.2g} to {highest[name]:.2g} by repeat)"
        for name in ratios.index
    )


def _time_ratios(results, analysis, first, second):
    """For each data set: the ratio of the shortest times, and the lowest and highest ratio in a repeat.

    Other work on the machine can only lengthen a measured time, so the shortest time is the most accurate.
    """
    frame = results.analysis(analysis)
    times = (
        frame[frame["draws"] == 1]
        .set_index(["dataset", "repeat", "procedure"])["seconds"]
        .unstack()
    )
    for name in (first, second):
        if name not in times:
            raise Missing(f"the analysis {analysis} did not time {name}")
    by_repeat = (times[first] / times[second]).groupby("dataset", sort=False)
    least = times.groupby("dataset", sort=False).min()
    return least[first] / least[second], by_repeat.min(), by_repeat.max()


class Monotone(Options):
    along: Axis
    sweep: Sweeps | None = None
    datasets: DataSets | None = None
    methods: Methods | None = None
    epsilon: At | None = None
    train_size: At | None = None
    share: float = 1.0
    metric: str = "error"


@check(RESULTS, Monotone)
def monotone(results, *, along, sweep, datasets, methods, epsilon, train_size, share, metric):
    """Errors fall along "train_size" or "epsilon" in at least a `share` of the curves. A curve falls if
    the 95 % interval of its slope, per factor of 10 and paired by fold, lies below zero. The claim is
    undecided if it depends on curves whose interval contains zero.
    metric: a metric to use instead of the error; auc and r2 must rise instead of fall.
    """
    other = {"train_size": "epsilon", "epsilon": "train_size"}[along]
    column = f"{metric}_mean"
    frame = ok(
        results.cells(
            sweep=sweep, datasets=datasets, methods=methods, epsilon=epsilon, train_size=train_size
        ),
        column,
    )
    sign = -1 if metric in metrics.RISING else 1
    if along == "epsilon":
        frame = frame[~frame["epsilon"].map(math.isinf)]
    curves = []
    for (dataset, method, at), curve in frame.groupby(["dataset", "method", other], sort=False):
        if len(curve) < 2:
            continue
        rows = curve.sort_values(along).to_dict("records")
        ends = sorted(sign * value for value in slope(results, rows, along, column)[1:])
        coordinate = "" if math.isinf(at) else f", {other.replace('_', ' ')} {at:g}"
        curves.append((*ends, rows, f"{dataset}, {method}{coordinate}"))
    if not curves:
        raise Missing(f"this run has no curve along {along} with two points")
    falls, rises = sum(curve[1] < 0 for curve in curves), sum(curve[0] >= 0 for curve in curves)
    low, high, rows, place = max(curves, key=lambda curve: curve[1])
    low, high = sorted((sign * low, sign * high))
    word = "rise" if sign < 0 else "fall"
    text = (
        f"{falls} of {len(curves)} curves {word} beyond chance along {along.replace('_', ' ')}; the least, "
        f"{place}, goes from {spell(rows[0][column])} to {spell(rows[-1][column])} "
        f"(slope per factor of 10: [{spell(low)}, {spell(high)}])"
    )
    reached, possible = falls / len(curves), 1 - rises / len(curves)
    holds = True if reached >= share else None if possible >= share else False
    return Outcome(holds, text, reached, share)


class Table(Options):
    column: str
    analysis: str | None = None
    table: str | None = None
    where: Rows | None = None
    at_least: float = -math.inf
    at_most: float = math.inf
    share: float = 1.0
    ratio_to: str | None = None
    what: str | None = None


@check(ANALYSIS, Table)
def table(results, *, column, analysis, table, where, at_least, at_most, share, ratio_to, what):
    """A column of an analysis's table lies in [at_least, at_most] in at least a `share` of the rows.
    where: column -> value, or list of values, that selects the rows to read.
    ratio_to: another column, by which `column` is divided.
    what: the name of the quantity in the check's text.
    """
    frame = results.named(analysis, table)
    source = f"the table {analysis or table}"
    for key, value in (where or {}).items():
        if key not in frame:
            raise Missing(f"{source} has no column {key!r}")
        wanted = value if isinstance(value, list) else [value]
        frame = frame[frame[key].isin(wanted)]
    for name in filter(None, (column, ratio_to)):
        if name not in frame:
            raise Missing(f"{source} has no column {name!r}")
    values = frame[column] / frame[ratio_to] if ratio_to else frame[column]
    values = values.dropna().astype(float)
    if values.empty:
        raise Missing(f"{source} has no row that this check reads")
    inside = values.between(at_least, at_most)
    name = what or column.replace("_", " ") + (
        f" over {ratio_to.replace('_', ' ')}" if ratio_to else ""
    )
    low, high = values.min(), values.max()
    text = f"{name} {spell(low)}" + (f" to {spell(high)}" if low < high else "")
    if len(values) > 1:
        text += f" over {len(values)} rows, {int(inside.sum())} as stated"
    threshold = at_least if math.isfinite(at_least) else at_most
    number = low if math.isfinite(at_least) else high
    limits = [f"at least {at_least:g}"] * math.isfinite(at_least)
    limits += [f"at most {at_most:g}"] * math.isfinite(at_most)
    text += f" (wanted {' and '.join(limits)})"
    return Outcome(bool(inside.mean() >= share), text, float(number), threshold)


class TableBelow(Options):
    column: str
    lower: Rows
    higher: Rows
    analysis: str | None = None
    table: str | None = None


@check(ANALYSIS, TableBelow)
def table_below(results, *, column, lower, higher, analysis, table):
    """Every value of a column in the rows `lower` is below every value in the rows `higher`.
    lower, higher: column -> value, which select the rows.
    """
    frame = results.named(analysis, table)
    ends = []
    for where, end in ((lower, "max"), (higher, "min")):
        rows = frame
        for key, value in where.items():
            rows = rows[rows[key] == value]
        if rows.empty:
            raise Missing(f"the table {analysis or table} has no row with {where}")
        ends.append(float(rows[column].agg(end)))
    said = [
        ", ".join(f"{key} {value}" for key, value in where.items()) for where in (lower, higher)
    ]
    text = (
        f"{column.replace('_', ' ')}: at most {spell(ends[0])} ({said[0]}), at least "
        f"{spell(ends[1])} ({said[1]})"
    )
    return Outcome(ends[0] < ends[1], text, ends[0], ends[1])


class BoundHolds(Options):
    analysis: str
    bound: str
    looseness: bool = True


@check(ANALYSIS, BoundHolds)
def bound_holds(results, *, analysis, bound, looseness):
    """In every cell, a bound with the stated probability 1 - delta holds in at least a share 1 - delta of
    the draws.
    looseness: whether to report how loose the bound is, as `excess_risk_bounds` measures it.
    """
    frame = results.analysis(analysis)
    frame = frame[frame["bound"] == bound]
    if frame.empty:
        raise Missing(f"the analysis {analysis} has no row for {bound}")
    short = frame["share_within"] < 1 - frame["delta"]
    worst = frame.loc[(frame["share_within"] - (1 - frame["delta"])).idxmin()]
    cells = frame.drop_duplicates(["dataset", "method", "train_size", "epsilon"])
    text = (
        f"the bound holds in {100 * worst['share_within']:.4g} % of the draws at worst, "
        f"{100 * (1 - worst['delta']):g} % wanted ({_place(worst)}); {len(cells)} cells, "
        f"{int(cells['draws'].sum())} draws, delta {', '.join(f'{d:g}' for d in frame['delta'].unique())}"
    )
    if looseness:
        text += (
            f"; it is {frame['looseness'].min():.3g} to {frame['looseness'].max():.3g} times the "
            f"draws' 1 - delta quantile (median {frame['looseness'].median():.3g})"
        )
    return Outcome(
        bool(not short.any()), text, float(worst["share_within"]), float(1 - worst["delta"])
    )
