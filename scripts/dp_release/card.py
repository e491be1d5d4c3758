"""A release's card and table for non-experts, written from model.json only.

The fields of the card's claim follow NIST SP 800-226 ("Guidelines for Evaluating Differential Privacy
Guarantees", 2025).
"""

import csv
import hashlib
import io
import math
from decimal import ROUND_CEILING, Context, Decimal
from statistics import NormalDist

from dp_privacy.accounting import Guarantee
from dp_privacy.composition import of_group
from dp_release import files, holdout
from dp_release.persons import PEOPLE
from dp_release.request import PUBLIC_EXAMPLE

__all__ = ["card", "table_csv"]

COLUMNS = ("column", "estimate", "standard_error", "low", "high", "p_value", "says")
ODDS = ("odds_ratio", "odds_low", "odds_high")
ALSO = ("label", "unit", "epsilon", "rows")
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5)  # of false accusations, for which the card states the power
GROUPS = (2, 3, 4, 5, 10)  # rows per person for which the card states the guarantee
ENDS = (("low", "high"), ("least", "most"))  # of bounds that were found
KINDS = {"logistic": "logistic regression", "log_cosh": "robust linear regression (log-cosh loss)"}


def table_csv(document: dict) -> str:
    """The regression table as CSV. Without intervals, each row has only a coefficient and a remark.

    Of two classes, each row also has the odds ratio, e to the coefficient, with its interval.

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
    odds = ODDS if document["classes"] else ()
    writer.writerow((*COLUMNS, *odds, *ALSO))
    stated = {"epsilon": document["guarantee"]["epsilon"], "rows": document["training_rows"]}
    words, units = labels(document), _units(document)
    for row in _rows(document):
        name = row["column"]
        row = row | dict(zip(ODDS, _odds(row), strict=True)) | stated
        row |= {"label": words[name], "unit": units[name]}
        values = (row[key] for key in (*COLUMNS, *odds, *ALSO))
        writer.writerow(f"{v:.9g}" if isinstance(v, float) else v for v in values)
    return out.getvalue()


def _rows(document):
    if document["table"] is not None:
        return document["table"]
    nothing = dict.fromkeys(COLUMNS) | {"says": "this method releases no interval"}
    pairs = zip(document["columns"], document["coefficients"], strict=True)
    return [nothing | {"column": name, "estimate": value} for name, value in pairs]


def _odds(row):
    """e to a row's estimate and to its interval's ends; infinite beyond the machine's numbers."""

    def power(value):
        if value is None:
            return None
        try:
            return math.exp(value)
        except OverflowError:
            return math.inf

    return [power(row[key]) for key in ("estimate", "low", "high")]


def labels(document: dict) -> dict[str, str]:
    """Column -> words for it: those of the request, otherwise its name."""
    stated = document.get("labels", {})
    words = {name: stated.get(name, name) for name in document["columns"]}
    for column in document["schema"]["columns"]:
        for level in column["values"] if column["kind"] == "category" else ():
            name = f"{column['name']}={level}"
            if column["name"] in stated and name in words and name not in stated:
                words[name] = f"{stated[column['name']]}: {level}"
    return words | {"constant": "intercept"}


