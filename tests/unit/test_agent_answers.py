# SPDX-License-Identifier: Apache-2.0
"""What the agent says of itself: problems, warnings, the sandbox, and the words that people read."""

import socket

import msgspec
import pytest

from halod.accounts import Account
from halod.agent.answers import Desk
from halod.agent.cycle import RELOAD, Cycles, Machinery
from halod.agent.loop import Agent
from halod.agent.people import Selection
from halod.agent.prepare import Prepared
from halod.agent.reply import Ask, Followed, Refused, Submit, Taken
from halod.agent.rows import Delivery
from halod.agent.sources import NoPolicy
from halod.agent.state import State
from halod.cli.status_words import render
from halod.harnesses.table import LOCATIONS
from halod.roles.answer import Answer
from halod.roles.channel import Channel
from halod.roles.protocol import Answered, Changed, Watcher
from halod.settings import Report, Settings
from halod.settings.model import State as StateTable
from tests.support.state import finding, status

NOON = "2026-11-30T12:00:00Z"
DEV = Account(name="dev", uid=1001, gid=1001, home="/home/dev")


class Clock:
    def monotonic(self):
        return 10.0

    def wall(self):
        return 1796040000.0


@pytest.fixture
def desk_of(tmp_path):
    def make(*, sandbox="full", failure="", platform="linux", url="https://halos.acme.example/r"):
        settings = Settings(report=Report(url=url))
        cycles = Cycles(Machinery.of(settings, NoPolicy()), Clock())
        cycles.refresh()
        under = cycles.begin("start", full=True)
        cycles.select(Selection(accounts=(DEV,)))
        (target,) = cycles.request().targets
        data = b"" if failure else msgspec.msgpack.encode(Answer(rows=(), sandbox=sandbox))
        cycles.answered(Answered(under.number, target.key, failure, data))
        desk = Desk(State(str(tmp_path / "state")), cycles, root=True, platform=platform)
        desk.newest = cycles.finish().status
        return desk

    return make


def test_nothing_is_wrong(desk_of):
    """Neither problem nor warning; the words say so."""
    reply = desk_of().handle(Ask(), 0)
    assert (reply.problems, reply.warnings, reply.sandbox) == ((), (), "full")
    assert "nothing is wrong" in render(reply)


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        (Followed(version=0), "fetched    no good policy yet\n"),
        (
            Followed(version=0, trouble="the policy cannot be fetched: because"),
            "no good policy yet; the policy cannot be fetched: because\n",
        ),
        (
            Followed(version=7, issued=NOON, expires=NOON, since=NOON, asked=NOON),
            "version 7 of 2026-11-30 12:00:00 UTC, expires 2026-11-30 12:00:00 UTC; server asked 2026-11-30 12:00:00 UTC\n",
        ),
    ],
)
def test_a_fetched_policy_is_told_of(desk_of, policy, line):
    """Version, expiry, the last question and what went wrong with it; without policy.url there is no line."""
    desk = desk_of()
    assert "fetched" not in render(desk.handle(Ask(), 0))
    desk.followed = lambda: policy
    reply = desk.handle(Ask(), 1001)
    assert reply.policy == policy
    assert " ".join(line.split()) in " ".join(render(reply).split())


@pytest.mark.parametrize(("platform", "count"), [("linux", 1), ("darwin", 0)])
def test_a_sandbox_in_part_is_no_problem(desk_of, platform, count):
    """A warning on Linux, and on macOS as it should be."""
    reply = desk_of(sandbox="partial", platform=platform).handle(Ask(), 0)
    assert (reply.sandbox, reply.problems, len(reply.warnings)) == ("partial", (), count)
    assert ("\nwarning" in render(reply)) is bool(count)
    assert "\nwrong" not in render(reply)


def test_a_watcher_in_part_makes_the_sandbox_partial(desk_of):
    """The weakest of workers and watchers counts."""
    desk = desk_of()
    desk.partial.add(1)
    reply = desk.handle(Ask(), 0)
    assert (reply.sandbox, len(reply.warnings)) == ("partial", 1)


def test_a_sandbox_that_is_not_known(desk_of):
    """Before the first scan, and after one whose worker failed."""
    desk = desk_of(failure="worker-crashed")
    assert "not known: no worker of the last scan ended well" in render(desk.handle(Ask(), 0))
    desk.newest = None
    assert "not known before the first scan" in render(desk.handle(Ask(), 0))


