# SPDX-License-Identifier: Apache-2.0
"""Every rule for a server or deny item, each with its message and place."""

from datetime import date

import pytest

from halod.definition import stdio_sha256
from halod.policy.load import PolicyError, parse
from halod.policy.model import Auth, Deny, Entry, Package, Policy

HASH = "93098e84bb3984832b76cd6c573afb9fcfff0a17cf58956f9703e827e3f81a30"
HEAD = "rings: [canary, ga]\nunits: {eng: {}, pay: {parent: eng}}\nmcp:\n  servers:\n"
NPM = "package: {type: npm, identifier: a, version: 1.0.0}"


def read(text: str) -> Policy:
    return parse(text.encode(), "halos.yaml")


def faults(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        read(text)
    return [f"{p.line}:{p.column}: {p.message}" for p in caught.value.problems]


def entry(lines: str) -> Entry:
    """One server, `lines` being its YAML in flow style."""
    (only,) = read(HEAD + f"    - {{{lines}}}\n").entries
    return only


def entry_faults(lines: str) -> list[str]:
    """The messages for one server in flow style; columns count from its first key, the line is left out."""
    prefix = "    - {"
    found = []
    for fault in faults(HEAD + f"{prefix}{lines}}}\n"):
        line, column, message = fault.split(":", 2)
        assert line == "5"
        found.append(f"{int(column) - len(prefix)}:{message}")
    return found


def deny(lines: str) -> Deny:
    (only,) = read(f"mcp:\n  deny:\n    - {{{lines}}}\n").deny
    return only


def deny_faults(lines: str) -> list[str]:
    return [fault.split(": ", 1)[1] for fault in faults(f"mcp:\n  deny:\n    - {{{lines}}}\n")]


def package_fault(inside: str) -> list[str]:
    return [message.split(": ", 1)[1] for message in entry_faults(f"id: a, package: {{{inside}}}")]


# --- what is allowed ---------------------------------------------------------------------------------------


def test_an_entry_with_every_key_of_a_package():
    text = HEAD + (
        "    - id: grafana\n"
        "      package:\n"
        "        {type: oci, identifier: docker.io/grafana/mcp-grafana, version: 0.8.0, sha256: "
        + HASH
        + "}\n"
        "      args: [--stdio, '8080']\n"
        "      env: [TOKEN, _HOST2]\n"
        "      tolerate: [host-mount, privileged]\n"
        "      rings: [ga]\n"
        "      units: [pay, eng]\n"
        "      tools: {allow: [search], deny: [delete]}\n"
        "      owner: observability\n"
        "      reason: dashboards\n"
        "      expires: 2027-06-30\n"
    )
    assert read(text).entries == (
        Entry(
            id="grafana",
            package=Package(
                type="oci",
                identifier="docker.io/grafana/mcp-grafana",
                version="0.8.0",
                sha256=HASH,
                version_text="0.8.0",
            ),
            args=("--stdio", "8080"),
            env=frozenset({"TOKEN", "_HOST2"}),
            tolerate=frozenset({"host-mount", "privileged"}),
            rings=("ga",),
            units=("pay", "eng"),
            tools_allow=("search",),
            tools_deny=("delete",),
            owner="observability",
            reason="dashboards",
            expires=date(2027, 6, 30),
            line=5,
        ),
    )


def test_a_url_entry_keeps_the_url_as_written_beside_its_canonical_form():
    found = entry('id: wiki, url: "HTTPS://Wiki.Acme.example:443/mcp", headers: {X-Org: "${ORG}"}')
    assert found.url == "HTTPS://Wiki.Acme.example:443/mcp"
    assert found.canonical_url == "https://wiki.acme.example/mcp"
    assert found.headers == (("X-Org", "${ORG}"),)


def test_http_is_allowed_on_a_loopback_host():
    assert entry("id: a, url: 'http://127.0.0.1:8080/mcp'").canonical_url == "http://127.0.0.1:8080/mcp"


def test_a_command_entry_has_the_hash_of_its_command_line():
    found = entry("id: a, command: [/opt/acme/bin/house-mcp, --stdio, '']")
    assert found.command == ("/opt/acme/bin/house-mcp", "--stdio", "")
    assert found.definition_sha256 == stdio_sha256("/opt/acme/bin/house-mcp", ["--stdio", ""])


@pytest.mark.parametrize("written", [HASH, HASH.upper(), f"sha256:{HASH}", "1" * 64, f'"{HASH}"'])
def test_a_hash_is_64_hex_digits_in_either_case_with_or_without_its_prefix(written: str):
    expected = written.strip('"').removeprefix("sha256:").lower()
    assert entry(f"id: a, definitionSha256: {written}").definition_sha256 == expected


@pytest.mark.parametrize(
    ("written", "version", "text"),
    [
        ("2.10.0", "2.10.0", "2.10.0"),
        ("'1.2.3'", "1.2.3", "1.2.3"),
        ("1.0.0-rc.1", "1.0.0-rc.1", "1.0.0-rc.1"),
    ],
)
def test_an_npm_version_is_exact(written: str, version: str, text: str):
    package = entry(f"id: a, package: {{type: npm, identifier: a, version: {written}}}").package
    assert package is not None
    assert (package.version, package.version_text) == (version, text)


def test_an_unquoted_version_is_taken_as_written_not_as_a_number():
    package = entry(
        "id: a, package: {type: oci, identifier: a/b, version: 1.10, sha256: " + HASH + "}"
    ).package
    assert package is not None
    assert package.version_text == "1.10"


def test_a_pypi_version_may_have_two_numbers_and_its_name_is_normalised():
    package = entry("id: a, package: {type: pypi, identifier: Mcp_Server.Git, version: 1.10}").package
    assert package is not None
    assert (package.identifier, package.version_text) == ("mcp-server-git", "1.10")


def test_an_image_name_is_filled_in_and_its_version_may_be_left_out():
    package = entry(
        f"id: a, package: {{type: oci, identifier: grafana/mcp, sha256: 'sha256:{HASH.upper()}'}}"
    ).package
    assert package == Package(type="oci", identifier="docker.io/grafana/mcp", sha256=HASH)


def test_bin_names_the_program_inside():
    package = entry(
        "id: a, package: {type: npm, identifier: '@acme/tools', version: 2.1.0, bin: github-mcp}"
    ).package
    assert package is not None
    assert package.bin == "github-mcp"


@pytest.mark.parametrize(
    ("written", "args"), [("any", "any"), ("'any'", "any"), ("[]", ()), ("[any]", ("any",))]
)
def test_args_are_any_or_a_list(written: str, args: object):
    assert entry(f"id: a, {NPM}, args: {written}").args == args


def test_absent_keys_limit_nothing():
    found = entry(f"id: a, {NPM}")
    assert (found.args, found.env, found.rings, found.units, found.tools_allow) == (None, None, (), (), None)
    assert found.auth == Auth()
    assert found.expires is None


def test_empty_lists_of_env_and_tools_allow_nothing():
    found = entry(f"id: a, {NPM}, env: [], tools: {{allow: []}}")
    assert found.env == frozenset()
    assert found.tools_allow == ()


@pytest.mark.parametrize("written", ["2027-06-30", "'2027-06-30'", '"2027-06-30"'])
def test_expires_is_a_date_plain_or_quoted(written: str):
    assert entry(f"id: a, {NPM}, expires: {written}").expires == date(2027, 6, 30)


@pytest.mark.parametrize(
    ("written", "auth"),
    [
        ("{mode: none}", Auth()),
        ("{mode: halos}", Auth(mode="halos")),
        ("{mode: enterprise}", Auth(mode="enterprise")),
        ("{mode: clientIDMetadataURL}", Auth(mode="clientIDMetadataURL")),
        (
            "{mode: clientIDMetadataURL, url: 'https://acme.example/client'}",
            Auth(mode="clientIDMetadataURL", url="https://acme.example/client"),
        ),
        ("{mode: oauth, clientID: halos, scopes: [read, write]}", Auth("oauth", "halos", ("read", "write"))),
    ],
)
def test_auth_modes(written: str, auth: Auth):
    assert entry(f"id: a, url: 'https://a.example/', auth: {written}").auth == auth


# --- ids and pins ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (f"id: Play, {NPM}", ['5: id: "Play" must match ^[a-z0-9][a-z0-9._-]{0,62}$']),
        (f"id: -a, {NPM}", ['5: id: "-a" must match ^[a-z0-9][a-z0-9._-]{0,62}$']),
        (f"id: a/b, {NPM}", ['5: id: "a/b" must match ^[a-z0-9][a-z0-9._-]{0,62}$']),
        (f"id: {'a' * 64}, {NPM}", ['5: id: "' + "a" * 59 + '…" must match ^[a-z0-9][a-z0-9._-]{0,62}$']),
        (f"id: 12, {NPM}", ["5: id: expected text (put it in quotes), got a number"]),
        (f"id: true, {NPM}", ["5: id: expected text (put it in quotes), got a boolean"]),
        (f"id: [a], {NPM}", ["5: id: expected text, got a list"]),
        (f"id: ' a', {NPM}", ["5: id: must not begin or end with a blank"]),
        (f"id: '', {NPM}", ["5: id: must not be empty"]),
        (f"id: , {NPM}", ["5: id: expected text, got nothing"]),
    ],
)
def test_ids(lines: str, expected: list[str]):
    assert entry_faults(lines) == expected


