# SPDX-License-Identifier: Apache-2.0
"""What a device must not lose with its database: install id, token, enrolment, the newest policy version seen.

These lie in a file of their own, `device.json`, mode 0600, beside the database: a database that had to be
started anew costs no enrolment and allows no older policy, and it holds no secret. A file that does not decode
is moved aside (one copy), and a new install id is made: the device has to be enrolled again.
"""

import contextlib
import os
import secrets
from typing import Final, Literal

import msgspec

from halod.agent.files import NotRegular, read_small, replace

FILE_NAME: Final = "device.json"
_MOST: Final = 64 * 1024

Enrolment = Literal["none", "pending", "enrolled", "refused"]


class PolicyVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The newest signed policy that was taken from an organisation."""

    org: str
    version: int
    sha256: str


class Device(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One installation. `install_id` is 32 hex digits, random, made once; `token` is the server's, or ""."""

    install_id: str
    token: str = ""
    enrolment: Enrolment = "none"
    policy_org: str = ""
    policy_version: int = 0
    policy_sha256: str = ""
    """Of the newest signed policy that was taken: no older one is."""
    policy_others: tuple[PolicyVersion, ...] = ()
    """The same of organisations that `policy.org` named before: going back to one allows no older policy either."""

    def __repr__(self) -> str:
        """Give the type's name only: the token is a secret."""
        return "<Device>"


class DeviceFile:
    """The file in one state directory. Not for several threads at once: `State` holds its lock."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, FILE_NAME)
        self._device: Device | None = None
        self.was_reset = False

    def get(self) -> Device:
        """Give what the file says; make it when there is none.

        Raises:
            OSError: it cannot be read, or not be made: an install id that is not kept binds nothing.
        """
        if self._device is None:
            self._device = self._read() or self._write(Device(install_id=secrets.token_hex(16)))
        return self._device

    def update(self, device: Device) -> None:
        """Put `device` in place. Raises OSError, after which the old one still counts."""
        self._device = self._write(device)

    def peek(self) -> Device | None:
        """Give what the file says and change nothing; None when there is none that can be read."""
        try:
            data = read_small(self._path, _MOST)
            return None if data is None else msgspec.json.decode(data, type=Device)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def _read(self) -> Device | None:
        try:
            data = read_small(self._path, _MOST)
            return None if data is None else msgspec.json.decode(data, type=Device)
        except (msgspec.MsgspecError, UnicodeDecodeError, NotRegular):
            pass
        self.was_reset = True
        with contextlib.suppress(FileNotFoundError):
            os.replace(self._path, self._path + ".broken")
        return None

    def _write(self, device: Device) -> Device:
        replace(self._path, msgspec.json.encode(device))
        return device
