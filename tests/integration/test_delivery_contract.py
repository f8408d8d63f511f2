# SPDX-License-Identifier: Apache-2.0
"""The contract on paper against the agent and the reference server: OpenAPI, schema, words, and answers."""

import json
import re

import msgspec
import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from halod.agent import enrol
from halod.agent.delivery import _MEND, _REFUSED, _outcome
from halod.agent.outbox import Limits, compose
from halod.status import Coverage, Skipped, Transition, schema
from tests.server.reference import ENROL, REPORT, Console, is_status
from tests.support.server import ROOT
from tests.support.state import finding, status

SPEC = ROOT / "docs" / "openapi.yaml"
WORDS = (ROOT / "docs" / "report-api.md").read_text()
TOKEN = "tok-1"
KEY = "key-1"
AUTH = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
KEYED = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
ASKED = {"device": "d" * 64, "installId": "0" * 32, "hostname": "mbp-417", "os": "linux", "halod": "0.1.0"}


@pytest.fixture(scope="module")
def spec():
    return yaml.safe_load(SPEC.read_text())


@pytest.fixture
def console():
    return Console([TOKEN], KEY)


def full_status():
    """Give a status with a value in every field that a status can have."""
    rows = (
        finding("notes", host="mcp.acme.example", transport="http", secret_in_definition=True, stale=True),
        finding("wiki", projects=3, scope="project"),
    )
    transitions = tuple(
        Transition(id=f"ab-{at}", time="2026-11-30T09:15:02Z", event=event, finding=rows[0], **was)
        for at, (event, was) in enumerate([("opened", {}), ("changed", {"was": "1" * 64}), ("resolved", {})])
    )
    made = status(
        *rows,
        skipped=(
            Skipped(user="dev", harness="cursor", file="~/.cursor/mcp.json", reason="symlink", errno="ELOOP"),
        ),
        coverage=Coverage(accounts=1, files=7, definitions=12, duration_ms=84),
        last_error="words",
        error_code="state-full",
    )
    body, count = compose(made, transitions, Limits())
    assert count == 3
    return json.loads(body)


def component(spec, name):
    return Draft202012Validator({**spec["components"]["schemas"][name], "components": spec["components"]})


def test_the_file_is_openapi(spec):
    """It is a valid 3.1 document, references to the status schema included."""
    OpenAPIV31SpecValidator(spec, base_uri=SPEC.as_uri()).validate()


def test_the_schema_beside_it_is_the_agents():
    """The document that is referred to is the one that the types make."""
    assert json.loads((ROOT / "docs" / "status.schema.json").read_text()) == json.loads(
        msgspec.json.encode(schema())
    )


def test_what_is_sent_is_a_status():
    """A report with everything in it is what the schema says and what the reference takes."""
    sent = full_status()
    Draft202012Validator(json.loads((ROOT / "docs" / "status.schema.json").read_text())).validate(sent)
    assert is_status(sent)


def test_the_enrolment_is_what_the_contract_says(spec):
    """The agent's request, with and without an old token, and nothing that is not described."""
    properties = spec["components"]["schemas"]["Enrolment"]["properties"]
    for old in ("", "tok-0"):
        request = enrol._Request("d" * 64, "0" * 32, "mbp-417", "linux", "0.1.0", old)
        sent = json.loads(msgspec.json.encode(request))
        component(spec, "Enrolment").validate(sent)
        assert set(sent) <= set(properties)


def post(console, path, headers, document):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return console.handle("POST", path, headers, body)


def answers(console):
    """Give an answer of the reference for each way it can answer, as (path, status, headers, body)."""
    good = full_status()
    asked = [
        (REPORT, AUTH, good),
        (REPORT, {**AUTH, "content-type": "application/json; charset=utf-8"}, good),
        (REPORT, {**AUTH, "content-type": "text/plain"}, good),
        (REPORT, {**AUTH, "authorization": "Bearer other"}, good),
        (REPORT, {"content-type": "application/json"}, good),
        (REPORT, AUTH, b"{"),
        (REPORT, AUTH, b"[]"),
        (REPORT, AUTH, b"[" * 60_000),
        (REPORT, AUTH, {**good, "schemaVersion": 2}),
        (REPORT, AUTH, b" " * 65_537),
        (ENROL, KEYED, ASKED),
        (ENROL, KEYED, ASKED),
        (ENROL, {**KEYED, "authorization": "Bearer other"}, ASKED),
        (ENROL, KEYED, b"{"),
        (ENROL, KEYED, {**ASKED, "device": ""}),
    ]
    for path, headers, document in asked:
        yield (path, *post(console, path, headers, document))
    console.reject(ASKED["device"])
    yield (ENROL, *post(console, ENROL, KEYED, ASKED))
    bound = json.loads(post(console, ENROL, KEYED, {**ASKED, "device": "e"})[2])["token"]
    yield (REPORT, *post(console, REPORT, {**AUTH, "authorization": f"Bearer {bound}"}, good))


