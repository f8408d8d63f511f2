# SPDX-License-Identifier: Apache-2.0
"""Each step of the confinement, alone, in a child of its own."""

import os
import resource
import signal

import pytest

from halod.roles import confine
from halod.roles.limits import Limits
from tests.support.guard import LONG, until
from tests.support.roles import GID, UID, descriptors, in_child

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to change ids")


def test_a_worker_leads_a_session_of_its_own_with_default_signals():
    def detach():
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        confine.System().detach()
        handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU)]
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        return os.getsid(0) == os.getpid(), handlers, len(blocked)

    assert in_child(detach) == (True, [signal.SIG_DFL] * 3, 0)


def test_a_worker_keeps_two_pipes_and_nothing_else():
    keep = []

    def isolate():
        life, _ = os.pipe()
        os.dup2(life, 200)
        confine.System().descriptors(keep[0], life)
        keep.append(confine.ANSWER_FD)
        null = os.stat(os.devnull)
        stdio = [os.path.samestat(os.fstat(number), null) for number in (0, 1, 2)]
        inherited = [os.get_inheritable(number) for number in range(5)]
        return descriptors(), stdio, inherited

    assert in_child(isolate, keep=keep) == ([0, 1, 2, 3, 4], [True] * 3, [False] * 5)


def test_pipes_that_lie_where_stdio_should_be_survive():
    keep = []

    def isolate():
        os.dup2(keep[0], 4)
        life, _ = os.pipe()
        os.dup2(life, 0)
        confine.System().descriptors(4, 0)
        keep.append(confine.ANSWER_FD)
        return descriptors()

    assert in_child(isolate, keep=keep) == [0, 1, 2, 3, 4]


def test_where_descriptors_cannot_be_listed_many_are_closed(monkeypatch):
    def refuse(_path):
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refuse)
    assert confine.highest_descriptor() == 1 << 16


def test_an_alarm_ends_a_worker_nobody_watches():
    def limited():
        # Writing the result needs a pipe only, so the file size limit does not matter here.
        set_alarm, asked = signal.alarm, []
        signal.alarm = lambda seconds: asked.append(seconds) or set_alarm(seconds)
        confine.System().limits(Limits(wall=LONG))
        return asked, set_alarm(0) > 0, resource.getrlimit(resource.RLIMIT_CORE)

    assert in_child(limited) == ([LONG + 5], True, (0, 0))


@needs_root
def test_a_worker_of_root_is_the_account_and_nothing_more():
    def become():
        confine.System().identity(UID, GID, (GID, 54321))
        return os.getresuid(), os.getresgid(), sorted(os.getgroups())

    assert in_child(become) == ((UID,) * 3, (GID,) * 3, [GID, 54321])


@needs_root
def test_a_worker_of_an_ordinary_caller_stays_the_caller():
    def become():
        os.setgroups([])
        os.setresgid(GID, GID, GID)
        os.setresuid(UID, UID, UID)
        confine.System().identity(54321, 54321, (1, 2))
        return os.getresuid(), os.getresgid(), os.getgroups()

    assert in_child(become) == ((UID,) * 3, (GID,) * 3, [])


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="prctl is Linux's")
def test_a_worker_is_undebuggable_and_gains_no_privileges():
    def harden():
        system = confine.System()
        system.undebuggable()
        system.no_new_privileges()
        from halod.roles import libc

        return libc.prctl(3), libc.prctl(39)  # PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS

    assert in_child(harden) == (0, 1)


def test_a_worker_follows_its_supervisor_and_no_other():
    def follow():
        system = confine.System()
        system.follow(os.getppid())
        try:
            system.follow(1 << 22)
        except ProcessLookupError:
            return "gone"
        return "followed"

    assert in_child(follow) == "gone"


def test_a_worker_ends_when_the_pipe_to_its_supervisor_hangs_up():
    reader, writer = os.pipe()
    ready, child_ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(writer)
            confine.end_with_pipe(reader)
            os.write(child_ready, b"x")
            while True:
                signal.pause()
        finally:
            os._exit(99)
    assert os.read(ready, 1) == b"x"
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    os.close(writer)
    ended = []
    until(lambda: ended.append(os.waitpid(pid, os.WNOHANG)) or ended[-1][0])
    assert os.WEXITSTATUS(ended[-1][1]) == 1
    for descriptor in (reader, ready, child_ready):
        os.close(descriptor)


def test_a_system_that_is_not_linux_follows_by_the_pipe_and_has_no_sandbox():
    def live():
        import fcntl

        from halod.roles import libc

        reader, _writer = os.pipe()
        os.dup2(reader, confine.LIFE_FD)
        system = confine.System("darwin")
        system.undebuggable()
        system.no_new_privileges()
        system.follow(os.getppid())
        armed = bool(fcntl.fcntl(confine.LIFE_FD, fcntl.F_GETFL) & os.O_ASYNC)
        return armed, libc.prctl(39), system.seccomp()

    keep = []
    assert in_child(lambda: (keep.append(os.dup(keep[0])), live())[1], keep=keep) == (True, 0, False)


def test_arming_the_pipe_is_visible_in_its_flags():
    def arm():
        import fcntl

        reader, _writer = os.pipe()
        confine.end_with_pipe(reader)
        return bool(fcntl.fcntl(reader, fcntl.F_GETFL) & os.O_ASYNC)

    assert in_child(arm)


def test_an_answer_longer_than_the_pipe_arrives_whole():
    reader, writer = os.pipe()

    def answer():
        os.dup2(writer, confine.ANSWER_FD)
        os.close(writer)
        confine.System().answer(b"x" * 300_000)
        os.close(confine.ANSWER_FD)

    pid = os.fork()
    if pid == 0:
        try:
            answer()
        finally:
            os._exit(0)
    os.close(writer)
    data = b"".join(iter(lambda: os.read(reader, 65536), b""))
    os.close(reader)
    os.waitpid(pid, 0)
    assert data == b"x" * 300_000


def test_an_answer_goes_to_the_answer_pipe():
    keep = []

    def answer():
        reader, writer = os.pipe()
        result = os.dup(keep[0])
        keep.append(result)
        os.dup2(writer, confine.ANSWER_FD)
        confine.System().answer(b"answer")
        return os.read(reader, 100)

    assert in_child(answer, keep=keep) == b"answer"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="Landlock and seccomp are Linux's")
def test_the_sandbox_reads_the_home_and_nothing_else(tmp_path):
    (tmp_path / "inside").write_text("in")

    def confined():
        from halod.home import Home

        system = confine.System()
        home = Home.open(str(tmp_path), uid=os.geteuid(), trusted_links=False)
        system.no_new_privileges()
        parts = system.landlock(home), system.seccomp()
        inside = bytes(home.read("inside").data)
        try:
            os.open("/etc/passwd", os.O_RDONLY)
        except PermissionError:
            return parts, inside, "refused"
        return parts, inside, "read"

    assert in_child(confined) == ((True, True), b"in", "refused")
