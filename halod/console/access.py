# SPDX-License-Identifier: Apache-2.0
"""Who may do what: roles, the access that a route asks for, and who is asking.

Every route of the console states its `Access`; `tests/console/test_authorisation.py` tries every route with every
role and with none, so a route without a decision does not pass.
"""

from collections.abc import Callable
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from starlette.responses import Response

    from halod.console.call import Call

Method = Literal["GET", "POST", "PUT", "DELETE"]


class Role(IntEnum):
    """What a person or an API token may do; each includes the one before."""

    NONE = 0
    VIEWER = 1
    """Sees everything but the audit log; exports."""
    OPERATOR = 2
    """Accepts and refuses devices, revokes device tokens, retries webhooks."""
    ADMIN = 3
    """Makes API tokens and enrolment keys, publishes the policy, reads the audit log."""


class Access(Enum):
    """What a route asks of the one who calls it."""

    PUBLIC = "public"
    """Nothing: health, static files, signing in, and the signed policy."""
    DEVICE = "device"
    """A device token, which the route checks itself."""
    ENROLL_KEY = "enroll-key"
    """An enrolment key, which the route checks itself."""
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking. `kind` is none for a caller without session and token."""

    kind: Literal["none", "session", "api-token"] = "none"
    name: str = ""
    role: Role = Role.NONE
    csrf: str = ""
    """The token that a form of this session carries; "" for an API token, which no browser sends by itself."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One route: the only way in which something gets an address."""

    method: Method
    path: str
    """As Starlette writes it: `/devices/{device}`."""
    name: str
    access: Access
    endpoint: "Callable[[Call], Response]"
    """A plain function: it runs on a worker thread and may ask the store."""
    body: int = 0
    """Most bytes of a body; 0: a body is refused."""
    page: bool = False
    """A page for people: who is not signed in is sent to /login and errors are pages; else problem+json."""
    summary: str = ""
    """One line for OpenAPI; "" keeps the route out of it."""
