# SPDX-License-Identifier: Apache-2.0
"""Which strings may leave, and in what form."""

import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod import status
from halod.status import clean, server_name

HASHED = re.compile(r"sha256:[0-9a-f]{12}")
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


def hashed(name):
    return "sha256:" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("playwright", "playwright"),
        ("资料库", "资料库"),
        ("\U0001f469\u200d\U0001f4bb helper", "\U0001f469\U0001f4bb helper"),
        ("wiki\u202egnp.exe", "wikignp.exe"),
        ("team   notes\t(prod)\n", "team notes (prod)"),
        ("a\u2028b", "a b"),
        ("n" * 200, "n" * 128),
        ("n" * 127 + " m", "n" * 127),
        ("half \ud83d name", "half name"),
        ("\x1b[31mred", "[31mred"),
        ("", ""),
    ],
)
def test_a_name_is_folded_and_cut(name, shown):
    """Control, format, bidi and surrogate characters go, blanks fold, 128 characters stay."""
    assert server_name(name) == shown


@pytest.mark.parametrize(
    "name",
    [
        "https://mcp.example.net/CANARY",
        "x stdio://y",
        "/home/dev/CANARY",
        "see /Users/dev/notes",
        "~/notes",
        "~dev/notes",
        "$HOME/notes",
        "${HOME}",
        "%USERPROFILE%\\notes",
        "C:\\Users\\dev",
        "%HOMEPATH%\\notes",
        "$env:USERPROFILE\\notes",
        "\uff0fhome\uff0fdev",
        "dev\uff20mail.example",
        "https\uff1a\uff0f\uff0fmcp.example.net",
        "gh\u034fp_x",
        "ghp\ufe0f_x",
        "\U0001d5c0\U0001d5c1\U0001d5c9_x",
        "/root/x",
        "/var/home/dev/x",
        "/System/Volumes/Data/Users/dev",
        "in /export/home/dev",
        "/root",
        "dev@mail.example",
        "mail to dev.name+x@mail.acme.example please",
        "dév@bücher.example",
        "ghp_x",
        "my github_pat_x",
        "glpat-x",
        "xoxb-1",
        "sk-ant-x",
        "sk-CANARYabcdefgh",
        "npm_A1b2C3d4E5",
        "npm_abcdefghijklmnopqrst",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.e30",
        "0123456789abcdef0123456789abcdef",
        "550e8400-e29b-41d4-a716-446655440000",
        "key=0123456789ABCDEF0123456789ABCDEF",
        "aB3dE5gH7jK9mN1pQ2rT",
        "x aB3dE5gH7jK9mN1pQ2rT y",
        "aB3dE5gH7jK9mN1pQ2rT" + "\u200b" + " tail",
        "gh\u200bp_abc",
        "n" * 130 + " https://x.example",
        "\u202e",
        " \t ",
    ],
)
def test_a_name_that_may_hold_a_secret_leaves_as_a_hash(name):
    """The hash is that of the name as written, before anything is dropped."""
    assert server_name(name) == hashed(name)


@pytest.mark.parametrize(
    "name",
    [
        "task-manager",
        "disk-risk-desk-tool",
        "npm_search",
        "sk-learn-helper",
        "eyJ",
        "@playwright/mcp@0.0.82",
        "@acme/home/tools",
        "io.github.upstash/context7",
        "context7@latest",
        "chrome-devtools-mcp-server-for-the-team",
        "0123456789abcdef0123456789abcde",
        "aaaaaaaaaaaaaaaaaaA1",
        "AB3DE5GH7JK9MN1PQ2RT",
        "aB3dE5gH7jK9mN1pQ2r",
        "home",
        "sha256:0123456789ab",
        "a:b//c",
    ],
)
def test_an_ordinary_name_is_shown(name):
    """What no rule of design 8 names is reported as it is."""
    assert server_name(name) == name


def test_the_test_comes_before_the_cut():
    """A token that straddles the 128th character is seen whole."""
    name = "n " * 60 + "ghp_CANARY0000"
    assert server_name(name) == hashed(name)


