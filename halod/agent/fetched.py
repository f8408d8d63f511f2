# SPDX-License-Identifier: Apache-2.0
"""The policy that is fetched: which one counts, what is kept of it, and what is said when something is wrong.

Knows no network: `fetch` brings what the server said. Invariants:

1. Only a document that `halod.policy.signed` takes replaces the policy in force. Whatever else arrives, or does
   not arrive, changes the words alone: the last good one goes on, across restarts and outages, however old.
2. The newest version that was taken of each organisation is remembered in the device's file: no older one is taken,
   not from a server, not from the cache, and not after `policy.org` went to another one and came back. A cache is
   believed as little as a server: its signature is checked at each start.
3. A disk that refuses costs only what the next start would know.
4. An outage is said when it has lasted GRACE seconds: a laptop that wakes up has none. Without a policy in force
   it is said at once, as is everything that a person has to mend.

Threads: `take`, `unchanged`, `failed` and `refused` come from the fetching thread, everything else from any.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final, Protocol

import msgspec

from halod.agent.dates import date
from halod.agent.devicefile import Device, PolicyVersion
from halod.agent.files import read_small, replace
from halod.agent.reply import Followed
from halod.agent.sources import Current
from halod.errors import EnvironmentFault, UsageError
from halod.policy.load import PolicyError
from halod.policy.signed import MAX_BYTES, Refused, Seen, Signed, verify, verify_kept

GRACE: Final = 3600.0
"""Seconds for which a server may be out of reach before the status says so."""
_PENDING: Final = "the policy has not been fetched yet: servers are listed and not judged"
_KEPT_BYTES: Final = 2 * MAX_BYTES
_MOST_ORGS: Final = 64
"""Organisations whose versions are remembered beside that of the last one; only root can name another."""


class Store(Protocol):
    """Where the newest version is remembered: the agent's State."""

    @property
    def device(self) -> Device:
        """Give what is known of the device. Raises EnvironmentFault."""
        ...

    def update_device(self, **fields: object) -> Device:
        """Change fields of it and keep them. Raises EnvironmentFault."""
        ...


