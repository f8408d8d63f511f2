# SPDX-License-Identifier: Apache-2.0
"""Asking the provider over HTTP. What answers may be slow, large or elsewhere.

Invariants:

1. One exchange takes at most SECONDS and MAX_BYTES; redirects are not followed, cookies are not kept.
2. Only https is asked, http on a loopback host only.
3. Nothing of a request or an answer reaches an exception's text: both hold codes and tokens.
"""

import functools
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

import httpx
import msgspec

from halod.console.settings.kinds import Fault, url

SECONDS: Final = 10.0
_STEP_SECONDS: Final = 5.0
MAX_BYTES: Final = 512 * 1024
AT_ONCE: Final = 4
"""Questions at the same time: a provider that hangs holds no more threads of the console."""


class Unreachable(Exception):
    """The provider did not answer, or not as a provider does. The text is ours."""


class Answer(msgspec.Struct, frozen=True):
    """What came back; `json` is None when the body is no JSON object."""

    status: int
    json: dict[str, Any] | None

    def __repr__(self) -> str:
        """Give the status only."""
        return f"<Answer {self.status}>"


@functools.cache
def _context(ca_file: str) -> ssl.SSLContext:
    """Trust the system's authorities, or those of a file; read once."""
    return ssl.create_default_context(cafile=ca_file or None)


class Wire:
    """A client for one provider; threads may use it at the same time."""

    def __init__(self, ca_file: str = "", *, seconds: float = SECONDS) -> None:
        self._context = _context(ca_file)
        self._seconds = seconds
        self._slots = threading.Semaphore(AT_ONCE)

    def get(self, address: str, *, bearer: str = "") -> Answer:
        """Fetch a document. Raises Unreachable."""
        return self._ask("GET", address, {"Authorization": f"Bearer {bearer}"} if bearer else {})

    def post(self, address: str, form: Mapping[str, str], *, basic: tuple[str, str] | None = None) -> Answer:
        """Send a form. Raises Unreachable."""
        return self._ask("POST", address, {}, data=form, auth=httpx.BasicAuth(*basic) if basic else None)

    def _ask(self, method: str, address: str, headers: dict[str, str], **more: Any) -> Answer:  # noqa: ANN401 - httpx's
        try:
            url(address)
        except Fault:
            raise Unreachable("the provider names an address that is not https") from None
        if not self._slots.acquire(blocking=False):
            raise Unreachable("too many people are signing in at once")
        try:
            return self._bounded(method, address, headers, more)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise Unreachable(f"the provider did not answer ({type(error).__name__})") from None
        finally:
            self._slots.release()

    def _bounded(self, method: str, address: str, headers: dict[str, str], more: dict[str, Any]) -> Answer:
        end = time.monotonic() + self._seconds
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        body = bytearray()
        step = min(self._seconds, _STEP_SECONDS)
        with (
            httpx.Client(verify=self._context, timeout=step, follow_redirects=False) as client,
            client.stream(method, address, headers=headers, **more) as response,
        ):
            for piece in response.iter_raw():
                body += piece
                if len(body) > MAX_BYTES:
                    raise Unreachable("the provider's answer is too large")
                if time.monotonic() > end:
                    raise Unreachable("the provider's answer took too long")
            status, coded = response.status_code, response.headers.get("content-encoding", "identity")
        if coded != "identity":
            raise Unreachable("the provider's answer is compressed, which was not asked for")
        try:
            found = msgspec.json.decode(bytes(body))
        except (msgspec.DecodeError, RecursionError):
            found = None
        return Answer(status, found if isinstance(found, dict) else None)
