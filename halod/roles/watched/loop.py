# SPDX-License-Identifier: Apache-2.0
"""A watcher's work: wait, take events, survey the home again when its directories changed, say what changed.

Invariants:

1. One thread; asleep without a timer while nothing happens, except where files are polled.
2. Whatever the account does to its files, events and surveys take at most a tenth of a processor: each is
   followed by REST times its own duration without another. The kernel folds what happens meanwhile; what its
   queue does not hold is an overflow, that is one more scan.
3. A location is told when a file of it may have changed. To tell one too many costs a scan; none is missed
   but where `limited` was said.
"""

import os
import select
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from halod.home import Absent, Refused
from halod.home.walk import Anchor
from halod.roles.watched.frames import Outbox
from halod.roles.watched.interest import Names, Node
from halod.roles.watched.remote import is_remote
from halod.roles.watched.survey import POLLED, Present, Survey, difference
from halod.roles.watching import CHANGED, LIMITED, OVERFLOW, WATCHING

POLL: Final = 2.0  # seconds between looks at files of which no event tells (design 3)
REST: Final = 19
GAP: Final = 0.025  # seconds between reads of events at least: bounds the frames that others have to take
FOLD: Final = 0.02  # seconds from a change of directories to the survey: one `mkdir -p` is one change

# Events, by their numbers in inotify(7): this module also works where watchdog cannot be imported.
LOST: Final = 0x4000  # the queue overflowed
IGNORED: Final = 0x8000
DIRECTORY: Final = 0x40000000
GONE: Final = 0x240  # deleted, moved away
CONTENT: Final = 0xA  # written, closed after writing


class Source(Protocol):
    """What tells of events: `inotify.Inotify`."""

    limited: bool

    def fileno(self) -> int:
        """Give the descriptor that becomes readable with events."""

    def add(self, directory: int, *, busy: bool = False) -> int:
        """Watch an open directory; the watch's number, or 0."""

    def rest(self) -> None:
        """Keep no directory busy."""

    def remove(self, watch: int) -> None:
        """Watch a directory no more."""

    def read(self) -> list[tuple[int, int, str]]:
        """Give the events that wait: watch, mask, name."""


Wait = Callable[[Mapping[int, int], float | None], Mapping[int, int]]


class HomeGone(Exception):
    """The home is not where, or what, it was."""


