# SPDX-License-Identifier: Apache-2.0
"""Which package or endpoint of a server becomes the pin, and which never does."""

import hashlib

import pytest

from halod.policy.importing import choose
from tests.support.registry import DIGEST, HTTP, MCPB, NUGET, OTHER, PYPI, loaded, npm, oci, server, why_not


def package(document, *words, **named):
    """The package that is pinned, as the fields of an entry."""
    return choose.choose_package(loaded(document), *words, **named).fields["package"]


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (npm(), {"type": "npm", "identifier": "@acme/notes-mcp", "version": "1.0.26"}),
        (PYPI, {"type": "pypi", "identifier": "time-mcp-pypi", "version": "1.0"}),
        (NUGET, {"type": "nuget", "identifier": "timemcpserver", "version": "1.0.8"}),
        (
            oci(),
            {"type": "oci", "identifier": "ghcr.io/acme/notes-mcp", "version": "1.7.2", "sha256": DIGEST},
        ),
    ],
)
def test_each_type_is_pinned_in_canonical_form(given, fields):
    """Names as the ecosystem compares them, versions as they are written."""
    assert package(server(given)) == fields


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (npm(version="1.0"), 'for npm "1.0" is a range'),
        (npm(version="v1.0.0"), 'write "v1.0.0" without the "v"'),
        (npm(version="latest"), "moves"),
        (npm(version="^1.0.0"), "not an exact npm version"),
        (npm(version=None), "it has no version"),
        (npm(version="${VERSION}"), "a template that is not filled in"),
        (npm(version="<<Version>>"), "a template that is not filled in"),
        (npm(identifier="{name}"), "a template that is not filled in"),
        (npm(identifier="https://x.example/y.tgz"), "not the name of an npm package"),
        (npm(identifier="@acme/notes-mcp@1.0.0"), "a version; it belongs in version"),
        (npm(identifier=5), "its identifier is no text"),
        (npm(identifier=None), "no registryType and identifier"),
        (npm(environmentVariables="CANARY"), "its environmentVariables are no list"),
        (npm(runtimeArguments=["CANARY"]), "it is not an object"),
        (
            npm(registryBaseUrl="https://packages.acme.example/npm/"),
            "its registryBaseUrl is not the public one of npm",
        ),
        ({**PYPI, "version": "2025-01-x"}, "not an exact pypi version"),
        ({**PYPI, "identifier": "a[b]"}, "an extra"),
        ({**NUGET, "version": "1.*"}, "not an exact nuget version"),
        (oci(identifier="ghcr.io/Acme/x@sha256:12"), "is not an image"),
        (
            oci(identifier="ghcr.io/acme/x:1.0", version="1.0"),
            "a version or registryBaseUrl beside its identifier",
        ),
    ],
)
def test_packages_that_cannot_be_pinned(given, said):
    """Each with what is wrong; its faults do not keep others from being chosen."""
    assert said in why_not(package, server(given)).message
    assert package(
        server(given, NUGET if given["registryType"] != "nuget" else PYPI),
        NUGET["registryType"] if given["registryType"] != "nuget" else "pypi",
    )
    assert "CANARY" not in why_not(package, server(given, given)).message


def test_the_public_base_is_the_one_whose_hash_is_kept(monkeypatch):
    """A slash at the end is none of its name."""
    base = "https://packages.acme.example/npm"
    monkeypatch.setitem(choose.PUBLIC_BASES, "npm", {hashlib.sha256(base.encode()).hexdigest()})
    assert package(server(npm(registryBaseUrl=base + "/")))["version"] == "1.0.26"


def test_several_packages_are_listed_and_none_is_taken():
    """Not even when one of them is the usual choice."""
    error = why_not(package, server(npm(), oci(), MCPB, "nonsense"))
    assert error.message == "there are 2 packages to choose from"
    assert error.rows == (
        '  package 1: "npm" "@acme/notes-mcp" "1.0.26"  --package npm',
        f'  package 2: "oci" "ghcr.io/acme/notes-mcp:1.7.2@sha256:{DIGEST}"  --package oci',
        '  package 3: "mcpb" "https://x.example/mcp.mcpb" (cannot be pinned yet)',
        '  package 4: "" "" (cannot be pinned yet) (refused: it is not an object)',
    )
    two = server(npm(), npm(identifier="other"))
    assert "2 packages" in why_not(package, two, "npm").message
    assert package(two, "npm=other")["identifier"] == "other"
    assert package(server(npm(), oci()), "oci=ghcr.io/acme/notes-mcp")["type"] == "oci"
    assert package(server(PYPI, npm()), "pypi=time-mcp-pypi")["type"] == "pypi"
    assert "no such package" in why_not(package, two, "npm=third").message
    assert "no such package" in why_not(package, two, "oci").message
    assert "no package type" in why_not(package, two, "deb").message


