# SPDX-License-Identifier: Apache-2.0
"""The supervisor's judgement: what an end means, what an answer may be, and what never holds it up."""

import errno
import os
import signal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halod.roles import supervisor, worker
from halod.roles.answer import Answer, Row
from halod.roles.limits import Limits
from tests.support.guard import LONG
from tests.support.roles import UNHURRIED, children, descriptors, make_home, public_directory

JOB = worker.Job(uid=12345, gid=12345, home="/nowhere")
ANSWER = Answer(
    rows=(
        Row(
            location=1, parts=("a",), name="n", transport="stdio", host="", sha256="0" * 64, scope="user",
            enabled=True, secret=False, kind="unapproved",
        ),
    ),
    files=3,
    definitions=1,
)  # fmt: skip


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (0, None),
        (worker.HOME_UNAVAILABLE << 8, "home-unavailable"),
        (worker.CRASHED << 8, "worker-crashed"),
        (1 << 8, "worker-crashed"),
        (int(signal.SIGSEGV), "worker-crashed"),
        (int(signal.SIGKILL), "worker-crashed"),
        (int(signal.SIGXCPU), "worker-timeout"),
    ],
)
def test_what_a_workers_end_means(status, failure):
    assert supervisor.failure_of(status) == failure


def _decoded(raw):
    return supervisor.decode(supervisor.Ended(JOB, raw))


def test_a_whole_answer_is_one():
    assert _decoded(msgspec.msgpack.encode(ANSWER)) == supervisor.Outcome(JOB, answer=ANSWER)


def test_a_failure_is_passed_on():
    ended = supervisor.Ended(JOB, failure="worker-timeout")
    assert supervisor.decode(ended) == supervisor.Outcome(JOB, failure="worker-timeout")


def _plain(**changes):
    fields = msgspec.to_builtins(ANSWER)
    row = fields[0][0]
    for at, value in changes.get("row", {}).items():
        row[at] = value
    for at, value in changes.get("top", {}).items():
        fields[at] = value
    return msgspec.msgpack.encode([*fields, *changes.get("more", ())])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc1",
        b"CANARY rubbish",
        msgspec.msgpack.encode(ANSWER)[:-1],
        msgspec.msgpack.encode(ANSWER) + b"\0",
        msgspec.msgpack.encode(ANSWER) * 2,
        msgspec.msgpack.encode({"rows": []}),
        msgspec.msgpack.encode("CANARY"),
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        _plain(more=["CANARY"]),
        _plain(row={3: "carrier-pigeon"}),
        _plain(row={6: "galaxy"}),
        _plain(row={9: "fine"}),
        _plain(row={0: "1"}),
        _plain(row={0: 1.5}),
        _plain(row={2: b"bytes"}),
        _plain(row={7: 1}),
        _plain(top={3: None}),
        _plain(top={6: "superb"}),
        _plain(top={5: ["weather"]}),
        b"\x91\xa1\xff",
    ],
)
def test_anything_but_one_whole_answer_is_invalid(raw):
    assert _decoded(raw) == supervisor.Outcome(JOB, failure="worker-invalid")


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_bytes_a_worker_can_write_raise(noise, cut):
    good = msgspec.msgpack.encode(ANSWER)
    for raw in (noise, good[:cut] + noise, good[:cut] + noise + good[cut:]):
        outcome = _decoded(raw)
        assert (outcome.answer is None) == (outcome.failure == "worker-invalid")


@pytest.fixture
def place():
    with public_directory() as made:
        yield made


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Stuck:
    """A waitpid that never sees a process end until a test lets it."""

    def __init__(self):
        self.held = True
        self.asked = []

    def __call__(self, pid, options):
        assert options == os.WNOHANG
        self.asked.append(pid)
        return (0, 0) if self.held else os.waitpid(pid, 0)


def _job(place, name="home"):
    owner = 12345 if os.geteuid() == 0 else os.geteuid()
    return worker.Job(uid=owner, gid=12345, home=make_home(place, uid=owner, name=name), trusted_links=False)


def _drain(pool):
    ended = []
    while pool.busy:
        supervisor.pause(pool)
        ended += pool.step()
    return ended


