# SPDX-License-Identifier: Apache-2.0
"""Warnings: what is allowed and hardly meant."""

from datetime import date

import pytest

from halod.policy.load import examine
from halod.policy.warn import warnings

HASH = "93098e84bb3984832b76cd6c573afb9fcfff0a17cf58956f9703e827e3f81a30"
NPM = "package: {type: npm, identifier: a, version: 1.0.0}"
URL = "url: https://a.example/mcp"
CREDENTIAL = "carries a credential in clear text; have it replaced, and refer to the new one by a variable"
OCI = f"package: {{type: oci, identifier: docker.io/a/b, sha256: {HASH}}}"


def warned(text: str) -> list[str]:
    policy, root, problems = examine(text.encode())
    assert problems == []
    assert policy is not None
    assert root is not None
    return [f"{w.line}:{w.column}: {w.message}" for w in warnings(policy, root, date(2027, 7, 1))]


def of_server(rest: str, more: str = "") -> list[str]:
    found = warned(f"mcp:\n  servers:\n    - {{id: x, {rest}}}\n{more}")
    return [warning.split(": ", 1)[1] for warning in found]


@pytest.mark.parametrize("rest", [NPM, URL, OCI, f"definitionSha256: {HASH}", "command: [/opt/acme/x]"])
def test_a_plain_entry_has_no_warning(rest: str):
    assert of_server(rest) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org: acme\n", ["1:1: approves no server"]),
        ("org: acme\nmcp:\n", ["2:1: approves no server"]),
        (
            "ring: [a]\nmcp: {servers: }\n",
            ['1:1: "ring" is left alone; did you mean "rings"?', "2:1: approves no server"],
        ),
        ("mpc: {}\n", ["1:1: approves no server", '1:1: "mpc" is left alone; did you mean "mcp"?']),
        ("Units: {}\n", ['1:1: "Units" is left alone; did you mean "units"?', "1:1: approves no server"]),
        (
            "servers: []\nmcp:\n",
            ['1:1: "servers" is left alone here; did you mean mcp.servers?', "2:1: approves no server"],
        ),
    ],
)
def test_top_level(text: str, expected: list[str]):
    assert warned(text) == sorted(expected)


@pytest.mark.parametrize("key", ["profiles", "identity", "version", "x", "models"])
def test_keys_of_others_are_no_slip(key: str):
    assert warned(f"{key}: 1\nmcp:\n  servers: [{{id: x, {NPM}}}]\n") == []


def test_a_key_that_is_there_is_not_suggested():
    assert warned(f"rings: []\nring: 1\nmcp:\n  servers: [{{id: x, {NPM}}}]\n") == []


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (f"{NPM}, expires: 2027-06-30", ['server "x" expired on 2027-06-30; it approves nothing']),
        (f"{NPM}, expires: 2027-07-01", []),
        (f"{NPM}, headers: {{A: '${{B}}'}}", ['server "x": headers does nothing for a package']),
        (f"{NPM}, auth: {{mode: halos}}", ['server "x": auth does nothing for a package']),
        (f"{URL}, args: any", ['server "x": args does nothing for a url']),
        (f"{URL}, env: [A]", ['server "x": env does nothing for a url']),
        (f"{URL}, tolerate: [host-mount]", ['server "x": tolerate does nothing for a url']),
        ("command: [/opt/x], args: [a]", ['server "x": args does nothing for a command']),
        (f"definitionSha256: {HASH}, args: any", ['server "x": args does nothing for a definitionSha256']),
        (f"{NPM}, tools: {{allow: []}}", ['server "x": tools.allow is empty, so no tool is allowed']),
        (
            f"{NPM}, env: [TOKEN, NODE_OPTIONS]",
            ['server "x": whoever sets NODE_OPTIONS decides what runs, whatever the pin says'],
        ),
        ("url: 'https://a.example/mcp?api_key=CANARY'", [f'server "x": url {CREDENTIAL}']),
        ("url: 'https://a.example/mcp?page=1'", []),
        ("command: [/opt/x, --token, CANARY]", [f'server "x": command {CREDENTIAL}']),
        ("command: [/opt/x, --token, '${TOKEN}']", []),
        (f"{NPM}, args: ['--password=CANARY']", [f'server "x": args {CREDENTIAL}']),
        (f"{NPM}, args: any", []),
        ("command: [/tmp/x]", ['server "x": any user can replace a program in this directory']),
        (
            f"package: {{type: oci, identifier: a/b, sha256: {HASH}}}",
            ['server "x": the image\'s registry is not written; it is taken as docker.io/a/b'],
        ),
    ],
)
def test_servers(rest: str, expected: list[str]):
    assert of_server(rest) == expected


@pytest.mark.parametrize(
    ("rest", "deny", "both"),
    [
        (NPM, "package: {type: npm, identifier: a}", True),
        (NPM, "package: {type: npm, identifier: a, version: 1.0.0}", True),
        (NPM, "package: {type: npm, identifier: a, version: 1.0.1}", False),
        (NPM, "package: {type: npm, identifier: b}", False),
        (NPM, "package: {type: pypi, identifier: a}", False),
        (URL, "package: {type: npm, identifier: a}", False),
        (OCI, "package: {type: oci, identifier: a/b}", True),
        (OCI, f"package: {{type: oci, identifier: a/b, sha256: {HASH}}}", True),
        (OCI, f"package: {{type: oci, identifier: a/b, sha256: {'0' * 64}}}", False),
        (URL, "host: A.example", True),
        (URL, "host: b.example", False),
        (URL, "host: 'a.example:443'", True),
        (URL, "host: 'a.example:8443'", False),
        (NPM, "host: a.example", False),
        (URL, "url: 'https://a.example:443/mcp'", True),
        (URL, "url: https://a.example/", False),
        (f"definitionSha256: {HASH}", f"definitionSha256: {HASH}", True),
        (URL, f"definitionSha256: {HASH}", False),
    ],
)
def test_what_is_approved_and_denied_at_once(rest: str, deny: str, both: bool):
    found = of_server(rest, f"  deny:\n    - {{{deny}}}\n")
    assert found == (['server "x" is also denied, and deny goes first'] if both else [])


def test_an_image_denied_by_a_tag_is_not_denied_under_its_digest():
    deny = "  deny:\n    - {package: {type: oci, identifier: a/b, version: 1.0.0}}\n"
    assert of_server(NPM, deny) == ["denies this tag only; the image's other names are not denied"]


def test_warnings_have_the_place_of_what_they_are_about():
    text = f"mcp:\n  servers:\n    - id: x\n      {NPM}\n      headers: {{A: '${{B}}'}}\n      expires: 2020-01-01\n"
    assert [warning.split(" ")[0] for warning in warned(text)] == ["5:7:", "6:7:"]
