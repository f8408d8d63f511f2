# SPDX-License-Identifier: Apache-2.0
"""Properties of drift that hold for any launch, registry and definition (design 5: the one property)."""

from typing import get_args

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from halod.definition import Definition, Feature, FileRef
from halod.drift import FLAGS, NOTES, SEVERITY, Judge
from halod.launch.model import INFORMATIONAL, Launch, Nested, Outcome
from halod.policy.model import Deny, Entry, Package
from tests.support.drift import BRIDGE, NPM, OCI, WIKI_URL, fake, http, npm_entry, registry, stdio, url_entry

FEW = settings(max_examples=150, deadline=None)

UNSAFE = sorted(FLAGS - INFORMATIONAL)
TOLERABLE = ["host-mount", "privileged", "host-network", "env-injection", "path-override", "cwd-override",
             "from-flag", "package-flag"]  # fmt: skip
URLS = [
    WIKI_URL,
    WIKI_URL + "/",
    WIKI_URL + "?q",
    "http://mcp-wiki.internal.acme.example/mcp",
    "nonsense",
    "",
]
KEYS = ["TOKEN", "PATH", "NODE_OPTIONS", "SSE_URL"]

nesteds = st.one_of(
    st.none(),
    st.builds(Nested, url=st.sampled_from(URLS)),
    st.builds(Nested, argv=st.lists(st.sampled_from(["npx", "sh", "-c"]), max_size=3).map(tuple)),
    st.builds(Nested, shell=st.just("npx x")),
)
launches = st.builds(
    Launch,
    outcome=st.sampled_from(get_args(Outcome)),
    ecosystem=st.sampled_from(["npm", "pypi", "oci", "git", None]),
    identifier=st.sampled_from([NPM.identifier, OCI.identifier, BRIDGE.identifier, "other", None]),
    version=st.sampled_from(["1.2.0", "1.2.1", "0.1.29", None]),
    requested=st.sampled_from(["1.2.0", "latest", None]),
    digest=st.sampled_from([f"sha256:{OCI.sha256}", None]),
    flags=st.lists(st.sampled_from([*UNSAFE, *INFORMATIONAL]), max_size=4, unique=True).map(
        lambda f: tuple(sorted(f))
    ),
    nested=nesteds,
    bin=st.sampled_from(["tool", "sh", None]),
    args=st.lists(st.sampled_from(["--x", "y"]), max_size=2).map(tuple),
    env_keys=st.lists(st.sampled_from(KEYS), max_size=2, unique=True).map(tuple),
    unsafe_env=st.lists(
        st.tuples(
            st.sampled_from(["code-injection", "path-override", "carrier-option"]), st.sampled_from(KEYS)
        ),
        max_size=2,
    ).map(tuple),
    registries=st.lists(
        st.sampled_from(["https://packages.acme.example/npm/", "https://evil.example/", ""]), max_size=2
    ).map(tuple),
    mounts=st.lists(
        st.tuples(st.sampled_from(["/srv", "/var/run/docker.sock"]), st.sampled_from(["/data", "/app"])),
        max_size=2,
    ).map(tuple),
    line_flags=st.lists(st.sampled_from(UNSAFE), max_size=2, unique=True).map(tuple),
)
definitions = st.builds(
    Definition,
    harness=st.sampled_from(["cursor", "claude-desktop"]),
    file=st.just(FileRef(0)),
    name=st.sampled_from(["tools", "wiki", "mine", ""]),
    scope=st.sampled_from(["user", "project", "plugin", "agent"]),
    transport=st.sampled_from(["stdio", "http"]),
    command=st.sampled_from(["npx", "/opt/acme/x"]),
    args=st.lists(st.sampled_from(["-y", "CANARY"]), max_size=2),
    url=st.sampled_from(URLS),
    env=st.lists(st.tuples(st.sampled_from(KEYS), st.just("CANARY")), max_size=2),
    cwd=st.sampled_from(["", "/tmp/CANARY"]),
    features=st.frozensets(st.sampled_from(get_args(Feature)), max_size=1),
)
entries = st.one_of(
    st.builds(
        npm_entry,
        bin=st.sampled_from(["", "tool"]),
        args=st.sampled_from([None, "any", ("--x",)]),
        env=st.sampled_from([None, frozenset({"TOKEN"}), frozenset(KEYS)]),
        tolerate=st.frozensets(st.sampled_from(TOLERABLE), max_size=4),
    ),
    st.just(url_entry()),
    st.just(Entry(id="bridge", package=BRIDGE)),
    st.just(Entry(id="image", package=OCI, args="any", tolerate=frozenset(TOLERABLE))),
    st.builds(lambda d: Entry(id="hash", definition_sha256=d.sha256), definitions),
)
registries = st.builds(
    lambda here, elsewhere, expired, denied: registry(
        *here,
        elsewhere=tuple(elsewhere),
        expired=tuple(expired),
        deny=tuple(denied),
        mirrors=(("npm", ("https://packages.acme.example/npm/",)),),
    ),
    st.lists(entries, max_size=4),
    st.lists(entries, max_size=1),
    st.lists(entries, max_size=1),
    st.lists(
        st.sampled_from(
            [
                Deny(host="mcp-wiki.internal.acme.example"),
                Deny(package=Package(type="npm", identifier="other")),
            ]
        ),
        max_size=1,
    ),
)


