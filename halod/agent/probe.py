# SPDX-License-Identifier: Apache-2.0
"""One harmless question to an endpoint, for `halod check`: a GET, no redirect, no body kept but a policy to be judged.

Running as root, the question is asked by a child that became the agent's account first, as the service does
(design 2): root has no network. What is root's to read (TLS context, token, the interpreter's own library on
a machine that hides it) is read before.
"""

import os
import select
import signal
import ssl
import time
from collections.abc import Callable
from typing import Final, NoReturn

import msgspec

from halod.agent.policytrial import LIMIT, Tried
from halod.errors import UsageError
from halod.roles import identity
from halod.roles.identity import Ids

TOTAL: Final = 15.0
"""Seconds for one question: somebody waits for it."""
_GRACE: Final = 5.0
_MOST: Final = 64 * 1024
_READ: Final = 1024
"""Bytes of a body that nobody judges."""


class Answered(msgspec.Struct, frozen=True):
    """`answer` with an HTTP status, or why there is none: a kind of `faults`, "settings", or "failed"."""

    kind: str
    status: int = 0
    words: str = ""
    tried: Tried | None = None
    """What a judge said of the body; None when there was none to judge."""


def ask(
    url: str,
    tls: ssl.SSLContext,
    *,
    bearer: str = "",
    ids: Ids | None = None,
    total: float = TOTAL,
    judge: Callable[[bytes], Tried] | None = None,
) -> Answered:
    """Send a GET to `url` and give what came back, within `total` seconds and a few more.

    With `ids` a child asks, which has become that account. `judge` reads a policy's document, in that child.
    """
    if ids is None:
        return _ask(url, tls, bearer, total, judge)
    readable, writable = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    child = os.fork()
    if child == 0:
        _in_child(writable, ids, lambda: _ask(url, tls, bearer, total, judge))
    os.close(writable)
    try:
        return _collect(readable, child, total + _GRACE)
    finally:
        os.close(readable)


def _ask(
    url: str, tls: ssl.SSLContext, bearer: str, total: float, judge: Callable[[bytes], Tried] | None
) -> Answered:
    from halod.agent.faults import WORDS, Fault
    from halod.agent.http import Client

    try:
        client = Client(url, tls, total=total)
    except UsageError as error:
        return Answered("settings", 0, error.message)
    try:
        answer = client.send("GET", url, bearer=bearer, limit=_READ if judge is None else LIMIT)
    except Fault as error:
        return Answered(error.kind, error.status, WORDS[error.kind])
    finally:
        client.close()
    if judge is None or answer.status != 200:
        return Answered("answer", answer.status)
    if not answer.whole:
        return Answered(
            "answer", 200, "", Tried("policy-malformed", "what the server gives is larger than 1 MiB")
        )
    return Answered("answer", 200, "", judge(answer.body))


def _load() -> None:
    """Import all that a question needs: afterwards the library may be out of reach."""
    import halod.agent.http  # noqa: F401 - for later

    "acme.example".encode("idna")  # what getaddrinfo does to a name loads a codec


def _in_child(writable: int, ids: Ids, question: Callable[[], Answered]) -> NoReturn:
    """Become the account, ask, write the answer, end. Nothing of the parent's is run on the way out."""
    said = Answered("failed", 0, "the question could not be asked as the agent's account")
    try:
        _load()
        identity.assume(ids.uid, ids.gid, ids.groups)
        identity.drop_capabilities()
        identity.refuse_return()
        said = question()
    except BaseException:  # noqa: BLE001 - the child must end here, and its texts may hold a path or URL
        said = Answered("failed", 0, "the question could not be asked as the agent's account")
    finally:
        try:
            os.write(writable, msgspec.msgpack.encode(said))
        finally:
            os._exit(0)


def _collect(readable: int, child: int, seconds: float) -> Answered:
    """Read what the child writes; end it when it takes too long."""
    deadline = time.monotonic() + seconds
    data = b""
    while len(data) < _MOST:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([readable], [], [], left)[0]:
            os.kill(child, signal.SIGKILL)
            break
        chunk = os.read(readable, _MOST)
        if not chunk:
            break
        data += chunk
    os.waitpid(child, 0)
    try:
        return msgspec.msgpack.decode(data, type=Answered)
    except msgspec.DecodeError:
        return Answered("failed", 0, "the question was not answered in time")
