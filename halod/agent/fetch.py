# SPDX-License-Identifier: Apache-2.0
"""Fetches the signed policy: one thread, the only user of the policy's HTTP client (design 9).

Invariants:

1. Nothing here holds up a scan: what was fetched is judged in this thread, and told when something changed.
2. The server is asked again after the scan interval, a tenth more or less; sooner, with full jitter from 5 s to
   15 min, after a failure that may pass by itself, or when it says so.
3. No text of the server's gets further than `FetchedPolicy.take`; no token is sent: a policy is no secret, and it
   is believed for its signature. A client certificate (`report.client_cert`) is shown to a server that asks.
4. `stop` ends a wait at once and a request within a second.
"""

import random
import re
import threading
import time
from collections.abc import Callable
from typing import Final

from halod.agent.backoff import Backoff
from halod.agent.courier import say
from halod.agent.delivery import Say
from halod.agent.faults import WORDS, Fault
from halod.agent.fetched import FetchedPolicy
from halod.agent.http import Answer, Client
from halod.agent.prepare import Prepared
from halod.errors import UsageError
from halod.policy.signed import MAX_BYTES
from halod.retryafter import retry_after

_JITTER: Final = 0.1
_JOIN: Final = 1.0
_TRANSIENT: Final = frozenset({408, 425, 429})
_ETAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,256}"')
_FAULT: Final = "the policy cannot be fetched: a fault inside halod"


class Fetcher:
    """Fetches until it is stopped."""

    def __init__(
        self,
        url: str,
        client: Client,
        source: FetchedPolicy,
        *,
        interval: float,
        say: Say,
        told: Callable[[], None],
        draw: Callable[[], float] = random.random,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; nothing is sent before `start` or `turn`.

        Args:
            url: where the policy is.
            client: bound to the origin of `url`; closed when the thread ends.
            source: takes what was fetched.
            interval: seconds from one question to the next while all is well.
            say: the log.
            told: called, from the thread, when the policy or what is wrong has changed, and after the first try.
            draw: gives numbers from 0 to 1.
            wall: seconds since the epoch.
        """
        self._url = url
        self._client = client
        self._source = source
        self._interval = interval
        self._say = say
        self._told = told
        self._draw = draw
        self._wall = wall
        self._backoff = Backoff(draw)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._news = threading.Event()
        self._said = ""
        self.tried = False
        """Whether the first try is over, well or not."""

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="policy", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, out of a request too."""
        self._stop.set()
        self._client.abort()
        if self._thread is not None:
            self._thread.join(_JOIN)

    def news(self) -> bool:
        """Tell, once, that a cycle would come to something else than the last one."""
        if not self._news.is_set():
            return False
        self._news.clear()
        return True

    def turn(self) -> float:
        """Ask once; give the seconds until the next time."""
        before = self._source.refresh()
        try:
            wait = self._ask()
        except Exception as exc:  # noqa: BLE001 - a fault of ours must cost one try; its text may hold anything
            self._say("policy-fault", exception=type(exc).__name__)
            self._source.failed(_FAULT)
            wait = self._backoff.failed()
        after = self._source.refresh()
        changed = (before.policy, before.code) != (after.policy, after.code)
        if changed:
            self._news.set()
        if changed or not self.tried:
            self.tried = True
            self._told()
        return wait

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._stop.wait(self.turn())
        finally:
            self._client.close()

    def _ask(self) -> float:
        etag = self._source.etag
        headers = {"If-None-Match": etag} if etag else {}
        try:
            answer = self._client.send("GET", self._url, headers=headers, limit=MAX_BYTES)
        except Fault as fault:
            if fault.kind == "stopped":
                return 0.0
            return self._failed(fault.kind, WORDS[fault.kind], passes=fault.kind != "redirect")
        if answer.status == 200:
            return self._taken(answer)
        if answer.status == 304 and etag:
            self._source.unchanged()
            return self._well("policy-unchanged", 304)
        transient = answer.status >= 500 or answer.status in _TRANSIENT
        words = f"the server answers with HTTP status {answer.status}"
        return self._failed(str(answer.status), words, passes=transient, asked=self._asked(answer))

    def _taken(self, answer: Answer) -> float:
        if not answer.whole:
            self._source.refused("what the server gives is larger than 1 MiB")
        else:
            etag = answer.headers.get("etag", "")
            self._source.take(answer.body, etag if _ETAG.fullmatch(etag) else "")
        return self._well("policy-fetched", answer.status)

    def _well(self, event: str, status: int) -> float:
        """Wait for the next question after an answer; say it when it is other than the last."""
        self._backoff.succeeded()
        code = self._source.refresh().code
        line = f"{event} {code}"
        if line != self._said:
            self._said = line
            if code:
                self._say("policy-fetch-failed", outcome=code, status=status)
            else:
                self._say(event, version=self._source.followed().version, status=status)
        return self._next()

    def _failed(self, outcome: str, words: str, *, passes: bool, asked: float = 0.0) -> float:
        self._source.failed(f"the policy cannot be fetched: {words}")
        wait = self._backoff.failed(asked) if passes else max(self._next(), asked)
        if self._said != outcome:
            self._said = outcome
            self._say("policy-fetch-failed", outcome=outcome, retry=round(wait, 1))
        return wait

    def _asked(self, answer: Answer) -> float:
        headers = answer.headers
        return retry_after(headers.get("retry-after", ""), date=headers.get("date", ""), now=self._wall())

    def _next(self) -> float:
        return self._interval * (1 - _JITTER + 2 * _JITTER * self._draw())


def fetcher_of(prepared: Prepared, source: FetchedPolicy, told: Callable[[], None]) -> Fetcher | None:
    """Give the thread for the settings' policy.url; None when nothing can be fetched, which the status says.

    `told` is that of Fetcher.
    """
    settings = prepared.settings
    if prepared.tls is None:
        raise ValueError("no TLS context")
    try:
        client = Client(settings.policy.url, prepared.tls)
    except UsageError as error:
        source.failed(f"the policy cannot be fetched: {error.message}")
        return None
    return Fetcher(settings.policy.url, client, source, interval=settings.scan.interval, say=say, told=told)
