"""Ways in which a method gets its lambda: a stated number, a job's choice, a rule, or private selection.

`Experiment.regularisation` returns an instance. A job gets the instance's `text` as an argument,
which `parse` reads. `file` is an input of the job, or None.
"""

from typing import NamedTuple

from study.jobs.files import read_json

WORDS = {
    "published": "lambda_published",
    "tuned": "tune",
    "searched": "searches",
    "selected": None,
    "rule": None,
}


class Stated(NamedTuple):
    value: float
    file = None  # type: ignore[misc]

    @property
    def text(self):
        return str(self.value)

    def settings(self, rule=None):
        """(lambda, options chosen with it). rule: a function from these options to lambda."""
        return self.value, {}

    def facts(self):
        """The record of the choice, with its rows and premises."""
        return {}

    def origin(self):
        return "stated in the configuration"


class Chosen(NamedTuple):
    """The choice of a tuning or search, in a .json file."""

    file: str

    @property
    def text(self):
        return self.file

    def settings(self, rule=None):
        chosen = self.facts()
        options = chosen.get("options", {})
        return rule(options) if chosen["lambda"] is None else chosen["lambda"], options

    def facts(self):
        return read_json(self.file)

    def origin(self):
        chosen = self.facts()
        where = chosen.get("tuned_on", "the private rows themselves")
        public = ", taken as public" * bool(chosen.get("premises"))
        return f"validation on {where}" + (", not paid for" if chosen["private_rows"] else public)


class ByRule(NamedTuple):
    """A mechanism's rule, which computes lambda from public numbers alone."""

    file = None  # type: ignore[misc]
    text = "rule"  # type: ignore[misc]

    def settings(self, rule):
        return rule({}), {}

    def facts(self):
        return {}

    def origin(self):
        return "the mechanism's rule, from public numbers alone"


class Selected(NamedTuple):
    """Private selection, which chooses lambda and other settings anew in every release."""

    file = None  # type: ignore[misc]
    text = "selected"  # type: ignore[misc]

    def settings(self, rule=None):
        return None, {}

    def facts(self):
        return {}

    def origin(self):
        return "private selection among runs on the private rows, within epsilon"


def parse(text):
    for kind in (ByRule, Selected):
        if text == kind.text:
            return kind()
    return Chosen(text) if text.endswith(".json") else Stated(float(text))


def setting(lam):
    """How lambda was chosen, in one word.

    "fixed"; "rule"; "public": chosen on public rows; "selected": chosen on private rows, paid for by a part
    of epsilon; "void": chosen on private rows, not paid for.
    """
    if isinstance(lam, Stated):
        return "fixed"
    if not isinstance(lam, Chosen):
        return lam.text
    return "void" if lam.facts()["private_rows"] else "public"
