"""A TCP relay in front of a scheduler that counts what goes through it, both ways."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """Connections to `address` go on to the target; `received` and `sent` are bytes to and from the client."""

    def __init__(self, target: str) -> None:
        host, port = target.removeprefix("tcp://").rsplit(":", 1)
        self.target, self.received, self.sent = (host, int(port)), 0, 0
        self.lock = threading.Lock()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.sockets = [self.server]
        self.address = f"tcp://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, far = self.server.accept()[0], socket.create_connection(self.target)
                self.sockets += [near, far]
                threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, to_client: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(2**16):
                with self.lock:
                    self.received += len(piece) * to_client
                    self.sent += len(piece) * (not to_client)
                sink.sendall(piece)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close every connection."""
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
