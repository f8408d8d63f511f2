# SPDX-License-Identifier: Apache-2.0
"""The test finding of `halod check --canary`: asked for on the control socket, and waited for.

The agent sends it (`trial`), as only it has token and network; this is the side of the command.
"""

import time
from typing import Final, Literal

import msgspec

from halod.agent.asking import ask
from halod.agent.reply import Canary, Tested
from halod.errors import EnvironmentFault
from halod.settings import Settings

PATIENCE: Final = 100.0
"""Seconds: a report under way, the test itself and taking it back may take 30 each."""
_PAUSE: Final = 0.1


class Result(msgspec.Struct, frozen=True):
    """How far a test finding came.

    `delivered`: the endpoint took it. `refused`: it came to the endpoint or the agent and no further.
    `unavailable`: it was not sent. `message` and `advice` are in words of ours.
    """

    outcome: Literal["delivered", "refused", "unavailable"]
    message: str
    advice: str = ""


def send(settings: Settings, *, patience: float = PATIENCE) -> Result:
    """Have the running agent send one finding that names no server of anybody's, and wait until it has."""
    number, end = 0, time.monotonic() + patience
    while True:
        try:
            said = ask(settings.run_dir, Canary(number=number))
        except EnvironmentFault as error:
            return Result("unavailable", f"not sent: {error.message}", error.advice)
        if said is None:
            return Result("unavailable", "not sent: the agent does not run", "start the service: it sends it")
        if not isinstance(said, Tested):
            words = getattr(said, "words", "it gave another answer than was asked for")
            return Result("refused", f"the agent did not send it: {words}", "run halod check as root")
        if said.outcome != "waiting":
            return _result(said)
        number = said.number
        if time.monotonic() >= end:
            return Result("refused", "the agent has not sent it in time", "halod status says how delivery is")
        time.sleep(_PAUSE)


def _result(said: Tested) -> Result:
    http = f"HTTP {said.http}, {said.milliseconds} ms" if said.http else f"{said.milliseconds} ms"
    if said.outcome == "delivered":
        return Result("delivered", f"a test finding was delivered ({http}); {said.words}")
    if said.outcome == "unavailable":
        return Result("unavailable", f"not sent: {said.words}")
    return Result("refused", f"a test finding was not delivered ({http}): {said.words}", "see halod status")