def test_every_answer_of_the_reference_is_described(spec, console):
    """Status, headers and bodies are those of the contract."""
    seen = set()
    for path, code, headers, body in answers(console):
        seen.add((path, code))
        described = resolve(spec, spec["paths"][path]["post"]["responses"][str(code)])
        assert set(headers) - {"Content-Type"} <= set(described.get("headers", {}))
        if body:
            content = described["content"][headers["Content-Type"]]
            Draft202012Validator({**spec, **resolve(spec, content["schema"])}).validate(json.loads(body))
        else:
            assert "content" not in described
    described = {
        (path, int(code)) for path, item in spec["paths"].items() for code in item["post"]["responses"]
    }
    # What protects a server under load, or is refused by policy, the reference has no reason to say.
    assert described - seen == {
        *((path, code) for path in (REPORT, ENROL) for code in (429, 503)),
        *((ENROL, code) for code in (403, 413, 415)),
    }


def resolve(spec, thing):
    while "$ref" in thing:
        part = spec
        for name in thing["$ref"].removeprefix("#/").split("/"):
            part = part[name]
        thing = part
    return thing


def test_paths_and_methods_that_are_not_there(console):
    """The rest of the server."""
    assert console.handle("GET", REPORT, AUTH, b"")[0] == 405
    assert console.handle("POST", "/", AUTH, b"")[0] == 404


def test_repeated_transitions_are_dropped(console):
    """A report that comes again changes nothing."""
    good = full_status()
    for _ in range(3):
        assert post(console, REPORT, AUTH, good)[0] == 204
    assert [one["id"] for _, one in console.transitions] == ["ab-0", "ab-1", "ab-2"]
    assert "transitions" not in console.newest["d" * 64]


def test_a_truncated_report_resolves_nothing(console):
    """What is missing from it stays known; the next whole one replaces everything."""
    good = full_status()
    post(console, REPORT, AUTH, good)
    post(console, REPORT, AUTH, {**good, "mcpDrift": [], "truncated": True})
    assert len(console.newest["d" * 64]["mcpDrift"]) == 2
    post(console, REPORT, AUTH, {**good, "mcpDrift": []})
    assert console.newest["d" * 64]["mcpDrift"] == []


def test_unknown_fields_are_ignored(console):
    """A later agent may say more."""
    good = full_status()
    good["mcpDrift"][0]["later"] = good["later"] = {"a": 1}
    assert post(console, REPORT, AUTH, good)[0] == 204


@pytest.mark.parametrize(
    "change",
    [
        {"device": ""},
        {"device": 1},
        {"mode": "other"},
        {"units": "payments"},
        {"mcpDrift": [{}]},
        {"mcpDrift": None},
        {"mcpDriftTotal": True},
        {"mcpDriftTotal": -1},
        {"transitions": [{}]},
        {"transitions": [{"id": "", "time": "", "event": "opened", "finding": {}}]},
        {"coverage": None},
    ],
)
def test_what_is_no_status_is_refused(console, change):
    """And nothing of it is kept."""
    assert post(console, REPORT, AUTH, {**full_status(), **change})[0] == 422
    assert console.newest == {}
    assert console.transitions == []


def test_the_words_say_what_the_agent_does():
    """The table of answers agrees with the code."""
    rows = {row.split("|")[1].strip(): row for row in WORDS.splitlines() if row.startswith("| ")}
    assert {
        int(code) for code in re.findall(r"\d{3}", next(key for key in rows if key.startswith("400, 413")))
    } == _REFUSED
    assert [_outcome(code) for code in (401, 403)] == ["unauthorised"] * 2
    assert {"unauthorised", "wrong-address", "redirect"} <= _MEND
    for code in (408, 425, 429):
        assert _outcome(code) == "throttled"
    assert _outcome(404) == "wrong-address"
    assert _outcome(599) == "server-error"
    for word in ("unauthorised", "wrong-address", "redirect", "enrolment-pending", "enrolment-refused"):
        assert f'"{word}"' in WORDS


@pytest.mark.parametrize("row", re.findall(r"^\| `(https://[^`]+)` \| `([^`]+)` \|$", WORDS, re.MULTILINE))
def test_where_enrolment_is(row):
    """The examples of the document are those of the code."""
    assert enrol.enrol_url(row[0]) == row[1]
