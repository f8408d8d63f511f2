# SPDX-License-Identifier: Apache-2.0
"""The agent's state: cycles, the outbox, what survives a restart, and what a report may hold (design 8, 9)."""

import json
import os
import sqlite3
import stat
import threading

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from halod.agent import laststatus, rows
from halod.agent.database import COPIES, Database, StateFault
from halod.agent.devicefile import Device
from halod.agent.files import NotRegular, read_small, replace
from halod.agent.outbox import Limits, compose
from halod.agent.rows import Delivery
from halod.agent.schema_sql import MIGRATIONS
from halod.agent.state import RESET, State
from halod.status import SENT_BYTES, Transition, decode, encode
from tests.support.guard import HANG
from tests.support.state import all_seen, finding, status

EVERYTHING = Limits(findings=10**6, bytes=10**9)


@pytest.fixture
def directory(tmp_path):
    return str(tmp_path / "state")


@pytest.fixture
def state(directory):
    opened = State(directory)
    yield opened
    opened.close()


def cycle(state, *findings, seen=None, **fields):
    return state.commit_cycle(status(*findings, **fields), all_seen() if seen is None else seen)


def document(report):
    return json.loads(report.body)


def drain(state, limits=EVERYTHING):
    """Deliver all there is, and give the ids in their order."""
    ids = []
    while (report := state.next_report(limits)) is not None:
        ids += report.ids
        state.delivered(report)
    return ids


def number(transition_id):
    return int(transition_id.rpartition("-")[2])


# Cycles and restarts


def test_the_first_cycle(state):
    """Its findings are opened, its status waits for delivery."""
    done = cycle(state, finding())
    (transition,) = done.transitions
    assert (transition.event, transition.time) == ("opened", "2026-11-30T09:15:02Z")
    report = state.next_report()
    assert document(report)["transitions"] == [json.loads(encode(transition))]
    assert document(report)["mcpDrift"][0]["server"] == "notes"
    assert report.ids == (transition.id,)
    assert not report.more


def test_nothing_is_delivered_twice_once_recorded(state):
    """A new cycle brings a new report even when nothing changed: the server sees that the machine lives."""
    cycle(state, finding())
    assert len(drain(state)) == 1
    assert state.next_report() is None
    cycle(state, finding())
    report = state.next_report()
    assert document(report)["transitions"] == []


def test_without_a_cycle_there_is_no_report(state):
    """And a summary says that nothing is known."""
    assert state.next_report() is None
    summary = state.summary()
    assert (summary.status, summary.waiting, summary.delivery) == (None, 0, None)


def test_a_restart_loses_nothing(directory):
    """Findings, transitions, status, device, counters."""
    first = State(directory)
    cycle(first, finding(sha="1"))
    device = first.device
    before = first.next_report()
    first.note_delivery(Delivery(time="t", outcome="report-refused", http=503, failures=2))
    first.close()
    again = State(directory)
    assert again.next_report().body == before.body
    assert again.device == device
    assert again.summary().delivery.http == 503
    done = cycle(again, finding(sha="2"))
    (change,) = done.transitions
    assert (change.event, change.was) == ("changed", "1" * 64)
    ids = drain(again)
    assert [number(one) for one in ids] == [1, 2]
    assert len(set(ids)) == 2
    counters = again.summary().counters
    assert (counters.cycles, counters.transitions, counters.reports) == (2, 2, 1)
    again.close()


def test_the_clock_may_jump(state):
    """Order comes from numbers; times are shown as they were."""
    for at, time in enumerate(("2026-11-30T09:15:02Z", "1970-01-01T00:00:00Z", "2100-01-01T00:00:00Z")):
        cycle(state, *[finding(server=f"s{n}") for n in range(at + 1)], time=time)
    sent = document(state.next_report())["transitions"]
    assert [number(one["id"]) for one in sent] == [1, 2, 3]
    assert [one["time"][:4] for one in sent] == ["2026", "1970", "2100"]


