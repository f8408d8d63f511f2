# SPDX-License-Identifier: Apache-2.0
"""Rules 1 to 8 of drift, with launches made by hand (design 6)."""

from datetime import date

import pytest

from halod.definition import FileRef
from halod.drift import Judge, judge, judge_worse
from halod.harnesses.model import Found
from halod.launch.model import Nested
from halod.policy.model import Entry, Package
from tests.support.drift import (
    BRIDGE,
    DIGEST,
    OCI,
    OTHER_DIGEST,
    WIKI_URL,
    command_entry,
    fake,
    http,
    judged,
    launch,
    npm_entry,
    registry,
    stdio,
    url_entry,
)

GIT = Package(type="pypi", identifier="mcp-server-git", version="2026.8.1", version_text="2026.8.1")


# --- rule 1: command and hash pins ---------------------------------------------------------------------------


def test_an_exact_command_is_approved_under_its_id():
    """A command pin approves the command line as written."""
    house = command_entry("/opt/acme/bin/house-mcp", "--stdio")
    verdict = judged(
        launch(outcome="unidentifiable"), house, definition=stdio("/opt/acme/bin/house-mcp", "--stdio")
    )
    assert (verdict.kind, verdict.entry) == ("approved", "house-tool")


def test_one_argument_more_is_no_longer_the_pinned_command():
    """The hash covers every argument."""
    house = command_entry("/opt/acme/bin/house-mcp", "--stdio")
    more = stdio("/opt/acme/bin/house-mcp", "--stdio", "--plugin", "CANARYx")
    assert judged(launch(outcome="unidentifiable"), house, definition=more).kind == "unapproved"


def test_a_hash_pin_goes_before_a_package_pin():
    """Rule 1 comes first: @latest is approved by its hash though the package has an exact pin."""
    latest = stdio("npx", "-y", "@acme/tools@latest")
    by_hash = Entry(id="old", definition_sha256=latest.sha256)
    verdict = judged(
        launch(outcome="identified-unpinned", version=None), npm_entry(), by_hash, definition=latest
    )
    assert (verdict.kind, verdict.entry) == ("approved", "old")


def test_a_hash_pin_approves_a_url():
    """`definitionSha256` works for URLs as well, loopback ones too."""
    ide = http("http://127.0.0.1:64342/sse")
    verdict = judge(ide, registry(Entry(id="ide", definition_sha256=ide.sha256)))
    assert (verdict.kind, verdict.entry) == ("approved", "ide")


@pytest.mark.parametrize(
    "outcome", ["unidentifiable", "launcher-version-dependent", "identified-unsafe", "delegate"]
)
def test_a_hash_pin_vouches_for_whatever_the_line_says(outcome):
    """Flags of the command line itself do not matter to rule 1."""
    line = stdio("sh", "-c", "a && b")
    flags = ("extra-packages", "registry-override")
    assert judged(launch(outcome=outcome, flags=flags), _hash(line), definition=line).kind == "approved"


def _hash(definition, **fields):
    return Entry(id="by-hash", definition_sha256=definition.sha256, **fields)


def test_a_hash_pin_does_not_vouch_for_the_environment_beside_it():
    """An unsafe key of the entry's env is outside the hash."""
    line = stdio("/opt/x", env=[("LD_PRELOAD", "CANARY.so")])
    found = launch(
        outcome="unidentifiable", env_keys=("LD_PRELOAD",), unsafe_env=(("code-injection", "LD_PRELOAD"),)
    )
    verdict = judged(found, _hash(line), definition=line)
    assert (verdict.kind, verdict.note, verdict.flags) == (
        "unapproved",
        "approved-with-unsafe",
        ("code-injection",),
    )


def test_a_hash_pin_vouches_for_the_environment_inside_the_line():
    """What an env wrapper sets is part of the hashed words."""
    line = stdio("env", "NODE_OPTIONS=x", "npx", "y")
    found = launch(
        outcome="identified-unsafe",
        flags=("code-injection",),
        env_keys=("NODE_OPTIONS",),
        unsafe_env=(("code-injection", "NODE_OPTIONS"),),
    )
    assert judged(found, _hash(line), definition=line).kind == "approved"


