"""Writes published.csv, which compares the source's printed values with an experiment's."""

import math
from decimal import Decimal

import numpy as np

from checks import grids, verdicts
from checks.implied import implied_epsilon
from checks.paired import cell_of, interval
from checks.prediction import Protocol, predict
from checks.results import Absent, Lost, Missing, lost
from checks.verdicts import ABSOLUTE, Sample, prediction_interval, sd_of
from dp import metrics
from dp.seeds import generator
from study import canonical
from study.configuration.cell import Cell
from study.configuration.experiment import Experiment
from study.configuration.printed_values import QUANTITIES, expand, look_up

COLUMNS = (
    *("comparison", "source", "published_at", "dataset", "method", "train_size", "epsilon"),
    *("quantity", "published", "ours", "ours_low", "ours_high", "prediction_low"),
    *("prediction_high", "difference", "verdict", "distance", "reason", "readings", "luck"),
    # our number, and its prediction interval, under the reading that the verdict names
    *("read_ours", "read_low", "read_high"),
    *("protocol", "implied_epsilon", "implied_low", "implied_high", "implied", "note"),
    # power: see `verdicts.power`. replicates: our data sets or, if there is one, its folds. more: how many
    # further ones would give enough power; inf if none do
    *("counted", "power", "replicates", "more"),
    # why a number has no verdict, in words that it shares with others, and the value that they are about
    *("cause", "cause_value"),
)
OPEN = ""  # in the column `holds`, beside "yes" and "no": it cannot be told


def compare(results, source, comparisons, stand_ins):
    """Compare printed numbers with ours and return rows for `judged`, which adds verdicts.

    The row of an undecidable number already has its verdict. Besides the table's columns, a row has
    the keys id, half (half a unit of the last printed digit), and holds: "yes", "no", or "" if not
    decidable.

    comparisons: entries of an experiment's `published` section.
    stand_ins: data set -> why numbers on it are not decidable.
    """
    by_id = {}
    defects = _about(source)
    for row, value, spread in listed(results.experiment, source, comparisons):
        row |= (_compare_spread if spread else _compare)(results, value, stand_ins)
        if defect := defects.get(_printed_at(value, spread)):
            why = f"the defect {defect} is about this number"
            row |= {"verdict": verdicts.AS_A_DEFECT, "reason": why, "holds": "", "distance": ""}
            row["counted"] = verdicts.AGAIN
        by_id[row["id"]] = {"distance": "", "holds": "", "near": False} | row
    for row in by_id.values():
        baseline = by_id.get(row["given"])
        if baseline and "verdict" not in row and not baseline["near"]:
            row |= {"distance": "", "holds": ""}
            known = "is not the source's" if baseline["distance"] else "has no result"
            why = f"without noise this model {known} ({baseline['reason']})"
            row["reason"] = f"not decidable: {why}; here: {row['reason']}"
    return list(by_id.values())


def _about(source):
    """Path of a printed number -> the id of the defect that is about it."""
    return {path: entry.id for entry in source.defects for path in entry.numbers or ()}


def _printed_at(value, spread):
    return f"{value.item['path']}/{int(spread)}" if value.sd is not None else value.item["path"]


def listed(experiment: Experiment, source, comparisons):
    """Yield (descriptive columns, `Printed`, whether it is a standard deviation) per printed number."""
    for name, spec in comparisons.items():
        items = list(expand(spec))
        printed = [look_up(source, item["path"], spec.layout) for item in items]
        own = [Printed(spec, item, *values) for item, values in zip(items, printed, strict=True)]
        for number, value in enumerate(own):
            value.round_like(own)
            value.together = len(own)
            baseline = _baseline(own, number, experiment)
            baseline_id = None if baseline is None else f"{name}/{baseline}"
            for spread in (False, True)[: 1 + (value.sd is not None)]:
                identity = {"id": f"{name}/{number}" + "/sd" * spread, "comparison": name}
                identity |= {"source": source.short, "given": baseline_id}
                yield identity | value.describe(experiment, spread), value, spread