def test_unseen_findings_stay_in_the_report(state):
    """As stale, and no transition says otherwise."""
    cycle(state, finding())
    drain(state)
    done = cycle(state, seen=[])
    assert done.transitions == ()
    assert document(state.next_report())["mcpDrift"][0]["stale"] is True
    assert decode(state.summary().status).mcp_drift[0].stale


def test_departed_accounts(state):
    """The caller's word resolves what no cycle will look at again."""
    cycle(state, finding())
    done = state.commit_cycle(status(), (), departed=frozenset({"dev"}))
    assert [one.event for one in done.transitions] == ["resolved"]
    assert state.findings() == []


# Reports


def test_at_most_64_transitions_a_report_and_more_at_once(state):
    """Oldest first, until all are delivered."""
    cycle(state, *[finding(server=f"s{at:03}") for at in range(150)])
    sizes = []
    while (report := state.next_report(EVERYTHING)) is not None:
        sizes.append((len(report.ids), report.more))
        assert [number(one) for one in report.ids] == list(
            range(sum(size for size, _ in sizes[:-1]) + 1, sum(size for size, _ in sizes) + 1)
        )
        state.delivered(report)
    assert sizes == [(64, True), (64, True), (22, False)]


def test_a_report_is_never_too_long(state):
    """Many large findings and transitions: 60 KiB, 256 findings, and every transition gets there."""
    long = "w" * 900
    many = [finding(server=f"s{at:03}", detail=long, fix=long) for at in range(400)]
    cycle(state, *many)
    seen = []
    while (report := state.next_report()) is not None:
        assert len(report.body) <= SENT_BYTES
        body = document(report)
        assert body["truncated"]
        assert body["mcpDriftTotal"] == 400
        assert report.ids
        seen += report.ids
        state.delivered(report)
    assert [number(one) for one in seen] == list(range(1, 401))


def test_findings_go_before_transitions():
    """A report whose findings fit is not truncated by transitions beyond their share."""
    one = Transition(id="p-1", time="t", event="opened", finding=finding(detail="w" * 900))
    full = status(*[finding(server=f"s{at}", fix="w" * 500) for at in range(55)])
    body, count = compose(full, [one] * 64, Limits())
    document = decode(body)
    assert not document.truncated
    assert len(document.mcp_drift) == 55
    assert 0 < count < 64
    assert len(body) <= SENT_BYTES


def test_one_transition_travels_even_where_there_is_no_room():
    """Otherwise a small limit would hold all of them for ever."""
    one = Transition(id="p-1", time="t", event="opened", finding=finding(detail="w" * 900))
    body, count = compose(status(finding()), [one, one], Limits(bytes=2000))
    assert count == 1
    assert decode(body).truncated


def test_a_server_without_transitions(state):
    """`report.transitions = false`: no such field, and what waited is settled by the delivery."""
    without = Limits(with_transitions=False)
    cycle(state, finding())
    report = state.next_report(without)
    assert "transitions" not in document(report)
    assert (report.ids, report.more) == ((), False)
    state.delivered(report)
    assert state.summary().waiting == 0
    assert state.next_report(without) is None
    cycle(state)
    state.delivered(state.next_report(without))
    cycle(state, finding())
    assert [one["event"] for one in document(state.next_report())["transitions"]] == ["opened"]


def test_what_came_while_a_report_travelled_stays(state):
    """Delivery settles what was in the report and nothing else."""
    cycle(state, finding(server="a"))
    report = state.next_report()
    cycle(state, finding(server="a"), finding(server="b"))
    state.delivered(report)
    left = document(state.next_report())["transitions"]
    assert [one["finding"]["server"] for one in left] == ["b"]
    state.delivered(report)
    assert state.summary().waiting == 1


