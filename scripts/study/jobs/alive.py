"""Find active runs in this folder, on any machine that shares it, by their heartbeat files."""

import os
import socket
import threading
import time
from pathlib import Path

SIGNS = Path(".snakemake/alive")
BEAT = 10  # seconds between heartbeats

_ended = threading.Event()


def begin():
    """Renew this run's heartbeat file until `end`, or until the process ends."""
    threading.Thread(target=_renew, daemon=True).start()


def _renew():
    while not _ended.is_set():
        try:
            SIGNS.mkdir(parents=True, exist_ok=True)
            _sign().write_text(str(time.time_ns()))
        except OSError:
            pass  # the disk is full, which the run reports
        _ended.wait(BEAT)


def end():
    _ended.set()
    _sign().unlink(missing_ok=True)


def _sign():
    return SIGNS / f"{socket.gethostname()}-{os.getpid()}"


def here(folder):
    """Ids of this machine's other Snakemake runs in a folder, except those of a single job.

    A program that waits for Snakemake, such as `timeout`, has Snakemake among its words, too. So each run
    counts once, and what started this process does not count.
    """
    processes = {}  # id -> that of the process that started it
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() != Path(folder):
                continue
            argv = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # the process has ended, or belongs to another user
            continue
        if "snakemake" in {Path(word).name for word in argv[:4]} and "--mode" not in argv:
            processes[int(process.name)] = _parent(process.name)
    own = os.getpid()
    while own:
        processes.pop(own, None)
        own = _parent(own)
    return sorted(number for number, parent in processes.items() if parent not in processes)


def _parent(process):
    """The id of the process that started a process; 0 if there is none, or no /proc."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(status.partition("\nPPid:")[2].split(maxsplit=1)[0])


def elsewhere(say=lambda text: None):
    """Names of other machines' heartbeat files that change while this function waits.

    It compares contents, not times, because clocks differ and file systems report times late.
    """
    own = f"{socket.gethostname()}-" if Path("/proc/self").exists() else "\0"
    signs = [sign for sign in SIGNS.glob("*") if not sign.name.startswith(own)]
    before = {sign: _read(sign) for sign in signs}
    if not before:
        return []
    say(f"looking for {3 * BEAT} s whether {', '.join(s.name for s in signs)} is alive ...")
    end = time.monotonic() + 3 * BEAT
    while time.monotonic() < end:
        renewed = [sign.name for sign in signs if _read(sign) not in (None, before[sign])]
        if renewed:
            return renewed
        time.sleep(1)
    return []


def forget():
    for sign in SIGNS.glob("*"):
        sign.unlink(missing_ok=True)


def _read(sign):
    try:
        return sign.read_text()
    except OSError:
        return None