def test_a_hash_pin_may_list_or_tolerate_what_is_beside_it():
    """`env` names the key, or `tolerate` the flag."""
    line = stdio("/opt/x", env=[("PATH", "/opt/y")])
    found = launch(outcome="unidentifiable", env_keys=("PATH",), unsafe_env=(("path-override", "PATH"),))
    assert judged(found, _hash(line), definition=line).kind == "unapproved"
    assert judged(found, _hash(line, env=frozenset({"PATH"})), definition=line).kind == "approved"
    assert (
        judged(found, _hash(line, tolerate=frozenset({"path-override"})), definition=line).kind == "approved"
    )
    unknown = _hash(line, env=frozenset({"TOKEN"}), tolerate=frozenset({"path-override"}))
    assert judged(found, unknown, definition=line).flags == ("env-unknown",)


def test_a_cwd_beside_a_hash_pin_counts_unless_the_launcher_ignores_it():
    """`node server.js` is another program in another directory."""
    line = stdio("node", "server.js", cwd="/tmp/CANARY")
    verdict = judged(launch(outcome="unidentifiable"), _hash(line), definition=line)
    assert verdict.flags == ("cwd-override",)
    tolerant = _hash(line, tolerate=frozenset({"cwd-override"}))
    assert judged(launch(outcome="unidentifiable"), tolerant, definition=line).kind == "approved"
    assert judged(
        launch(flags=("cwd-override",), outcome="identified-unsafe"), _hash(line), definition=line
    ).flags
    assert judged(launch(), _hash(line), definition=line).kind == "approved"


def test_a_feature_beside_a_hash_pin_counts():
    """Inline code is not in the hash."""
    line = stdio("/opt/x", features=frozenset({"inline-code"}))
    assert judged(launch(outcome="unidentifiable"), _hash(line), definition=line).flags == ("inline-code",)


def test_a_package_pin_still_approves_where_a_hash_pin_does_not():
    """An entry that does not fit never changes what another says."""
    line = stdio("npx", "-y", "@acme/tools@1.2.0", env=[("PATH", "x")])
    found = launch(
        outcome="identified-unsafe",
        flags=("path-override",),
        env_keys=("PATH",),
        unsafe_env=(("path-override", "PATH"),),
    )
    tolerant = npm_entry(tolerate=frozenset({"path-override"}))
    assert judged(found, _hash(line), tolerant, definition=line).entry == "tools"


# --- rules 2 and 3: URLs ---------------------------------------------------------------------------------------


def test_an_equal_url_is_approved():
    """Rule 2."""
    verdict = judge(http(), registry(url_entry()))
    assert (verdict.kind, verdict.entry, verdict.host) == (
        "approved",
        "wiki",
        "mcp-wiki.internal.acme.example",
    )
    assert verdict.outcome == ""


@pytest.mark.parametrize("feature", ["headers-helper", "tls-off", "auth-endpoint", "env-file", "inline-code"])
def test_a_feature_disqualifies_an_approved_url(feature):
    """Rules 2 and 3 need that nothing unsafe is present."""
    verdict = judge(http(features=frozenset({feature})), registry(url_entry()))
    assert (verdict.kind, verdict.note, verdict.flags) == ("unapproved", "approved-with-unsafe", (feature,))
    near = judge(http(WIKI_URL + "/", features=frozenset({feature})), registry(url_entry()))
    assert (near.kind, near.entry) == ("unapproved", "wiki")


@pytest.mark.parametrize(
    ("url", "differences"),
    [
        ("http://mcp-wiki.internal.acme.example/mcp", ("scheme",)),
        ("http://mcp-wiki.internal.acme.example:443/mcp", ("scheme",)),
        ("https://dev:CANARY@mcp-wiki.internal.acme.example/mcp", ("userinfo",)),
        ("https://mcp-wiki.internal.acme.example/mcp?token=CANARY", ("query",)),
        ("https://mcp-wiki.internal.acme.example/mcp?", ("query",)),
        ("https://mcp-wiki.internal.acme.example/mcp#CANARY", ("fragment",)),
        ("https://mcp-wiki.internal.acme.example/mcp/", ("trailing-slash",)),
        (
            "http://u@mcp-wiki.internal.acme.example/mcp/?q#f",
            ("scheme", "userinfo", "query", "fragment", "trailing-slash"),
        ),
    ],
)
def test_a_near_url_is_drift(url, differences):
    """Rule 3: same host, port and path, differing only in the named parts."""
    verdict = judge(http(url), registry(url_entry()))
    assert (verdict.kind, verdict.entry, verdict.note) == ("version-drift", "wiki", "url-differs")
    assert verdict.flags == differences


