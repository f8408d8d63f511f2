# SPDX-License-Identifier: Apache-2.0
"""The control socket: who may connect, what is bounded, what comes back."""

import json
import os
import select
import socket
import stat

import pytest

from halod.agent.control import CLIENTS, SECONDS, Control, peer_uid
from halod.agent.reply import REQUEST_BYTES, SOCKET_NAME, Ask, Taken
from halod.errors import EnvironmentFault
from tests.support.guard import HANG
from tests.support.roles import public_directory


class Time:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def asked():
    return []


@pytest.fixture
def control(tmp_path, asked):
    def handle(request, uid):
        asked.append((request, uid))
        return Taken()

    made = Control(str(tmp_path), handle, clock=Time())
    yield made
    made.close()


def connect(tmp_path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(HANG)
    sock.connect(str(tmp_path / SOCKET_NAME))
    return sock


def turn(control):
    poll = select.poll()
    control.register(poll)
    poll.poll(200)
    control.step()


def test_a_request_is_answered_with_the_callers_uid(tmp_path, control, asked):
    """The uid is the kernel's word; the connection is closed after the answer."""
    with connect(tmp_path) as sock:
        sock.sendall(b'{"command":')
        turn(control)
        turn(control)
        sock.sendall(b'"status"}\n')
        for _ in range(3):
            turn(control)
        assert json.loads(sock.recv(100)) == {"reply": "taken"}
        assert sock.recv(1) == b""
    assert asked == [(Ask(), os.getuid())]


def test_everybody_may_connect(tmp_path, control):
    """The socket is open to all; its handler decides."""
    assert stat.S_IMODE((tmp_path / SOCKET_NAME).stat().st_mode) == 0o666


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"{}\n",
        b'{"command":"exec"}\n',
        b'{"command":"status","x":1}\n',
        b"[" * 5000 + b"\n",
        b"\xff\n",
    ],
)
def test_rubbish_is_refused(tmp_path, control, asked, data):
    """What is no request is answered as such, and nobody is asked."""
    with connect(tmp_path) as sock:
        sock.sendall(data)
        for _ in range(4):
            turn(control)
        assert json.loads(sock.recv(200))["reply"] == "refused"
    assert asked == []


def test_a_request_without_end_is_refused(tmp_path, control, asked):
    """64 KiB are read and no more."""
    with connect(tmp_path) as sock:
        sock.settimeout(0.2)
        sent = 0
        try:
            while sent < 4 * REQUEST_BYTES:
                sent += sock.send(b"x" * 4096)
                turn(control)
        except OSError:
            pass
        assert sent < 4 * REQUEST_BYTES
    assert asked == []


def test_slow_callers_are_dropped(tmp_path, control):
    """A caller has seconds; then its place is another's."""
    with connect(tmp_path) as sock:
        turn(control)
        assert control.timeout() == SECONDS
        control._clock.now += SECONDS
        control.step()
        assert sock.recv(1) == b""
        assert control.timeout() is None


def test_too_many_callers_cost_the_one_who_waits_longest(tmp_path, control):
    """More than the limit are never held: the oldest of a flood goes, and who comes last is answered."""
    socks = [connect(tmp_path) for _ in range(CLIENTS + 5)]
    turn(control)
    late = connect(tmp_path)
    late.sendall(b'{"command":"status"}\n')
    for _ in range(4):
        turn(control)
        assert len(control._clients) <= CLIENTS
    assert json.loads(late.recv(100)) == {"reply": "taken"}
    assert socks[0].recv(1) == b""
    for sock in (*socks, late):
        sock.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can call as another account")
def test_a_flood_of_one_account_keeps_no_other_out(asked):
    """Idle callers of one account fill every place: root's and a third account's stay, and are answered."""

    def call(directory, uid):
        os.seteuid(uid)
        try:
            return connect(directory)
        finally:
            os.seteuid(0)

    def handle(request, uid):
        asked.append(uid)
        return Taken()

    with public_directory() as directory:
        control = Control(str(directory), handle, clock=Time())
        others = [call(directory, 0), call(directory, 4322)]
        flood = [call(directory, 4321) for _ in range(3 * CLIENTS)]
        for _ in range(6):
            turn(control)
        for sock in others:
            sock.sendall(b'{"command":"status"}\n')
            for _ in range(3):
                turn(control)
            assert json.loads(sock.recv(100)) == {"reply": "taken"}
        assert asked == [0, 4322]
        for sock in (*others, *flood):
            sock.close()
        control.close()


def test_a_stale_socket_is_replaced_and_other_things_are_not(tmp_path):
    """A socket of a run before is removed; a file in its place is an error."""
    first = Control(str(tmp_path), lambda *_: Taken())
    first._socket.close()
    second = Control(str(tmp_path), lambda *_: Taken())
    second.close()
    assert not (tmp_path / SOCKET_NAME).exists()
    (tmp_path / SOCKET_NAME).write_text("")
    with pytest.raises(EnvironmentFault):
        Control(str(tmp_path), lambda *_: Taken())
    assert (tmp_path / SOCKET_NAME).exists()


def test_a_path_that_is_too_long_is_said(tmp_path):
    """Unix sockets have short names."""
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    with pytest.raises(EnvironmentFault):
        Control(str(deep), lambda *_: Taken())


def test_the_peer_is_known():
    """The kernel names the process at the other end."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with one, other:
        assert peer_uid(one) == os.getuid()
