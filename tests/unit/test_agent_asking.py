# SPDX-License-Identifier: Apache-2.0
"""Asking on the control socket, when the service is slow, hostile or beset."""

import os
import socket
import threading
import time

import pytest

from halod.agent import asking
from halod.agent.reply import SOCKET_NAME, Ask, Taken
from halod.errors import EnvironmentFault
from tests.support.guard import HANG, LONG


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch):
    """Give the service longer than a machine may stand still."""
    monkeypatch.setattr(asking, "_SECONDS", LONG)


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(tmp_path / SOCKET_NAME))
        sock.listen(0)
        yield sock


def serve(listener, answer):
    def run():
        sock, _ = listener.accept()
        with sock:
            sock.recv(1000)
            answer(sock)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_an_answer_is_one_line(tmp_path, listener):
    """What the service says, by type."""
    thread = serve(listener, lambda sock: sock.sendall(b'{"reply":"taken"}\n'))
    assert asking.ask(str(tmp_path), Ask()) == Taken()
    thread.join(HANG)


def test_nobody_there_and_rubbish_are_told_apart(tmp_path, listener):
    """No service is None; an answer that is none is a fault."""
    thread = serve(listener, lambda sock: sock.sendall(b"{}\n"))
    with pytest.raises(EnvironmentFault):
        asking.ask(str(tmp_path), Ask())
    thread.join(HANG)
    listener.close()
    assert asking.ask(str(tmp_path), Ask()) is None


def test_a_service_that_dribbles_holds_nobody(tmp_path, listener, monkeypatch):
    """The limit is for the whole answer, not for each byte of it."""
    monkeypatch.setattr(asking, "_SECONDS", 1.0)
    done = threading.Event()

    def dribble(sock):
        try:
            while not done.wait(0.05):
                sock.sendall(b" ")
        except OSError:
            return

    thread = serve(listener, dribble)
    began = time.monotonic()
    assert asking.ask(str(tmp_path), Ask()) is None
    assert time.monotonic() - began < HANG
    done.set()
    thread.join(HANG)


@pytest.mark.skipif(
    os.uname().sysname != "Linux", reason="other kernels refuse at once when the queue is full"
)
def test_a_full_queue_is_waited_for(tmp_path, listener):
    """Somebody holds every place of the queue: the caller waits for its turn."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.connect(str(tmp_path / SOCKET_NAME))
        said = []
        asker = threading.Thread(target=lambda: said.append(asking.ask(str(tmp_path), Ask())))
        asker.start()
        asker.join(0.3)
        assert said == []
        listener.accept()[0].close()
        thread = serve(listener, lambda sock: sock.sendall(b'{"reply":"taken"}\n'))
        asker.join(HANG)
        assert said == [Taken()]
        thread.join(HANG)
