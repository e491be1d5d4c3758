"""published.csv: every printed value that an experiment names, beside ours."""

import math

from checks.implied import implied_epsilon
from checks.results import Missing
from checks.verdicts import ABSOLUTE, Sample, prediction_interval, sd_of, verdict
from dp import metrics
from study import canonical
from study.configuration.printed_values import QUANTITIES, expand, look_up

COLUMNS = (
    *("comparison", "source", "published_at", "dataset", "method", "train_size", "epsilon"),
    *("quantity", "published", "published_sd", "ours", "ours_low", "ours_high", "prediction_low"),
    *("prediction_high", "difference", "verdict", "reason", "implied_epsilon", "implied_low"),
    *("implied_high", "implied", "note"),
)


def compare(results, source, comparisons, stand_ins):
    """Rows of published.csv. comparisons: an experiment's `published` section. stand_ins: data set ->
    why its digits decide nothing."""
    for name, spec in comparisons.items():
        for item in expand(spec):
            yield _compare(results, source, name, spec, item, stand_ins)


def _compare(results, source, name, spec, item, stand_ins):
    to_ours, from_error = QUANTITIES[spec["quantity"]]
    value, sd = look_up(source, item["path"], spec["layout"])
    value, sd = to_ours(value), to_ours(sd) if sd is not None else None
    method = results.experiment.methods.get(item["method"], {})
    private = item["epsilon"] is not None and method.get("private", True)
    row = {
        "comparison": name,
        "source": source.short,
        "published_at": item["path"],
        "dataset": item["dataset"],
        "method": item["method"],
        "train_size": item["train_size"],
        "epsilon": canonical.epsilon(item["epsilon"]) if private else "",
        "quantity": spec["quantity"].removesuffix("_percent"),
        "published": value,
        "published_sd": sd,
        "note": spec.get("note"),
    }
    stand_in = stand_ins.get(item["dataset"])
    try:
        ours = _ours(results, spec, item)
    except Missing as missing:
        present = results.experiment.datasets
        if item["dataset"] not in present and all(name in stand_ins for name in present):
            stand_in = stand_ins[present[0]]
        judged = ("not tested", stand_in) if stand_in else ("not run", str(missing))
        return row | {"verdict": judged[0], "reason": judged[1]}
    mean = from_error(ours["mean"])
    ends = sorted(from_error(ours[end]) for end in ("low", "high"))
    bounded = spec["quantity"] != "value"
    interval = prediction_interval(
        Sample(mean, ours["sd"], ours["replicates"]),
        spec.get("replicates") or ours["replicates"],
        sd,
        (0, 1) if bounded else (-math.inf, math.inf),
    )
    judged, reason = verdict(
        value,
        mean,
        interval,
        absolute=ABSOLUTE if bounded else 0.0,
        stand_in=stand_in,
        calibrated=spec.get("calibrated"),
    )
    if judged == "inside" and sd is not None:
        reason += _by_printed_spread(value, mean, ours, spec, bounded)
    row |= {
        "ours": mean,
        "ours_low": ends[0],
        "ours_high": ends[1],
        "prediction_low": interval and interval[0],
        "prediction_high": interval and interval[1],
        "difference": mean - value,
        "verdict": judged,
        "reason": reason,
    }
    if ours["status"] != "ok":
        row["reason"] += f"; {ours['status']}"
    if spec["implied_epsilon"] and item["epsilon"] is not None:
        row |= _implied(results, item, from_error(value))
    return row


def _by_printed_spread(value, mean, ours, spec, bounded):
    """Says so where only the printed standard deviation brings a value inside."""
    sample = Sample(mean, ours["sd"], ours["replicates"])
    alone = prediction_interval(sample, spec.get("replicates") or ours["replicates"])
    outcome, _ = verdict(value, mean, alone, absolute=ABSOLUTE if bounded else 0.0)
    if outcome == "inside" or alone is None:
        return ""
    return (
        f", which the printed sd makes so wide; by our own spread [{alone[0]:.4g}, {alone[1]:.4g}] "
        f"it would be {outcome}"
    )


def _ours(results, spec, item):
    """{mean, low, high, sd, replicates, status}: the one row of the results that an item names."""
    column = item["column"]
    frame = results.named(spec) if "analysis" in spec or "table" in spec else results.frame
    keys = ("dataset", "method", "train_size", *(["epsilon"] if item["by_epsilon"] else []))
    wanted = {key: item[key] for key in keys}
    wanted = {key: value for key, value in wanted.items() if value is not None} | item["where"]
    for key, value in wanted.items():
        method = results.experiment.methods.get(item["method"], {"private": True})
        if key == "epsilon" and not method["private"]:
            continue
        if key not in frame:
            raise Missing(f"the results have no column {key!r}")
        if value == "inf":
            frame = frame[frame[key] == math.inf]
        elif isinstance(value, (int, float)):
            frame = frame[(frame[key] - value).abs() <= 1e-9 * abs(value)]
        else:
            frame = frame[frame[key] == value]
        if frame.empty:
            raise Missing(f"this run has no {key.replace('_', ' ')} {value} here")
    if len(frame) > 1:
        raise ValueError(f"{spec['values']}: {len(frame)} rows of results fit {item['path']}")
    found = frame.iloc[0]
    if column not in frame:
        raise Missing(f"the results have no column {column!r}")
    if math.isnan(found[column]):
        raise Missing(str(found.get("status", "no value")))
    beside = {
        end: float(found.get(column.removesuffix("_mean") + end, math.nan))
        for end in ("_low", "_high", "_sd_folds")
    }
    if column.removesuffix("_mean") + "_sd_folds" not in found:
        folds = int(found.get("folds", 0))
        half = max(beside["_high"] - found[column], found[column] - beside["_low"])
        beside["_sd_folds"] = sd_of(half, folds)
    return {
        "mean": float(found[column]),
        "low": beside["_low"],
        "high": beside["_high"],
        "sd": beside["_sd_folds"],
        "replicates": int(found.get("folds", 0)),
        "status": found.get("status", "ok"),
    }


def _implied(results, item, value):
    """Columns of the epsilon at which this implementation has a published error."""
    if not results.experiment.methods[item["method"]]["private"]:
        return {}
    curve = results.cells(
        datasets=item["dataset"], methods=item["method"], train_size=item["train_size"]
    )
    metric = item["column"].removesuffix("_mean")
    sign = -1 if metric in metrics.RISING else 1  # its curve is then that of an error
    ends = ("_mean", "_low", "_high") if sign == 1 else ("_mean", "_high", "_low")
    found = implied_epsilon(
        curve["epsilon"], *(sign * curve[metric + end] for end in ends), sign * value
    )
    if found is None:
        return {"implied": "no curve: fewer than two epsilons were run"}
    smallest, largest = (canonical.epsilon(end(curve["epsilon"])) for end in (min, max))

    def spell(value):
        if value == 0:
            return f"below {smallest}"
        return f"above {largest}" if math.isinf(value) else f"{value:.3g}"

    inside = 0 < found.epsilon < math.inf
    text = ("about " if inside else "") + spell(found.epsilon)
    if inside:
        text += f" ({spell(found.low)} to {spell(found.high)})"
    return {
        "implied_epsilon": found.epsilon if inside else None,
        "implied_low": found.low if 0 < found.low < math.inf else None,
        "implied_high": found.high if 0 < found.high < math.inf else None,
        "implied": text,
    }