@pytest.mark.parametrize(
    ("url", "note"),
    [
        ("https://mcp-wiki.internal.acme.example/mcp2", "other-path"),
        ("https://mcp-wiki.internal.acme.example/MCP", "other-path"),
        ("https://mcp-wiki.internal.acme.example/mcp//", "other-path"),
        ("https://mcp-wiki.internal.acme.example/", "other-path"),
        ("https://mcp-wiki.internal.acme.example:8443/mcp", "other-port"),
        ("https://evil.mcp-wiki.internal.acme.example/mcp", "not-listed"),
        ("https://mcp-wiki.internal.acme.example.evil.example/mcp", "not-listed"),
        ("https://mcp.example.net\\@mcp-wiki.internal.acme.example/mcp", "not-comparable"),
        ("https://${HOST}/mcp", "not-comparable"),
        ("nonsense", "not-comparable"),
    ],
)
def test_any_other_url_is_unapproved(url, note):
    """Rule 8, with the reason; a shared host proves nothing."""
    verdict = judge(http(url), registry(url_entry()))
    assert (verdict.kind, verdict.note) == ("unapproved", note)


def test_the_nearest_of_several_urls_on_a_host_is_named():
    """A near miss of one entry goes before another path of an earlier one."""
    entries = [url_entry(WIKI_URL + "/a", id="a"), url_entry(id="wiki"), url_entry(WIKI_URL + "/b", id="b")]
    verdict = judge(http(WIKI_URL + "/"), registry(*entries))
    assert (verdict.kind, verdict.entry) == ("version-drift", "wiki")


# --- rules 4 to 6: packages --------------------------------------------------------------------------------------


def test_the_pinned_package_is_approved():
    """Rule 4."""
    verdict = judged(launch(), npm_entry())
    assert (verdict.kind, verdict.entry, verdict.outcome, verdict.host) == (
        "approved",
        "tools",
        "identified",
        "",
    )


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"version": "1.2.1"}, "other-version"),
        ({"version": "1.2.0-beta.1"}, "other-version"),
        ({"version": None, "outcome": "identified-unpinned"}, "unpinned"),
    ],
)
def test_another_version_or_none_is_drift(changes, note):
    """Rule 5."""
    verdict = judged(launch(**changes), npm_entry())
    assert (verdict.kind, verdict.entry, verdict.note) == ("version-drift", "tools", note)


@pytest.mark.parametrize(
    "changes",
    [
        {"identifier": "@acme/tool"},
        {"identifier": "@Acme/tools"},
        {"ecosystem": "pypi"},
        {"ecosystem": "git"},
        {"ecosystem": None},
        {"identifier": None},
    ],
)
def test_another_package_is_unapproved(changes):
    """Same ecosystem and identifier, or nothing."""
    verdict = judged(launch(**changes), npm_entry())
    assert (verdict.kind, verdict.entry) == ("unapproved", "")


def test_pypi_versions_are_compared_by_their_value():
    """`1.2` and `1.2.0` are one version for PyPI (launchers.md 4)."""
    entry = Entry(id="x", package=Package(type="pypi", identifier="x", version="1.2"))
    assert judged(launch(ecosystem="pypi", identifier="x", version="1.2.0"), entry).kind == "approved"


def test_an_image_is_its_digest():
    """OCI: the digest decides, a tag is drift, another digest too."""
    entry = Entry(id="img", package=OCI)
    image = {"ecosystem": "oci", "identifier": OCI.identifier, "version": None}
    assert judged(launch(**image, digest=f"sha256:{DIGEST}"), entry).kind == "approved"
    other = judged(launch(**image, digest=f"sha256:{OTHER_DIGEST}"), entry)
    assert (other.kind, other.note) == ("version-drift", "other-version")
    tag = judged(launch(**image, requested="1.2.0", outcome="identified-unpinned"), entry)
    assert (tag.kind, tag.note) == ("version-drift", "unpinned")


def test_a_pin_without_version_or_digest_approves_nothing():
    """A policy that slipped through without a version is no pin."""
    loose = Entry(id="x", package=Package(type="npm", identifier="@acme/tools"))
    assert judged(launch(version=""), loose).kind == "version-drift"
    image = Entry(id="x", package=Package(type="oci", identifier="a/b"))
    found = launch(ecosystem="oci", identifier="a/b", version=None, digest="sha256:")
    assert judged(found, image).kind == "version-drift"


