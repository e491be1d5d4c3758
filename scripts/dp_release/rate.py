"""A noisy class rate, released first, and the offset of all scores that follows from it.

`dp.offset` has the idea: the ridge draws scores w.x + o towards o, not towards 0. `norm_noise` has the
notation and the other parts of a release.

THEOREM 5 (a class rate first). Labels y are -1 or 1, and 0 in rows of zeros. Let

    A = rnd_g((n + sum of y)/2) + g z,   P(z) proportional to exp(-|z|/S),   epsilon_0 = (1/g + 1)/S,

and o a function of A and of public numbers alone, |o| <= O. Let the rest be a release of theorem 2 or 3,
with any second releases, in which w.x + o takes the place of every score w.x, with lambda, the row map, all
noise scales and tau fixed before A is drawn. Then the cost of theorem 2 grows by epsilon_0, and in theorem
3 delta_t is at epsilon - epsilon_0 - D/(g S').

Proof. (i) Replacing a row changes (n + sum of y)/2 by at most 1, so its rounded value by at most 1/g + 1
lattice points, and every log ratio of A by at most epsilon_0, exactly. (ii) Given A = a, o is the same
constant on both data sets. A row's loss l(y (w.x + o)) has the gradient -u y x and the Hessian u (1 - u)
x x', u = 1/(1 + exp(y (w.x + o))) in (0, 1). The proofs of `dp.proofs.log_concave_tilt` use no more of a
row, so they hold with the same m and r. A Hessian's and scores' weights have the same bounds. `tilt` finds
a certified point on every data set for all |o| <= O, so tau and D are the same, too. (iii) The rest has
streams of its own, so given a, its noise does not depend on A's. Log ratios of A and of the rest given A
add up: pure costs do, and with p, q for the laws of A, the sum over a of p(a) (P_a(E) - e^epsilon q(a)/p(a)
Q_a(E)) is at most the largest hockey stick of P_a and Q_a at epsilon - epsilon_0. So A and the weights
together are pure where theorem 2's release is, and composition with Gaussian parts is as without A.

It follows that the offset cannot be computed from labels without noise, nor after the weights.
"""

from fractions import Fraction

import numpy as np

from dp.offset import Centre
from dp_release import norm_noise, rows

RATE = "rate"  # the part's name


def noise(epsilon: Fraction) -> norm_noise.Noise:
    """The noise of theorem 5 that costs at most epsilon."""
    return norm_noise.hiding(Fraction(1), norm_noise.Body(1), Fraction(1), epsilon)


def _centre(made, n):
    return Centre(n, float(made.unit), gaussian=False, numbers=False)


def largest(made: norm_noise.Noise, n: int) -> float:
    """O of theorem 5."""
    return _centre(made, n).unit


def total(y: np.ndarray) -> Fraction:
    """(n + sum of y)/2, exactly. y: labels -1, 0 and 1."""
    return Fraction(len(y) + int(np.sign(y).sum()), 2)


def offset(released: int, made: norm_noise.Noise, n: int) -> float:
    """The log odds of a released rate, in units of 2^-20: post-processing.

    released: A, in units of the noise's spacing. Holdouts need exact scores, so it is a multiple.
    """
    value = _centre(made, n).offsets(np.array([float(released * made.spacing) / n]))[0]
    most = largest(made, n)
    return round(min(max(float(value), -most), most) * rows.ONE) / rows.ONE
