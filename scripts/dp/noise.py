"""Noise with the densities that the mechanisms' proofs need.

Every function scales *unit* draws. So one generator state gives proportional noise at every scale, and
curves over epsilon use common random numbers.
"""

from collections.abc import Callable, Sequence
from functools import wraps

import numpy as np

from dp_privacy.errors import Refused

__all__ = ["box", "discrete_laplace", "gaussian", "hull", "l2_laplace", "laplace"]


def law(function: Callable) -> Callable:
    """Let a generator with a method `law` (`dp_audit.recorder.Recorder`) supply the noise instead."""

    @wraps(function)
    def draw(dimension, scale, size, rng, **shape):
        if hasattr(rng, "law"):
            return rng.law(function, *_check(dimension, scale), size, **shape)
        return function(dimension, scale, size, rng, **shape)

    return draw


@law
def l2_laplace(dimension: int, scale: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Noise with density proportional to exp(-||z||_2 / scale).

    r = ||z|| is Gamma(d, scale), and the direction is uniform and independent [1]_. By the triangle
    inequality, a function with L2 sensitivity D is epsilon-DP with noise of scale D/epsilon.

    Parameters
    ----------
    dimension : int
        d, the number of released coordinates.
    scale : float
        In the units of z, at least 0; 0 gives no noise.
    size : int
        Independent vectors.
    rng : numpy.random.Generator
        Source of the unit draws.

    Returns
    -------
    numpy.ndarray, (size, dimension)

    References
    ----------
    .. [1] Chaudhuri, Monteleoni, Sarwate, JMLR 12, 2011, section 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> z = l2_laplace(3, 0.5, 10_000, np.random.default_rng(1))
    >>> print(round(np.linalg.norm(z, axis=1).mean(), 1))  # the mean of Gamma(3, 0.5) is 1.5
    1.5
    """
    dimension, scale = _check(dimension, scale)
    norm = rng.standard_gamma(dimension, size)
    direction = rng.standard_normal((size, dimension))
    direction *= (scale * norm / np.sqrt(np.einsum("ij,ij->i", direction, direction)))[:, None]
    return direction


def l2_laplace_reach(dimension: int) -> float:
    """A norm that `l2_laplace` of scale 1 exceeds with probability at most e^-60 = 9e-27.

    A Gamma(d, 1) variable exceeds d + sqrt(2 d t) + t with probability at most e^-t (Boucheron, Lugosi,
    Massart, Concentration Inequalities, 2013, section 2.4).
    """
    return dimension + np.sqrt(120 * dimension) + 60


@law
def laplace(dimension: int, scale: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent Laplace coordinates, each with density exp(-|z| / scale) / (2 scale).

    A function with **L1** sensitivity D is epsilon-DP with noise of scale D/epsilon [2]_. An L2 bound must
    be multiplied by sqrt(d).

    Parameters
    ----------
    dimension, scale, size, rng
        As for `l2_laplace`.

    Returns
    -------
    numpy.ndarray, (size, dimension)

    References
    ----------
    .. [2] Dwork, McSherry, Nissim, Smith, TCC 2006.

    Examples
    --------
    >>> import numpy as np
    >>> print(round(np.abs(laplace(2, 0.5, 10_000, np.random.default_rng(1))).mean(), 1))
    0.5
    """
    dimension, scale = _check(dimension, scale)
    return scale * rng.laplace(size=(size, dimension))


@law
def discrete_laplace(
    dimension: int, scale: float, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Independent whole numbers z, each with a probability proportional to exp(-|z| / scale).

    Whole numbers with L1 sensitivity D are epsilon-DP with noise of scale D/epsilon [3]_.

    Parameters
    ----------
    dimension, scale, size, rng
        As for `l2_laplace`.

    Returns
    -------
    numpy.ndarray, (size, dimension)

    References
    ----------
    .. [3] Ghosh, Roughgarden, Sundararajan, SIAM Journal on Computing 41, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> z = discrete_laplace(1, 2.0, 10_000, np.random.default_rng(1))
    >>> print(round((z == 0).mean(), 1))  # (1 - e^(-1/2))/(1 + e^(-1/2)) is 0.245
    0.2
    """
    dimension, scale = _check(dimension, scale)
    # floor(E scale) is geometric for an exponential E, and the difference of two has the law above.
    up, down = np.floor(scale * rng.standard_exponential((2, size, dimension)))
    return up - down


@law
def gaussian(dimension: int, sigma: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent normal coordinates.

    Parameters
    ----------
    dimension
        As for `l2_laplace`.
    sigma : float
        Standard deviation, at least 0, as from `dp_privacy.accounting.gaussian_sigma`.
    size, rng
        As for `l2_laplace`.

    Returns
    -------
    numpy.ndarray, (size, dimension)

    Examples
    --------
    >>> import numpy as np
    >>> print(round(gaussian(2, 0.5, 10_000, np.random.default_rng(1)).std(), 1))
    0.5
    """
    dimension, sigma = _check(dimension, sigma)
    return sigma * rng.standard_normal((size, dimension))


def gaussian_reach(dimension: int) -> float:
    """A norm that `gaussian` of sigma 1 exceeds with probability at most e^-60 = 9e-27.

    A normal vector's norm exceeds sqrt(d) + t with probability at most e^(-t^2/2) (Boucheron, Lugosi,
    Massart, Concentration Inequalities, 2013, theorem 5.6).
    """
    return np.sqrt(dimension) + np.sqrt(120)


@law
def box(dimension: int, scale: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Noise with density proportional to exp(-max_j |z_j| / scale).

    A function whose every coordinate moves by at most D is epsilon-DP with noise of scale D/epsilon. See
    `hull`, whose body is the cube here.

    Parameters
    ----------
    dimension, scale, size, rng
        As for `l2_laplace`.

    Returns
    -------
    numpy.ndarray, (size, dimension)

    Examples
    --------
    >>> import numpy as np
    >>> z = box(3, 0.5, 10_000, np.random.default_rng(1))
    >>> print(round(np.abs(z).max(axis=1).mean(), 1))  # the mean of Gamma(3, 0.5) is 1.5
    1.5
    """
    return _from_body(dimension, scale, size, rng, ())


@law
def hull(
    dimension: int,
    scale: float,
    size: int,
    rng: np.random.Generator,
    blocks: Sequence[Sequence[int]] = (),
) -> np.ndarray:
    """Noise with density proportional to exp(-N(z) / scale), N the norm of cube and cross-polytopes.

    N(z) is the largest of |z_j| over single coordinates j and of the L1 norms of blocks. The noise is rho U
    with rho ~ Gamma(d + 1, scale), and U uniform in the body N <= 1 [4]_. By the triangle inequality, a
    function that moves by at most D in this norm is epsilon-DP with noise of scale D/epsilon.

    Parameters
    ----------
    dimension, scale, size, rng
        As for `l2_laplace`.
    blocks : Sequence[Sequence[int]]
        Numbers of the coordinates of each block, without overlap.

    Returns
    -------
    numpy.ndarray, (size, dimension)

    References
    ----------
    .. [4] Hardt, Talwar, STOC 2010, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> z = hull(3, 0.5, 10_000, np.random.default_rng(1), blocks=[[0, 2]])
    >>> print(round(np.maximum(np.abs(z[:, 1]), np.abs(z[:, [0, 2]]).sum(axis=1)).mean(), 1))
    1.5
    """
    return _from_body(dimension, scale, size, rng, blocks)


def _from_body(dimension, scale, size, rng, blocks):
    dimension, scale = _check(dimension, scale)
    rho = rng.standard_gamma(dimension + 1, size)
    unit = rng.uniform(-1.0, 1.0, (size, dimension))
    for block in map(list, blocks):
        # Shares of c + 1 exponentials: c of them are uniform in the simplex, and signs make it the body.
        parts = rng.standard_exponential((size, len(block) + 1))
        share = parts[:, :-1] / parts.sum(axis=1, keepdims=True)
        unit[:, block] = np.copysign(share, unit[:, block])
    return (scale * rho)[:, None] * unit


def numbers(noise: np.ndarray) -> np.ndarray:
    """Noise as a plain array, for unreleased statistics; `dp_audit.replay` does not record its use."""
    return noise.alone() if hasattr(noise, "alone") else noise


def _check(dimension, scale):
    if not dimension >= 1 or dimension != int(dimension):
        raise Refused(f"noise needs a whole number of dimensions, at least 1, not {dimension}")
    if not (np.isfinite(scale) and scale >= 0):
        raise Refused(f"a noise scale must be a finite number >= 0, not {scale}")
    return int(dimension), float(scale)
