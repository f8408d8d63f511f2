# SPDX-License-Identifier: Apache-2.0
"""What is rendered says what the registry says: each file is read again with this package's reader of its harness.

The golden files are made with `RENDERING_WRITE=1 pytest tests/unit/test_rendering.py`; look at the diff then.
"""

import hashlib
import json
import os
from datetime import date
from pathlib import Path

import pytest
import tomli
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from halod.cli.plan_files import write_output
from halod.drift import Judge
from halod.harnesses import read_home
from halod.harnesses.formats import decode
from halod.home import Home
from halod.policy.load import examine, load
from halod.policy.rendering import manifest, toml
from halod.policy.rendering.gemini import NOBODY
from halod.policy.rendering.model import SYSTEMS
from halod.policy.scope import scope

ASSETS = Path(__file__).parents[1] / "assets" / "rendering"
TODAY = date(2026, 11, 30)
UNITS = ("payments",)

# Where a person would keep what each managed file defines, in the same format.
DEFINED = {
    "claude-code": ("/etc/claude-code/managed-mcp.json", ".claude.json"),
    "codex": ("/etc/codex/managed_config.toml", ".codex/config.toml"),
    "gemini-cli": ("/etc/gemini-cli/settings.json", ".gemini/settings.json"),
    "opencode": ("/etc/opencode/opencode.json", ".config/opencode/opencode.json"),
}
# What each of them cannot have of the policy above, whatever the mode.
UNRENDERED = {
    "claude-code": {"legacy", "templated", "workspace"},
    "codex": {"legacy"},
    "gemini-cli": {"legacy", "templated"},
    "opencode": {"legacy", "templated"},
}


def policy(**changes):
    """The policy of the golden files, with `mode` or all servers changed."""
    text = (ASSETS / "halos.yaml").read_text(encoding="utf-8")
    if changes.get("mode"):
        text = text.replace("mode: allowlist", f"mode: {changes['mode']}")
    if changes.get("servers") is not None:
        text = text.partition("  servers:")[0] + f"  servers: {changes['servers']}\n"
    found, _, problems = examine(text.encode())
    assert problems == []
    return found


def plan(of, ring="canary", units=UNITS, systems=("linux",)):
    return manifest.plan(of, ring, units, TODAY, systems)


def files(made):
    return {file.path: file.content for file in made.files}


