# SPDX-License-Identifier: Apache-2.0
"""A policy file as a whole: top-level keys, everything wrong at once, reading the file."""

import hashlib
import os
from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.errors import UsageError
from halod.policy import load as module
from halod.policy.load import PolicyError, load, parse
from halod.policy.model import Policy
from halod.policy.servers import ENTRY_KEYS, TOLERABLE

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "tests" / "assets" / "policies"


def read(text: str) -> Policy:
    return parse(text.encode(), "halos.yaml")


def faults(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        read(text)
    return [f"{p.line}:{p.column}: {p.message}" for p in caught.value.problems]


def test_a_policy_with_every_key():
    path = ASSETS / "full.yaml"
    policy = load(str(path))
    assert policy.org == "acme"
    assert policy.rings == ("ring0-harness-team", "ring1-canary", "ring2-early", "ring3-ga")
    assert policy.units == (("engineering", ""), ("payments", "engineering"), ("design", ""))
    assert policy.mode == "warn"
    assert policy.message == "Ask in the ai-tools channel"
    assert policy.help_url == "https://wiki.acme.example/mcp?page=1#new"
    assert policy.mirrors == (("npm", ("https://packages.acme.example/npm/",)), ("pypi", ()), ("nuget", ()))
    assert [entry.id for entry in policy.entries] == [
        "playwright-mcp",
        "wiki",
        "grafana",
        "github",
        "house-tool",
        "legacy-tool",
    ]
    assert [entry.line for entry in policy.entries] == [14, 17, 24, 30, 33, 35]
    assert policy.entries[2].expires == date(2027, 6, 30)
    assert [deny.host for deny in policy.deny] == ["", "mcp.evil.example"]
    assert policy.digest == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_sample_policy_of_the_package_is_valid():
    assert len(load(str(ROOT / "packaging" / "halos.yaml")).entries) == 8


def test_keys_of_a_larger_file_are_left_alone():
    assert [entry.id for entry in load(str(ASSETS / "larger.yaml")).entries] == ["git-tools"]


@pytest.mark.parametrize(
    "text",
    [
        "org: acme\n",
        "mcp:\n",
        "mcp: {}\n",
        "mcp: {servers: , deny: ~, registries: null}\n",
        "rings:\nunits:\n",
        "{}\n",
        "\ufefforg: acme\n",
        "%YAML 1.2\n---\norg: acme\n...\n",
    ],
)
def test_a_policy_without_servers_is_valid_and_approves_nothing(text: str):
    policy = read(text)
    assert policy.entries == ()
    assert policy.mode == "allowlist"


def test_everything_wrong_is_reported_at_once_in_file_order():
    with pytest.raises(PolicyError) as caught:
        load(str(ASSETS / "everything-wrong.yaml"))
    name = str(ASSETS / "everything-wrong.yaml")
    expected = (ASSETS / "everything-wrong.txt").read_text(encoding="utf-8").splitlines()
    assert caught.value.lines() == [f"{name}:{line}" for line in expected]
    assert "CANARY" not in "".join(caught.value.lines())


def test_a_policy_error_says_its_first_fault_and_how_many_follow():
    with pytest.raises(PolicyError) as caught:
        parse(b"org: 1\nrings: 2\n", "p.yaml")
    assert str(caught.value) == "p.yaml:1:6: org: expected text (put it in quotes), got a number (and 1 more)"
    assert caught.value.exit_code == 2
    assert caught.value.code == "policy"
    assert caught.value.advice == "halo validate shows every fault"
    with pytest.raises(PolicyError, match=r"^p\.yaml:1:6: org: expected text, got a list$"):
        parse(b"org: []", "p.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:1: the file is empty; a policy is a mapping with org, rings, units and mcp"]),
        ("# nothing\n", ["1:1: the file is empty; a policy is a mapping with org, rings, units and mcp"]),
        ("~\n", ["1:1: policy: expected a mapping with org, rings, units and mcp, got nothing"]),
        ("- a\n", ["1:1: policy: expected a mapping with org, rings, units and mcp, got a list"]),
        ("text\n", ["1:1: policy: expected a mapping with org, rings, units and mcp, got text"]),
        ("&a {org: acme}\n", ["1:1: anchors are not allowed"]),
        ("profiles: &x {a: *x}\n", ["1:11: anchors are not allowed", "1:18: aliases are not allowed; write the value out"]),
        ("org: [\n", ["2:1: not valid YAML: expected a value"]),
        ("org: 'acme'x\n", ["1:12: not valid YAML: expected a key; check the indentation and the quotes"]),
        ("org: " + "x" * 129, ["1:6: org: is longer than 128 characters"]),
        ("rings: ga\n", ["1:8: rings: expected a list of ring names, got text"]),
        ("rings: [1, a, [b]]\n", [
            "1:9: rings: expected text (put it in quotes), got a number", "1:15: rings: expected text, got a list"]),
        ("rings: [" + "x" * 65 + "]", ["1:9: rings: is longer than 64 characters"]),
        ("mcp: allow\n", ["1:6: mcp: expected a mapping, got text"]),
        ("mcp: []\n", ["1:6: mcp: expected a mapping, got a list"]),
        ("mcp: {server: []}\n", ['1:7: mcp: unknown key "server"; did you mean "servers"?']),
        ("mcp: {helpUrl: x}\n", ['1:7: mcp: unknown key "helpUrl"; did you mean "helpURL"?']),
        ("mcp: {mode: block}\n", ['1:13: mode: expected allowlist or warn, got "block"']),
        ("mcp: {mode: }\n", ["1:13: mode: expected text, got nothing"]),
        ("mcp: {message: 5}\n", ["1:16: message: expected text (put it in quotes), got a number"]),
        ("mcp:\n  message: |\n    two\n    lines\n", ["2:12: message: must be one line"]),
        ('mcp: {message: "\\e[1m"}\n', ["1:16: message: holds the invisible character U+001B"]),
        ("mcp: {helpURL: wiki}\n", ["1:16: helpURL: expected an https URL without userinfo"]),
        ("mcp: {helpURL: 'https://u:p@wiki.acme.example/'}\n", ["1:16: helpURL: expected an https URL without userinfo"]),
        ("mcp: {registries: [a]}\n", ["1:19: registries: expected a mapping, got a list"]),
        ("mcp: {registries: {npm: x}}\n", ["1:25: registries.npm: expected a list of https URLs, got text"]),
        ("mcp: {registries: {cargo: []}}\n", ['1:20: registries: unknown key "cargo"']),
        ("mcp: {registries: {npm: ['https://a.example/#x']}}\n", ["1:26: registries.npm: must not have a fragment"]),
    ],
)  # fmt: skip
def test_the_file_as_a_whole(text: str, expected: list[str]):
    assert faults(text) == expected


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ("units: [a]\n", ["1:8: units: expected a mapping of unit names, got a list"]),
        ("units: {a: b}\n", ['1:12: unit "a": expected a mapping, got text']),
        ("units: {a: {parent: a}}\n", ["1:21: units make a cycle: a -> a"]),
        ("units: {a: {parent: b}, b: {parent: a}}\n", ["1:21: units make a cycle: a -> b -> a"]),
        (
            "units: {x: {parent: b}, b: {parent: a}, a: {parent: b}}\n",
            ["1:37: units make a cycle: b -> a -> b"],
        ),
        (
            "units: {a: {parent: a}, b: {parent: b}}\n",
            ["1:21: units make a cycle: a -> a", "1:37: units make a cycle: b -> b"],
        ),
        ("units: {pay: {}, a: {parent: pya}}\n", ['1:30: parent: unknown unit "pya"; did you mean "pay"?']),
        ("units: {a: {parent: [b]}}\n", ["1:21: parent: expected text, got a list"]),
        ("units: {a: {parent: }}\n", ["1:21: parent: expected text, got nothing"]),
        ("units: {a: {parents: b}}\n", ['1:13: unit "a": unknown key "parents"; did you mean "parent"?']),
        ("units: {1: {}}\n", ["1:9: units: expected text (put it in quotes), got a number"]),
        ('units: {"a\\nb": {}}\n', ["1:9: units: must be one line"]),
    ],
)
def test_units(units: str, expected: list[str]):
    assert faults(units) == expected


