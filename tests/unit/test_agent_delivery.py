# SPDX-License-Identifier: Apache-2.0
"""The courier's decisions, one turn at a time: what it sends, sets aside, says, keeps, and how long it waits."""

import json
import threading

import pytest

from halod.agent.backoff import CAP, SLOW, Backoff
from halod.agent.database import StateFault
from halod.agent.delivery import Courier, Setup
from halod.agent.enrol import About, Enrolment, enrol_url
from halod.agent.faults import Fault
from halod.agent.http import Answer
from halod.agent.outbox import Limits
from halod.agent.state import State
from tests.support.guard import HANG, until
from tests.support.state import all_seen, finding, status

URL = "https://console.acme.example/api/v1/fleet/report"
WALL = 1796030102.0
ABOUT = About("d" * 64, "mbp-417", "linux", "0.1.0")


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Script:
    """A client that plays answers: a status, (status, headers, body), or an exception."""

    def __init__(self):
        self.answers = []
        self.sent = []
        self.closed = False
        self.aborted = threading.Event()

    def send(self, method, url, *, bearer="", body=b""):
        self.sent.append((method, url, bearer, json.loads(body)))
        answer = self.answers.pop(0) if self.answers else 204
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, int):
            answer = (answer, {}, b"")
        code, headers, content = answer
        return Answer(code, headers, content, True)

    def abort(self):
        self.aborted.set()

    def close(self):
        self.closed = True


class Stage:
    """A courier with a real state, a scripted server, and clocks that stand still."""

    def __init__(self, directory, **setup):
        self.state = State(directory)
        self.client = Script()
        self.clock = Clock()
        self.wall = Clock()
        self.wall.now = WALL
        self.said = []
        self.wake = threading.Event()
        self.courier = self.start(**setup)

    def start(self, **setup):
        return Courier(
            self.state,
            self.client,
            Setup(url=URL, **{"token": "tok-1", **setup}),
            say=lambda event, **fields: self.said.append((event, fields)),
            backoff=Backoff(lambda: 1.0),
            wake=self.wake,
            clock=self.clock,
            wall=self.wall,
        )

    def commit(self, *servers, time="2026-11-30T09:15:02Z"):
        self.state.commit_cycle(status(*[finding(name) for name in servers], time=time), all_seen())

    def run(self, *answers):
        """Let it turn until it waits; give what it waits for (None: nothing left)."""
        self.client.answers = list(answers)
        while (delay := self.courier.turn()) == 0:
            pass
        return delay

    def later(self, seconds):
        self.clock.now += seconds

    def last(self):
        return self.state.summary().delivery

    def events(self):
        return [event for event, _ in self.said]

    def ids(self, at=-1):
        return [one["id"] for one in self.client.sent[at][3].get("transitions", ())]


@pytest.fixture
def stage(tmp_path):
    made = Stage(str(tmp_path / "state"))
    yield made
    made.state.close()


def test_nothing_to_do(stage):
    """Without a status nothing is sent; it waits to be woken."""
    assert stage.run() is None
    assert stage.client.sent == []


def test_a_report_is_accepted(stage):
    """It carries the token, and is noted for people."""
    stage.commit("notes", "wiki")
    assert stage.run() is None
    ((method, url, bearer, document),) = stage.client.sent
    assert (method, url, bearer) == ("POST", URL, "tok-1")
    assert len(document["transitions"]) == 2
    assert stage.state.summary().waiting == 0
    last = stage.last()
    assert (last.outcome, last.http, last.failures) == ("accepted", 204, 0)
    assert last.time == last.accepted == "2026-11-30T09:15:02Z"
    assert stage.said[0][0] == "report-accepted"
    assert stage.said[0][1]["transitions"] == 2