def read_again(harness, content, tmp_path):
    """The definitions in a rendered file, read from a home like any other."""
    path = tmp_path / DEFINED[harness][1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    with Home.open(str(tmp_path), uid=os.getuid()) as home:
        reading = read_home(home, harnesses=frozenset({harness}))
    assert reading.unread == []
    return [found.definition for found in reading.found]


def reachable(of):
    """The entries of the ring and unit that nothing denies."""
    registry = scope(of, "canary", UNITS, TODAY)
    return registry, {entry.id: entry for entry in registry.entries if entry.id != "withdrawn"}


# --- golden files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["allowlist", "warn"])
def test_files_are_those_that_were_looked_at(mode):
    """Every byte of every file, and of the manifest."""
    made = plan(policy(mode=mode), systems=SYSTEMS)
    folder = ASSETS / mode
    if os.environ.get("RENDERING_WRITE"):
        write_output(str(folder), made)
    golden = {
        "/" + str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    assert golden.pop("/manifest.json") == manifest.encode(made.manifest)
    assert golden == files(made)


def test_equal_policies_give_equal_bytes():
    """Neither the order of the units nor a second run changes anything."""
    of = load(str(ASSETS / "halos.yaml"))
    first = plan(of, units=("payments", "engineering"))
    assert plan(of, units=("engineering", "payments")) == first


def test_the_manifest_can_be_read_again():
    """What is not one of ours is none."""
    made = plan(policy()).manifest
    assert manifest.decode(manifest.encode(made)) == made
    assert manifest.decode(b"{}") is None
    assert manifest.decode(manifest.encode(made).replace(b'"version": 1', b'"version": 2')) is None
    assert manifest.decode(b"\xff") is None
    assert manifest.decode(b"[" * 100_000) is None


# --- the registry comes back --------------------------------------------------------------------------------


@pytest.mark.parametrize("harness", DEFINED)
def test_what_is_defined_is_the_registry_again(harness, tmp_path):
    """Each definition is approved as the entry it was made of; no entry is missing but those that are told."""
    of = policy()
    registry, entries = reachable(of)
    of_id = dict(entries)
    judge = Judge(registry)
    definitions = read_again(harness, files(plan(of))[DEFINED[harness][0]], tmp_path)

    verdicts = {one.name: judge.judge(one) for one in definitions}
    if harness == "claude-code":  # in a person's own file its headersHelper, a program, would be a finding
        helped = verdicts.pop("wiki")
        assert (helped.entry, helped.note, helped.flags) == (
            "wiki",
            "approved-with-unsafe",
            ("headers-helper",),
        )
        del entries["wiki"]
    assert {name: (one.kind, one.entry) for name, one in verdicts.items()} == {
        name: ("approved", name) for name in entries if name not in UNRENDERED[harness]
    }
    for one in definitions:
        entry = of_id[one.name]
        assert one.enabled
        assert {key for key, _ in one.env} == set(entry.env or ())
        assert one.url == entry.url


def document(path, made):
    return decode("toml" if path.endswith(".toml") else "json", bytearray(files(made)[path]), ("/",))


def test_the_lists_of_claude_and_copilot_allow_what_is_defined_by_what_it_is():
    """Commands whole and in order, URLs as they are, never a name."""
    made = plan(policy())
    defined = document("/etc/claude-code/managed-mcp.json", made)["mcpServers"]
    identities = [
        {"serverUrl": one["url"]} if "url" in one else {"serverCommand": [one["command"], *one["args"]]}
        for one in defined.values()
    ]
    claude = document("/etc/claude-code/managed-settings.json", made)
    copilot = document("/etc/github-copilot/managed-settings.json", made)

    assert claude["allowManagedMcpServersOnly"] is True
    assert claude["allowedMcpServers"] == identities
    assert {"serverCommand": ["/opt/acme/bin/house-mcp", "--stdio"]} in identities
    extra = [["/opt/acme/bin/templated", "--from=${HOME}", "{env:HOME}"], ["/opt/acme/bin/workspace"]]
    assert [one for one in copilot["allowedMcpServers"] if one not in identities] == [
        {"serverCommand": words} for words in extra
    ]
    assert "serverName" not in json.dumps([claude, copilot])


def test_hosts_and_urls_are_denied_on_every_port_or_the_named_one():
    """Claude Code also speaks websockets."""
    made = plan(policy())
    claude = [
        one["serverUrl"]
        for one in document("/etc/claude-code/managed-settings.json", made)["deniedMcpServers"]
    ]
    copilot = [
        one["serverUrl"]
        for one in document("/etc/github-copilot/managed-settings.json", made)["deniedMcpServers"]
    ]

    assert copilot == [
        "https://mcp.evil.example/*", "https://mcp.evil.example:*/*", "http://mcp.evil.example/*",
        "http://mcp.evil.example:*/*", "https://evil.example:8443/*", "http://evil.example:8443/*",
        "https://tenant.example/evil",
    ]  # fmt: skip
    assert set(claude) - set(copilot) == {
        "wss://mcp.evil.example/*", "wss://mcp.evil.example:*/*", "ws://mcp.evil.example/*",
        "ws://mcp.evil.example:*/*", "wss://evil.example:8443/*", "ws://evil.example:8443/*",
    }  # fmt: skip


def test_codex_requires_the_identity_of_what_it_has():
    """Never the matchers that stop the client."""
    made = plan(policy())
    defined = document("/etc/codex/managed_config.toml", made)["mcp_servers"]
    required = document("/etc/codex/requirements.toml", made)["mcp_servers"]

    assert required == {
        name: {"identity": {"url": one["url"]} if "url" in one else {"command": one["command"]}}
        for name, one in defined.items()
    }
    assert any('"npx"' in one and "npx admits every package" in one for one in made.manifest.warnings)


def test_gemini_allows_the_names_of_what_it_has():
    made = plan(policy())
    found = document("/etc/gemini-cli/settings.json", made)
    assert found["mcp"] == {"allowed": list(found["mcpServers"])}
    assert any(one.startswith("gemini-cli: ") and "names only" in one for one in made.manifest.warnings)


def test_tools_are_limited_as_far_as_each_harness_can():
    """An empty `allow` allows none; a name that could change a rule's meaning is told instead."""
    made = plan(policy())
    claude = document("/etc/claude-code/managed-settings.json", made)
    codex = document("/etc/codex/managed_config.toml", made)["mcp_servers"]
    gemini = document("/etc/gemini-cli/settings.json", made)["mcpServers"]
    opencode = document("/etc/opencode/opencode.json", made)

    assert claude["permissions"]["deny"] == [
        "mcp__git_tools__*", "mcp__wiki__delete_page", "mcp__tickets__close_all",
    ]  # fmt: skip
    assert codex["wiki"]["enabled_tools"] == gemini["wiki"]["includeTools"] == ["search", "fetch"]
    assert codex["git_tools"]["enabled_tools"] == gemini["git_tools"]["includeTools"] == []
    assert (
        codex["tickets"]["disabled_tools"] == gemini["tickets"]["excludeTools"] == ["close.all", "odd name"]
    )
    denied = {"git_tools_*": False, "wiki_delete_page": False, "tickets_close_all": False}
    assert opencode["tools"] == denied
    assert opencode["permission"] == dict.fromkeys(denied, "deny")
    told = [one for one in made.manifest.warnings if 'denying tool "odd name" of server tickets' in one]
    assert [one.partition(":")[0] for one in told] == ["claude-code", "opencode"]


def test_sign_in_and_headers_are_in_each_harness_own_words():
    made = plan(policy())
    claude = document("/etc/claude-code/managed-mcp.json", made)["mcpServers"]
    codex = document("/etc/codex/managed_config.toml", made)["mcp_servers"]
    gemini = document("/etc/gemini-cli/settings.json", made)["mcpServers"]
    opencode = document("/etc/opencode/opencode.json", made)["mcp"]

    assert claude["wiki"]["headersHelper"] == (
        "halo mcp token --resource https://mcp-wiki.internal.acme.example/mcp --format headers"
    )
    assert claude["tickets"]["oauth"] == {"clientId": "acme-client", "scopes": "read write"}
    assert codex["tickets"]["oauth"] == {"client_id": "acme-client"}
    assert codex["tickets"]["scopes"] == ["read", "write"]
    assert gemini["tickets"]["oauth"] == {
        "enabled": True, "clientId": "acme-client", "scopes": ["read", "write"],
    }  # fmt: skip
    assert opencode["tickets"]["oauth"] == {"clientId": "acme-client", "scope": "read write"}
    assert claude["wiki"]["headers"] == gemini["wiki"]["headers"] == {"X-Org": "${ACME_ORG}"}
    assert codex["wiki"]["env_http_headers"] == {"X-Org": "ACME_ORG"}
    assert opencode["wiki"]["headers"] == {"X-Org": "{env:ACME_ORG}"}


def test_a_headers_helper_quotes_its_url_for_the_shell():
    """A URL may hold what a shell would act on."""
    url = "https://a.example/m;id?x=a&y='z'"
    made = plan(policy(servers=json.dumps([{"id": "x", "url": url, "auth": {"mode": "halos"}}])))
    helper = document("/etc/claude-code/managed-mcp.json", made)["mcpServers"]["x"]["headersHelper"]

    import shlex

    assert shlex.split(helper)[4] == url


# --- modes --------------------------------------------------------------------------------------------------


def test_warn_renders_servers_and_blocks_nothing():
    """No list, no identity, and no managed-mcp.json: that file alone would keep all other servers out."""
    made = plan(policy(mode="warn"))
    found = files(made)

    assert "/etc/claude-code/managed-mcp.json" not in found
    assert document("/etc/claude-code/managed-settings.json", made).keys() == {"permissions"}
    assert found["/etc/codex/requirements.toml"] == b""
    assert document("/etc/gemini-cli/settings.json", made).keys() == {"mcpServers"}
    assert document("/etc/github-copilot/managed-settings.json", made) == {}
    blocking = files(plan(policy()))
    for path in ("/etc/codex/managed_config.toml", "/etc/opencode/opencode.json"):
        assert found[path] == blocking[path]
    assert any("exclusive control" in one for one in made.manifest.warnings)


def test_a_registry_without_servers_blocks_all_of_them():
    """An empty list is no list to Gemini CLI, and an absent table none to Codex."""
    made = plan(policy(servers="[]"))
    assert document("/etc/claude-code/managed-mcp.json", made) == {"mcpServers": {}}
    assert document("/etc/claude-code/managed-settings.json", made)["allowedMcpServers"] == []
    assert files(made)["/etc/codex/requirements.toml"] == b"[mcp_servers]\n"
    assert document("/etc/gemini-cli/settings.json", made)["mcp"] == {"allowed": [NOBODY]}
    assert document("/etc/github-copilot/managed-settings.json", made)["allowedMcpServers"] == []


def test_what_is_denied_expired_or_for_others_is_rendered_nowhere():
    made = plan(policy())
    everything = b"".join(files(made).values()).decode()
    assert "postmark" not in everything
    assert "elsewhere" not in everything
    assert "/opt/acme/bin/over" not in everything
    assert any(one.startswith("policy: server withdrawn is denied too") for one in made.manifest.warnings)
    assert "elsewhere" in b"".join(files(plan(policy(), ring="ga")).values()).decode()
    assert "mcp-wiki" not in b"".join(files(plan(policy(), units=())).values()).decode()


@pytest.mark.parametrize(
    ("pin", "deny"),
    [
        ({"command": ["/usr/bin/npx", "-y", "postmark-mcp@1.0.0"]}, {"package": {"type": "npm", "identifier": "postmark-mcp"}}),
        ({"command": ["/usr/bin/env", "npx", "-y", "postmark-mcp@1.0.0"]}, {"package": {"type": "npm", "identifier": "postmark-mcp"}}),
        ({"command": ["/usr/bin/npx", "-y", "mcp-remote@1.0.0", "https://mcp.evil.example/mcp"]}, {"host": "mcp.evil.example"}),
        ({"package": {"type": "npm", "identifier": "mcp-remote", "version": "1.0.0"}, "args": ["https://mcp.evil.example/mcp"]}, {"host": "mcp.evil.example"}),
        ({"package": {"type": "npm", "identifier": "@playwright/mcp", "version": "0.0.82"}}, {"definitionSha256": hashlib.sha256(b"npx\0-y\0@playwright/mcp@0.0.82\0").hexdigest()}),
        ({"url": "https://mcp.evil.example/mcp"}, {"definitionSha256": hashlib.sha256(b"https://mcp.evil.example/mcp").hexdigest()}),
        ({"url": "https://mcp.evil.example/mcp"}, {"url": "https://mcp.evil.example/mcp"}),
        ({"url": "https://mcp.evil.example:8443/mcp"}, {"host": "mcp.evil.example"}),
        ({"package": {"type": "pypi", "identifier": "acme_tools", "version": "1.0"}}, {"package": {"type": "pypi", "identifier": "acme-tools", "version": "1.0.0"}}),
    ],
)  # fmt: skip
def test_deny_goes_by_what_a_server_runs(pin, deny):
    """However its entry is pinned, as a scan would judge it."""
    text = json.dumps({"mcp": {"servers": [{"id": "x", **pin}], "deny": [deny]}})
    of, _, problems = examine(text.encode())
    assert problems == []
    made = plan(of, ring="", units=())
    assert json.loads(files(made)["/etc/opencode/opencode.json"]) == {"mcp": {}}
    assert document("/etc/github-copilot/managed-settings.json", made)["allowedMcpServers"] == []
    other = {"package": {"type": "npm", "identifier": "harmless"}}
    kept, _, _ = examine(json.dumps({"mcp": {"servers": [{"id": "x", **pin}], "deny": [other]}}).encode())
    assert json.loads(files(plan(kept, ring="", units=()))["/etc/opencode/opencode.json"])["mcp"].keys() == {
        "x"
    }


# --- warnings -----------------------------------------------------------------------------------------------


def test_each_warning_has_the_form_that_programs_can_rely_on():
    """`<harness>: <what> is not supported and was not rendered`."""
    warnings = plan(policy()).manifest.warnings
    told = [one for one in warnings if not one.startswith("policy: ")]
    harnesses = {one.partition(": ")[0] for one in told}

    assert harnesses == {*DEFINED, "copilot-cli", "vscode", "cursor"}
    assert all(one.endswith(" is not supported and was not rendered") for one in told)
    assert len(set(warnings)) == len(warnings)


@pytest.mark.parametrize(
    "warning",
    [
        "claude-code: tools.allow of server wiki",
        "claude-code: server legacy (approved by its hash, which does not tell its command line)",
        "claude-code: server templated (a text that would be taken for a variable)",
        "claude-code: server workspace (the name is reserved)",
        "claude-code: another command line of server playwright than the rendered one",
        "claude-code: the last day of server grafana (2027-06-30)",
        "claude-code: auth mode enterprise of server crm",
        "claude-code: the denial of npm package postmark-mcp",
        "claude-code: the denial of definition 93098e84bb39",
        "codex: auth mode halos of server wiki",
        "codex: the denial of host mcp.evil.example",
        "codex: the denial of a URL",
        "gemini-cli: server templated (a text that would be taken for a variable)",
        "gemini-cli: an allowlist by command or URL (mcp.allowed compares names only)",
        "copilot-cli: tools.deny of server wiki",
        "copilot-cli: an empty tools.allow of server git_tools",
        "copilot-cli: a header of server wiki",
        "vscode: the definition of a server (managed-settings.json only allows and denies)",
        "cursor: an allowlist of servers (set it in the team's dashboard)",
        "opencode: an allowlist of servers",
        "opencode: tools.allow of server wiki",
    ],
)
def test_what_cannot_be_expressed_is_told(warning):
    assert f"{warning} is not supported and was not rendered" in plan(policy()).manifest.warnings


def test_a_url_that_is_a_pattern_is_not_allowed():
    """`*` in an allowed URL would admit others, so the server is left out and told; Codex compares exactly."""
    servers = json.dumps([{"id": "x", "url": "https://a.example/*"}])
    made = plan(policy(servers=servers))
    assert document("/etc/claude-code/managed-mcp.json", made) == {"mcpServers": {}}
    assert document("/etc/github-copilot/managed-settings.json", made)["allowedMcpServers"] == []
    assert "x" in document("/etc/codex/managed_config.toml", made)["mcp_servers"]


# --- any registry -------------------------------------------------------------------------------------------

_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
_SCALAR = st.one_of(
    _TEXT,
    st.sampled_from(['"', "\\", "'", "${A}", "$A", "{env:A}", "{file:a}", "é", "\U0001f600", "-c", "--"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_SCALAR, max_size=4), min_size=1, max_size=4), st.sampled_from(sorted(DEFINED)))
def test_any_command_comes_back_or_is_told(tmp_path_factory, lines, harness):
    """Whatever the words of a command are, the harness's reader finds exactly them, or a warning says why not."""
    servers = [{"id": f"s{at}", "command": ["/opt/x", *words]} for at, words in enumerate(lines)]
    found, _, problems = examine(json.dumps({"mcp": {"servers": servers}}, ensure_ascii=True).encode())
    assume(not problems)
    made = manifest.plan(found, "", (), TODAY, ("linux",))
    definitions = read_again(harness, files(made)[DEFINED[harness][0]], tmp_path_factory.mktemp("home"))

    read = {one.name: (one.command, *one.args) for one in definitions}
    for server in servers:
        if server["id"] in read:
            assert read[server["id"]] == tuple(server["command"])
        else:
            assert any(
                one.startswith(f"{harness}: server {server['id']} (") for one in made.manifest.warnings
            )


@given(
    st.dictionaries(
        st.text(),
        st.dictionaries(
            st.text(),
            st.one_of(st.text(), st.lists(st.text()), st.dictionaries(st.text(), st.text(), max_size=2)),
            max_size=3,
        ),
        max_size=3,
    )
)
def test_toml_parses_to_what_was_written(entries):
    """Any text as a key or a value."""
    assert tomli.loads(toml.tables("mcp_servers", entries).decode()) == {"mcp_servers": entries}
