# SPDX-License-Identifier: Apache-2.0
"""How a forked child becomes a watcher: the order of its steps, and what it says when one cannot be taken."""

import os
import resource

import pytest

from halod.roles import watching
from halod.roles.confine import ANSWER_FD
from halod.roles.limits import Limits
from halod.roles.protocol import Target
from tests.support.recorder import Recorder
from tests.support.roles import in_child

STEPS = [
    "detach",
    "descriptors",
    "load",
    "identity",
    "undebuggable",
    "no_new_privileges",
    "follow",
    "landlock",
    "seccomp",
]


def become(system, home, *, known=True):
    """Run `become` in a child; give the steps and what was written for the supervisor."""

    def load():
        system.steps.append("load")
        return lambda *_: system.steps.append("main")

    def work():
        reader, writer = os.pipe()
        if writer != ANSWER_FD:  # never the descriptor that reads
            reader = os.dup(reader) if reader == ANSWER_FD else reader
            os.dup2(writer, ANSWER_FD)
            os.close(writer)
        target = Target(1, os.getuid(), os.getgid(), (), home, known)
        watching.become(system, load, target, b"", (70, 71, 72))
        os.close(ANSWER_FD)
        return system.steps, os.read(reader, 100)

    return in_child(work, keep=[])


def test_everything_is_in_force_before_it_watches(tmp_path):
    """Imports while it may still read the library, limits and filter before the first look."""
    assert become(Recorder(), str(tmp_path)) == ([*STEPS, "main"], b"")


@pytest.mark.parametrize("missing", [{"landlock": False}, {"seccomp": False}])
def test_a_part_that_the_kernel_lacks_is_said_and_watched_without(tmp_path, missing):
    """Partly confined is better than unwatched, and it is told."""
    steps, said = become(Recorder(**missing), str(tmp_path))

    assert steps == [*STEPS, "main"]
    assert said == bytes((watching.PARTIAL, 0, 0))


def test_a_home_that_is_not_there_is_said_and_not_watched(tmp_path):
    """An unmounted home is no crash."""
    steps, said = become(Recorder(), str(tmp_path / "gone"))

    assert "main" not in steps
    assert said == bytes((watching.UNAVAILABLE, 0, 0))


def test_an_account_nobody_knows_is_not_watched_without_landlock(tmp_path):
    """An owner without a password entry needs it (design 3)."""
    steps, said = become(Recorder(landlock=False), str(tmp_path), known=False)

    assert "main" not in steps
    assert said == bytes((watching.UNAVAILABLE, 0, 0))


def test_the_limits_are_a_workers_without_processor_time():
    """A watcher lives for weeks: its processor time is not bounded, its files and memory are."""

    def work():
        before = resource.getrlimit(resource.RLIMIT_CPU)
        watching.limit(Limits())
        return before == resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_FSIZE)

    assert in_child(work) == (True, (0, 0))
