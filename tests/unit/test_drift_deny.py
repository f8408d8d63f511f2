# SPDX-License-Identifier: Apache-2.0
"""Rule 0: known bad outranks every approval (design 6)."""

import pytest

from halod.definition import stdio_sha256
from halod.drift import Judge, judge, judge_worse
from halod.harnesses.model import Found
from halod.launch.model import Nested
from halod.policy.model import Deny, Entry, Package
from tests.support.drift import (
    DIGEST,
    NPM,
    OCI,
    OTHER_DIGEST,
    WIKI_URL,
    deny,
    fake,
    http,
    launch,
    npm_entry,
    registry,
    stdio,
    url_entry,
)


def _run(found, policy, definition=None):
    return Judge(policy, fake(found)).judge(definition if definition is not None else stdio())


def _package(**fields):
    return deny(package=Package(**{"type": "npm", "identifier": "@acme/tools", **fields}))


@pytest.mark.parametrize(
    "outcome",
    [
        "identified",
        "identified-unpinned",
        "identified-unsafe",
        "launcher-version-dependent",
        "delegate",
        "unidentifiable",
    ],
)
def test_a_denied_package_is_denied_in_every_outcome(outcome):
    """As soon as the identity is known at all."""
    verdict = _run(launch(outcome=outcome), _package())
    assert (verdict.kind, verdict.note, verdict.entry) == ("denied", "denied-package", "0")
    assert verdict.outcome == outcome


def test_a_denied_version_leaves_the_others_alone():
    """Any version, or the one that is named, spelled as the ecosystem spells it."""
    assert _run(launch(version="1.2.0"), _package(version="1.2.0")).kind == "denied"
    assert _run(launch(version="1.2.1"), _package(version="1.2.0")).kind == "version-drift"
    assert _run(launch(version=None), _package(version="1.2.0")).kind == "version-drift"
    pypi = deny(package=Package(type="pypi", identifier="x", version="1.2"))
    assert _run(launch(ecosystem="pypi", identifier="x", version="1.2.0"), pypi).kind == "denied"


@pytest.mark.parametrize(
    "change", [{"identifier": "@acme/tool"}, {"ecosystem": "pypi"}, {"identifier": None}]
)
def test_another_package_is_not_denied(change):
    """Ecosystem and identifier, as in approving."""
    assert _run(launch(**change), _package()).kind == "unapproved"


def test_an_image_is_denied_by_digest_tag_or_whole():
    """An image's version is its tag."""
    image = {"ecosystem": "oci", "identifier": OCI.identifier, "version": None}
    by_digest = deny(package=Package(type="oci", identifier=OCI.identifier, sha256=DIGEST))
    assert _run(launch(**image, digest=f"sha256:{DIGEST}"), by_digest).kind == "denied"
    assert _run(launch(**image, digest=f"sha256:{OTHER_DIGEST}"), by_digest).kind == "unapproved"
    by_tag = deny(package=Package(type="oci", identifier=OCI.identifier, version="1.0", version_text="1.0"))
    assert _run(launch(**image, requested="1.0"), by_tag).kind == "denied"
    assert _run(launch(**image, requested="1.1"), by_tag).kind == "unapproved"
    assert (
        _run(launch(**image), deny(package=Package(type="oci", identifier=OCI.identifier))).kind == "denied"
    )


@pytest.mark.parametrize("outcome", ["delegate", "identified", "unidentifiable"])
def test_what_a_carrier_or_wrapper_carries_is_denied_too(outcome):
    """Nested packages, hashes and hosts count, under bridges and wrappers alike."""
    inner = ("npx", "-y", "bad")
    carrier = launch(identifier="carrier", outcome=outcome, nested=Nested(argv=("inner", *inner)))
    found = {"npx": carrier, "inner": launch(identifier="bad", version="9")}
    by_package = deny(package=Package(type="npm", identifier="bad"))
    assert _run(found, by_package).kind == "denied"
    by_hash = deny(definition_sha256=stdio_sha256("inner", inner))
    assert _run(found, by_hash).note == "denied-hash"


def test_the_carrier_itself_is_denied():
    """Also when it leads to something approved."""
    found = launch(outcome="delegate", nested=Nested(url=WIKI_URL))
    assert _run(found, _package()).kind == "denied"


