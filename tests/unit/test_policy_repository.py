# SPDX-License-Identifier: Apache-2.0
"""A policy repository: which document is the policy, which rings there are, and everything wrong at once."""

import re
from datetime import date

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.policy import repository
from halod.policy.repository import Examined, examine_all
from halod.policy.yamlpos import read, read_all

TODAY = date(2027, 7, 1)
WIKI = "mcp:\n  servers:\n    - {id: wiki, url: 'https://wiki.acme.example/mcp', rings: [ga]}\n"
POLICY = f"apiVersion: halos.dev/v1\nkind: Halos\norg: acme\n{WIKI}"
GA = "kind: Ring\nname: ga\norder: 3\nmembership: {default: true}\n"
CANARY = "kind: Ring\nname: canary\n"
PROFILE = (
    "kind: Profile\nname: base\nmcp: {managedOnly: true, servers: [{name: docs, url: 'https://d.example'}]}\n"
)


def examined(**files: str | bytes) -> Examined:
    """Examine files named `a__b` for `a/b.yaml`."""
    named = [(name.replace("__", "/") + ".yaml", text) for name, text in files.items()]
    return examine_all(
        [(name, text if isinstance(text, bytes) else text.encode()) for name, text in named], TODAY
    )


def faults(**files: str | bytes) -> list[str]:
    return [f"{f.file}:{f.line}:{f.column}: {f.message}" for f in examined(**files).faults]


def warned(**files: str | bytes) -> list[str]:
    found = examined(**files)
    assert found.faults == []
    assert found.policy is not None
    return [f"{w.file}:{w.line}:{w.column}: {w.message}" for w in found.warnings]


# --- rings --------------------------------------------------------------------------------------------------


def test_ring_documents_define_the_rings():
    """One file or several, one document or several in a file: each Ring is a ring."""
    for rings in ({"rings__all": f"{CANARY}---\n{GA}"}, {"rings__a": CANARY, "rings__b": GA}):
        found = examined(halos=POLICY, **rings)
        assert found.faults == []
        assert found.policy is not None
        assert found.policy.rings == found.rings == ("canary", "ga")
        assert [entry.id for entry in found.policy.entries] == ["wiki"]
        assert found.file == "halos.yaml"


def test_a_ring_that_no_document_defines_is_unknown():
    """In an entry and in the policy's own list; with a hint where one is near."""
    assert faults(halos=POLICY.replace("[ga]", "[gaa]"), rings=GA) == [
        'halos.yaml:6:64: unknown ring "gaa"; did you mean "ga"?'
    ]
    assert faults(halos="rings: [ga, beta]\n" + POLICY, rings=GA) == ['halos.yaml:1:13: unknown ring "beta"']


def test_without_ring_documents_the_policy_lists_its_rings():
    """A repository of one file is like that file."""
    found = examined(policy="rings: [ga]\n" + WIKI)
    assert (found.faults, found.warnings, found.rings, found.file) == ([], [], ("ga",), "policy.yaml")
    assert faults(policy=WIKI) == ['policy.yaml:3:64: unknown ring "ga"']


def test_what_agents_would_refuse_is_a_warning():
    """An agent gets the policy's file and none beside it."""
    assert warned(halos=WIKI, rings=GA) == [
        'halos.yaml:1:1: agents get this file alone and would refuse it (unknown ring "ga"); list the rings in it, too'
    ]
    assert warned(halos="rings: [ga]\n" + WIKI, rings=f"{GA}---\n{CANARY}") == []


@pytest.mark.parametrize(
    ("ring", "expected"),
    [
        ("kind: Ring\norder: 1\n", ["rings.yaml:1:1: Ring: needs a name"]),
        ("kind: Ring\nname: 1\n", ["rings.yaml:2:7: name: expected text (put it in quotes), got a number"]),
        ("kind: Ring\nname: [ga]\n", ["rings.yaml:2:7: name: expected text, got a list"]),
        ("kind: Ring\nname: ''\n", ["rings.yaml:2:7: name: must not be empty"]),
        ("kind: Ring\nname: " + "x" * 65, ["rings.yaml:2:7: name: is longer than 64 characters"]),
        ("kind: Ring\nname: ga\nname: x\n", ['rings.yaml:3:1: duplicate key "name", first on line 2']),
        ("kind: Ring\nname: &a ga\n", ["rings.yaml:2:7: anchors are not allowed"]),
        (f"{GA}---\n# again\n{GA}", ['rings.yaml:8:7: the ring "ga" is also defined in rings.yaml:2']),
        (
            f"{GA}---\n: [\n",
            ["rings.yaml:6:1: not valid YAML: expected a key; check the indentation and the quotes"],
        ),
        (b"kind: Ring\nname: \xff\n", ["rings.yaml:2:7: the file is not UTF-8 here"]),
        (b"\x7fELF\x00\x01", ["rings.yaml:1:1: the character U+007F is not allowed; write an escape"]),
    ],
)
def test_what_is_wrong_with_a_ring_has_its_place(ring: str | bytes, expected: list[str]):
    """File, line and column of the Ring document, whatever the policy is like."""
    said = faults(halos="mcp: {servers: []}\n", rings=ring)
    assert expected[0] in said
    assert not any(line.startswith("halos.yaml") for line in said)


