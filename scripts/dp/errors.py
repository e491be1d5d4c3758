"""Two kinds of ValueError: one for what the library refuses, and one for code that failed."""


class Refused(ValueError):
    """What is asked for cannot be done. The message is a sentence that tells the user why."""


class Failed(ValueError):
    """A mechanism's own code failed. The message names the mechanism, the file and the line."""
