"""Where a method's lambda comes from: stated, chosen by a job of the run, or found by a rule.

`Experiment.regularisation` makes one of these kinds of a cell, and `parse` of the text that a job is
given. The workflow asks each the same: `text` for a job's command line, and `file`, what that job must
wait for, if anything; jobs ask for `settings`.
"""

from typing import NamedTuple

from study.jobs.files import read_json

# What a configuration may write in place of a number -> the section that decides what it stands for.
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
        """(lambda, options that were chosen with it). rule: called with these options for lambda where a
        rule finds it."""
        return self.value, {}

    def facts(self):
        """What the choice wrote down beside lambda: what it looked at and what it guarantees."""
        return {}

    def origin(self):
        """Where it comes from, and what that spends, in words."""
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
        if "guarantee" in chosen:
            return f"private tuning on {where}, epsilon {chosen['guarantee']['epsilon']:g}"
        public = ", taken as public" * bool(chosen.get("premises"))
        return f"validation on {where}" + (", not paid for" if chosen["private_rows"] else public)


class ByRule(NamedTuple):
    """The mechanism's own function of n, d, epsilon, delta and the public bounds: no row is looked at."""

    file = None
    text = "rule"

    def settings(self, rule):
        return rule({}), {}

    def facts(self):
        return {}

    def origin(self):
        return "the mechanism's rule, from public numbers alone"


class Selected(NamedTuple):
    """Drawn with other settings by the runs of a private selection, anew for every release."""

    file = None
    text = "selected"

    def settings(self, rule=None):
        return None, {}

    def facts(self):
        return {}

    def origin(self):
        return "private selection among runs on the private rows, within epsilon"


def parse(text):
    """The kind whose `text` this is."""
    for kind in (ByRule, Selected):
        if text == kind.text:
            return kind()
    return Chosen(text) if text.endswith(".json") else Stated(float(text))


def setting(lam):
    """How it was chosen: `fixed`, on `public` rows, `selected` on private ones and paid for, or `void`,
    chosen on them and not paid for; of the others the word that stands for them, such as `rule`."""
    if isinstance(lam, Stated):
        return "fixed"
    if not isinstance(lam, Chosen):
        return lam.text
    chosen = lam.facts()
    if "guarantee" in chosen:
        return "selected"
    return "void" if chosen["private_rows"] else "public"
