# SPDX-License-Identifier: Apache-2.0
"""The test finding of `halod check --canary`: through the running agent to the endpoint, and back.

`send` is the hook that the agent's delivery fills; the types are the contract with `halod.check.network`.
"""

from typing import Literal

import msgspec

from halod.settings import Settings


class Result(msgspec.Struct, frozen=True):
    """How far a test finding came.

    `delivered`: the endpoint took it. `refused`: it came to the endpoint or the agent and no further.
    `unavailable`: it was not sent. `message` and `advice` are in words of ours.
    """

    outcome: Literal["delivered", "refused", "unavailable"]
    message: str
    advice: str = ""


def send(settings: Settings) -> Result:
    """Send one finding that names no server of anybody's, and wait until the endpoint has taken it."""
    _ = settings
    return Result(
        "unavailable",
        "not sent: a test finding goes through the running agent, which this version cannot ask yet",
        "the endpoint itself was asked above",
    )