def _baseline(own, number, experiment):
    """The index of the non-private printed value that belongs to a private value, or None.

    Both values have the same data set and training size. If several match, the last one before the private
    value is taken or, if there is none, the first one after it.
    own: the `Printed` values of a comparison.
    """

    def private(value):
        method = experiment.methods.get(value.item["method"])
        return method and method.private

    at = ("dataset", "train_size")
    alike = [
        k
        for k, value in enumerate(own)
        if private(value) is False and all(value.item[key] == own[number].item[key] for key in at)
    ]
    if not private(own[number]) or not alike:
        return None
    return max((k for k in alike if k < number), default=alike[0])


def judged(experiment: Experiment, source, rows, readings=(), best=()):
    """Yield rows of published.csv, from the rows of `compare`.

    readings: rows of readings.csv, used for the values that they concern.
    best: the best single reading (`under_readings.best_single`).
    """
    rows = [dict(row) for row in rows]
    for row in rows:
        alike = [r for r in rows if r["comparison"] == row["comparison"] and _alike(r, row)]
        own = [r for r in readings if r["id"] == row["id"] and r["concerned"] == "yes"]
        why = row["unlike"] or grids.thinned(experiment, source, [row["method"]])
        _judge(row, own, alike, why if row["holds"] == "no" else "", best)
        yield row


def _alike(row, other):
    return row["id"].endswith("/sd") == other["id"].endswith("/sd")


class Printed:
    """A printed value and its standard deviation (or None), in our units.

    half, half_sd: half a unit of the last digit of each. together: how many numbers its table has.
    """

    def __init__(self, spec, item, value, sd):
        self.spec, self.item = spec, item
        self.to_ours, self.from_error = QUANTITIES[spec.quantity]
        self.decimals = [_decimals(value), _decimals(sd)]
        self.value, self.sd = self.to_ours(value), self.to_ours(sd) if sd is not None else None
        self.bounded = spec.quantity not in ("value", "setting")
        self.column = item["path"].rpartition("/")[2]
        self.together = 1

    def round_like(self, others):
        """Assume that all numbers of a column have the same number of decimals: files drop trailing zeros.

        If the comparison states `decimals`, each number instead has at least that many decimals.
        """
        column = [other.decimals for other in others if other.column == self.column]
        digits = list(map(max, zip(*column, strict=True)))
        if self.spec.decimals is not None:
            digits = [max(own, self.spec.decimals) for own in self.decimals]
        self.half, self.half_sd = (
            abs(self.to_ours(0.5 * 10.0**-count) - self.to_ours(0.0)) for count in digits
        )

    @property
    def protocol(self):
        """The configured fields of `Protocol`, None if missing."""
        protocol = self.spec.protocol
        stated = protocol.plain() if protocol else {}
        if self.item["data_drawn"] is not None:
            stated["data_drawn"] = self.item["data_drawn"]
        return {key: stated.get(key) for key in Protocol._fields}

    def describe(self, experiment, spread=False):
        """The columns that describe the value or, if `spread`, its standard deviation."""
        item = self.item
        method = experiment.methods.get(item["method"])
        private = item["epsilon"] is not None and (method is None or method.private)
        over = f", standard deviation over {self.protocol['sd'] or 'folds'}" * spread
        return {
            "published_at": item["path"],
            "dataset": item["dataset"],
            "method": item["method"],
            "train_size": item["train_size"],
            "epsilon": canonical.epsilon(item["epsilon"]) if private else "",
            "quantity": self.spec.quantity.removesuffix("_percent") + over,
            "published": self.sd if spread else self.value,
            "protocol": _in_words(self.protocol),
            "note": self.spec.note,
            "counted": self._counted(spread),
            "unlike": item["unlike"],
        }

    def _counted(self, spread):
        if self.spec.again:
            return verdicts.AGAIN
        other = spread or self.spec.trivia or self.spec.quantity == "setting"
        return verdicts.OTHER if other else verdicts.RESULT


def _decimals(value):
    return (
        0 if value is None else max(0, -Decimal(repr(float(value))).normalize().as_tuple().exponent)
    )


def _in_words(protocol):
    if protocol["folds"] is None:
        return ""
    words = [f"{protocol['folds']} folds"]
    if protocol["draws"]:
        shared = ", the same on all folds" if protocol["shared"] else ""
        words.append(f"{protocol['draws']} draw{'s' * (protocol['draws'] > 1)} on each{shared}")
    if protocol["data_drawn"]:
        words.append("one simulated data set")
    return "; ".join(words)


