# SPDX-License-Identifier: Apache-2.0
"""Which tools the rendered rules block, by a model of each harness's own matching, against what the policy denies."""

import json
import re
from datetime import date

import pytest
import tomli
from hypothesis import event, given, settings
from hypothesis import strategies as st

from halod.policy.load import examine
from halod.policy.rendering import manifest
from halod.policy.rendering.tools import folded

TODAY = date(2026, 11, 30)
END = " is not supported and was not rendered"


def planned(servers, mode="allowlist", **mcp):
    of, _, problems = examine(json.dumps({"mcp": {"mode": mode, "servers": servers, **mcp}}).encode())
    assert problems == []
    return manifest.plan(of, "", (), TODAY, ("linux",))


def server(name, allow=None, deny=None):
    lists = {key: value for key, value in (("allow", allow), ("deny", deny)) if value is not None}
    return {"id": name, "command": [f"/opt/{name}"], **({"tools": lists} if lists else {})}


def files(made):
    return {file.path: file.content.decode() for file in made.files}


def told(made, harness):
    """What a harness's warnings about denied tools say."""
    begin = f"{harness}: denying "
    return [
        one.removeprefix(f"{harness}: ").removesuffix(END)
        for one in made.manifest.warnings
        if one.startswith(begin)
    ]


# --- what each harness blocks, written apart from the renderers -----------------------------------------------


def fold(name):
    return "".join(
        c if c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-" else "_" for c in name
    )


def claude_blocks(made, name, tool):
    """Whole names, or `*`; releases before 2.1.299 take the first `__` for the end of a server's name."""
    called = f"mcp__{fold(name)}__{fold(tool)}"
    rules = (
        json.loads(files(made)["/etc/claude-code/managed-settings.json"])
        .get("permissions", {})
        .get("deny", [])
    )
    by_name = [rule for rule in rules if rule == called]
    by_glob = [rule for rule in rules if rule.endswith("*") and called.startswith(rule[:-1])]
    parts = called.split("__")
    by_parse = [rule for rule in rules if rule == f"mcp__{parts[1]}__*"]
    return bool(by_name or by_glob or by_parse), bool(by_name or by_parse)


def opencode_blocks(made, name, tool):
    called = f"{fold(name)}_{fold(tool)}"
    rules = json.loads(files(made)["/etc/opencode/opencode.json"]).get("permission", {})
    hit = any(re.fullmatch(".*".join(map(re.escape, rule.split("*"))), called) for rule in rules)
    return hit, hit


def gemini_blocks(made, name, tool):
    found = json.loads(files(made)["/etc/gemini-cli/settings.json"])["mcpServers"][name]
    included = found.get("includeTools")
    hit = tool in found.get("excludeTools", []) or (
        included is not None and not any(one == tool or one.startswith(f"{tool}(") for one in included)
    )
    return hit, hit


def codex_blocks(made, name, tool):
    found = tomli.loads(files(made)["/etc/codex/managed_config.toml"])["mcp_servers"][name]
    hit = tool in found.get("disabled_tools", []) or tool not in found.get("enabled_tools", [tool])
    return hit, hit


BLOCKS = {
    "claude-code": claude_blocks,
    "opencode": opencode_blocks,
    "gemini-cli": gemini_blocks,
    "codex": codex_blocks,
}

PIECES = ["a", "b", ".", "_", "__", "-", "a_b", "plan", "exit"]
IDS = (
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4)
    .map("".join)
    .filter(lambda text: text[0] in "abp")
)
TOOLS = (
    st.lists(st.sampled_from([*PIECES, "/", " ", "("]), min_size=1, max_size=3)
    .map("".join)
    .filter(lambda text: text == text.strip())
)
LISTS = st.one_of(st.none(), st.lists(TOOLS, max_size=3, unique=True))
LIMITS = st.tuples(LISTS, LISTS).map(
    lambda of: (of[0], of[1] and [tool for tool in of[1] if tool not in (of[0] or ())])
)
SERVERS = st.dictionaries(IDS, LIMITS, min_size=1, max_size=4)


def warned(warnings, name, tool):
    """Whether a warning names a pair that is blocked besides."""
    for one in warnings:
        besides = one.rpartition(" also denies ")[2].removesuffix(")")
        if besides in {
            f"every tool of server {name}",
            f"tool {tool} of server {name}",
            f"tool {fold(tool)} of server {name}",
        }:
            return True
        begin = re.fullmatch(r"every tool (.+)… of server (.+)", besides)
        if begin is not None and begin[2] == name and fold(tool).startswith(begin[1]):
            return True
    return False


@settings(max_examples=150, deadline=None)
@given(
    SERVERS,
    st.sets(TOOLS, max_size=3),
    st.sampled_from(["allowlist", "warn"]),
    st.sampled_from(sorted(BLOCKS)),
)
def test_every_pair_is_as_the_policy_says_or_is_told(registry, more, mode, harness):
    """A pair that is blocked and not denied is named by a warning; one that is denied is blocked, or told not to be."""
    made = planned([server(name, allow, deny) for name, (allow, deny) in registry.items()], mode)
    warnings = told(made, harness)
    # Spellings that no list has are those that MCP names have everywhere: letters, digits, _ and -.
    spelled = {fold(tool) for tool in more}
    known = {tool for lists in registry.values() for tools in lists for tool in tools or ()}
    for name, (allow, deny) in registry.items():
        for tool in {*known, *spelled, *map(fold, known)}:
            if tool not in {*(allow or ()), *(deny or ())} and fold(tool) != tool:
                continue
            denied = tool in (deny or ()) or allow == []
            permitted = tool not in (deny or ()) and (allow is None or tool in allow)
            hit, surely = BLOCKS[harness](made, name, tool)
            if hit and permitted:
                event("blocked besides")
                where = made.manifest.warnings if harness == "gemini-cli" else warnings
                assert warned(warnings, name, tool) or any(
                    f"allowing tool {json.dumps(tool)} of server {name} " in one for one in where
                ), (name, tool)
            if denied and not surely:
                event("not blocked")
                every = f"denying every tool of server {name} in releases"
                assert any(
                    one.startswith((f"denying tool {json.dumps(tool)} of server {name} (its name", every))
                    for one in warnings
                ), (name, tool)


