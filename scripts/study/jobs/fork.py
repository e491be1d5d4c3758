"""Run a machine's jobs as forks of servers that have already imported the modules of jobs.

A fork takes a few hundredths of a second. Starting Python and importing numpy takes 0.13 s of CPU time, or
1.2 s with seaborn. `study/jobs/ask.py` asks a server to run a job. Without a server, each job starts an
interpreter.
"""

import gc
import importlib
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from dp.mechanisms import MECHANISMS
from study.jobs import ask

# job -> modules that it imports only inside functions
LATER = dict.fromkeys(
    ask.TABLES_AND_FIGURES, ("matplotlib.pyplot", "pandas", "seaborn", "study.jobs.summary")
)
PATIENCE = 10  # seconds within which a request must arrive


def begin(folder):
    """Start and return the servers, whose sockets are in `folder`.

    A server ends when its standard input is closed, at the latest when this process ends. The first server
    to end removes `folder`.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    servers = []
    for name in ask.SOCKETS:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(Path(folder, name)))
            listener.listen(1000)  # jobs wait here until the imports are done
            servers.append(
                subprocess.Popen(
                    [sys.executable, __file__, folder, str(listener.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[listener.fileno()],
                    env=environment,
                )
            )
    return servers


def serve(listener):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C should end the jobs, not the server
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # jobs report their own status
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        with connection, suppress(OSError, EOFError, struct.error):
            connection.settimeout(PATIENCE)
            streams, folder, environment, (_, name, *words) = receive(connection)
            connection.settimeout(None)
            load(name)
            if os.fork() == 0:
                listener.close()
                become(connection, streams, folder, environment, name, words)
            for stream in streams:
                os.close(stream)


def receive(connection):
    """Read a request: (standard streams, folder, environment, [job.py, job, arguments ...])."""
    head, streams, *_ = socket.recv_fds(connection, 12, 3)
    size, words = struct.unpack("=QI", head)
    body = bytearray()
    while len(body) < size:
        body += connection.recv(size - len(body)) or _ended()
    folder, *texts = os.fsdecode(bytes(body)).split("\0")
    return streams, folder, dict(t.split("=", 1) for t in texts[words:]), texts[:words]


def _ended():
    raise EOFError


def load(name):
    """Import a job's module, so jobs share its imports. Errors are ignored, because jobs report them."""
    if f"jobs.{name}" in sys.modules:
        return
    for module in (f"jobs.{name}", "numpy.random", "scipy.optimize", *LATER.get(name, ())):
        with suppress(BaseException):
            importlib.import_module(module)
    for mechanism in MECHANISMS:
        with suppress(BaseException):
            MECHANISMS[mechanism]
    gc.freeze()  # so the garbage collector leaves these pages shared


def become(connection, streams, folder, environment, name, words):
    """Run the job in this process, send its exit status, and exit.

    The job is killed if the process that requested it ends.
    """
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        threading.Thread(target=_end_with, args=[connection], daemon=True).start()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        from study.jobs import script

        script.start(name, words)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        with suppress(OSError):
            connection.sendall(bytes([status & 255]))
        os._exit(status)


def _end_with(connection):
    with suppress(OSError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    folder, number = sys.argv[1:]
    try:
        serve(socket.socket(fileno=int(number)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
