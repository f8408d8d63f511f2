# SPDX-License-Identifier: Apache-2.0
"""What a watcher's loop says about real files, by events and by looking; its clock is the test's."""

import contextlib
import os
import select
import sys

import pytest

from halod.home import Refused
from halod.home.home import open_anchor
from halod.roles.watched import loop as looping
from halod.roles.watched import survey as surveying
from tests.support.roles import descriptors
from tests.support.watching import Driver, number

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

CLAUDE = number("~/.claude.json")
CURSOR = number("~/.cursor/mcp.json")
CODEX = number("~/.codex/config.toml")
CODE = number("~/.config/Code/User/mcp.json")


@pytest.fixture
def home(tmp_path):
    made = tmp_path / "home"
    made.mkdir()
    (made / ".claude.json").write_text("{}")
    (made / ".cursor").mkdir()
    (made / ".cursor/mcp.json").write_text("{}")
    (made / ".claude").mkdir()
    return made


def by_events():
    from halod.roles.watched.inotify import Inotify

    return Inotify()


@pytest.fixture(params=[pytest.param("events", marks=linux), "looking"])
def driver(request, home):
    """A loop that has begun, by events and by looking: both must say the same."""
    source = by_events() if request.param == "events" else None
    made = Driver(home, source=source)
    assert made.begin() == [("watching", 0)]
    yield made
    made.close()
    if source is not None:
        source.close()


@pytest.fixture
def events(home):
    """A loop on events that has not begun."""
    source = by_events()
    made = Driver(home, source=source)
    made.source = source
    yield made
    made.close()
    source.close()


def changed(*locations):
    return sorted(("changed", location) for location in locations)


# -- what changed ---------------------------------------------------------------------------------


def test_a_file_that_is_written_in_place_changed(driver, home):
    (home / ".claude.json").write_text('{"mcpServers": {}}')
    assert driver.settle() == changed(CLAUDE)
    assert driver.settle() == []


def test_a_file_that_is_saved_by_a_rename_changed(driver, home):
    (home / ".claude.json.tmp.1").write_text("{ }")
    os.replace(home / ".claude.json.tmp.1", home / ".claude.json")
    assert driver.settle() == changed(CLAUDE)


def test_the_dance_of_an_editor_with_a_backup_is_a_change(driver, home):
    """vim: the old file becomes the backup, a new one is written, the backup goes."""
    file, backup = home / ".cursor/mcp.json", home / ".cursor/mcp.json~"
    os.rename(file, backup)
    file.write_text("{ }")
    backup.unlink()
    assert driver.settle() == changed(CURSOR)


def test_a_file_that_goes_and_comes_changed(driver, home):
    file = home / ".cursor/mcp.json"
    file.unlink()
    assert driver.settle() == changed(CURSOR)
    file.write_text("{}")
    assert driver.settle() == changed(CURSOR)
    os.rename(file, home / ".cursor/away.json")
    assert driver.settle() == changed(CURSOR)


def test_a_file_that_becomes_a_link_or_a_directory_changed(driver, home):
    file = home / ".cursor/mcp.json"
    file.unlink()
    file.symlink_to("elsewhere.json")
    assert driver.settle() == changed(CURSOR)
    file.unlink()
    file.mkdir()
    assert driver.settle() == changed(CURSOR)


def test_a_file_whose_rights_change_changed(driver, home):
    (home / ".claude.json").chmod(0o400)
    assert driver.settle() == changed(CLAUDE)


def test_other_files_are_nothing(driver, home):
    (home / ".claude/history.jsonl").write_text("x")
    (home / ".claude/todos").mkdir()
    (home / ".claude/todos/1.json").write_text("x")
    (home / ".bash_history").write_text("x")
    (home / "Downloads").mkdir()
    (home / "Downloads/mcp.json").write_text("x")
    (home / ".claude.json.lock").mkdir()
    (home / ".claude.json.lock").rmdir()
    (home / ".cursor/other.json").write_text("x")
    os.utime(home / ".claude/history.jsonl")
    assert driver.settle() == []


def test_reading_is_nothing(driver, home):
    (home / ".claude.json").read_text()
    os.listdir(home / ".cursor")
    assert driver.settle() == []


# -- directories that come and go -----------------------------------------------------------------


