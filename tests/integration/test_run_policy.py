# SPDX-License-Identifier: Apache-2.0
"""A running service whose policy is fetched: first one, a newer one, refusals, outages, restarts (design 9)."""

import hashlib
import json

import pytest

from tests.support.server import running
from tests.support.service import service
from tests.support.signing import KEY, NEW_KEY, OTHER, POLICY, STRANGER, envelope, expired, pinned

TOOLS = {"command": "npx", "args": ["-y", "@acme/tools@1.2.0"]}
OLD_TOOLS = {"command": "npx", "args": ["-y", "@acme/tools@1.0.0", "CANARYarg"]}


def digest(policy):
    return "sha256:" + hashlib.sha256(policy.encode()).hexdigest()


@pytest.fixture
def run():
    with service() as run, running() as server:
        run.server = server
        run.policy.unlink()
        run.settings(policy={"path": None, "url": server.policy_url, "public_keys": pinned(KEY)})
        run.write_servers(tools=OLD_TOOLS)
        yield run


def wait_for(run, policy, code=""):
    """Wait for a status of a policy (its text, "" for none) and an errorCode."""
    wanted = (digest(policy) if policy else "", code)

    def there():
        status = run.status()
        return status is not None and (status["digest"], status["errorCode"]) == wanted

    run.wait(there)
    return run.status()


def test_a_fetched_policy_is_applied_and_a_newer_one_after_a_restart(run):
    """Cycles do not wait for the first one, and its arrival starts one; digest is that of what was signed."""
    run.server.serve(envelope())
    run.start()
    status = wait_for(run, POLICY)
    assert [(row["server"], row["kind"]) for row in status["mcpDrift"]] == [("tools", "version-drift")]
    followed = run.ask({"command": "status"})["policy"]
    assert (followed["version"], followed["trouble"]) == (7, "")
    run.stop()
    run.server.serve(envelope(version=8, policy=OTHER))
    run.start()
    assert wait_for(run, OTHER)["mode"] == "warn"
    assert run.ask({"command": "status"})["policy"]["version"] == 8


def test_a_scan_does_not_wait_for_a_server_that_hangs(run):
    """The first status is there; what it lacks is said."""
    run.server.serve(envelope(), "hang")
    run.start()
    status = wait_for(run, "", "policy-pending")
    assert status["mode"] == "inventory"
    run.stop()  # long before its request would end


def test_a_retry_brings_the_policy_without_a_restart(run):
    """The change triggers a cycle of its own, long before the timer."""
    run.server.serve(envelope(), "500", "ok")
    run.start()
    status = wait_for(run, POLICY)
    assert status["mcpDriftTotal"] == 1
    assert [line["trigger"] for line in run.cycles()][-1] == "policy"


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("policy-unsigned", lambda: envelope(STRANGER, version=8)),
        ("policy-older", lambda: envelope(version=6)),
        ("policy-expired", lambda: expired(version=8)),
        ("policy-foreign", lambda: envelope(version=8, org="other", policy=POLICY.replace("acme", "other"))),
        ("policy-malformed", lambda: b"CANARY"),
    ],
)
def test_what_is_refused_after_a_restart_leaves_the_last_good_one(run, code, make):
    """The status has the digest of the policy that is applied, and says what is wrong."""
    run.server.serve(envelope())
    assert run.run_once() == 0
    assert run.status()["digest"] == digest(POLICY)
    run.server.serve(make())
    run.start()
    status = wait_for(run, POLICY, code)
    assert "the last good policy goes on" in status["lastError"]
    assert status["mcpDriftTotal"] == 1
    assert status["lastError"] in run.ask({"command": "status"})["problems"]


def test_an_outage_over_a_restart_costs_nothing(run):
    """The policy of before is applied at once, and nothing is said to be wrong."""
    run.server.serve(envelope())
    assert run.run_once() == 0
    run.server.serve(envelope(), "500")
    run.write_servers(tools=TOOLS)
    assert run.run_once() == 0
    status = run.status()
    assert (status["digest"], status["errorCode"], status["mcpDriftTotal"]) == (digest(POLICY), "", 0)


def test_once_waits_for_the_first_answer(run):
    """A policy that is there is applied, one that cannot be had is a failure that is named."""
    run.server.serve(envelope(), "404")
    assert run.run_once() == 1
    assert (run.status()["mode"], run.status()["errorCode"]) == ("inventory", "policy-unreachable")
    run.server.serve(envelope())
    assert run.run_once() == 0
    assert (run.status()["mode"], run.status()["errorCode"]) == ("allowlist", "")


def test_a_key_that_is_pinned_no_more_takes_its_policy_with_it(run):
    """Until one that a pinned key has signed is there."""
    run.server.serve(envelope())
    assert run.run_once() == 0
    run.settings(policy={"public_keys": pinned(NEW_KEY)})
    assert run.run_once() == 1
    assert (run.status()["digest"], run.status()["errorCode"]) == ("", "policy-unsigned")
    run.server.serve(envelope(KEY, NEW_KEY))
    assert run.run_once() == 0


def test_the_organisation_of_the_settings_has_to_fit(run):
    """`policy.org` decides before anything was taken."""
    run.settings(policy={"org": "other"})
    run.server.serve(envelope())
    assert run.run_once() == 1
    assert run.status()["errorCode"] == "policy-foreign"


def test_no_token_is_shown_to_the_server_of_the_policy(run):
    """The report's token is for reports."""
    token = run.directory / "token"
    token.write_text("CANARYtoken-3f9c2b7a\n")
    token.chmod(0o600)
    run.settings(report={"url": run.server.url, "token_file": str(token)})
    run.server.serve(envelope())
    assert run.run_once() == 0
    asked = run.server.asked()
    assert asked
    assert "CANARY" not in json.dumps(asked)