def test_a_server_needs_an_id():
    assert faults(HEAD + f"    - {{{NPM}}}\n") == ["5:7: server: needs an id"]


def test_an_id_of_63_characters_is_allowed():
    assert entry(f"id: {'a' * 63}, {NPM}").id == "a" * 63


def test_ids_are_unique():
    text = HEAD + f"    - {{id: a, {NPM}}}\n    - {{id: b, {NPM}}}\n    - {{id: a, {NPM}}}\n"
    assert faults(text) == ['7:12: id: "a" is taken by the server on line 5']


def test_a_server_has_exactly_one_pin():
    needs = "a server needs exactly one of package, url, command or definitionSha256; this one has"
    assert faults(HEAD + "    - id: a\n      owner: x\n") == [f"5:7: {needs} none"]
    two = f"    - id: a\n      definitionSha256: {HASH}\n      url: https://a.example/\n"
    assert faults(HEAD + two) == [f"7:7: {needs} url and definitionSha256"]


def test_a_server_is_a_mapping_and_servers_a_list():
    assert faults(HEAD + "    - text\n    - [a]\n    -\n") == [
        "5:7: server: expected a mapping, got text",
        "6:7: server: expected a mapping, got a list",
        "7:6: server: expected a mapping, got nothing",
    ]
    assert faults("mcp:\n  servers: {a: b}\n") == ["2:12: servers: expected a list of servers, got a mapping"]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("ring", '; did you mean "rings"?'),
        ("Package", '; did you mean "package"?'),
        ("definitionsha256", '; did you mean "definitionSha256"?'),
        ("zzz", ""),
        ("x" * 100, ""),
    ],
)
def test_an_unknown_key_has_a_hint_when_one_is_near(key: str, hint: str):
    quoted = key if len(key) <= 60 else key[:59] + "…"
    assert faults(HEAD + f"    - id: a\n      {NPM}\n      {key}: CANARY\n") == [
        f'7:7: server: unknown key "{quoted}"{hint}'
    ]


