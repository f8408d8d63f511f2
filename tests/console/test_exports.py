# SPDX-License-Identifier: Apache-2.0
"""Exports hold everything once, in bounded memory, and whatever a device wrote comes out inert."""

import csv
import io
import ipaddress
import json
import pathlib
import unicodedata

import ocsf_json_schema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from sqlalchemy import event

from halod.console.api import csvtext, exports, ocsf
from halod.console.store.read.findings import FindingRow
from tests.console import support_people as people
from tests.console.support_api import FORMULA, ODD, Program, hostile_console
from tests.console.support_reads import fleet  # noqa: F401 - a fixture

NAMES = (
    "findings.csv",
    "findings.jsonl",
    "findings.ocsf.jsonl",
    "devices.csv",
    "devices.jsonl",
    "transitions.jsonl",
)
TABLE = json.loads((pathlib.Path(__file__).parent / "assets" / "ocsf-1.8.0.json").read_text())
RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@pytest.fixture
def program(store):
    return Program(hostile_console(store))


def texts(value):
    """Give every text in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)


def inert(text):
    return not any(unicodedata.category(char) in {"Cc", "Cf", "Cs"} for char in text)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_text_comes_out_inert(program, name):
    answer = program.get(f"/export/{name}")
    assert answer.status_code == 200
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-disposition"].startswith('attachment; filename="halo-')
    if name.endswith(".csv"):
        rows = list(csv.reader(io.StringIO(answer.text, newline=""), strict=True))
        found = [cell for row in rows for cell in row]
        assert {len(row) for row in rows} == {len(rows[0])}
        assert all(line.endswith("\r") for line in answer.text.split("\n")[:-1])
    else:
        found = [text for line in answer.text.splitlines() for text in texts(json.loads(line))]
    assert len(found) > len(ODD)
    assert all(map(inert, found))
    if name.endswith(".csv"):
        assert not [cell for cell in found if cell.startswith(RISKY)]
        assert "'" + FORMULA in found
    assert max(map(len, found)) <= 1024 + 1


def test_lists_are_joined_for_a_spreadsheet_and_cleaned_for_a_program(program):
    rows = list(csv.DictReader(io.StringIO(program.get("/export/devices.csv").text, newline="")))
    documents = [json.loads(line) for line in program.get("/export/devices.jsonl").text.splitlines()]
    assert {row["notCovered"] for row in rows} == {"project-files"}
    assert any("; " in row["units"] for row in rows)
    for row, document in zip(rows, documents, strict=True):
        assert row["units"].removeprefix("'") == "; ".join(document["units"])


def test_a_list_is_cleaned_on_its_way_out():
    """Whatever came into the database in another way than by a report."""
    assert exports._clean(("a\u202eb", ["\x07c"])) == ["ab", ["c"]]


@given(st.text(st.characters(), max_size=50), st.text(st.characters(), max_size=50))
def test_any_text_is_one_inert_field(one, two):
    line = csvtext.line((one, 7, True, two))
    assert line.endswith("\r\n")
    rows = list(csv.reader(io.StringIO(line, newline=""), strict=True))
    assert len(rows) == 1
    assert rows[0][1:3] == ["7", "true"]
    for cell, text in zip((rows[0][0], rows[0][3]), (one, two), strict=True):
        assert inert(cell)
        assert not cell.startswith(RISKY)
        assert not unicodedata.normalize("NFKC", cell[:1]).startswith(RISKY)
        if text.isascii():  # only white space is another one
            kept = "".join("".join(char for char in text if inert(char)).split())
            assert "".join(cell.removeprefix("'").split()) in kept


@pytest.mark.parametrize("name", NAMES)
def test_an_export_is_in_the_audit_log_with_its_filter(program, name):
    program.get(f"/export/{name}", device="0" * 64) if "devices" not in name else program.get(
        f"/export/{name}", ring="ring0"
    )
    line = program.get("/audit", action="export").json()["rows"][0]
    assert (line["target"], line["actor"], line["actorKind"], line["address"]) == (
        name,
        "a program",
        "api-token",
        "127.0.0.1",
    )
    assert json.loads(line["detail"]) == ({"ring": "ring0"} if "devices" in name else {"device": "0" * 64})


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("findings.csv", {"kind": "denied"}),
        ("findings.jsonl", {"harness": "cursor", "ring": "ring1-canary"}),
        ("findings.ocsf.jsonl", {"unit": "unit-0"}),
        ("devices.jsonl", {"state": "reporting", "ring": "ring0"}),
        ("devices.csv", {}),
        ("transitions.jsonl", {}),
        ("transitions.jsonl", {"after": "100"}),
        ("findings.jsonl", {"ring": "nobody"}),
    ],
)
def test_an_export_has_every_row_once(fleet, monkeypatch, tmp_path, name, query):  # noqa: F811
    """Over many small pages; the fleet is only read, so the line for the audit log is left out here."""
    monkeypatch.setattr(exports, "PAGE", 7)
    monkeypatch.setattr(exports.audit, "record", lambda *_, **__: None)
    console = people.make_console(fleet)
    with_token = Program.__new__(Program)
    with_token.client, with_token.headers = people.client(console), people.cookie(people.session(console))
    answer = with_token.get(f"/export/{name}", **query)
    assert answer.status_code == 200
    if name.endswith(".csv"):
        rows = list(csv.DictReader(io.StringIO(answer.text, newline=""), strict=True))
    else:
        rows = [json.loads(line) for line in answer.text.splitlines()]
    listed = {"findings": "/findings", "devices": "/devices", "transitions": "/transitions"}[
        name.partition(".")[0]
    ]
    if listed == "/transitions":
        wanted, after = [], int(query.get("after", 0))
        while page := with_token.get(listed, after=after, limit=200).json()["rows"]:
            wanted += page
            after = page[-1]["seq"]
    else:
        wanted = with_token.every(listed, **query, limit=200)
    key = {"/findings": "id", "/devices": "device", "/transitions": "seq"}[listed]
    of = (lambda row: row["metadata"]["uid"]) if "ocsf" in name else (lambda row: row[key])
    assert sorted(str(of(row)) for row in rows) == sorted(str(row[key]) for row in wanted)


def test_an_export_holds_one_page_and_no_transaction(store, monkeypatch):
    """Between two pieces of the file no connection is out, and each piece is asked for when it is wanted."""
    console = hostile_console(store)
    monkeypatch.setattr(exports, "PAGE", 5)
    asked = []
    event.listen(store._readers, "begin", lambda _: asked.append(1))
    read = exports._findings(_asked())
    pieces = exports._json_lines(exports._clean_document)(exports._pages(console.store, read))
    begun = []
    for piece in pieces:
        assert piece.count(b"\n") <= 5
        begun.append(len(asked))
        assert store._readers.pool.checkedout() == 0
    assert begun == sorted(set(begun))
    assert len(begun) >= 2 * len(ODD) // 5


def _asked():
    from halod.console.api import asking, lists

    return asking.read(lists.FINDING_FILTERS, (), {})


def test_a_refused_export_begins_no_file(program):
    for query in ({"kind": "a" * 2000}, {"color": "red"}, {"group": "x"}):
        answer = program.get("/export/findings.csv", **query)
        assert answer.status_code == 400
        assert answer.headers["content-type"] == "application/problem+json"
    assert not program.get("/audit", action="export").json()["rows"]


def test_a_look_at_the_headers_is_no_export(program):
    answer = program.client.request("HEAD", "/api/v1/export/findings.csv", headers=program.headers)
    assert answer.status_code == 200
    assert answer.content == b""
    assert not program.get("/audit", action="export").json()["rows"]


# --- OCSF --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def published():
    """The class as OCSF's compiled schema has it, with the profile that the events name."""
    schema = ocsf_json_schema.OcsfJsonSchemaEmbedded(ocsf_json_schema.get_ocsf_schema(TABLE["version"]))
    return Draft202012Validator(schema.get_class_schema("detection_finding", ["host"]))