def test_the_outbox_is_bounded(state, monkeypatch):
    """The oldest are dropped and counted; what is left is in order."""
    monkeypatch.setattr(rows, "OUTBOX_LIMIT", 10)
    for at in range(7):
        cycle(state, finding(server=f"a{at}"), finding(server=f"b{at}"))
    summary = state.summary()
    assert summary.waiting == 10
    assert summary.counters.dropped == summary.counters.transitions - 10 == 16
    assert [number(one) for one in drain(state)] == list(range(17, 27))


def test_ten_thousand_is_the_bound():
    """As the contract says."""
    assert rows.OUTBOX_LIMIT == 10_000


def test_what_the_server_will_never_take_is_dropped_and_counted(state):
    """One transition goes; what waits behind it gets through."""
    cycle(state, finding(server="a"), finding(server="b"))
    suspect = state.next_report(Limits(transitions=1))
    state.refused(suspect)
    assert state.summary().counters.dropped == 1
    assert [number(one) for one in drain(state)] == [2]
    state.refused(suspect)
    assert state.summary().counters.dropped == 1


def test_a_status_that_is_refused_is_not_offered_again(state):
    """The next cycle's is."""
    cycle(state)
    state.refused(state.next_report())
    assert state.next_report() is None
    cycle(state)
    assert state.next_report() is not None


def test_a_status_alone(state):
    """Room for no transition: to find out whether it is the status that the server does not take."""
    cycle(state, finding())
    report = state.next_report(Limits(transitions=0))
    assert (report.ids, report.more) == ((), True)
    state.delivered(report)
    assert state.next_report(Limits(transitions=0)).ids == ()
    assert len(drain(state)) == 1


def test_a_refusal_of_a_database_that_is_gone_changes_nothing(directory, state):
    """Its numbers mean other transitions now."""
    cycle(state, finding())
    report = state.next_report()
    os.unlink(os.path.join(directory, "state.db"))
    cycle(state, finding())
    state.refused(report)
    assert state.summary().waiting == 1


# The device


def test_the_device_is_made_once(directory):
    """Random, private, kept; the token is in no repr and not in the database."""
    state = State(directory)
    device = state.device
    assert len(device.install_id) == 32
    state.update_device(token="TOKEN-of-this-device", enrolment="enrolled", policy_version=7)
    cycle(state, finding())
    state.close()
    again = State(directory).device
    assert again == Device(
        install_id=device.install_id, token="TOKEN-of-this-device", enrolment="enrolled", policy_version=7
    )
    assert "TOKEN" not in repr(again)
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, name
        with open(path, "rb") as file:
            assert (b"TOKEN" in file.read()) == (name == "device.json")
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b"x" * 70_000, "link", "directory"])
def test_a_damaged_device_file_is_moved_aside(directory, content):
    """A new install id, the damaged file beside it, and the status says so until a report was delivered."""
    os.mkdir(directory, 0o700)
    path = os.path.join(directory, "device.json")
    if content == "link":
        os.symlink("/etc/hostname", path)
    elif content == "directory":
        os.mkdir(path)
    else:
        with open(path, "wb") as file:
            file.write(content)
    state = State(directory)
    assert len(state.device.install_id) == 32
    assert os.path.lexists(path + ".broken")
    assert cycle(state).status.error_code == RESET
    drain(state)
    assert cycle(state).status.error_code == ""
    state.close()


# Damage


def broken_copies(directory):
    return sorted(name for name in os.listdir(directory) if name.endswith((".1", ".2", ".3", ".4")))


def spoil(directory, data=b"no database at all " * 400):
    with open(os.path.join(directory, "state.db"), "wb") as file:
        file.write(data)


def test_a_database_that_is_none_is_started_anew(directory):
    """Moved aside, said in the status until delivered, with ids that were never used."""
    first = State(directory)
    old = cycle(first, finding()).transitions[0].id
    install = first.device.install_id
    first.close()
    spoil(directory)
    state = State(directory)
    done = cycle(state, finding())
    assert (done.status.error_code, bool(done.status.last_error)) == (RESET, True)
    assert [one.event for one in done.transitions] == ["opened"]
    assert done.transitions[0].id != old
    assert state.device.install_id == install
    assert broken_copies(directory) == ["state.db.broken.1"]
    assert cycle(state, finding()).status.error_code == RESET
    drain(state)
    assert cycle(state, finding()).status.error_code == ""
    state.close()


