# SPDX-License-Identifier: Apache-2.0
"""The order of a worker's life, with a recorder in place of the real system, and what each failure becomes."""

import os

import msgspec
import pytest

from halod.accounts import Account
from halod.home import Absent, Refused
from halod.roles import worker
from halod.roles.answer import Answer
from halod.roles.limits import Limits
from tests.support.recorder import Recorder

STEPS = [
    "detach",
    "descriptors",
    "limits",
    "identity",
    "undebuggable",
    "no_new_privileges",
    "follow",
    "landlock",
    "seccomp",
    "scan",
    "answer",
]


class Left(Exception):
    """Stands for the end of the process."""


class OpenJob(worker.Job, frozen=True):
    """A job whose home opens, or fails to, without a file system."""

    fault: object = None

    def open(self):
        if self.fault is not None:
            raise self.fault
        return "home"


def live(system, *, job=None, scan=None):
    """Run a worker's life in this process and give its exit code."""
    codes = []

    def note_scan(_home, _job):
        system.steps.append("scan")
        return Answer(files=1)

    def leave(code):
        codes.append(code)
        raise Left

    start = worker.Start(
        scan=scan or note_scan, limits=Limits(cpu=3), system=system, answer=70, life=71, supervisor=72
    )
    with pytest.raises(Left):
        worker.live(job or OpenJob(uid=12345, gid=12, groups=(7,), home="/nowhere"), start, leave)
    (code,) = codes
    return code


def said(system):
    return msgspec.msgpack.decode(system.arguments["answer"][0], type=Answer)


def test_rights_go_in_the_order_of_the_contract_before_the_scan():
    system = Recorder()
    assert live(system) == worker.DONE
    assert system.steps == STEPS


def test_each_step_gets_its_numbers():
    system = Recorder()
    live(system)
    assert system.arguments["descriptors"] == (70, 71)
    assert system.arguments["limits"] == (Limits(cpu=3),)
    assert system.arguments["identity"] == (12345, 12, (7,))
    assert system.arguments["follow"] == (72,)


@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("scan", "open")])
def test_a_step_that_fails_ends_the_worker_at_once(step):
    system = Recorder(fails=step)
    assert live(system) == worker.CRASHED
    assert system.steps == STEPS[: STEPS.index(step) + 1]


@pytest.mark.parametrize("fault", [Refused("home-unavailable"), Absent(), PermissionError(13, "no")])
def test_a_home_that_cannot_be_opened_has_its_own_exit_code(fault):
    system = Recorder()
    job = OpenJob(uid=12345, gid=12, home="/nowhere", fault=fault)
    assert live(system, job=job) == worker.HOME_UNAVAILABLE
    assert "scan" not in system.steps


@pytest.mark.parametrize(("landlock", "seccomp"), [(False, True), (True, False), (False, False)])
def test_a_missing_part_makes_the_sandbox_partial(landlock, seccomp):
    system = Recorder(landlock=landlock, seccomp=seccomp)
    assert live(system) == worker.DONE
    assert said(system).sandbox == "partial"


def test_a_scan_cannot_say_what_the_sandbox_is():
    system = Recorder()
    assert live(system, scan=lambda _home, _job: Answer(sandbox="partial")) == worker.DONE
    assert said(system).sandbox == "full"


@pytest.mark.parametrize(("uid", "listed"), [(0, True), (0, False), (12345, False)])
def test_root_reads_root_and_unknown_uids_under_landlock_only(uid, listed):
    job = OpenJob(uid=uid, gid=12, home="/nowhere", listed=listed)
    system = Recorder(landlock=False)
    assert live(system, job=job) == worker.HOME_UNAVAILABLE
    assert "scan" not in system.steps
    assert live(Recorder(), job=job) == worker.DONE


def test_an_ordinary_caller_needs_no_landlock_for_a_home_it_may_read_anyway():
    job = OpenJob(uid=0, gid=12, home="/nowhere", listed=False)
    assert live(Recorder(landlock=False, was_root=False), job=job) == worker.DONE


@pytest.mark.parametrize("error", [ValueError("CANARY"), MemoryError(), KeyboardInterrupt(), SystemExit(0)])
def test_whatever_a_scan_raises_is_a_crash(error, capfd):
    def scan(_home, _job):
        raise error

    assert live(Recorder(), scan=scan) == worker.CRASHED
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("rubbish", [None, "CANARY", {"rows": []}, 7])
def test_a_scan_that_gives_no_answer_is_a_crash(rubbish):
    system = Recorder()
    assert live(system, scan=lambda _home, _job: rubbish) == worker.CRASHED
    assert "answer" not in system.arguments


def test_a_job_takes_over_an_account_and_does_not_show_its_payload():
    account = Account(name="dev", uid=501, gid=20, groups=(20, 80), home="/Users/dev", listed=False)
    job = worker.Job.of(account, "CANARY-payload", max_file_bytes=5, link_roots=("~",), trusted_links=False)
    assert (job.name, job.uid, job.gid, job.groups, job.home) == ("dev", 501, 20, (20, 80), "/Users/dev")
    assert (job.listed, job.max_file_bytes, job.link_roots) == (False, 5, ("~",))
    assert job.payload == "CANARY-payload"
    assert repr(job) == "<Job>"


def test_a_job_opens_its_home(tmp_path):
    job = worker.Job(uid=os.geteuid(), gid=0, home=str(tmp_path), trusted_links=False)
    home = job.open()
    try:
        assert os.path.samestat(os.fstat(home.fd), os.stat(tmp_path))
    finally:
        home.close()


@pytest.mark.parametrize("home", ["", ".", "home/dev"])
def test_an_account_without_an_absolute_home_does_not_get_the_callers_folder(tmp_path, monkeypatch, home):
    """An empty home in the password database must not make the current folder the account's."""
    (tmp_path / "home/dev").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refused) as refusal:
        worker.Job(uid=os.getuid(), gid=os.getgid(), home=home).open()
    assert refusal.value.reason == "home-unavailable"