# --- packages ----------------------------------------------------------------------------------------------

IMAGE = f"type: oci, identifier: a/b, sha256: {HASH}"


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("identifier: a, version: 1.0.0", ["package: needs a type: npm, pypi, oci or nuget"]),
        ("type: npm, version: 1.0.0", ["package: needs an identifier, the package's name"]),
        ("type: npm, identifier: a", ["package: an npm package needs an exact version"]),
        ("type: pypi, identifier: a", ["package: a pypi package needs an exact version"]),
        ("type: nuget, identifier: a", ["package: a nuget package needs an exact version"]),
        (
            "type: oci, identifier: a/b, version: 1.0.0",
            ["package: an oci package needs sha256, the image's digest: a tag can move"],
        ),
        (
            "type: nmp, identifier: a, version: 1.0.0",
            ['type: expected npm, pypi, oci or nuget, got "nmp"; did you mean "npm"?'],
        ),
        ("type: [npm], identifier: a, version: 1.0.0", ["type: expected text, got a list"]),
        ("type: npm, identifier: a, version: 1.0.0, tag: x", ['package: unknown key "tag"']),
        (
            "type: npm, identifier: 7, version: 1.0.0",
            ["identifier: expected text (put it in quotes), got a number"],
        ),
        (
            "type: npm, identifier: a b, version: 1.0.0",
            ['identifier: "a b" is not the name of an npm package'],
        ),
        (
            "type: npm, identifier: '@a/b@1.0.0', version: 1.0.0",
            ['identifier: "@a/b@1.0.0" holds a version; it belongs in version'],
        ),
        (
            "type: pypi, identifier: a==1.0, version: 1.0.0",
            ['identifier: "a==1.0" holds a version; it belongs in version'],
        ),
        (
            "type: pypi, identifier: 'a[b]', version: 1.0.0",
            ['identifier: "a[b]" holds an extra; leave it out'],
        ),
        (
            f"type: oci, identifier: 'a/b:1.0', sha256: {HASH}",
            ['identifier: "a/b:1.0" holds a tag; it belongs in version'],
        ),
        (
            f"type: oci, identifier: 'a/b@sha256:{HASH}', sha256: {HASH}",
            ['identifier: "a/b@sha256:' + HASH[:48] + '…" holds a digest; it belongs in sha256'],
        ),
        (
            "type: npm, identifier: a, version: 1.0.0, sha256: " + HASH,
            ["sha256: applies to oci packages only; nothing on a machine could check it for npm"],
        ),
        (
            f"type: oci, identifier: a/B, sha256: {HASH}",
            ['identifier: "a/B" is not an image name such as docker.io/acme/notes-mcp'],
        ),
        ("type: oci, identifier: a/b, sha256: abc", ['sha256: expected 64 hex digits, got "abc"']),
        ("type: oci, identifier: a/b, sha256: ", ["sha256: expected text, got nothing"]),
        (IMAGE + ", bin: x", ["bin: does not apply to an image; see args"]),
        ("type: npm, identifier: a, version: 1.0.0, bin: ../x", ['bin: "../x" is not the name of a program']),
        ("type: npm, identifier: a, version: 1.0.0, bin: [x]", ["bin: expected text, got a list"]),
        (
            "type: npm, identifier: a, version: 1.0.0, bin: sh",
            ['bin: "sh" runs whatever its arguments say; name the package\'s own program'],
        ),
        (
            "type: pypi, identifier: a, version: 1.0.0, bin: Python3.exe",
            ['bin: "Python3.exe" runs whatever its arguments say; name the package\'s own program'],
        ),
        (
            "type: pypi, identifier: a, version: 1.0.0, bin: python3.12",
            ['bin: "python3.12" runs whatever its arguments say; name the package\'s own program'],
        ),
        (
            "type: pypi, identifier: a, version: 1.0.0, bin: osascript",
            ['bin: "osascript" runs whatever its arguments say; name the package\'s own program'],
        ),
        (
            "type: pypi, identifier: a, version: 1.0.0, bin: pip3",
            ['bin: "pip3" runs whatever its arguments say; name the package\'s own program'],
        ),
    ],
)
def test_packages(inside: str, expected: list[str]):
    assert package_fault(inside) == expected


