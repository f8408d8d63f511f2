# SPDX-License-Identifier: Apache-2.0
"""What the agent orders of a worker, as the bytes that pass through the supervisor (design 2).

The agent encodes a Plan; the supervisor passes the bytes on without looking; the worker, which has the
account's rights only, decodes them once. Invariants:

1. The supervisor never decodes a Plan: a policy is parsed by nobody who could change his uid.
2. Everything that decoding needs is imported with this module, before any fork.
"""

from typing import Final

import msgspec

from halod.harnesses.dialect import Location
from halod.home import Home
from halod.policy.model import Registry
from halod.roles.answer import Answer
from halod.roles.limits import MIB
from halod.roles.protocol import Target
from halod.roles.scan import Task, scan_home
from halod.roles.worker import Job


class Plan(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """How to scan or watch a home, the same for every account.

    `registry` is None for an inventory, and for a watcher, which compares nothing. `extra` are the locations
    that settings add, numbered after the table's own. The others are those of `Home.open`.
    """

    registry: Registry | None = None
    extra: tuple[Location, ...] = ()
    max_file_bytes: int = 128 * MIB
    link_roots: tuple[str, ...] = ()


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Plan)


def encode(plan: Plan) -> bytes:
    """Encode a Plan, in the agent."""
    return _ENCODER.encode(plan)


def decode(payload: bytes) -> Plan:
    """Decode a Plan, in a worker or watcher. Raises msgspec.MsgspecError."""
    return _DECODER.decode(payload)


class Sealed:
    """A payload that its worker opens once."""

    __slots__ = ("_data", "_plan")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._plan: Plan | None = None

    def plan(self) -> Plan:
        """Give the Plan. Raises msgspec.MsgspecError."""
        if self._plan is None:
            self._plan = decode(self._data)
        return self._plan


class Ordered(Job, frozen=True, kw_only=True):
    """A job whose payload is sealed until the worker has given its rights away; part `key` of scan `scan`."""

    scan: int
    key: int

    @classmethod
    def to(cls, scan: int, target: Target, payload: bytes) -> "Ordered":
        """Make the job that scans a target."""
        return cls(
            scan=scan,
            key=target.key,
            uid=target.uid,
            gid=target.gid,
            groups=target.groups,
            home=target.home,
            listed=target.known,
            payload=Sealed(payload),
        )

    def open(self) -> Home:
        """Open the home as the Plan says, in the worker. Raises Refused, OSError; MsgspecError: no Plan."""
        plan = _plan(self)
        told = msgspec.structs.replace(self, max_file_bytes=plan.max_file_bytes, link_roots=plan.link_roots)
        return Job.open(told)


def scan(home: Home, job: Job) -> Answer:
    """Read one home as ordered, and answer for it: the `scan` of the service's pool."""
    plan = _plan(job)
    task = Task.of(plan.registry, extra=plan.extra)
    return scan_home(home, msgspec.structs.replace(job, payload=task))


def _plan(job: Job) -> Plan:
    if not isinstance(job.payload, Sealed):
        raise TypeError("not an order of the agent")
    return job.payload.plan()
