"""The three findings of the first screens, in numbers: what to use, what holds, and what leaks.

Pictures (`plots.headlines`), README, page and guides take every headline number from here: the documents
those of workflow/report/headlines.json, which scripts/tools/headlines.py copies from a run.
"""

import inspect
import math
import re
import textwrap
from pathlib import Path

from dp.mechanisms import MECHANISMS
from dp_privacy.accounting import REPLACE_ONE
from plots import headlines as pictures
from reporting import answers, ledger, packing, readings, record
from reporting.recommendations import NO_GAIN, UNTUNED
from study import facts, paths
from study.configuration.experiment import data_name
from study.jobs.files import read_csv, read_json

OPEN = "open"
DOCUMENTS = ("README.md", "workflow/guides/*.md")
MARKED = re.compile(r"(<!-- headline: (\w+) -->)\n.*?\n(<!-- end -->)", re.DOTALL)


def keeps(rows):
    """[{dataset, size, epsilon, kept, method}]: the best method that competes, of every question.

    kept is a share of what the model without privacy gains; 0 if the best constant is no worse.
    rows: of recommendations.csv.
    """
    best = {}
    for row in rows:
        if (
            (row["regime"], row["adjacency"]) != (UNTUNED, REPLACE_ONE)
            or row["why"]
            or not row["kept"]
        ):
            continue
        at = row["dataset"], int(row["train_size"]), float(row["epsilon"])
        kept = 0.0 if row["standing"] == NO_GAIN else float(row["kept"])
        if at not in best or kept > best[at]["kept"]:
            names = dict(zip(("dataset", "size", "epsilon"), at, strict=True))
            best[at] = names | {"kept": kept, "method": row["title"]}
    return list(best.values())


def rows_needed(cells, dataset, epsilon, share=0.95):
    """The smallest number of rows tried from which on the best method keeps a share; None if none does."""
    own = sorted(
        (row["size"], row["kept"])
        for row in cells
        if (row["dataset"], row["epsilon"]) == (dataset, epsilon)
    )
    enough = None
    for size, kept in reversed(own):
        if kept < share:
            break
        enough = size
    return enough


def holds(sources):
    """[(authors and year, {outcome: (in this run, in recorded runs)}, {the same of other numbers})].

    A result is a claim or a printed mean; settings, standard deviations and trivia are other numbers. What
    this run leaves open counts as recorded, if a record decides it.
    """
    shown = []
    for key in sources:
        path = Path(paths.BY_SOURCE(source=key))
        own = read_csv(path) if path.exists() else []
        counts = ({}, {})
        rows = record.once(record.instead(key, own)[0])
        for row in (row for row in rows if row["section"] != "defects"):
            name = outcome(row)
            counted = counts[readings.kind_of(row) not in readings.RESULTS].setdefault(name, [0, 0])
            counted[name != OPEN and row["date"] != ""] += 1
        if own:
            shown.append((_authors(facts.read(key)), *counts))
    return shown


def _authors(source):
    """Authors and year of each document of a source."""
    if not source.cited:
        return source.short
    return ", ".join(document.partition(",")[0] for document in source.cited.split("; "))


def outcome(row):
    name = record.outcome(row)
    return name if name in pictures.OUTCOMES else OPEN


def leaks():
    """(forms less private than claimed, number of forms with a claim, number of programs among these)."""
    path = Path(paths.LEDGER())
    groups = {}
    for attack in read_csv(path) if path.exists() else ():
        groups.setdefault(attack["mechanism"], []).append(attack)
    cells, forms, claimed, programs = ledger.proven_cells(), [], 0, 0
    for name, group in groups.items():
        entry = ledger.entry(group, cells.get(name, []))
        claim = entry["marks"].get("claimed", 0)
        if not 0 < claim < math.inf:
            continue
        released = name.endswith(ledger.RELEASED)
        claimed, programs = claimed + 1, programs + released
        if not entry["verdict"].startswith(ledger.WORSE):
            continue
        attacked = entry["marks"].get("attacked", 0) / claim
        proven = entry["marks"].get("proven", attacked * claim) / claim
        forms.append(
            {
                "name": entry["name"],
                "released": released,
                "proven": proven,
                "attacked": attacked or None,
            }
        )
    return forms, claimed, programs


def use():
    """[{task, method, mechanism, text}]: the page's first sentences, one for each task."""
    content = answers.answers() or {"leads": ()}
    return [
        {key: lead[key].replace("\u00a0", " ") for key in ("task", "method", "mechanism", "text")}
        for lead in content["leads"]
    ]


