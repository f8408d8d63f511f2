# SPDX-License-Identifier: Apache-2.0
"""The device id: stable, not the machine id itself, and no secret (design 8).

HMAC-SHA256 of the machine id under a fixed application key, as machine-id(5) asks of programs that show an id
outside the machine. No program is started; on macOS one libc call gives the platform's UUID.
"""

import hmac
import os
import sys

_APPLICATION_KEY = bytes.fromhex("9f1d6a0c5b7e4e2f8c34d1a7e06b92f5")
"""Sets the ids of halod apart from those of other programs. It is in the source, so it protects nothing."""

_MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_LONGEST = 128


def os_name(platform: str = sys.platform) -> str:
    """Give a status's word for this system."""
    return "macos" if platform == "darwin" else "linux"


def device_id(files: tuple[str, ...] = _MACHINE_ID_FILES) -> str:
    """Give the device id, 64 lower-case hex digits; "" when the machine has no id.

    `files` are tried in turn for a machine id. All forms of one id (case, hyphens) give one device id.
    """
    machine = _macos_uuid() if sys.platform == "darwin" else _from_files(files)
    if not machine:
        return ""
    return hmac.digest(_APPLICATION_KEY, machine.encode("ascii"), "sha256").hex()


def _from_files(files: tuple[str, ...]) -> str:
    for path in files:
        found = _normal(_read(path))
        if found:
            return found
    return ""


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _LONGEST)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _normal(text: bytes) -> str:
    """Give 32 lower-case hex digits, or "" for anything else, such as the word of an image never started."""
    digits = text.strip().replace(b"-", b"").lower()
    if len(digits) != 32 or digits.strip(b"0123456789abcdef") or digits == b"0" * 32:
        return ""
    return digits.decode("ascii")


def _macos_uuid() -> str:
    """Give IOPlatformUUID, which gethostuuid(2) returns; "" when the call is refused or missing."""
    import ctypes

    class Timespec(ctypes.Structure):
        _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    uuid = (ctypes.c_ubyte * 16)()
    wait = Timespec(1, 0)
    try:
        failed = ctypes.CDLL(None).gethostuuid(uuid, ctypes.byref(wait))
    except (AttributeError, OSError):
        return ""
    return "" if failed else _normal(bytes(uuid).hex().encode("ascii"))
