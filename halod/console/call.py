# SPDX-License-Identifier: Apache-2.0
"""One request as an endpoint sees it, after the gate has let it in."""

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request

from halod.console.access import Actor
from halod.console.clock import Clock
from halod.console.settings import Settings
from halod.console.store.engine import Store

if TYPE_CHECKING:
    from halod.console.metrics import Metrics


class Console(msgspec.Struct, frozen=True, kw_only=True):
    """What a running console has; made once in `app.build`."""

    settings: Settings
    store: Store
    clock: Clock
    metrics: "Metrics"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `address` is the client's, by the declared proxy's word if there is one."""

    console: Console
    request: Request
    actor: Actor
    body: bytes
    address: str