def test_a_long_cycle_of_units_is_named_in_part():
    units = ", ".join(f"u{n}: {{parent: u{(n + 1) % 20}}}" for n in range(20))
    (fault,) = faults(f"units: {{{units}}}\n")
    assert fault.endswith("u0 -> u1 -> u2 -> u3 -> u4 -> u5 -> u6 -> u7 -> … -> u0")


def test_a_long_chain_of_units_is_no_cycle():
    units = ", ".join(f"u{n}: {{parent: u{n + 1}}}" for n in range(3000))
    assert len(read(f"units: {{{units}, u3000: {{}}}}\n").units) == 3001


def test_rings_may_be_named_in_any_script():
    assert read("rings: [früh, 先行]\n").rings == ("früh", "先行")


def test_a_ring_among_very_many_is_found_and_a_wrong_one_gets_no_hint():
    rings = ", ".join(f"r{n}" for n in range(2000))
    entry = "{id: a, url: https://a.example/, rings: [r1999, r2000]}"
    assert faults(f"rings: [{rings}]\nmcp:\n  servers: [{entry}]\n") == ['3:61: unknown ring "r2000"']


def test_suggestions_end_after_a_while():
    found = faults("mcp: {" + ", ".join(f"server{n}: 1" for n in range(150)) + "}")
    assert sum("did you mean" in fault for fault in found) == 100
    assert len(found) == 150


# --- reading the file --------------------------------------------------------------------------------------


def test_a_missing_file_is_a_usage_error(tmp_path: Path):
    path = str(tmp_path / "halos.yaml")
    with pytest.raises(UsageError) as caught:
        load(path)
    assert str(caught.value) == f"cannot read the policy {path}: No such file or directory"
    assert caught.value.advice == "check the path and that this account may read it"


