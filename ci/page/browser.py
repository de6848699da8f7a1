"""A headless Chromium, driven over a pipe by its own protocol: nothing else is needed to look at a page."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--no-first-run",
    "--hide-scrollbars",
)


_CONNECT = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(one), fcntl.F_DUPFD, 50) for one in sys.argv[1:3])
os.dup2(read, 3), os.dup2(write, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""A browser reads its commands from descriptor 3, and answers on 4."""


class BrowserError(RuntimeError):
    """What the browser says is wrong with a command."""


def find_browser() -> str | None:
    """The browser's program; ``None`` if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page in the browser."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._unread = write, read, bytearray()
        self._number, self._session = 0, ""
        self.said: list[str] = []  # on its console, policy violations among it, and errors that nobody caught
        self._loaded = False
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self.send(f"{part}.enable")
        self.send("Page.bringToFront")

    def send(self, method: str, **given: Any) -> dict[str, Any]:
        """Give a command, and wait for its answer.

        Raises:
            BrowserError: If it says that something is wrong.
        """
        self._number += 1
        message = {"id": self._number, "method": method, "params": given} | (
            {"sessionId": self._session} if self._session else {}
        )
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            part = os.read(self._read, 1 << 20)
            if not part:
                raise BrowserError("the browser has ended")
            self._unread += part
        text, _, rest = self._unread.partition(b"\0")
        self._unread = rest
        message: dict[str, Any] = json.loads(text)
        given = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled":
                self.said.append(" ".join(str(one.get("value", one.get("description"))) for one in given["args"]))
            case "Runtime.exceptionThrown":
                self.said.append(str(given["exceptionDetails"].get("exception", {}).get("description")))
            case "Log.entryAdded":
                self.said.append(given["entry"]["text"])
            case "Page.loadEventFired":
                self._loaded = True
        return message

    def size(self, width: int, height: int, *, dark: bool) -> None:
        """Choose the window, and which theme the system has."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send(
            "Emulation.setEmulatedMedia", features=[scheme, {"name": "prefers-reduced-motion", "value": "reduce"}]
        )

    def scripts(self, *, blocked: bool) -> None:
        """Whether the page's own scripts run."""
        self.send("Emulation.setScriptExecutionDisabled", value=blocked)

    def open(self, file: Path, fragment: str = "") -> None:
        """Load a page from a file, to its end."""
        self.said, self._loaded = [], False
        self.send("Page.navigate", url=file.resolve().as_uri() + fragment)
        while not self._loaded:
            self._next()

    def ask(self, expression: str) -> Any:
        """What JavaScript gives, once a promise is kept.

        Raises:
            BrowserError: If it throws.
        """
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """What is seen of it, as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browser(program: str, patience_s: float = 1800.0) -> Iterator[Page]:
    """Start a browser with one page, in a folder of its own; end it, after a while in any case."""
    from_us, to_them = os.pipe()
    from_them, to_us = os.pipe()

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        arguments = [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-c", _CONNECT, str(from_us), str(to_us), *arguments],
            pass_fds=(from_us, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        watch = Timer(patience_s, process.kill)
        watch.start()
        try:
            yield Page(to_them, from_them)
        finally:
            watch.cancel()
            process.kill()
            process.wait()
            os.close(to_them)
            os.close(from_them)
