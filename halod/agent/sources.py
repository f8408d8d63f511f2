# SPDX-License-Identifier: Apache-2.0
"""Where the agent's policy comes from, and which one counts: a new one that is good, else the last good one.

Invariants:

1. A policy with a fault changes nothing but the words: the last good one goes on, and the status says why,
   which one it is and since when.
2. Without any good policy ever, scans are inventories; nobody is told that nothing differs.
3. The last good policy outlives a restart, in the state directory (`policy_cache`), with its digest unchanged.
"""

import os
import time
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from halod.agent.dates import date
from halod.agent.files import read_small, replace
from halod.errors import UsageError
from halod.policy.load import MAX_BYTES, PolicyError, parse, read_file
from halod.policy.model import Policy
from halod.settings import Policy as PolicySettings

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


_UNFETCHED: Final = "policy.url is set, but this version cannot fetch a policy"


def source_of(settings: PolicySettings, initial: bytes | None, cache: str) -> Source:
    """Give the source that the settings name; the last two are those of FilePolicy."""
    if settings.path:
        return FilePolicy(settings.path, initial, cache)
    return NoPolicy(_UNFETCHED, "policy-unreadable") if settings.url else NoPolicy()