def test_a_port_in_an_image_name_is_no_tag():
    package = entry(
        f"id: a, package: {{type: oci, identifier: 'r.acme.example:5000/a/b', sha256: {HASH}}}"
    ).package
    assert package is not None
    assert package.identifier == "r.acme.example:5000/a/b"


@pytest.mark.parametrize(
    ("kind", "version", "message"),
    [
        ("npm", "1.0", 'for npm "1.0" is a range; write all three numbers, such as 1.2.0'),
        ("npm", "2", 'for npm "2" is a range; write all three numbers, such as 1.2.0'),
        ("npm", "1.2.x", '"1.2.x" is not an exact npm version, such as 1.2.0'),
        ("npm", "'^1.2.0'", '"^1.2.0" is not an exact npm version, such as 1.2.0'),
        ("npm", "~1.2.0", '"~1.2.0" is not an exact npm version, such as 1.2.0'),
        ("npm", "'>=1.2.0'", '">=1.2.0" is not an exact npm version, such as 1.2.0'),
        ("npm", "1.0.0 - 2.0.0", '"1.0.0 - 2.0.0" is not an exact npm version, such as 1.2.0'),
        ("npm", "v1.2.0", 'write "v1.2.0" without the "v"'),
        ("npm", "'=1.2.0'", 'write "=1.2.0" without the "="'),
        ("npm", "latest", '"latest" is not a version but moves; write the exact one'),
        ("npm", "Latest", '"Latest" is not a version but moves; write the exact one'),
        ("npm", "beta", '"beta" is not an exact npm version, such as 1.2.0'),
        ("npm", "''", "must not be empty"),
        ("npm", "true", "expected text, got a boolean"),
        ("npm", "[1.0.0]", "expected text, got a list"),
        ("pypi", "'==1.2'", 'write "==1.2" without the "=="'),
        ("pypi", "'>=1.2'", '">=1.2" is not an exact pypi version, such as 1.2.0'),
        ("pypi", "1.*", '"1.*" is not an exact pypi version, such as 1.2.0'),
        ("nuget", "'[1.0,2.0)'", '"[1.0,2.0)" is not an exact nuget version, such as 1.2.0'),
        ("nuget", "2.*", '"2.*" is not an exact nuget version, such as 1.2.0'),
        ("oci", "latest", '"latest" is not a version but moves; write the exact one'),
        ("oci", "alpine", '"alpine" is not the tag of one version, such as 1.2.0'),
        ("oci", "1.x", '"1.x" is not the tag of one version, such as 1.2.0'),
        ("oci", "v1.X-alpine", '"v1.X-alpine" is not the tag of one version, such as 1.2.0'),
        ("oci", "1.0+2", '"1.0+2" is not the tag of one version, such as 1.2.0'),
    ],
)
def test_versions_that_are_not_exact(kind: str, version: str, message: str):
    digest = f", sha256: {HASH}" if kind == "oci" else ""
    assert package_fault(f"type: {kind}, identifier: a, version: {version}{digest}") == [
        f"version: {message}"
    ]


