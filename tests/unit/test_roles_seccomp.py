# SPDX-License-Identifier: Apache-2.0
"""The filter, run in a small BPF machine of the test's own: what it says for both architectures."""

import errno
import os
import struct

import pytest

from halod.roles import seccomp, syscalls
from tests.support.roles import in_child

ALLOW = 0x7FFF0000
EPERM = 0x00050000 | errno.EPERM
KILL = 0x80000000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMN = {"x86_64": 0, "aarch64": 1}
MACHINES = sorted(AUDIT)


def judge(program, audit, number, *arguments):
    """Run classic BPF over one struct seccomp_data and give the filter's word."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, audit, 0, *padded)
    code = list(struct.iter_unpack("=HBBI", program))
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif operation == 0x06:
            return value
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: accumulator & value != 0,
            }[operation]
            at += if_true if holds else if_false


def word(machine, numbers, *arguments):
    return judge(seccomp.build(machine), AUDIT[machine], numbers[COLUMN[machine]], *arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_listed_call_is_refused_with_eperm(machine):
    for name, numbers in syscalls.DENIED.items():
        if numbers[COLUMN[machine]] >= 0:
            assert word(machine, numbers) == EPERM, name


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_stands_for_two_calls(machine):
    conditional = (syscalls.OPEN, syscalls.OPENAT, syscalls.FCNTL, syscalls.IOCTL, syscalls.PRLIMIT64)
    numbers = [row[COLUMN[machine]] for row in (*syscalls.DENIED.values(), *conditional)]
    present = [number for number in numbers if number >= 0]
    assert len(present) == len(set(present))


# read, write, close, fstat, lseek, mmap, munmap, brk, getdents64, readlinkat, exit_group, getrandom, clock_gettime
HARMLESS = [
    (0, 63), (1, 64), (3, 57), (5, 80), (8, 62), (9, 222), (11, 215), (12, 214),
    (217, 61), (267, 78), (231, 94), (318, 278), (228, 113),
]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("numbers", HARMLESS)
def test_what_a_reader_needs_is_allowed(machine, numbers):
    assert word(machine, numbers) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (os.O_RDONLY, ALLOW),
        (0o2000000 | 0o400000 | 0o4000, ALLOW),  # O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK
        (0o200000 | 0o2000000, ALLOW),  # O_DIRECTORY
        (os.O_WRONLY, EPERM),
        (os.O_RDWR, EPERM),
        (os.O_CREAT, EPERM),
        (os.O_TRUNC, EPERM),
        (0o20200000 | os.O_RDWR, EPERM),  # O_TMPFILE
    ],
)
def test_files_are_opened_for_reading_only(machine, flags, expected):
    assert word(machine, syscalls.OPENAT, 0, 0, flags) == expected
    if machine == "x86_64":
        assert word(machine, syscalls.OPEN, 0, flags) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_no_signal_is_sent_by_way_of_a_descriptor(machine):
    assert word(machine, syscalls.FCNTL, 5, 8) == EPERM  # F_SETOWN
    assert word(machine, syscalls.FCNTL, 5, 10) == EPERM  # F_SETSIG
    assert word(machine, syscalls.FCNTL, 5, 15) == EPERM  # F_SETOWN_EX
    assert word(machine, syscalls.FCNTL, 5, 1) == ALLOW  # F_GETFD
    assert word(machine, syscalls.IOCTL, 5, 0x8901) == EPERM  # FIOSETOWN
    assert word(machine, syscalls.IOCTL, 5, 0x541B) == ALLOW  # FIONREAD


@pytest.mark.parametrize("machine", MACHINES)
def test_limits_of_another_process_stay(machine):
    assert word(machine, syscalls.PRLIMIT64, 0, 7) == ALLOW
    assert word(machine, syscalls.PRLIMIT64, 4711, 7) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("audit", [0x40000003, 0x40000028, 0, 0xC0000015])
def test_another_calling_convention_ends_the_process(machine, audit):
    assert judge(seccomp.build(machine), audit, 39) == KILL


def test_x32_ends_the_process():
    program = seccomp.build("x86_64")
    assert judge(program, AUDIT["x86_64"], 0x40000000) == KILL
    assert judge(program, AUDIT["x86_64"], 0x40000000 + 41) == KILL
    assert judge(program, AUDIT["x86_64"], 0xFFFFFFFF) == KILL


def test_a_machine_that_is_not_known_has_no_filter():
    assert seccomp.build("riscv64") == b""
    assert seccomp.install(b"") is False


def _failing(number):
    def prctl(*_arguments):
        raise OSError(number, "prctl")

    return prctl


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS])
def test_a_kernel_without_seccomp_gives_false(number):
    assert seccomp.install(b"\0" * 8, _failing(number)) is False


def test_a_kernel_that_refuses_the_filter_is_an_error():
    with pytest.raises(OSError) as raised:
        seccomp.install(b"\0" * 8, _failing(errno.EACCES))
    assert raised.value.errno == errno.EACCES


def test_the_kernel_is_given_the_whole_program():
    calls = []
    program = seccomp.build("aarch64")
    assert seccomp.install(program, lambda *arguments: calls.append(arguments) or 0) is True
    ((option, mode, address),) = calls
    assert (option, mode) == (22, 2)
    assert address


@pytest.mark.skipif(
    seccomp.build(os.uname().machine) == b"" or os.uname().sysname != "Linux", reason="no filter"
)
def test_the_running_kernel_takes_the_filter():
    def confined():
        from halod.roles import libc

        libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
        installed = seccomp.install(seccomp.build(os.uname().machine))
        try:
            os.mkdir("/never")
        except PermissionError as error:
            return installed, error.errno
        return installed, 0

    assert in_child(confined) == (True, errno.EPERM)
