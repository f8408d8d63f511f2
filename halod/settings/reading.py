# SPDX-License-Identifier: Apache-2.0
"""halod.toml and managed preferences to checked Settings.

Precedence, key by key: managed preferences (macOS), then the file, then the defaults. `policy.path` and
`policy.url` exclude each other, as do `report.token_file` and `report.enroll_key_file`: a managed one of a
pair replaces the file's other one. A list is replaced whole.

Invariants:

1. `build` is pure and gives Settings without a fault, or raises SettingsError with every fault there is.
2. `load` reads two files of root's at most, MAX_BYTES of each.
"""

import errno
import os
import posixpath
import stat
import sys
from typing import Any, Final, cast

import msgspec
import tomli

from halod.errors import UsageError
from halod.settings import model
from halod.settings.fields import Reader
from halod.settings.model import TABLES, Problem, Settings, SettingsError
from halod.settings.values import Source, Value, called

MAX_BYTES: Final = 256 * 1024
_TYPES: Final[dict[str, type[msgspec.Struct]]] = {
    "device": model.Device,
    "policy": model.Policy,
    "report": model.Report,
    "scan": model.Scan,
    "log": model.Log,
    "state": model.State,
}
_EITHER: Final = (("policy", "path", "url"), ("report", "token_file", "enroll_key_file"))

Merged = dict[str, dict[str, Value]]


def load(
    path: str | None = None,
    *,
    platform: str = sys.platform,
    root: bool | None = None,
    managed: str | None = None,
) -> Settings:
    """Read and check the settings.

    Args:
        path: the file that `--config` names; None: the system's own place, where it may be missing when
            there are managed preferences.
        platform: as `sys.platform`.
        root: whether the service runs as root, which refuses relative paths; None: whether this process does.
        managed: the file of managed preferences; None: the system's own, "" for none.

    Raises:
        SettingsError: there are faults.
        UsageError: a file cannot be read, or there are no settings at all.
    """
    places = model.places(platform)
    reader = Reader(platform=platform, root=os.geteuid() == 0 if root is None else root)
    managed_file = places.managed if managed is None else managed
    preferences = read_file(managed_file, missing_ok=True) if managed_file else None
    file = posixpath.abspath(path or places.settings)
    data = read_file(file, missing_ok=path is None and preferences is not None)
    return build(
        None if data is None else (file, data),
        None if preferences is None else (managed_file, preferences),
        reader,
    )


def parse(data: bytes, name: str, *, platform: str = sys.platform, root: bool = True) -> Settings:
    """Check the bytes of a halod.toml; `name` is what messages call it. Raises SettingsError."""
    return build((name, data), None, Reader(platform=platform, root=root))


def build(file: tuple[str, bytes] | None, preferences: tuple[str, bytes] | None, reader: Reader) -> Settings:
    """Make Settings of the file and the managed preferences, each as (name, bytes). Raises SettingsError."""
    merged: Merged = {table: {} for table in TABLES}
    if file is not None:
        _merge(merged, *decode_toml(file[0], file[1], reader), reader)
    if preferences is not None:
        from halod.settings.managed import decode

        _merge(merged, *decode(preferences[0], preferences[1], reader), reader)
    tables: dict[str, Any] = {table: reader.table(_TYPES[table], merged[table]) for table in TABLES}
    _check_together(merged, reader)
    if reader.problems:
        raise SettingsError(reader.problems)
    own_state = tables["state"].get("dir", "")
    tables["device"].setdefault("agent_account", reader.places.account)
    tables["state"].setdefault("dir", reader.places.state)
    return Settings(
        **{table: cast("Any", _TYPES[table])(**values) for table, values in tables.items()},
        sources=tuple(name for name, _ in (item for item in (file, preferences) if item is not None)),
        run_dir=model.run_below(own_state) if own_state else reader.places.run,
    )


def decode_toml(name: str, data: bytes, reader: Reader) -> tuple[Source, dict[str, Any]]:
    """Decode TOML; a fault of the text itself is recorded, and the file then counts as empty."""
    if len(data) > MAX_BYTES:
        reader.problems.append(
            Problem(name, 1, f"larger than {MAX_BYTES // 1024} KiB; these are no settings")
        )
        return Source(name), {}
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        reader.problems.append(Problem(name, line, "is not UTF-8"))
        return Source(name), {}
    try:
        return Source(name, text), tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        reader.problems.append(Problem(name, error.lineno, f"is no valid TOML: {error.msg}"))
    except (RecursionError, ValueError):  # ValueError: a number of more than 4,300 digits
        reader.problems.append(Problem(name, 1, "is nested too deeply, or holds a number without end"))
    return Source(name), {}


def _merge(merged: Merged, source: Source, document: dict[str, Any], reader: Reader) -> None:
    """Lay a document over what is there already, key by key."""
    for name, table in document.items():
        value = Value(table, source, (name,))
        if name not in TABLES:
            reader.known(TABLES, value, "table")
        elif not isinstance(table, dict):
            reader.fault(value, f"expected a table ([{name}]), got {called(table)}")
        else:
            _merge_table(merged[name], value, _TYPES[name].__struct_fields__, reader)


def _merge_table(into: dict[str, Value], table: Value, names: tuple[str, ...], reader: Reader) -> None:
    given = {key: table.member(key, item) for key, item in cast("dict[str, object]", table.value).items()}
    for of, *pair in _EITHER:
        if of == table.path[0] and any(key in given for key in pair):
            for key in pair:
                into.pop(key, None)
    for key, value in given.items():
        if key in names:
            into[key] = value
        else:
            reader.known(names, value, "key")


def _check_together(merged: Merged, reader: Reader) -> None:
    """Record what is wrong with keys that are right each for itself."""
    for table, one, other in _EITHER:
        if one in merged[table] and other in merged[table]:
            reader.fault(merged[table][other], f"{table}.{one} is set too; only one of them can be used")
    policy, report = merged["policy"], merged["report"]
    keys = policy.get("public_keys")
    if "url" in policy and (keys is None or keys.value == []):
        reader.fault(
            policy["url"], "needs policy.public_keys: a fetched policy counts only when it is signed"
        )
    if "client_key" in report and "client_cert" not in report:
        reader.fault(report["client_key"], "needs report.client_cert, the certificate it belongs to")
    if "url" not in report:
        for key in ("token_file", "enroll_key_file"):
            if key in report:
                reader.fault(report[key], "needs report.url: there is nobody to show it to")


def read_file(path: str, *, missing_ok: bool) -> bytes | None:
    """Read a file, one byte more than MAX_BYTES at most; None when it may be missing and is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(f"the settings {path} are no regular file", advice="name a file")
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if missing_ok:
            return None
        raise UsageError(
            f"there are no settings at {path}",
            advice="copy the sample halod.toml there, or name a file with --config",
        ) from None
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else errno.EINVAL
        raise UsageError(
            f"cannot read the settings {path}: {os.strerror(number or errno.EIO)}",
            advice="check the path and that this account may read it",
        ) from None
