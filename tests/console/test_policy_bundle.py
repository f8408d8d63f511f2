# SPDX-License-Identifier: Apache-2.0
"""The signed policy: what may be published, what agents are given, on both engines."""

import json
from datetime import timedelta

import msgspec
import pytest
from sqlalchemy import select

from halod.console.access import Access
from halod.console.policy import bundle, routes
from halod.console.problem import Problem
from halod.console.settings import Settings
from halod.console.store.engine import Store
from halod.console.store.schema import AUDIT, POLICIES
from halod.policy.signed import MAX_BYTES, countersign
from tests.console.support_ops import Clock, call, console_of, in_threads
from tests.support.signing import BEGAN, KEY, NEW_KEY, OTHER, POLICY, STRANGER, envelope, expired, pinned

NOW = int(BEGAN.timestamp()) + 60
SETTINGS = Settings(database_url="", policy_keys=tuple(pinned(KEY)), policy_org="acme")


def publish(store, data, settings=SETTINGS, *, now=NOW, by="ada", **fields):
    with store.change() as c:
        return bundle.publish(c, data, settings, by=by, now=now, **fields)


def current(store):
    with store.read() as c:
        return bundle.current(c)


def refused(store, data, settings=SETTINGS, *, now=NOW):
    """What a refusal says, after a look that nothing was changed by it."""
    before = current(store)
    with pytest.raises(Problem) as problem:
        publish(store, data, settings, now=now)
    assert current(store) == before
    return problem.value.status, problem.value.detail


def test_nothing_is_published_at_first(store):
    with store.read() as c:
        assert (bundle.current(c), bundle.served(c), bundle.published(c), bundle.versions(c)) == (
            None,
            None,
            (),
            {},
        )


def test_a_signed_policy_is_published(store):
    """The row, the policy in it, the audit line."""
    data = envelope(version=7)
    row = publish(store, data, by_kind="session", address="192.0.2.7")

    assert (row.org, row.version, row.envelope, row.uploaded_by) == ("acme", 7, data, "ada")
    assert [entry.id for entry in row.policy.entries] == ["tools"]
    assert current(store) == row
    with store.read() as c:
        line = c.execute(select(AUDIT)).one()
    assert (line.action, line.actor, line.actor_kind, line.target) == (
        "policy.publish",
        "ada",
        "session",
        row.digest,
    )
    assert json.loads(line.detail) == {"org": "acme", "version": 7, "expires": row.expires, "servers": 1}


def test_the_digest_is_that_of_the_file_as_devices_report_it(store):
    """`digest` of a status is that of halos.yaml as it was applied: one text signed twice has one digest."""
    import hashlib

    wanted = "sha256:" + hashlib.sha256(POLICY.encode()).hexdigest()
    first = publish(store, envelope(version=7))
    second = publish(store, envelope(version=8))
    assert (first.digest, second.digest) == (wanted, wanted)
    assert first.payload_sha256 != second.payload_sha256
    with store.read() as c:
        assert bundle.versions(c) == {wanted: 8}
        assert [one.version for one in bundle.published(c)] == [8, 7]


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (b"{}", 422, "no signed policy"),
        (b"", 422, "no signed policy"),
        (b"\xff" * 100, 422, "no signed policy"),
        (b"x" * (MAX_BYTES + 1), 422, "larger than 1 MiB"),
        (envelope(STRANGER, version=8), 422, "none of the keys in policy_keys"),
        (envelope(version=8).replace(b'"sig":"', b'"sig":"A'), 422, "none of the keys"),
        (envelope(policy=POLICY.replace("acme", "other", 1), org="other", version=8), 422, "for the organisation"),
        (expired(version=8), 422, "expired"),
        (envelope(version=6), 409, "older than version 7"),
        (envelope(policy=OTHER, version=7), 409, "another content"),
    ],
)  # fmt: skip
def test_what_does_not_count_is_refused(store, data, status, words):
    """Everything that an agent would not take is not published, and says why."""
    publish(store, envelope(version=7))
    found = refused(store, data)
    assert found[0] == status
    assert words in found[1]


def test_without_keys_nothing_is_published(store):
    bare = msgspec.structs.replace(SETTINGS, policy_keys=())
    assert refused(store, envelope(), bare) == (
        409,
        "policy_keys in the settings is empty, so no policy can be published",
    )
    assert refused(store, envelope(), msgspec.structs.replace(SETTINGS, policy_keys=("AAAA",)))[0] == 409


def test_without_an_organisation_the_first_policy_says_it(store):
    """Afterwards another one's is foreign."""
    settings = msgspec.structs.replace(SETTINGS, policy_org="")
    publish(store, envelope(version=7), settings)
    other = envelope(policy=POLICY.replace("acme", "other", 1), org="other", version=8)
    assert refused(store, other, settings)[0] == 422
    named = msgspec.structs.replace(settings, policy_org="other")
    assert publish(store, other, named).org == "other"


