# SPDX-License-Identifier: Apache-2.0
"""The table of locations as a tree, and what a name in a watched directory means."""

import pytest

from halod.harnesses.table import LOCATIONS, extra_location
from halod.roles.watched.interest import Names, Node, closure, tree
from tests.support.watching import number

TREE = tree(LOCATIONS)


def at(path):
    """Give the nodes of a path of plain components."""
    nodes = [TREE]
    for component in path.split("/") if path else []:
        nodes = closure(nodes)
        nodes = [
            *(node.exact[component] for node in nodes if component in node.exact),
            *(child for node in nodes for child in node.following(component)),
            *(node for node in nodes if node.repeats),
        ]
    return closure(nodes)


def names(path):
    found = Names()
    found.stand_for(at(path))
    return found


def locations(path, name):
    return set(names(path).match(name, directory=False)[0])


def test_a_file_in_the_home_is_its_location_and_others_are_none():
    assert locations("", ".claude.json") == {number("~/.claude.json")}
    assert names("").match(".bash_history", directory=False) == (frozenset(), False)
    assert names("").match("Downloads", directory=True) == (frozenset(), False)


def test_every_harness_that_reads_a_file_has_its_number():
    """Two harnesses read ~/opencode.json."""
    assert locations("", "opencode.json") == {
        at for at, location in enumerate(LOCATIONS) if location.path == "~/opencode.json"
    }
    assert len(locations("", "opencode.json")) == 2


def test_a_directory_on_the_way_asks_for_a_survey():
    assert names("").match(".config", directory=True) == (frozenset(), True)
    assert names(".config").match("Code", directory=True) == (frozenset(), True)


def test_a_star_stands_for_a_component_and_for_a_part_of_one():
    assert locations(".codex", "work.config.toml") == {number("~/.codex/*.config.toml")}
    assert locations(".codex", "config.toml") == {number("~/.codex/config.toml")}
    assert locations(".claude/plugins/cache/a/b/c", ".mcp.json") == {
        number("~/.claude/plugins/cache/*/*/*/.mcp.json")
    }
    assert names(".claude/skills").match("mine", directory=True) == (frozenset(), True)


@pytest.mark.parametrize("below", ["", "/a", "/a/b/c"])
def test_two_stars_stand_for_any_depth(below):
    place = f".cursor/plugins/cache{below}"
    assert locations(place, "mcp.json") == {number("~/.cursor/plugins/cache/**/mcp.json")}
    assert names(place).match("any", directory=True) == (frozenset(), True)
    assert names(place).match("any", directory=False) == (frozenset(), False)


def test_the_log_of_a_database_is_the_database_and_its_directory_is_busy():
    assert locations(".halo", "halo.db-wal") == {number("~/.halo/halo.db")}
    assert any(node.busy for node in at(".halo"))
    assert not any(node.busy for node in at(".codex"))


def test_what_another_file_points_to_is_left_to_the_timer():
    pointed = {at for at, location in enumerate(LOCATIONS) if location.place.pointed}
    assert pointed
    assert not pointed & locations(".claude/plugins/cache/a/b/c", "README.md")
    everything, nodes = set(), [TREE]
    while nodes:
        node = nodes.pop()
        everything |= node.ends
        nodes += [*node.exact.values(), *node.wild.values(), *([node.deep] if node.deep else [])]
    assert everything == set(range(len(LOCATIONS))) - pointed


def test_locations_of_the_settings_are_numbered_after_the_table():
    more = tree((*LOCATIONS, extra_location("cursor", "~/work/mcp.json"), extra_location("cursor", "~/x/**")))
    assert more.exact["work"].exact["mcp.json"].ends == {len(LOCATIONS)}
    assert "x" not in more.exact, "a pattern without a file name names none"


def test_a_number_that_no_frame_can_hold_is_not_watched():
    last = extra_location("cursor", "~/last.json")
    root = tree((*[LOCATIONS[0]] * 65536, last))
    assert set(root.exact) == {".claude.json"}


def test_wildcards_on_the_way_count():
    assert TREE.exact[".config"].rank == 0
    assert TREE.exact[".claude"].exact["skills"].wild[("", "")].rank == 1
    assert TREE.exact[".cursor"].exact["plugins"].exact["cache"].deep.rank == 2


def test_a_link_on_the_way_keeps_what_is_known_of_its_name():
    found = Names()
    found.file("a", {1})
    found.step("a")
    found.file("a", {2})
    assert found.match("a", directory=False) == ({1, 2}, True)


def test_closure_takes_each_node_once():
    root = Node()
    deep = root.follow("**")
    assert root.follow("**") is deep
    assert closure([root, deep, root]) == [root, deep]
