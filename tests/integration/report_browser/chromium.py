"""A real Chromium, driven over its debugging pipe: open a file, run a script in it, hear its errors and requests."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


@dataclass
class Chromium:
    """One browser with one page; `events` are what the page has reported so far."""

    window: tuple[int, int] = (1280, 900)
    events: list[dict[str, Any]] = field(default_factory=list)

    def __enter__(self) -> "Chromium":
        self.profile = tempfile.mkdtemp(prefix="windtunnel-chromium-")
        commands, self.write_end = os.pipe()
        self.read_end, answers = os.pipe()
        # Chromium reads commands on descriptor 3 and answers on 4. The shell moves them there, and keeps out of
        # this process, which may be running other threads.
        script = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        argv = [shutil.which("chromium") or "chromium", *FLAGS, f"--user-data-dir={self.profile}"]
        argv += [f"--window-size={self.window[0]},{self.window[1]}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", script, *argv], pass_fds=(commands, answers), stdout=-3, stderr=-3, start_new_session=True
        )
        os.close(commands)
        os.close(answers)
        self.buffer, self.last_id, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(20)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, 9)
                self.process.wait()
            os.close(self.write_end)
            os.close(self.read_end)
            shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol, and its result."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read_message()
            if answer.get("id") == self.last_id:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, path: Path) -> None:
        """Load a file and wait until it has loaded."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str, *, within_s: float = 30) -> None:
        """Until an expression is true."""
        deadline = time.monotonic() + within_s
        while not self.evaluate(script):
            assert time.monotonic() < deadline, f"{script} was not true within {within_s} s"
            time.sleep(0.05)

    def errors(self) -> list[str]:
        """Exceptions, console errors and log entries of the page, such as a refused load."""
        kinds = {"Runtime.exceptionThrown", "Log.entryAdded"}
        found = [event for event in self.events if event.get("method") in kinds]
        found += [
            event
            for event in self.events
            if event.get("method") == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning")
        ]
        return [json.dumps(event["params"])[:400] for event in found]

    def requests(self) -> list[str]:
        """Addresses that the page asked for, its own among them."""
        found = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in found]

    def _read_message(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            block = os.read(self.read_end, 1 << 16)
            assert block, "chromium ended"
            self.buffer += block
        message, _, self.buffer = self.buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded
