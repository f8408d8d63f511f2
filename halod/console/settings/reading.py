# SPDX-License-Identifier: Apache-2.0
"""halo-server.toml to checked Settings.

Invariants:

1. `parse` gives Settings without a fault, or raises one UsageError with every fault there is, one a line.
2. Files that settings name are looked at here, so that a console does not start and fail at the first login.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from halod.console.settings.fields import TABLES, Field
from halod.console.settings.kinds import Fault, called
from halod.console.settings.model import Settings
from halod.console.settings.secret import private_line
from halod.console.settings.words import nearest, shown
from halod.errors import UsageError

MAX_BYTES: Final = 256 * 1024
_SECRETS: Final = re.compile(r"(?:.*_)?(?:token|secret|password|passphrase|api_key|private_key|enroll_key)")
_HEADER: Final = re.compile(r"\s*\[\[?\s*([A-Za-z0-9_-]+)\s*\]\]?")
_KEY: Final = re.compile(r'\s*"?([A-Za-z0-9_-]+)"?\s*=')

Document = dict[str, Any]


def read(path: str) -> Settings:
    """Read a file. Raises UsageError."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno or 0) if isinstance(error, OSError) else "no path"
        raise UsageError(f"cannot read the settings {path}: {why}") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"the settings {path} are larger than {MAX_BYTES // 1024} KiB")
    return parse(data, path)


def parse(data: bytes, name: str, *, files: bool = True) -> Settings:
    """Check the bytes of a file; `name` is what messages call it; `files` says whether to look at what it names.

    Raises:
        UsageError: with every fault.
    """
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        document = tomllib.loads(text)
    except UnicodeDecodeError:
        raise UsageError(f"{name}: is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: is no valid TOML ({_where(str(error))})") from None
    except (RecursionError, ValueError):
        raise UsageError(f"{name}: is nested too deeply, or holds a number without end") from None
    reader = _Reader(name, text, files=files)
    settings = reader.settings(document)
    if reader.faults:
        lines = [
            f"{name}:{line}: {words}" if line else f"{name}: {words}" for line, words in sorted(reader.faults)
        ]
        raise UsageError("\n".join(["the settings have faults:", *lines]))
    return settings


def _where(message: str) -> str:
    """Keep of a parser's message where the fault is: the rest may quote the file."""
    found = re.search(r"\(at (line [0-9]+, column [0-9]+|end of document)\)", message)
    return f"at {found[1]}" if found else "somewhere"


class _Reader:
    def __init__(self, name: str, text: str, *, files: bool) -> None:
        self.faults: list[tuple[int, str]] = []
        self._name = name
        self._lines = _locate(text)
        self._files = files

    def settings(self, document: Document) -> Settings:
        """Read everything; what is faulty is left out, and counts in `faults`."""
        tables = {name: table for name, table in TABLES.items() if name}
        top = {key: value for key, value in document.items() if key not in tables}
        values = self._table("", 0, top, TABLES[""].fields, known=(*TABLES[""].fields, *tables))
        for name, table in tables.items():
            given = document.get(name, [] if table.many else None)
            if given is None:
                continue
            if table.many:
                key = "webhooks"
                values[key] = tuple(self._many(name, given))
            elif isinstance(given, dict):
                read_values = self._table(name, 0, given, table.fields)
                if not self._missing(name, 0, read_values):
                    values[name] = table.kind(**read_values)
            else:
                self._fault(name, 0, "", f"expected a table ([{name}]), got {called(given)}")
        self._together(values)
        self._provider(values)
        return Settings(**{"database_url": "", **values})

    def _many(self, name: str, given: object) -> list[Any]:
        if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
            self._fault(name, 0, "", f"expected tables ([[{name}]]), got {called(given)}")
            return []
        found = []
        for at, item in enumerate(given):
            values = self._table(name, at, item, TABLES[name].fields)
            if not self._missing(name, at, values):
                found.append(TABLES[name].kind(**values))
        return found

    def _table(
        self, table: str, at: int, given: Document, fields: Mapping[str, Field], known: tuple[str, ...] = ()
    ) -> Document:
        values: Document = {}
        for key, value in given.items():
            field = fields.get(key)
            if field is None:
                self._unknown(table, at, key, known or tuple(fields))
                continue
            try:
                values[key] = field.read(value)
                self._look(key, field, values[key])
            except Fault as fault:
                values.pop(key, None)
                self._fault(table, at, key, str(fault))
            except UsageError as error:
                self._fault(table, at, key, error.message + (f"; {error.advice}" if error.advice else ""))
        return values

    def _look(self, key: str, field: Field, value: Any) -> None:  # noqa: ANN401 - whatever the kind gives
        """Look at a file that is named. Raises Fault or UsageError."""
        if not self._files or field.form != "path":
            return
        if field.secret and key != "tls_key":
            private_line(value, "the file")
            return
        try:
            with open(value, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
        except OSError as error:
            raise Fault(f"cannot be read: {os.strerror(error.errno or 0)}") from None
        if field.secret and mode & 0o007:
            raise Fault(f"can be read by every account; chmod 600 {value}")

    def _missing(self, table: str, at: int, values: Document) -> bool:
        missing = [key for key, field in TABLES[table].fields.items() if field.must and key not in values]
        for key in missing:
            if (table, at, key) not in self._lines:
                self._fault(table, at, "", f"needs {key}")
        return bool(missing)

    def _unknown(self, table: str, at: int, key: str, known: tuple[str, ...]) -> None:
        near = nearest(key, known)
        if _SECRETS.fullmatch(key.lower().replace("-", "_")):
            near = "; no secret stands in the settings: put it into a file, mode 0600, and name that" + near
        self._fault(table, at, key, f"unknown key {shown(key)}{near}", named=False)

    def _together(self, values: Document) -> None:
        """Record what is wrong with keys that are right each for itself."""
        if "database_url" in values and "database_url_file" in values:
            self._fault("", 0, "database_url_file", "database_url is set too; only one of them can be used")
        if "tls_key" in values and "tls_cert" not in values:
            self._fault("", 0, "tls_key", "needs tls_cert, the certificate it belongs to")
        public = values.get("public_url", "")
        if values.get("proxies") and not public:
            self._fault("", 0, "proxies", "needs public_url: how browsers reach the proxy")
        if values.get("tls_cert") and urlsplit(public).scheme == "http":
            self._fault("", 0, "public_url", "is http, but tls_cert makes the console speak https")
        if values.get("session_idle", 0) > values.get(
            "session_absolute", Settings(database_url="").session_absolute
        ):
            self._fault("", 0, "session_idle", "is longer than session_absolute")
        names = [hook.name for hook in values.get("webhooks", ())]
        for at, name in enumerate(names):
            if name in names[:at]:
                self._fault("webhook", at, "name", "another webhook has this name")

    def _provider(self, values: Document) -> None:
        oidc = values.get("oidc")
        if oidc is None:
            return
        if not values.get("public_url"):
            self._fault("oidc", 0, "", "needs public_url: where the provider sends people back to")
        if "openid" not in oidc.scopes:
            self._fault("oidc", 0, "scopes", 'must hold "openid"')
        if not (oidc.viewer_groups or oidc.operator_groups or oidc.admin_groups):
            self._fault(
                "oidc",
                0,
                "",
                "needs viewer_groups, operator_groups or admin_groups: nobody could come in",
            )

    def _fault(self, table: str, at: int, key: str, words: str, *, named: bool = True) -> None:
        where = f"{table}.{key}" if table and key and named else key if key and named else table
        places = ((table, at, key), (table, at, ""), ("", 0, table), (key, 0, ""))
        line = next((self._lines[place] for place in places if place in self._lines), 0)
        self.faults.append((line, f"{where}: {words}" if where else words))


def _locate(text: str) -> dict[tuple[str, int, str], int]:
    """Find the lines of tables and keys: (table, n-th of that name, key), with "" for the table's own line."""
    found: dict[tuple[str, int, str], int] = {}
    table, at, seen = "", 0, dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            table = header[1]
            at = seen[table] = seen.get(table, -1) + 1
            found[table, at, ""] = number
        elif key:
            found.setdefault((table, at, key[1]), number)
    return found
