# SPDX-License-Identifier: Apache-2.0
"""`detail` and `fix`: a person must be able to mend it from the text alone (design 6)."""

from datetime import date
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.drift import NOTES, Verdict, words
from halod.drift.flags import FLAG_WORDS, FLAGS
from halod.drift.verdict import Kind
from halod.drift.words import pin
from halod.policy.model import Deny, Entry, Package, Registry
from tests.support.drift import DIGEST, OCI, command_entry, npm_entry, registry, url_entry

SHA = "93098e84bb3984832b76cd6c573afb9fcfff0a17cf58956f9703e827e3f81a30"
PLAYWRIGHT = Entry(
    id="playwright-mcp",
    package=Package(type="npm", identifier="@playwright/mcp", version="0.0.82", version_text="0.0.82"),
)


def _words(kind, entry="", note="", flags=(), *, policy=None, server="playwright", transport="stdio"):
    verdict = Verdict(kind, entry, note, flags)
    return words(
        verdict,
        server=server,
        transport=transport,
        sha256=SHA,
        registry=policy or registry(PLAYWRIGHT, url_entry()),
    )


def test_the_example_of_the_contract():
    """Design 6, letter by letter."""
    detail, fix = _words("version-drift", "playwright-mcp", "unpinned")
    assert detail == (
        "defined as a stdio command (definition sha256 93098e84bb39); "
        "the registry pins npx -y @playwright/mcp@0.0.82"
    )
    assert fix == (
        'change "playwright" to npx -y @playwright/mcp@0.0.82, or remove it '
        "(the managed config already provides it)"
    )


def test_an_approved_definition_needs_no_words():
    """Nothing to say, nothing to do."""
    assert _words("approved", "wiki") == ("", "")


@pytest.mark.parametrize(
    ("message", "help_url", "tail"),
    [
        (
            "Ask in the ai-tools channel",
            "https://wiki.acme.example/mcp",
            ". Ask in the ai-tools channel: https://wiki.acme.example/mcp",
        ),
        ("Ask in the ai-tools channel", "", ". Ask in the ai-tools channel"),
        ("", "https://wiki.acme.example/mcp", ". https://wiki.acme.example/mcp"),
        ("", "", ""),
    ],
)
def test_message_and_link_end_every_fix(message, help_url, tail):
    """The organisation's own words are shown with every fix."""
    policy = registry(PLAYWRIGHT, message=message, help_url=help_url, deny=(Deny(host="x.example"),))
    for kind, entry, note in [
        ("version-drift", "playwright-mcp", "unpinned"),
        ("unapproved", "", "not-listed"),
        ("denied", "0", "denied-host"),
    ]:
        fix = _words(kind, entry, note, policy=policy)[1]
        assert fix.endswith(tail)
        assert bool(tail) == ("acme.example" in fix or "channel" in fix)


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (npm_entry(), "npx -y @acme/tools@1.2.0"),
        (npm_entry(bin="x-mcp"), "npx -y -p @acme/tools@1.2.0 x-mcp"),
        (npm_entry(args=("--mode", "a b")), "npx -y @acme/tools@1.2.0 --mode 'a b'"),
        (npm_entry(args="any"), "npx -y @acme/tools@1.2.0"),
        (Entry(id="p", package=Package(type="pypi", identifier="x", version="1")), "uvx x@1"),
        (
            Entry(id="p", package=Package(type="pypi", identifier="x", version="1", bin="y")),
            "uvx --from x==1 y",
        ),
        (Entry(id="o", package=OCI), f"docker run -i --rm docker.io/acme/tools@sha256:{DIGEST}"),
        (
            Entry(id="n", package=Package(type="nuget", identifier="a.b", version="1.0.0")),
            "dnx a.b@1.0.0 --yes",
        ),
        (url_entry(), "https://mcp-wiki.internal.acme.example/mcp"),
        (command_entry("/opt/acme/bin/x", "--say", "it's"), "/opt/acme/bin/x --say 'it'\"'\"'s'"),
        (command_entry("/opt/acme/bin/x", ""), "/opt/acme/bin/x ''"),
        (Entry(id="h", definition_sha256=SHA), "the definition with sha256 93098e84bb39"),
    ],
)
def test_a_pin_is_shown_as_a_person_would_write_it(entry, shown):
    """Design 6, last paragraph; with the program or arguments where the entry names them."""
    assert pin(entry) == shown


def test_the_version_is_shown_as_the_policy_spells_it():
    """Canonical forms are for comparing."""
    package = Package(type="pypi", identifier="x", version="2026.8.1", version_text="2026.08.1")
    assert pin(Entry(id="x", package=package)) == "uvx x@2026.08.1"