PLAIN = {"string": str, "integer": int, "long": int, "timestamp": int, "boolean": bool}


def conforms(value, name, kind="objects"):
    """Hold an object to the table; gives what is wrong."""
    wanted = TABLE[kind][name]
    faults = [f"{name} lacks {one}" for one in wanted["required"] if one not in value]
    if wanted.get("at_least_one") and not set(wanted["at_least_one"]) & set(value):
        faults.append(f"{name} has none of {wanted['at_least_one']}")
    for key, inside in value.items():
        spec = wanted["attributes"].get(key)
        if spec is None:
            faults.append(f"{name}.{key} is not known")
            continue
        for one in inside if spec.get("list") else [inside]:
            if spec["type"] in TABLE["objects"]:
                faults += conforms(one, spec["type"])
            elif spec["type"] in {"json", "object"}:
                faults += [] if isinstance(one, dict) else [f"{name}.{key} is no object"]
            elif spec["type"] == "ip":
                ipaddress.ip_address(one)
            elif not isinstance(one, PLAIN[spec["type"]]):
                faults.append(f"{name}.{key} is a {type(one).__name__}")
            if "enum" in spec and str(one) not in spec["enum"]:
                faults.append(f"{name}.{key} is {one}")
    return faults


def names_agree(event):
    """Tell whether each number has its own name beside it."""
    attributes = TABLE["classes"]["detection_finding"]["attributes"]
    return all(
        event[label] == attributes[number]["enum"][str(event[number])]
        for number, label in (
            ("activity_id", "activity_name"),
            ("severity_id", "severity"),
            ("status_id", "status"),
        )
    )


