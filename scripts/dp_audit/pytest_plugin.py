"""`@dp_claim(epsilon=1)` on a test's function: pytest fails with the sentence that refutes the claim.

    from dp_audit.pytest_plugin import dp_claim

    @dp_claim(epsilon=1.0)
    def test_total(X, y, rng):
        return total(X, y, rng)

The installed package registers this module as a plugin. `pytest -m dp_claim` runs these tests alone.
"""

import warnings
from collections.abc import Callable

import pytest

__all__ = ["dp_claim"]


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "dp_claim: looks for neighbours that refute a claim")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of claims, so that `-m dp_claim` selects them."""
    if hasattr(getattr(item, "obj", None), "dp_claim"):
        item.add_marker("dp_claim")


def dp_claim(
    epsilon: float,
    delta: float = 0.0,
    *,
    neighbours: str = "replace-one",
    bound: float = 1.0,
    labels: tuple[float, float] = (-1, 1),
    targets: tuple[float, float] | None = None,
    missing: bool = False,
    released: bool = False,
    pairs: int = 240,
    seconds: float = 60.0,
) -> Callable:
    """Make a test of a function (X, y, rng) or (rows, rng), or of a class with the method `fit`.

    Parameters
    ----------
    epsilon, delta : float
        The claim.
    neighbours : str
        "replace-one" or "add-remove".
    bound : float
        The claim is for rows of this norm at most.
    labels, targets : tuple[float, float]
        Both labels, or the least and the largest target, which then are numbers.
    missing : bool
        Whether cells of a record may be NaN.
    released : bool
        Whether the claim counts every noisy value as released.
    pairs, seconds : float
        Pairs to try, and about how long it may take.

    Returns
    -------
    Callable
        A decorator.

    Examples
    --------
    >>> @dp_claim(epsilon=1.0, pairs=20)
    ... def test_total(X, y, rng):
    ...     return X[:, 0].sum() + rng.laplace(0, 2.0)
    >>> test_total()
    """
    from dp_audit.check import check  # other tests need not wait for numpy
    from dp_audit.programs import Program
    from dp_audit.small_pairs import Domain
    from dp_privacy.errors import Refused

    values = tuple(targets or labels)
    domain = Domain(bound, values, targets is not None, neighbours, missing=missing)

    def decorate(function):
        def test():
            try:
                program = Program(function, epsilon, delta)
                answer = check(program, domain, released=released, count=pairs, seconds=seconds)
            except Refused as error:
                pytest.fail(str(error), pytrace=False)
            if answer.fault:
                pytest.fail(answer.sentence, pytrace=False)
            if answer.unseen:
                warnings.warn(answer.sentence, stacklevel=1)

        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(test, name, getattr(function, name))
        test.dp_claim = epsilon, delta
        return test

    return decorate