def test_a_directory_that_appears_is_followed(driver, home):
    (home / ".codex").mkdir()
    assert driver.settle() == []
    (home / ".codex/config.toml").write_text("")
    assert driver.settle() == changed(CODEX)
    (home / ".codex/config.toml").write_text("x = 1")
    assert driver.settle() == changed(CODEX)


def test_what_lies_in_a_directory_that_appears_changed(driver, home):
    (home / "new").mkdir()
    (home / "new/config.toml").write_text("")
    assert driver.settle() == []
    os.rename(home / "new", home / ".codex")
    assert driver.settle() == changed(CODEX)


def test_directories_that_appear_at_once_are_followed_to_the_end(driver, home):
    (home / ".config/Code/User").mkdir(parents=True)
    (home / ".config/Code/User/mcp.json").write_text("{}")
    assert driver.settle() == changed(CODE)
    (home / ".config/Code/User/mcp.json").write_text("{ }")
    assert driver.settle() == changed(CODE)


def test_what_lay_in_a_directory_that_is_moved_away_changed(driver, home):
    os.rename(home / ".cursor", home / "away")
    assert driver.settle() == changed(CURSOR)
    (home / "away/mcp.json").write_text("{ }")
    assert driver.settle() == []
    os.rename(home / "away", home / ".cursor")
    assert driver.settle() == changed(CURSOR)


def test_a_directory_that_takes_another_ones_place_changed(driver, home):
    (home / "other").mkdir()
    (home / "other/mcp.json").write_text("{   }")
    os.rename(home / ".cursor", home / "away")
    os.rename(home / "other", home / ".cursor")
    assert driver.settle() == changed(CURSOR)
    (home / ".cursor/mcp.json").write_text("{}")
    assert driver.settle() == changed(CURSOR)


def test_a_directory_that_is_removed_and_made_again_is_followed(driver, home):
    for _ in range(3):
        (home / ".cursor/mcp.json").unlink()
        (home / ".cursor").rmdir()
        assert driver.settle() == changed(CURSOR)
        (home / ".cursor").mkdir()
        assert driver.settle() == []
        (home / ".cursor/mcp.json").write_text("{}")
        assert driver.settle() == changed(CURSOR)


def test_wildcards_are_followed(driver, home):
    plugin = home / ".claude/plugins/cache/market/tool/1.0"
    plugin.mkdir(parents=True)
    assert driver.settle() == []
    (plugin / ".mcp.json").write_text("{}")
    assert driver.settle() == changed(number("~/.claude/plugins/cache/*/*/*/.mcp.json"))
    (home / ".claude/agents").mkdir()
    (home / ".claude/agents/CANARY.md").write_text("x")
    assert driver.settle() == changed(number("~/.claude/agents/*.md"))
    (home / ".claude/agents/README").write_text("x")
    assert driver.settle() == []


def test_two_stars_are_followed(driver, home):
    deep = home / ".cursor/plugins/cache/a/b"
    deep.mkdir(parents=True)
    (deep / "mcp.json").write_text("{}")
    assert driver.settle() == changed(number("~/.cursor/plugins/cache/**/mcp.json"))
    (deep / "c/d").mkdir(parents=True)
    assert driver.settle() == []
    (deep / "c/d/.mcp.json").write_text("{}")
    assert driver.settle() == changed(number("~/.cursor/plugins/cache/**/.mcp.json"))


def test_a_file_where_a_directory_is_looked_for_is_nothing(driver, home):
    (home / ".claude/skills").mkdir()
    (home / ".claude/skills/README.md").write_text("x")
    (home / ".gemini").write_text("x")
    assert driver.settle() == []
    (home / ".gemini").unlink()
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text("{}")
    assert driver.settle() == changed(number("~/.gemini/settings.json"))


def test_a_link_where_a_directory_is_looked_for_is_followed(driver, home):
    (home / "real").mkdir()
    (home / "real/.mcp.json").write_text("{}")
    (home / ".claude/skills").mkdir()
    (home / ".claude/skills/mine").symlink_to("../../real")
    assert driver.settle() == changed(number("~/.claude/skills/*/.mcp.json"))


def test_links_are_no_part_of_two_stars(driver, home):
    (home / ".cursor/plugins/cache").mkdir(parents=True)
    (home / "big").mkdir()
    (home / ".cursor/plugins/cache/link").symlink_to(home / "big")
    driver.settle()
    (home / "big/mcp.json").write_text("{}")
    assert driver.settle() == []


