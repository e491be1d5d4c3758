"""Fill numbers into titles of tables, figures and analyses, so that titles show an overlay's changes.

`{train_size}` and `{epsilon}` stand for the training sizes and finite epsilons of the entry's cells.
`{data}` stands for its data sets' names, each up to the first comma. Any other field is an option of the
entry, or of the analysis that it shows.
"""

import re

from study import canonical
from study.configuration.experiment import Experiment
from study.configuration.faults import nearest

# TeX braces, as in $\hat{y}$ and $R^{2}$, follow a command, an index or an exponent.
FIELD = re.compile(r"(?<![\w\\^}])\{(\w+)\}")


def filled(experiment: Experiment, entry, datasets):
    """The entry's title with its fields filled in. Raises ValueError for an unknown field."""
    names = FIELD.findall(entry.title)
    if not names:
        return entry.title
    values = _values(experiment, entry) | {"data": _data(experiment, entry, datasets)}
    for name in names:
        if name not in values:
            valid = sorted(values)
            raise ValueError(f"has no {{{name}}} to fill in{nearest(name, valid)}")
    return FIELD.sub(lambda match: values[match[1]], entry.title)


def _values(experiment: Experiment, entry):
    analysis = experiment.analyses.get(entry.analysis)
    shown = (analysis.options if analysis else {}) | entry.options
    values = {}
    for name, value in shown.items():
        listed = value if isinstance(value, list) else [value]
        if listed and all(type(number) in (int, float) for number in listed):
            values[name] = _spelled(listed)
    if entry.sweep:
        cells = experiment.entry_cells(entry)
        values["train_size"] = _spelled({cell.train_size for cell in cells})
        epsilons = {cell.epsilon for cell in cells if experiment.methods[cell.method].private}
        values["epsilon"] = _spelled(epsilons)
    return values


def _data(experiment: Experiment, entry, datasets):
    if entry.sweep:
        names = [cell.dataset for cell in experiment.entry_cells(entry)]
    else:
        entry = experiment.analyses.get(entry.analysis, entry)
        names = entry.datasets or experiment.datasets
    titles = [datasets[name].title or name.replace("_", " ") for name in names]
    return " and ".join(dict.fromkeys(title.partition(",")[0] for title in titles))


def _spelled(numbers):
    """Write out one or two numbers, or the range of more: "14,000", "0.1 and 1", "100 to 4,000"."""
    distinct = sorted(set(numbers))
    texts = [f"{n:,}" if isinstance(n, int) else canonical.epsilon(n) for n in distinct]
    if len(texts) < 3:
        return " and ".join(texts) or "none"
    return f"{texts[0]} to {texts[-1]}"