# --- examples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("servers", "harness", "expected"),
    [
        ([server("a.b", deny=["drop"]), server("a_b")], "claude-code", ["denying tool drop of server a.b alone (the rule mcp__a_b__drop also denies tool drop of server a_b)"]),
        ([server("a.b", deny=["drop"]), server("a_b")], "opencode", ["denying tool drop of server a.b alone (the rule a_b_drop also denies tool drop of server a_b)"]),
        ([server("a.b", deny=["drop"]), server("a_b", deny=["drop"])], "claude-code", []),
        ([server("a.b", deny=["drop"]), server("a_b", allow=["read"])], "claude-code", []),
        ([server("a.b", deny=["drop"]), server("a_b", allow=[])], "opencode", ["denying every tool of server a_b alone (the rule a_b_* also denies every tool of server a.b)"]),
        ([server("git", deny=["hub_x"]), server("git_hub")], "opencode", ["denying tool hub_x of server git alone (the rule git_hub_x also denies tool x of server git_hub)"]),
        ([server("git", deny=["hub_x"]), server("git_hub")], "claude-code", []),
        ([server("git", allow=[]), server("git_hub")], "opencode", ["denying every tool of server git alone (the rule git_* also denies every tool of server git_hub)"]),
        ([server("git_hub", allow=[]), server("git")], "opencode", ["denying every tool of server git_hub alone (the rule git_hub_* also denies every tool hub_… of server git)"]),
        ([server("git_hub", allow=[]), server("git", allow=["hub_x", "y"])], "opencode", ["denying every tool of server git_hub alone (the rule git_hub_* also denies tool hub_x of server git)"]),
        ([server("t", deny=["close.all"])], "claude-code", ["denying tool close.all of server t alone (the rule mcp__t__close_all also denies tool close_all of server t)"]),
        ([server("t", deny=["close.all", "close_all"])], "claude-code", []),
        ([server("t", deny=["close_all"], allow=["close.all"])], "claude-code", ["denying tool close_all of server t alone (the rule mcp__t__close_all also denies tool close.all of server t)"]),
        ([server("a", deny=["b__c"]), server("a__b")], "claude-code", ["denying tool b__c of server a alone (the rule mcp__a__b__c also denies tool c of server a__b)"]),
        ([server("plan", deny=["exit"])], "opencode", ["denying tool exit of server plan alone (the rule plan_exit also denies plan_exit of OpenCode itself)"]),
        ([server("external", allow=[])], "opencode", ["denying every tool of server external alone (the rule external_* also denies external_directory of OpenCode itself)"]),
        ([server("a__b", allow=[])], "claude-code", ["denying every tool of server a__b in releases that end a server's name at the first __ (they do not apply the rule mcp__a__b__*)"]),
        ([server("a", deny=["odd name"])], "claude-code", ['denying tool "odd name" of server a (its name has more than letters, digits and _.-/)']),
    ],
)  # fmt: skip
def test_what_a_rule_blocks_besides_is_told(servers, harness, expected):
    made = planned(servers)
    assert told(made, harness) == expected
    assert all(one.endswith(END) for one in made.manifest.warnings)


def test_servers_that_people_may_add_count_where_they_may():
    """A hash is rendered nowhere; where nothing keeps other servers out, people can have it under its id."""
    known = {"id": "a_b", "definitionSha256": "0" * 64}
    for mode, harness, count in (
        ("allowlist", "claude-code", 0),
        ("warn", "claude-code", 1),
        ("allowlist", "opencode", 1),
    ):
        assert len(told(planned([server("a.b", deny=["drop"]), known], mode), harness)) == count


def test_a_rule_stands_once():
    made = planned([server("a.b", deny=["drop"]), server("a_b", deny=["drop"])])
    found = json.loads(files(made)["/etc/claude-code/managed-settings.json"])
    assert found["permissions"]["deny"] == ["mcp__a_b__drop"]


def test_a_denied_url_with_a_wildcard_is_told():
    """Another URL that fits it is blocked, too, and an approved server by its name."""
    made = planned([{"id": "x", "url": "https://a.example/t/1"}], deny=[{"url": "https://a.example/t/*"}])
    for harness in ("claude-code", "copilot-cli", "vscode"):
        assert told(made, harness) == [
            "denying a URL with * alone (the * also denies URLs with anything in its place)",
            "denying a URL with * alone (the * also denies server x)",
        ]


def test_a_tool_that_would_allow_another_is_not_allowed():
    """Gemini CLI takes `read(x)` in its list for the tool `read`."""
    made = planned([server("a", allow=["read(x)", "find"])])
    assert json.loads(files(made)["/etc/gemini-cli/settings.json"])["mcpServers"]["a"]["includeTools"] == [
        "find"
    ]
    warning = 'gemini-cli: allowing tool "read(x)" of server a (what begins it would be allowed)'
    assert warning + END in made.manifest.warnings


def test_names_are_folded_as_in_the_model():
    assert folded("a.b/c-d_é ") == "a_b_c-d___"
