# SPDX-License-Identifier: Apache-2.0
"""A cycle without processes: which answers a status is made of, and what is new in one."""

import msgspec
import pytest

from halod.accounts import Account
from halod.agent.answers import of_users
from halod.agent.cycle import LATE_ACCOUNTS, UNANSWERED, Cycles, Machinery, moved
from halod.agent.people import Selection
from halod.agent.sources import Current
from halod.assemble import Scanned
from halod.policy.load import parse
from halod.roles import order
from halod.roles.answer import Answer, Gap, Row
from halod.roles.protocol import Answered
from halod.settings import Device, Settings

POLICY = b"rings: [r]\nmcp: {servers: [{id: one, url: 'https://mcp.acme.example/one', rings: [r], expires: 2026-11-30}]}\n"
SCOPED = b"""\
rings: [r, s]
units: {u: {}}
mcp:
  deny: [{host: evil.example}]
  servers:
    - {id: one, url: 'https://mcp.acme.example/one', rings: [r]}
    - {id: two, url: 'https://mcp.acme.example/two', units: [u]}
    - {id: all, url: 'https://mcp.acme.example/all'}
"""
DEV = Account(name="dev", uid=1001, gid=1001, home="/home/dev")
OPS = Account(name="ops", uid=1002, gid=1002, home="/home/ops")
DAY = 86400.0
NOON = 1796040000.0  # 2026-11-30T12:00:00Z


class Clock:
    now, time = 10.0, NOON

    def monotonic(self):
        return self.now

    def wall(self):
        return self.time


class Fixed:
    def __init__(self, policy=None, error="", code=""):
        self.current = Current(policy=policy, error=error, code=code)

    def refresh(self):
        return self.current


def row(name="notes", location=0, sha="a" * 64):
    return Row(
        location=location, parts=(), name=name, transport="stdio", host="", sha256=sha, scope="user",
        enabled=True, secret=False, kind="unapproved", outcome="identified",
    )  # fmt: skip


def answer(*rows, **fields):
    return msgspec.msgpack.encode(Answer(rows=rows, read=((0, ()),), files=1, **fields))


@pytest.fixture
def cycles():
    settings = Settings(device=Device(ring="r"))
    made = Cycles(Machinery.of(settings, Fixed(parse(POLICY, "p"))), Clock())
    made.refresh()
    return made


def full(cycles, *accounts, console="", unknown=(), answers=None):
    """Run one cycle over everything; each account answers with no row, or as in `answers`."""
    under = cycles.begin("timer", full=True)
    cycles.select(Selection(accounts=accounts, console=console, unknown=unknown))
    request = cycles.request()
    for target, account in zip(request.targets if request else (), accounts, strict=True):
        data = (answers or {}).get(account.name, answer())
        cycles.answered(Answered(under.number, target.key, "", data))
    return cycles.finish().status


def test_a_status_of_two_accounts(cycles):
    """Every account's rows, the console user, the ring; the worker's payload carries the policy."""
    status = full(cycles, DEV, OPS, console="dev", answers={"dev": answer(row())})
    assert (status.user, status.ring, status.mode) == ("dev", "r", "allowlist")
    assert [(one.user, one.server) for one in status.mcp_drift] == [("dev", "notes")]
    assert status.coverage.accounts == 2
    assert status.time == "2026-11-30T12:00:00Z"


def test_no_account_is_told(cycles):
    """Neither nobody nor a name without an account is clean."""
    assert [one.reason for one in full(cycles).skipped] == ["no-account"]
    status = full(cycles, DEV, unknown=("ghost",))
    assert [(one.user, one.reason) for one in status.skipped] == [("ghost", "no-account")]
    assert status.coverage.accounts == 1


def test_one_account_alone_keeps_the_others_answers(cycles):
    """A scan of one account makes a status of the whole machine."""
    full(cycles, DEV, OPS, answers={"ops": answer(row("theirs"))})
    under = cycles.begin("change", full=False)
    (target,) = cycles.request(frozenset([cycles.key(DEV)])).targets
    assert cycles.answered(Answered(under.number, target.key, "", answer(row("mine"))))
    assert [one.server for one in cycles.finish().status.mcp_drift] == ["mine", "theirs"]