def test_a_directory_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        load(str(tmp_path))
    assert str(caught.value) == f"the policy {tmp_path} is a directory"


def test_a_path_with_a_nul_is_a_usage_error():
    with pytest.raises(UsageError, match="cannot read the policy"):
        load("a\0b")


def test_an_unreadable_file_is_a_usage_error(tmp_path: Path):
    path = tmp_path / "halos.yaml"
    path.write_text("org: acme\n", encoding="utf-8")
    path.chmod(0)
    if os.geteuid() == 0:
        assert load(str(path)).org == "acme"  # root may read everything
    else:
        with pytest.raises(UsageError, match="Permission denied"):
            load(str(path))


def test_a_file_that_is_too_large_is_not_parsed(tmp_path: Path):
    path = tmp_path / "halos.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(PolicyError) as caught:
        load(str(path))
    assert [p.message for p in caught.value.problems] == ["larger than 4 MiB; this is no policy"]


def test_a_pipe_is_read_like_a_file(tmp_path: Path):
    reading, writing = os.pipe()
    os.write(writing, b"org: acme\n")
    os.close(writing)
    try:
        assert load(f"/dev/fd/{reading}").org == "acme"
    finally:
        os.close(reading)


def test_the_digest_is_of_the_bytes_as_they_are():
    assert read("org: a\n").digest != read("org: a\r\n").digest


# --- hostile input -----------------------------------------------------------------------------------------

WORDS = st.sampled_from([
    *ENTRY_KEYS, *TOLERABLE, *module.MCP_KEYS, *module.OWN_KEYS, "type", "identifier", "version", "sha256", "bin",
    "npm", "pypi", "oci", "nuget", "parent", "mode", "clientID", "scopes", "any", "host", "latest", "1.0.0", "1.0",
    "https://a.example/", "http://[::1]:8/", "https://u@a.example/", "${X}", "/opt/x", "-c", "2027-06-30", "a" * 64,
    "ga", "", "é", "x" * 70, "\x07", "a/b:1",
])  # fmt: skip
VALUES = (
    WORDS
    | st.integers()
    | st.booleans()
    | st.none()
    | st.dates()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
)
TREES = st.recursive(
    VALUES, lambda v: st.lists(v, max_size=4) | st.dictionaries(WORDS, v, max_size=6), max_leaves=30
)
SERVERS = st.lists(st.dictionaries(st.sampled_from(ENTRY_KEYS), TREES, max_size=5), max_size=4)
DENIED = st.lists(
    st.dictionaries(st.sampled_from(["package", "host", "url", "reason"]), TREES, max_size=3), max_size=3
)
POLICIES = st.fixed_dictionaries(
    {"mcp": st.fixed_dictionaries({"servers": SERVERS, "deny": DENIED}) | TREES},
    optional={
        "rings": TREES,
        "units": st.dictionaries(WORDS, st.dictionaries(st.just("parent"), WORDS)),
        "org": TREES,
    },
)


def outcome(data: bytes) -> None:
    """Parse, and hold a PolicyError to its form."""
    try:
        parse(data, "p")
        lines: list[str] = []
    except PolicyError as error:
        lines = error.lines()
        ordered = error.problems == sorted(error.problems)
    else:
        ordered = True
    assert ordered
    assert all(line.startswith("p:") and "\n" not in line for line in lines)


@settings(max_examples=250, deadline=None)
@given(POLICIES | TREES)
def test_any_tree_gives_a_policy_or_a_policy_error(tree: object):
    outcome(yaml.safe_dump(tree, allow_unicode=True).encode())


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_policy_or_a_policy_error(data: bytes):
    outcome(data)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=3), st.integers(0, 30))
def test_a_damaged_policy_gives_a_policy_or_a_policy_error(place: int, junk: bytes, cut: int):
    data = (ASSETS / "full.yaml").read_bytes()
    place %= len(data)
    outcome(data[:place] + junk + data[place + cut :])


NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=10)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            NAMES, st.tuples(*[st.integers(0, 99)] * 3), st.lists(st.text("AB_", min_size=1), unique=True)
        ),
        max_size=6,
        unique_by=lambda server: server[0],
    ),
    st.booleans(),
)
def test_what_a_policy_says_comes_back(servers: list[tuple[str, tuple[int, ...], list[str]]], flow: bool):
    servers = [(f"s{name}", version, env) for name, version, env in servers]
    tree = {
        "mcp": {
            "servers": [
                {
                    "id": name,
                    "package": {
                        "type": "npm",
                        "identifier": f"@acme/{name}",
                        "version": ".".join(map(str, version)),
                    },
                    "env": env,
                }
                for name, version, env in servers
            ]
        }
    }
    policy = read(yaml.safe_dump(tree, default_flow_style=flow, sort_keys=False))
    assert [(entry.id, entry.env) for entry in policy.entries] == [
        (name, frozenset(env)) for name, _, env in servers
    ]
    assert [entry.package and entry.package.version for entry in policy.entries] == [
        ".".join(map(str, version)) for _, version, _ in servers
    ]
