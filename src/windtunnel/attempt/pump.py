"""Carries what processes print from their pipes to their logs, in a thread of its own, until all have closed."""

import os
import selectors
import threading
import time

from windtunnel.attempt.logs import Sink

_CHUNK_BYTES = 1 << 16
_PAUSE_S = 0.05
"""Pause once pipes are drained, so that chatty ranks cost few writes."""
_LOOK_S = 0.5


class Pump:
    """Give it pipes with `add`, then `start` it; `finish` waits for the last words."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)

    def add(self, descriptor: int, sink: Sink) -> None:
        """Carry from the pipe `descriptor`, which is closed at its end, to `sink`."""
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, sink)

    def start(self) -> None:
        """Begin, once every process has been started: a thread and a fork do not go together."""
        self._thread.start()

    def finish(self, timeout_s: float) -> None:
        """Wait for the pipes' ends, `timeout_s` at most: a stray grandchild may hold one open for ever."""
        self._deadline = time.monotonic() + timeout_s
        if self._thread.ident is not None:
            self._thread.join(timeout_s + 2 * _LOOK_S)

    def _run(self) -> None:
        while self._selector.get_map() and time.monotonic() < self._deadline:
            ready = self._selector.select(_LOOK_S)
            drained = [self._carry(key.fd, key.data) for key, _ in ready]
            if all(drained) and self._deadline == float("inf"):
                time.sleep(_PAUSE_S)
        for key in list(self._selector.get_map().values()):
            self._end(key.fd, key.data)
        self._selector.close()

    def _carry(self, descriptor: int, sink: Sink) -> bool:
        """Move what is there; whether the pipe is drained for now."""
        try:
            data = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if data:
            sink.write(data)
            return len(data) < _CHUNK_BYTES
        self._end(descriptor, sink)
        return True

    def _end(self, descriptor: int, sink: Sink) -> None:
        self._selector.unregister(descriptor)
        os.close(descriptor)
        sink.close()