def test_everything_wrong_is_reported_at_once():
    """In the order of files, lines and columns; nothing costs the rest."""
    said = faults(z="kind: Ring\n", halos="mcp: {servers: [{id: A}], x: 1}\n", a="[", rings=GA + "name: b\n")
    assert [line.partition(" ")[0] for line in said] == [
        "a.yaml:2:1:",
        "halos.yaml:1:17:",
        "halos.yaml:1:22:",
        "halos.yaml:1:27:",
        "rings.yaml:5:1:",
        "z.yaml:1:1:",
    ]


# --- which document is the policy ---------------------------------------------------------------------------


def test_documents_of_other_kinds_are_left_alone():
    """A profile has an mcp of its own; anchors and the like in it are not ours to judge."""
    other = "base: &b {x: 1}\nkind: Gateway\nmodels: {<<: *b}\n"
    assert examined(halos=POLICY, rings=GA, profiles__base=PROFILE, gateway=other).faults == []


def test_the_policy_need_not_be_called_halos():
    """It is found by its key."""
    found = examined(a__deep__mcp_policy="rings: [ga]\n" + WIKI, rings=CANARY + "---\n" + GA)
    assert (found.file, found.faults) == ("a/deep/mcp_policy.yaml", [])


def test_halos_yaml_without_mcp_is_a_policy_that_approves_nothing():
    """So it is as a single file, too."""
    assert warned(halos="kind: Halos\norg: acme\n", rings=GA) == ["halos.yaml:1:1: approves no server"]


@pytest.mark.parametrize(
    "files", [{}, {"rings": GA}, {"other": "x: 1\n"}, {"list": "- mcp\n"}, {"empty": ""}]
)
def test_no_policy_is_a_fault(files: dict[str, str]):
    """A directory that is the wrong one must not look valid."""
    found = examined(**files)
    assert found.policy is None
    assert [one.message for one in found.faults] == ["no policy here: no YAML document has the key mcp"]


def test_no_policy_names_what_was_nearly_one():
    """A document that has mcp and another kind."""
    assert faults(base=PROFILE) == [
        ':1:1: no policy here: no YAML document has the key mcp; base.yaml:1 has mcp and is of kind "Profile"'
    ]


def test_two_policies_are_a_fault():
    """At the second; the one at the top is the first, and both are checked."""
    said = faults(a__mcp=WIKI, halos=WIKI, rings=GA)
    assert said == ["a/mcp.yaml:1:1: a second policy: mcp is also in halos.yaml:1; a repository has one"]
    assert faults(a="mcp: {x: 1}\n", b="mcp: {y: 1}\n") == [
        'a.yaml:1:7: mcp: unknown key "x"',
        "b.yaml:1:1: a second policy: mcp is also in a.yaml:1; a repository has one",
        'b.yaml:1:7: mcp: unknown key "y"',
    ]


def test_the_policy_is_a_file_of_its_own():
    """Agents read one document."""
    said = faults(halos=f"{WIKI}---\n{GA}")
    assert said == ["halos.yaml:4:1: a second document starts here; a policy is one document"]
    both = faults(halos=f"{WIKI}---\n{WIKI}")
    assert "halos.yaml:5:1: a second policy: mcp is also in halos.yaml:1; a repository has one" in both