@pytest.mark.parametrize("tag", ["0.8.0", "v0.8.0", "1.29-alpine", "2026-08-01", "8"])
def test_tags_of_one_version(tag: str):
    package = entry(f"id: a, package: {{{IMAGE}, version: {tag}}}").package
    assert package is not None
    assert package.version == tag


# --- URLs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://mcp.acme.example/mcp", "must be https; http is for a loopback host only"),
        ("wss://mcp.acme.example/mcp", 'must be https, not "wss"'),
        ("https://CANARY:CANARY@mcp.acme.example/", "must not carry userinfo (a user name or password)"),
        ("https://mcp.acme.example/mcp#x", "must not have a fragment"),
        ("https://mcp.acme.example/${PATH}", "must not hold a variable or placeholder"),
        ("https://{tenant}.acme.example/", "must not hold a variable or placeholder"),
        ("https://<host>/", "must not hold a variable or placeholder"),
        ("mcp.acme.example/mcp", "expected an https URL, such as https://mcp.acme.example/mcp"),
        ("https:mcp.acme.example", "expected an https URL, such as https://mcp.acme.example/mcp"),
        ("https:///mcp", "programs read this URL differently; write it plainly, as https://host/path"),
        ("https://mcp.acme.example\\\\@x/", "must not carry userinfo (a user name or password)"),
        (
            "https://mcp.acme.example/a b",
            "programs read this URL differently; write it plainly, as https://host/path",
        ),
        ("", "must not be empty"),
        ("https://a.example/" + "x" * 2048, "is longer than 2048 characters"),
    ],
)
def test_urls_that_are_no_pin(url: str, message: str):
    assert entry_faults(f'id: a, url: "{url}"') == [f"13: url: {message}"]


def test_a_host_that_is_not_ascii_must_be_written_as_it_is_sent():
    (fault,) = entry_faults('id: a, url: "https://bücher.example/"')
    assert fault.startswith("13: url: write the host in ASCII (its xn-- form)")


def test_a_url_is_text():
    assert entry_faults("id: a, url: [x]") == ["13: url: expected text, got a list"]


# --- commands ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("[house-mcp]", '17: command: the program "house-mcp" must be an absolute path'),
        ("[./x]", '17: command: the program "./x" must be an absolute path'),
        ("['C:\\x.exe']", '17: command: the program "C:\\x.exe" must be an absolute path'),
        ("['']", '17: command: the program "" must be an absolute path'),
        ("['~/bin/x']", '17: command: the program "~/bin/x" must not hold a variable or ~'),
        ("['${HOME}/x']", '17: command: the program "${HOME}/x" must not hold a variable or ~'),
        ("[/opt/$X/y]", '17: command: the program "/opt/$X/y" must not hold a variable or ~'),
        ("[/opt/../x]", '17: command: the program "/opt/../x" must be a path without empty, . and .. parts'),
        ("[/opt//x]", '17: command: the program "/opt//x" must be a path without empty, . and .. parts'),
        ("[/opt/x/]", '17: command: the program "/opt/x/" must be a path without empty, . and .. parts'),
        ("[]", "17: command: must not be empty"),
        ("/opt/x", "17: command: expected a list of words, got text"),
        ("[/opt/x, 8080]", "26: command: expected text (put it in quotes), got a number"),
        ("[/opt/x, true]", "26: command: expected text (put it in quotes), got a boolean"),
        ("[/opt/x, [a]]", "26: command: expected text, got a list"),
        ('[/opt/x, "a\\0b"]', "26: command: holds a control character"),
        ('[/opt/x, "a\\nb"]', "26: command: holds a control character"),
    ],
)
def test_commands_that_are_no_pin(command: str, expected: str):
    assert entry_faults(f"id: a, command: {command}") == [expected]


