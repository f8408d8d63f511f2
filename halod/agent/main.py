# SPDX-License-Identifier: Apache-2.0
"""The life of the agent's process, from the fork to its exit code (design 2 and 9).

Order: read what is root's, become the agent's account, only then load what has the network, say Loaded, wait
for Go, take the lock, work. What goes wrong before Loaded is one line on stderr for the person who starts
the service; after it, a line of the log.
"""

import os
import select
import socket
import sys
from typing import Final

from halod.accounts import Database
from halod.agent import prepare
from halod.agent.logind import Seats
from halod.errors import HalodError
from halod.roles.channel import Channel
from halod.roles.protocol import Broken, Go, Leaving, Loaded, Stop
from halod.roles.say import fault

FAILED: Final = 1
CRASHED: Final = 70
_LOCK_PATIENCE: Final = 2.0


def main(
    descriptor: int,
    supervisor: int,
    *,
    config: str | None,
    once: bool,
    watchdog: float = 0.0,
    database: Database | None = None,
    seats: Seats | None = None,
) -> int:
    """Be the agent: give the exit code. The process has nothing of the supervisor's but `descriptor`.

    Args:
        descriptor: the connection to the supervisor.
        supervisor: its process id.
        config: the settings file, None for the system's own.
        once: one cycle, one try to deliver, and the end.
        watchdog: seconds within which the service manager wants a sign of life; 0: it does not.
        database: where accounts are looked up; None: the system's. Tests hand in their own, as of `seats`.
        seats: who is at the machine.
    """
    channel = Channel(socket.socket(fileno=descriptor), "agent")
    try:
        prepared = prepare.prepare(config)
        if prepared.ids is not None and not prepare.may_read_library(prepared.ids):
            _load(fetches=bool(prepared.settings.policy.url))
        prepare.become(prepared.ids, supervisor)
    except HalodError as error:
        fault(error.message, error.advice)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - its type may be shown, its text may not
        fault(f"a fault inside halod ({type(error).__name__})")
        return CRASHED
    os.umask(0o077)
    from halod import logs

    logs.configure(prepared.settings.log.level, prepared.settings.log.format)
    logs.install_hooks()
    log = logs.get("agent")
    try:
        _load(fetches=bool(prepared.settings.policy.url))
        from halod.agent.loop import Agent

        channel.send(Loaded())
        if not _may_go(channel):
            return 0
        agent = Agent(prepared, channel, once=once, watchdog=watchdog, database=database, seats=seats)
        try:
            agent.open(_LOCK_PATIENCE)
            return agent.run()
        finally:
            agent.close()
    except HalodError as error:
        log.error("the agent cannot work", code=error.code)  # noqa: TRY400 - a traceback reaches nobody
        fault(error.message, error.advice)
        return _leave(channel, error.code)
    except Exception:
        log.exception("a fault inside halod")
        return CRASHED


def _load(*, fetches: bool) -> None:
    """Import what has the network, and what is imported on occasion and must not be missed then.

    `fetches` says that a policy is fetched: then what checks its signature is needed too.

    This comes after the change of account, which cannot always be: an interpreter that lies where only root
    may read (its home, say) would be out of reach by then. No socket is opened by it.
    """
    import difflib  # noqa: F401 - advice on names
    import encodings.idna  # noqa: F401 - look-ups of hosts
    import stringprep  # noqa: F401 - of the same

    import psutil  # noqa: F401 - login records

    import halod.agent.loop
    import halod.policy.check

    if fetches:
        import halod.agent.fetch  # noqa: F401 - for `sources` and `loop`


def _may_go(channel: Channel) -> bool:
    """Wait for Go; False when it is not to come."""
    while not channel.ended:
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN | (select.POLLOUT if channel.waiting else 0))
        poll.poll()
        channel.flush()
        for message in channel.receive():
            if isinstance(message, Go):
                return True
            if isinstance(message, Stop):
                return False
    return False


def _leave(channel: Channel, reason: str) -> int:
    """Say that this end is on purpose: the line is written."""
    try:
        channel.send(Leaving(reason))
    except Broken:
        sys.stderr.flush()
    return FAILED