def test_a_refused_reload_is_a_problem(desk_of):
    """At once, and no second time when the status has it; another error of the status hides nothing."""
    desk = desk_of()
    desk._cycles.reload_refused = True
    assert desk.handle(Ask(), 0).problems == (RELOAD[1],)
    desk.newest = status(error_code=RELOAD[0], last_error=RELOAD[1])
    assert desk.handle(Ask(), 0).problems == (RELOAD[1],)
    desk.newest = status(error_code="scan-unanswered", last_error="late")
    assert desk.handle(Ask(), 0).problems == ("late", RELOAD[1])


@pytest.mark.parametrize(
    ("outcome", "http", "words"),
    [
        ("report-refused", 422, "the server refuses the report as it is"),
        ("connection-refused", 0, "the server refuses connections"),
        ("unauthorised", 401, "the server refuses the token"),
    ],
)
def test_why_the_last_report_did_not_arrive(desk_of, outcome, http, words):
    """A refused connection and a refused report are two things."""
    desk = desk_of()
    desk._state.note_delivery(Delivery(time="2026-11-30T09:15:02Z", outcome=outcome, http=http, failures=1))
    reply = desk.handle(Ask(), 0)
    (problem,) = reply.problems
    assert words in problem
    assert f"{outcome}{f' (HTTP {http})' if http else ''} 2026-11-30" in render(reply)


def test_a_home_that_is_not_there_is_shown(desk_of):
    """In the line of accounts; the scan's own row says what it means."""
    desk = desk_of()
    desk.watchers[1] = "unavailable"
    reply = desk.handle(Ask(), 0)
    assert reply.problems == ()
    assert "dev (home not there, looked for again)" in render(reply)


def test_a_watcher_that_begins_late_misses_nothing(tmp_path):
    """What changed before its first look is scanned; that it watches in part only stays shown."""
    settings = Settings(state=StateTable(dir=str(tmp_path / "state")))
    ours, theirs = socket.socketpair()
    agent = Agent(Prepared(settings=settings), Channel(ours, "agent"))
    agent._triggers.began_everything(0.0)
    for state in ("limited", "watching"):
        agent._watcher(Watcher(1, state), 0.0)
    assert agent._desk.watchers == {1: "limited"}
    assert agent._triggers.accounts(1.0) == {1}
    for state in ("lost", "watching", "partial"):
        agent._watcher(Watcher(1, state), 0.0)
    assert (agent._desk.watchers, agent._desk.partial) == ({1: "watching"}, {1})
    theirs.close()
    agent._channel.close()


@pytest.mark.parametrize(
    "row",
    [
        {"server": "https://h.example/CANARY"},
        {"server": "a\x1b[31m"},
        {"file": "~/\u202ex"},
        {"detail": "one\ntwo"},
        {"host": "user:CANARY@h.example"},
        {"user": "dev\x07"},
    ],
)
def test_a_submitted_status_holds_what_a_scan_says(desk_of, row):
    """Only root may hand one in, yet no text goes on to the console that halod itself would not send."""
    desk = desk_of()
    good = status(finding(server="notes", host="mcp.example.com"), ring="ring1")
    assert desk.handle(Submit(good), 0) == Taken()
    bad = status(finding(**row))
    assert desk.handle(Submit(bad), 0) == Refused(words="the status holds text that no scan gives")
    assert desk._state.newest().mcp_drift == good.mcp_drift
    assert desk.handle(Submit(good), 4321) == Refused(words="only root may submit a status")


def test_locations_that_there_are_not_are_not_waited_for(tmp_path):
    """A watcher that was taken over may say any number: the agent keeps note of those of the table only."""
    settings = Settings(state=StateTable(dir=str(tmp_path / "state")))
    ours, theirs = socket.socketpair()
    agent = Agent(Prepared(settings=settings), Channel(ours, "agent"))
    supervisor = Channel(theirs, "supervisor")
    supervisor.send(Changed(1, tuple(range(len(LOCATIONS), 65536))))
    agent._hear()
    assert agent._triggers._accounts[1].pending == {}
    supervisor.send(Changed(1, tuple(range(65536))))
    agent._hear()
    assert set(agent._triggers._accounts[1].pending) == set(range(len(LOCATIONS)))
    supervisor.close()
    agent._channel.close()
