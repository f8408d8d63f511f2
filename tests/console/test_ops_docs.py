# SPDX-License-Identifier: Apache-2.0
"""What docs/webhooks.md and docs/console-operations.md say is what the console does."""

import ast
import base64
import hmac
import inspect
import json
import pathlib
import re

import pytest

from halod.console import monitor
from halod.console.hooks import deliver, events, letters, send, target
from halod.console.metrics import METRICS
from halod.console.settings.fields import TABLES
from halod.console.settings.kinds import EVENTS
from tests.console.support_ops import SECRET

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
HOOKS = (DOCS / "webhooks.md").read_text()
RUNNING = (DOCS / "console-operations.md").read_text()


def section(text, title):
    return re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]


def test_every_event_is_described():
    rows = re.findall(r"^\| `([a-z.]+)` \|", section(HOOKS, "Set one up"), re.MULTILINE)
    assert rows == [*EVENTS, events.FOLDED, "webhook.test"]


def test_the_check_of_a_signature_works():
    """The lines of Python on the page, run on what the console signs."""
    (code,) = re.findall(r"```python\n(.*?)```", HOOKS, re.DOTALL)
    body = b'{"id":"msg_1"}'
    key = base64.b64decode(SECRET.removeprefix(target.PREFIX))
    signature = target.sign([b"x" * 24, key], "msg_1", 17, body)
    for sent, good in ((body, True), (body + b" ", False)):
        names = {
            "base64": base64, "hmac": hmac, "secret": SECRET, "body": sent,
            "headers": {"webhook-id": "msg_1", "webhook-timestamp": "17", "webhook-signature": signature},
        }  # fmt: skip
        exec(compile(code, "webhooks.md", "exec"), names)
        assert names["good"] is good


def test_the_numbers_are_those_of_the_code():
    spoken = {5: "5 s", 300: "5 min", 1800: "30 min", 7200: "2 h", 18000: "5 h", 36000: "10 h", 50400: "14 h"}
    spoken |= {72000: "20 h", 86400: "24 h"}
    *most, last = [spoken[delay] for delay in deliver.DELAYS]
    flat = re.sub(r"\s+", " ", HOOKS)
    assert f"Attempts are {', '.join(most)} and {last} apart" in flat
    assert "After the tenth" in flat
    assert deliver.MOST_TRIES == 10
    assert f"within {send.TOTAL:.0f} seconds takes the delivery" in flat
    assert f"at most {events.PER_FOLD} deliveries of their own a minute" in flat
    assert f"When {events.WAITING:,} deliveries wait" in flat
    assert f"`devices` has {events.SHOWN} at most" in flat
    assert events.FOLD == 60


def test_every_word_of_a_failure_is_explained():
    source = ast.parse(inspect.getsource(send) + inspect.getsource(deliver))
    words = {
        node.value
        for node in ast.walk(source)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[a-z]+(-[a-z]+)*", node.value)
    }
    table = section(HOOKS, "Dead deliveries")
    told = set(re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))))
    assert told <= words
    assert {"timed-out", "refused", "tls", "gone", "settings", "no-such-webhook", "redirect"} <= told
    assert letters.STATES == ("due", "done", "dead")


@pytest.mark.parametrize("block", re.findall(r"```json\n(.*?)```", HOOKS, re.DOTALL))
def test_examples_are_json(block):
    assert json.loads(block)["type"] in {*EVENTS, events.FOLDED}


def test_metrics_that_are_named_exist():
    named = set(re.findall(r"halo_[a-z_]+[a-z]", RUNNING)) - {"halo_policy"}
    endings = {
        f"{name}{end}"
        for name, one in METRICS.items()
        if one.kind == "histogram"
        for end in ("_bucket", "_sum")
    }
    assert named
    assert named - METRICS.keys() - endings == set()


def test_addresses_and_retention_are_those_of_the_code():
    for route in monitor.ROUTES:
        assert f"`{route.path}`" in RUNNING
    table = section(RUNNING, "Retention")
    assert dict(re.findall(r"`([a-z]+)` = (\d+)", table)) == {
        name: str(getattr(TABLES["retention"].kind(), name)) for name in TABLES["retention"].fields
    }