def test_more_than_one_report_at_once(stage):
    """What does not fit into one report follows without a wait, in order."""
    stage.commit(*[f"s{n:03}" for n in range(150)])
    assert stage.run() is None
    sent = [stage.ids(at) for at in range(len(stage.client.sent))]
    assert all(len(ids) <= 64 for ids in sent)
    assert [int(one.rpartition("-")[2]) for ids in sent for one in ids] == list(range(1, 151))


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_every_2xx_is_accepted(stage, code):
    """The number decides, not the body."""
    stage.commit("notes")
    assert stage.run((code, {}, b"CANARY")) is None
    assert len(stage.client.sent) == 1


BUSY = [
    (429, "throttled"),
    (408, "throttled"),
    (425, "throttled"),
    (500, "server-error"),
    (503, "server-error"),
]


@pytest.mark.parametrize(("code", "outcome"), BUSY)
def test_what_passes_by_itself(stage, code, outcome):
    """The wait doubles, the same report is sent again, and the log has one line."""
    stage.commit("notes")
    assert stage.run(code) == 5
    assert stage.run(code) == 5  # woken too early: not a second sooner
    assert len(stage.client.sent) == 1
    stage.later(5)
    assert stage.run(code) == 10
    assert stage.ids(0) == stage.ids(1)
    assert stage.events() == ["report-failed"]
    assert (stage.last().outcome, stage.last().http, stage.last().failures) == (outcome, code, 2)
    stage.later(10)
    assert stage.run(204) is None
    assert stage.events() == ["report-failed", "report-accepted"]
    stage.commit("notes", "wiki")
    assert stage.run(code) == 5


@pytest.mark.parametrize("code", [429, 500, 503])
def test_retry_after(stage, code):
    """What the server asks for is waited for, by monotonic time: the wall clock may jump."""
    stage.commit("notes")
    assert stage.run((code, {"retry-after": "120"}, b"")) == 132
    stage.wall.now += 10**6
    stage.later(131)
    assert stage.run(204) == 1
    stage.wall.now -= 10**7
    stage.later(1)
    assert stage.run(204) is None


def test_a_retry_after_date(stage):
    """A date is relative to the server's own clock."""
    stage.commit("notes")
    stage.wall.now += 86_400
    headers = {"retry-after": "Mon, 30 Nov 2026 09:16:42 GMT", "date": "Mon, 30 Nov 2026 09:15:02 GMT"}
    assert stage.run((503, headers, b"")) == 110


def test_an_outage_delivers_the_newest_status_and_every_transition(stage):
    """Cycles go on while nothing arrives; afterwards all is told, in order."""
    for count in range(1, 40):
        stage.commit(*[f"s{n:03}" for n in range(count)])
        stage.run(Fault("connection-refused"))
        stage.later(CAP)
    stage.run()
    last = stage.client.sent[-1][3]
    assert len(last["mcpDrift"]) == 39
    numbers = [int(one.rpartition("-")[2]) for one in stage.ids()]
    assert numbers == list(range(1, 40))


@pytest.mark.parametrize(
    "kind", ["dns", "connection-refused", "timeout", "closed", "tls-expired", "proxy", "protocol"]
)
def test_no_answer(stage, kind):
    """The kind of fault is what people and the log are shown."""
    stage.commit("notes")
    assert stage.run(Fault(kind)) == 5
    assert stage.last().outcome == kind
    assert stage.said[-1][1] == {"outcome": kind, "status": 0, "code": "", "retry": 5}


SLOWLY = [(401, "unauthorised"), (403, "unauthorised"), (404, "wrong-address"), (405, "wrong-address")]


@pytest.mark.parametrize(("code", "outcome"), [*SLOWLY, (410, "wrong-address"), (304, "wrong-address")])
def test_what_a_person_must_mend(stage, code, outcome):
    """It is tried about once an hour, and nothing is lost."""
    stage.commit("notes")
    assert stage.run(code) == pytest.approx(1.1 * SLOW)
    assert (stage.last().outcome, stage.last().http) == (outcome, code)
    stage.later(1.1 * SLOW + 1)
    assert stage.run(204) is None
    assert len(stage.ids()) == 1


