"""A TCP proxy on loopback that can fail in the ways in which networks and servers fail."""

from __future__ import annotations

import contextlib
import enum
import socket
import struct
import threading
import time

_CHUNK = 64 << 10


class Mode(enum.Enum):
    """What becomes of connections."""

    PASS = "pass"
    REFUSE = "refuse"
    """Nobody listens, and connections that are there are reset."""
    CUT = "cut in mid-request"
    """Half of the next request arrives, then the connection is reset."""
    DEAF = "cut before the answer"
    """The request arrives whole, then the connection is reset: whoever asked cannot know what was done."""
    SLOW = "slow"
    """Each piece takes its time."""
    HANG = "hang"
    """Connections are taken, and nothing is passed on until the mode changes."""


class Proxy:
    """Passes connections on to a port of this machine; a context manager, safe for threads."""

    def __init__(self, target, delay=0.2):
        self.target = target
        self.requests = 0
        """Pieces that clients have sent."""
        self.faults = 0
        """Connections that were reset."""
        self._delay = delay
        self._mode = Mode.PASS
        self._changed = threading.Condition()
        self._pairs = set()
        self._closed = False
        self._listener = self._listen(0)
        self.port = self._listener.getsockname()[1]

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def mode(self):
        return self._mode

    @mode.setter
    def mode(self, mode):
        with self._changed:
            before, self._mode = self._mode, mode
            if mode is Mode.REFUSE and before is not mode:
                _close(self._listener)
                for pair in list(self._pairs):
                    self._reset(*pair)
            elif before is Mode.REFUSE and mode is not before:
                self._listener = self._listen(self.port)
            self._changed.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self._changed:
            self._closed = True
            _close(self._listener)
            for pair in list(self._pairs):
                self._reset(*pair)
            self._changed.notify_all()

    def _listen(self, port):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener):
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
        except OSError:
            _reset(client)
            return
        server.settimeout(None)
        pair = client, server
        with self._changed:
            self._pairs.add(pair)
            gone = self._closed or self._mode is Mode.REFUSE
        if gone:
            self._reset(*pair)
            return
        threading.Thread(target=self._pump, args=(pair, server, client), daemon=True).start()
        self._pump(pair, client, server)

    def _pump(self, pair, source, sink):
        """Passes on what one side says; the mode counts at the moment at which it says it."""
        client, _ = pair
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                self.requests += source is client
                mode = self._wait_while_hanging()
                if source is client:
                    if mode is Mode.CUT:
                        sink.sendall(data[: len(data) // 2])
                        break
                elif mode is Mode.DEAF:
                    break
                if mode is Mode.SLOW:
                    time.sleep(self._delay)
                sink.sendall(data)
        self._reset(*pair)

    def _wait_while_hanging(self):
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._mode is not Mode.HANG)
            return self._mode

    def _reset(self, client, server):
        with self._changed:
            if (client, server) not in self._pairs:
                return
            self._pairs.remove((client, server))
            self.faults += 1
        _reset(client)
        _reset(server)


def _reset(connection):
    """Closes a connection in the way in which a crash does it."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    _close(connection)


def _close(connection):
    # Without a shutdown, threads that wait for it would go on waiting.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