def _undecided(results, value, stand_ins, missing):
    present = results.experiment.datasets
    stand_in = stand_ins.get(value.item["dataset"])
    if value.item["dataset"] not in present and all(name in stand_ins for name in present):
        stand_in = stand_ins[present[0]]
    if stand_in or isinstance(missing, Lost):
        return {"verdict": verdicts.NOT_TESTED, "reason": stand_in or str(missing)}
    row = {"verdict": verdicts.NOT_RUN, "reason": str(missing)}
    if isinstance(missing, Absent):
        row |= {"cause": missing.cause, "cause_value": missing.value}
    return row


def _compare(results, value, stand_ins):
    spec, item = value.spec, value.item
    try:
        ours = _ours(results, spec, item)
    except Missing as missing:
        return _undecided(results, value, stand_ins, missing)
    mean = value.from_error(ours["mean"])
    ends = sorted(value.from_error(ours[end]) for end in ("low", "high"))
    limits = (0, 1) if value.bounded else (-math.inf, math.inf)
    predicted = _predict(results, value, limits)
    powers = {}
    if predicted is not None:
        interval, error = predicted.interval, predicted.error
        powers = _powers(value, predicted, ours, limits)
    else:
        # If our replicates are data sets, the source's run is one replicate. Otherwise, each of the
        # source's folds is one.
        replicates = value.protocol["folds"] or ours["replicates"]
        replicates = 1 if ours["data_sets"] > 1 else replicates
        interval, error = prediction_interval(
            Sample(mean, ours["sd"], ours["replicates"]), replicates, limits
        )
    if value.bounded and item["column"] == "error_mean":
        interval = verdicts.counted(interval, _counted_rows(results, value), limits)
    judgement = _judgement(
        *(value.value, mean, interval, value.half, ABSOLUTE if value.bounded else 0.0),
        verdicts.margin(value.value, value.sd, share=value.bounded),
        *((error, error), limits),
        wider=_wider(value, ours),
    )
    row = judgement | {
        "ours": mean,
        "ours_low": ends[0],
        "ours_high": ends[1],
        "prediction_low": interval and interval[0],
        "prediction_high": interval and interval[1],
        "difference": mean - value.value,
        **powers,
    }
    if value.protocol["data_drawn"] and ours["data_sets"] == 1:
        row["reason"] += "; the interval is for this data set, the source's was another draw"
    if spec.bound:
        row |= _bounded(row, value, mean)
    if spec.quantity == "setting" and row["holds"] == "yes":
        tried = results.experiment.tune.grid.values
        if ours["ties"] == tried:
            row |= {"holds": "", "reason": f"all {tried} values tie, and exclude none"}
    _not_judged(row, value, stand_ins)
    if ours["status"] != "ok":
        row["reason"] += f"; {ours['status']}"
    if spec.implied_epsilon and item["epsilon"] is not None:
        row |= _implied(results, item, value.from_error(value.value))
    return row


def _powers(value, predicted, ours, limits):
    known = {
        **{"interval": predicted.interval, "error": predicted.error, "own": predicted.own},
        **{"half": value.half, "middle": predicted.mean, "limits": limits},
        "margin": verdicts.margin(value.value, value.sd, share=value.bounded),
    }
    more = verdicts.times_needed(**known) - 1
    return {
        "power": verdicts.power(**known),
        "replicates": ours["replicates"],
        "more": more if math.isinf(more) else math.ceil(more * ours["replicates"]),
    }


def _bounded(row, value, mean):
    """What `holds` if the source prints a bound: which side ours is on, unless our interval has it."""
    ends = [row["prediction_low"], mean, row["prediction_high"]]
    ends = [end for end in ends if end is not None]
    inside = [end >= value.value - value.half for end in ends]
    if value.spec.bound == "at_most":
        inside = [end <= value.value + value.half for end in ends]
    holds = "yes" if all(inside) else "" if any(inside) else "no"
    said = f"{mean:.4g}, {value.spec.bound.replace('_', ' ')} {value.value:.4g} printed"
    distance = {"yes": verdicts.INSIDE, "": verdicts.EDGE}.get(holds, row["distance"])
    return {"holds": holds, "distance": distance, "reason": said}


