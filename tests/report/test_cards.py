"""Cards of sources: how many printed values and claims hold, and how private their methods are."""

import math
from types import SimpleNamespace

import pandas as pd

from reporting import sources


def test_outcomes_count_every_row_once():
    verdicts = [
        *("reproduced", "reproduced", "reproduced if rows: file", "calibrated", "not run"),
        *("not reproduced by any of 3 readings", "not tested"),
    ]
    found = sources._outcomes([{"verdict": verdict} for verdict in verdicts])
    assert found == {
        **{"as stated": 2, "under a reading": 1, "under none tried": 1, "not decided": 3}
    }


def part(*cells):
    """What the report gathers about an experiment, from rows (method, claimed, proven)."""
    methods = {
        name: {"mechanism": name, "title": f"The {name}", "private": name != "plain"}
        for name, *_ in cells
    }
    frame = pd.DataFrame(cells, columns=["method", "epsilon_claimed", "epsilon_proven"])
    return SimpleNamespace(frame=frame, experiment=SimpleNamespace(methods=methods))


def test_privacy_says_the_worst_of_every_private_method():
    inf = math.inf
    first = part(("plain", inf, inf), ("sound", 1.0, 1.0), ("sound", 0.1, 0.05))
    second = part(("void", 1.0, inf), ("void", 2.0, 2.0), ("more", 1.0, 2.0), ("more", 0.1, 0.3))
    (text,) = sources.privacy([first, second])
    assert text == (
        "1 of 3 private methods as they ran here hold what they claim. More epsilon than claimed is "
        "needed by The more (claimed 0.1, proven 0.3 at worst). No finite epsilon, in some cell, have "
        "The void."
    )
    assert sources.privacy([part(("plain", inf, inf))]) == []
