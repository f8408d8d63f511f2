# SPDX-License-Identifier: Apache-2.0
"""`halo-server publish` and `webhooks`, and `/api/v1/webhooks`: what they answer, and what they refuse."""

import json
import os

import msgspec
import pytest
from sqlalchemy import insert, select

from halod.console.access import Role
from halod.console.cli import main
from halod.console.hooks import events, routes
from halod.console.store.engine import Store
from halod.console.store.schema import AUDIT, DELIVERIES
from halod.policy import signed
from tests.console.support_ops import NOW, SECRET, Clock, console_of, receiving
from tests.console.support_people import api_token, bearer, client
from tests.support.signing import KEY, envelope, payload, pinned

PATH = "/api/v1/webhooks/deliveries"


@pytest.fixture
def lite(sqlite_url):
    store = Store.open(sqlite_url)
    yield store
    store.close()


@pytest.fixture
def config(sqlite_url, tmp_path):
    secret = tmp_path / "chat.secret"
    secret.write_text(SECRET)
    os.chmod(secret, 0o600)
    path = tmp_path / "halo-server.toml"
    path.write_text(
        f'database_url = "{sqlite_url}"\npolicy_keys = ["{pinned(KEY)[0]}"]\npolicy_org = "acme"\n'
        f'[[webhook]]\nname = "chat"\nurl = "http://127.0.0.1:9/"\nsecret_file = "{secret}"\n'
    )
    return path


