import hmac

import numpy as np
import pytest

from dp_audit import audit
from dp_release import models, rows

N, DELTA = 4, 1e-5
KEY = b"of tests alone"


def weights(plan, label, count):
    """Released weights (count,) for data whose only nonzero row has this label."""
    V, y = np.zeros((N, 1), np.int32), np.zeros(N, np.int32)
    V[0, 0], y[0] = rows.ONE, label
    keys = (hmac.digest(KEY, f"{label} {k}".encode(), "sha256") for k in range(count))
    return np.array([models.release(plan, V, y, key).floats("weights")[0] for key in keys])


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "claimed", "count"), [(1.0, 1.0, 2500), (30.0, 1.0, 300)])
def test_an_attack_finds_no_more_than_epsilon(epsilon, claimed, count):
    """The neighbours differ in one label. The second case claims 1 for a plan with epsilon 30."""
    plan = models.objective_perturbation(N, 1, epsilon, DELTA)
    scores = [{"weight": weights(plan, label, count)} for label in (1, -1)]
    actual = audit._bounds(scores, count // 2, [(DELTA, 0.95)])[0]["epsilon"]
    assert (actual <= claimed) == (epsilon == claimed)