@pytest.mark.parametrize(("kind", "meant"), [("ring", "Ring"), ("RING", "Ring"), ("halos", "Halos")])
def test_a_kind_in_another_case_is_a_warning(kind: str, meant: str):
    """It is not a Ring to other programs either."""
    said = warned(halos="mcp: {servers: []}\n", x=f"name: ga\nkind: {kind}\n")
    assert f'x.yaml:2:1: kind "{kind}" is left alone; did you mean "{meant}"?' in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: Profile\nkind: Ring\nname: x\n", 'x.yaml:2:1: duplicate key "kind", first on line 1'),
        ("x: &r Ring\nkind: *r\n", "x.yaml:2:7: aliases are not allowed; write the value out"),
        ("<<: {kind: Ring}\nname: x\n", "x.yaml:1:1: merge keys are not allowed; write the keys out"),
    ],
)
def test_a_document_that_others_may_take_for_a_ring_is_a_fault(text: str, expected: str):
    """Two readers must not see two different repositories."""
    assert faults(halos="mcp: {servers: []}\n", x=text) == [expected]


def test_a_file_that_is_too_large_is_a_fault_and_costs_nothing_else(monkeypatch: pytest.MonkeyPatch):
    """It may hold a Ring."""
    monkeypatch.setattr(repository, "MAX_BYTES", 400)
    assert faults(halos=POLICY, rings=GA, big="#" * 401) == [
        "big.yaml:1:1: larger than 0 MiB; it was not read"
    ]


# --- several documents --------------------------------------------------------------------------------------


def test_places_of_later_documents_are_those_of_the_file():
    """Lines count from the top of the file."""
    documents = read_all(b"a: 1\n---\n# x\nb: {c: 2}\n...\n---\n")
    assert [document.root and (document.root.line, document.root.column) for document in documents] == [
        (1, 1),
        (4, 1),
        (7, 1),
    ]


def test_a_fault_of_structure_leaves_the_documents_before_it():
    """What could be read is kept; what could not is named."""
    deep = read_all(b"a: 1\n---\n" + b"[" * 40)
    assert [document.root is None for document in deep] == [False, True]
    assert deep[1].problems
    assert [document.root is None for document in read_all(b"a: 1\n---\n}")] == [False, True]


# --- fuzz ---------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["kind", "Ring", "Halos", "Profile", "name", "ga", "canary", "mcp", "servers", "id", "url", "rings", "deny",
     "https://a.example/mcp", "package", "npm", "type", "identifier", "version", "1.0.0", "units", "parent"]
)  # fmt: skip
TREES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)
DOCUMENTS = TREES | st.fixed_dictionaries(
    {"kind": st.sampled_from(["Ring", "Halos", "ring", "Profile", "", None])},
    optional={"name": WORDS | st.none() | st.integers(), "mcp": TREES, "rings": st.lists(WORDS, max_size=3)},
)
TEXTS = st.lists(DOCUMENTS, max_size=4).map(
    lambda trees: yaml.safe_dump_all(trees, allow_unicode=True).encode()
)
DAMAGED = st.tuples(TEXTS, st.integers(0, 400), st.binary(max_size=4)).map(
    lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] :]
)
NAMES = st.sampled_from(["halos.yaml", "a.yaml", "rings/x.yml", "b/c/d.yaml", "z.yaml"])


def holds(files: dict[str, bytes]) -> None:
    """What is true of any repository."""
    found = examine_all(files.items(), TODAY)
    assert (found.policy is None) == bool(found.faults)
    assert found.faults == sorted(found.faults)
    assert found.warnings == sorted(found.warnings)
    for one in found.faults + found.warnings:
        data = files.get(one.file, b"")
        lines = len(re.findall("\r\n|[\r\n\x85\u2028\u2029]", data.decode("utf-8", "replace"))) + 2
        assert 1 <= one.line <= lines
        assert one.column >= 1
        assert not re.search("[\x00-\x1f\x7f]", one.message)
    # Which file the file system gives first changes nothing that is wrong.
    again = examine_all(reversed(files.items()), TODAY)
    assert len(again.faults) == len(found.faults)
    assert again.policy is None or again.policy.entries == found.policy.entries


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, TEXTS | DAMAGED, max_size=4))
def test_any_repository_gives_a_policy_or_faults(files: dict[str, bytes]):
    """No traceback, no silence, and places that are there."""
    holds(files)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(NAMES, st.binary(max_size=200), max_size=3))
def test_any_bytes_as_a_repository(files: dict[str, bytes]):
    """The same for what is no YAML at all."""
    holds(files)


@settings(max_examples=150, deadline=None)
@given(DAMAGED)
def test_the_first_of_several_documents_is_what_read_reads(data: bytes):
    """Both readers of YAML agree where there is one document."""
    several = read_all(data)
    if len(several) == 1 and several[0].root is not None:
        assert read(data) == several[0]
