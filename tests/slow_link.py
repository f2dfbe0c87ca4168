"""A link with a delay and a bandwidth: a TCP proxy in a process of its own, which counts what goes through.

Each direction has half of the round trip as its delay, and the whole bandwidth to itself. Bytes leave in the order in
which they came, no sooner than the delay after they came, and no faster than the bandwidth.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

PIECE = 16 * 1024
FILLED = 256
"""Pieces under way in one direction, at most: what a socket's buffers would hold."""


class Traffic(NamedTuple):
    """Bytes from the client and to it, and turns: how often it spoke after it had heard something new."""

    sent: int
    received: int
    turns: int


class Turns:
    """Counts how often the first direction speaks after the second."""

    def __init__(self) -> None:
        self.count, self.last = 0, "down"

    def speak(self, name: str) -> None:
        """A direction carries something."""
        self.count += name == "up" and self.last == "down"
        self.last = name


class Direction:
    """One way of the link, shared by all connections."""

    def __init__(self, name: str, turns: Turns, delay: float, bytes_per_second: float) -> None:
        self.name, self.turns = name, turns
        self.delay, self.rate, self.bytes, self.free = delay, bytes_per_second, 0, 0.0

    def arrival(self, size: int) -> float:
        """When a piece that comes now is there."""
        self.bytes += size
        self.turns.speak(self.name)
        self.free = max(self.free, time.monotonic()) + size / self.rate
        return self.free + self.delay

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes from one side to the other, until the first closes."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(FILLED)

        async def deliver() -> None:
            while True:
                when, data = await under_way.get()
                await asyncio.sleep(max(0.0, when - time.monotonic()))
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        task = asyncio.create_task(deliver())
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(PIECE):
                await under_way.put((self.arrival(len(data)), data))
        await under_way.put((0.0, b""))
        with contextlib.suppress(ConnectionError):
            await task


async def serve(port: int, target: int, round_trip: float, bits: float) -> None:
    """The link from a port of this machine to another one; a line on stdin is answered with the traffic so far."""
    turns = Turns()
    up, down = (Direction(name, turns, round_trip / 2, bits / 8) for name in ("up", "down"))

    async def link(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(up.carry(reader, there[1]), down.carry(there[0], writer))

    server = await asyncio.start_server(link, "127.0.0.1", port)
    print(json.dumps(server.sockets[0].getsockname()[1]), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(Traffic(up.bytes, down.bytes, turns.count)), flush=True)


class SlowLink:
    """A link that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.port = int(json.loads(process.stdout.readline()))

    def traffic(self) -> Traffic:
        """What has gone through so far."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return Traffic(*json.loads(self.process.stdout.readline()))


@contextlib.contextmanager
def slow_link(target: int, round_trip: float, bits: float) -> Iterator[SlowLink]:
    """A link to a port of this machine: seconds of a round trip, and bits per second each way."""
    words = [sys.executable, __file__, "0", str(target), str(round_trip), str(bits)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield SlowLink(process)
    finally:
        process.kill()
        process.wait(10)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))