def _compare_spread(results, value, stand_ins):
    try:
        ours = _ours(results, value.spec, value.item)
        predicted = _predict(results, value, (-math.inf, math.inf))
    except Missing as missing:
        return _undecided(results, value, stand_ins, missing)
    if predicted is None or predicted.sd is None:
        why = "there are no single draws of it here to take a standard deviation over"
        return {"verdict": verdicts.NOT_TESTED, "reason": why}
    row = _judgement(
        *(value.sd, predicted.sd, predicted.sd_interval, value.half_sd, 0.0),
        verdicts.margin(value.sd, spread=True),
        [end * predicted.sd_error for end in predicted.sd_interval],
        wider=_wider(value, ours),
    ) | {
        "ours": predicted.sd,
        "prediction_low": predicted.sd_interval[0],
        "prediction_high": predicted.sd_interval[1],
        "difference": predicted.sd - value.sd,
    }
    _not_judged(row, value, stand_ins)
    return row


def _wider(value, ours):
    return verdicts.joint(ours["replicates"], value.together) if ours["replicates"] > 1 else 1.0


def _judgement(
    published, ours, interval, half, absolute, margin, errors, limits=None, *, wider=1.0
):
    """{distance, reason, half, holds, near} of a printed number.

    near: whether the printed number is within `margin` of our value or of the interval of a new run. If a
    non-private number is near, our model is taken to be the source's.
    """
    distance, reason = verdicts.distance(
        *(published, ours, interval),
        half=half,
        absolute=absolute,
        errors=errors,
        limits=limits,
        wider=wider,
    )
    holds = "yes" if verdicts.matches(distance) else "" if distance == verdicts.EDGE else "no"
    if holds == "yes" and verdicts.too_wide(interval, margin):
        holds, reason = "", f"{reason}, as a value {margin:.3g} from its middle would be"
    low, high = interval or (ours, ours)
    near = low - margin <= published <= high + margin
    return {"distance": distance, "reason": reason, "half": half, "holds": holds, "near": near}


def _not_judged(row, value, stand_ins):
    stand_in, calibrated = stand_ins.get(value.item["dataset"]), value.spec.calibrated
    if stand_in:
        row |= {"verdict": verdicts.NOT_TESTED, "distance": "", "reason": stand_in, "holds": ""}
    elif calibrated:
        scale = 100 if value.spec.quantity == "accuracy_percent" else 1
        residual = f"residual {scale * row['difference']:+.3g}"
        reason = f"{residual}; {calibrated}; {row['reason']}"
        row |= {"verdict": verdicts.CALIBRATED, "reason": reason}
        row["holds"] = ""


def _cell(results, value):
    """The `Cell` of a printed value; None if it is compared with an analysis or a table."""
    spec, item = value.spec, value.item
    if spec.analysis or spec.table or item["where"]:
        return None
    private = results.experiment.methods[item["method"]].private
    epsilon = item["epsilon"] if private else math.inf
    return Cell(item["dataset"], item["method"], item["train_size"], epsilon)


def _counted_rows(results, value):
    """The number of test rows behind a printed share under the source's protocol; None if unknown."""
    cell = _cell(results, value) if results.experiment.folds else None
    rows = results.test_rows(cell) if cell else None
    draws = 1 if cell is None or math.isinf(cell.epsilon) else value.protocol["draws"] or 1
    return rows and rows * draws


def _predict(results, value, limits):
    item, cell = value.item, _cell(results, value)
    if cell is None:
        return None
    # Most readings share most cells, and a number's standard deviation is of the same runs as its mean.
    known, at = (
        results.predictions,
        (value.spec.quantity, item["column"], item["path"], cell.method),
    )
    key = results.run_path(cell), at, tuple(value.protocol.items()), results.experiment.draws
    if key not in known:
        known[key] = _of_draws(results, value, cell)
    return known[key] and known[key].within(limits)


def _of_draws(results, value, cell):
    item, stated = value.item, value.protocol
    draws = _draws(results, cell, item["column"])
    if draws is None:
        return None
    protocol = Protocol(
        stated["folds"] or draws.shape[1],
        stated["draws"] or draws.shape[2],
        bool(stated["shared"]),
        bool(stated["data_drawn"]),
        stated["sd"] or "folds",
    )
    rng = generator(0, "prediction", item["path"], item["method"])
    values = value.from_error(np.asarray(draws))
    return predict(values, protocol, rng, paired=results.experiment.draws == "shared")


