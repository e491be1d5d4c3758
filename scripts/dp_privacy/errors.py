"""Errors for refused requests and for failed code."""

from collections.abc import Iterable
from difflib import get_close_matches


class Refused(ValueError):
    """The request cannot be met. The message tells the user why."""


class Failed(ValueError):
    """A mechanism's own code failed. The message names the mechanism, the file and the line."""


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """The end of an error message that suggests the nearest valid name, or "" if none is similar."""
    near = get_close_matches(str(name), [str(each) for each in valid], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