class Loop:
    """See the module. `home` opens the home anew, and raises as `open_anchor` when it is not there.

    `source` is None where everything is polled. `clock` gives seconds that never go back; `wait` waits for
    descriptors (with poll(2)'s events) at most some seconds, and gives the ready ones.
    """

    def __init__(
        self,
        home: Callable[[], Anchor],
        tree: Node,
        out: Outbox,
        life: int,
        *,
        source: Source | None = None,
        follow: bool = False,
        limited: bool = False,
        clock: Callable[[], float] = time.monotonic,
        wait: Wait | None = None,
        remote: Callable[[int], bool] = is_remote,
    ) -> None:
        self._home = home
        self._tree = tree
        self._out = out
        self._life = life
        self._source = source
        self._follow = follow
        self._limited = limited
        self._clock = clock
        self._wait = wait or wait_for
        self._remote = remote
        self._identity: tuple[int, int] | None = None
        self._names: dict[int, Names] = {}
        self._present: Present = {}
        self._survey_at: float | None = None
        self._no_survey_before = self._no_read_before = clock()

    def run(self) -> None:
        """Watch until the supervisor hangs up. Raises HomeGone."""
        self.begin()
        while self.turn():
            pass

    def begin(self) -> None:
        """Look at the home for the first time. Raises HomeGone."""
        if self._limited:
            self._out.put(LIMITED)
        self._survey(first=True)
        self._out.put(WATCHING)

    def turn(self) -> bool:
        """Say what is to say, wait, and do what is due; False when the supervisor is gone. Raises HomeGone."""
        try:
            self._out.flush()
        except BrokenPipeError:
            return False
        now = self._clock()
        wanted = {self._life: select.POLLIN}
        if self._out.waiting:
            wanted[self._out.descriptor] = select.POLLOUT
        times = [] if self._survey_at is None else [max(self._survey_at, self._no_survey_before)]
        source = self._source
        if source is not None and now >= self._no_read_before:
            wanted[source.fileno()] = select.POLLIN
        elif source is not None:
            times.append(self._no_read_before)
        ready = self._wait(wanted, max(0.0, min(times) - now) if times else None)
        if self._life in ready and not os.read(self._life, 1):
            return False
        if source is not None and source.fileno() in ready:
            self._take(source)
        if self._survey_at is not None and self._clock() >= max(self._survey_at, self._no_survey_before):
            self._survey()
        return True

    # -- events ------------------------------------------------------------------------------------

    def _take(self, source: Source) -> None:
        begin = self._clock()
        changed: set[int] = set()
        for watch, mask, name in source.read():
            changed |= self._event(watch, mask, name)
        for location in sorted(changed):
            self._out.put(CHANGED, location)
        end = self._clock()
        self._no_read_before = end + max(GAP, REST * (end - begin))

    def _event(self, watch: int, mask: int, name: str) -> frozenset[int]:
        """Take one event; give the locations that it is about."""
        nothing: frozenset[int] = frozenset()
        if mask & LOST:
            self._out.put(OVERFLOW)
            self._soon()
            return nothing
        names = self._names.get(watch)
        if names is None:
            return nothing
        if mask & IGNORED:
            del self._names[watch]
        if mask & IGNORED or not name:
            # The directory itself: its attributes are told by its parent too, the rest is that it left.
            self._soon()
            return nothing
        ends, below = names.match(name, directory=bool(mask & DIRECTORY))
        if below and not mask & CONTENT:
            self._soon()
        if ends:
            if mask & GONE:
                self._present.pop((watch, name), None)
            else:
                self._present.setdefault((watch, name), ((), ends))
        return ends

    def _soon(self) -> None:
        """Survey soon."""
        at = self._clock() + FOLD
        self._survey_at = at if self._survey_at is None else min(at, self._survey_at)

    # -- surveys -----------------------------------------------------------------------------------

    def _survey(self, *, first: bool = False) -> None:
        """Look at the home anew and say what is different. Raises HomeGone."""
        begin = self._clock()
        survey = Survey(self._open(), self._watch, follow=self._follow)
        try:
            survey.run(self._tree)
        finally:
            survey.close()
        if self._source is not None:
            self._source.rest()
            for watch in self._names.keys() - survey.names.keys():
                self._source.remove(watch)
        if not first:
            for location in sorted(difference(self._present, survey.present)):
                self._out.put(CHANGED, location)
        self._names, self._present = survey.names, survey.present
        if not self._limited and (survey.full or (self._source is not None and self._source.limited)):
            self._limited = True
            self._out.put(LIMITED)
        end = self._clock()
        self._no_survey_before = end + REST * (end - begin)
        self._survey_at = begin + POLL if survey.polled else None

    def _open(self) -> Anchor:
        """Open the home, which must be the same directory as ever."""
        try:
            anchor = self._home()
        except (Absent, Refused, OSError, ValueError):
            raise HomeGone from None
        found = os.fstat(anchor.root.fd)
        identity = found.st_dev, found.st_ino
        if self._identity not in (None, identity):
            # Landlock lets this process read the old one only, so a new process must look at the new one.
            os.close(anchor.root.fd)
            raise HomeGone
        self._identity = identity
        return anchor

    def _watch(self, directory: int, *, busy: bool) -> int:
        """Watch one open directory, or have it polled."""
        if self._source is None or self._remote(directory):
            return POLLED
        return self._source.add(directory, busy=busy)


def wait_for(wanted: Mapping[int, int], seconds: float | None) -> Mapping[int, int]:
    """Wait for descriptors; None: for ever."""
    poll = select.poll()
    for descriptor, events in wanted.items():
        poll.register(descriptor, events)
    return dict(poll.poll(None if seconds is None else int(seconds * 1000) + 1))