@pytest.fixture
def run(config, capsys):
    def command(*words):
        code = main([*words, "--config", str(config)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def dead(store, *events_, hook="chat"):
    for event in events_:
        text = json.dumps(
            {"id": f"msg_{event}", "type": event, "timestamp": events.moment(NOW), "data": {"count": 1}}
        )
        with store.write() as c:
            c.execute(
                insert(DELIVERIES).values(
                    hook=hook, event=event, payload=text, key=event, state="dead", tries=10, created=NOW,
                    next_try=NOW, last_error="status-500",
                )
            )  # fmt: skip


# --- publish ------------------------------------------------------------------------------------------------


def test_publish(run, tmp_path, lite):
    file = tmp_path / "halos.yaml.signed"
    file.write_bytes(envelope(version=7))
    code, out, err = run("publish", str(file))
    assert (code, err) == (0, "")
    assert out.startswith("acme, version 7, expires 2")
    with lite.read() as c:
        line = c.execute(select(AUDIT)).one()
    assert (line.action, line.actor_kind) == ("policy.publish", "command")
    file.write_bytes(envelope(version=6))
    code, out, err = run("publish", str(file))
    assert (code, out) == (2, "")
    assert "older than version 7" in err


def test_a_policy_with_faults_is_not_published(run, tmp_path):
    """Signed by the right key, but by a tool that did not look."""
    faulty = payload("org: acme\nmcp: {serverz: []}\n", version=9)
    file = tmp_path / "faulty.signed"
    file.write_bytes(signed._sealed(msgspec.json.encode(faulty), [], [KEY]))
    code, out, err = run("publish", str(file))
    assert (code, out) == (2, "")
    assert "the policy has faults: policy:2:" in err


def test_a_file_that_is_none(run, tmp_path):
    assert run("publish", str(tmp_path / "missing"))[0] == 2
    assert "cannot read" in run("publish", str(tmp_path))[2]


# --- webhooks on the command line -------------------------------------------------------------------------------


def test_a_secret_is_one(run):
    first, second = run("webhooks", "secret")[1].strip(), run("webhooks", "secret")[1].strip()
    assert first != second
    assert first.startswith("whsec_")
    assert len(first) == 6 + 44


def test_a_webhook_is_tried(run, config):
    """What came of it, in a word; nothing is kept."""
    assert run("webhooks", "test", "unknown")[0] == 2
    with receiving() as receiver:
        config.write_text(config.read_text().replace("http://127.0.0.1:9/", receiver.url))
        assert run("webhooks", "test", "chat") == (0, "chat: taken\n", "")
        receiver.plan("410")
        assert run("webhooks", "test", "chat") == (1, "chat: gone\n", "")
        first, second = receiver.log()
    assert first["valid"]
    assert first["headers"]["webhook-id"] != second["headers"]["webhook-id"]
    assert run("webhooks", "list")[1] == "there are no deliveries\n"


def test_dead_ones_are_listed_retried_and_discarded(run, lite):
    dead(lite, "finding.new", "device.silent")
    code, out, _ = run("webhooks", "list", "--state", "dead", "--limit", "1")
    assert code == 0
    assert out.splitlines()[1].split()[:5] == ["2", "chat", "device.silent", "dead", "10"]
    assert len(out.splitlines()) == 2
    assert run("webhooks", "list", "--hook", "other")[1] == "there are no deliveries\n"
    assert run("webhooks", "retry", "2")[:2] == (0, "1 to be sent again\n")
    assert run("webhooks", "retry", "2")[0] == 1
    assert run("webhooks", "discard", "--hook", "chat")[:2] == (0, "1 dropped\n")
    assert run("webhooks", "discard", "--hook", "chat")[0] == 1
    assert run("webhooks", "retry")[0] == 2
    assert run("webhooks", "retry", "1", "--hook", "chat")[0] == 2


# --- the API ----------------------------------------------------------------------------------------------------


@pytest.fixture
def http(store):
    console = console_of(store, Clock(NOW))
    asking = client(console, routes=routes.ROUTES)
    operator, viewer = bearer(api_token(console, Role.OPERATOR)), bearer(api_token(console, Role.VIEWER))

    def ask(method, path, *, viewing=False):
        return asking.request(method, path, headers=viewer if viewing else operator)

    return ask


def test_deliveries_are_listed(http, store):
    """Newest first, a page at a time, with the payload as it is sent."""
    dead(store, "finding.new", "device.silent", "coverage.lost")
    first = http("GET", f"{PATH}?limit=2&state=dead&hook=chat", viewing=True).json()
    second = http("GET", f"{PATH}?limit=2&state=dead&hook=chat&cursor={first['next']}", viewing=True).json()
    assert [row["event"] for row in first["rows"] + second["rows"]] == [
        "coverage.lost",
        "device.silent",
        "finding.new",
    ]
    assert second["next"] == ""
    assert first["rows"][0] == {
        "id": 3, "hook": "chat", "event": "coverage.lost", "state": "dead", "tries": 10, "lastError": "status-500",
        "created": events.moment(NOW), "nextTry": events.moment(NOW),
        "payload": {"id": "msg_coverage.lost", "type": "coverage.lost", "timestamp": events.moment(NOW), "data": {"count": 1}},
    }  # fmt: skip
    assert http("GET", f"{PATH}?state=lost").status_code == 400
    assert http("GET", f"{PATH}?limit=x").status_code == 400
    assert http("GET", f"{PATH}?cursor=x").status_code == 400


def test_operators_retry_and_discard(http, store):
    """One, or all of a webhook; viewers do not."""
    dead(store, "a", "b", "c", "d")
    for method, path in (
        ("POST", f"{PATH}/1/retry"), ("DELETE", f"{PATH}/1"), ("POST", "/api/v1/webhooks/chat/retry"),
        ("DELETE", "/api/v1/webhooks/chat/dead"),
    ):  # fmt: skip
        assert http(method, path, viewing=True).status_code == 403
    assert http("POST", f"{PATH}/1/retry").json() == {"deliveries": 1}
    assert http("DELETE", f"{PATH}/2").json() == {"deliveries": 1}
    assert http("POST", "/api/v1/webhooks/chat/retry").json() == {"deliveries": 2}
    with store.read() as c:
        assert sorted((row.seq, row.state) for row in c.execute(select(DELIVERIES))) == [
            (1, "due"),
            (3, "due"),
            (4, "due"),
        ]
        actions = [row.action for row in c.execute(select(AUDIT).order_by(AUDIT.c.seq))]
    assert actions == ["webhook.retry", "webhook.discard", "webhook.retry"]
    dead(store, "e")
    assert http("DELETE", "/api/v1/webhooks/chat/dead").json() == {"deliveries": 1}
    assert http("DELETE", "/api/v1/webhooks/chat/dead").status_code == 404


@pytest.mark.parametrize("number", ["0", "1", "-1", "x", "9" * 30, "%C2%B2", "1.5"])
def test_what_is_not_there_is_not_found(http, number):
    assert http("POST", f"{PATH}/{number}/retry").status_code == 404
    assert http("DELETE", f"{PATH}/{number}").status_code == 404
