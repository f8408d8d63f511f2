# SPDX-License-Identifier: Apache-2.0
"""One cycle: policy, accounts, scan, answers, status, state (design 9). No clock, socket or thread of its own.

Invariants:

1. A status is always about the whole machine: an account that is not scanned again keeps its latest answer.
2. Answers to one policy are never mixed with answers to another: when it changes, everything is scanned.
3. What a worker answered is decoded and checked here, where nothing could change a uid.
4. A ring or unit that the policy does not know opens no false finding and resolves none: what depends on it
   is not judged until it is mended.
"""

import os
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Final, Literal, Protocol

import msgspec

from halod.accounts import Account
from halod.agent.dates import date as dated
from halod.agent.people import Selection
from halod.agent.sources import Current, Source
from halod.assemble import Machine, Scanned, assemble_seen
from halod.device import device_id, os_name
from halod.harnesses.dialect import Location
from halod.policy.model import Policy, Registry
from halod.policy.scope import check_device, scope, scope_in_doubt
from halod.roles import order
from halod.roles.answer import Answer
from halod.roles.protocol import Answered, Scan, Target
from halod.seen import Seen
from halod.settings import Settings
from halod.settings.locations import location
from halod.status import Status

Failure = Literal["home-unavailable", "worker-crashed", "worker-timeout", "worker-invalid"]

_DECODER: Final = msgspec.msgpack.Decoder(Answer)
LATE_ACCOUNTS: Final = ("accounts-unknown", "the accounts of this machine cannot be looked up at the moment")
UNANSWERED: Final = ("scan-unanswered", "a scan was not answered in time")
_DOUBT: Final = (
    "until that is mended, only what no ring or unit approves is reported, and nothing is resolved"
)
RELOAD: Final = (
    "reload-refused",
    "the new settings cannot be used; the service goes on with those of before",
)


class Clock(Protocol):
    """The two clocks."""

    def monotonic(self) -> float:
        """Give seconds that never go back."""
        ...

    def wall(self) -> float:
        """Give seconds since the epoch."""
        ...


