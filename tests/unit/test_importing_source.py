# SPDX-License-Identifier: Apache-2.0
"""What the words of an import mean, and where a registry has a version."""

import pytest

from halod.policy.importing.model import Wanted
from halod.policy.importing.source import OFFICIAL, base_url, source, version_url, wanted
from tests.support.registry import why_not


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("io.github.acme/notes-mcp", "name"),
        ("io.github.acme/notes-mcp@1.0.0+x", "name"),
        ("io.github.acme/notes.json@1.0", "name"),
        ("https://mcp.acme.example/server.json", "url"),
        ("HTTPS://mcp.acme.example/", "url"),
        ("http://127.0.0.1:8080/x", "url"),
        ("server.json", "file"),
        ("./io.github.acme/notes-mcp", "file"),
        ("/srv/notes", "file"),
        ("../a/b", "file"),
        ("~/server.json", "file"),
        ("packages/server.json", "file"),
        ("a/b/c", "file"),
        ("notes", "file"),
        ("-", "file"),
        ("", "file"),
    ],
)
def test_what_a_word_means(text, kind):
    """By the word alone: no file that happens to be here changes it."""
    assert source(text).kind == kind


def test_latest_is_no_version_and_a_blank_is_none_either():
    """A version is one word."""
    assert wanted("a.b/c@latest") == Wanted("a.b/c")
    assert "is not a version" in why_not(wanted, "a.b/c@1 2").message
    assert "is not a version" in why_not(wanted, "a.b/c@").message


def test_the_address_of_a_version():
    """The official registry's stable prefix, every part encoded."""
    url = version_url(OFFICIAL, Wanted("io.github.a/b", "1.0+x"))
    assert url == f"{OFFICIAL}/v0.1/servers/io.github.a%2Fb/versions/1.0%2Bx"
    assert version_url("https://m.example/x/", Wanted("a.b/c")).startswith(
        "https://m.example/x/v0.1/servers/a.b%2Fc/"
    )


def test_the_base_of_a_registry():
    """With or without the prefix of its interface; a query is no part of an address that goes on."""
    for text in (
        "https://m.example/x",
        "https://m.example/x/",
        "https://M.example/x/v0.1",
        "https://m.example/x/v0.1/",
    ):
        assert base_url(text) == "https://m.example/x"
    assert "must not have a query" in why_not(base_url, "https://m.example/?key=CANARY").message