def _judge(row, readings, alike, why, best):
    """Add the verdict, the number of readings tried, and the luck (see `verdicts.RULE`) to a row.

    readings: the readings that concern the row.
    alike: the rows of the same comparison and kind (means or standard deviations).
    why: why a failure is not decidable, or "".
    best: the best single reading.
    """
    if "verdict" in row:
        return
    if why:
        row |= {"holds": OPEN, "reason": f"{why}; here: {row['reason']}"}
    tried = [r for r in (row, *readings) if _is_compared(r)]
    answers = [(r.get("reading", ""), r["holds"]) for r in tried]
    row["verdict"] = verdicts.with_readings(answers, _if_open(row["quantity"], tried), best)
    if why and not row["verdict"].startswith(verdicts.REPRODUCED):
        row |= {"verdict": verdicts.NOT_TESTED, "cause": why}
        if row.get("implied"):
            row["reason"] += f"; the printed number is ours at epsilon {row['implied']}"
        return
    row["readings"] = len(tried)
    if row["verdict"] == verdicts.UNDECIDED and (said := verdicts.elsewhere(answers, best)):
        row["reason"] += f"; {said}"
    if row["verdict"] in (verdicts.UNDECIDED, verdicts.TOO_WIDE):
        still = [r for r in tried if r["holds"] == OPEN]
        if row["holds"] == "no" and still:
            row["reason"] += f"; as read, {still[0]['reading']}: {still[0]['reason']}"
        row["reason"] += said_power(row)
    if row["verdict"].startswith(f"{verdicts.REPRODUCED} if"):
        named = row["verdict"].removeprefix(f"{verdicts.REPRODUCED} if ")
        held = next(r for r in tried if r.get("reading") == named)
        row |= {"read_ours": held["ours"], "read_low": held["prediction_low"]}
        row |= {"read_high": held["prediction_high"]}
        row["reason"] += f"; as read, {held['reading']}: {held['reason']}"
    if tried:
        numbers = [float(r["published"]) for r in alike]
        numbers += [float(r["ours"]) for r in (*alike, *tried) if r.get("ours") not in (None, "")]
        intervals = [_reach(r, row["half"]) for r in tried]
        row["luck"] = verdicts.covered(intervals, min(numbers), max(numbers))


def said_power(row):
    """What an open number's reason says about power, if that is too low; "" if not."""
    power, more = row.get("power"), row.get("more")
    if power in (None, "") or power >= verdicts.ENOUGH:
        return ""
    said = f"; a number that is truly the source's would be called so with {100 * power:.0f} %"
    if math.isinf(more):
        return f"{said}, and with no number of replicates with 80 %"
    return f"{said}: it would need about {more:,} more replicates than our {row['replicates']}"


def _is_compared(row):
    told = (verdicts.EQUAL, verdicts.INSIDE, verdicts.EDGE)
    return row["holds"] != OPEN or row["distance"] in told


def _if_open(quantity, tried):
    """The verdict if some reading leaves a number open, and none decides it. tried: the readings' rows."""
    if quantity == "setting":
        return verdicts.NOT_EXCLUDED
    still_open = [r["distance"] for r in tried if r["holds"] == OPEN]
    first_is_at_edge = still_open != [] and still_open[0] == verdicts.EDGE
    return verdicts.UNDECIDED if first_is_at_edge else verdicts.TOO_WIDE


def _reach(row, half):
    """The range of printed numbers that would agree with ours."""
    low, high = row.get("prediction_low"), row.get("prediction_high")
    low, high = (float(row["ours"]) if end in (None, "") else float(end) for end in (low, high))
    return min(low, float(row["ours"])) - half, max(high, float(row["ours"])) + half