def test_an_unsafe_extra_is_named_with_its_cure():
    """What is unsafe, and the pin without it."""
    detail, fix = _words(
        "unapproved", "playwright-mcp", "approved-with-unsafe", ("env-unknown", "registry-override")
    )
    assert (
        "; runs the approved package with env-unknown and registry-override; the registry pins npx" in detail
    )
    assert fix.startswith(
        'change "playwright" to npx -y @playwright/mcp@0.0.82 without env-unknown and registry-override'
    )
    http = _words("unapproved", "wiki", "approved-with-unsafe", ("tls-off",), transport="http")
    assert "an http URL" in http[0]
    assert "uses the approved URL with tls-off" in http[0]


def test_an_unsafe_extra_beside_a_command_or_hash_pin():
    """A hash cannot be typed in, so the fix is to take the extra out."""
    policy = registry(command_entry("/opt/acme/x"), Entry(id="h", definition_sha256=SHA))
    command = _words("unapproved", "house-tool", "approved-with-unsafe", ("path-override",), policy=policy)
    assert "runs the approved command with path-override" in command[0]
    assert 'change "playwright" to /opt/acme/x without path-override' in command[1]
    by_hash = _words("unapproved", "h", "approved-with-unsafe", ("path-override",), policy=policy)
    assert 'take path-override out of "playwright"' in by_hash[1]


def test_url_drift_names_what_differs():
    """Each difference in words; a bridge is to be replaced by the URL itself."""
    flags = ("scheme", "userinfo", "query", "fragment", "trailing-slash")
    detail, fix = _words("version-drift", "wiki", "url-differs", flags, transport="http")
    assert (
        "with another scheme, credentials in the URL, another query, a fragment and a trailing slash"
        in detail
    )
    assert 'change "playwright" to https://mcp-wiki.internal.acme.example/mcp' in fix
    bridge = _words("version-drift", "wiki", "url-differs", ("query",))
    assert "a bridge to the approved URL of wiki with another query" in bridge[0]
    assert "configure wiki directly over http (https://mcp-wiki.internal.acme.example/mcp)" in bridge[1]
    assert "in another spelling" in _words("version-drift", "wiki", "url-differs", (), transport="http")[0]


@pytest.mark.parametrize("kind", ["version-drift", "unapproved"])
def test_a_bridge_to_an_approved_url_is_to_be_configured_directly(kind):
    """The words of design 6."""
    detail, fix = _words(kind, "wiki", "bridge-to-approved")
    assert "leading to the approved wiki (https://mcp-wiki.internal.acme.example/mcp)" in detail
    assert fix.startswith("configure wiki directly over http (https://mcp-wiki.internal.acme.example/mcp)")


def test_a_carrier_of_an_approved_package():
    """Start the package itself."""
    detail, fix = _words("unapproved", "playwright-mcp", "carries-approved")
    assert "what it starts is the approved playwright-mcp" in detail
    assert 'change "playwright" to npx -y @playwright/mcp@0.0.82' in fix


def test_another_ring_tells_which():
    """An entry that exists but not for this ring or unit."""
    scoped = npm_entry(rings=("ring0", "ring1"), units=("payments",))
    policy = registry(elsewhere=(scoped, url_entry(rings=("ring2",)), npm_entry(id="odd")))
    detail, fix = _words("unapproved", "tools", "other-ring", policy=policy)
    assert "approved as tools for rings ring0 and ring1 and unit payments, not for this device" in detail
    assert "ask to have tools approved for this device too" in fix
    assert "for ring ring2, not" in _words("unapproved", "wiki", "other-ring", policy=policy)[0]
    assert "for other devices, not" in _words("unapproved", "odd", "other-ring", policy=policy)[0]


def test_an_expired_entry_tells_when_and_who():
    """Waivers end; the owner can renew."""
    policy = registry(expired=(npm_entry(expires=date(2027, 6, 30), owner="observability"), url_entry()))
    detail, fix = _words("unapproved", "tools", "expired", policy=policy)
    assert "the approval as tools ended on 2027-06-30" in detail
    assert "have tools approved again by observability" in fix
    assert _words("unapproved", "wiki", "expired", policy=policy)[0].endswith("the approval as wiki ended")


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ("other-path", "another path on the host of wiki, and a host has many tenants"),
        ("other-port", "another port on the host of wiki"),
        ("borrowed-id", "it has the name of the approved wiki and is something else"),
    ],
)
def test_a_near_miss_says_what_is_approved_and_what_else_can_be_done(note, said):
    """Change it if that is what is meant, otherwise remove it or ask."""
    detail, fix = _words("unapproved", "wiki", note, transport="http")
    assert said in detail
    assert detail.endswith("the registry pins https://mcp-wiki.internal.acme.example/mcp")
    assert fix.startswith(
        'change "playwright" to https://mcp-wiki.internal.acme.example/mcp if that is what is meant'
    )


