"""Two kinds of ValueError: what the library refuses in one sentence, and code that failed."""


class Refused(ValueError):
    """What is asked for cannot be done: the message is a sentence that says why, for the user."""


class Failed(ValueError):
    """A mechanism's own code went wrong: the message names the mechanism, the file and the line."""