SHELL = "17: command: a shell with -c; put the line into a script and pin the script's path"


@pytest.mark.parametrize(
    "command",
    [
        "[/bin/sh, -c, CANARY]",
        "[/bin/bash, -lc, CANARY]",
        "[/bin/bash, -l, -c, CANARY]",
        "[/bin/bash, -euo, pipefail, -c, CANARY]",
        "[/bin/bash, --rcfile, /dev/null, -c, CANARY]",
        "[/usr/bin/env, bash, -c, CANARY]",
        "[/usr/bin/env, A=1, /bin/zsh, -ic, CANARY]",
        "[/bin/busybox, sh, -c, CANARY]",
        "[/usr/bin/fish, --command, CANARY]",
        "[/usr/bin/fish, '--command=CANARY']",
        "[/usr/bin/pwsh, -Command, CANARY]",
    ],
)
def test_a_shell_with_a_program_text_is_no_pin(command: str):
    assert entry_faults(f"id: a, command: {command}") == [SHELL]


@pytest.mark.parametrize(
    "command",
    [
        "[/bin/sh, /opt/acme/start.sh, -c]",
        "[/bin/sh, --, -c]",
        "[/bin/sh, -e]",
        "[/bin/sh]",
        "[/opt/acme/run, -c, x]",
        "[/opt/acme/run, --shell, bash, -c]",
        "[/usr/bin/env, A=1, /opt/acme/run, -c]",
        "[/usr/bin/env, python3, -c]",
    ],
)
def test_what_only_looks_like_a_shell_text_is_allowed(command: str):
    assert entry(f"id: a, command: {command}").definition_sha256


TOLERATED = "host-mount, privileged, host-network, env-injection, path-override, cwd-override, from-flag or package-flag"
MODES = "none, oauth, halos, clientIDMetadataURL or enterprise"

# --- the other keys ----------------------------------------------------------------------------------------


