# SPDX-License-Identifier: Apache-2.0
"""The limits of design 3, as setrlimit gets them and as the kernel holds a process to them."""

import os
import resource

import pytest

from halod.roles import limits
from tests.support.roles import in_child

GIB = 1024**3


def test_the_defaults_are_those_of_the_design():
    default = limits.Limits()
    assert (default.wall, default.workers, default.answer) == (20.0, 2, 1024 * 1024)
    rows = {kind: soft for kind, soft, _ in limits.kernel_limits(limits.Limits(watch_memory=False))}
    assert rows == {
        resource.RLIMIT_CPU: 15,
        resource.RLIMIT_AS: GIB,
        resource.RLIMIT_NOFILE: 128,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: 0,
    }


def test_where_memory_is_watched_the_kernel_is_not_asked():
    rows = limits.kernel_limits(limits.Limits(watch_memory=True))
    assert resource.RLIMIT_AS not in {kind for kind, _, _ in rows}


@pytest.mark.parametrize(
    ("wanted", "present", "expected"),
    [(15, resource.RLIM_INFINITY, 15), (15, 20, 15), (15, 10, 10), (0, 0, 0)],
)
def test_a_hard_limit_is_never_raised(wanted, present, expected):
    assert limits.lowered(wanted, present) == expected


def test_the_limits_hold_for_good():
    def applied():
        limits.apply(limits.Limits(watch_memory=False))
        kinds = (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)
        return [resource.getrlimit(kind) for kind in kinds]

    assert in_child(applied) == [(15, 16), (GIB, GIB), (128, 128), (0, 0)]


def test_a_lower_limit_of_the_caller_stays():
    def applied():
        resource.setrlimit(resource.RLIMIT_NOFILE, (50, 60))
        limits.apply(limits.Limits())
        return resource.getrlimit(resource.RLIMIT_NOFILE)

    assert in_child(applied) == (60, 60)


def test_resident_memory_of_a_process_is_known_in_bytes():
    read = limits.resident_reader()
    assert 1024**2 < read(os.getpid()) < 16 * GIB
    assert read(2**22 + 1) == 0


def test_a_system_without_a_way_to_ask_says_unknown():
    assert limits.resident_reader("sunos5")(os.getpid()) == 0