def _units(document):
    """Column -> what its coefficient is: per unit of a number, or against a reference level."""
    what = "log odds" if document["classes"] else document["target"]["name"]
    units = dict.fromkeys(document["columns"], f"{what} per unit")
    for column in document["schema"]["columns"]:
        if column["kind"] != "category":
            continue
        for level in column["values"] if "reference" in column else ():
            name = f"{column['name']}={level}"
            if name in units:
                units[name] = f"{what} against {column['name']}={column['reference']}"
    return units | {"constant": what}


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
        _summary(document),
        "Everything in this folder may be published. ![What an attacker may reach](tradeoff.png)",
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
        once = _one(document) == "person" and document["person"]["count"] == PEOPLE
        most = measured["people"] if once else measured["rows"]
        # The noisy count may exceed it.
        held = measured | {"records": min(measured["records"], most)}
        told = holdout.said(document | {"holdout": held})
        parts += ["## Measured on rows that were held out", told]
    parts += [
        "## What is in this folder",
        _items(
            [
                "`model.json`: the model, with public bounds and categories of its columns, the numbers "
                "that were released as integers, and the guarantee",
                "`table.csv`: the coefficients; `coefficients.png`: the same as a figure",
                "`tradeoff.png`: the largest share of true accusations, for each share of false ones",
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


def _summary(document):
    """What a data protection officer signs: what, about whom, by whom, and what it is worth."""
    guarantee = document["guarantee"]
    stated = [document.get(key) for key in ("released_by", "contact")]
    digest = hashlib.sha256(files.written(document)).hexdigest()
    rows = _learnt_from(document)
    if document["training_rows"] != document["rows"]:
        rows += f", of {document['rows']:,}"
    public = "" if "person" in document else ", a public number"
    fields = {
        "What": _model(document),
        "About whom": document["unit"],
        "Protected": _unit(document),
        "Released by": ", ".join(filter(None, stated)) or "not stated",
        "Date": document.get("date") or "not recorded",
        "Rows": f"{rows}{public}",
    }
    if document["classes"]:
        fields["Rows of each class"] = "not released"
    if document["holdout"] and document["classes"]:
        fields["Rows of each class"] += ", but for the noisy share among held-out rows below"
    worth = _worth(guarantee, "rows" if _one(document) == "row" else "people")
    fields |= {
        "Guarantee": f"**{_both(guarantee, ', ')}, {guarantee['adjacency']}**; {worth}",
        "To check": f"`model.json` has the SHA-256 `{digest}`, which stands in the owner's book; "
        f"`release.py check {document['name']}` compares rows and request with it. Made by code "
        f"`{document['made_by']['code'][:12]}`, {_versions(document)}",
    }
    lines = ["| | |", "|---|---|"]
    return "\n".join(lines + [f"| {key} | {_cell(value)} |" for key, value in fields.items()])


def _worth(guarantee, others):
    """The best attack's success, in words and as the distance of two normal laws as hard to tell apart.

    Phi(mu/2) is the share of right answers about which of N(0, 1) and N(mu, 1) a number is from.
    """
    right = guarantee["meaning"]["right"]
    guess = max(guarantee["meaning"]["prior"], 1 - guarantee["meaning"]["prior"])
    said = (
        f"an attacker who knows all other {others} is right at most {_up(right)} in 100 times "
        f"(without the release: {100 * guess:g})"
    )
    if guess != 0.5 or not 0.5 <= right < 1:
        return said
    mu = _above(2 * NormalDist().inv_cdf(right))
    return f"worth {mu} standard deviations (mu) of one number with normal noise: {said}"


def tradeoff(document: dict, false: float) -> float:
    """The largest share of true accusations at this share of false ones, by the profile in model.json.

    Each point (epsilon, delta) of the profile holds in both directions, so it bounds the power by
    delta + e^epsilon false, and by 1 - (1 - false - delta)/e^epsilon.
    """
    profile = [(e, delta) for e, delta in document["guarantee"]["profile"] if e < 700]
    bounds = (
        min(delta + math.exp(e) * false, 1 - (1 - false - delta) / math.exp(e))
        for e, delta in profile
    )
    return min(1.0, *bounds)


def _learnt_from(document):
    if "person" not in document:
        return f"{document['training_rows']:,} rows"
    most = document["person"]["most"]
    people = f"{document['training_rows'] // most:,} people"
    said = f"at most {most} row{'s' * (most > 1)} of each of {people}"
    once = document["person"]["count"] == PEOPLE and most > 1
    return (
        said
        + " (every person counts once, so it describes a mean over people, not over rows)" * once
    )


def _unit(document):
    """What is protected, in words."""
    if "person" not in document:
        return f"a row: {document['unit']}"
    person = document["person"]
    return (
        f"a person: all rows with the same `{person['column']}`, however many there are ("
        f"{document['unit']})"
    )


def _one(document):
    return "row" if "person" not in document else "person"


def _promise(document):
    meaning = document["guarantee"]["meaning"]
    guess, one = max(meaning["prior"], 1 - meaning["prior"]), _one(document)
    some = "rows" if one == "row" else "people"
    probabilities, learns = _learnt(meaning["right"] - guess)
    exact = dict(zip(meaning["false"], meaning["power"], strict=True))
    power = {share: min(tradeoff(document, share), exact.get(share, 1)) for share in SHARES}
    changed = "all values of one row" if one == "row" else "all rows of one person"
    group = "a person, or another group, has several rows"
    if one == "person":
        group = "several people, such as a family, are to be protected together"
    return (
        f"The unit is {_unit(document)}. If {changed} changed, what is published would "
        f"come out with {probabilities} probabilities. So whoever sees it, and even knows all other "
        f"{some}, {learns} about a single {one}. {_delta(document)}"
        f"Somebody who must choose between two possible contents of a {one} is right at most "
        f"{_up(meaning['right'])} in 100 times; without the release, "
        f"{100 * guess:g}. Somebody who accuses {some} of having a certain content:\n\n"
        f"| falsely accused, of 100 | rightly accused, of 100, at most |\n|---|---|\n"
        + "".join(f"| {100 * share:g} | {_up(value)} |\n" for share, value in power.items())
        + f"\nThe guarantee is for one {one}. If {group}, group privacy "
        f"leaves them less:\n\n{_groups(document['guarantee'], some)}"
    )


def _delta(document):
    """What a delta of 0 means."""
    if document["guarantee"]["delta"]:
        return ""
    return (
        "Delta is 0: no outcome, however unlikely, may come out with a probability that changes by more "
        "than the factor e^epsilon. (With a delta above 0, outcomes of a total probability of delta may "
        "tell more.) "
    )


def _learnt(gain):
    """Words for how far probabilities differ, and for what is learnt, if the best attack gains so much."""
    if gain <= 0.1:
        return "nearly the same", "learns little"
    if gain <= 0.25:
        return "other, but similar,", "may learn something"
    return "very different", "may learn much"


def _groups(guarantee, some):
    one = Guarantee(
        *(guarantee[key] for key in ("epsilon", "epsilon", "delta", "adjacency", "reason"))
    )
    lines = [f"| {some} | epsilon | delta |", "|---|---|---|"]
    for size in GROUPS:
        epsilon, delta = of_group(one, size)
        if math.isfinite(epsilon):
            exact = (Decimal(repr(guarantee["epsilon"])) * size).normalize()
            lines.append(f"| {size} | {exact:f} | {_above(delta)} |")
        else:
            lines.append(f"| {size} | nothing is promised | |")
    return "\n".join(lines)


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
    rows, words = _rows(document), labels(document)
    odds = bool(document["classes"])
    lines = ["| column | estimate | 95 % interval | p |", "|---|---|---|---|"]
    if odds:
        lines = [
            "| column | estimate | 95 % interval | odds ratio | 95 % interval | p |",
            "|---|---|---|---|---|---|",
        ]
    for row in rows:
        cells = [words[row["column"]]]
        ratio, least, most = _odds(row)
        if row["low"] is None:
            known = row["estimate"] is not None
            cells += [f"{row['estimate']:.4g}" if known else "", row["says"]]
            cells += [f"{ratio:.3g}" if known else "", "", ""] if odds else [""]
        else:
            cells += [f"{row['estimate']:.4g}", f"{row['low']:.4g} to {row['high']:.4g}"]
            cells += [f"{ratio:.3g}", f"{least:.3g} to {most:.3g}"] if odds else []
            cells.append(_p(row["p_value"]))
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    unit = "log odds" if odds else f"units of `{document['schema']['target']}`"
    text = f"Estimates are in {unit}, for one unit of a column of numbers, and for a level against "
    levels = [
        f"`{c['name']}={c['reference']}`" for c in document["schema"]["columns"] if "reference" in c
    ]
    text += f"{', '.join(levels)}" if levels else "its reference level"
    if document["table"] is not None:
        text += (
            ". Intervals count the noise, and the pull of the ridge is undone. Where the release tells "
            "too little, a sentence stands in place of numbers"
        )
        if "person" in document and document["person"]["most"] > 1:
            text += (
                ". They hold if the rows of a person depend on each other in any way, and are wider "
                "than need be where these depend little"
            )
    else:
        text += ". These are a ridge's coefficients, drawn towards 0"
    if "offset" in document:
        text += _first(document)
    if float(document["schema"]["radius"]) < 1:
        text += (
            ". Rows longer than a public radius were shortened; the units are those of other rows"
        )
    return f"{text}.\n\n" + "\n".join(lines)


def _first(document):
    """What a class rate that was released first does to the intercept."""
    noise = document["parts"]["rate"]
    deviation = math.sqrt(2) * noise["scale"] * 2.0 ** noise["step"]
    offset = document["offset"]
    return (
        f". The first part of the release is the number of rows of {document['classes'][1]} (a row that "
        f"counts nothing is half a row), with noise of standard deviation {deviation:.3g}. The log odds "
        f"of this share, {offset:.4g}, are part of every "
        f"score and of the intercept, so the ridge draws predictions towards this share, not towards a "
        f"half; the intercept's errors are those of the later parts, given this one"
    )


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
    if "person" in document:
        person = document["person"]
        said.append(
            f"A row without `{person['column']}` counts nothing, nor do rows of a person beyond the first "
            f"{person['most']} that are read, nor people beyond {person['people']:,}, whom the key chose."
        )
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
    guarantee, public = document["guarantee"], "the number of rows is public"
    differ = "one row"
    if "person" in document:
        differ, public = (
            "all rows of one person",
            "the number of people is public, not that of rows",
        )
    fields = {
        "Unit of privacy": f"{_unit(document)}; neighbours differ in {differ} ("
        f"{guarantee['adjacency']}), and {public}",
        "Parameters": f"{_both(guarantee, ', ')}; `model.json` has more points of the profile",
        "Trust model": "central: whoever keeps the rows and ran the program is trusted",
        "Threat model": "whoever sees all that is published, with any other knowledge and any "
        "computing power that does not break HMAC-SHA512",
        "Algorithm": f"`{document['method']}`: {guarantee['reason']}"
        + (f". {document['why']}" if document.get("why") else ""),
        "Randomness": f"{_noise(document)}, exactly drawn from a key of 256 bits of the operating "
        "system, which was overwritten and deleted afterwards; disks and backups may keep it",
        "Implementation": "integers on a lattice; rounding is paid for; code "
        f"`{document['made_by']['code'][:12]}`, {_versions(document)}",
        "Side channels": "not covered: how long the computation took, how much memory it used, and when "
        "files were written",
        "Budget": "sums of epsilon and delta in a book that refuses more; see above",
        "Preparation": _prepared(document)
        + "; which rows of a person count is decided by this person's rows alone"
        * ("person" in document),
        "Exposure of the rows": "the rows themselves stay where they were; access to them, their backups "
        "and the book is not part of this claim",
    }
    lines = ["| field | claim |", "|---|---|"]
    lines += [f"| {key} | {_cell(value)} |" for key, value in fields.items()]
    return "\n".join(lines)


def _noise(document):
    said = [
        "noise of a norm's law on a lattice" if "law" in each else "discrete Gaussian noise"
        for each in (document["tilt"], *document["parts"].values())
    ]
    return " and ".join(dict.fromkeys(said))


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