# -- links ----------------------------------------------------------------------------------------


def test_a_link_inside_the_home_is_followed(driver, home):
    real = home / "dotfiles/config/Code/User"
    real.mkdir(parents=True)
    (real / "mcp.json").write_text("{}")
    (home / ".config").symlink_to("dotfiles/config")
    assert driver.settle() == changed(CODE)
    (real / "mcp.json").write_text("{ }")
    assert driver.settle() == changed(CODE)


def test_a_link_that_is_pointed_elsewhere_changed(driver, home):
    for name in ("one", "two"):
        (home / name / "Code/User").mkdir(parents=True)
        (home / name / "Code/User/mcp.json").write_text(name)
    (home / ".config").symlink_to(home / "one")
    assert driver.settle() == changed(CODE)
    (home / ".new").symlink_to(home / "two")
    os.replace(home / ".new", home / ".config")
    assert driver.settle() == changed(CODE)
    (home / "one/Code/User/mcp.json").write_text("nothing")
    assert driver.settle() == []
    (home / "two/Code/User/mcp.json").write_text("something")
    assert driver.settle() == changed(CODE)


def test_a_directory_behind_a_link_may_vanish_and_come(driver, home):
    (home / "dotfiles/config/Code/User").mkdir(parents=True)
    (home / "dotfiles/config/Code/User/mcp.json").write_text("{}")
    (home / ".config").symlink_to("dotfiles/config")
    assert driver.settle() == changed(CODE)
    os.rename(home / "dotfiles", home / "away")
    assert driver.settle() == changed(CODE)
    os.rename(home / "away", home / "dotfiles")
    assert driver.settle() == changed(CODE)


def test_no_link_leads_out_of_the_home(driver, home, tmp_path):
    outside = tmp_path / "outside"
    (outside / "Code/User").mkdir(parents=True)
    (outside / "Code/User/mcp.json").write_text("{}")
    (home / ".config").symlink_to(outside)
    assert driver.settle() == []
    (outside / "Code/User/mcp.json").write_text("{ }")
    assert driver.settle() == []


@pytest.mark.parametrize("target", ["real.json", "../dotfiles/real.json", "{home}/dotfiles/real.json"])
@pytest.mark.parametrize("source", [pytest.param(by_events, marks=linux), lambda: None])
def test_a_file_that_is_a_link_into_the_home_is_followed_where_that_is_allowed(home, source, target):
    (home / "dotfiles").mkdir()
    for place in ("dotfiles", ".cursor"):
        (home / place / "real.json").write_text("{}")
    (home / ".cursor/mcp.json").unlink()
    (home / ".cursor/mcp.json").symlink_to(target.format(home=home))
    real = (home / ".cursor" / target.format(home=home)).resolve()
    for follow, said in ((True, changed(CURSOR)), (False, [])):
        made = source()
        driver = Driver(home, source=made, follow=follow)
        driver.begin()
        real.write_text("{" + " " * follow + "  }")
        assert driver.settle() == said
        os.rename(real, home / "kept")
        os.rename(home / "kept", real)
        assert driver.settle() == said
        driver.close()
        if made:
            made.close()


@pytest.mark.parametrize("target", ["/", "..", "/etc/hosts", "mcp.json", "nowhere", "nowhere/x", "../../x"])
def test_a_link_that_leads_nowhere_costs_nothing(home, target):
    (home / ".cursor/mcp.json").unlink()
    (home / ".cursor/mcp.json").symlink_to(target)
    driver = Driver(home, follow=True)
    assert driver.begin() == [("watching", 0)]
    assert driver.settle() == []
    driver.close()


# -- limits and losses ----------------------------------------------------------------------------


class Fake:
    """A source whose events are the test's; it may refuse watches."""

    def __init__(self, most=1000):
        self.limited = False
        self.most = most
        self.reader, self.writer = os.pipe()
        self.queue = []
        self.added, self.removed, self.rests = {}, [], 0

    def fileno(self):
        return self.reader

    def add(self, directory, *, busy=False):
        inode = os.fstat(directory).st_ino
        if inode in self.added:
            return self.added[inode]
        if len(self.added) >= self.most:
            self.limited = True
            return 0
        self.added[inode] = len(self.added) + 1
        return self.added[inode]

    def rest(self):
        self.rests += 1

    def remove(self, watch):
        self.removed.append(watch)

    def put(self, *events):
        self.queue += events
        os.write(self.writer, b"x")

    def read(self):
        os.read(self.reader, 1)
        given, self.queue = self.queue, []
        return given

    def close(self):
        os.close(self.reader)
        os.close(self.writer)


