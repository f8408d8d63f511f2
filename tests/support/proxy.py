# SPDX-License-Identifier: Apache-2.0
"""A small reverse proxy: one request after the other to each of several servers, round robin, in a thread of its own.

As proxies do it: a server that cannot be connected to is left out and the next one is tried; a request that was sent is
never sent again, since nobody knows what became of it (502). Bounded: bodies, connections and waiting. Bodies come with
Content-Length, as agents and browsers send them.
"""

import asyncio
import contextlib
import itertools
import threading
from collections import Counter

HEAD = 64 * 1024
BODY = 2 * 1024 * 1024
CONNECTIONS = 256
SECONDS = 30
_HOP = {b"connection", b"keep-alive", b"x-forwarded-for", b"transfer-encoding"}


class Proxy:
    """`with Proxy([("127.0.0.1", 1), ("127.0.0.1", 2)]) as proxy:` listens on `proxy.port`.

    `served` counts the requests that each server answered, `failed` those that broke off.
    """

    def __init__(self, servers):
        self.servers = list(servers)
        self.served = Counter()
        self.failed = Counter()
        self.port = 0
        self._turn = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._places = asyncio.Semaphore(CONNECTIONS)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *exc):
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(20)
        assert not self._thread.is_alive()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def _run(self):
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())

    async def _serve(self):
        self._end = asyncio.Event()
        self._tasks = set()
        listener = await asyncio.start_server(self._client, "127.0.0.1", 0, limit=HEAD)
        self.port = listener.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _client(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        try:
            async with self._places:
                while await self._request(reader, writer):
                    pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            self._tasks.discard(asyncio.current_task())
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _request(self, reader, writer):
        """Pass one request on; tell whether another may come."""
        async with asyncio.timeout(SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
            line, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
            pairs = [
                (name.strip().lower(), value.strip())
                for name, _, value in (f.partition(b":") for f in fields)
            ]
            length = int(dict(pairs).get(b"content-length", b"0"))
            if length > BODY or any(name == b"transfer-encoding" for name, _ in pairs):
                writer.write(_answer(413))
                await writer.drain()
                return False
            body = await reader.readexactly(length)
        peer = writer.get_extra_info("peername")[0].encode()
        kept = [(name, value) for name, value in pairs if name not in _HOP]
        kept += [(b"x-forwarded-for", peer), (b"connection", b"close")]
        sent = b"\r\n".join([line, *(name + b": " + value for name, value in kept)]) + b"\r\n\r\n" + body
        writer.write(await self._pass_on(sent))
        await writer.drain()
        return (b"connection", b"close") not in [(name, value.lower()) for name, value in pairs]

    async def _pass_on(self, request):
        """Give the answer of the next server that can be connected to."""
        first = next(self._turn)
        for nth in range(len(self.servers)):
            place = self.servers[(first + nth) % len(self.servers)]
            try:
                async with asyncio.timeout(5):
                    reader, writer = await asyncio.open_connection(*place, limit=HEAD)
            except (OSError, TimeoutError):
                continue
            try:
                async with asyncio.timeout(SECONDS):
                    writer.write(request)
                    answer = await _read(reader, head=request.startswith(b"HEAD "))
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
                self.failed[place] += 1
                return _answer(502)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
            self.served[place] += 1
            return answer
        return _answer(503)


async def _read(reader, *, head):
    """Read an answer whole; give it for a connection that stays open."""
    first = await reader.readuntil(b"\r\n\r\n")
    line, *fields = first.removesuffix(b"\r\n\r\n").split(b"\r\n")
    pairs = [(name.strip().lower(), value.strip()) for name, _, value in (f.partition(b":") for f in fields)]
    named = dict(pairs)
    status = int(line.split()[1])
    if head or status in (204, 304):
        body = b""
    elif b"content-length" in named:
        body = await reader.readexactly(int(named[b"content-length"]))
    elif named.get(b"transfer-encoding") == b"chunked":
        body = await _chunks(reader)
    else:
        body = await reader.read(BODY)
    kept = [
        (name, value) for name, value in pairs if name not in _HOP and (head or name != b"content-length")
    ]
    if not head and status not in (204, 304):
        kept.append((b"content-length", str(len(body)).encode()))
    return b"\r\n".join([line, *(name + b": " + value for name, value in kept)]) + b"\r\n\r\n" + body


async def _chunks(reader):
    parts = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return b"".join(parts)


def _answer(status):
    return f"HTTP/1.1 {status} Proxy\r\ncontent-length: 0\r\n\r\n".encode()