@pytest.mark.parametrize("kind", ["mcpb", "cargo", "go"])
def test_types_that_cannot_be_pinned_yet(kind):
    """They are said to be that, whether asked for or the only ones."""
    document = server({**MCPB, "registryType": kind})
    assert "cannot be pinned yet" in why_not(package, document).message
    assert "cannot be pinned yet" in why_not(package, document, kind).message
    assert package(server({**MCPB, "registryType": kind}, npm()))["type"] == "npm"


def test_a_server_without_packages():
    """Its endpoints are listed, and the option that pins one is named."""
    error = why_not(package, server(remotes=[HTTP], packages=None))
    assert error.advice == "--remote pins an endpoint"
    assert error.rows == ('  endpoint 1: "streamable-http" "https://MCP.acme.example:443/mcp"  --remote 1',)
    assert why_not(package, server()).rows == ()


# --- images --------------------------------------------------------------------------------------------------


def test_a_tag_alone_is_no_pin():
    """The refusal says how to get the digest."""
    document = server(oci(identifier="docker.io/acme/notes:1.7.2"))
    error = why_not(package, document)
    assert "docker buildx imagetools inspect docker.io/acme/notes:1.7.2" in error.advice
    assert package(document, sha256=f"sha256:{DIGEST.upper()}") == {
        "type": "oci",
        "identifier": "docker.io/acme/notes",
        "version": "1.7.2",
        "sha256": DIGEST,
    }


def test_two_digests_must_be_one():
    """A digest that was looked up elsewhere is a check, not a replacement."""
    assert package(server(oci()), sha256=DIGEST)["sha256"] == DIGEST
    assert "not the digest that the document names" in why_not(package, server(oci()), sha256=OTHER).message
    assert "64 hex digits" in why_not(package, server(oci()), sha256="12").message
    assert "--sha256 is for images" in why_not(package, server(npm()), sha256=DIGEST).message


def test_a_tag_that_moves_is_no_label():
    """It is left out, and said."""
    pin = choose.choose_package(
        loaded(server(oci(identifier=f"acme/notes:latest@sha256:{DIGEST}", fileSha256=OTHER)))
    )
    assert pin.fields["package"] == {"type": "oci", "identifier": "docker.io/acme/notes", "sha256": DIGEST}
    assert any('the tag "latest"' in note for note in pin.notes)
    assert any("not the digest of an image" in note for note in pin.notes)


@pytest.mark.parametrize(
    ("fields", "identifier"),
    [
        (
            {"identifier": "mcp/notes", "registryBaseUrl": "https://docker.io", "version": "1.0.2"},
            "docker.io/mcp/notes",
        ),
        (
            {"identifier": "acme/notes", "registryBaseUrl": "https://ghcr.io/", "version": "1.0.2"},
            "ghcr.io/acme/notes",
        ),
        ({"identifier": "ghcr.io/acme/notes", "registryBaseUrl": "https://ghcr.io"}, "ghcr.io/acme/notes"),
        ({"identifier": "mcp/notes:1.0.2", "version": "1.0.2"}, "docker.io/mcp/notes"),
    ],
)
@pytest.mark.parametrize("schema", ["2025-09-16", "2025-09-29", None])
def test_images_of_before_october_2025(schema, fields, identifier):
    """Host, name and tag stood in three places."""
    document = server(
        {"registryType": "oci", **fields}, **({"schema": schema} if schema else {"$schema": None})
    )
    assert package(document, sha256=DIGEST)["identifier"] == identifier


