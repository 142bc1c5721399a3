"""Debian's Firefox, driven by its own protocol (Marionette); Playwright can only drive a Firefox of its own."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MAX_SECONDS = 60.0
_PORT_FILE = "MarionetteActivePort"
_PREFERENCES = {
    "marionette.port": 0,  # any free port; Firefox writes it to a file in the profile
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "datareporting.policy.dataSubmissionPolicyBypassNotification": True,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "app.normandy.enabled": False,
    "app.update.auto": False,
    "browser.aboutwelcome.enabled": False,
    "places.history.enabled": True,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "http://127.0.0.1:9/",  # no settings from the network
}


def program() -> str | None:
    """The path of Firefox, or None."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class RemoteError(Exception):
    """Firefox refused a command."""


class Firefox:
    """One tab of a running Firefox."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""
        self._last_id = 0
        self._receive()  # the greeting

    def run(self, command: str, **parameters: Any) -> Any:
        """Run a command of WebDriver, like `WebDriver:Navigate`."""
        self._last_id += 1
        message = json.dumps([0, self._last_id, command, parameters]).encode()
        self._connection.sendall(b"%d:%s" % (len(message), message))
        _kind, _id, error, result = self._receive()
        if error is not None:
            raise RemoteError(f"{error['error']}: {error['message']}")
        return result.get("value", result) if isinstance(result, dict) else result

    def open(self, url: str) -> None:
        """Open a URL as if it was typed, and wait until it is loaded."""
        self.run("WebDriver:Navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """The value of an expression on the page."""
        return self.run("WebDriver:ExecuteScript", script=f"return {script}", args=[])

    def click(self, selector: str) -> None:
        """Click on an element."""
        element = self.run("WebDriver:FindElement", using="css selector", value=selector)
        self.run("WebDriver:ElementClick", id=next(iter(element.values())))

    def text(self) -> str:
        """The visible text of the page."""
        return str(self.evaluate("document.body.innerText"))

    def url(self) -> str:
        """The URL of the page."""
        return str(self.run("WebDriver:GetCurrentURL"))

    def wait_for_text(self, text: str) -> None:
        """Wait until the page contains a text."""
        deadline = time.monotonic() + MAX_SECONDS
        content = ""
        while time.monotonic() < deadline:
            with suppress(RemoteError):  # the page is being replaced
                content = self.text()
                if text in content:
                    return
            time.sleep(0.1)
        raise AssertionError(f"the page does not contain {text!r}: {content[:300]}")

    def _receive(self) -> Any:
        while b":" not in self._buffer:
            self._fill()
        length, _, rest = self._buffer.partition(b":")
        self._buffer = rest
        while len(self._buffer) < int(length):
            self._fill()
        message, self._buffer = self._buffer[: int(length)], self._buffer[int(length) :]
        return json.loads(message)

    def _fill(self) -> None:
        chunk = self._connection.recv(65536)
        if not chunk:
            raise RemoteError("Firefox has closed the connection")
        self._buffer += chunk


@contextmanager
def launch(profile: Path) -> Iterator[Firefox]:
    """Run Firefox with a profile, which is created if it does not exist."""
    profile.mkdir(parents=True, exist_ok=True)
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _PREFERENCES.items()]
    (profile / "user.js").write_text("".join(lines))
    (profile / _PORT_FILE).unlink(missing_ok=True)
    command = [program() or "firefox", "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - our own words
    try:
        with socket.create_connection(("127.0.0.1", _read_port(profile)), timeout=MAX_SECONDS) as connection:
            firefox = Firefox(connection)
            firefox.run("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})
            yield firefox
            with suppress(RemoteError, OSError):
                firefox.run("Marionette:Quit", flags=["eForceQuit"])
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _read_port(profile: Path) -> int:
    deadline = time.monotonic() + MAX_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError, ValueError):
            return int((profile / _PORT_FILE).read_text())
        time.sleep(0.1)
    raise AssertionError("Firefox did not start")
