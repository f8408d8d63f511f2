# SPDX-License-Identifier: Apache-2.0
"""What is asked of Landlock, by ABI version, and what each refusal of the kernel means."""

import errno
import os
import struct

import pytest

from halod.roles import landlock


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (1, [0x1FFF]),
        (2, [0x3FFF]),
        (3, [0x7FFF]),
        (4, [0x7FFF, 3]),
        (5, [0xFFFF, 3]),
        (6, [0xFFFF, 3, 3]),
        (7, [0xFFFF, 3, 3]),
        (12, [0xFFFF, 3, 3]),
    ],
)
def test_each_version_is_asked_for_all_it_knows_and_no_more(version, expected):
    assert list(struct.unpack(f"={len(expected)}Q", landlock.ruleset(version))) == expected


def _failing(number, at=444):
    def call(which, *_arguments):
        if which == at:
            raise OSError(number, "syscall")
        return 9

    return call


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_kernel_without_landlock_has_version_0_and_restricts_nothing(number):
    assert landlock.abi(_failing(number)) == 0
    assert landlock.restrict(7, (3,), _failing(number)) is False


def test_version_0_restricts_nothing_and_asks_nothing():
    assert landlock.restrict(0, (3,), _failing(errno.EFAULT)) is False


@pytest.mark.parametrize("at", [444, 445, 446])
def test_a_kernel_that_has_landlock_and_refuses_is_an_error(at):
    with pytest.raises(OSError) as raised:
        landlock.restrict(7, (3,), _failing(errno.EINVAL, at))
    assert raised.value.errno == errno.EINVAL


def test_every_directory_gets_a_rule_before_the_process_is_restricted():
    calls = []

    def call(which, *arguments):
        calls.append((which, arguments[:2]))
        return 9

    closed = []
    assert landlock.restrict(7, (3, 4), call, closed.append) is True
    assert closed == [9]
    assert [which for which, _ in calls] == [444, 445, 445, 446]
    assert calls[1][1] == (9, 1)
    assert calls[3][1] == (9, 0)


def test_the_running_kernel_answers_with_a_version():
    assert landlock.abi() >= 0
    assert os.uname().sysname == "Linux" or landlock.abi() == 0