class Kept(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The cache: the envelope in force, since when, and the server's name for it. `source` is of which URL."""

    envelope: bytes
    since: float
    source: str
    etag: str = ""


class _Fault(msgspec.Struct, frozen=True, kw_only=True):
    words: str
    code: str
    since: float
    """Monotonic time of the first failure in a row."""
    outage: bool = False


class FetchedPolicy:
    """The policy of one URL; a Source."""

    def __init__(
        self,
        url: str,
        keys: Sequence[bytes],
        org: str,
        store: Store,
        cache: str,
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; the cache is read at the first use.

        Args:
            url: where it is fetched from; only to know what an entity tag belongs to.
            keys: the pinned public keys, 32 bytes each.
            org: the organisation of the settings; "": that of the first policy that is taken.
            store: where the newest version is remembered.
            cache: path of the cache.
            wall: seconds since the epoch, for expiry and dates.
            clock: seconds that never go back, for GRACE.
        """
        self._source = sha256(url.encode()).hexdigest()
        self._keys = tuple(keys)
        self._pinned_org = org
        self._store = store
        self._cache = cache
        self._wall = wall
        self._clock = clock
        self._lock = threading.RLock()
        self._loaded = False
        self._held: Signed | None = None
        self._since = 0.0
        self._seen = Seen()
        self._others: dict[str, Seen] = {}
        self._fault: _Fault | None = None
        self._document: bytes | None = None
        self._etag = ""
        self._asked = 0.0
        self._current = Current()

    # What the agent asks

    def refresh(self) -> Current:
        """Give the policy that counts now; the same object as long as nothing changes."""
        with self._lock:
            self._load()
            error, code = self._said()
            policy = None if self._held is None else self._held.policy
            before = self._current
            if (before.policy is not policy) or (before.error, before.code) != (error, code):
                self._current = Current(policy=policy, error=error, code=code)
            return self._current

    def followed(self) -> Followed:
        """Give what `halod status` shows of it."""
        with self._lock:
            self._load()
            held, fault = self._held, self._fault
            return Followed(
                version=0 if held is None else held.version,
                issued="" if held is None else date(held.issued),
                expires="" if held is None else date(held.expires),
                since="" if held is None else date(self._since),
                asked=date(self._asked) if self._asked else "",
                trouble="" if fault is None else fault.words,
            )

    @property
    def etag(self) -> str:
        """The server's name for the document that it last gave; "" when there is none."""
        with self._lock:
            self._load()
            return self._etag

    # What the fetching thread tells

    def take(self, document: bytes, etag: str) -> None:
        """Judge a document that was fetched."""
        with self._lock:
            self._load()
            self._document, self._etag, self._asked = document, etag, self._wall()
            org = self._org()
            seen = self._seen_of(org)
        # Not under the lock: a large policy takes a while to read, and a cycle asks meanwhile.
        try:
            signed = verify(document, self._keys, org=org, seen=seen, now=self._wall())
        except PolicyError as error:
            self._refuse(f"the signed policy is invalid: {error.message}", "policy-invalid")
        except Refused as error:
            self._refuse(error.message, error.code)
        else:
            self._accept(signed, document)

    def unchanged(self) -> None:
        """Note that the server has nothing else than it last gave (304); that is judged again if it was refused."""
        with self._lock:
            self._asked = self._wall()
            fault, document, etag = self._fault, self._document, self._etag
            if fault is None or fault.outage:
                self._fault = None
                return
        if document is not None:
            self.take(document, etag)

    def failed(self, words: str) -> None:
        """Note that nothing was fetched, and why."""
        with self._lock:
            before = self._fault
            if before is not None and not before.outage:
                return  # what a person has to mend goes before
            since = self._clock() if before is None else before.since
            self._fault = _Fault(words=words, code="policy-unreachable", since=since, outage=True)

    def refused(self, words: str) -> None:
        """Note that what was fetched cannot be a signed policy."""
        with self._lock:
            self._document, self._etag, self._asked = None, "", self._wall()
        self._refuse(words, "policy-malformed")

    # Inside

    def _refuse(self, words: str, code: str) -> None:
        with self._lock:
            self._fault = _Fault(words=words, code=code, since=self._clock())

    def _accept(self, signed: Signed, document: bytes) -> None:
        with self._lock:
            self._fault = None
            if self._held is None or self._held.sha256 != signed.sha256:
                self._held, self._since = signed, self._wall()
            self._note(signed.seen)
            self._keep(document)

    def _said(self) -> tuple[str, str]:
        """Give the words and the code of what is wrong now."""
        held, fault = self._held, self._fault
        if held is None:
            if fault is None:
                return _PENDING, "policy-pending"
            return (
                f"{fault.words}; there was no good policy before: servers are listed and not judged",
                fault.code,
            )
        goes_on = (
            f"the last good policy goes on: {held.policy.digest[:19]}, in force since {date(self._since)}"
        )
        if fault is not None and not fault.outage:
            return f"{fault.words}; {goes_on}", fault.code
        if self._wall() >= held.expires:
            why = "" if fault is None else f" and no newer one can be fetched: {fault.words}"
            return (
                f"version {held.version} of the policy expired on {date(held.expires)[:10]}{why}; {goes_on}",
                "policy-expired",
            )
        if fault is not None and self._clock() - fault.since >= GRACE:
            return f"{fault.words}; {goes_on}", fault.code
        return "", ""

    def _org(self) -> str:
        return self._pinned_org or self._seen.org

    def _seen_of(self, org: str) -> Seen:
        """Give the newest that was taken of an organisation; of the last one when none is named."""
        return self._seen if org in {"", self._seen.org} else self._others.get(org, Seen())

    def _note(self, seen: Seen) -> None:
        """Make this the newest of its organisation, and the last one that was taken."""
        before = self._seen
        self._others.pop(seen.org, None)
        if before.org not in {"", seen.org}:
            self._others[before.org] = before
            while len(self._others) > _MOST_ORGS:
                del self._others[next(iter(self._others))]
        self._seen = seen

    def _load(self) -> None:
        """Read what an earlier run knew: once."""
        if self._loaded:
            return
        self._loaded = True
        with suppress(EnvironmentFault):
            device = self._store.device
            self._seen = Seen(
                org=device.policy_org, version=device.policy_version, sha256=device.policy_sha256
            )
            self._others = {
                one.org: Seen(org=one.org, version=one.version, sha256=one.sha256)
                for one in device.policy_others
            }
        try:
            data = read_small(self._cache, _KEPT_BYTES)
            kept = None if data is None else msgspec.json.decode(data, type=Kept)
            if kept is None:
                return
            envelope = kept.envelope
            org = self._org()
            held = verify_kept(envelope, self._keys, org=org, seen=self._seen_of(org))
        except (OSError, UsageError, msgspec.MsgspecError, ValueError, RecursionError):
            return  # a cache that is not to be believed is none: it is fetched again
        self._held, self._since = held, kept.since
        self._note(held.seen)
        self._remember()  # the device's file may have been lost: then the cache alone knew
        self._document = envelope
        if kept.source == self._source:
            self._etag = kept.etag

    def _keep(self, document: bytes) -> None:
        """Keep the policy in force for the next start: first the document, then that older ones do not count."""
        kept = Kept(envelope=document, since=self._since, source=self._source, etag=self._etag)
        with suppress(OSError):
            data = msgspec.json.encode(kept)
            if read_small(self._cache, _KEPT_BYTES) != data:
                replace(self._cache, data)
        self._remember()

    def _remember(self) -> None:
        """Keep which versions were seen, where that is not yet known."""
        seen = self._seen
        others = tuple(
            PolicyVersion(org=one.org, version=one.version, sha256=one.sha256)
            for one in self._others.values()
        )
        known = (seen.org, seen.version, seen.sha256, others)
        with suppress(EnvironmentFault):
            device = self._store.device
            if (
                device.policy_org,
                device.policy_version,
                device.policy_sha256,
                device.policy_others,
            ) != known:
                self._store.update_device(
                    policy_org=seen.org,
                    policy_version=seen.version,
                    policy_sha256=seen.sha256,
                    policy_others=others,
                )