CREDENTIAL = (
    "expected a ${VAR} reference alone; this is a credential in clear text: have it replaced, "
    "and keep the new one in a variable"
)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("headers: {A: CANARY}", "headers: A: expected a ${VAR} reference alone; no value stands in a policy"),
        (
            "headers: {A: 'Bearer ${CANARY}'}",
            "headers: A: expected a ${VAR} reference alone; no value stands in a policy",
        ),
        ("headers: {A: '${X:-CANARY}'}", "headers: A: expected a ${VAR} reference alone; no value stands in a policy"),
        ("headers: {Authorization: CANARY}", f"headers: Authorization: {CREDENTIAL}"),
        ("headers: {X-Api-Key: CANARY}", f"headers: X-Api-Key: {CREDENTIAL}"),
        ("headers: {A: Bearer CANARY}", f"headers: A: {CREDENTIAL}"),
        ("headers: {A: 'Basic CANARY=='}", f"headers: A: {CREDENTIAL}"),
        ("headers: {A: 'https://u:CANARY@h.example/'}", f"headers: A: {CREDENTIAL}"),
        (
            "headers: {Authorization: 'Bearer ${CANARY}'}",
            "headers: Authorization: expected a ${VAR} reference alone; no value stands in a policy",
        ),
        ("headers: {A: 5}", "headers: A: expected a ${VAR} reference, got a number"),
        ("headers: {A: [x]}", "headers: A: expected a ${VAR} reference, got a list"),
        ("headers: {'A b': '${X}'}", 'headers: "A b" is not a header name'),
        (
            "headers: {X-A: '${X}', x-a: '${X}'}",
            'headers: "x-a" is there in another case; header names ignore case',
        ),
        ("headers: [A]", "headers: expected a mapping of header names to ${VAR} references, got a list"),
        ("args: all", 'args: expected "any" or a list, got "all"'),
        ("args: 5", 'args: expected "any" or a list, got a number'),
        ("args: ", 'args: expected "any" or a list, got nothing'),
        ("args: {a: b}", "args: expected a list of words, got a mapping"),
        ("args: [5]", "args: expected text (put it in quotes), got a number"),
        ("env: TOKEN", "env: expected a list of variable names, got text"),
        ("env: ", "env: expected a list of variable names, got nothing"),
        ("env: {A: CANARY}", "env: expected a list of variable names, got a mapping"),
        ("env: [A=CANARY]", "env: expected a variable's name alone; no value stands in a policy"),
        ("env: [1A]", 'env: "1A" is not the name of a variable'),
        ("env: [A, A]", 'env: "A" is listed twice'),
        ("tolerate: [host-mounts]", 'tolerate: "host-mounts" cannot be tolerated; did you mean "host-mount"?'),
        (
            "tolerate: [registry-override]",
            f'tolerate: "registry-override" cannot be tolerated; only {TOLERATED}',
        ),
        ("tolerate: host-mount", "tolerate: expected a list of flags, got text"),
        ("rings: [gaa]", 'unknown ring "gaa"; did you mean "ga"?'),
        ("rings: [nightly]", 'unknown ring "nightly"'),
        ("rings: [ga, ga]", 'rings: "ga" is listed twice'),
        ("rings: []", "rings: an empty list reaches no device; leave the key out to reach every device"),
        ("rings: ga", "rings: expected a list of rings, got text"),
        ("rings: ", "rings: expected a list of rings, got nothing"),
        ("units: [legal]", 'unknown unit "legal"'),
        ("units: []", "units: an empty list reaches no device; leave the key out to reach every device"),
        ("tools: [a]", "tools: expected a mapping, got a list"),
        ("tools: {alow: [a]}", 'tools: unknown key "alow"; did you mean "allow"?'),
        ("tools: {allow: a}", "tools.allow: expected a list of tool names, got text"),
        ("tools: {allow: [a, b], deny: [c, b]}", 'tools: "b" is both allowed and denied'),
        ("tools: {deny: [a, 1]}", "tools.deny: expected text (put it in quotes), got a number"),
        ("auth: halos", "auth: expected a mapping, got text"),
        ("auth: {}", "auth: needs a mode: none, oauth, halos, clientIDMetadataURL or enterprise"),
        (
            "auth: {mode: oauth2}",
            f'auth.mode: expected {MODES}, got "oauth2"; did you mean "oauth"?',
        ),
        ("auth: {mode: halos, clientID: x}", "auth: clientID applies to mode oauth, not halos"),
        ("auth: {mode: none, scopes: [a]}", "auth: scopes applies to mode oauth, not none"),
        (
            "auth: {mode: oauth, url: 'https://a.example/'}",
            "auth: url applies to mode clientIDMetadataURL or enterprise, not oauth",
        ),
        ("auth: {mode: oauth, clientSecret: CANARY}", 'auth: unknown key "clientSecret"'),
        ("auth: {mode: oauth, scopes: a}", "auth.scopes: expected a list of scopes, got text"),
        ("auth: {mode: enterprise, url: 'http://a.example/'}", "auth.url: expected an https URL without userinfo"),
        ("owner: [a]", "owner: expected text, got a list"),
        ("owner: ", "owner: expected text, got nothing"),
        ('reason: "a\\nb"', "reason: must be one line"),
        ('reason: "a\\u202eb"', "reason: holds the invisible character U+202E"),
        ('reason: "a\\x07b"', "reason: holds the invisible character U+0007"),
        ("reason: " + "x" * 501, "reason: is longer than 500 characters"),
        ("expires: soon", 'expires: expected a date such as 2027-06-30, got "soon"'),
        ("expires: 2027-6-30", 'expires: expected a date such as 2027-06-30, got "2027-6-30"'),
        ("expires: 2027-02-30", "expires: there is no day 2027-02-30"),
        ("expires: 20270630", "expires: expected a date such as 2027-06-30, got a number"),
        (
            "expires: 2027-06-30T00:00:00Z",
            'expires: expected a date such as 2027-06-30, got "2027-06-30T00:00:00Z"',
        ),
        ("expires: [a]", "expires: expected a date such as 2027-06-30, got a list"),
    ],
)  # fmt: skip
def test_every_other_key(rest: str, expected: str):
    assert [fault.split(": ", 1)[1] for fault in entry_faults(f"id: a, {NPM}, {rest}")] == [expected]


def test_any_argument_is_not_for_an_image_that_is_an_interpreter():
    package = f"package: {{type: oci, identifier: node, version: '24.1', sha256: {HASH}}}"
    (fault,) = entry_faults(f"id: a, {package}, args: any")
    assert fault.endswith("args: this image runs whatever its arguments say; list them exactly")
    assert entry(f"id: a, {package}, args: [server.js]").args == ("server.js",)


