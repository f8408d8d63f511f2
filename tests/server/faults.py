# SPDX-License-Identifier: Apache-2.0
"""What a server can do wrong, by a word: each writes to the connection and gives the status it has sent, or 0.

`hang` and the drips end when the other side has gone, or `Gone` is told otherwise by the process's end.
"""

import select
import time

from tests.support.guard import LONG

STEP = 0.02


def wait_until_gone(connection, seconds=LONG):
    """Answer nothing until the other side closes, at most `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if select.select([connection], [], [], 0.1)[0]:
            try:
                if not connection.recv(65536):
                    return
            except OSError:
                return


def drip(connection, head, byte):
    """Send a head, and then one byte now and then, for ever."""
    connection.sendall(head)
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        connection.sendall(byte)
        time.sleep(STEP)


def flood(connection, head, block, most=64 * 1024 * 1024):
    """Send a head, and then blocks without end."""
    connection.sendall(head)
    for _ in range(most // len(block)):
        connection.sendall(block)


OK = b"HTTP/1.1 200 OK\r\n"
FAULTS = {
    "close": lambda _connection: None,
    "hang": wait_until_gone,
    "drip-head": lambda connection: drip(connection, OK + b"X-Slow: ", b"x"),
    "drip-body": lambda connection: drip(connection, OK + b"Content-Length: 60000\r\n\r\n", b" "),
    "truncate-head": lambda connection: connection.sendall(OK + b"Content-Le"),
    "truncate-body": lambda connection: connection.sendall(OK + b"Content-Length: 100\r\n\r\n{}"),
    "truncate-chunk": lambda connection: connection.sendall(
        OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{}"
    ),
    "garbage": lambda connection: connection.sendall(
        b"\x16\x03\x01 SSH-2.0-none\r\n\x00\xff CANARYserver\r\n\r\n"
    ),
    "bad-length": lambda connection: connection.sendall(OK + b"Content-Length: -1\r\n\r\n"),
    "two-lengths": lambda connection: connection.sendall(
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"
    ),
    "flood-head": lambda connection: flood(connection, OK, b"X-Flood: " + b"x" * 8000 + b"\r\n"),
    "flood-line": lambda connection: flood(connection, OK + b"X-Flood: ", b"x" * 65536),
    "flood-body": lambda connection: flood(connection, OK + b"\r\n", b"x" * 65536),
    "flood-chunks": lambda connection: flood(
        connection, OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 4096
    ),
    "flood-informational": lambda connection: flood(
        connection, b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1024
    ),
    "switch": lambda connection: connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    ),
    "cookie": lambda connection: connection.sendall(
        b"HTTP/1.1 503 Busy\r\nSet-Cookie: CANARYcookie=1; Path=/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    ),
    "gzip-bomb": lambda connection: connection.sendall(
        OK + b"Content-Encoding: gzip\r\nConnection: close\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"
    ),
}
