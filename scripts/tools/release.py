"""Makes publishable models from your own rows, and shows their cost.

    python "$DP_HOME/scripts/tools/release.py" forecast <name> # expected accuracy and widths; opens no rows
    python "$DP_HOME/scripts/tools/release.py" preview <name>  # PRIVATE: how the rows are read; needed once
    snakemake --cores 1 -- releases/<name>/model.json          # makes the model, through `make` below
    python "$DP_HOME/scripts/tools/release.py" book <name>     # budget spent, by release
    python "$DP_HOME/scripts/tools/release.py" check <name>    # PRIVATE: whether rows or request changed
    python "$DP_HOME/scripts/tools/release.py" raise <name> --epsilon 4 --delta 4e-6 --reason "..."

<name> stands for config/releases/<name>.yaml in the working folder.
"""

import argparse
import json
import sys
from pathlib import Path

import home

from dp_privacy.errors import Refused
from dp_release import book, card, making, preview, rows
from dp_release import forecast as outlooks
from study.configuration import releases
from study.configuration.faults import in_yaml
from study.configuration.validation import ConfigError
from study.jobs import script
from study.jobs.files import atomic

FEW = 20  # simulated releases for each price of `most`


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[home.ARGUMENTS],
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (function, what) in COMMANDS.items():
        command = commands.add_parser(name, help=what, description=function.__doc__)
        command.add_argument("name", help="of config/releases/<name>.yaml")
        command.set_defaults(run=function)
        if name == "make":
            command.add_argument("--out", required=True, help="a folder")
        if name == "raise":
            command.add_argument("--epsilon", required=True, help="of the whole book")
            command.add_argument("--delta", required=True)
            command.add_argument("--reason", required=True, help="which the book keeps")
        if name == "forecast":
            forecast_arguments(command)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except ConfigError as error:
        raise ValueError(str(error)) from None


def make(arguments):
    """Make the release, or copy it if it exists, and write its card, table and figure."""
    release = releases.load(arguments.name)
    releases.check_place(release, arguments.out)
    with release.book.locked() as account:
        made = account.made(arguments.name)
    content = making.make(release.request, release.book, release.path, release.header, alone=True)
    if made:
        print(releases.is_of(arguments.name, made))
    folder = Path(arguments.out)
    document = json.loads(content)
    from plots import releases as figures
    from plots import style

    coefficients = figures.coefficients(document, card.labels(document))
    style.save(coefficients, folder / "coefficients.png")
    true = [card.tradeoff(document, k / 200) for k in range(201)]
    style.save(figures.tradeoff(document, true), folder / "tradeoff.png")
    for file, text in (("table.csv", card.table_csv(document)), ("card.md", card.card(document))):
        with atomic(folder / file) as handle:
            handle.write(text)
    with atomic(folder / "model.json", "wb") as handle:
        handle.write(content)


def show(arguments):
    """Print the budget that the releases of a book have spent, one line per release."""
    _, values = releases.read(arguments.name)
    account = book.Book(values.book)
    with account.locked():
        spent = account.spent()
    print(*spent.lines(), sep="\n")


def look(arguments):
    """Show the owner how a release would read the rows, and record in the book that they were seen.

    The output is private.
    """
    release = releases.load(arguments.name)
    request = release.request
    releases.check_book(release)
    said = making.preview(request, release.book, release.path, release.header)
    with release.book.locked() as account:
        spent = account.spent()
    warning = request.warning()
    told = [request.why(), f"{warning}." if warning else "", spent.beside(request)]
    print(*said, *filter(None, told), sep="\n")


def check(arguments):
    """Compare rows and request with those of the release in the book; exit with 1 if they differ.

    The answer is private: it tells without noise whether two tables are equal.
    """
    name = arguments.name
    release = releases.load(name)
    account = book.Book(release.book.path)  # without a budget, which may have been raised
    day, changed = making.changes(release.request, account, release.path)
    print(preview.PRIVATE)
    if not changed:
        print(f"The model of {name!r} is of {day}, of these rows and this request.")
        return
    print(
        f"The model of {name!r} is of {day}. Since then, {' and '.join(changed)} changed. The model stays "
        f"as it is: another release needs another name, and its own share of the budget."
    )
    sys.exit(1)


