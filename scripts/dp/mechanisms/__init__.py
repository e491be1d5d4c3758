"""The mechanisms, one file each. A source's own defective forms are in `published`.

    from dp.mechanisms import MECHANISMS, Mechanism, Release, register

`dp.mechanism` says how to write one, and `dp.registry` how a name leads to its file.
"""

from dp.mechanism import Mechanism, Release
from dp.registry import MECHANISMS, register

__all__ = ["MECHANISMS", "Mechanism", "Release", "register"]