def test_an_error_of_the_cycle_goes_first(directory):
    """The reset is told by the first status that has no other error."""
    os.mkdir(directory, 0o700)
    spoil(directory)
    state = State(directory)
    assert cycle(state, error_code="policy-old").status.error_code == "policy-old"
    drain(state)
    assert cycle(state).status.error_code == RESET
    state.close()


def test_damaged_copies_are_bounded(directory):
    """The newest few are kept for a person to look at."""
    os.mkdir(directory, 0o700)
    for at in range(COPIES + 3):
        spoil(directory, b"copy %d " % at * 100)
        state = State(directory)
        cycle(state)
        state.close()
    assert broken_copies(directory) == [f"state.db.broken.{at}" for at in range(1, COPIES + 1)]
    with open(os.path.join(directory, "state.db.broken.1"), "rb") as file:
        assert file.read().startswith(b"copy %d" % (COPIES + 2))


def test_odd_things_among_the_copies_are_in_nobodys_way(directory):
    """A directory by the name of a copy is moved too."""
    os.makedirs(os.path.join(directory, "state.db.broken.1"), 0o700)
    os.chmod(directory, 0o700)
    os.mkdir(os.path.join(directory, "state.db.broken.2"))
    with open(os.path.join(directory, "state.db.broken.3"), "wb"):
        pass
    spoil(directory)
    state = State(directory)
    assert cycle(state).status.error_code == RESET
    assert os.path.isfile(os.path.join(directory, "state.db.broken.1"))
    state.close()


def test_a_damaged_database_that_cannot_be_moved(directory, monkeypatch):
    """No loop: a word for it, and another try with the next cycle."""
    os.mkdir(directory, 0o700)
    spoil(directory)
    state = State(directory)
    assert state.device
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(30, "read-only")))
    with pytest.raises(StateFault) as caught:
        cycle(state)
    assert caught.value.code == "state-unwritable"
    monkeypatch.undo()
    assert cycle(state).status.error_code == RESET
    state.close()


def change(directory, *statements):
    """Edit a closed database as nobody should."""
    with sqlite3.connect(os.path.join(directory, "state.db")) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


TAMPERED = {
    "of a later version": "PRAGMA user_version = 99",
    "of a version below none": "PRAGMA user_version = -1",
    "of another program": "PRAGMA application_id = 1",
    "without its tables": "DROP TABLE outbox",
    "a finding that is none": "UPDATE finding SET body = x'7b7d', crc = 2745614147",
    "a finding whose checksum is wrong": "UPDATE finding SET crc = crc + 1",
    "a finding that is a number": "UPDATE finding SET body = 7",
    "a finding twice": "INSERT INTO finding (body, crc) SELECT body, crc FROM finding",
    "a status that is none": "UPDATE status SET body = x'00ff', crc = 0",
    "a transition that is none": "UPDATE outbox SET body = x'7b'",
    "counters that are none": "UPDATE meta SET value = 'x' WHERE key = 'counters'",
    "counters that are a number": "UPDATE meta SET value = 7 WHERE key = 'counters'",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED)
def test_a_database_that_halod_did_not_write(directory, statement):
    """Started anew at the first use that meets it; a cycle and its delivery go through."""
    first = State(directory)
    cycle(first, finding())
    first.close()
    change(directory, statement)
    state = State(directory)
    state.next_report()
    done = cycle(state, finding())
    drain(state)
    assert state.summary().waiting == 0
    assert done.status.error_code == RESET
    assert len(broken_copies(directory)) == 1
    state.close()