@pytest.fixture
def fake(home):
    source = Fake()
    driver = Driver(home, source=source)
    yield source, driver
    driver.close()
    source.close()


def test_an_exhausted_limit_is_told_once_and_the_rest_goes_on(home):
    source = Fake(most=1)
    driver = Driver(home, source=source)
    assert driver.begin() == [("limited", 0), ("watching", 0)]
    (home / ".codex").mkdir()
    source.put((1, 0x40000100, ".codex"))
    assert driver.settle() == [], "limited is not said again"
    source.put((1, 0x8, ".claude.json"))
    assert driver.settle() == changed(CLAUDE)
    driver.close()
    source.close()


def test_a_limit_that_is_known_before_is_told_first(home):
    driver = Driver(home, limited=True)
    assert driver.begin() == [("limited", 0), ("watching", 0)]
    (home / ".claude.json").write_text("{  }")
    assert driver.settle() == changed(CLAUDE)
    driver.close()


def test_no_more_directories_are_watched_than_is_fair(home, monkeypatch):
    monkeypatch.setattr(surveying, "MOST_WATCHED", 2)
    source = Fake()
    driver = Driver(home, source=source)
    assert driver.begin() == [("limited", 0), ("watching", 0)]
    assert len(source.added) == 2
    driver.close()
    source.close()


def test_no_more_directories_are_looked_into_than_is_fair(home, monkeypatch):
    monkeypatch.setattr(surveying, "MOST_VISITED", 2)
    driver = Driver(home)
    assert driver.begin() == [("limited", 0), ("watching", 0)]
    driver.close()


def test_no_more_entries_are_taken_than_is_fair(home, monkeypatch):
    """A home cannot make the watcher's memory grow: what is beyond is left to the timer."""
    for at in range(5):
        (home / f".cursor/plugins/cache/{at}").mkdir(parents=True)
    monkeypatch.setattr(surveying, "MOST_LISTED", 3)
    driver = Driver(home)
    assert driver.begin() == [("limited", 0), ("watching", 0)]
    (home / ".cursor/mcp.json").write_text("{  }")
    assert driver.settle() == changed(CURSOR)
    driver.close()


def test_plain_paths_come_before_wildcards(home, monkeypatch):
    """A plugin cache without end does not cost the files that people edit."""
    for at in range(30):
        (home / f".claude/plugins/cache/m/{at}/1").mkdir(parents=True)
    monkeypatch.setattr(surveying, "MOST_WATCHED", 20)
    (home / ".zcode/cli").mkdir(parents=True)
    source = by_events() if sys.platform == "linux" else Fake()
    driver = Driver(home, source=source)
    driver.begin()
    (home / ".zcode/cli/config.json").write_text("{}")
    if sys.platform == "linux":
        assert driver.settle() == changed(number("~/.zcode/cli/config.json"))
    driver.close()
    source.close()


def test_two_stars_end_at_a_depth(home):
    deep = home / ".cursor/plugins/cache" / "/".join(["d"] * (surveying.MOST_DEEP + 1))
    deep.mkdir(parents=True)
    (deep / "mcp.json").write_text("{}")
    driver = Driver(home)
    driver.begin()
    (deep / "mcp.json").write_text("{  }")
    assert driver.settle() == []
    (deep.parent / "mcp.json").write_text("{  }")
    assert driver.settle() == changed(number("~/.cursor/plugins/cache/**/mcp.json"))
    driver.close()


def test_lost_events_are_told_and_the_home_is_looked_at_again(fake, home):
    source, driver = fake
    driver.begin()
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text("")
    source.put((-1, 0x4000, ""))
    assert driver.settle() == [*changed(CODEX), ("overflow", 0)]
    assert os.stat(home / ".codex").st_ino in source.added


def test_a_watch_that_the_kernel_removed_is_made_again(fake, home):
    """IN_UNMOUNT and IN_IGNORED: the same path may be another directory now."""
    source, driver = fake
    driver.begin()
    inode = os.stat(home / ".cursor").st_ino
    old = source.added.pop(inode)
    source.put((old, 0x2000, ""), (old, 0x8000, ""))
    driver.settle()
    assert inode in source.added
    assert old not in source.removed