def forecast_arguments(command):
    add = command.add_argument
    add("--epsilon", type=float, nargs="+", help="other epsilons than the release's")
    add("--width", metavar="COLUMN=W", help="find the epsilon for a 95 %% interval so wide")
    add("--share", type=float, help="find the epsilon that leaves this share of the gain")
    add("--prior", type=float, default=0.5, help="an attacker's probability before the release")
    what = "a column's mean and deviation, AGE=52,13, or shares of levels, SEX=f:0.6,m:0.4"
    add("--expect", metavar="COLUMN=..", nargs="+", default=[], help=what)
    what = "correlations of columns of numbers, which make intervals wider"
    add("--correlation", metavar="COLUMN,COLUMN=R", nargs="+", default=[], help=what)
    add("--effect", metavar="COLUMN=B", nargs="+", default=[], help="coefficients, in own units")
    what = "shares of people by their number of rows, 1:0.7,2:0.3, if a person is protected"
    add("--each", metavar="ROWS:SHARE,..", help=what)
    add(
        "--most", type=int, nargs="+", default=outlooks.MOSTS, help="show the price of so many rows"
    )
    add(
        "--draws", type=int, help="so many simulated releases per epsilon, at most 400 if not given"
    )
    add("--positives", type=float, help="share of the second class; 0.5 is assumed if not given")
    for key, default in outlooks.Expected._field_defaults.items():
        if isinstance(default, float):
            add(
                f"--{key}",
                type=float,
                default=default,
                help=f"see forecast.py; {default} if not given",
            )


def forecast(arguments):
    """Show a release's expected accuracy, from releases of simulated rows, at no privacy cost."""
    request = releases.load(arguments.name).request
    schema = rows.from_facts(request.schema)
    expected = outlooks.Expected(
        dict(map(_expected, map(_pair, arguments.expect))),
        {name: _number(value) for name, value in map(_pair, arguments.effect)},
        *(getattr(arguments, key) for key in ("positives", "strength", "explained")),
        {tuple(names.split(",")): _number(r) for names, r in map(_pair, arguments.correlation)},
        _each(arguments.each),
    )
    study = outlooks.Study(schema, expected)
    print(*study.said(), sep="\n", flush=True)  # first, because the forecast holds only under it
    if request.person is not None:
        print(study.said_of_people(request.persons), flush=True)
    if arguments.width or arguments.share:
        if arguments.width:
            column, width = _pair(arguments.width)
            enough = outlooks.width(column, _number(width))
        else:
            enough = outlooks.share(arguments.share)
        results = [outlooks.needed(request, study, enough, arguments.draws)]
    else:
        requests = [
            request._replace(epsilon=epsilon) for epsilon in arguments.epsilon or [request.epsilon]
        ]
        results = [outlooks.outlook(each, study, arguments.draws) for each in requests]
    for result in results:
        print(*result.sentences(arguments.prior), sep="\n")
        price = outlooks.price(
            request._replace(epsilon=result.epsilon), study, result, arguments.draws
        )
        print(*price, sep="\n", end="\n" if price else "")
    if request.person is not None:
        found = outlooks.prices(request, study, tuple(arguments.most), arguments.draws or FEW)
        print(*outlooks.price_lines(found), sep="\n")
    else:
        for result in results:
            again = request._replace(epsilon=result.epsilon)
            print(*outlooks.compared(again, study, arguments.draws), sep="\n")


def _each(text):
    if text is None:
        return {}
    each = {}
    for part in text.split(","):
        size, _, share = part.partition(":")
        if not size.strip().isdecimal():
            raise Refused(f"--each: {size!r} is no number of rows")
        each[int(size)] = _number(share)
    return each


def _pair(text):
    name, _, value = text.rpartition("=")
    return name, value


def _number(text):
    try:
        return float(text)
    except ValueError:
        raise Refused(f"{text!r} is not a number") from None


def _expected(pair):
    name, value = pair
    if ":" not in value:
        mean, _, deviation = value.partition(",")
        return name, {"mean": _number(mean), "deviation": _number(deviation)}
    shares = (part.rpartition(":") for part in value.split(","))
    return name, {level: _number(share) for level, _, share in shares}


def change(arguments):
    """Change a book's budget and record the reason. Its releases' YAML files need the same change."""
    _, values = releases.read(arguments.name)
    account = book.Book(values.book)
    with account.locked():
        before = account.spent()
        account.raise_to(book.Budget.of(vars(arguments)), arguments.reason)
        after = account.spent()
    stated = ", ".join(f"{key}: {in_yaml(float(v))}" for key, v in after.budget._asdict().items())
    print(
        f"The budget of {values.book} was {book.said(before.budget)} and is {book.said(after.budget)}, "
        f"of which {book.said(after)} is spent. State it in the files of all its releases: "
        f"`budget: {{{stated}}}`"
    )


COMMANDS = {
    "make": (make, "make a release (what its rule calls)"),
    "book": (show, "what is spent"),
    "preview": (look, "PRIVATE: how the rows are read, and what it would cost; needed once"),
    "check": (check, "PRIVATE: whether rows or request differ from those of the finished release"),
    "forecast": (forecast, "expected accuracy and widths; opens no rows"),
    "raise": (change, "change the budget"),
}

if __name__ == "__main__":
    script.run(main, job=False)
