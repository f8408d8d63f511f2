# SPDX-License-Identifier: Apache-2.0
"""The device id: stable, one per machine id, and not the machine id."""

import sys

import pytest

from halod import device

linux = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no machine-id file")
MACHINE = "0123456789abcdef0123456789abcdef"


def write(path, text):
    path.write_bytes(text)
    return str(path)


@linux
def test_the_id_is_stable_and_hides_the_machine_id(tmp_path):
    """The same file gives the same 64 hex digits, which do not contain the machine id."""
    file = write(tmp_path / "machine-id", MACHINE.encode() + b"\n")
    first = device.device_id((file,))
    assert first == device.device_id((file,))
    assert len(first) == 64
    assert MACHINE not in first


@linux
def test_spelling_does_not_matter(tmp_path):
    """Upper case, hyphens and a missing line end are the same machine."""
    plain = write(tmp_path / "a", MACHINE.encode() + b"\n")
    spelled = write(tmp_path / "b", b"01234567-89AB-CDEF-0123-456789ABCDEF")
    assert device.device_id((plain,)) == device.device_id((spelled,))


@linux
@pytest.mark.parametrize("text", [b"", b"uninitialized\n", b"0" * 32, b"\xff\xfe", b"0123", b"g" * 32])
def test_what_is_no_machine_id_gives_none(tmp_path, text):
    """An empty, unset or broken file counts as no id."""
    assert device.device_id((write(tmp_path / "machine-id", text),)) == ""


@linux
def test_the_second_file_is_used_when_the_first_has_none(tmp_path):
    """The D-Bus copy stands in for a missing or empty machine id."""
    second = write(tmp_path / "dbus", MACHINE.encode())
    empty = write(tmp_path / "empty", b"")
    want = device.device_id((second,))
    assert device.device_id((str(tmp_path / "absent"), empty, str(tmp_path), second)) == want != ""


@linux
def test_no_file_at_all_gives_an_empty_id(tmp_path):
    """A machine without an id is reported without one."""
    assert device.device_id((str(tmp_path / "absent"),)) == ""


def test_systems_have_the_names_of_a_status():
    """Not those of Python."""
    assert (device.os_name("darwin"), device.os_name("linux")) == ("macos", "linux")
