# SPDX-License-Identifier: Apache-2.0
"""Names and exact versions of the four ecosystems."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.launch.versions import canonical_identifier, exact_version, reference, same_version

try:
    from packaging.version import InvalidVersion, Version
except ImportError:  # not a dependency: only a second opinion for this test
    Version = None


@pytest.mark.parametrize(
    ("ecosystem", "text", "version"),
    [
        ("npm", "1.2.3", "1.2.3"),
        ("npm", "=v1.2.3-rc.1+b", "1.2.3-rc.1"),
        ("npm", "1.2.3-0.a-b.9", "1.2.3-0.a-b.9"),
        ("npm", "1.2", None),
        ("npm", "1.2.3-01", None),
        ("npm", "1.2.3-", None),
        ("npm", "1.2.3+", None),
        ("npm", "v=1.2.3", None),
        ("npm", "9007199254740992.0.0", None),
        ("npm", "9007199254740991.0.0", "9007199254740991.0.0"),
        ("npm", "1.2.3-" + "a" * 300, None),
        ("npm", "1" * 600, None),
        ("npm", "latest", None),
        ("npm", "", None),
        ("pypi", "1.0-ALPHA.1", "1.0a1"),
        ("pypi", "v2.0.0", "2.0.0"),
        ("pypi", "1.0-1", "1.0.post1"),
        ("pypi", "1.0.dev", "1.0.dev0"),
        ("pypi", "1.0+Ubuntu_1-02", "1.0+ubuntu.1.2"),
        ("pypi", "1!1.0c1.post2.dev3", "1!1.0rc1.post2.dev3"),
        ("pypi", "0!1.0", "1.0"),
        ("pypi", "1.*", None),
        ("pypi", "1.0 ", None),
        ("pypi", "\u0661.0", None),
        ("pypi", "1" * 600, None),
        ("nuget", "1.0", "1.0.0"),
        ("nuget", "1.0.0.4-RC+x", "1.0.0.4-rc"),
        ("nuget", "1.*", None),
        ("nuget", "v1.0", None),
        ("nuget", "1" * 600, None),
        ("oci", "0.8.0", "0.8.0"),
        ("oci", "a b", None),
        ("cargo", "1.0.0", None),
    ],
)
def test_exact_version(ecosystem, text, version):
    """Exact versions have one form; everything else is None."""
    assert exact_version(ecosystem, text) == version


@pytest.mark.parametrize(
    ("ecosystem", "text", "identifier"),
    [
        ("npm", "@Scope/Name", "@Scope/Name"),
        ("npm", "foo@1.0.0", None),
        ("npm", "@s/n/x", None),
        ("npm", "-foo", None),
        ("pypi", "Foo_.-Bar", "foo-bar"),
        ("pypi", "foo-", None),
        ("pypi", "f" * 600, None),
        ("nuget", "Azure.Mcp", "azure.mcp"),
        ("nuget", "a..b", None),
        ("nuget", "a" * 101, None),
        ("oci", "redis", "docker.io/library/redis"),
        ("oci", "ghcr.io/a/b", "ghcr.io/a/b"),
        ("oci", "ghcr.io/a/b:1", None),
        ("oci", "ghcr.io/a/b@sha256:" + "a" * 64, None),
        ("oci", "A B", None),
        ("cargo", "x", None),
    ],
)
def test_canonical_identifier(ecosystem, text, identifier):
    """Identifiers have the form that a Launch has, or none."""
    assert canonical_identifier(ecosystem, text) == identifier


@pytest.mark.parametrize(
    ("ecosystem", "left", "right", "same"),
    [
        ("pypi", "1.2", "1.2.0", True),
        ("pypi", "1.2.0.0", "1.2", True),
        ("pypi", "1.2rc1", "1.2.0rc1", True),
        ("pypi", "1.20", "1.2", False),
        ("pypi", "1.2.0+x", "1.2.0", False),
        ("pypi", "1!1", "1", False),
        ("pypi", "0", "0.0", True),
        ("pypi", "x", "y", False),
        ("npm", "1.2.0", "1.2.0", True),
        ("npm", "1.2", "1.2.0", False),
        ("nuget", "1.0.0", "1.0.0", True),
    ],
)
def test_same_version(ecosystem, left, right, same):
    """Trailing zeros say nothing on PyPI, and everything elsewhere."""
    assert same_version(ecosystem, left, right) is same


PEP440_PIECES = st.lists(
    st.sampled_from(
        [
            "1",
            "0",
            "02",
            "10",
            ".",
            "-",
            "_",
            "a",
            "alpha",
            "b",
            "rc",
            "c",
            "pre",
            "preview",
            "post",
            "rev",
            "r",
            "dev",
            "+",
            "!",
            "v",
            "V",
            "x",
            "*",
            "RC",
            " ",
        ]
    ),
    max_size=9,
).map("".join)


@given(PEP440_PIECES)
@settings(max_examples=400)
def test_pep_440_agrees_with_packaging(text):
    """Where `packaging` is at hand it reads the same versions, and equal ones are the same."""
    if Version is None:
        pytest.skip("packaging is not installed: nothing to compare with")
    own = exact_version("pypi", text)
    try:
        theirs = Version(text) if text == text.strip() else None
    except InvalidVersion:
        theirs = None

    assert (own is None) == (theirs is None)
    if own is not None and theirs is not None:
        assert own == str(theirs)
        assert Version(own) == theirs


@given(PEP440_PIECES, PEP440_PIECES)
@settings(max_examples=300)
def test_pep_440_equality_agrees_with_packaging(left, right):
    """Two versions are one exactly when `packaging` says so."""
    if Version is None:
        pytest.skip("packaging is not installed: nothing to compare with")
    one, two = exact_version("pypi", "1." + left), exact_version("pypi", "1." + right)
    if one is not None and two is not None:
        assert same_version("pypi", one, two) == (Version(one) == Version(two))


@given(st.text(max_size=60))
def test_no_text_raises(text):
    """Any text is a version, a name, a reference, or None; canonical forms are their own canonical form."""
    for ecosystem in ("npm", "pypi", "nuget", "oci"):
        version, name = exact_version(ecosystem, text), canonical_identifier(ecosystem, text)
        assert version is None or exact_version(ecosystem, version) == version
        assert name is None or canonical_identifier(ecosystem, name) == name
    reference(text)