class Machinery(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change while an agent lives."""

    settings: Settings
    source: Source
    extra: tuple[Location, ...]
    device: str
    hostname: str

    @classmethod
    def of(cls, settings: Settings, source: Source) -> "Machinery":
        """Look at the machine once."""
        extra = tuple([location(extra) for extra in settings.scan.extra_locations])
        return cls(
            settings=settings,
            source=source,
            extra=extra,
            device=device_id(),
            hostname=os.uname().nodename,
        )


class _Rules:
    """What answers are about: a policy for this device on one day, and the bytes that say so to a worker."""

    def __init__(self, machinery: Machinery, current: Current, today: date) -> None:
        device, scan = machinery.settings.device, machinery.settings.scan
        self.policy: Policy | None = current.policy
        self.registry: Registry | None = None
        self.sure: Registry | None = None
        """What certainly applies: the same, but for a place that the policy does not know."""
        self.doubt = False
        self.error, self.code = current.error, current.code
        if current.policy is not None:
            unknown = check_device(current.policy, device.ring, device.units)
            self.registry = self.sure = scope(current.policy, device.ring, device.units, today)
            if unknown:
                self.doubt = True
                self.registry = scope_in_doubt(current.policy, device.ring, device.units, today)
            if unknown and not self.code:
                self.error, self.code = f"{unknown[0]}; {_DOUBT}", "device-unknown"
        plan = order.Plan(
            registry=self.registry,
            extra=machinery.extra,
            max_file_bytes=scan.max_file_bytes,
            link_roots=scan.link_roots,
        )
        self.payload = order.encode(plan)

    def certain(self, status: Status) -> Status:
        """Take out of a status what depends on a ring or unit that the policy does not know."""
        if not self.doubt or self.sure is None:
            return status
        ids = frozenset([entry.id for entry in self.sure.entries])
        drift = tuple([row for row in status.mcp_drift if row.kind != "version-drift"])
        return msgspec.structs.replace(
            status,
            mcp_drift=drift,
            mcp_drift_total=len(drift),
            mcp_approved=tuple([row for row in status.mcp_approved if row.id in ids]),
        )


class Under:
    """A cycle under way: which answers it waits for. `full` says that it is about every account."""

    def __init__(self, number: int, trigger: str, began: float, *, full: bool) -> None:
        self.number = number
        self.trigger = trigger
        self.began = began
        self.full = full
        self.waiting: set[int] = set()
        self.keys: frozenset[int] = frozenset()
        self.moved: dict[int, frozenset[int] | None] = {}
        self.error: tuple[str, str] = ("", "")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle came to. `status` is without what the state adds; None: nothing is new."""

    status: Status | None
    seen: tuple[Seen, ...] = ()
    departed: frozenset[str] = frozenset()


class Cycles:
    """Runs one cycle after the other."""

    def __init__(self, machinery: Machinery, clock: Clock) -> None:
        self.machinery = machinery
        self.selection = Selection()
        self.under: Under | None = None
        self.sandbox: Literal["full", "partial", "unknown"] = "unknown"
        self.reload_refused = False
        """Whether newer settings than these were refused; the agent that reads good ones is another one."""
        self._clock = clock
        self._number = 0
        self._rules: _Rules | None = None
        self._rules_of: tuple[object, ...] = ()
        self._latest: dict[int, Scanned] = {}
        self._keys: dict[tuple[int, str, str], int] = {}
        self._sandboxes: dict[int, str] = {}

    # -- beginning -------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Look for a new policy or a new day; True when answers so far are about another one."""
        current = self.machinery.source.refresh()
        today = datetime.fromtimestamp(self._clock.wall(), UTC).date()
        new = (current, today)
        if self._rules is not None and new == self._rules_of:
            return False
        before = self._rules
        self._rules, self._rules_of = _Rules(self.machinery, current, today), new
        if before is not None and before.payload == self._rules.payload:
            return False
        return before is not None

    def begin(self, trigger: str, *, full: bool) -> Under:
        """Open a cycle."""
        self._number += 1
        self.under = Under(self._number, trigger, self._clock.monotonic(), full=full)
        return self.under

    def select(self, selection: Selection) -> None:
        """Take the accounts of this cycle and of those after it."""
        self.selection = selection
        kept = {self.key(account) for account in selection.accounts}
        self._latest = {key: scanned for key, scanned in self._latest.items() if key in kept}
        self._sandboxes = {key: word for key, word in self._sandboxes.items() if key in kept}

    def key(self, account: Account) -> int:
        """Give the number of an account: the same as long as name, uid and home are."""
        return self._keys.setdefault((account.uid, account.name, account.home), len(self._keys) + 1)

    def targets(self, keys: frozenset[int] | None = None) -> tuple[Target, ...]:
        """Give accounts as the supervisor takes them: all, or some."""
        return tuple(
            Target(
                key=self.key(account),
                uid=account.uid,
                gid=account.gid,
                groups=account.groups,
                home=account.home,
                known=account.listed,
            )
            for account in self.selection.accounts
            if keys is None or self.key(account) in keys
        )

    def request(self, keys: frozenset[int] | None = None) -> Scan | None:
        """Give what to ask the supervisor for; None when no account is there."""
        under, rules = self.under, self._rules
        targets = self.targets(keys)
        if under is None or rules is None or not targets:
            return None
        under.keys = frozenset([target.key for target in targets])
        under.waiting = set(under.keys)
        return Scan(under.number, targets, rules.payload)

    def watch_payload(self) -> bytes:
        """Give the Plan of watchers, which compare nothing."""
        scan = self.machinery.settings.scan
        return order.encode(
            order.Plan(
                extra=self.machinery.extra, max_file_bytes=scan.max_file_bytes, link_roots=scan.link_roots
            )
        )

    # -- answers ---------------------------------------------------------------------------------

    def answered(self, said: Answered) -> bool:
        """Take one answer; True when it was the last that the cycle waited for."""
        under = self.under
        if under is None or said.id != under.number or said.key not in under.waiting:
            return False
        under.waiting.discard(said.key)
        name = self._name(said.key)
        answer: Answer | None = None
        failure: Failure = said.failure or "worker-crashed"
        if not said.failure:
            try:
                answer = _DECODER.decode(said.answer)
            except (msgspec.MsgspecError, RecursionError, ValueError):
                failure = "worker-invalid"
        before = self._latest.get(said.key)
        now = Scanned(user=name, answer=answer, reason=failure)
        self._latest[said.key] = now
        self._sandboxes[said.key] = "unknown" if answer is None else answer.sandbox
        under.moved[said.key] = moved(before, now)
        return not under.waiting

    def give_up(self, error: tuple[str, str]) -> None:
        """Wait for no more answers; those that are missing are told of."""
        under = self.under
        if under is None:
            return
        for key in under.waiting:
            self._latest[key] = Scanned(user=self._name(key), reason="worker-timeout")
            under.moved[key] = None
        under.waiting = set()
        under.error = error

    def finish(self) -> Outcome:
        """Close the cycle, and give its status; None when a partial one brought nothing new."""
        under, self.under = self.under, None
        if under is None or self._rules is None:
            return Outcome(status=None)
        if not under.full and not under.error[0] and not any(m is None or m for m in under.moved.values()):
            return Outcome(status=None)
        words = set(self._sandboxes.values()) - {"unknown"}
        self.sandbox = "partial" if "partial" in words else "full" if words else "unknown"
        return self._status(under, self._rules)

    def _status(self, under: Under, rules: _Rules) -> Outcome:
        device, selection = self.machinery.settings.device, self.selection
        scanned = [
            self._latest.get(self.key(account), Scanned(user=account.name)) for account in selection.accounts
        ]
        scanned += [Scanned(user=name, reason="no-account") for name in selection.unknown]
        if not scanned:
            scanned = [Scanned(user="", reason="no-account")]
        code, error = (rules.code, rules.error) if rules.code else under.error
        if self.reload_refused and not code:
            code, error = RELOAD
        machine = Machine(
            time=dated(self._clock.wall()),
            device=self.machinery.device,
            hostname=self.machinery.hostname,
            os=os_name(),
            user=selection.console,
            ring=device.ring,
            units=device.units,
            duration_ms=round((self._clock.monotonic() - under.began) * 1000),
            last_error=error,
            error_code=code,
        )
        status, seen = assemble_seen(
            scanned, machine, policy=rules.policy, registry=rules.registry, extra=self.machinery.extra
        )
        coverage = msgspec.structs.replace(status.coverage, accounts=len(selection.accounts))
        status = rules.certain(msgspec.structs.replace(status, coverage=coverage))
        if rules.doubt:
            seen = ()  # what is not found now may be a finding still: it stays, stale
        return Outcome(status=status, seen=seen, departed=selection.departed)

    def _name(self, key: int) -> str:
        names = (account.name for account in self.selection.accounts if self.key(account) == key)
        return next(names, "")


def moved(before: Scanned | None, now: Scanned) -> frozenset[int] | None:
    """Give the locations in which two scans of an account differ; None: any may."""
    if before is None or before.answer is None or now.answer is None:
        same = before is not None and before.answer is now.answer and before.reason == now.reason
        return frozenset() if same else None
    old, new = before.answer, now.answer
    if old == new:
        return frozenset()
    changed = _differing([(row.location, row) for row in old.rows], [(row.location, row) for row in new.rows])
    changed |= _differing(
        [(gap.location, gap) for gap in old.gaps], [(gap.location, gap) for gap in new.gaps]
    )
    changed |= _differing([(at, parts) for at, parts in old.read], [(at, parts) for at, parts in new.read])
    return frozenset(changed) if changed else None


def _differing(old: Iterable[tuple[int, object]], new: Iterable[tuple[int, object]]) -> set[int]:
    """Give the locations whose rows differ, as lists."""
    groups: list[dict[int, list[object]]] = [{}, {}]
    for group, rows in zip(groups, (old, new), strict=True):
        for at, row in rows:
            group.setdefault(at, []).append(row)
    one, other = groups
    return {at for at in one.keys() | other.keys() if one.get(at) != other.get(at)}