def test_events_of_a_watch_that_is_no_more_are_nothing(fake):
    source, driver = fake
    driver.begin()
    source.put((999, 0x8, ".claude.json"), (999, 0x8000, ""))
    assert driver.settle() == []


def test_directories_that_are_no_candidates_any_more_are_left(fake, home):
    source, driver = fake
    driver.begin()
    watch = source.added[os.stat(home / ".cursor").st_ino]
    os.rename(home / ".cursor", home / "away")
    source.put((1, 0x40000040, ".cursor"))
    driver.settle()
    assert source.removed == [watch]


@linux
def test_a_flood_overflows_the_queue_and_nothing_is_lost(events, home):
    """The real queue: more distinct events than it holds, while nobody reads."""
    events.begin()
    with open("/proc/sys/fs/inotify/max_queued_events") as limit:
        most = int(limit.read())
    if most > 70_000:
        pytest.skip(f"the queue of this machine holds {most} events")
    first, second = home / ".claude/one", home / ".claude/two"
    first.write_text("")
    for _ in range(most // 2 + 100):
        os.rename(first, second)
        os.rename(second, first)
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text("")
    events.turns(200, step=0.5)
    said = events.said()
    assert ("overflow", 0) in said
    assert ("changed", CODEX) in said
    (home / ".codex/config.toml").write_text("x = 1")
    assert events.settle() == changed(CODEX)


def test_file_systems_without_events_are_looked_at(home):
    """Only the directory that lies on a share is polled; the others are told of by events."""
    share = os.stat(home / ".cursor").st_ino
    source = Fake()
    driver = Driver(home, source=source, remote=lambda directory: os.fstat(directory).st_ino == share)
    assert driver.begin() == [("watching", 0)]
    assert share not in source.added
    (home / ".cursor/mcp.json").write_text("{  }")
    assert driver.settle() == changed(CURSOR)
    (home / ".claude.json").write_text("{  }")
    assert driver.settle() == []
    source.put((1, 0x8, ".claude.json"))
    assert driver.settle() == changed(CLAUDE)
    driver.close()
    source.close()


# -- time -----------------------------------------------------------------------------------------


@linux
def test_nothing_is_waited_for_by_time_while_nothing_happens(events):
    events.begin()
    events.waits.clear()
    events.turns(3, step=1)
    assert events.waits == [None] * 3


def test_looking_is_every_two_seconds(home):
    driver = Driver(home)
    driver.loop.begin()
    driver.turns()
    assert driver.waits == [looping.POLL]
    (home / ".claude.json").write_text("{   }")
    driver.turns(2, step=0.9)
    assert driver.said() == [("watching", 0)]
    driver.turns(2, step=0.2)
    assert driver.said() == changed(CLAUDE)
    driver.close()


def test_work_is_followed_by_rest(fake):
    """A batch that took a second is followed by REST seconds without another."""
    source, driver = fake
    driver.begin()
    read = source.read

    def slow():
        driver.now += 1
        return read()

    source.read = slow
    source.put((1, 0x8, ".claude.json"))
    driver.turns(2)
    assert driver.said() == changed(CLAUDE)
    source.put((1, 0x8, ".claude.json"))
    driver.turns(2, step=looping.REST / 2 - 1)
    assert driver.said() == []
    driver.turns(2, step=2)
    assert driver.said() == changed(CLAUDE)


def test_directories_that_change_all_the_time_are_surveyed_now_and_then(fake, home):
    source, driver = fake
    driver.begin()
    rest = source.rest

    def slow():
        driver.now += 1
        rest()

    source.rest = slow
    (home / ".codex").mkdir()
    source.put((1, 0x40000100, ".codex"))
    driver.turns(3, step=0.1)
    before = source.rests
    assert before == 2
    for _ in range(10):
        source.put((1, 0x40000100, ".codex"))
        driver.turns(1, step=1)
    assert source.rests == before
    driver.turns(2, step=looping.REST)
    assert source.rests == before + 1


def test_a_reader_who_does_not_read_does_not_stop_the_loop(home):
    driver = Driver(home)
    driver.loop.begin()
    driver.loop._out._waiting.clear()
    os.set_blocking(driver.write, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(driver.write, bytes(4096)):
            continue
    (home / ".claude.json").write_text("{   }")
    driver.turns(2, step=3)
    while os.read(driver.frames, 65536):
        if not select.select([driver.frames], [], [], 0)[0]:
            break
    driver.turns(1)
    assert driver.said() == changed(CLAUDE)
    driver.close()


# -- the end --------------------------------------------------------------------------------------


def test_the_hang_up_of_the_life_pipe_ends_it(home):
    driver = Driver(home)
    driver.loop.begin()
    os.write(driver.life, b"x")
    assert driver.loop.turn(), "a byte is not the end"
    os.close(driver.life)
    assert not driver.loop.turn()
    driver.loop.run()
    driver.close()


def test_a_pipe_without_reader_ends_it(home):
    driver = Driver(home)
    os.close(driver.frames)
    driver.loop.run()
    driver.close()


@pytest.mark.parametrize("how", ["moved", "replaced"])
def test_a_home_that_is_gone_ends_it(driver, home, how):
    os.rename(home, f"{home}.away")
    if how == "replaced":
        home.mkdir()
    before = descriptors()
    with pytest.raises(looping.HomeGone):
        driver.settle()
    assert descriptors() == before


@linux
def test_a_home_that_is_removed_ends_it(events, home):
    events.begin()
    for name in (".claude.json", ".cursor/mcp.json"):
        (home / name).unlink()
    for name in (".cursor", ".claude", ""):
        (home / name).rmdir()
    with pytest.raises(looping.HomeGone):
        events.settle()


def test_a_home_that_was_never_there_ends_it(tmp_path):
    driver = Driver(tmp_path / "none")
    with pytest.raises(looping.HomeGone):
        driver.begin()
    driver.close()


def test_a_home_that_refuses_ends_it(home):
    driver = Driver(home)

    def refuse():
        raise Refused("home-unavailable")

    driver.loop._home = refuse
    with pytest.raises(looping.HomeGone):
        driver.begin()
    driver.close()


# -- cost -----------------------------------------------------------------------------------------


@linux
def test_a_thousand_directories_that_come_and_go_leave_nothing_behind(events, home):
    events.begin()
    before = descriptors()
    for _ in range(1000):
        (home / ".codex/agents").mkdir(parents=True)
        events.turns(2, step=0.1)
        (home / ".codex/agents").rmdir()
        (home / ".codex").rmdir()
        events.turns(2, step=0.1)
    assert events.settle() == []
    assert descriptors() == before
    with open(f"/proc/self/fdinfo/{events.source.fileno()}") as info:
        assert sum(line.startswith("inotify ") for line in info) == len(events.loop._names) == 3
    assert len(events.loop._present) == 2


def test_a_home_with_more_directories_than_may_be_held_is_walked(home):
    """The walk gives directories back between its steps (`Walker.trim`)."""
    for at in range(150):
        (home / f".claude/skills/{at}/.claude-plugin").mkdir(parents=True)
        (home / f".claude/skills/{at}/.claude-plugin/plugin.json").write_text("{}")
    driver = Driver(home)
    driver.begin()
    (home / ".claude/skills/149/.claude-plugin/plugin.json").write_text("{  }")
    assert driver.settle() == changed(number("~/.claude/skills/*/.claude-plugin/plugin.json"))
    driver.close()


def test_a_directory_that_cannot_be_listed_costs_itself(home):
    """Too many entries for a scan, too many for a watcher; what has a plain name is still seen."""
    many = home / ".claude/agents"
    many.mkdir()
    for at in range(1001):
        (many / f"{at}.md").touch()
    driver = Driver(home)
    assert driver.begin() == [("watching", 0)]
    (home / ".claude.json").write_text("{  }")
    assert driver.settle() == changed(CLAUDE)
    driver.close()


def test_waiting_waits_for_descriptors_and_for_time():
    reader, writer = os.pipe()
    assert looping.wait_for({reader: select.POLLIN}, 0.0) == {}
    os.write(writer, b"x")
    assert looping.wait_for({reader: select.POLLIN}, None) == {reader: select.POLLIN}
    os.close(reader)
    os.close(writer)


def test_the_anchor_is_given_back(home):
    before = descriptors()
    surveying.Survey(open_anchor(str(home), owned_links=True), lambda _fd, busy: -1).close()
    assert descriptors() == before