def test_every_event_meets_the_published_requirements(program, published):
    events = [json.loads(line) for line in program.get("/export/findings.ocsf.jsonl").text.splitlines()]
    assert len(events) == 2 * len(ODD)
    for event_ in events:
        assert not conforms(event_, "detection_finding", "classes")
        assert not [error.message for error in published.iter_errors(event_)]
        assert names_agree(event_)
        assert event_["type_uid"] == event_["class_uid"] * 100 + event_["activity_id"]
    assert len({event_["metadata"]["uid"] for event_ in events}) == len(events)
    assert {event_["severity_id"] for event_ in events} == {0, 2, 3, 4}


def test_the_table_says_what_the_schema_says(published):
    """What the table requires is required there, and an event without it does not pass either."""
    event_ = ocsf.event(_row())
    assert not list(published.iter_errors(event_))
    assert not conforms(event_, "detection_finding", "classes")
    for name in TABLE["classes"]["detection_finding"]["required"]:
        without = {key: value for key, value in event_.items() if key != name}
        assert list(published.iter_errors(without))
        assert conforms(without, "detection_finding", "classes")


TEXT = st.text(st.characters(), max_size=20)
HOSTS = st.sampled_from(
    ["", "mcp.example.com", "mcp.example.com:8443", "[2001:db8::1]:443", "[::1]", "192.0.2.1:80", "a:99999"]
)


def _row(**more):
    texts_ = dict.fromkeys(
        ("username", "harness", "file", "scope", "server", "transport", "detail", "fix", "ring"), "x"
    )
    flags = dict.fromkeys(("enabled", "secret", "stale"), False)
    row = {
        "id": 1, "device": "d" * 64, "hostname": "mbp-1", "thing": 1, "kind": "denied", "host": "", "sha256": "0" * 64,
        "projects": 0, "first_seen": 1_796_000_000, "last_seen": 1_796_000_060,
    }  # fmt: skip
    return FindingRow(**{**texts_, **flags, **row, **more})


@given(
    st.fixed_dictionaries(
        dict.fromkeys(
            ("hostname", "username", "harness", "file", "scope", "server", "kind", "detail", "fix", "ring"),
            TEXT,
        )
    ),
    HOSTS,
)
def test_any_row_is_a_valid_event(published, fields, host):
    event_ = ocsf.event(_row(**fields, host=host))
    assert not conforms(event_, "detection_finding", "classes")
    assert not [error.message for error in published.iter_errors(event_)]
    assert all(map(inert, texts(event_)))