@pytest.mark.parametrize("odd", ["directory", "link", "pipe"])
def test_something_else_in_its_place(directory, odd):
    """Moved, not followed, not opened, not removed."""
    os.mkdir(directory, 0o700)
    path = os.path.join(directory, "state.db")
    {"directory": os.mkdir, "link": lambda at: os.symlink("/etc/hostname", at), "pipe": os.mkfifo}[odd](path)
    state = State(directory)
    assert cycle(state).status.error_code == RESET
    assert os.path.lexists(path + ".broken.1")
    state.close()


def test_a_database_removed_under_a_running_agent(directory, state):
    """What went on being written to it would be gone with the process."""
    cycle(state, finding())
    report = state.next_report()
    os.unlink(os.path.join(directory, "state.db"))
    done = cycle(state, finding())
    assert done.status.error_code == RESET
    assert done.transitions[0].id not in report.ids
    state.delivered(report)
    assert state.summary().waiting == 1
    assert drain(state) == [done.transitions[0].id]


def test_a_first_start_that_ended_early(directory):
    """A file without tables is no damage."""
    os.mkdir(directory, 0o700)
    path = os.path.join(directory, "state.db")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("VACUUM")
    db.close()
    os.chmod(path, 0o644)
    state = State(directory)
    assert cycle(state).status.error_code == ""
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    state.close()


def test_migrations_go_forward_one_by_one(directory):
    """Each with its version; data stays."""
    os.mkdir(directory, 0o700)
    first = Database(directory)
    first.run(lambda db: db.execute("INSERT INTO meta VALUES ('k', '1')"))
    first.close()
    more = (*MIGRATIONS, ("ALTER TABLE meta ADD COLUMN extra",), ("UPDATE meta SET extra = 5",))
    second = Database(directory, more)
    assert second.run(lambda db: db.execute("SELECT value, extra FROM meta").fetchall()) == [("1", 5)]
    assert second.run(lambda db: db.execute("PRAGMA user_version").fetchone()) == (3,)
    second.close()
    broken = Database(directory, (*more, ("ALTER TABLE meta ADD COLUMN more", "SELECT no_such_column")))
    with pytest.raises(StateFault):
        broken.run(lambda _db: None)


def test_a_fault_of_ours_throws_no_database_away(directory):
    """A wrong call is raised as what it is."""
    database = Database(directory)
    with pytest.raises(sqlite3.ProgrammingError):
        database.run(lambda db: db.execute("SELECT ?", (1, 2)))
    assert database.resets == 0
    database.close()


# Disks that refuse


def refusing(code):
    def work(_db):
        error = sqlite3.OperationalError("CANARY of a message")
        error.sqlite_errorcode = code
        raise error

    return work


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (sqlite3.SQLITE_FULL, "state-full"),
        (sqlite3.SQLITE_IOERR | 3 << 8, "state-io"),
        (sqlite3.SQLITE_READONLY, "state-unwritable"),
        (sqlite3.SQLITE_BUSY, "state-busy"),
    ],
)
def test_what_the_disk_refuses_has_a_word(directory, code, word):
    """With advice, without the library's text, and without a reset."""
    database = Database(directory)
    with pytest.raises(StateFault) as caught:
        database.run(refusing(code))
    assert caught.value.code == word
    assert caught.value.advice
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert database.resets == 0
    assert database.run(lambda _db: 5) == 5
    database.close()


def test_two_agents_do_not_share_a_database(directory, monkeypatch):
    """The second one waits, then says so."""
    first, second = Database(directory), Database(directory)
    first.run(lambda db: db.execute("INSERT INTO meta VALUES ('k', '1')"))
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **{**more, "timeout": 0.01}))
    with pytest.raises(StateFault) as caught:
        second.run(lambda _db: None)
    assert caught.value.code == "state-busy"
    first.close()
    assert second.run(lambda db: db.execute("SELECT value FROM meta").fetchone()) == ("1",)
    second.close()


