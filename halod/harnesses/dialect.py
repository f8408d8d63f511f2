# SPDX-License-Identifier: Apache-2.0
"""How a harness spells a server entry, and where it keeps such entries: the types of the table.

Everything here is data. A harness whose dialect is known needs one entry in a `table_*` module and no code;
`entries` reads an entry by its `Dialect`, `reader` walks a file by its `Location`.
"""

from typing import Literal

import msgspec

from halod.definition import Scope
from halod.harnesses.model import Role

Both = Literal["worse", "url", "command", "type-else-command", "type-stdio-else-url"]
"""What the harness makes of an entry with a command and a URL; "worse" where that is not known."""

Shape = Literal["plain", "zed", "goose", "cline", "halo"]
"""Which rearrangement an entry needs before it can be read like any other (`shapes`)."""

Reader = Literal[
    "tables",
    "opencode",
    "manifest",
    "catalogue",
    "skill",
    "desktop",
    "opaque",
    "database",
    "jetbrains",
    "openhands",
]
"""Which function of `reader` walks the file."""

Confidence = Literal["A", "B", "C", "D"]

STDIO_WORDS = frozenset({"stdio", "local"})
HTTP_WORDS = frozenset(
    {
        "http",
        "remote",
        "sse",
        "streamable",
        "streamable-http",
        "streamableHttp",
        "streamable_http",
        "websocket",
        "ws",
    }
)


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """The spelling of one entry (harnesses.md, "Cross-cutting rules").

    `command`, `urls`, `cwd` and `types` are keys in order of preference. `env` are maps of names to values,
    `env_names` lists of names whose values come from elsewhere. `array` allows the command as a list with its
    arguments; `split` allows the arguments as one quoted string. `typed` says that the harness goes by the
    type, so that an entry whose type lacks its half is no server. `disabled` and `enabled` are the keys that
    the harness honours, "" for none. An entry that holds nothing but `toggles` switches a server that is
    defined elsewhere.

    `ordered` says that the harness is known to take the first of several URL keys; otherwise each URL is judged.
    `nullish`: a key that is there decides, be it empty (`a ?? b`). `appended`: `args` count behind a command
    that is a list. `folded`: keys have no case (Go). `substitutes`: a shell expands the values, so that `$(...)` in
    one runs a program.
    """

    command: tuple[str, ...] = ("command",)
    args: str = "args"
    env: tuple[str, ...] = ("env",)
    env_names: tuple[str, ...] = ()
    cwd: tuple[str, ...] = ("cwd",)
    urls: tuple[str, ...] = ("url",)
    types: tuple[str, ...] = ("type",)
    stdio_words: frozenset[str] = STDIO_WORDS
    http_words: frozenset[str] = HTTP_WORDS
    both: Both = "worse"
    typed: bool = False
    array: bool = False
    split: bool = False
    disabled: str = ""
    enabled: str = ""
    toggles: frozenset[str] = frozenset()
    ordered: bool = False
    nullish: bool = False
    appended: bool = False
    folded: bool = False
    substitutes: bool = False
    shape: Shape = "plain"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One or more paths of a harness that are read alike; `{a,b}` stands for alternatives.

    `tables` are JSON-Pointer-like: `*` any key, `x[]` and `[]` list items, `/` the whole file when no other
    table is present. `also` names what else of the file is needed. `off` is a list of switched-off names
    beside a table. `first` takes only the first table that is present. `single` allows a file that is one
    entry, named by the file. `reserved` are names that the harness keeps for itself.

    `shadow` is a file that, when it exists, makes the harness ignore this one. `migrated` is a mark that the
    harness left when it moved the servers away. `dead` tables are read though the harness does not: what
    stands there is switched off. `pointed` places are read only where another file points to them.
    """

    path: str
    role: Role = "user"
    format: str = "json"
    tables: tuple[str, ...] = ("/mcpServers",)
    confidence: Confidence = "A"
    scope: Scope | Literal[""] = ""
    dialect: Dialect | None = None
    reader: Reader = "tables"
    also: tuple[str, ...] = ()
    off: str = ""
    first: bool = False
    single: bool = False
    shadow: str = ""
    migrated: str = ""
    reserved: frozenset[str] = frozenset()
    pointed: bool = False
    dead: tuple[str, ...] = ()


class Harness(msgspec.Struct, frozen=True, kw_only=True):
    """One AI tool: its id (harnesses.json), its name for people, its dialect and its places."""

    id: str
    name: str
    places: tuple[Place, ...]
    dialect: Dialect = Dialect()
    aliases: tuple[str, ...] = ()


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """One path pattern of one harness, numbered by its position in `table.LOCATIONS`.

    `path` starts with `~/`; `*` and `**` are its only wildcards. `folder` is the part without `~/` above its
    first wildcard, or above its last component. The other fields are those of `Place`.
    """

    harness: str
    path: str
    folder: str
    role: Role
    format: str
    tables: tuple[str, ...]
    confidence: Confidence
    scope: Scope
    dialect: Dialect
    place: Place
