"""A cache on the disk of what follows from a key alone, such as from the digest of a text."""

import atexit
import contextlib
import json
import os
from functools import cached_property


class Kept:
    """Key -> value, for values of JSON, which later processes find again.

    path: the file, which is written at the end of the process, if the user may write there. most: maximum
    number of entries; the oldest are forgotten.
    """

    def __init__(self, path, most):
        self.path, self.most = path, most

    @cached_property
    def values(self):
        try:
            known = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        atexit.register(self._write, known, len(known))
        return known

    def _write(self, known, before):
        if len(known) == before:
            return
        draft = self.path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):  # this user may have no permission to write here
            self.path.parent.mkdir(exist_ok=True)
            draft.write_text(json.dumps(dict([*known.items()][-self.most :])), encoding="utf-8")
            draft.replace(self.path)
