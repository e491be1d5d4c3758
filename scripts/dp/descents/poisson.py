"""Poisson batches, which contain every row independently with the same probability."""

import math
from collections.abc import Iterator

import numpy as np

INDICES = 1 << 15  # row numbers drawn at a time: 256 kB


def batches(
    n: int, draws: int, sampling: float, rng: np.random.Generator
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield `draws` batches, several per item, that contain each of n rows with probability `sampling`.

    Each item is (part, rows, edges), where `part` is a slice of the draws. The batch of the k-th draw in
    `part` is rows[edges[k] : edges[k + 1]], in ascending order.
    """
    at_once = int(min(draws, max(1, INDICES // max(1.0, sampling * n))))
    for start in range(0, draws, at_once):
        part = slice(start, min(draws, start + at_once))
        lines = part.stop - part.start
        chosen = successes(n * lines, sampling, rng)
        edges = np.searchsorted(chosen, n * np.arange(lines + 1))
        chosen -= np.repeat(n * np.arange(lines), np.diff(edges))
        yield part, chosen, edges


def successes(trials: int, probability: float, rng: np.random.Generator) -> np.ndarray:
    """Indices of the successes among independent trials, ascending.

    The work is proportional to the number of successes, because the gaps between them are drawn. The
    distribution is exact:

    - The gap G is geometric, P(G > k) = (1 - p)^k, and gaps are independent, because trials are.
    - An exponential number E has P(floor(E / r) >= k) = exp(-r k). With r = -log(1 - p), this is (1 - p)^k,
      so 1 + floor(E / r) is distributed as a gap.
    - A gap beyond the last trial means that all remaining trials fail.

    """
    if probability >= 1:
        return np.arange(trials)
    if probability <= 0 or not trials:
        return np.empty(0, dtype=np.int64)
    rate, parts, last = -math.log1p(-probability), [], -1
    while last < trials - 1:
        expected = (trials - 1 - last) * probability
        gaps = rng.standard_exponential(int(expected + 5 * math.sqrt(expected)) + 8)
        with np.errstate(over="ignore"):
            gaps /= rate
        np.minimum(gaps, trials, out=gaps)  # so that sums fit in 64 bits
        gaps = gaps.astype(np.int64)
        gaps += 1
        gaps[0] += last
        parts.append(np.cumsum(gaps, out=gaps))
        last = int(gaps[-1])
    numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return numbers[: np.searchsorted(numbers, trials)]