@pytest.mark.parametrize(
    "fields",
    [
        {"identifier": "mcp/notes:1.0.3", "version": "1.0.2"},
        {"identifier": "mcp/notes", "registryBaseUrl": "https://ghcr.io/v2/", "version": "1.0.2"},
        {"identifier": "mcp/notes", "registryBaseUrl": "http://ghcr.io", "version": "1.0.2"},
    ],
)
def test_old_images_that_contradict_themselves(fields):
    """None of two readings is taken."""
    assert (
        "cannot be pinned"
        in why_not(
            package, server({"registryType": "oci", **fields}, schema="2025-09-29"), sha256=DIGEST
        ).message
    )


# --- endpoints -----------------------------------------------------------------------------------------------


def remote(which="", *remotes):
    return choose.choose_remote(loaded(server(remotes=list(remotes))), which).fields["url"]


def test_an_endpoint_is_pinned_by_its_canonical_url():
    """The one there is, or by number, or by URL."""
    other = {"type": "streamable-http", "url": "https://eu.acme.example/mcp"}
    assert remote("", HTTP) == "https://mcp.acme.example/mcp"
    assert remote("2", HTTP, other) == "https://eu.acme.example/mcp"
    assert remote("https://EU.acme.example/mcp", HTTP, other) == "https://eu.acme.example/mcp"
    assert "2 endpoints" in why_not(remote, "", HTTP, other).message
    assert "no such endpoint" in why_not(remote, "3", HTTP, other).message
    assert "no such endpoint" in why_not(remote, "https://eu.acme.example/mcp/", HTTP, other).message


@pytest.mark.parametrize(
    ("template", "url"),
    [
        ("https://{tenant}.acme.example/mcp", "https://blue.acme.example/mcp"),
        ("{base}/mcp", "https://blue.acme.example/v1/mcp"),
        ("https://acme.example/{a}/{b}", "https://acme.example/x/y"),
    ],
)
def test_a_url_with_variables_needs_the_url_in_full(template, url):
    """And it must be one that the template can become."""
    given = {"type": "streamable-http", "url": template}
    assert "has variables" in why_not(remote, "", given).message
    assert remote(url, given) == url
    for wrong in (
        "https://evil.example/blue.acme.example/mcp",
        "https://acme.example/x/y/z",
        "http://a.example/mcp",
    ):
        assert why_not(remote, wrong.replace("/mcp", "/other"), given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "sse", "url": "https://acme.example/sse"}, "no streamable-http endpoint"),
        ({"type": "streamable-http", "url": "http://acme.example/mcp"}, "must be a plain https URL"),
        ({"type": "streamable-http", "url": "https://u@acme.example/mcp"}, "must be a plain https URL"),
        ({"type": "streamable-http", "url": "https://acme.example/mcp#x"}, "must be a plain https URL"),
        (
            {"type": "streamable-http", "url": "https://acme.example\\@evil.example/"},
            "must be a plain https URL",
        ),
        (
            {"type": "streamable-http", "url": "https://acme.example/mcp", "headers": 5},
            "its headers are no list",
        ),
        ({"type": "streamable-http"}, "no type and url"),
    ],
)
def test_endpoints_that_cannot_be_pinned(given, said):
    """Each with what is wrong."""
    assert said in why_not(remote, "", given).message


def test_an_endpoint_of_another_kind_is_not_pinned_by_number():
    """Policies pin streamable-http; a query in the URL is pointed out."""
    sse = {"type": "sse", "url": "https://acme.example/sse"}
    assert 'it speaks "sse"' in why_not(remote, "2", HTTP, sse).message
    keyed = choose.choose_remote(loaded(server(remotes=[{**HTTP, "url": "https://acme.example/mcp?key=x"}])))
    assert any("has a query" in note for note in keyed.notes)


def test_a_host_in_letters_that_look_like_others_is_told_in_both_forms():
    """The first letter is Cyrillic: the entry has what a client asks for, the warning what a reader saw."""
    found = choose.choose_remote(loaded(server(remotes=[{**HTTP, "url": "https://\u0430cme.example/mcp"}])))
    assert found.fields == {"url": "https://xn--cme-5cd.example/mcp"}
    told = [note for note in found.notes if "other letters than ASCII" in note]
    assert len(told) == 1
    assert '"https://\u0430cme.example/mcp" is https://xn--cme-5cd.example/mcp' in told[0]