def test_a_restart_keeps_when_it_was_accepted(stage):
    """`halod status` tells since when nothing arrives, also after a restart."""
    stage.courier = Courier(
        stage.state,
        stage.client,
        Setup(url=URL, token="tok-1"),
        say=lambda event, **fields: None,
        backoff=Backoff(lambda: 1.0),
        wake=stage.wake,
        accepted="2026-11-29T00:00:00Z",
        clock=stage.clock,
        wall=stage.wall,
    )
    stage.commit("notes")
    stage.run(503)
    assert stage.last().accepted == "2026-11-29T00:00:00Z"


def test_a_redirect(stage):
    """The URL of the settings is not the right one."""
    stage.commit("notes")
    assert stage.run(Fault("redirect", 302)) == pytest.approx(1.1 * SLOW)
    assert (stage.last().outcome, stage.last().http) == ("redirect", 302)


# Documents that are refused


def refusing(stage, code, bad):
    """Answer as a server that refuses every report with a bad transition in it."""
    real = stage.client.send

    def send(method, url, *, bearer="", body=b""):
        real(method, url, bearer=bearer, body=body)
        refused = any(one["finding"]["server"] in bad for one in json.loads(body).get("transitions", ()))
        return Answer(code if refused else 204, {}, b"", True)

    stage.client.send = send


@pytest.mark.parametrize("code", [400, 413, 422])
def test_one_transition_is_set_aside(stage, code):
    """The others arrive, in order; the one is counted."""
    stage.commit(*[f"s{n:03}" for n in range(100)])
    refusing(stage, code, {"s040", "s090"})
    assert stage.run() is None
    summary = stage.state.summary()
    assert (summary.waiting, summary.counters.dropped) == (0, 2)
    assert stage.events().count("transition-set-aside") == 2


def test_too_many_transitions_for_a_server(stage):
    """A server with a smaller limit gets smaller reports, and nothing is set aside."""
    stage.commit(*[f"s{n:03}" for n in range(100)])
    real = stage.client.send

    def send(method, url, *, bearer="", body=b""):
        answer = real(method, url, bearer=bearer, body=body)
        return answer if len(json.loads(body)["transitions"]) <= 10 else Answer(413, {}, b"", True)

    stage.client.send = send
    assert stage.run() is None
    assert stage.state.summary().counters.dropped == 0
    assert stage.state.summary().waiting == 0


def test_a_status_that_is_refused(stage):
    """It is not sent again unchanged; its transitions travel with the next."""
    stage.commit(*[f"s{n:03}" for n in range(8)])
    assert stage.run(*[422] * 20) == 5
    sent = len(stage.client.sent)
    assert sent <= 6
    assert (stage.last().outcome, stage.last().http) == ("report-refused", 422)
    stage.later(5)
    assert stage.run() is None
    assert len(stage.client.sent) == sent
    stage.commit("s000", "s001")
    assert stage.run() is None
    assert stage.state.summary().waiting == 0
    assert stage.state.summary().counters.dropped == 0


def test_a_server_without_transitions(tmp_path):
    """With `transitions = false` they are not sent, and do not pile up."""
    stage = Stage(str(tmp_path / "state"), limits=Limits(with_transitions=False))
    stage.commit("notes")
    assert stage.run() is None
    assert "transitions" not in stage.client.sent[0][3]
    assert stage.state.summary().waiting == 0
    stage.commit("notes", "wiki")
    assert stage.run(422) == 5
    stage.later(5)
    assert stage.run() is None
    assert len(stage.client.sent) == 2


# The state fails


class Broken(State):
    """A state whose disk fails when it is told to."""

    failing = ()

    def delivered(self, report):
        if "delivered" in self.failing:
            raise StateFault("state-full")
        super().delivered(report)

    def next_report(self, limits):
        if "next_report" in self.failing:
            raise StateFault("state-io")
        return super().next_report(limits)

    def note_delivery(self, delivery):
        if "note_delivery" in self.failing:
            raise StateFault("state-full")
        super().note_delivery(delivery)


@pytest.fixture
def broken(tmp_path):
    made = Stage(str(tmp_path / "state"))
    made.state.close()
    made.state = Broken(str(tmp_path / "state"))
    made.courier = made.start()
    yield made
    made.state.close()


