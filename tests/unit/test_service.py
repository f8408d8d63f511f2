# SPDX-License-Identifier: Apache-2.0
"""The supervisor of the service, with stand-ins for agent and watcher: what it grants, and how it ends."""

import functools
import os
import select
import signal
import socket
import time

import msgspec
import pytest

from halod.roles import order, watcher, watching
from halod.roles import service as supervising
from halod.roles.channel import Channel
from halod.roles.notify import Notifier
from halod.roles.protocol import (
    Alive,
    Answered,
    Changed,
    Go,
    Leaving,
    Loaded,
    Ready,
    ReloadRefused,
    Scan,
    Stop,
    Target,
    Watch,
    Watcher,
    Words,
    frame,
)
from halod.roles.service import CLOSING, PATIENCE, Service
from halod.roles.supervisor import Pool
from tests.support.guard import HANG, LONG, until
from tests.support.roles import (
    GID,
    UID,
    UNHURRIED,
    children,
    descriptors,
    in_child,
    make_home,
    public_directory,
)

ROOT = os.geteuid() == 0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
ME = (UID, GID) if ROOT else (os.getuid(), os.getgid())


class Peer:
    """A stand-in for an agent, in its own process: speaks the protocol and blocks."""

    def __init__(self, descriptor, supervisor):
        self.channel = Channel(socket.socket(fileno=descriptor), "agent")
        self.supervisor = supervisor
        self._held = []

    def signal(self, number):
        """Send the supervisor a signal. Who has heard Go knows that it hears signals by now."""
        os.kill(self.supervisor, number)

    def send(self, *messages):
        for message in messages:
            self.channel.send(message)

    def take(self):
        """Give the next message, None when the supervisor is gone."""
        while not self._held:
            if self.channel.ended:
                return None
            flags = select.POLLIN | (select.POLLOUT if self.channel.waiting else 0)
            poll = select.poll()
            poll.register(self.channel.fileno(), flags)
            poll.poll(10000)
            self.channel.flush()
            self._held += self.channel.receive()
        return self._held.pop(0)

    def until(self, kind):
        while (message := self.take()) is not None:
            if isinstance(message, kind):
                return message
        return None


def target(home, key=1, uid=ME[0]):
    return Target(key, uid, ME[1], (), home)


def no_watcher():
    raise OSError


def unhurried(patience=LONG):
    """Give agents, watchers and workers far longer to work and to end than a machine may stand still."""
    supervising.PATIENCE = patience
    supervising.CLOSING = watching.GRACE = LONG
    supervising.Pool = functools.partial(Pool, limits=UNHURRIED)


def supervise(behave, load=no_watcher, act=None, patience=LONG):
    """Run a supervisor in a child, with an agent that does `behave(peer)` after Go; what came of it.

    `behave` gives the exit code. `act` is called in the supervisor's process before the agent is started.
    `patience` are the seconds that an agent has to end.
    """

    def entry(descriptor, supervisor):
        peer = Peer(descriptor, supervisor)
        peer.send(Loaded())
        peer.until(Go)
        return behave(peer)

    def run():
        unhurried(patience)
        said = []
        service = Service(entry, load, notifier=Notifier({}), tell=lambda event, **_: said.append(event))
        if act is not None:
            act(service)
        before = descriptors()
        began = time.monotonic()
        code = service.run()
        spent = time.monotonic() - began
        return code, said, spent, children(), descriptors() == before

    return in_child(run)


def test_a_scan_is_done_by_a_worker():
    """An account's answer comes back as bytes, with the numbers of its request; the rest is silence."""
    with public_directory() as directory:
        home = make_home(directory)

        def behave(peer):
            peer.send(Scan(7, (target(home, 3),), order.encode(order.Plan())))
            answered = peer.until(Answered)
            good = (answered.id, answered.key, answered.failure) == (
                7,
                3,
                "",
            ) and b"CANARY-command" not in answered.answer
            peer.send(Ready(), Words("x"), Leaving("done"))
            return 0 if good else 9

        code, said, _, left, closed = supervise(behave)
        assert (code, said, left, closed) == (0, [], [], True)