@FEW
@given(definitions, launches, registries)
def test_every_definition_gets_a_verdict_in_closed_words(definition, found, policy):
    """Total, pure, and nothing of the user's text in it."""
    verdict = Judge(policy, fake(found)).judge(definition)
    assert verdict == Judge(policy, fake(found)).judge(definition)
    assert verdict.note in NOTES
    assert set(verdict.flags) <= FLAGS
    every = policy.entries + policy.elsewhere + policy.expired
    if verdict.kind == "denied":
        assert int(verdict.entry) < len(policy.deny)
    else:
        assert verdict.entry in {"", *(entry.id for entry in every)}
    if verdict.kind in {"approved", "version-drift"}:
        assert verdict.entry in {entry.id for entry in policy.entries}
    assert "CANARY" not in repr(verdict)


@FEW
@given(definitions, launches, registries, entries)
def test_an_entry_never_makes_another_pin_approve(definition, found, policy, added):
    """More entries never worsen, and an approval that is new is under the new entry or its bridge."""
    before = Judge(policy, fake(found)).judge(definition)
    wider = msgspec.structs.replace(policy, entries=(*policy.entries, added))
    after = Judge(wider, fake(found)).judge(definition)
    assert SEVERITY[after.kind] <= SEVERITY[before.kind]
    if after.kind == "approved" and before.kind != "approved":
        carried = found.outcome == "delegate" and added.package is not None
        assert after.entry == added.id or carried


@FEW
@given(definitions, launches, registries)
def test_an_unrelated_entry_changes_nothing(definition, found, policy):
    """A pin of something else is no reason for anything."""
    unrelated = Entry(id="unrelated", package=Package(type="npm", identifier="unrelated", version="1.0.0"))
    wider = msgspec.structs.replace(policy, entries=(*policy.entries, unrelated))
    assert Judge(policy, fake(found)).judge(definition) == Judge(wider, fake(found)).judge(definition)


@FEW
@given(definitions, launches, registries, st.sampled_from(UNSAFE))
def test_an_unsafe_flag_never_improves_a_kind(definition, found, policy, flag):
    """Whatever else is there."""
    assume(flag not in found.flags)
    worse = msgspec.structs.replace(
        found, flags=tuple(sorted((*found.flags, flag))), line_flags=(*found.line_flags, flag)
    )
    plain, flagged = (Judge(policy, fake(launch)).judge(definition) for launch in (found, worse))
    assert SEVERITY[flagged.kind] >= SEVERITY[plain.kind]


@FEW
@given(definitions, launches, registries, st.sampled_from(get_args(Feature)))
def test_a_feature_never_improves_a_kind(definition, found, policy, feature):
    """Features only disqualify."""
    plain = Judge(policy, fake(found)).judge(definition)
    definition.features |= {feature}
    assert SEVERITY[Judge(policy, fake(found)).judge(definition).kind] >= SEVERITY[plain.kind]


@FEW
@given(launches)
def test_only_the_exact_pin_with_everything_answered_is_approved_by_a_package(found):
    """A plain entry approves nothing unsafe, no other version, and no other package."""
    verdict = Judge(registry(npm_entry()), fake(found)).judge(stdio())
    if verdict.kind == "approved":
        assert found.outcome in {"identified", "identified-unsafe", "identified-unpinned"}
        assert (found.ecosystem, found.identifier, found.version) == ("npm", NPM.identifier, NPM.version)
        assert not found.unsafe_flags
        assert not found.unsafe_env


@FEW
@given(launches)
def test_a_launch_of_the_pin_is_approved_when_nothing_is_wrong_with_it(found):
    """The other direction: the rules are not merely strict."""
    pinned = msgspec.structs.replace(
        found,
        outcome="identified",
        ecosystem="npm",
        identifier=NPM.identifier,
        version=NPM.version,
        flags=tuple(flag for flag in found.flags if flag in INFORMATIONAL),
        unsafe_env=(),
    )
    assert Judge(registry(npm_entry()), fake(pinned)).judge(stdio()).kind == "approved"


@FEW
@given(st.integers(0, len(WIKI_URL)), st.sampled_from("xX/?#@:.%20 \\é\t"))
def test_a_mutated_url_is_never_approved(place, char):
    """One character put in anywhere makes it another URL (an empty port is none, so it stays the same)."""
    mutated = WIKI_URL[:place] + char + WIKI_URL[place:]
    assume(":/mcp" not in mutated)
    assert Judge(registry(url_entry())).judge(http(mutated)).kind != "approved"


@FEW
@given(st.from_type(Launch))
def test_any_launch_at_all_is_judged(found):
    """Types, not sense."""
    assert (
        Judge(registry(npm_entry(), Entry(id="i", package=OCI, args="any")), fake(found)).judge(stdio()).kind
    )
