"""Where a method's lambda comes from: the configuration states it, a job chooses it, or a rule computes it.

`Experiment.regularisation` makes one of these kinds for a cell; `parse` makes one from a job's argument
(`text`). `file` is an input of the job, or None. Jobs call `settings`.
"""

from typing import NamedTuple

from study.jobs.files import read_json

# Words that may replace a number. The value is the section that defines them.
WORDS = {
    "published": "lambda_published",
    "tuned": "tune",
    "searched": "searches",
    "selected": None,
    "rule": None,
}


class Stated(NamedTuple):
    """A number that the configuration or the source states."""

    value: float
    file = None

    @property
    def text(self):
        return str(self.value)

    def settings(self, rule=None):
        """(lambda, options chosen with it). rule: a function from these options to lambda."""
        return self.value, {}

    def facts(self):
        """What the choice recorded besides lambda: the rows it used, and its premises."""
        return {}

    def origin(self):
        """Where lambda comes from and what privacy that costs, in words."""
        return "stated in the configuration"


class Chosen(NamedTuple):
    """A tuning or a search, which writes its choice to this .json."""

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
    """The mechanism computes lambda from n, d, epsilon, delta and the public bounds, not from rows."""

    file = None
    text = "rule"

    def settings(self, rule):
        return rule({}), {}

    def facts(self):
        return {}

    def origin(self):
        return "the mechanism's rule, from public numbers alone"


class Selected(NamedTuple):
    """Private selection, which draws lambda and other settings anew in every release."""

    file = None
    text = "selected"

    def settings(self, rule=None):
        return None, {}

    def facts(self):
        return {}

    def origin(self):
        return "private selection among runs on the private rows, within epsilon"


def parse(text):
    """The kind with this `text`."""
    for kind in (ByRule, Selected):
        if text == kind.text:
            return kind()
    return Chosen(text) if text.endswith(".json") else Stated(float(text))


def setting(lam):
    """How lambda was chosen, in one word.

    `fixed`; by `rule`; on `public` rows; on private rows and paid for (`selected`); on private rows, not
    paid for (`void`).
    """
    if isinstance(lam, Stated):
        return "fixed"
    if not isinstance(lam, Chosen):
        return lam.text
    return "void" if lam.facts()["private_rows"] else "public"
