"""Where a method's lambda comes from: it is stated, chosen by a job of the run, or found by a rule.

`Experiment.regularisation` makes one of these kinds from a cell, and `parse` makes it from the text that a
job is given. The workflow asks each kind for `text`, for a job's command line, and for `file`, which that
job must wait for (or None). Jobs ask for `settings`.
"""

from typing import NamedTuple

from study.jobs.files import read_json

# Words that a configuration may write in place of a number -> the section that decides what they mean.
WORDS = {
    "published": "lambda_published",
    "tuned": "tune",
    "searched": "searches",
    "selected": None,
    "rule": None,
}


class Stated(NamedTuple):
    """A number, the configuration's own or the source's."""

    value: float
    file = None

    @property
    def text(self):
        return str(self.value)

    def settings(self, rule=None):
        """(lambda, options that were chosen with it). rule: if a rule finds lambda, it is called with these
        options."""
        return self.value, {}

    def facts(self):
        """What the choice recorded beside lambda: what it looked at, and what it guarantees."""
        return {}

    def origin(self):
        """In words, where lambda comes from and what that spends."""
        return "stated in the configuration"


class Chosen(NamedTuple):
    """The .json that a tuning or a search writes."""

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
    """A mechanism's own function of n, d, epsilon, delta and the public bounds. It looks at no row."""

    file = None
    text = "rule"

    def settings(self, rule):
        return rule({}), {}

    def facts(self):
        return {}

    def origin(self):
        return "the mechanism's rule, from public numbers alone"


class Selected(NamedTuple):
    """Drawn, together with other settings, by the runs of a private selection, anew in every release."""

    file = None
    text = "selected"

    def settings(self, rule=None):
        return None, {}

    def facts(self):
        return {}

    def origin(self):
        return "private selection among runs on the private rows, within epsilon"


def parse(text):
    """The kind that has this `text`."""
    for kind in (ByRule, Selected):
        if text == kind.text:
            return kind()
    return Chosen(text) if text.endswith(".json") else Stated(float(text))


def setting(lam):
    """How it was chosen: `fixed`, on `public` rows, `selected` on private rows and paid for, or `void`:
    chosen on private rows and not paid for. Other kinds have their own word, such as `rule`."""
    if isinstance(lam, Stated):
        return "fixed"
    if not isinstance(lam, Chosen):
        return lam.text
    return "void" if lam.facts()["private_rows"] else "public"
