"""Times draws of a release's noise, in milliseconds a vector: Gaussian, l2, box and hull.

    python tests/benchmarks/noise.py                    half a minute

Scales are those of a release, 2^40 lattice points. A hull has blocks of five levels, and at least one
number. The last column is the noise on a Hessian of d columns. The exit status is 1 if a vector of 50
coordinates takes more than 50 ms.
"""

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from dp_release import norm_draws
from dp_release.draws import Stream, gaussians

SCALE, DRAWS, LIMIT = 2**40 + 12345, 40, 0.05


def laws(d):
    blocks = [5] * ((d - 1) // 5)
    entries = d * (d + 1) // 2
    return {
        "gaussian": lambda stream: list(gaussians(SCALE, d, stream)),
        "l2": lambda stream: norm_draws.l2(SCALE, d, stream),
        "box": lambda stream: norm_draws.hull(SCALE, d, [], stream),
        "hull": lambda stream: norm_draws.hull(SCALE, d - sum(blocks), blocks, stream),
        "hessian": lambda stream: norm_draws.hull(SCALE, entries, [], stream),
    }


def main():
    print("d    " + "".join(f"{name:>12}" for name in laws(5)))
    slowest = 0.0
    for d in (5, 10, 20, 50):
        line = f"{d:<5}"
        for name, draw in laws(d).items():
            stream, start = Stream(bytes(32), name), time.process_time()
            for _ in range(DRAWS):
                draw(stream)
            seconds = (time.process_time() - start) / DRAWS
            line += f"{1000 * seconds:>12.2f}"
            if name != "hessian":
                slowest = max(slowest, seconds)
        print(line, flush=True)
    if slowest > LIMIT:
        sys.exit(f"over the limit of {1000 * LIMIT:g} ms")


if __name__ == "__main__":
    main()