def test_a_hundred_scans_leave_nothing_behind():
    """No zombie and no descriptor is left over by a hundred cycles of two accounts."""
    with public_directory() as directory:
        homes = [make_home(directory, name=f"home{n}") for n in range(2)]

        def behave(peer):
            payload = order.encode(order.Plan())
            for number in range(100):
                peer.send(Scan(number, tuple(target(home, key) for key, home in enumerate(homes)), payload))
                for _ in homes:
                    if peer.until(Answered).failure:
                        return 9
            peer.send(Leaving("done"))
            return 0

        code, said, _, left, closed = supervise(behave)
        assert (code, said, left, closed) == (0, [], [], True)


def test_a_payload_that_is_none_costs_the_scan():
    """A worker that cannot read its order crashes; the service goes on."""
    with public_directory() as directory:
        home = make_home(directory)

        def behave(peer):
            peer.send(Scan(1, (target(home),), b"\xc1"))
            failure = peer.until(Answered).failure
            peer.send(Leaving("done"))
            return 0 if failure == "worker-crashed" else 9

        assert supervise(behave)[0] == 0


REQUESTS = {
    "relative": Target(1, *ME, (), "home"),
    "dots": Target(1, *ME, (), "/home/../etc"),
    "nul": Target(1, *ME, (), "/ho\0me"),
    "long": Target(1, *ME, (), "/" + "x" * 5000),
    "minus one": Target(1, 2**32 - 1, 5, (), "/home/x"),
    "negative": Target(1, -1, 5, (), "/home/x"),
    "group": Target(1, *ME, (2**33,), "/home/x"),
    "gid": Target(1, ME[0], -1, (), "/home/x"),
    "key": Target(-1, *ME, (), "/home/x"),
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("kind", ["scan", "watch"])
def test_what_may_not_be_asked_ends_the_service(name, kind):
    """An agent that asks for what no agent asks for is ended, and everything with it."""
    targets = (REQUESTS[name],)

    def behave(peer):
        peer.send(Scan(1, targets, b"") if kind == "scan" else Watch(targets, b""))
        peer.until(Stop)
        return 0

    code, said, _, left, closed = supervise(behave)
    assert (code, said, left, closed) == (1, ["agent-broken"], [], True)


@pytest.mark.skipif(not ROOT, reason="only root takes on other ids")
def test_root_scans_no_home_with_uid_0():
    """Whatever an agent says, no worker keeps the supervisor's rights."""

    def behave(peer):
        peer.send(Scan(1, (Target(1, 0, 0, (), "/root"),), b""))
        peer.until(Stop)
        return 0

    assert supervise(behave)[:2] == (1, ["agent-broken"])


def test_too_many_accounts_end_the_service():
    """A thousand accounts are many, a thousand and one a fault; so is one account twice."""
    for targets in (
        tuple(target("/home/x", key) for key in range(1001)),
        (target("/home/x", 1), target("/home/y", 1)),
    ):

        def behave(peer, targets=targets):
            peer.send(Scan(1, targets, b""))
            peer.until(Stop)
            return 0

        assert supervise(behave)[:2] == (1, ["agent-broken"])


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\0\0\0\1\xc1", b"\0\0\0\2\x91\xa0"])
def test_rubbish_from_the_agent_ends_the_service(data):
    """What is no message of the protocol ends the connection and the service."""

    def behave(peer):
        os.write(peer.channel.fileno(), data)
        peer.until(Stop)
        return 0

    assert supervise(behave)[:2] == (1, ["agent-broken"])


def test_an_agent_that_never_stops_talking_delays_nothing():
    """The supervisor hears a signal, and ends by itself, while its agent floods it with good messages."""
    flood = frame(Alive()) * 30000

    def behave(peer):
        os.set_blocking(peer.channel.fileno(), True)
        os.write(peer.channel.fileno(), flood)  # more than a socket holds: the supervisor is reading
        peer.signal(signal.SIGTERM)
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            os.write(peer.channel.fileno(), flood)
        return 0

    code, said, spent, _, _ = supervise(behave, patience=PATIENCE)
    assert (code, said) == (0, ["agent-stuck"])
    assert spent < HANG


def test_a_child_that_an_agent_left_behind_does_not_keep_the_supervisor():
    """The agent is gone, somebody else holds its connection and talks on: that is not listened to."""
    flood = frame(Alive()) * 30000

    def behave(peer):
        if os.fork():
            return 0
        os.set_blocking(peer.channel.fileno(), True)
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            os.write(peer.channel.fileno(), flood)
        return 0

    code, said, spent, _, _ = supervise(behave)
    assert (code, said) == (1, ["agent-died"])
    assert spent < HANG


def test_scans_that_pile_up_end_the_service():
    """Each holds a payload, megabytes of it: an agent that asks for more than are done is broken."""
    with public_directory() as directory:
        home = make_home(directory)

        def behave(peer):
            for _ in range(40):
                peer.send(Scan(1, tuple(target(home, key) for key in range(20)), order.encode(order.Plan())))
            peer.until(Stop)
            return 0

        assert supervise(behave)[:2] == (1, ["agent-broken"])


def test_an_agent_that_leaves_without_a_word_is_missed():
    """Exit code 0 without Leaving is no better than a crash."""
    assert supervise(lambda _peer: 0)[:2] == (1, ["agent-died"])


def test_an_agent_that_closes_its_connection_is_ended():
    """An agent that cannot be spoken to is of no use, even if it lives."""

    def behave(peer):
        peer.channel.close()
        time.sleep(LONG)
        return 0

    code, said, spent, left, _ = supervise(behave, patience=PATIENCE)
    assert (code, said, left) == (1, ["agent-died"], [])
    assert spent < HANG


def test_an_agent_that_says_why_it_leaves_gives_the_exit_code():
    """Leaving makes the agent's exit code that of the service; it has written its own line."""

    def behave(peer):
        peer.send(Leaving("locked"))
        return 3

    assert supervise(behave)[:2] == (3, [])


def test_an_agent_that_cannot_start_gives_its_code():
    """Before Loaded the agent's exit code counts: 2 for wrong settings."""

    def run():
        unhurried()
        said = []
        code = Service(
            lambda *_: 2, no_watcher, notifier=Notifier({}), tell=lambda event, **_: said.append(event)
        ).run()
        return code, said

    assert in_child(run) == (2, [])


def test_an_agent_that_crashes_while_it_loads_is_told_of():
    """A crash before Loaded has no line of its own."""

    def entry(*_):
        raise ValueError("CANARY")

    def run():
        unhurried()
        said = []
        code = Service(entry, no_watcher, notifier=Notifier({}), tell=lambda e, **_: said.append(e)).run()
        return code, said

    assert in_child(run) == (70, ["agent-died"])


def test_signals_are_heard_before_there_is_a_child():
    """Until then a signal ends the process as it ends any, and nobody is left behind; from then on it is obeyed."""
    heard = []

    def run():
        unhurried()
        service = Service(lambda *_: 2, no_watcher, notifier=Notifier({}), tell=lambda *_, **__: None)
        real = service._begin

        def begin():
            heard.append([signal.getsignal(number) == service._note for number in SIGNALS])
            heard.append(children())
            real()

        service._begin = begin
        return service.run(), heard

    assert in_child(run) == (2, [[True] * len(SIGNALS), []])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_first_agent_has_loaded_ends_it(number):
    """It comes while the agent is being started: there is nobody to ask, the agent is ended, and that is no fault."""

    def entry(*_):
        time.sleep(LONG)
        return 0

    def run():
        unhurried()
        said = []
        service = Service(entry, no_watcher, notifier=Notifier({}), tell=lambda e, **_: said.append(e))
        real = service._begin

        def begin():
            real()
            os.kill(os.getpid(), number)

        service._begin = begin
        return service.run(), said, children()

    assert in_child(run) == (0, [], [])


def test_an_agent_that_does_not_stop_is_killed_in_time():
    """Two seconds are the limit, whatever the agent does: its patience, and half a second to close."""

    def behave(peer):
        peer.signal(signal.SIGTERM)
        time.sleep(LONG)
        return 0

    code, said, spent, _, _ = supervise(behave, patience=PATIENCE)
    assert (code, said) == (0, ["agent-stuck"])
    assert PATIENCE <= spent < HANG
    assert PATIENCE + CLOSING <= 2


def test_a_hanging_worker_does_not_delay_the_end(monkeypatch):
    """SIGTERM ends workers too, at once, however long they may work."""
    monkeypatch.setattr(order, "scan", lambda *_: signal.pause())
    with public_directory() as directory:
        home = make_home(directory)

        def behave(peer):
            peer.send(Scan(1, tuple(target(home, key) for key in range(9)), order.encode(order.Plan())))
            until(lambda: len(children(peer.supervisor)) == 3)  # the agent and two workers
            peer.signal(signal.SIGTERM)
            return 0 if isinstance(peer.take(), Stop) else 9

        code, said, spent, left, _ = supervise(behave)
        assert (code, said, left) == (0, [], [])
        assert spent < HANG


def test_an_agent_hears_of_a_refused_reload():
    """The agent that goes on with the settings of before can say so."""
    started = []

    def act(service):
        real = service._begin

        def begin():
            started.append(1)
            if len(started) == 2:
                service._refused(2)
                return
            real()

        service._begin = begin

    def behave(peer):
        peer.signal(signal.SIGHUP)
        good = peer.until(ReloadRefused) is not None
        peer.send(Leaving("done"))
        return 0 if good else 9

    assert supervise(behave, act=act)[:2] == (0, ["reload-refused"])


def test_watchers_speak_to_the_agent():
    """What a watcher says arrives in the agent's words; numbers that it repeats arrive once."""

    def load():
        def main(_target, _payload, write, life):
            frames = [
                (watching.WATCHING, 0),
                (watching.CHANGED, 5),
                (watching.CHANGED, 5),
                (watching.CHANGED, 258),
            ]
            os.write(write, b"".join(bytes([kind]) + number.to_bytes(2, "big") for kind, number in frames))
            os.read(life, 1)

        return main

    with public_directory() as directory:
        home = make_home(directory)

        def behave(peer):
            peer.send(Watch((target(home),), b""))
            good = peer.until(Watcher) == Watcher(1, "watching") and peer.until(Changed) == Changed(
                1, (5, 258)
            )
            peer.send(Watch((), b""), Leaving("done"))
            return 0 if good else 9

        code, said, _, left, _ = supervise(behave, load)
        assert (code, said, left) == (0, [], [])


@pytest.mark.parametrize("data", [b"\x09\0\0", b"\0\0\0"])
def test_a_watcher_that_says_anything_else_is_replaced(data):
    """A frame of no kind: the watcher is ended, told of once, and started again after a second."""

    def load():
        def main(_target, _payload, write, life):
            os.write(write, data)
            os.read(life, 1)

        return main

    with public_directory() as directory:
        home = make_home(directory)

        def behave(peer):
            began = time.monotonic()
            peer.send(Watch((target(home),), b""))
            first, again = peer.until(Watcher), peer.until(Watcher)
            spent = time.monotonic() - began
            peer.send(Leaving("done"))
            return 0 if first == again == Watcher(1, "lost") and spent >= watching.FIRST else 9

        code, said, _, left, _ = supervise(behave, load)
        assert (code, said, left) == (0, ["watcher-lost"], [])


def test_a_home_that_is_not_there_is_no_lost_watcher():
    """An unmounted home: the agent is told, another watcher looks again, and no line says that one was lost."""

    def behave(peer):
        began = time.monotonic()
        peer.send(Watch((target("/no/such/home"),), b""))
        first, again = peer.until(Watcher), peer.until(Watcher)
        spent = time.monotonic() - began
        peer.send(Leaving("done"))
        return 0 if first == again == Watcher(1, "unavailable") and spent >= watching.FIRST else 9

    code, said, _, left, _ = supervise(behave, watcher.load)
    assert (code, said, left) == (0, [], [])


def test_a_flood_of_a_watcher_is_folded():
    """A watcher that never stops talking makes few messages, ten in a second, and nothing grows."""

    def load():
        def main(_target, _payload, write, _life):
            while True:
                os.write(write, (bytes([watching.CHANGED]) + b"\0\1") * 5000)

        return main

    with public_directory() as directory:
        home = make_home(directory)

        def behave(peer):
            began = time.monotonic()
            peer.send(Watch((target(home),), b""))
            count = sum(peer.until(Changed) is not None for _ in range(11))
            spent = time.monotonic() - began
            peer.send(Leaving("done"))
            return 0 if count == 11 and spent >= 10 * watching._PAUSE else 9

        assert supervise(behave, load)[0] == 0


def test_a_plan_comes_back_as_it_went():
    """What the agent orders is what the worker reads, once."""
    plan = order.Plan(max_file_bytes=70000, link_roots=("~",))
    sealed = order.Sealed(order.encode(plan))
    assert sealed.plan() == plan
    assert sealed.plan() is sealed.plan()
    with pytest.raises(msgspec.MsgspecError):
        order.decode(b"\x90x")