@pytest.mark.parametrize(
    "url",
    [
        "https://mcp.evil.example/",
        "https://mcp.evil.example:8443/x",
        "http://MCP.EVIL.example/y?z#f",
        "https://mcp.evil.example./",
        "https://user:CANARY@mcp.evil.example/",
    ],
)
def test_a_denied_host_is_denied_on_every_port_and_path(url):
    """The host as the harness would connect to it."""
    verdict = judge(http(url), deny(host="mcp.evil.example"))
    assert (verdict.kind, verdict.note) == ("denied", "denied-host")
    bridge = launch(outcome="delegate", nested=Nested(url=url))
    assert _run(bridge, deny(host="mcp.evil.example")).kind == "denied"


@pytest.mark.parametrize(
    "url",
    ["https://evil.example/", "https://x.mcp.evil.example/", "https://mcp.evil.example.org/", "nonsense"],
)
def test_a_denied_host_is_that_host_only(url):
    """Sub-domains and parents are other hosts."""
    assert judge(http(url), deny(host="mcp.evil.example")).kind == "unapproved"


def test_a_denied_host_may_name_a_port():
    """Then only that port is denied; IPv6 keeps its brackets."""
    with_port = deny(host="mcp.evil.example:8443")
    assert judge(http("https://mcp.evil.example:8443/"), with_port).kind == "denied"
    assert judge(http("https://mcp.evil.example/"), with_port).kind == "unapproved"
    six = deny(host="[2001:db8::10]")
    assert judge(http("https://[2001:db8::10]:8443/"), six).kind == "denied"
    assert judge(http("https://[2001:db8::10]/"), six).kind == "denied"
    assert judge(http("https://[2001:db8::1]/"), six).kind == "unapproved"


@pytest.mark.parametrize(
    "url", [WIKI_URL, WIKI_URL + "#frag", WIKI_URL.replace("://", "://u:CANARY@"), "HTTPS" + WIKI_URL[5:]]
)
def test_a_denied_url_outranks_its_approval(url):
    """Userinfo, fragment and spelling hide nothing."""
    verdict = judge(http(url), deny(url=WIKI_URL))
    assert (verdict.kind, verdict.note) == ("denied", "denied-url")


def test_another_url_of_the_host_is_not_denied():
    """A URL is that URL; a text that is no URL is compared as it is."""
    assert judge(http(WIKI_URL + "/x"), deny(url=WIKI_URL)).kind == "unapproved"
    assert judge(http(WIKI_URL + "?x"), deny(url=WIKI_URL)).kind == "version-drift"
    assert judge(http("nonsense"), deny(url="nonsense")).kind == "denied"
    assert judge(http("nonsense"), deny(url=WIKI_URL)).kind == "unapproved"


def test_a_program_fetched_from_a_denied_url_is_denied():
    """`uv run https://…/x.py`, a tarball or a repository at a known bad place."""
    script = launch(
        ecosystem="url-script", identifier="https://mcp.evil.example/x.py", outcome="unidentifiable"
    )
    assert _run(script, deny(host="mcp.evil.example")).kind == "denied"
    git = launch(ecosystem="git", identifier="git+https://mcp.evil.example/x", outcome="identified-unsafe")
    assert _run(git, deny(host="mcp.evil.example")).kind == "denied"
    assert _run(git, deny(url="https://mcp.evil.example/x")).kind == "denied"
    assert _run(launch(identifier="left-pad"), deny(host="mcp.evil.example")).kind == "unapproved"


def test_a_denied_hash_outranks_a_hash_pin():
    """Of a command and of a URL."""
    line = stdio("npx", "bad")
    policy = registry(
        Entry(id="x", definition_sha256=line.sha256), deny=(Deny(definition_sha256=line.sha256),)
    )
    assert _run(launch(), policy, line).note == "denied-hash"
    assert judge(http(), deny(definition_sha256=http().sha256)).kind == "denied"
    assert judge(http(), deny(definition_sha256=line.sha256)).kind == "approved"


def test_the_first_deny_entry_that_fits_is_named():
    """Its position tells the other side which reason to show."""
    denied = (
        Deny(host="x.example"),
        Deny(package=NPM),
        Deny(package=Package(type="npm", identifier="@acme/tools")),
    )
    assert _run(launch(), registry(npm_entry(), deny=denied)).entry == "1"


def test_a_denied_half_is_never_hidden_by_the_other():
    """Of an entry with a command and a URL."""
    judge_one = Judge(
        registry(npm_entry(), url_entry(), deny=(Deny(host="mcp-wiki.internal.acme.example"),)),
        fake(launch()),
    )
    definition, verdict = judge_worse(Found(stdio(), http()), judge_one)
    assert (definition.transport, verdict.kind) == ("http", "denied")


def test_a_desktop_extension_can_be_denied():
    """Rule 0 comes first."""
    extension = stdio(harness="claude-desktop", scope="plugin")
    assert _run(launch(), _package(), extension).kind == "denied"
