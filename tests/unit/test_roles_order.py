# SPDX-License-Identifier: Apache-2.0
"""What the agent orders of a worker: sealed bytes that only the worker opens."""

import json
import os
from datetime import date

import msgspec
import pytest

from halod.harnesses import LOCATIONS, extra_location
from halod.policy.load import parse
from halod.policy.scope import scope
from halod.roles import order
from halod.roles.protocol import Target
from halod.roles.worker import Job

POLICY = b"""
mcp:
  servers:
    - {id: tools, package: {type: npm, identifier: "@acme/tools", version: 1.2.0}}
"""


@pytest.fixture
def home(tmp_path):
    """A home with one approved and one unknown server, and a third where settings add a place."""
    entry = {"command": "npx", "args": ["-y", "@acme/tools@1.2.0"]}
    other = {"command": "npx", "args": ["-y", "CANARY-package@1.0.0", "CANARYarg"]}
    for folder, servers in ((".cursor", {"tools": entry, "notes": other}), ("moved", {"extra": other})):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return tmp_path


def ordered(home, payload):
    return order.Ordered.to(7, Target(3, os.getuid(), os.getgid(), (), str(home)), payload)


def scanned(home, plan):
    job = ordered(home, order.encode(plan))
    with job.open() as opened:
        return order.scan(opened, job)


def test_an_order_is_scanned_as_its_plan_says(home):
    """Judged by the registry, in the table's places and in those that settings add."""
    registry = scope(parse(POLICY, "bench"), "", (), date(2026, 11, 30))
    answer = scanned(
        home, order.Plan(registry=registry, extra=(extra_location("cursor", "~/moved/mcp.json"),))
    )

    kinds = {(row.location, row.name): row.kind for row in answer.rows}
    cursor = next(number for number, place in enumerate(LOCATIONS) if place.path == "~/.cursor/mcp.json")
    assert kinds == {
        (cursor, "tools"): "approved",
        (cursor, "notes"): "unapproved",
        (len(LOCATIONS), "extra"): "unapproved",
    }


def test_without_a_registry_it_is_an_inventory(home):
    """Nothing is judged."""
    assert {row.kind for row in scanned(home, order.Plan()).rows} == {"inventory"}


def test_the_plans_limit_is_that_of_the_home(home):
    """A file above `max_file_bytes` is told, not read."""
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {}, "pad": "x" * 70_000}))
    answer = scanned(home, order.Plan(max_file_bytes=65_536))

    assert [gap.reason for gap in answer.gaps] == ["too-large"]


def test_what_is_no_plan_opens_no_home(home):
    """The bytes pass through the supervisor unlooked-at; the worker refuses what does not decode."""
    with pytest.raises(msgspec.MsgspecError):
        ordered(home, b"\x93CANARY").open()


def test_a_job_of_another_kind_is_a_fault_of_ours(home):
    """Only an order of the agent is scanned here."""
    job = Job(uid=os.getuid(), gid=os.getgid(), home=str(home), payload=None)
    with job.open() as opened, pytest.raises(TypeError):
        order.scan(opened, job)
