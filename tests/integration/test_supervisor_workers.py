# SPDX-License-Identifier: Apache-2.0
"""Several workers, some of them hostile: each costs its own outcome only."""

import ctypes
import os
import signal
import struct
import time

import msgspec
import pytest

from halod.roles import supervisor, worker
from halod.roles.answer import Answer
from halod.roles.confine import ANSWER_FD
from halod.roles.limits import Limits
from tests.support.guard import LONG
from tests.support.roles import GID, UID, UNHURRIED, children, descriptors, make_home, public_directory

OWNER = UID if os.geteuid() == 0 else os.geteuid()
GOOD = Answer(files=7)


@pytest.fixture
def place():
    with public_directory() as made:
        yield made


@pytest.fixture
def job(place):
    home = make_home(place, uid=OWNER)

    def make(payload=None):
        return worker.Job(uid=OWNER, gid=GID, home=home, payload=payload, trusted_links=False)

    return make


def _segfault():
    ctypes.string_at(0)


def _write(data):
    while data:
        data = data[os.write(ANSWER_FD, data) :]


def _flood():
    while True:
        _write(b"x" * 65536)


def _say(data, code=0):
    _write(data)
    os._exit(code)


def _exit():
    raise SystemExit(0)


def _spin():
    while True:
        pass


def _recurse():
    return [_recurse()]


def _close_and_hang():
    os.close(ANSWER_FD)
    signal.pause()


HOSTILE = {
    "raises": (lambda: 1 / 0, "worker-crashed"),
    "system-exit": (_exit, "worker-crashed"),
    "segfault": (_segfault, "worker-crashed"),
    "recursion": (_recurse, "worker-crashed"),
    "exits-at-once": (lambda: os._exit(1), "worker-crashed"),
    "exits-well-and-silent": (lambda: os._exit(0), "worker-invalid"),
    "answers-then-fails": (lambda: _say(msgspec.msgpack.encode(GOOD), 9), "worker-crashed"),
    "answers-twice": (lambda: _say(msgspec.msgpack.encode(GOOD) * 2), "worker-invalid"),
    "answers-and-goes-on": (lambda: _write(msgspec.msgpack.encode(GOOD)) or GOOD, "worker-invalid"),
    "half-an-answer": (lambda: _say(msgspec.msgpack.encode(GOOD)[:-2]), "worker-invalid"),
    "no-msgpack": (lambda: _say(b"CANARY \xc1\xff"), "worker-invalid"),
    "deep": (lambda: _say(b"\x91" * 500_000), "worker-invalid"),
    "another-type": (lambda: "CANARY", "worker-crashed"),
    "wrong-fields": (lambda: Answer(rows=("CANARY",)), "worker-invalid"),
    "flood": (_flood, "worker-invalid"),
    "a-byte-too-much": (
        lambda: _say(b"\xc6" + struct.pack(">I", 1 << 20) + b"x" * (1 << 20)),
        "worker-invalid",
    ),
    "hangs": (signal.pause, "worker-timeout"),
    "spins": (_spin, "worker-timeout"),
    "hangs-up": (_close_and_hang, "worker-timeout"),
    "ignores-sigterm": (lambda: (signal.signal(signal.SIGTERM, signal.SIG_IGN), _spin()), "worker-timeout"),
    "no-home": (lambda: os._exit(worker.HOME_UNAVAILABLE), "home-unavailable"),
}


class Clock:
    """The system's clock, which a test can put forward."""

    ahead = 0.0

    def __call__(self):
        return time.monotonic() + self.ahead


def scan(home, job):
    if job.payload is None:
        return Answer(files=len(home.read(".claude.json").data) and 7)
    return HOSTILE[job.payload][0]()


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_a_hostile_worker_costs_exactly_one_outcome(job, kind, capfd):
    before = descriptors()
    clock = Clock()
    pool = supervisor.Pool(scan, limits=UNHURRIED, clock=clock)
    for one in (job(), job(kind), job()):
        pool.submit(one)
    outcomes = []
    while pool.busy:
        outcomes += [supervisor.decode(ended) for ended in pool.step()]
        if len(outcomes) == 2 and HOSTILE[kind][1] == "worker-timeout":
            clock.ahead = UNHURRIED.wall  # the others are done: its time is over
        else:
            supervisor.pause(pool)
    assert len(outcomes) == 3
    said = {one.job.payload: one for one in outcomes}
    assert said[kind].failure == HOSTILE[kind][1]
    assert said[kind].answer is None
    assert [one.answer.files for one in outcomes if one.job.payload is None] == [7, 7]
    assert descriptors() == before
    assert children() == []
    assert capfd.readouterr() == ("", "")


def test_cpu_time_is_limited_and_called_a_timeout(job):
    (outcome,) = supervisor.run([job("spins")], scan, limits=Limits(wall=LONG, cpu=1))
    assert outcome.failure == "worker-timeout"


def test_an_answer_of_the_full_length_is_taken(job):
    answer = Answer(read=tuple((number, ("x" * 100,)) for number in range(9000)))
    assert 900_000 < len(msgspec.msgpack.encode(answer)) < 1 << 20
    (outcome,) = supervisor.run([job()], lambda *_: answer, limits=UNHURRIED)
    assert outcome.answer.read == answer.read


def test_an_answer_that_is_too_long_is_not(job):
    answer = Answer(read=tuple((number, ("x" * 100,)) for number in range(12000)))
    (outcome,) = supervisor.run([job()], lambda *_: answer, limits=UNHURRIED)
    assert outcome.failure == "worker-invalid"


def test_at_most_two_work_at_once(job):
    pool = supervisor.Pool(scan, limits=UNHURRIED)
    for _ in range(7):
        pool.submit(job())
    most, done = 0, []
    while pool.busy:
        done += pool.step()
        most = max(most, len(children()))
        supervisor.pause(pool)
    assert most == 2
    assert [supervisor.decode(ended).answer for ended in done] == [GOOD] * 7


def test_an_iterator_that_is_dropped_ends_its_workers(job):
    before = descriptors()
    outcomes = supervisor.run([job(), job("hangs"), job("hangs")], scan, limits=UNHURRIED)
    assert next(outcomes).answer is not None
    outcomes.close()
    assert children() == []
    assert descriptors() == before


def test_a_supervisors_signal_handler_does_not_run_in_its_worker(job):
    caught = []
    before = signal.signal(signal.SIGUSR1, lambda *_: caught.append(os.getpid()))
    try:

        def scan_with_signal(_home, _job):
            return Answer(files=1 if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL else 0)

        (outcome,) = supervisor.run([job()], scan_with_signal, limits=UNHURRIED)
        assert outcome.answer.files == 1
        os.kill(os.getpid(), signal.SIGUSR1)
        assert caught == [os.getpid()]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_buffers_of_the_supervisor_are_not_written_twice(job, tmp_path):
    with open(tmp_path / "log", "w") as log:
        log.write("once")
        list(supervisor.run([job()], scan, limits=UNHURRIED))
    assert (tmp_path / "log").read_text() == "once"
