# SPDX-License-Identifier: Apache-2.0
"""What the agent tells those who ask it on the control socket, and what they may ask. Types only.

A request is one line of JSON, REQUEST_BYTES at most; the reply is one line of JSON. Strings are those of a
status, or words of ours.
"""

from typing import Final, Literal

import msgspec

from halod.status import Status

REQUEST_BYTES: Final = 64 * 1024
REPLY_BYTES: Final = 64 * 1024 * 1024
SOCKET_NAME: Final = "halod.sock"

Sandbox = Literal["full", "partial", "unknown"]
WatcherWord = Literal["watching", "starting", "limited", "unavailable", "lost", "off"]


class Ask(msgspec.Struct, frozen=True, tag_field="command", tag="status", forbid_unknown_fields=True):
    """Tell how you are. Root hears everything, others the state of the service and their own rows."""


class Submit(msgspec.Struct, frozen=True, tag_field="command", tag="submit", forbid_unknown_fields=True):
    """Take the status of a `halod scan --send` and deliver it. Root only."""

    status: Status


class Canary(msgspec.Struct, frozen=True, tag_field="command", tag="canary", forbid_unknown_fields=True):
    """Send a test finding (`number` 0), or tell how the test of this number is. Root only."""

    number: int = 0


Request = Ask | Submit | Canary


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of the parts of a reply: camelCase names, as in a status."""


class Watched(_Part, frozen=True, kw_only=True):
    """One account and how it is watched between timers."""

    user: str
    watcher: WatcherWord


class Sent(_Part, frozen=True, kw_only=True):
    """Delivery. `outcome` is "" before the first try, "off" without report.url; `waiting` transitions."""

    outcome: str
    time: str = ""
    http: int = 0
    failures: int = 0
    accepted: str = ""
    waiting: int = 0
    dropped: int = 0
    enrolment: str = "none"


class Followed(_Part, frozen=True, kw_only=True):
    """The policy that is fetched: version 0 before the first good one. Times as in a status, "" for none.

    `trouble` says in words what went wrong at the last try, also where that is no problem yet.
    """

    version: int
    issued: str = ""
    expires: str = ""
    since: str = ""
    asked: str = ""
    trouble: str = ""


class Reply(_Part, frozen=True, kw_only=True, tag_field="reply", tag="status"):
    """How the service is. `problems` are sentences for a person; empty when nothing is wrong. `warnings` are what
    may be meant.

    `status` is the newest one, for a caller who is not root with that caller's rows only. `cycles` counts
    since the state was made; `next_cycle` is in seconds.
    """

    version: str
    started: str
    now: str
    sandbox: Sandbox
    accounts: tuple[Watched, ...]
    delivery: Sent
    problems: tuple[str, ...]
    status: Status | None
    cycles: int = 0
    next_cycle: int = 0
    warnings: tuple[str, ...] = ()
    policy: Followed | None = None
    """None when no policy is fetched."""


class Taken(_Part, frozen=True, kw_only=True, tag_field="reply", tag="taken"):
    """A submitted status is in the state and on its way."""


class Tested(_Part, frozen=True, kw_only=True, tag_field="reply", tag="tested"):
    """How a test finding is. `waiting`: ask again. `words` say why, or what became of it; `http` is a status or 0."""

    number: int
    outcome: Literal["waiting", "delivered", "refused", "unavailable"]
    words: str = ""
    http: int = 0
    milliseconds: int = 0


class Refused(_Part, frozen=True, kw_only=True, tag_field="reply", tag="refused"):
    """A request was refused; `words` say why."""

    words: str


Said = Reply | Taken | Tested | Refused