def test_a_full_disk_after_delivery(broken):
    """The server has it, the machine cannot note it: it is sent again with the same ids."""
    broken.commit("notes")
    broken.state.failing = ("delivered",)
    assert broken.run() == 5
    assert broken.said == [
        ("report-failed", {"outcome": "state", "status": 0, "code": "state-full", "retry": 5})
    ]
    broken.state.failing = ()
    broken.later(5)
    assert broken.run() is None
    assert broken.ids(0) == broken.ids(1)


def test_a_disk_that_cannot_be_read(broken):
    """Nothing is sent, it is tried again."""
    broken.commit("notes")
    broken.state.failing = ("next_report",)
    assert broken.run() == 5
    assert broken.client.sent == []


def test_a_note_that_cannot_be_kept(broken):
    """What is only for people costs no delivery."""
    broken.commit("notes")
    broken.state.failing = ("note_delivery",)
    assert broken.run() is None
    assert len(broken.client.sent) == 1


# Tokens and enrolment


@pytest.fixture
def enrolling(tmp_path):
    made = Stage(str(tmp_path / "state"), token="", enrolment=Enrolment(URL, "key-1", ABOUT))
    made.commit("notes")
    yield made
    made.state.close()


def grant(token):
    return (201, {}, json.dumps({"token": token, "expires": "2027-11-30T00:00:00Z"}).encode())


def test_no_token_at_all(tmp_path):
    """Said, and nothing is sent."""
    stage = Stage(str(tmp_path / "state"), token="")
    stage.commit("notes")
    assert stage.run() == pytest.approx(1.1 * SLOW)
    assert stage.last().outcome == "no-token"
    assert stage.client.sent == []


def test_enrolment(enrolling):
    """The key is exchanged once; afterwards only the token travels."""
    assert enrolling.run(grant("tok-9")) is None
    asked, report = enrolling.client.sent
    assert asked == (
        "POST",
        "https://console.acme.example/api/v1/enroll",
        "key-1",
        {
            "device": "d" * 64,
            "installId": enrolling.state.device.install_id,
            "hostname": "mbp-417",
            "os": "linux",
            "halod": "0.1.0",
        },
    )
    assert report[2] == "tok-9"
    assert (enrolling.state.device.token, enrolling.state.device.enrolment) == ("tok-9", "enrolled")
    enrolling.courier = enrolling.start(token="", enrolment=Enrolment(URL, "key-1", ABOUT))
    enrolling.commit("notes", "wiki")
    assert enrolling.run() is None
    assert [sent[2] for sent in enrolling.client.sent] == ["key-1", "tok-9", "tok-9"]


def test_a_pending_enrolment(enrolling):
    """It waits for an operator, and is shown as that."""
    assert enrolling.run(202) == pytest.approx(1.1 * SLOW)
    assert enrolling.last().outcome == "enrolment-pending"
    assert enrolling.state.device.enrolment == "pending"
    enrolling.later(1.1 * SLOW + 1)
    assert enrolling.run((202, {"retry-after": "300"}, b"")) == 330
    enrolling.later(331)
    assert enrolling.run(grant("tok-9")) is None
    assert enrolling.last().outcome == "accepted"


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 409, 422])
def test_a_refused_enrolment(enrolling, code):
    """The key, the address or the device is wrong: a person must look."""
    assert enrolling.run(code) == pytest.approx(1.1 * SLOW)
    assert (enrolling.last().outcome, enrolling.last().http) == ("enrolment-refused", code)
    assert enrolling.state.device.enrolment == "refused"


@pytest.mark.parametrize(("code", "outcome"), BUSY)
def test_enrolment_at_a_busy_server(enrolling, code, outcome):
    """As with reports."""
    assert enrolling.run((code, {"retry-after": "20"}, b"")) == 22
    assert enrolling.last().outcome == outcome


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[" * 100_000, b'{"token": 1}', b'{"token": ""}', b'{"token": "a\\r\\nX: y"}', b"\xff"],
)
def test_a_grant_that_holds_no_token(enrolling, body):
    """Nothing of it is kept or shown."""
    assert enrolling.run((201, {}, body)) == pytest.approx(1.1 * SLOW)
    assert enrolling.last().outcome == "enrolment-malformed"
    assert enrolling.state.device.token == ""