def test_the_best_of_several_pins_of_a_package_counts():
    """An approval goes before drift, drift before a near miss, whatever the order."""
    old = npm_entry(id="old", args=("--x",))
    newer = Entry(id="newer", package=Package(type="npm", identifier="@acme/tools", version="1.3.0"))
    for entries in ([old, newer, npm_entry()], [npm_entry(), newer, old], [newer, old, npm_entry()]):
        assert judged(launch(), *entries).entry == "tools"
    assert judged(launch(), old, newer).entry == "newer"


def test_a_reading_that_depends_on_the_launchers_release_is_never_approved_by_a_package():
    """Only a hash or command pin approves it, whatever is tolerated."""
    entry = npm_entry(tolerate=frozenset({"package-flag", "from-flag"}), bin="x", args="any")
    found = launch(outcome="launcher-version-dependent", flags=("package-flag",), bin="x")
    verdict = judged(found, entry)
    assert (verdict.kind, verdict.note, verdict.entry) == ("unapproved", "launcher-version", "tools")


def test_what_cannot_be_identified_is_unapproved_even_with_a_known_name():
    """For `unidentifiable` only the outcome matters."""
    verdict = judged(launch(outcome="unidentifiable"), npm_entry())
    assert (verdict.kind, verdict.note, verdict.entry) == ("unapproved", "unidentifiable", "")


def test_an_unsafe_flag_of_an_approved_package_is_named():
    """Rule 8 with the words of design 6: runs the approved package with registry-override."""
    found = launch(outcome="identified-unsafe", flags=("registry-override", "wrapper"))
    verdict = judged(found, npm_entry())
    assert (verdict.kind, verdict.note) == ("unapproved", "approved-with-unsafe")
    assert (verdict.entry, verdict.flags) == ("tools", ("registry-override",))


def test_informational_flags_never_count():
    """`wrapper`, `shell`, `absolute-launcher` and their like are no reason by themselves."""
    flags = (
        "absolute-launcher",
        "extras",
        "maybe-local-build",
        "name-is-label",
        "shell",
        "windows-shell",
        "wrapper",
    )
    assert judged(launch(flags=flags), npm_entry()).kind == "approved"


# --- rule 7: bridges ---------------------------------------------------------------------------------------------

BRIDGE_ENTRY = Entry(id="bridge", package=BRIDGE)


def _bridge(nested, **changes):
    base = {"identifier": "mcp-remote", "version": "0.1.29", "outcome": "delegate", "flags": ("carrier",)}
    return launch(**{**base, "nested": nested, **changes})


def test_a_pinned_bridge_to_an_approved_url_counts_under_the_urls_id():
    """Case 72, wiki2."""
    verdict = judged(_bridge(Nested(url=WIKI_URL)), url_entry(), BRIDGE_ENTRY)
    assert (verdict.kind, verdict.entry) == ("approved", "wiki")


def test_an_unpinned_bridge_to_an_approved_url_is_drift():
    """Case 72, wiki; the words say to configure it directly."""
    verdict = judged(_bridge(Nested(url=WIKI_URL), version=None), url_entry(), BRIDGE_ENTRY)
    assert (verdict.kind, verdict.entry, verdict.note) == ("version-drift", "wiki", "bridge-to-approved")


def test_an_unapproved_bridge_to_an_approved_url_is_unapproved():
    """The worse of both; the words name the URL's entry."""
    verdict = judged(_bridge(Nested(url=WIKI_URL)), url_entry())
    assert (verdict.kind, verdict.entry, verdict.note) == ("unapproved", "wiki", "bridge-to-approved")


def test_a_pinned_bridge_to_a_near_url_is_drift():
    """The nested verdict is the worse one."""
    verdict = judged(_bridge(Nested(url=WIKI_URL + "/")), url_entry(), BRIDGE_ENTRY)
    assert (verdict.kind, verdict.entry, verdict.flags) == ("version-drift", "wiki", ("trailing-slash",))


@pytest.mark.parametrize(
    "nested", [None, Nested(url="https://x.example/"), Nested(shell="a && b"), Nested(argv=()), Nested()]
)
def test_a_pinned_bridge_to_anything_else_is_unapproved(nested):
    """What is nested decides; what is not told is not approved."""
    other = launch(outcome="unidentifiable", identifier=None)
    verdict = judged({"npx": _bridge(nested), "sh": other}, url_entry(), BRIDGE_ENTRY)
    assert (verdict.kind, verdict.note) == ("unapproved", "carries-unapproved")


