# SPDX-License-Identifier: Apache-2.0
"""What a watcher says, and that a reader who does not read costs nothing but the news."""

import os

import pytest

from halod.roles.watched.frames import Outbox
from halod.roles.watching import CHANGED, OVERFLOW, WATCHING
from tests.support.watching import frames


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def test_frames_are_a_kind_and_a_number(pipe):
    out = Outbox(pipe[1])
    out.put(WATCHING)
    out.put(CHANGED, 0x1234)
    assert out.waiting
    out.flush()
    assert not out.waiting
    assert os.read(pipe[0], 100) == bytes([WATCHING, 0, 0, CHANGED, 0x12, 0x34])


def test_what_waits_is_said_once(pipe):
    out = Outbox(pipe[1])
    for _ in range(1000):
        out.put(CHANGED, 7)
        out.put(OVERFLOW)
    out.flush()
    assert frames(os.read(pipe[0], 100)) == [("changed", 7), ("overflow", 0)]


def test_a_full_pipe_is_waited_for(pipe):
    out = Outbox(pipe[1])
    for location in range(65536):
        out.put(CHANGED, location)
    out.flush()
    assert out.waiting, "a pipe takes less than that"
    data = b""
    while out.waiting:
        data += os.read(pipe[0], 65536)
        out.flush()
    data += os.read(pipe[0], 65536)
    assert frames(data) == [("changed", location) for location in range(65536)]


def test_a_pipe_that_nobody_reads_any_more_is_told(pipe):
    out = Outbox(pipe[1])
    os.close(pipe[0])
    out.put(WATCHING)
    with pytest.raises(BrokenPipeError):
        out.flush()