def test_a_token_that_has_expired(enrolling):
    """It is exchanged at once for a new one, with the old one as proof, and not again within the hour."""
    enrolling.run(grant("tok-1"))
    enrolling.later(SLOW)
    enrolling.commit("notes", "wiki")
    assert enrolling.run(401, grant("tok-2")) is None
    renewal = enrolling.client.sent[-2]
    assert (renewal[2], renewal[3]["oldToken"]) == ("key-1", "tok-1")
    assert enrolling.client.sent[-1][2] == "tok-2"
    enrolling.commit("notes")
    assert enrolling.run(401) == pytest.approx(1.1 * SLOW)
    assert enrolling.last().outcome == "unauthorised"
    enrolling.later(1.1 * SLOW + 1)
    assert enrolling.run(401, 202) == pytest.approx(1.1 * SLOW)
    assert enrolling.last().outcome == "enrolment-pending"
    enrolling.later(1.1 * SLOW + 1)
    assert enrolling.run() is None
    assert enrolling.client.sent[-1][2] == "tok-2"


def test_a_token_of_a_file_is_not_exchanged(tmp_path):
    """Who gives a token by file renews it by file."""
    stage = Stage(str(tmp_path / "state"), enrolment=Enrolment(URL, "key-1", ABOUT))
    stage.commit("notes")
    assert stage.run(401) == pytest.approx(1.1 * SLOW)
    assert len(stage.client.sent) == 1


@pytest.mark.parametrize(
    ("report", "enrol"),
    [
        (URL, "https://console.acme.example/api/v1/enroll"),
        ("https://c.acme.example/halos/api/v1/fleet/report", "https://c.acme.example/halos/api/v1/enroll"),
        ("https://c.acme.example:8443/collect?x=1", "https://c.acme.example:8443/api/v1/enroll"),
        ("https://c.acme.example", "https://c.acme.example/api/v1/enroll"),
        ("https://c/api/v1/x/api/v1/report", "https://c/api/v1/x/api/v1/enroll"),
    ],
)
def test_where_enrolment_is(report, enrol):
    """Beside the report's endpoint, or at the server's root."""
    assert enrol_url(report) == enrol


def test_nothing_shows_a_secret():
    """None of these says what is inside, however it is printed."""
    enrolment = Enrolment(URL, "CANARYkey", ABOUT)
    for thing in (enrolment, Setup(url=URL, token="CANARYtok", enrolment=enrolment), grant("x")):
        assert "CANARY" not in repr(thing)


# The thread


def test_the_thread_ends_and_closes(stage):
    """Woken by a commit it delivers; stopped it ends and closes its client."""
    thread = threading.Thread(target=stage.courier.run)
    thread.start()
    stage.commit("notes")
    stage.wake.set()
    until(lambda: stage.client.sent)
    stage.courier.stop()
    thread.join(HANG)
    assert not thread.is_alive()
    assert stage.client.closed
    assert stage.client.aborted.is_set()
    assert stage.client.sent


def test_a_stop_in_the_middle_is_no_failure(stage):
    """What was under way is sent after the next start; nothing is said or kept."""
    stage.commit("notes")
    stage.client.answers = [Fault("stopped")]
    assert stage.courier.turn() == 0
    assert stage.said == []
    assert stage.last() is None


def test_a_fault_of_ours_costs_one_try(stage):
    """The thread lives on, and the log has the class alone."""
    stage.commit("notes")
    stage.client.answers = [KeyError("CANARY")]
    assert stage.courier._guarded(stage.courier.turn) == 5
    assert stage.said == [("delivery-fault", {"exception": "KeyError"})]
    stage.later(5)
    assert stage.run() is None