def test_nothing_new_is_no_status(cycles):
    """A scan of one account that brings the same answer is not worth a report; one of everything is."""
    full(cycles, DEV)
    under = cycles.begin("change", full=False)
    (target,) = cycles.request(frozenset([cycles.key(DEV)])).targets
    cycles.answered(Answered(under.number, target.key, "", answer()))
    assert under.moved == {target.key: frozenset()}
    assert cycles.finish().status is None
    assert full(cycles, DEV) is not None


@pytest.mark.parametrize("data", [b"", b"\xc1", msgspec.msgpack.encode(["CANARY"])])
def test_rubbish_of_a_worker_costs_its_account(cycles, data):
    """One skipped row; the other account goes on."""
    status = full(cycles, DEV, OPS, answers={"dev": data, "ops": answer(row())})
    assert [(one.user, one.reason) for one in status.skipped] == [("dev", "worker-invalid")]
    assert [one.user for one in status.mcp_drift] == ["ops"]


def test_answers_to_other_questions_are_dropped(cycles):
    """Of a cycle before, of an account that was not asked, or twice."""
    under = cycles.begin("timer", full=True)
    cycles.select(Selection(accounts=(DEV,)))
    (target,) = cycles.request().targets
    assert not cycles.answered(Answered(under.number - 1, target.key, "", answer(row())))
    assert not cycles.answered(Answered(under.number, target.key + 1, "", answer(row())))
    assert cycles.answered(Answered(under.number, target.key, "", answer()))
    assert not cycles.answered(Answered(under.number, target.key, "", answer(row())))
    assert cycles.finish().status.mcp_drift == ()


def test_a_supervisor_that_does_not_answer(cycles):
    """The cycle ends all the same, and says what is missing."""
    cycles.begin("timer", full=True)
    cycles.select(Selection(accounts=(DEV,)))
    cycles.request()
    cycles.give_up(UNANSWERED)
    status = cycles.finish().status
    assert (status.error_code, status.skipped[0].reason) == ("scan-unanswered", "worker-timeout")


def test_accounts_that_cannot_be_looked_up(cycles):
    """The accounts of before go on, and the status says so."""
    full(cycles, DEV)
    under = cycles.begin("timer", full=True)
    under.error = LATE_ACCOUNTS
    (target,) = cycles.request().targets
    cycles.answered(Answered(under.number, target.key, "", answer(row())))
    status = cycles.finish().status
    assert (status.error_code, len(status.mcp_drift)) == ("accounts-unknown", 1)


def test_another_policy_or_day_asks_for_everything(cycles):
    """What an answer was compared with decides; a day matters only when something expires by it."""
    payload = order.decode(_payload(cycles)).registry
    assert [entry.id for entry in payload.entries] == ["one"]
    assert not cycles.refresh()
    cycles._clock.time += DAY
    assert cycles.refresh()
    assert [entry.id for entry in order.decode(_payload(cycles)).registry.expired] == ["one"]
    cycles._clock.time += DAY
    assert not cycles.refresh()
    cycles.machinery.source.current = Current()
    assert cycles.refresh()


def _payload(cycles):
    cycles.begin("timer", full=True)
    cycles.select(Selection(accounts=(DEV,)))
    return cycles.request().payload


def in_doubt(**device):
    cycles = Cycles(Machinery.of(Settings(device=Device(**device)), Fixed(parse(SCOPED, "p"))), Clock())
    cycles.refresh()
    return cycles


@pytest.mark.parametrize("device", [{"ring": "x"}, {"ring": "r", "units": ("x",)}])
def test_a_ring_or_unit_that_the_policy_does_not_know_is_told(device):
    """The device's place is checked against each policy."""
    status = full(in_doubt(**device), DEV)
    assert status.error_code == "device-unknown"
    assert status.last_error.startswith("unknown ")
    assert "nothing is resolved" in status.last_error