def test_the_place_of_a_fault_is_that_of_the_value_or_of_the_key():
    text = HEAD + (
        "    - id: a\n"
        "      package:\n"
        "        type: npm\n"
        "        identifier: a\n"
        "        version: 1.0\n"
        "      tools:\n"
        "        allow:\n"
        "          - x\n"
        "        deny:\n"
        "          - x\n"
        "      rungs: [a]\n"
        "      auth:\n"
        "        mode: halos\n"
        "        clientID: x\n"
    )
    assert [fault.rsplit(": ", 1)[0].split(": ")[0] for fault in faults(text)] == [
        "9:18",
        "14:13",
        "15:7",
        "18:9",
    ]


def test_an_alias_in_an_entry_is_reported_once():
    text = HEAD + f"    - {{id: a, {NPM}, owner: &o x}}\n    - {{id: *o, {NPM}, owner: *o, expires: *o}}\n"
    assert [fault.split(": ", 1)[1].split(" ")[0] for fault in faults(text)] == ["anchors", *["aliases"] * 3]


# --- deny --------------------------------------------------------------------------------------------------


def test_deny_items():
    assert deny("package: {type: npm, identifier: bad}, reason: stolen") == Deny(
        package=Package(type="npm", identifier="bad"), reason="stolen"
    )
    assert deny("package: {type: pypi, identifier: Bad_One, version: 1.0.1}").package == Package(
        type="pypi", identifier="bad-one", version="1.0.1", version_text="1.0.1"
    )
    assert deny(
        f"package: {{type: oci, identifier: a/b, version: 1.0.0, sha256: {HASH}}}"
    ).package == Package(
        type="oci", identifier="docker.io/a/b", version="1.0.0", sha256=HASH, version_text="1.0.0"
    )
    assert deny("host: MCP.evil.example").host == "mcp.evil.example"
    assert deny("host: '[2001:db8::1]'").host == "[2001:db8::1]"
    assert deny("host: 'mcp.evil.example:8443'").host == "mcp.evil.example:8443"
    assert deny("host: 'mcp.evil.example:443'").host == "mcp.evil.example"
    assert deny("url: 'https://A.example:443/x?'").url == "https://a.example/x?"
    assert deny("url: 'http://a.example:81'").url == "http://a.example:81/"
    assert deny("package: {type: oci, identifier: a/b, version: 1.0.0}").package == Package(
        type="oci", identifier="docker.io/a/b", version="1.0.0", version_text="1.0.0"
    )
    assert deny(f"definitionSha256: {HASH}").definition_sha256 == HASH


NEEDS = "a deny item needs exactly one of package, host, url or definitionSha256; this one has"
NO_URL = "url: expected a plain URL without userinfo, fragment and variables; or deny its host"
HOST = "host: expected a host alone, such as mcp.evil.example (IPv6 in brackets, IDN as xn--)"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("reason: x", f"{NEEDS} none"),
        ("host: a.example, url: 'https://a.example/'", f"{NEEDS} host and url"),
        ("hots: a.example, host: b.example", 'deny: unknown key "hots"; did you mean "host"?'),
        ("package: {type: npm, identifier: a, bin: x}", 'package: unknown key "bin"'),
        ("package: {type: npm, identifier: a, version: ^1}", 'version: "^1" is not an exact npm version, such as 1.2.0'),
        ("package: a", "package: expected a mapping, got text"),
        ("package: {type: npm}", "package: needs an identifier, the package's name"),
        ("host: '*.evil.example'", 'host: "*.evil.example" holds a wildcard; a host is matched whole, list each one'),
        ("host: 'https://evil.example'", HOST),
        ("host: 'evil.example:https'", HOST),
        ("host: 'evil.example:99999'", HOST),
        ("host: evil.example/x", HOST),
        ("host: bücher.example", HOST),
        ("host: 12", "host: expected text (put it in quotes), got a number"),
        ("url: 'https://u@a.example/'", NO_URL),
        ("url: 'https://a.example/#x'", NO_URL),
        ("url: 'https://a.example/?${X}'", NO_URL),
        ("url: a.example", NO_URL),
        ("url: ''", "url: must not be empty"),
        ("url: 5", "url: expected text (put it in quotes), got a number"),
        ("definitionSha256: x", 'definitionSha256: expected 64 hex digits, got "x"'),
        ("host: a.example, reason: ''", "reason: must not be empty"),
    ],
)  # fmt: skip
def test_deny_items_with_a_fault(lines: str, expected: str):
    assert deny_faults(lines) == [expected]


def test_a_deny_item_is_a_mapping_in_a_list():
    assert faults("mcp:\n  deny: [evil.example]\n") == ["2:10: deny: expected a mapping, got text"]
    assert faults("mcp:\n  deny: evil.example\n") == ["2:9: deny: expected a list of deny items, got text"]