def test_a_signature_more_is_published_under_the_same_version(store):
    """So that a key can be changed: the payload is the same, the envelope and its tag are not."""
    first = envelope(version=7)
    publish(store, first)
    both = countersign(first, [NEW_KEY])
    row = publish(store, both)
    assert (row.version, row.envelope) == (7, both)
    with store.read() as c:
        assert bundle.served(c).envelope == both


def test_the_same_bytes_again_change_nothing(store):
    data = envelope(version=7)
    first = publish(store, data)
    assert publish(store, data, now=NOW + 100, by="bob") == first
    with store.read() as c:
        assert len(c.execute(select(POLICIES.c.id)).all()) == len(c.execute(select(AUDIT.c.seq)).all()) == 1


def test_a_policy_that_was_examined_before_is_examined_again_when_another_came_between(store):
    """Two administrators at the same time: the older version does not win by being slower."""
    with store.read() as c:
        checked = bundle.examine(c, envelope(version=8), SETTINGS, now=NOW)
    publish(store, envelope(version=9))
    with pytest.raises(Problem, match="older than version 9"):
        publish(store, envelope(version=8), checked=checked)
    assert current(store).version == 9


def test_of_many_at_the_same_time_the_highest_stays(store_url):
    """Publications from several processes' stores are one after the other."""
    stores = [Store.open(store_url) for _ in range(3)]
    refusals = []

    def publisher(store, number):
        def run():
            try:
                publish(store, envelope(version=number))
            except Problem as problem:
                refusals.append(problem.status)

        return run

    in_threads(*(publisher(stores[number % 3], number) for number in range(10, 16)))
    with stores[0].read() as c:
        found = [one.version for one in bundle.published(c)]
    assert found[0] == 15
    assert refusals == [409] * (6 - len(found))
    assert found == sorted(found, reverse=True)
    for store in stores:
        store.close()


# --- the routes ---------------------------------------------------------------------------------------------


@pytest.fixture
def console(store):
    return console_of(store, Clock(NOW), policy_keys=tuple(pinned(KEY)), policy_org="acme")


def put(console, data):
    return routes.put_policy(call(console, "PUT", body=data))


def test_who_may_do_what():
    access = {route.name: (route.method, route.access, route.body) for route in routes.ROUTES}
    assert access == {"policy": ("GET", Access.PUBLIC, 0), "publish-policy": ("PUT", Access.ADMIN, MAX_BYTES)}


def test_agents_are_given_the_published_bytes(console):
    """With a strong tag, and told to ask each time."""
    data = envelope(version=7)
    answer = put(console, data)
    document = json.loads(answer.body)
    assert (answer.status_code, document["version"], document["servers"]) == (200, 7, 1)
    assert document["expires"] == (BEGAN + timedelta(days=90)).strftime("%Y-%m-%dT%H:%M:%SZ")

    got = routes.get_policy(call(console))
    assert (got.status_code, got.body, got.media_type) == (200, data, "application/json")
    assert got.headers["cache-control"] == "no-cache"
    assert got.headers["etag"].startswith('"')


def test_whoever_has_it_is_told_so(console):
    """If-None-Match in all its forms; another tag, or the one of the version before, brings the whole."""
    put(console, envelope(version=7))
    etag = routes.get_policy(call(console)).headers["etag"]
    for value in (etag, f"W/{etag}", f'"x", {etag}', "*", f'"a,b",{etag} '):
        same = routes.get_policy(call(console, if_none_match=value))
        assert (same.status_code, same.body, same.headers["etag"]) == (304, b"", etag)
        assert same.headers["cache-control"] == "no-cache"
    for value in ('"x"', etag.strip('"'), "", etag[:-2] + '"'):
        assert routes.get_policy(call(console, if_none_match=value)).status_code == 200
    put(console, envelope(version=8))
    newer = routes.get_policy(call(console, if_none_match=etag))
    assert newer.status_code == 200
    assert newer.headers["etag"] != etag
    assert console.metrics.value("halo_policy_requests_total", status="304") == 5


def test_head_tells_the_size_and_the_tag(console):
    data = envelope(version=7)
    put(console, data)
    head = routes.get_policy(call(console, "HEAD"))
    got = routes.get_policy(call(console))
    assert (head.body, head.headers["content-length"]) == (b"", str(len(data)))
    assert {**head.headers} == {**got.headers}


def test_without_a_policy_there_is_nothing_to_get(console):
    with pytest.raises(Problem) as problem:
        routes.get_policy(call(console))
    assert problem.value.status == 404


def test_a_policy_that_has_expired_is_still_served(console):
    """Agents go on with it, and say so; a console that answered 404 would only hide why."""
    put(console, envelope(version=7))
    console.clock.go(100 * 86_400)
    assert routes.get_policy(call(console)).status_code == 200


def test_another_replica_serves_what_was_published_here(console, store_url):
    """What is remembered of the newest row never outlives it."""
    put(console, envelope(version=7))
    other = Store.open(store_url)
    replica = console_of(other, Clock(NOW))
    assert routes.get_policy(call(replica)).body == envelope(version=7)
    put(console, envelope(version=8))
    assert routes.get_policy(call(replica)).body == envelope(version=8)
    other.close()
