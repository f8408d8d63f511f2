# SPDX-License-Identifier: Apache-2.0
"""Where the agent's policy comes from, and which one counts: a new one that is good, else the last good one.

Invariants:

1. A policy with a fault changes nothing but the words: the last good one goes on, and the status says why,
   which one it is and since when.
2. Without any good policy ever, scans are inventories; nobody is told that nothing differs.
3. A policy that is fetched is `fetched` and `fetch`, which are loaded only when there is one.
4. The last good policy outlives a restart, in the state directory (`policy_cache`), with its digest unchanged.
"""

import base64
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import msgspec

from halod.agent.dates import date
from halod.agent.files import read_small, replace
from halod.agent.prepare import Prepared
from halod.agent.reply import Followed
from halod.agent.state import State
from halod.errors import UsageError
from halod.policy.load import MAX_BYTES, PolicyError, parse, read_file
from halod.policy.model import Policy
from halod.settings import Policy as PolicySettings

if TYPE_CHECKING:
    from halod.agent.fetch import Fetcher
    from halod.agent.fetched import FetchedPolicy

Signature = tuple[int, ...]


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """The policy that counts now, and what is wrong: `error` in words, `code` a slug, both "" when nothing is."""

    policy: Policy | None = None
    error: str = ""
    code: str = ""


class Source(Protocol):
    """A source of policies."""

    def refresh(self) -> Current:
        """Look whether there is a newer policy, and give the one that counts."""
        ...


class NoPolicy:
    """No policy is configured, or none can be had in this version; `error` says so."""

    def __init__(self, error: str = "", code: str = "") -> None:
        self._current = Current(error=error, code=code)

    def refresh(self) -> Current:
        """Give nothing."""
        return self._current


class FilePolicy:
    """A file that an administrator places.

    `initial` is its content as root read it at the start, None when that failed: the agent's own account may
    not be able to read it. It is read again when its inode, size or times have changed.
    """

    def __init__(self, path: str, initial: bytes | None, cache: str) -> None:
        self._path = path
        self._cache = cache
        self._seen: Signature = ()
        self._current = Current()
        self._initial = initial
        self._since = 0.0
        """Wall time at which the last good policy came into force."""

    def refresh(self) -> Current:
        """Look at the file; see Source."""
        signature = _signature(self._path)
        if self._initial is not None:
            data, self._initial = self._initial, None
            self._seen = signature
            self._current = self._judged(data)
        elif signature != self._seen or (not signature and not self._current.error):
            self._seen = signature
            self._current = self._read()
        return self._current

    def _read(self) -> Current:
        try:
            return self._judged(read_file(self._path))
        except UsageError as error:
            return self._last_good(error.message, "policy-unreadable")

    def _judged(self, data: bytes) -> Current:
        try:
            policy = parse(data, os.path.basename(self._path))
        except PolicyError as error:
            return self._last_good(error.message, "policy-invalid")
        self._keep(data)
        return Current(policy=policy)

    def _last_good(self, error: str, code: str) -> Current:
        policy = self._current.policy or self._kept()
        if policy is None:
            goes_on = "there was no good policy before: servers are listed and not judged"
        else:
            goes_on = (
                f"the last good policy goes on: {policy.digest[:19]}, in force since {date(self._since)}"
            )
        return Current(policy=policy, error=f"{error}; {goes_on}", code=code)

    def _kept(self) -> Policy | None:
        """Give the last good policy of an earlier run."""
        try:
            data = read_small(self._cache, MAX_BYTES)
            self._since = os.stat(self._cache).st_mtime
            return None if data is None else parse(data, "policy")
        except (OSError, UsageError):
            return None

    def _keep(self, data: bytes) -> None:
        """Keep a good policy for the next start; a disk that refuses costs only that.

        The copy's time is when it came into force, also after restarts.
        """
        self._since = time.time()
        with suppress(OSError):
            if read_small(self._cache, MAX_BYTES) == data:
                self._since = os.stat(self._cache).st_mtime
                return
        with suppress(OSError):
            replace(self._cache, data)


def _signature(path: str) -> Signature:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def source_of(settings: PolicySettings, initial: bytes | None, state: State) -> "Source | FetchedPolicy":
    """Give the source that the settings name; `initial` is that of FilePolicy.

    What checks signatures is loaded only where there is one to check: it costs 11 MiB.
    """
    if settings.path:
        return FilePolicy(settings.path, initial, state.policy_cache)
    if not settings.url:
        return NoPolicy()
    from halod.agent.fetched import FetchedPolicy

    keys = [base64.b64decode(key) for key in settings.public_keys]
    return FetchedPolicy(settings.url, keys, settings.org, state, state.signed_policy)


class Following:
    """The thread that fetches the policy, as the agent's loop sees it; without `policy.url` there is none."""

    def __init__(
        self, prepared: Prepared, source: "Source | FetchedPolicy", told: Callable[[], None]
    ) -> None:
        """Prepare; `told` is called from the thread when there is something to look at."""
        self._source: FetchedPolicy | None = None
        self._fetcher: Fetcher | None = None
        if prepared.settings.policy.url:
            from halod.agent import fetch, fetched

            if isinstance(source, fetched.FetchedPolicy):
                self._source, self._fetcher = source, fetch.fetcher_of(prepared, source, told)

    def start(self) -> None:
        """Start the thread."""
        if self._fetcher is not None:
            self._fetcher.start()

    def stop(self) -> None:
        """End it."""
        if self._fetcher is not None:
            self._fetcher.stop()

    @property
    def waits(self) -> bool:
        """Whether the first try is not over yet."""
        return self._fetcher is not None and not self._fetcher.tried

    def news(self) -> bool:
        """Tell, once, that the policy or what is wrong with it has changed since the last cycle began."""
        return self._fetcher is not None and self._fetcher.news()

    def followed(self) -> Followed | None:
        """Give what `halod status` shows; None when no policy is fetched."""
        return None if self._source is None else self._source.followed()