def test_what_a_cut_leaves_is_tested_again():
    """A run that looks drawn only once it is cut is hashed: a reader of the answer would refuse it."""
    drawn = "aB3dE5gH7jK9mN1pQ2rT" * 6 + "aB3dE5gH"
    name = drawn + "z" * 500
    assert not status.has_secret_run(name)
    assert server_name(name) == hashed(name)


@given(ANY_TEXT)
@settings(max_examples=300, deadline=None)
def test_a_reported_name_passes_unchanged_and_carries_nothing_odd(name):
    """`server_name` is idempotent, bounded, encodable and free of control, format and bidi characters."""
    shown = server_name(name)
    assert server_name(shown) == shown
    assert status.is_name(shown)
    assert len(shown) <= 128
    assert clean(shown) == shown
    shown.encode()


@given(
    st.lists(
        st.sampled_from(
            ["ghp_", "a@b.example", "://", "~/", "aB3dE5gH7jK9mN1pQ2rT", "x", " ", "\u200b", "n" * 60]
        )
    )
)
@settings(max_examples=200, deadline=None)
def test_pieces_of_secrets_in_any_place_are_hashed(pieces):
    """Whatever surrounds it: a name with `://` never leaves, and every name passes a second time unchanged."""
    name = "".join(pieces)
    shown = server_name(name)
    assert server_name(shown) == shown
    if "://" in name:
        assert HASHED.fullmatch(shown)


@given(ANY_TEXT, st.integers(min_value=0, max_value=50))
@settings(max_examples=200, deadline=None)
def test_clean_is_bounded_and_idempotent(text, limit):
    """`clean` keeps at most `limit` characters and changes its own result no more."""
    once = clean(text, limit)
    assert len(once) <= limit
    assert clean(once, limit) == once


@pytest.mark.parametrize(
    "host",
    [
        "",
        "mcp.example.com",
        "localhost:8080",
        "xn--bcher-kva.example",
        "127.0.0.1:80",
        "[::1]",
        "[::1]:8443",
        "a_b.example",
        "example.com.",
    ],
)
def test_hosts_that_may_leave(host):
    """A-labels and addresses, lower case, with a port."""
    assert status.is_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "MCP.example.com",
        "user@host",
        "host/path",
        "host?x",
        "host#x",
        "host:0",
        "host:65536",
        "host:080",
        "a b",
        "bücher.example",
        "${HOST}",
        "a..b",
        "[::1",
        "a" * 64,
        ".".join(["a" * 50] * 6),
        "host\n",
    ],
)
def test_hosts_that_may_not_leave(host):
    """Anything with userinfo, path, query, upper case or odd characters is no host."""
    assert not status.is_host(host)


def test_hash_form():
    """64 lower-case hex digits, nothing else."""
    assert status.is_sha256("0" * 64)
    assert not any(status.is_sha256(text) for text in ("", "0" * 63, "A" * 64, "0" * 64 + "\n"))


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("work", "work"),
        ("", "sha256:e3b0c44298fc"),
        ("a/b", "a/b"),
        ("a/dev@mail.example/b", f"a/{hashed('dev@mail.example')}/b"),
        (".\u200b", hashed(".\u200b")),
        ("..\u200b", hashed("..\u200b")),
    ],
)
def test_file_parts_are_redacted_component_by_component(part, shown):
    """Each folder that a user named passes the rule for names and cannot read as `.` or `..`."""
    if part:
        assert status.file_part(part) == shown
        assert status.check_file_parts((shown,))


def test_parts_that_may_not_leave():
    """Steps up, empty components and unredacted names are refused; an empty part is a `**` without a match."""
    assert status.check_file_parts(("", "a", "b/c"))
    assert status.check_file_parts(())
    for part in ("..", ".", "a/../b", "a//b", "/a", "dev@mail.example", "a\u202eb", "n" * 129):
        assert not status.check_file_parts((part,))


@given(ANY_TEXT.filter(lambda text: text.strip("/") == text and "//" not in text and text))
@settings(max_examples=200, deadline=None)
def test_redacted_parts_always_pass_the_check(part):
    """No folder name makes the worker's answer invalid."""
    if not {".", ".."} & set(part.split("/")):
        assert status.check_file_parts((status.file_part(part),))
