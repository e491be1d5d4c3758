"""Measures the startup time of run jobs (interpreter, imports, arguments), which may be at most 0.35 s.

    python tests/benchmarks/job_start.py [repetitions]

It times a bare interpreter, the import of numpy, and `run.py --help` with each mechanism loaded. It prints
the median and minimum wall-clock time, and the minimum CPU time, which is less sensitive to other load. The
exit status is 1 if both minima of a mechanism exceed the limit.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
LIMIT = 0.35


def seconds(code, repetitions):
    """Sorted wall-clock and CPU seconds of fresh interpreters that run `code`."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    times = []
    for _ in range(repetitions + 1):
        start, before = time.perf_counter(), processor()
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=SCRIPTS,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        times.append((time.perf_counter() - start, processor() - before))
    # The first run only fills the caches.
    return [sorted(column) for column in zip(*times[1:], strict=True)]


def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def job(mechanism):
    return (
        "import sys; from jobs import run; from dp.mechanisms import MECHANISMS;"
        f"MECHANISMS[{mechanism!r}]; sys.argv = ['run', '--help'];"
        "run.main()"
    )


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    sys.path.insert(0, str(SCRIPTS))
    from dp.mechanisms import MECHANISMS

    cases = {"bare interpreter": "pass", "import numpy": "import numpy"}
    cases |= {name: job(name) for name in sorted(MECHANISMS)}
    print(f"{'':32} {'median':>8} {'least':>8} {'processor':>9}  seconds, of {repetitions}")
    slow = []
    for name, code in cases.items():
        clock, cpu = seconds(code, repetitions)
        print(f"{name:32} {statistics.median(clock):8.3f} {clock[0]:8.3f} {cpu[0]:9.3f}")
        if min(clock[0], cpu[0]) > LIMIT:
            slow.append(name)
    if slow:
        sys.exit(f"more than {LIMIT} s: {', '.join(slow)}")


if __name__ == "__main__":
    main()
