"""Controls a headless Chromium over a pipe, without a driver, port or package."""

import fcntl
import json
import os
import select
import subprocess
import time


class Chromium:
    """A browser with one page. `events` has all its events, in order."""

    def __init__(self, binary, profile, width=1200, height=900):
        from_us, to_browser = (_high(end) for end in os.pipe())
        from_browser, to_us = (_high(end) for end in os.pipe())
        self.process = subprocess.Popen(
            [
                *("bash", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "chromium", binary),
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
                *("--no-first-run", "--disable-extensions", "--disable-background-networking"),
                *("--remote-debugging-pipe", f"--user-data-dir={profile}"),
                f"--window-size={width},{height}",
            ],
            pass_fds=(from_us, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        self._in, self._out = from_browser, to_browser
        self._buffer, self._number, self._session = b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._out)
        os.close(self._in)
        self.process.terminate()
        self.process.wait(timeout=20)

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, seconds=60):
        deadline = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._in, 1 << 16) if ready else b""
            if not chunk:
                raise TimeoutError("the browser does not answer")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, url):
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def evaluate(self, expression):
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in done:
            raise RuntimeError(str(done["exceptionDetails"]))
        return done["result"].get("value")

    def named(self, method):
        return [event["params"] for event in self.events if event.get("method") == method]


def _high(descriptor):
    """Move a file descriptor above 19, because the browser uses 3 and 4."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 20)
    os.close(descriptor)
    return moved