def test_a_reading_that_depends_on_the_launcher():
    """Write it as the registry does."""
    detail, fix = _words("unapproved", "playwright-mcp", "launcher-version")
    assert "depends on the launcher's release" in detail
    assert 'change "playwright" to npx -y' in fix


@pytest.mark.parametrize(
    ("note", "said", "todo"),
    [
        ("not-listed", "the registry has no such package", 'remove "playwright", use an approved server'),
        ("unidentifiable", "cannot be told from the command line", "approved package at its pinned version"),
        ("not-comparable", "holds a variable, or is written", "write the approved URL out in full"),
        ("desktop-extension", "no pin can be checked", 'uninstall the extension "playwright"'),
        ("carries-unapproved", "what it leads to is not approved", 'remove "playwright"'),
    ],
)
def test_what_no_entry_approves(note, said, todo):
    """Rule 8."""
    detail, fix = _words("unapproved", "", note)
    assert said in detail
    assert todo in fix


def test_an_unknown_url_is_called_a_url():
    """The transport chooses the word."""
    assert _words("unapproved", "", "not-listed", transport="http")[0].endswith(
        "the registry has no such URL"
    )


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ("denied-package", "what it runs is on the deny list: backdoored"),
        ("denied-host", "the host it leads to is on the deny list"),
        ("denied-url", "the URL it leads to is on the deny list"),
        ("denied-hash", "this definition is on the deny list"),
    ],
)
def test_denied_is_to_be_removed_now(note, said):
    """With the organisation's reason, when it gave one."""
    policy = registry(deny=(Deny(host="x.example", reason="backdoored"), Deny(host="y.example")))
    detail, fix = _words("denied", "0", note, policy=policy)
    assert said in detail
    assert fix.startswith('remove "playwright" now: backdoored')
    assert _words("denied", "1", note, policy=policy)[1].startswith('remove "playwright" now; tell')


@pytest.mark.parametrize("position", ["2", "-1", "", "x", "²", "99999999999999999999", "00"])
def test_a_position_that_does_not_exist_gives_no_reason(position):
    """A worker's answer is not trusted."""
    policy = registry(deny=(Deny(host="x.example", reason="backdoored"), Deny(host="y.example")))
    assert "backdoored" not in _words("denied", position, "denied-host", policy=policy)[0]


def test_an_entry_that_does_not_exist_gives_general_words():
    """Another process may name anything."""
    assert "the registry pins it otherwise" in _words("version-drift", "gone", "unpinned")[0]
    assert "not approved" in _words("unapproved", "gone", "bridge-to-approved")[0]
    assert "no such package" in _words("unapproved", "gone", "approved-with-unsafe", ("alias",))[0]


def test_a_flag_outside_the_vocabulary_is_not_shown():
    """Only flag names of ours reach the text."""
    detail, fix = _words("unapproved", "playwright-mcp", "approved-with-unsafe", ("CANARY",))
    assert "CANARY" not in detail + fix
    assert "something unsafe" in detail


def test_a_nameless_definition_is_called_so():
    """`explain` has no server name."""
    assert _words("version-drift", "playwright-mcp", "unpinned", server="")[1].startswith(
        "change this definition to "
    )


def test_every_flag_has_one_line():
    """Lower case, no final period: each can follow a colon."""
    for flag, line in FLAG_WORDS.items():
        assert flag == flag.lower()
        assert line
        assert "\n" not in line
        assert not line.endswith(".")
    assert frozenset(FLAG_WORDS) == FLAGS


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(get_args(Kind)),
    st.sampled_from(["", "playwright-mcp", "wiki", "tools", "old", "0", "7", "gone"]),
    st.sampled_from(sorted(NOTES)),
    st.lists(st.sampled_from(sorted(FLAGS)), max_size=3),
    st.sampled_from(["stdio", "http"]),
)
def test_words_are_total_and_bounded(kind, entry, note, flags, transport):
    """Whatever a worker claims, there is a sentence, and it fits the wire."""
    policy = registry(
        PLAYWRIGHT,
        url_entry(),
        elsewhere=(npm_entry(rings=("ring0",)),),
        expired=(url_entry(id="old"),),
        deny=(Deny(host="x"),),
    )
    detail, fix = _words(kind, entry, note, tuple(flags), policy=policy, transport=transport)
    assert bool(detail) == bool(fix) == (kind != "approved")
    assert len(detail) < 1024
    assert len(fix) < 1024


def test_an_empty_registry_has_words_too():
    """Nothing is approved, and that is said."""
    assert _words("unapproved", "", "not-listed", policy=Registry())[0]


def test_the_page_for_admins_names_every_note_flag_and_kind():
    """docs/verdicts.md stays in step with the vocabularies."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "verdicts.md").read_text("utf-8")
    for word in (*NOTES, *get_args(Kind)):
        assert not word or f"`{word}`" in page
    for flag, line in FLAG_WORDS.items():
        assert f"| `{flag}` | {line} |" in page
