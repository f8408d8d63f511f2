# SPDX-License-Identifier: Apache-2.0
"""What the supervisor says to the service manager, to the log and to the agent: forms and limits."""

import io
import json
import os
import socket
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.roles import say
from halod.roles.channel import Channel
from halod.roles.notify import Notifier
from halod.roles.protocol import MAX_FRAME, Alive, Broken, Leaving, Reader, Words, frame
from tests.support.service import Manager


@pytest.mark.parametrize("form", ["path", "abstract"])
def test_words_reach_the_manager(tmp_path, form):
    """To a path and to an abstract socket; the address leaves the environment."""
    manager = Manager(f"\0halod-words-{os.getpid()}" if form == "abstract" else str(tmp_path / "notify"))
    environment = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "3000000"}
    notifier = Notifier(environment)
    assert "NOTIFY_SOCKET" not in environment
    notifier.ready()
    notifier.alive()
    notifier.words("1 finding\nREADY=1\x1b[0m")
    notifier.reloading()
    notifier.stopping()
    ready, alive, words, reloading, usec, stopping = manager.read()
    assert (ready, alive, reloading, stopping) == ("READY=1", "WATCHDOG=1", "RELOADING=1", "STOPPING=1")
    assert words == "STATUS=1 finding READY=1 [0m"
    assert usec.startswith("MONOTONIC_USEC=")
    manager.close()


@pytest.mark.parametrize("address", ["", "relative", "/no/such/socket", "@" + "x" * 200])
def test_without_a_manager_nothing_happens(address):
    """No address, no socket there, an address of no kind: no error either."""
    notifier = Notifier({"NOTIFY_SOCKET": address} if address else {})
    notifier.ready()
    notifier.alive()


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, 0.0),
        ({"WATCHDOG_USEC": "2500000"}, 2.5),
        ({"WATCHDOG_USEC": "x"}, 0.0),
        ({"WATCHDOG_USEC": "2500000", "WATCHDOG_PID": str(os.getpid())}, 2.5),
        ({"WATCHDOG_USEC": "2500000", "WATCHDOG_PID": "1"}, 0.0),
    ],
)
def test_the_watchdog_is_for_this_process(environment, seconds):
    """WATCHDOG_PID names whom it is meant for."""
    assert Notifier(environment).watchdog == seconds


@pytest.mark.parametrize("event", say.EVENTS)
def test_lines_of_the_supervisor(event):
    """JSON for a journal, with the keys of the agent's lines; words for a terminal."""
    level, words = say.EVENTS[event]
    line = json.loads(say.line(level, event, words, {"pid": 5}, terminal=False))
    assert (line["level"], line["part"], line["code"], line["pid"]) == (level, "supervisor", event, 5)
    assert say.line(level, event, words, {"pid": 5}, terminal=True).startswith(b"halod: " + level.encode())


def test_a_fault_is_one_line(monkeypatch):
    """Control characters of a path do not reach the terminal."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    say.fault("no \x1b[31mfile", "make one\n")
    assert sys.stderr.getvalue() == "halod: error: no [31mfile; make one\n"


@given(st.lists(st.integers(1, 40), max_size=20))
@settings(max_examples=50)
def test_frames_are_cut_wherever_they_come_apart(sizes):
    """Whole messages come out, in order, however the bytes arrive."""
    messages = [Alive(), Words("x" * 50), Leaving("y")]
    data = b"".join(map(frame, messages))
    reader, found, at = Reader("supervisor"), [], 0
    for size in [*sizes, len(data)]:
        found += reader.feed(data[at : at + size])
        at += size
    assert found == messages


def test_a_message_that_is_too_long_is_refused_by_both_sides():
    """Four MiB are the limit."""
    with pytest.raises(Broken):
        frame(Words("x" * MAX_FRAME))
    with pytest.raises(Broken):
        Reader("supervisor").feed((MAX_FRAME + 1).to_bytes(4, "big"))


def test_messages_of_the_other_direction_are_none():
    """The agent does not understand what only it says."""
    with pytest.raises(Broken):
        Reader("agent").feed(frame(Words("x")))


def test_a_channel_keeps_what_the_other_side_does_not_take():
    """Nothing blocks; what waits is counted, and goes later."""
    one, other = socket.socketpair()
    sender, receiver = Channel(one, "agent"), Channel(other, "supervisor")
    for _ in range(4):
        sender.send(Words("x" * 1_000_000))
    assert sender.waiting > 0
    found = []
    while len(found) < 4:
        sender.flush()
        found += receiver.receive()
    assert sender.waiting == 0
    receiver.close()
    sender.send(Alive())
    sender.receive()
    assert sender.ended
    sender.close()