def test_a_pinned_bridge_to_another_path_of_an_approved_host_says_so():
    """The nested near miss is worth telling."""
    verdict = judged(_bridge(Nested(url=WIKI_URL + "/x")), url_entry(), BRIDGE_ENTRY)
    assert (verdict.kind, verdict.entry, verdict.note) == ("unapproved", "wiki", "other-path")


@pytest.mark.parametrize("flag", ["carrier-option", "registry-override", "cwd-override", "package-flag"])
def test_a_bridge_with_something_unsafe_is_never_approved(flag):
    """`--token-endpoint` elsewhere, another registry: not the pinned bridge to the approved URL."""
    verdict = judged(_bridge(Nested(url=WIKI_URL), flags=("carrier", flag)), url_entry(), BRIDGE_ENTRY)
    assert (verdict.kind, verdict.entry, verdict.flags) == ("unapproved", "bridge", (flag,))


def test_the_payload_key_of_a_bridge_is_unsafe_without_a_flag():
    """SSE_URL in the environment is the payload and unsafe (launchers.md 9)."""
    found = _bridge(Nested(url=WIKI_URL), env_keys=("SSE_URL",), unsafe_env=(("carrier-option", "SSE_URL"),))
    assert judged(found, url_entry(), BRIDGE_ENTRY).kind == "unapproved"


def test_features_of_a_bridge_disqualify_it():
    """They belong to the definition, not to the half that is nested."""
    definition = stdio("npx", features=frozenset({"headers-helper"}))
    found = _bridge(Nested(url=WIKI_URL))
    assert judged(found, url_entry(), BRIDGE_ENTRY, definition=definition).kind == "unapproved"


def test_a_bridge_carries_a_command():
    """mcp-proxy -- uvx mcp-server-git@…: both are judged, the inner id counts."""
    found = {
        "npx": _bridge(Nested(argv=("uvx", "mcp-server-git@2026.8.1"))),
        "uvx": launch(ecosystem="pypi", identifier="mcp-server-git", version="2026.8.1"),
    }
    git = Entry(id="git", package=GIT)
    assert judged(found, git, BRIDGE_ENTRY).entry == "git"
    alone = judged(found, git)
    assert (alone.kind, alone.entry, alone.note) == ("unapproved", "git", "carries-approved")


def test_a_shell_line_is_looked_through_only_as_identify_does():
    """The line is handed to `identify` as `sh -c`, which sees one simple command or nothing."""
    found = {
        "npx": _bridge(Nested(shell="uvx mcp-server-git@2026.8.1")),
        "sh": launch(
            ecosystem="pypi", identifier="mcp-server-git", version="2026.8.1", flags=("shell", "wrapper")
        ),
    }
    assert judged(found, Entry(id="git", package=GIT), BRIDGE_ENTRY).entry == "git"


def test_environment_reaches_what_a_bridge_carries():
    """An env-injecting carrier that is tolerated does not make its payload's source certain."""
    carrier = {
        "flags": ("carrier", "code-injection", "env-injection"),
        "env_keys": ("NODE_OPTIONS",),
        "unsafe_env": (("code-injection", "NODE_OPTIONS"),),
    }
    found = {"npx": _bridge(Nested(argv=("inner",)), **carrier), "inner": launch()}
    open_bridge = Entry(
        id="bridge", package=BRIDGE, tolerate=frozenset({"env-injection"}), env=frozenset({"NODE_OPTIONS"})
    )
    verdict = judged(found, npm_entry(), open_bridge)
    assert (verdict.kind, verdict.entry, verdict.flags) == (
        "unapproved",
        "tools",
        ("code-injection", "env-injection"),
    )
    open_tools = npm_entry(tolerate=frozenset({"env-injection"}), env=frozenset({"NODE_OPTIONS"}))
    assert judged(found, open_tools, open_bridge).kind == "approved"


def test_environment_reaches_a_pinned_command_that_a_bridge_carries():
    """The inner hash says nothing about the carrier's environment."""
    inner = command_entry("/opt/acme/house")
    carrier = {
        "flags": ("carrier", "code-injection", "env-injection"),
        "env_keys": ("LD_PRELOAD",),
        "unsafe_env": (("code-injection", "LD_PRELOAD"),),
    }
    found = {
        "npx": _bridge(Nested(argv=("/opt/acme/house",)), **carrier),
        "/opt/acme/house": launch(outcome="unidentifiable"),
    }
    open_bridge = Entry(
        id="bridge", package=BRIDGE, tolerate=frozenset({"env-injection"}), env=frozenset({"LD_PRELOAD"})
    )
    assert judged(found, inner, open_bridge).flags == ("code-injection", "env-injection")


