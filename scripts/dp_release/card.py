"""A release's card and table for non-experts, written from model.json only.

The fields of the card's claim follow NIST SP 800-226 ("Guidelines for Evaluating Differential Privacy
Guarantees", 2025).
"""

import csv
import io
import math
from decimal import ROUND_CEILING, Context, Decimal

from dp_privacy.accounting import Guarantee
from dp_privacy.composition import of_group
from dp_release import holdout
from dp_release.request import PUBLIC_EXAMPLE

__all__ = ["card", "table_csv"]

COLUMNS = ("column", "estimate", "standard_error", "low", "high", "p_value", "says")
GROUPS = (2, 3, 4, 5, 10)  # rows per person for which the card states the guarantee
ENDS = (("low", "high"), ("least", "most"))  # of bounds that were found
KINDS = {"logistic": "logistic regression", "log_cosh": "robust linear regression (log-cosh loss)"}


def table_csv(document: dict) -> str:
    """The regression table as CSV. Without intervals, each row has only a coefficient and a remark.

    Parameters
    ----------
    document : dict
        `dp_release.files.Model.document`.

    Returns
    -------
    str

    See Also
    --------
    dp_release.making.make : Its example uses this.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _rows(document):
        values = (row[key] for key in COLUMNS)
        writer.writerow(f"{v:.9g}" if isinstance(v, float) else v for v in values)
    return out.getvalue()


def _rows(document):
    if document["table"] is not None:
        return document["table"]
    nothing = dict.fromkeys(COLUMNS) | {"says": "this method releases no interval"}
    pairs = zip(document["columns"], document["coefficients"], strict=True)
    return [nothing | {"column": name, "estimate": value} for name, value in pairs]


def card(document: dict) -> str:
    """card.md, a Markdown summary that may be published.

    Parameters
    ----------
    document : dict
        `dp_release.files.Model.document`.

    Returns
    -------
    str

    See Also
    --------
    dp_release.making.make : Its example uses this.
    """
    guarantee, spent = document["guarantee"], document["spent"]
    parts = [f"# {document['title'] or document['name']}"]
    if document["premise"] == PUBLIC_EXAMPLE:
        parts.append(
            "**Premise: public example.** The rows are public, so this release protects nobody. It shows "
            "what a release looks like."
        )
    parts += [
        f"{_model(document)} The model was learnt from {document['training_rows']:,} rows with "
        f"differential privacy: {_both(guarantee, ', ')}, under "
        f"{guarantee['adjacency']}. Everything in this folder may be published.",
        "## What is promised, and to whom",
        _promise(document),
        "## On which premises",
        _items(guarantee["premises"]),
        "If one of them is false, the promise does not hold.",
        "## What was spent",
        _spent(document["name"], guarantee, spent),
        "## The coefficients",
        _coefficients(document),
    ]
    if "found" in document:
        parts += ["## Bounds that were found", _found(document["found"])]
    if document["holdout"]:
        measured = document["holdout"]
        held = measured | {
            "records": min(measured["records"], measured["rows"])
        }  # the noisy count may exceed the number of rows
        told = holdout.said(document | {"holdout": held})
        parts += ["## Measured on rows that were held out", told]
    parts += [
        "## What is in this folder",
        _items(
            [
                "`model.json`: the model, with public bounds and categories of its columns, the numbers "
                "that were released as integers, and the guarantee",
                "`table.csv`: the coefficients; `coefficients.png`: the same as a figure",
                "`card.md`: this page",
            ]
        ),
        "## How to use it",
        "Predictions for new rows, a CSV with the same columns:",
        "    python scripts/tools/predict.py --model model.json --rows new.csv --out predictions.csv",
        "What is computed from the model costs no more privacy, however often it is used.",
        "## What may not be concluded",
        _items(_limits(document)),
        "## The claim, field by field",
        _fields(document),
    ]
    return "\n\n".join(parts) + "\n"


def _model(document):
    kind = KINDS[document["loss"]["name"]]
    target = document["schema"]["target"]
    if document["classes"] is not None:
        first, second = document["classes"]
        return f"A {kind} of `{target}`: {second} against {first}."
    low, high = document["target"]["low"], document["target"]["high"]
    return f"A {kind} of `{target}`, between {low:g} and {high:g}."


def _promise(document):
    meaning = document["guarantee"]["meaning"]
    guess = max(meaning["prior"], 1 - meaning["prior"])
    probabilities, learns = _learnt(meaning["right"] - guess)
    attacks = [
        f"falsely accuses {100 * false:g} in 100 rows, is right about at most {_up(power)} in 100 true ones"
        for false, power in zip(meaning["false"], meaning["power"], strict=True)
    ]
    return (
        f"The unit is a row: {document['unit']}. If all values of one row changed, what is published would "
        f"come out with {probabilities} probabilities. So whoever sees it, and even knows all other rows, "
        f"{learns} about a single row. Somebody who must choose between two possible contents of a row is "
        f"right at most {_up(meaning['right'])} in 100 times; without the release, {100 * guess:g}. "
        f"Who {'; who '.join(attacks)}.\n\n"
        f"The guarantee is for one row. If a person, or another group, has several rows, group privacy "
        f"leaves them less: {_groups(document['guarantee'])}."
    )


def _learnt(gain):
    """Words for how far probabilities differ, and for what is learnt, if the best attack gains so much."""
    if gain <= 0.1:
        return "nearly the same", "learns little"
    if gain <= 0.25:
        return "other, but similar,", "may learn something"
    return "very different", "may learn much"


def _groups(guarantee):
    one = Guarantee(
        *(guarantee[key] for key in ("epsilon", "epsilon", "delta", "adjacency", "reason"))
    )
    said = []
    for size in GROUPS:
        epsilon, delta = of_group(one, size)
        if math.isfinite(epsilon):
            exact = (Decimal(repr(guarantee["epsilon"])) * size).normalize()
            said.append(f"for {size} rows, epsilon = {exact:f} and delta = {_above(delta)} hold")
        else:
            said.append(f"for {size} rows, nothing is promised")
    return "; ".join(said)


def _both(guarantee, between):
    return f"epsilon = {_exact(guarantee['epsilon'])}{between}delta = {_exact(guarantee['delta'])}"


def _exact(value):
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _above(value):
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(value)):g}"


def _up(share):
    return f"{math.ceil(1000 * share) / 10:g}"


def _spent(name, guarantee, spent):
    text = (
        f"This release spent {_both(guarantee, ' and ')}. With "
        f"it, {spent['releases']} release{'s' * (spent['releases'] != 1)} about these people, as far as "
        f"their book knew then, had spent epsilon = {_exact(spent['epsilon'])} of "
        f"{_exact(spent['of_epsilon'])} and delta = {_exact(spent['delta'])} of "
        f"{_exact(spent['of_delta'])}. These sums hold for all of them together."
    )
    if spent["previews"]:
        text += (
            f" Before, the owner looked at the rows {spent['previews']} "
            f"time{'s' * (spent['previews'] != 1)} (`release.py preview`). If that influenced bounds, "
            f"categories or anything else, nothing paid for it."
        )
    changes = spent.get("settings_changed", 0)  # models of older books do not say
    if changes:
        text += (
            f" The settings changed {changes} time{'s' * (changes != 1)} after a look at the rows."
        )
    return text


def _coefficients(document):
    rows = _rows(document)
    lines = ["| column | estimate | 95 % interval | p |", "|---|---|---|---|"]
    for row in rows:
        if row["low"] is None:
            estimate = "" if row["estimate"] is None else f"{row['estimate']:.4g}"
            lines.append(f"| {_cell(row['column'])} | {estimate} | {row['says']} | |")
        else:
            lines.append(
                f"| {_cell(row['column'])} | {row['estimate']:.4g} | {row['low']:.4g} to "
                f"{row['high']:.4g} | {_p(row['p_value'])} |"
            )
    unit = "log odds" if document["classes"] else f"units of `{document['schema']['target']}`"
    text = f"In {unit}, for one unit of a column of numbers, and for a level against "
    levels = [
        f"`{c['name']}={c['reference']}`" for c in document["schema"]["columns"] if "reference" in c
    ]
    text += f"{', '.join(levels)}" if levels else "its reference level"
    if document["table"] is not None:
        text += (
            ". Intervals count the noise, and the pull of the ridge is undone. Where the release tells "
            "too little, a sentence stands in place of numbers"
        )
    else:
        text += ". These are a ridge's coefficients, drawn towards 0"
    if float(document["schema"]["radius"]) < 1:
        text += (
            ". Rows longer than a public radius were shortened; the units are those of other rows"
        )
    return f"{text}.\n\n" + "\n".join(lines)


def _found(found):
    """Which bounds a release found, what that cost, and what it does to the coefficients."""
    lines = [
        "| column | bounds found | least and most | rows that stand out |",
        "|---|---|---|---|",
    ]
    for c in found["columns"]:
        between = " | ".join(f"{_exact(c[a])} to {_exact(c[b])}" for a, b in ENDS)
        lines.append(f"| {_cell(c['column'])} | {between} | {c['stands_out']:,} |")
    return (
        f"The release found these bounds in the rows, from noisy counts of rows in public bins. Its "
        f"epsilon pays for them. Alone, they would cost epsilon = {_above(found['epsilon'])} at the same "
        f"delta. Where no bin stood out of the noise, the bounds are the public least and most, and other "
        f"coefficients are those of a model without this column.\n\n"
        + "\n".join(lines)
        + "\n\nNumbers beyond the bounds count as the bound. So a coefficient of a column with a long tail "
        "is that of the clipped numbers, and small groups with unusual numbers, of fewer rows than stand "
        "out, are told apart less."
    )


def _p(value):
    return f"{value:.2g}" if value >= 1e-15 else "< 1e-15"


def _cell(text):
    return str(text).replace("|", "\\|")


def _limits(document):
    return [
        "That a coefficient is a cause. This is an association among these rows, as in any regression.",
        "That a column has no effect because its interval contains 0, or because a sentence stands there: "
        "the noise may hide it.",
        "That facts about a group stay secret. Such a model tells what is true of many people, "
        "also of people who gave no data.",
        "That other publications about the same people are safe. The sums count only releases in the book.",
        "How well the model predicts, from this folder alone, unless errors on held-out rows stand above. "
        "`release.py forecast` says what to expect, without the rows.",
        _counted(document),
    ]


def _counted(document):
    schema = document["schema"]
    said = [
        f"A missing cell of `{c['name']}` counts as {c['missing']}."
        for c in schema["columns"]
        if c.get("missing") is not None
    ]
    (target,) = (c for c in schema["columns"] if c["name"] == schema["target"])
    if target["kind"] == "label" and target.get("above") is None and not target.get("negative"):
        low, high = document["classes"]
        said.append(
            f"Every label in `{target['name']}` that is not missing and not {high} counts as {low}."
        )
    told = "nobody is told how many there were"
    if document["holdout"]:
        told = "how many there were is told only by the noisy number of held-out records above"
    return " ".join(
        [
            "That every row was used: some may have a missing or unknown cell.",
            *said,
            f"{'Other rows with such a cell' if said else 'Such rows'} count nothing, and {told}.",
        ]
    )


def _fields(document):
    guarantee = document["guarantee"]
    fields = {
        "Unit of privacy": f"a row: {document['unit']}; neighbours differ in one row ("
        f"{guarantee['adjacency']}), and the number of rows is public",
        "Parameters": f"{_both(guarantee, ', ')}; `model.json` has more points of the profile",
        "Trust model": "central: whoever keeps the rows and ran the program is trusted",
        "Threat model": "whoever sees all that is published, with any other knowledge and any "
        "computing power that does not break HMAC-SHA512",
        "Algorithm": f"`{document['method']}`: {guarantee['reason']}",
        "Randomness": "discrete Gaussian noise, exactly drawn from a key of 256 bits of the operating "
        "system, which was overwritten and deleted afterwards; disks and backups may keep it",
        "Implementation": "integers on a lattice; rounding is paid for; code "
        f"`{document['made_by']['code'][:12]}`, {_versions(document)}",
        "Side channels": "not covered: how long the computation took, how much memory it used, and when "
        "files were written",
        "Budget": "sums of epsilon and delta in a book that refuses more; see above",
        "Preparation": _prepared(document),
        "Exposure of the rows": "the rows themselves stay where they were; access to them, their backups "
        "and the book is not part of this claim",
    }
    lines = ["| field | claim |", "|---|---|"]
    lines += [f"| {key} | {_cell(value)} |" for key, value in fields.items()]
    return "\n".join(lines)


def _prepared(document):
    if "found" not in document:
        return (
            "bounds and categories are public; a row is made from one line alone, and nothing was "
            "looked up in others"
        )
    names = ", ".join(f"`{c['column']}`" for c in document["found"]["columns"])
    return (
        f"bounds of {names} were found in the rows, which is paid for; other bounds and categories are "
        f"public; given the bounds, a row is made from one line alone"
    )


def _versions(document):
    return ", ".join(f"{key} {value}" for key, value in document["made_by"]["libraries"].items())


def _items(lines):
    return "\n".join(f"- {line}" for line in lines)
