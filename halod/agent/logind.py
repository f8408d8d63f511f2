# SPDX-License-Identifier: Apache-2.0
"""Who sits at this machine, and who is logged in: logind, then its files, then the login records; macOS.

libsystemd reads logind's files below /run/systemd and speaks to nobody (sd-login(3)); it is loaded when it is
there. Each source gives uids; a source that cannot be asked gives none, and the next one is.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

USERS: Final = "/run/systemd/users"
CONSOLE: Final = "/dev/console"
_GRAPHICAL: Final = frozenset({"x11", "wayland", "mir"})
_MOST: Final = 64 * 1024


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session of logind. `kind` is its class, `type` its type, `seat` its seat or ""."""

    uid: int
    active: bool
    kind: str = "user"
    type: str = ""
    seat: str = ""


def at_console(sessions: Iterable[Session]) -> list[int]:
    """Give the uids of active sessions of people that are graphical or on a seat, graphical ones first."""
    found = [
        session
        for session in sessions
        if session.active and session.kind == "user" and (session.type in _GRAPHICAL or session.seat)
    ]
    found.sort(key=lambda session: (session.type not in _GRAPHICAL, session.seat != "seat0", session.uid))
    return list(dict.fromkeys(session.uid for session in found))


def sessions() -> list[Session]:
    """Ask libsystemd for all sessions; none when it is not there."""
    try:
        library: Any = ctypes.CDLL("libsystemd.so.0")
        libc: Any = ctypes.CDLL(None)
        libc.free.argtypes = (ctypes.c_void_p,)
        return [_session(library, libc, name) for name in _names(library, libc)]
    except (OSError, AttributeError, ValueError):
        return []


def _names(library: Any, libc: Any) -> list[bytes]:  # noqa: ANN401 - what ctypes gives
    array = ctypes.POINTER(ctypes.c_void_p)()
    count = library.sd_get_sessions(ctypes.byref(array))
    names = []
    for at in range(max(count, 0)):
        pointer = array[at]
        if pointer:
            names.append(ctypes.string_at(pointer))
            libc.free(pointer)
    libc.free(ctypes.cast(array, ctypes.c_void_p))  # free(3) takes a null pointer
    return names


def _session(library: Any, libc: Any, name: bytes) -> Session:  # noqa: ANN401 - what ctypes gives
    uid = ctypes.c_uint32(0)
    known = library.sd_session_get_uid(name, ctypes.byref(uid)) >= 0
    return Session(
        uid=uid.value,
        active=known and library.sd_session_is_active(name) > 0,
        kind=_text(library.sd_session_get_class, libc, name),
        type=_text(library.sd_session_get_type, libc, name),
        seat=_text(library.sd_session_get_seat, libc, name),
    )


def _text(call: Any, libc: Any, name: bytes) -> str:  # noqa: ANN401 - what ctypes gives
    pointer = ctypes.c_void_p()
    if call(name, ctypes.byref(pointer)) < 0 or not pointer.value:
        return ""
    text = ctypes.string_at(pointer).decode("ascii", "replace")
    libc.free(pointer)
    return text


def user_files(directory: str = USERS) -> list[tuple[int, bool]]:
    """Give the users that logind keeps a file of: the uid, and whether one of their sessions has a seat."""
    found = []
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    for name in sorted(names):
        if name.isascii() and name.isdecimal() and len(name) < 11:
            fields = _fields(os.path.join(directory, name))
            active = fields.get("STATE") == "active" and bool(fields.get("ACTIVE_SEATS"))
            found.append((int(name), active))
    return found


def _fields(path: str) -> dict[str, str]:
    """Read KEY=VALUE lines."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return {}
    try:
        text = os.read(descriptor, _MOST).decode("utf-8", "replace")
    except OSError:
        return {}
    finally:
        os.close(descriptor)
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value.strip('"') for key, _, value in pairs}


def login_records() -> list[str]:
    """Give the names that utmp has on a terminal of this machine; empty on distributions without utmp."""
    import psutil

    found = []
    for user in psutil.users():
        terminal = user.terminal or ""
        local = not user.host or user.host.startswith(":")
        if terminal.startswith(":") or (local and terminal.startswith("tty")):
            found.append(user.name)
    return list(dict.fromkeys(found))


def console_owner(path: str = CONSOLE) -> list[int]:
    """Give the owner of the console: on macOS the person at the screen, root at the login window."""
    try:
        return [os.stat(path).st_uid]
    except OSError:
        return []


class Seats:
    """The sources in their order; tests hand in their own."""

    def __init__(
        self,
        *,
        platform: str = sys.platform,
        ask: Callable[[], Sequence[Session]] = sessions,
        users: str = USERS,
        records: Callable[[], Sequence[str]] = login_records,
        console: str = CONSOLE,
    ) -> None:
        self._platform = platform
        self._ask = ask
        self._users = users
        self._records = records
        self._console = console

    def people(self, uid_of: Callable[[str], int | None]) -> list[int]:
        """Give the uids of those at the machine, never 0; `uid_of` looks up a name of the login records."""
        if self._platform == "darwin":
            return [uid for uid in console_owner(self._console) if uid]
        found = at_console(self._ask())
        if not found:
            found = [uid for uid, seated in user_files(self._users) if seated]
        if not found:
            found = [uid for name in self._records() if (uid := uid_of(name)) is not None]
        return [uid for uid in dict.fromkeys(found) if uid]

    def logged_in(self) -> list[int]:
        """Give the uids of all whom logind knows, at the machine or not."""
        known = [session.uid for session in self._ask()] + [uid for uid, _ in user_files(self._users)]
        return sorted({uid for uid in known if uid})