def test_a_directory_of_somebody_else_or_none(tmp_path):
    """A file, a link, or no parent: no state, and advice."""
    (tmp_path / "file").write_text("")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("file", "link", "none/state"):
        state = State(str(tmp_path / name))
        for call in (state.update_device, cycle, State.summary, State.next_report):
            with pytest.raises(StateFault) as caught:
                call() if call == state.update_device else call(state)
            assert caught.value.code == "state-unwritable"
        assert state.fault == "state-unwritable"


def test_a_directory_that_is_too_open_is_closed(directory):
    """It was made by hand, perhaps."""
    os.mkdir(directory, 0o755)
    os.chmod(directory, 0o755)
    state = State(directory)
    assert state.device
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700


@pytest.mark.parametrize("refused", [False, True])
def test_a_fault_is_told_once_for_each_cycle_that_was_lost(state, monkeypatch, refused):
    """The server learns of a disk that is full, from the last status that could be kept."""
    cycle(state, finding())
    drain(state)
    run = state._database.run
    monkeypatch.setattr(state._database, "run", lambda _work: run(refusing(sqlite3.SQLITE_FULL)))
    with pytest.raises(StateFault):
        cycle(state)
    monkeypatch.setattr(state._database, "run", run)
    assert state.summary().fault == "state-full"
    report = state.next_report()
    assert document(report)["errorCode"] == "state-full"
    state.refused(report) if refused else state.delivered(report)
    assert state.next_report() is None
    assert [one.event for one in cycle(state).transitions] == ["resolved"]
    assert state.fault == ""
    assert document(state.next_report())["errorCode"] == ""


def test_what_was_acknowledged_is_not_sent_again_while_it_cannot_be_recorded(state, monkeypatch):
    """The delivery thread would else send one report without end; the next write records it."""
    cycle(state, finding())
    report = state.next_report()
    run = state._database.run
    monkeypatch.setattr(state._database, "run", lambda _work: run(refusing(sqlite3.SQLITE_FULL)))
    with pytest.raises(StateFault):
        state.delivered(report)
    monkeypatch.setattr(state._database, "run", run)
    assert state.next_report() is None
    assert state.summary().waiting == 1
    cycle(state, finding())
    assert state.summary().waiting == 0


