# SPDX-License-Identifier: Apache-2.0
"""Patterns: what they match, what they tell of places that cannot be listed, and their limits."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halod.home import Home, Match
from halod.home import match as match_module
from halod.home.match import MAX_DEPTH, MAX_REFUSED, compiled, fits
from halod.home.walk import MAX_ENTRIES

ME = os.geteuid()
STRANGER = 54321
needs_root = pytest.mark.skipif(ME != 0, reason="root alone can take another account's eyes")


@pytest.fixture
def root(tmp_path):
    """Give the path of an empty home."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def home(root):
    """Give the opened home; every descriptor is gone afterwards."""
    before = sorted(os.listdir("/dev/fd"))
    with Home.open(str(root), uid=ME) as opened:
        yield opened
    assert sorted(os.listdir("/dev/fd")) == before


def put(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


def rows(matches: list[Match]) -> list[tuple[str, tuple[str, ...]]]:
    assert [m.refused for m in matches] == [""] * len(matches)
    return [(m.path, m.parts) for m in matches]


def told(matches: list[Match]) -> list[tuple[str, tuple[str, ...], str]]:
    return [(m.path, m.parts, m.refused) for m in matches]


def test_a_literal_path_is_given_back_without_a_look(home):
    before = sorted(os.listdir("/dev/fd"))
    assert rows(home.match("Library/Application Support/Claude/x.json")) == [
        ("Library/Application Support/Claude/x.json", ())
    ]
    assert sorted(os.listdir("/dev/fd")) == before


def test_stars_match_whole_components_and_give_them(home, root):
    put(root, "c/acme/tools/1.2.0/.mcp.json", "c/acme/bare/2/.mcp.json", "c/acme/none/1/x", "c/file")
    (root / "c/empty").mkdir()
    assert rows(home.match("c/*/*/*/.mcp.json")) == [
        ("c/acme/bare/2/.mcp.json", ("acme", "bare", "2")),
        ("c/acme/tools/1.2.0/.mcp.json", ("acme", "tools", "1.2.0")),
    ]


def test_a_star_in_a_part_of_a_component_gives_the_component(home, root):
    put(root, "d/work.config.toml", "d/config.toml", "d/.config.toml", "d/work.config.toml.bak")
    assert rows(home.match("d/*.config.toml")) == [
        ("d/.config.toml", (".config.toml",)),
        ("d/work.config.toml", ("work.config.toml",)),
    ]


def test_names_that_begin_with_a_dot_match_but_dot_and_dotdot_never(home, root):
    put(root, "d/.hidden/f", "d/shown/f", "d/f")
    assert rows(home.match("d/*/f")) == [("d/.hidden/f", (".hidden",)), ("d/shown/f", ("shown",))]


def test_a_pattern_may_begin_with_a_wildcard(home, root):
    put(root, "a.json", "b/a.json")
    assert rows(home.match("*.json")) == [("a.json", ("a.json",))]
    assert rows(home.match("*/a.json")) == [("b/a.json", ("b",))]


def test_alternatives_are_written_out(home, root):
    put(root, "p/agents/a.yaml", "p/configs/b.yaml", "p/other/c.yaml")
    assert rows(home.match("p/{assistants,agents,configs}/*.yaml")) == [
        ("p/agents/a.yaml", ("a.yaml",)),
        ("p/configs/b.yaml", ("b.yaml",)),
    ]
    assert rows(home.match("{x,y}/{1,2}")) == [("x/1", ()), ("x/2", ()), ("y/1", ()), ("y/2", ())]


@pytest.mark.parametrize("odd", ["a{b", "a}b", "}a{", "a{b/c"])
def test_a_lone_brace_means_itself(odd):
    assert compiled(odd) == (tuple(odd.split("/")),)


def test_two_stars_match_any_number_of_real_directories(home, root):
    put(root, "c/m.json", "c/a/m.json", "c/a/b/m.json", "c/x/y.json", ".c/m.json")
    assert rows(home.match("c/**/m.json")) == [
        ("c/a/b/m.json", ("a/b",)),
        ("c/a/m.json", ("a",)),
        ("c/m.json", ("",)),
    ]
    assert rows(home.match("c/**/*.json")) == [
        ("c/a/b/m.json", ("a/b", "m.json")),
        ("c/a/m.json", ("a", "m.json")),
        ("c/m.json", ("", "m.json")),
        ("c/x/y.json", ("x", "y.json")),
    ]


def test_more_may_follow_two_stars(home, root):
    put(root, "c/a/b/p/m.json", "c/p/m.json", "c/a/p/n.json")
    assert rows(home.match("c/**/p/m.json")) == [("c/a/b/p/m.json", ("a/b",)), ("c/p/m.json", ("",))]
    assert [m.path for m in home.match("c/**/p/**/m.json")] == ["c/a/b/p/m.json", "c/p/m.json"]


def test_two_stars_follow_no_link_and_one_star_follows_those_inside(home, root):
    put(root, "c/a/m.json", "elsewhere/m.json")
    (root / "c/l").symlink_to("../elsewhere")
    (root / "c/loop").symlink_to(".")
    assert told(home.match("c/**/m.json")) == [
        ("c/a/m.json", ("a",), ""),
        ("c/l", ("l",), "symlink"),
        ("c/loop", ("loop",), "symlink"),
    ]
    assert rows(home.match("c/*/m.json")) == [("c/a/m.json", ("a",)), ("c/l/m.json", ("l",))]


def test_a_linked_directory_beneath_two_stars_is_told(home, root):
    """A tool may follow it, so what lies behind it is not read, and that must not look clean."""
    put(root, "c/real/x", "elsewhere/m.json")
    (root / "c/real/inside").symlink_to("../../elsewhere")
    (root / "c/real/outside").symlink_to("/usr")
    (root / "c/real/file").symlink_to("x")
    (root / "c/real/gone").symlink_to("nowhere")
    put(root, "c/node_modules/pkg/x")
    (root / "c/node_modules/link").symlink_to("pkg")
    for pattern in ("c/**/m.json", "c/**/*.json"):
        assert told(home.match(pattern)) == [
            ("c/real/inside", ("real/inside",), "symlink"),
            ("c/real/outside", ("real/outside",), "escapes-home"),
        ]


def test_a_link_out_of_the_home_is_told_not_followed(home, root):
    outside = root.parent / "outside"
    put(outside, "m.json", "deep/m.json")
    put(root, "c/a/m.json")
    (root / "c/evil").symlink_to("../../outside")
    assert told(home.match("c/*/m.json")) == [
        ("c/a/m.json", ("a",), ""),
        ("c/evil/m.json", ("evil",), "escapes-home"),
    ]
    assert told(home.match("c/*/*/m.json")) == [("c/evil", ("evil",), "escapes-home")]
    assert told(home.match("c/evil/*.json")) == [("c/evil", (), "escapes-home")]
    assert told(home.match("c/evil/**/m.json")) == [("c/evil", (), "escapes-home")]


def test_a_final_link_is_a_match_that_read_refuses(home, root):
    put(root, "c/a/x")
    (root / "c/a/m.json").symlink_to("x")
    (root / "c/m.json").symlink_to("missing")
    assert rows(home.match("c/*/m.json")) == [("c/a/m.json", ("a",))]
    assert rows(home.match("c/*.json")) == [("c/m.json", ("m.json",))]
    assert rows(home.match("c/**/m.json")) == [("c/a/m.json", ("a",)), ("c/m.json", ("",))]


@pytest.mark.parametrize("pattern", ["no/*/x", "no/**/x", "f/*/x", "f/*", "d/dangling/*"])
def test_an_absent_directory_is_silent(home, root, pattern):
    put(root, "f")
    (root / "d").mkdir()
    (root / "d/dangling").symlink_to("missing")
    assert home.match(pattern) == []


def test_names_that_are_no_text_are_names(home, root):
    name = os.fsdecode(b"\xff\xfe")
    try:
        (root / "c" / name).mkdir(parents=True)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    put(root, f"c/{name}/m.json")
    assert rows(home.match("c/*/m.json")) == [(f"c/{name}/m.json", (name,))]
    assert rows(home.match("c/**/m.json")) == [(f"c/{name}/m.json", (name,))]
    assert home.read(f"c/{name}/m.json").data == b"x"


@needs_root
def test_a_directory_that_cannot_be_listed_is_told(shared_tmp, account):
    put(shared_tmp, "c/open/m.json", "c/shut/m.json", "c/pass/m.json", "s/m.json", "p/m.json")
    for name, mode in (("c/shut", 0o700), ("s", 0o700), ("c/pass", 0o711), ("p", 0o711)):
        (shared_tmp / name).chmod(mode)
    with account(STRANGER), Home.open(str(shared_tmp), uid=STRANGER) as home:
        assert told(home.match("c/*/m.json")) == [
            ("c/open/m.json", ("open",), ""),
            ("c/pass/m.json", ("pass",), ""),
            ("c/shut/m.json", ("shut",), "unreadable"),
        ]
        assert told(home.match("c/**/m.json")) == [
            ("c/open/m.json", ("open",), ""),
            ("c/pass", ("pass",), "unreadable"),
            ("c/shut", ("shut",), "unreadable"),
        ]
        assert told(home.match("s/*")) == [("s", (), "unreadable")]
        assert told(home.match("p/*")) == [("p", (), "unreadable")]


def test_a_failing_listing_is_told_by_its_errno(home, root, monkeypatch):
    put(root, "c/m.json")

    def failing(fd):
        raise OSError(5, "CANARY")

    monkeypatch.setattr(os, "scandir", failing)
    assert [(m.path, m.refused, m.errno) for m in home.match("c/*")] == [("c", "error", "EIO")]


class Entry:
    """A directory entry of a file system that does not tell types, and of one that fails to."""

    def __init__(self, name: str, error: bool) -> None:
        self.name = name
        self.error = error

    def is_symlink(self) -> bool:
        if self.error:
            raise OSError(5, "CANARY")
        return False

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        return not follow_symlinks


def test_an_entry_of_unknown_type_is_opened_to_see(home, root, monkeypatch):
    put(root, "c/a/m.json", "c/f")

    class Scan(list):
        def __enter__(self):
            return self

        def __exit__(self, *args):
            return None

    monkeypatch.setattr(os, "scandir", lambda fd: Scan([Entry("a", True), Entry("f", True)]))
    assert rows(home.match("c/*/m.json")) == [("c/a/m.json", ("a",))]


@pytest.mark.parametrize("number", [MAX_ENTRIES, MAX_ENTRIES + 1])
def test_a_directory_may_have_a_thousand_entries(home, root, number):
    put(root, "c/many/x", "c/few/m.json")
    (root / "c/many/x").unlink()
    for place in range(number):
        (root / f"c/many/{place:04}.json").touch()
    if number == MAX_ENTRIES:
        assert len(rows(home.match("c/many/*.json"))) == number
    else:
        for _ in range(2):
            assert told(home.match("c/many/*.json")) == [("c/many", (), "too-many-entries")]
        assert told(home.match("c/**/m.json")) == [
            ("c/few/m.json", ("few",), ""),
            ("c/many", ("many",), "too-many-entries"),
        ]


def test_a_listing_is_read_again_from_the_start(root):
    """Two homes' worth of listings of one descriptor give the same, as the offset is put back."""
    put(root, *(f"c/{place}" for place in range(MAX_ENTRIES + 1)))
    with Home.open(str(root), uid=ME) as home:
        home.match("c/*")
        (root / "c/0").unlink()
        assert len(rows(home.match("c/*"))) == MAX_ENTRIES


def test_two_stars_end_at_a_depth_and_tell_it(home, root):
    deep = "/".join(["d"] * MAX_DEPTH)
    put(root, f"c/{deep}/m.json", "c/m.json")
    assert len(rows(home.match("c/**/m.json"))) == 2
    put(root, f"c/{deep}/d/m.json")
    with Home.open(str(root), uid=ME) as again:
        assert told(again.match("c/**/m.json")) == [
            ("c", (), "too-many-entries"),
            (f"c/{deep}/m.json", (deep,), ""),
            ("c/m.json", ("",), ""),
        ]


def test_a_pattern_has_a_number_of_entries_and_keeps_the_shallow_ones(root, monkeypatch):
    monkeypatch.setattr(match_module, "PATTERN_ENTRIES", 6)
    put(root, "c/a/m.json", "c/b/x/y/z/m.json", "c/b/x/y/other", "c/b/x/more")
    with Home.open(str(root), uid=ME) as home:
        assert told(home.match("c/**/m.json")) == [
            ("c", (), "too-many-entries"),
            ("c/a/m.json", ("a",), ""),
        ]
        assert told(home.match("c/*/x/*/*/m.json"))[0] == ("c", (), "too-many-entries")


def test_a_scan_has_a_number_of_entries_and_absent_places_stay_silent(root, monkeypatch):
    monkeypatch.setattr(match_module, "SCAN_ENTRIES", 6)
    put(root, "c/a/m.json", "c/b/m.json", "d/m.json")
    with Home.open(str(root), uid=ME) as home:
        assert len(rows(home.match("c/**/m.json"))) == 2
        assert told(home.match("d/*.json")) == [("d", (), "too-many-entries")]
        assert home.match("absent/*.json") == []


def test_the_refusals_of_one_pattern_are_bounded(home, root):
    (root / "c").mkdir()
    for place in range(MAX_REFUSED + 5):
        (root / f"c/{place:03}").symlink_to("/")
    got = told(home.match("c/*/m.json"))
    assert got[0] == ("c", (), "too-many-entries")
    assert [row[2] for row in got[1:]] == ["escapes-home"] * MAX_REFUSED


def test_a_wide_tree_keeps_to_its_descriptors(home, root):
    put(root, *(f"c/{one}/{two}/m.json" for one in range(20) for two in range(20)))
    assert len(rows(home.match("c/*/*/m.json"))) == 400
    assert len(rows(home.match("c/**/m.json"))) == 400
    assert len(os.listdir("/dev/fd")) < 110


NAME = st.text("ab.*", min_size=1, max_size=8)


@given(name=NAME, component=NAME.filter(lambda text: "*" in text))
def test_a_star_is_any_text(name, component):
    """The linear matcher agrees with the textbook regular expression."""
    pattern = ".*".join(map(re.escape, component.split("*")))
    assert fits(name, component.split("*")) is (re.fullmatch(pattern, name, re.DOTALL) is not None)
