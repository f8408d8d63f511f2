# SPDX-License-Identifier: Apache-2.0
"""The demonstration fleet: the same at every run, made of documents as agents send them, with something of everything."""

import json

import jsonschema
import pytest
from sqlalchemy import select

from halod import definition, status
from halod.console import demo
from halod.console.demo import people, servers, story
from halod.console.policy import bundle
from halod.console.store import schema
from halod.console.store.engine import Store
from halod.console.store.migrate import upgrade
from halod.console.store.read import coverage, devices, findings, overview, registry, transitions
from halod.launch.identify import identify
from tests.console.support_pages import NOW, settings_for

SILENT = 3600


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('demo') / 'console.db'}"
    store = Store.open(url)
    upgrade(store)
    demo.fill(store, settings_for(url), now=NOW)
    with store.read() as connection:
        yield connection
    store.close()


def test_a_machine_is_the_same_at_every_run():
    assert people.machine(17) == people.machine(17)
    assert people.machine(17) != people.machine(18)
    assert story.Life(people.machine(3)).report(time="t", digest="d") == story.Life(people.machine(3)).report(
        time="t", digest="d"
    )


def test_its_documents_are_those_of_an_agent():
    """Each passes the published schema and every rule for strings: nothing in it would be changed at the door."""
    validator = jsonschema.Draft202012Validator(status.schema())
    for number in range(1, demo.DEVICES + 1):
        life = story.Life(people.machine(number))
        for day in range(1, story.DAYS):
            life.live(day)
        document = life.report(time="2026-11-30T09:00:00Z", digest="sha256:" + "0" * 64)
        validator.validate(json.loads(json.dumps(document)))
        for row in document["mcpDrift"]:
            assert status.is_name(row["server"])
            assert status.is_host(row.get("host", ""))
            assert status.clean(row["fix"]) == row["fix"]


def test_its_hashes_are_those_of_halod():
    assert servers.stdio_sha256(("npx", "-y", "ü")) == definition.stdio_sha256("npx", ("-y", "ü"))
    assert servers.url_sha256("https://a.example/x") == definition.url_sha256("https://a.example/x")


def test_its_definitions_are_ones_that_halod_tells_apart():
    """A server that the story calls drift runs a package that can be told; a made-up command line would not."""
    for server in servers.SERVERS:
        if server.words and server.kind == "version-drift":
            assert identify(server.words[0], server.words[1:], (), "").outcome.startswith("identified")


def test_the_fleet_has_something_of_everything(fleet):
    seen = overview.overview(fleet, now=NOW, silent_after=SILENT)
    assert seen.devices == demo.DEVICES
    assert seen.silent == len(story.SILENT)
    assert seen.partly > 5
    assert seen.waiting == 1
    assert {row.value for row in seen.by_kind} == {"denied", "unapproved", "version-drift"}
    assert len({row.value for row in seen.by_harness}) > 5
    assert len(findings.groups(fleet, findings.GroupFilter()).rows) > 20
    assert len(coverage.reasons(fleet)) > 5
    events = {row.event for row in transitions.newest(fleet, limit=200).rows}
    assert events == {"opened", "changed", "resolved"}
    days = overview.trend(fleet, today=NOW // 86_400)
    assert len({row.day for row in days if row.open}) == 30


def test_some_devices_have_not_taken_the_newest_policy(fleet):
    policy = bundle.current(fleet)
    assert policy is not None
    rows = registry.digests(fleet)
    assert any(row.digest == policy.digest for row in rows)
    assert any(row.digest and row.digest != policy.digest for row in rows)
    used = {row.entry: row for row in registry.usage(fleet, policy.policy).rows}
    assert not used["legacy-tool"].used
    assert not used[servers.OLD_ENTRY].known


def test_a_claim_differs_from_what_was_assigned(fleet):
    found = devices.devices(fleet, devices.DeviceFilter(), now=NOW, silent_after=SILENT, limit=200).rows
    assert [row.hostname for row in found if row.assigned_ring and row.assigned_ring != row.ring]


def test_every_key_counts_the_machines_that_enrolled_with_it(fleet):
    assert sum(fleet.execute(select(schema.ENROLL_KEYS.c.uses)).scalars()) == demo.DEVICES