def test_a_device_that_cannot_be_kept_is_not_given(directory, monkeypatch):
    """An enrolment that is lost at the next start is none."""
    state = State(directory)
    state.update_device(token="old")
    monkeypatch.setattr(os, "fsync", lambda _fd: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(StateFault) as caught:
        state.update_device(token="new")
    assert caught.value.code == "state-full"
    assert state.device.token == "old"
    assert sorted(os.listdir(directory)) == ["device.json"]
    fresh = State(directory + "2")
    with pytest.raises(StateFault):
        _ = fresh.device


# Threads


def test_a_delivery_thread_beside_cycles(state):
    """Every transition arrives once and in order, whatever the threads do."""
    arrived, faults = [], []
    over = threading.Event()

    def deliver():
        try:
            while True:
                last = over.is_set()
                arrived.extend(drain(state))
                if last:
                    return
        except Exception as error:
            faults.append(error)

    thread = threading.Thread(target=deliver)
    thread.start()
    for at in range(60):
        cycle(state, finding(sha=f"{at % 10}"), finding(server=f"s{at}"))
    over.set()
    thread.join(HANG)
    assert not thread.is_alive()
    assert not faults
    assert [number(one) for one in arrived] == list(range(1, state.summary().counters.transitions + 1))


# Small files


def test_the_last_status_is_put_in_place(tmp_path):
    """Whole, 0600, nothing left beside it."""
    directory = str(tmp_path)
    assert laststatus.read(directory) is None
    for at in range(2):
        laststatus.write(directory, status(hostname=f"host{at}"))
        assert decode(laststatus.read(directory)).hostname == f"host{at}"
    assert os.listdir(directory) == ["last-status.json"]
    assert stat.S_IMODE(os.stat(laststatus.path_in(directory)).st_mode) == 0o600


@pytest.mark.parametrize("odd", ["directory", "link", "pipe"])
def test_nothing_but_a_regular_file_is_replaced(tmp_path, odd):
    """A link there would be somebody's trap, or an admin's wish that we do not know."""
    path = laststatus.path_in(str(tmp_path))
    {"directory": os.mkdir, "link": lambda at: os.symlink("elsewhere", at), "pipe": os.mkfifo}[odd](path)
    with pytest.raises(NotRegular):
        laststatus.write(str(tmp_path), status())
    with pytest.raises(NotRegular):
        laststatus.read(str(tmp_path))
    assert os.listdir(tmp_path) == ["last-status.json"]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    """And no part of the new one."""
    path = str(tmp_path / "x")
    replace(path, b"old")
    monkeypatch.setattr(os, "write", lambda _fd, _data: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError):
        replace(path, b"new")
    monkeypatch.undo()
    assert read_small(path, 100) == b"old"
    assert os.listdir(tmp_path) == ["x"]
    with pytest.raises(NotADirectoryError):
        read_small(path + "/y", 100)


# Against a plain model


class Machine(RuleBasedStateMachine):
    """Cycles, deliveries and crashes in any order, beside a list and a dictionary that do the same."""

    def __init__(self):
        super().__init__()
        self.directory = None

    @initialize()
    def start(self):
        import tempfile

        self.place = tempfile.TemporaryDirectory()
        self.directory = os.path.join(self.place.name, "state")
        self.state = State(self.directory)
        self.known = {}
        self.made = []
        self.got = []
        self.flying = None

    @rule(
        names=st.dictionaries(st.sampled_from("abc"), st.sampled_from("012"), max_size=3),
        looked=st.booleans(),
    )
    def cycle(self, names, looked):
        seen = all_seen() if looked else []
        done = cycle(self.state, *[finding(server=name, sha=sha) for name, sha in names.items()], seen=seen)
        expected = []
        for name in sorted(self.known.keys() | names.keys()):
            old, new = self.known.get(name), names.get(name)
            if new is None and looked:
                expected.append(("resolved", name, old))
                del self.known[name]
            elif new is not None and old != new:
                expected.append(("opened" if old is None else "changed", name, new))
                self.known[name] = new
        said = [(one.event, one.finding.server, one.finding.definition_sha256[0]) for one in done.transitions]
        assert said == expected
        self.made += [one.id for one in done.transitions]

    @precondition(lambda self: self.directory is not None)
    @rule(most=st.sampled_from([1, 2, 64]))
    def send(self, most):
        """The server takes a report; whether the agent learns of it is another rule."""
        report = self.state.next_report(Limits(transitions=most))
        if report is None:
            assert len(self.got) == len(self.made)
            return
        news = [one for one in report.ids if one not in self.got]
        assert [one for one in report.ids if one in self.got] == list(
            report.ids[: len(report.ids) - len(news)]
        )
        self.got += news
        self.flying = report

    @precondition(lambda self: self.directory is not None and self.flying is not None)
    @rule()
    def learn(self):
        self.state.delivered(self.flying)
        self.flying = None

    @precondition(lambda self: self.directory is not None)
    @rule()
    def crash(self):
        """Nothing is flushed or closed but by the kernel: the connection is dropped as a killed process drops it."""
        self.state.close()
        self.state = State(self.directory)
        self.flying = None

    @invariant()
    def in_order_and_none_lost(self):
        if self.directory is None:
            return
        assert self.got == self.made[: len(self.got)]
        assert len(self.made) - self.state.summary().waiting <= len(self.got)
        kept = {known.finding.server: known.finding.definition_sha256[0] for known in self.state.findings()}
        assert kept == self.known

    def teardown(self):
        if self.directory is not None:
            self.state.close()
            self.place.cleanup()


Machine.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestModel = Machine.TestCase


def test_reports_carry_status_types_only(state):
    """What a report is made of decodes as the published type and nothing is left over."""
    cycle(state, finding())
    body = state.next_report().body
    assert json.loads(msgspec.json.encode(decode(body))) == json.loads(body)