def test_a_worker_that_does_not_even_die_is_abandoned_and_later_buried(place):
    before = descriptors()
    clock, wait = Clock(), Stuck()
    job = _job(place)
    pool = supervisor.Pool(
        lambda _home, _job: ANSWER, limits=Limits(wall=20, grace=2), clock=clock, wait=wait
    )
    pool.submit(job)
    assert pool.step() == []
    clock.now += 20
    assert pool.step() == []
    assert 0 < pool.timeout() <= 2
    clock.now += 2
    assert pool.step() == [supervisor.Ended(job, failure="worker-timeout")]
    assert not pool.busy
    assert pool.timeout() is None
    assert descriptors() == before

    pool.submit(job)
    assert pool.step() == [supervisor.Ended(job, failure="worker-timeout")], "its home still hangs"
    wait.held = False
    pool.submit(job)
    (ended,) = _drain(pool)
    assert supervisor.decode(ended).answer == ANSWER
    assert children() == []


def test_an_abandoned_worker_somebody_else_reaped_is_forgotten(place):
    clock, wait = Clock(), Stuck()
    job = _job(place)
    pool = supervisor.Pool(
        lambda _home, _job: ANSWER, limits=Limits(wall=20, grace=0), clock=clock, wait=wait
    )
    pool.submit(job)
    pool.step()
    clock.now += 20
    while pool.busy:
        pool.step()
    os.waitpid(wait.asked[0], 0)
    wait.held = False
    pool.submit(job)
    assert supervisor.decode(_drain(pool)[0]).answer == ANSWER


def test_closing_does_not_wait_for_a_stuck_worker(place):
    before = descriptors()
    wait = Stuck()
    pool = supervisor.Pool(lambda _home, _job: ANSWER, limits=Limits(wall=LONG, grace=0.05), wait=wait)
    pool.submit(_job(place))
    pool.step()
    pool.close()
    assert not pool.busy
    assert descriptors() == before
    os.waitpid(wait.asked[0], 0)


def test_a_worker_somebody_else_reaped_counts_as_crashed(place):
    def lost(_pid, _options):
        raise ChildProcessError(errno.ECHILD, "no child")

    pool = supervisor.Pool(lambda _home, _job: ANSWER, limits=UNHURRIED, wait=lost)
    job = _job(place)
    pool.submit(job)
    pool.step()
    (pid,) = children()
    assert pool.step() == [supervisor.Ended(job, failure="worker-crashed")]
    os.waitpid(pid, 0)


def test_a_fork_that_fails_costs_one_job(place, monkeypatch):
    before = descriptors()

    def refuse():
        raise BlockingIOError(errno.EAGAIN, "fork")

    pool = supervisor.Pool(lambda _home, _job: ANSWER, limits=UNHURRIED)
    job = _job(place)
    pool.submit(job)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", refuse)
        assert pool.step() == [supervisor.Ended(job, failure="worker-crashed")]
    assert descriptors() == before
    pool.submit(job)
    assert supervisor.decode(_drain(pool)[0]).answer == ANSWER


def test_without_descriptors_for_processes_the_loop_looks_again_and_again(place, monkeypatch):
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    jobs = [_job(place, name) for name in ("one", "two", "three")]
    outcomes = list(supervisor.run(jobs, lambda _home, _job: ANSWER, limits=UNHURRIED))
    assert [outcome.answer for outcome in outcomes] == [ANSWER] * 3
    assert children() == []


def test_a_worker_whose_memory_is_watched_is_ended(place):
    def hungry(_home, _job):
        held = bytearray(64 * 1024 * 1024)
        while held:
            signal.pause()

    small = Limits(wall=LONG, watch_memory=True, memory=48 * 1024 * 1024)
    (outcome,) = supervisor.run([_job(place)], hungry, limits=small)
    assert outcome.failure == "worker-crashed"


def test_ignored_child_signals_do_not_hide_how_a_worker_ended(place):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        (outcome,) = supervisor.run([_job(place)], lambda _home, _job: ANSWER, limits=UNHURRIED)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert outcome.answer == ANSWER


def test_nothing_to_do_is_done():
    assert list(supervisor.run([], lambda _home, _job: ANSWER, limits=UNHURRIED)) == []
