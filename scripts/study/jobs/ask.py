"""Ask a server of `study.jobs.fork` to run a job, and exit with the job's status.

    python -IS ask.py <folder of its socket> scripts/job.py <job> [arguments ...]

This script imports as little as possible, because every job starts it.
"""

import _signal
import _socket
import os
import sys

# Jobs that import pandas or matplotlib have their own server, because servers with more memory fork more
# slowly.
TABLES_AND_FIGURES = (
    *("aggregate", "check", "figure", "ledger_figure", "readings", "recommend", "report"),
    "table",
)
SOCKETS = ("jobs", "figures")
KILLED = 137  # the exit status that a shell reports for a killed process


def main():
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # an interrupted job ends without a traceback
    folder, *words = sys.argv[1:]
    path = f"{folder}/{SOCKETS[words[1] in TABLES_AND_FIGURES]}"
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:  # the server has ended, so start an interpreter
        os.execvp("python", ["python", *words])
    environment = (f"{key}={value}" for key, value in os.environ.items())
    body = os.fsencode("\0".join([os.getcwd(), *words, *environment]))  # noqa: PTH109 (no pathlib)
    head = len(body).to_bytes(8, sys.byteorder) + len(words).to_bytes(4, sys.byteorder)
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    connection.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    sent = 0
    while sent < len(body):
        sent += connection.send(body[sent:])
    status = connection.recv(1)
    os._exit(status[0] if status else KILLED)


if __name__ == "__main__":
    main()