def test_carriers_in_carriers_end():
    """Nesting without end is unapproved, and ends."""
    found = _bridge(Nested(argv=("npx", "again")))
    verdict = judged(found, url_entry(), BRIDGE_ENTRY)
    assert (verdict.kind, verdict.note) == ("unapproved", "carries-unapproved")


# --- rule 8: what helps a person -------------------------------------------------------------------------------


def test_an_entry_for_another_ring_is_named():
    """It exists, but not here (case 80)."""
    beta = npm_entry(rings=("ring0",))
    verdict = judged(launch(), url_entry(), elsewhere=(beta,))
    assert (verdict.kind, verdict.entry, verdict.note) == ("unapproved", "tools", "other-ring")
    near = judged(launch(version="9.9.9"), elsewhere=(beta,))
    assert near.note == "other-ring"


def test_an_expired_entry_is_named():
    """Past `expires` an entry approves nowhere."""
    verdict = judged(launch(), expired=(npm_entry(expires=date(2026, 1, 1)),))
    assert (verdict.kind, verdict.entry, verdict.note) == ("unapproved", "tools", "expired")


def test_another_ring_goes_before_another_path_on_the_same_host():
    """The exact URL of another ring says more than the host of one that applies."""
    ledger = url_entry(WIKI_URL + "/ledger", id="ledger", rings=("ring0",))
    verdict = judge(http(WIKI_URL + "/ledger"), registry(url_entry(), elsewhere=(ledger,)))
    assert (verdict.entry, verdict.note) == ("ledger", "other-ring")
    unrelated = judge(http(WIKI_URL + "/other"), registry(url_entry(), elsewhere=(npm_entry(),)))
    assert (unrelated.entry, unrelated.note) == ("wiki", "other-path")


@pytest.mark.parametrize("name", ["tools", "Tools"])
def test_a_borrowed_id_is_named(name):
    """The name of an approved entry with something else behind it."""
    verdict = judged(launch(identifier="other"), npm_entry(), definition=stdio(name=name))
    assert (verdict.kind, verdict.entry, verdict.note) == ("unapproved", "tools", "borrowed-id")


def test_a_name_never_approves_nor_disapproves():
    """Matching is by what runs (case 59)."""
    assert judged(launch(), npm_entry(), definition=stdio(name="wiki")).entry == "tools"
    assert judge(http("https://x.example/", name="wiki"), registry(url_entry())).kind == "unapproved"


def test_a_desktop_extension_is_never_approved():
    """Its files lie beside the manifest: even a hash of its command line vouches for nothing."""
    line = stdio("node", "${__dirname}/server.js", harness="claude-desktop", scope="plugin")
    verdict = judged(launch(), npm_entry(), _hash(line), definition=line)
    assert (verdict.kind, verdict.note) == ("unapproved", "desktop-extension")
    user = stdio("node", harness="claude-desktop", scope="user")
    assert judged(launch(), npm_entry(), definition=user).kind == "approved"


# --- two halves ------------------------------------------------------------------------------------------------


def test_the_worse_half_is_the_definition():
    """An approved half must not hide the other."""
    judge_one = Judge(registry(npm_entry(), url_entry()), fake(launch(version="2.0.0")))
    drifting = Found(http(), stdio())
    definition, verdict = judge_worse(drifting, judge_one)
    assert (definition.transport, verdict.kind) == ("stdio", "version-drift")
    unknown = Found(stdio(), http("https://x.example/"))
    assert judge_worse(unknown, judge_one)[0].transport == "http"


@pytest.mark.parametrize("order", [0, 1])
def test_equally_bad_halves_are_the_command(order):
    """Design 4, in whichever order they were read."""
    halves = [http(), stdio("/opt/acme/house")]
    found = Found(halves[order], halves[1 - order])
    definition, verdict = judge_worse(found, registry(url_entry(), command_entry("/opt/acme/house")))
    assert (definition.transport, verdict.kind) == ("stdio", "approved")


def test_one_half_is_simply_judged():
    """Most entries have one."""
    definition, verdict = judge_worse(Found(http()), registry(url_entry()))
    assert (definition.transport, verdict.entry) == ("http", "wiki")


def test_an_empty_registry_approves_nothing():
    """No entries, no approval, and no error."""
    assert judge(http(), registry()).kind == "unapproved"
    assert judged(launch()).note == "not-listed"
    assert judge(stdio("x", file=FileRef(3, ("a",))), registry()).kind == "unapproved"