@pytest.mark.parametrize(
    ("device", "here"),
    [
        ({"ring": "x"}, {"one", "all"}),
        ({"units": ("x",)}, {"two", "all"}),
        ({"ring": "x", "units": ("u",)}, {"one", "two", "all"}),
        ({"ring": "s"}, {"all"}),
    ],
)
def test_what_may_apply_is_not_held_against_a_device(device, here):
    """Entries for rings count when the ring is not known, for units when a unit is not; else as ever."""
    registry = order.decode(_payload(in_doubt(**device))).registry
    assert {entry.id for entry in registry.entries} == here


def test_a_place_that_is_not_known_accuses_and_acquits_nobody():
    """What no ring approves is found; versions and approvals that depend on it are not; nothing is vouched for."""
    cycles = in_doubt(ring="x")
    under = cycles.begin("timer", full=True)
    cycles.select(Selection(accounts=(DEV,)))
    (target,) = cycles.request().targets
    rows = (
        row("new"),
        msgspec.structs.replace(row("bad"), kind="denied", entry="0"),
        msgspec.structs.replace(row("old"), kind="version-drift", entry="one"),
        msgspec.structs.replace(row("mine"), kind="approved", entry="one"),
        msgspec.structs.replace(row("ours"), kind="approved", entry="all"),
    )
    cycles.answered(Answered(under.number, target.key, "", answer(*rows)))
    outcome = cycles.finish()
    status = outcome.status
    assert {(one.server, one.kind) for one in status.mcp_drift} == {("new", "unapproved"), ("bad", "denied")}
    assert status.mcp_drift_total == 2
    assert [one.id for one in status.mcp_approved] == ["all"]
    assert outcome.seen == ()


def test_a_refused_reload_is_in_the_status(cycles):
    """Until an agent with good settings takes over; an error of the cycle itself goes before."""
    cycles.reload_refused = True
    assert full(cycles, DEV).error_code == "reload-refused"
    cycles.begin("timer", full=True)
    cycles.request()
    cycles.give_up(UNANSWERED)
    assert cycles.finish().status.error_code == "scan-unanswered"


def test_without_a_policy_it_is_an_inventory():
    """And the reason is in the status."""
    cycles = Cycles(Machinery.of(Settings(), Fixed(error="because", code="policy-invalid")), Clock())
    cycles.refresh()
    status = full(cycles, DEV)
    assert (status.mode, status.error_code, status.last_error) == ("inventory", "policy-invalid", "because")


def test_the_weakest_sandbox_counts(cycles):
    """One account that is confined in part makes the service's sandbox partial."""
    full(cycles, DEV, OPS)
    assert cycles.sandbox == "full"
    full(cycles, DEV, OPS, answers={"dev": answer(sandbox="partial")})
    assert cycles.sandbox == "partial"


def scanned(*rows, gaps=(), reason="worker-crashed", there=True):
    found = Answer(rows=rows, gaps=gaps) if there else None
    return Scanned(user="dev", answer=found, reason=reason)


@pytest.mark.parametrize(
    ("before", "now", "what"),
    [
        (None, scanned(), None),
        (scanned(row()), scanned(row()), frozenset()),
        (scanned(row()), scanned(row(sha="b" * 64)), {0}),
        (scanned(row(), row("x", 5)), scanned(row()), {5}),
        (scanned(), scanned(gaps=(Gap(location=3, parts=(), reason="symlink"),)), {3}),
        (scanned(there=False), scanned(there=False), frozenset()),
        (scanned(there=False), scanned(there=False, reason="worker-timeout"), None),
        (scanned(there=False), scanned(), None),
    ],
)
def test_what_moved(before, now, what):
    """Only locations whose rows differ; everything when one of the two did not answer."""
    assert moved(before, now) == what


def test_others_see_only_their_rows(cycles):
    """Rows, counts and the console user's name are of the caller's own account."""
    status = full(
        cycles,
        DEV,
        OPS,
        console="ops",
        unknown=("ghost",),
        answers={"dev": answer(row()), "ops": answer(row("x"))},
    )
    mine = of_users(status, frozenset(["dev"]))
    assert ([one.user for one in mine.mcp_drift], mine.mcp_drift_total, mine.user, mine.skipped) == (
        ["dev"],
        1,
        "",
        (),
    )