def numbers(cells, sources, leaking, shown):
    """Every number of the sentences, as plain data. leaking: of `leaks`."""
    forms, claimed, programs = leaking
    return {
        "use": use(),
        "keeps": [row for row in cells if row["dataset"] in shown],
        "rows_needed": [
            {"dataset": name, "title": data_name(name), "epsilon": epsilon}
            | {"rows": rows_needed(cells, name, epsilon)}
            for name in shown
            for epsilon in sorted({row["epsilon"] for row in cells if row["dataset"] == name})
        ],
        "holds": [
            {"source": name, "results": _plain(results), "others": _plain(others)}
            for name, results, others in sources
        ],
        "leaks": {
            "forms": claimed,
            "less_private": len(forms),
            "released": sum(form["released"] for form in forms),
            "programs": programs,
        },
    }


def _plain(counts):
    return {name: {"run": own, "recorded": recorded} for name, (own, recorded) in counts.items()}


def sentences(numbers):
    """{keeps, holds, leaks}: one sentence under each picture; `use`: which method to use."""
    return {
        "use": _use_said(numbers["use"]),
        "keeps": _keeps_said(numbers),
        "holds": _holds_said(numbers["holds"]),
        "leaks": _leaks_said(numbers["leaks"]),
    }


def _use_said(leads):
    """A method for each task; where a mechanism comes first, what it is."""
    said, known = [], set()
    for one in leads:
        name = one["mechanism"]
        said.append(f"{one['task']}, use {one['method']} (`{name}`).")
        if name in MECHANISMS and name not in known:
            what = inspect.getdoc(type(MECHANISMS[name])).partition("\n")[0]
            said.append(f"This is {what[0].lower()}{what[1:]}")
        said.append(one["text"])
        known.add(name)
    return " ".join(said)


def _keeps_said(numbers):
    first = numbers["rows_needed"][0]["dataset"] if numbers["rows_needed"] else None
    own = [row for row in numbers["rows_needed"] if row["dataset"] == first]
    if not own:
        return "No experiment of this run compares methods on the data sets of this picture."
    enough = [
        f"{row['rows']:,} rows on at epsilon {row['epsilon']:g}" for row in own if row["rows"]
    ]
    never = [f"{row['epsilon']:g}" for row in own if not row["rows"]]
    said = "What to use: percent of what can be learnt without privacy that the best method keeps. "
    said += f"On {own[0]['title']}, it"
    said += f" keeps 95 % (bordered) from {_listed(enough)}" if enough else ""
    said += ";" * bool(enough and never)
    said += f" no number of rows tried suffices at epsilon {_listed(never)}" if never else ""
    return f"{said}."


def _holds_said(sources):
    total = {}
    for source in sources:
        for name, count in source["results"].items():
            total[name] = total.get(name, 0) + sum(count.values())
    said = _listed([f"{total[name]:,} {words}" for name, words in HELD.items() if total.get(name)])
    results = f"{sum(total.values()):,} results of {len(sources)} sources"
    return f"What holds: of {results}, {said or 'none is judged'}."


HELD = {
    "as stated": "hold as stated",
    "under a reading": "under one reading of the source",
    "not reproduced": "do not hold",
    OPEN: "are open, mostly for lack of data or of simulations",
}


def _leaks_said(leaks):
    return (
        f"What leaks: {leaks['less_private']} of {leaks['forms']} audited forms of methods are less "
        f"private than claimed. Among them are {leaks['released']} of {leaks['programs']} audited programs "
        "that authors released."
    )


def _listed(words):
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


PICTURES = {
    "keeps": "Percent of the gain that the best method keeps, by rows and epsilon",
    "holds": "Verdicts on the results of each source",
    "leaks": "Real over claimed epsilon, for each form that is less private than claimed",
}


def documents():
    return [path for pattern in DOCUMENTS for path in sorted(paths.HOME.glob(pattern))]


def in_document(text, said):
    """A document with the sentences between its marks replaced. said: of `sentences`."""

    def block(match):
        sentence = textwrap.fill(said[match[2]], 120, break_on_hyphens=False)
        return f"{match[1]}\n{sentence}\n{match[3]}"

    return MARKED.sub(block, text)


def section():
    """The page's first part: {id, data, alt, sentence} of each picture; empty before they are drawn."""
    file = Path(paths.HEADLINES())
    if not file.exists():
        return []
    said = sentences(read_json(file))
    drawn = {name: Path(paths.HEADLINE(picture=name)) for name in PICTURES}
    return [
        {
            "id": f"headline-{name}",
            "data": packing.picture(path),
            "alt": PICTURES[name],
            "sentence": said[name],
        }
        for name, path in drawn.items()
        if path.exists()
    ]