def _ours(results, spec, item):
    """{mean, low, high, sd, replicates, status, ...} from the row of results that an item names."""
    column = item["column"]
    # An experiment that only describes data has no results of cells.
    named = spec.analysis or spec.table
    frame = results.named(spec.analysis, spec.table) if named else results.frame
    keys = ("dataset", "method", "train_size", *(["epsilon"] if item["by_epsilon"] else []))
    wanted = {key: item[key] for key in keys}
    wanted = {key: value for key, value in wanted.items() if value is not None} | item["where"]
    fits = np.ones(len(frame), dtype=bool)
    for key, value in wanted.items():
        method = results.experiment.methods.get(item["method"])
        if key == "epsilon" and method and not method.private:
            continue
        if key not in frame:
            raise Missing(f"the results have no column {key!r}")
        values = frame[key]
        if value == "inf":
            there = values == math.inf
        elif isinstance(value, (int, float)):
            there = (values - value).abs() <= 1e-9 * abs(value)
        else:
            there = values == value
        fits &= there.to_numpy()
        if not fits.any():
            raise Absent(key, value)
    if (count := int(fits.sum())) > 1:
        raise ValueError(f"{spec.values}: {count} rows of results fit {item['path']}")
    row = frame.iloc[int(fits.argmax())]
    if failed := lost(row.get("status", "ok")):
        raise Lost(f"{failed}: the mean over the other draws is not comparable")
    if column not in frame:
        return _own_report(results, row, column)
    if math.isnan(row[column]):
        raise Missing(str(row.get("status", "no value")))
    beside = {
        end: float(row.get(column.removesuffix("_mean") + end, math.nan))
        for end in ("_low", "_high", "_sd_folds")
    }
    data_sets = int(row.get("data_sets", 1))
    replicates = data_sets if data_sets > 1 else int(row.get("folds", 0))
    if data_sets > 1 or column.removesuffix("_mean") + "_sd_folds" not in row:
        half = max(beside["_high"] - row[column], row[column] - beside["_low"])
        beside["_sd_folds"] = sd_of(half, replicates)
    return {
        "mean": float(row[column]),
        "low": beside["_low"],
        "high": beside["_high"],
        "sd": beside["_sd_folds"],
        "replicates": replicates,
        "data_sets": data_sets,
        "ties": row.get("ties"),
        "status": row.get("status", "ok"),
    }


def _draws(results, cell, column):
    draws = results.draws(cell, column)
    return results.draws(cell, column.removesuffix("_mean")) if draws is None else draws


def _own_report(results, row, column):
    """Like `_ours`, for a number that a mechanism reports for every draw, such as its noise variance."""
    draws = None
    if set(Cell._fields) <= set(row.index):
        draws = _draws(results, cell_of(row), column)
    if draws is None or np.isnan(draws).all():
        raise Missing(f"the results have no column {column!r}")
    folds = np.nanmean(draws.reshape(-1, draws.shape[-1]), axis=1)
    mean, low, high = interval(folds)
    return {
        "mean": mean,
        "low": low,
        "high": high,
        "sd": float(folds.std(ddof=1)) if len(folds) > 1 else math.nan,
        "replicates": len(folds),
        "data_sets": len(draws),
        "status": row["status"],
    }


def _implied(results, item, value):
    if not results.experiment.methods[item["method"]].private:
        return {}
    curve = results.cells(
        datasets=item["dataset"], methods=item["method"], train_size=item["train_size"]
    )
    metric = item["column"].removesuffix("_mean")
    sign = -1 if metric in metrics.RISING else 1  # so that the curve falls
    ends = ("_mean", "_low", "_high") if sign == 1 else ("_mean", "_high", "_low")
    implied = implied_epsilon(
        curve["epsilon"], *(sign * curve[metric + end] for end in ends), sign * value
    )
    if implied is None:
        return {"implied": "no curve: fewer than two epsilons were run"}
    smallest, largest = (canonical.epsilon(end(curve["epsilon"])) for end in (min, max))

    def spell(value):
        if value == 0:
            return f"below {smallest}"
        return f"above {largest}" if math.isinf(value) else f"{value:.3g}"

    inside = 0 < implied.epsilon < math.inf
    text = ("about " if inside else "") + spell(implied.epsilon)
    if inside:
        text += f" ({spell(implied.low)} to {spell(implied.high)})"
    return {
        "implied_epsilon": implied.epsilon if inside else None,
        "implied_low": implied.low if 0 < implied.low < math.inf else None,
        "implied_high": implied.high if 0 < implied.high < math.inf else None,
        "implied": text,
    }
