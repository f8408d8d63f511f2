# SPDX-License-Identifier: Apache-2.0
"""Health, readiness and metrics through the application, and what they say when something is away."""

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse
from sqlalchemy import insert, text
from sqlalchemy.engine import make_url

from halod.console import monitor
from halod.console.access import Access, Role
from halod.console.ingest.apply import take
from halod.console.settings import Hook
from halod.console.store.schema import DELIVERIES, POLICIES
from tests.console.support_ops import NOW, Clock, console_of
from tests.console.support_people import api_token, bearer, client
from tests.console.support_replicas import document, finding

HOOK = Hook(name="chat", url="https://chat.acme.example/", secret_file="")


@pytest.fixture
def console(store):
    return console_of(store, Clock(NOW), webhooks=(HOOK,), silent_after=3600)


def running(console):
    """A client of an application whose writer, which no test here needs, counts as running."""
    http = client(console)
    console.metrics.watch("report-writer", lambda: True)
    return http


def samples(answer):
    return {
        (one.name, *sorted(one.labels.values())): one.value
        for family in parse(answer.text)
        for one in family.samples
    }


def test_who_may_ask():
    """Health is everybody's; how many findings there are is not, from loopback neither."""
    assert {route.path: route.access for route in monitor.ROUTES} == {
        "/healthz": Access.PUBLIC,
        "/readyz": Access.PUBLIC,
        "/metrics": Access.VIEWER,
    }


def test_a_console_that_works_says_so(console):
    http = running(console)
    for path in ("/healthz", "/readyz"):
        answer = http.get(path)
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")
        assert answer.headers["cache-control"] == "no-store"
    assert http.get("/metrics").status_code == 401
    assert http.get("/metrics", headers=bearer(api_token(console, Role.VIEWER))).status_code == 200


def test_a_part_that_has_died_makes_it_not_ready(console):
    """By its name; nor healthy, since a restart mends it and nothing else does."""
    console.metrics.watch("writer", lambda: False)
    http = running(console)
    for path in ("/readyz", "/healthz"):
        answer = http.get(path)
        assert (answer.status_code, answer.json()) == (503, {"status": "unavailable", "failing": ["writer"]})


def test_a_schema_of_another_release_makes_it_not_ready(console):
    with console.store.write() as c:
        c.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert monitor.failures(console) == ("schema",)


def test_a_database_that_is_away_makes_it_not_ready(console, postgres, store_url):
    """And back, ready again. Nothing of the driver's words is told."""
    if console.store.sqlite:
        with console.store.write() as c:
            c.execute(text("DROP TABLE alembic_version"))
        assert monitor.failures(console) == ("schema",)
        return
    name = make_url(store_url).database
    postgres.ask(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
    postgres.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    assert monitor.failures(console) == ("database",)
    http = running(console)
    assert http.get("/readyz").status_code == 503
    assert http.get("/healthz").status_code == 200
    console.clock.go(1)
    postgres.ask(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
    assert monitor.failures(console) == ()


def test_readiness_is_asked_of_the_database_once_a_second(console, monkeypatch):
    """Everybody may ask, as often as they like."""
    asked = []
    monkeypatch.setattr(monitor, "failures", lambda _: asked.append(1) or ())
    http = running(console)
    for _ in range(5):
        http.get("/readyz")
    console.clock.go(1)
    http.get("/readyz")
    assert len(asked) == 2


def test_the_fleet_is_counted(console):
    """Devices by state, findings by kind, the policy and webhooks; a kind that there is not is `other`."""
    odd = {**finding("odd", 1), "kind": "brand-new"}
    take(
        console.store,
        [document("d1", [finding("a", 1), odd]), document("d2", [finding("a", 1)])],
        now=NOW - 4000,
    )
    take(console.store, [document("d3", [])], now=NOW)
    with console.store.write() as c:
        c.execute(
            insert(POLICIES).values(
                version=7, expires=NOW + 90, issued=NOW, uploaded=NOW, envelope=b"", digest="x"
            )
        )
        for key, state in (("a", "due"), ("b", "dead"), ("c", "dead")):
            c.execute(
                insert(DELIVERIES).values(hook="chat", key=key, state=state, created=NOW - 50, next_try=NOW)
            )
    http = running(console)
    answer = http.get("/metrics", headers=bearer(api_token(console, Role.VIEWER)))
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = samples(answer)
    assert {key: value for key, value in found.items() if key[0] == "halo_devices"} == {
        ("halo_devices", "reporting"): 1, ("halo_devices", "silent"): 2, ("halo_devices", "partly"): 0,
    }  # fmt: skip
    assert found["halo_findings", "unapproved"] == 2
    assert found["halo_findings", "other"] == 1
    assert found["halo_findings", "denied"] == 0
    assert (found["halo_policy_version",], found["halo_policy_expires_timestamp_seconds",]) == (7, NOW + 90)
    assert found["halo_webhook_deliveries", "chat", "dead"] == 2
    assert found["halo_webhook_oldest_seconds", "chat"] == 50
    assert "brand-new" not in answer.text


def test_requests_and_parts_are_counted(console):
    """What the application itself counts: requests by route, the parts that run."""
    token = bearer(api_token(console, Role.VIEWER))
    http = running(console)
    http.get("/healthz")
    found = samples(http.get("/metrics", headers=token))
    assert found["halo_build_info", *[key[1] for key in found if key[0] == "halo_build_info"]] == 1
    assert any(key[0] == "halo_database_connections" for key in found)
