# SPDX-License-Identifier: Apache-2.0
"""The load generator: a process of its own that reports for devices of the fleet, over loopback.

    python -m tests.bench.console.load SPEC   (JSON: port, mode, seconds, warmup, connections, devices, first)

Bodies are encoded before it begins. Each connection has devices of its own and sends one report at a time, the next when
the last one was answered, as agents do. It prints what was accepted between warm-up and end, as JSON.
"""

import asyncio
import hashlib
import json
import sys
import time
from collections import Counter

import uvloop

from tests.bench.console import fleet

LOOPBACK = "127.0.0.1"


def head(nth, length, port):
    return (
        f"POST /api/v1/fleet/report HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nAuthorization: Bearer {fleet.token_of(nth)}\r\n"
        f"Content-Type: application/json\r\nUser-Agent: halod/0.1.0\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


class Unchanged:
    """The same report again and again."""

    def __init__(self, nth, spec):
        body = fleet.unchanged(nth, spec["devices"])
        self._request = head(nth, len(body), spec["port"]) + body

    def next(self, _number):
        return self._request


class Changed:
    """Every report has another definition in one of its findings, and the transition that says so."""

    def __init__(self, nth, spec):
        one, two, three, four = fleet.changed(nth, spec["devices"])
        self._nth, self._first = nth, spec.get("first", 0)
        tid = len(self._tid(0))
        length = len(one) + len(two) + len(three) + len(four) + 2 * 64 + tid
        self._pieces = head(nth, length, spec["port"]) + one, two, three, four

    def _tid(self, number):
        return f"bench-{self._first + number:012}".encode()

    def next(self, number):
        one, two, three, four = self._pieces
        sha = fleet.version_of(self._nth % fleet.POPULAR, self._first + number).encode()
        # In fleet.changed: finding's hash, transition's id, its finding's hash.
        return b"".join((one, sha, two, self._tid(number), three, sha, four))


class Connection(asyncio.Protocol):
    """One connection and the devices that it reports for."""

    def __init__(self, load, devices):
        self._load, self._devices, self._at, self._answer, self._sent = load, devices, 0, b"", 0.0

    def connection_made(self, transport):
        self._transport = transport
        self._send()

    def _send(self):
        device = self._devices[self._at % len(self._devices)]
        request = device.next(self._at // len(self._devices))
        self._at += 1
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data):
        self._answer += data
        end = self._answer.find(b"\r\n\r\n")
        if end < 0:
            return
        status = int(self._answer[9:12])
        if status != 204:
            lower = self._answer[:end].lower()
            at = lower.find(b"content-length:")
            length = int(lower[at + 15 :].split(b"\r\n")[0]) if at >= 0 else 0
            if len(self._answer) < end + 4 + length:
                return
        self._answer = b""
        if self._load.note(status, time.perf_counter() - self._sent):
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, _error):
        self._load.closed()


class Load:
    """Counts. Before the end of the warm-up nothing counts."""

    def __init__(self, spec):
        self._from = time.perf_counter() + spec["warmup"]
        self._until = self._from + spec["seconds"]
        self.statuses, self.times = Counter(), []
        self.left = spec["connections"]
        self.done = asyncio.get_running_loop().create_future()

    def note(self, status, seconds):
        now = time.perf_counter()
        if self._from <= now < self._until:
            self.statuses[status] += 1
            self.times.append(seconds)
        return now < self._until

    def closed(self):
        self.left -= 1
        if self.left == 0:
            self.done.set_result(None)


async def run(spec):
    kind = Changed if spec["mode"] == "changed" else Unchanged
    count = min(spec["devices"], fleet.LOADED)
    connections = min(spec["connections"], count)
    devices = [[kind(nth, spec) for nth in range(at, count, connections)] for at in range(connections)]
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    load = Load({**spec, "connections": connections})
    cpu = time.process_time()
    loop = asyncio.get_running_loop()
    for those in devices:
        await loop.create_connection(lambda those=those: Connection(load, those), LOOPBACK, spec["port"])
    await asyncio.wait_for(load.done, spec["warmup"] + spec["seconds"] + 120)
    times = sorted(load.times) or [0.0]
    return {
        "accepted": load.statuses.get(204, 0),
        "others": {str(status): number for status, number in load.statuses.items() if status != 204},
        "seconds": spec["seconds"],
        "p50": times[len(times) // 2],
        "p95": times[int(len(times) * 0.95)],
        "p99": times[int(len(times) * 0.99)],
        "cpu": (time.process_time() - cpu) / (spec["seconds"] + spec["warmup"]),
        "bytes": len(devices[0][0].next(0)),
    }


if __name__ == "__main__":
    hashlib.sha256()  # loaded before the clock runs
    print(json.dumps(uvloop.run(run(json.loads(sys.argv[1])))), flush=True)
