"""A check of a defect of Veldhuizen (2020): how far one record moves the L1 minimiser."""

from checks.statements import Outcome
from study.configuration.inputs import NOTHING
from study.configuration.kinds import check
from study.configuration.options import Options


class L1Jump(Options):
    n: int = 1000
    lam: float = 0.1


@check(NOTHING, L1Jump)
def l1_jump(results, *, n, lam):
    """The L1-regularised minimiser moves by more than 2/(n lam) when one record is replaced.

    The example has n - 1 records at (1, 1)/sqrt(2) with label 1, for which the two weights are
    interchangeable. The last record, which decides which weight is used, moves from (1, 0) to (0, 1).
    """
    import numpy as np

    from dp.solvers.fits import l1

    y = np.ones(n)
    minimisers = []
    for record in ((1.0, 0.0), (0.0, 1.0)):
        X = np.full((n, 2), np.sqrt(0.5))
        X[-1] = record
        weights, info = l1(X, y, lam)
        if info["status"][0] != "ok":
            return Outcome(None, f"the L1 fit did not converge: {info['status'][0]}")
        minimisers.append(weights[0])
    moved = float(np.linalg.norm(minimisers[0] - minimisers[1]))
    claimed = 2 / (n * lam)
    places = " to ".join(f"({w[0]:.4g}, {w[1]:.4g})" for w in minimisers)
    text = (
        f"one record of {n} replaced moves the L1 minimiser from {places}, by {moved:.4g}, "
        f"{moved / claimed:.4g} times the claimed {claimed:g}"
    )
    return Outcome(moved > claimed, text, moved, claimed)
