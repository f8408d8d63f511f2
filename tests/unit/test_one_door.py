# SPDX-License-Identifier: Apache-2.0
"""No code of the package opens a file another way than through `halod.home` (design 3).

Ruff's banned-api says the same while one types; this test also sees aliases and the built-in `open`.
"""

import ast
from pathlib import Path

import pytest

import halod

PACKAGE = Path(halod.__file__).parent

# Modules that may open files, each with the reason. None of them opens a path below an account's home.
DOORS = {
    "home/": "the door itself",
    "accounts.py": "the directory in which homes lie is listed, never a home",
    "device.py": "the machine id, and the install id that the agent keeps",
    "policy/load.py": "the policy file, placed by an administrator or named by the person who runs halo",
    "settings/": "halod.toml and managed preferences, root's",
    "check/": "the files that the settings name: policy, token, keys and the state directory, all of the service's",
    "agent/": "the state database, the token and the cached policy, in directories of the service",
    "service/": "units and jobs of the service manager, root's; the one place that starts programs",
    "cli/": "what the person names on the command line, and what halod prints to",
    "token/store.py": "tokens that halo itself keeps in its own state directory, of the person who runs it",
    "roles/": "/dev/null and /proc of halod's own processes; a home is opened through Home",
}

# Calls that open, list or copy files, by the dotted name that the imports resolve to.
OPENERS = {
    "open",
    "codecs.open",
    "gzip.open",
    "bz2.open",
    "lzma.open",
    "io.FileIO",
    "io.open",
    "io.open_code",
    "os.fdopen",
    "os.fwalk",
    "os.listdir",
    "os.open",
    "os.popen",
    "os.scandir",
    "os.walk",
    "posix.open",
    "pathlib.Path",
}
# Modules whose only use is to read, write or start something.
MODULES = {
    "dbm",
    "fileinput",
    "glob",
    "linecache",
    "mmap",
    "pathlib",
    "pickle",
    "shelve",
    "shutil",
    "subprocess",
    "tarfile",
    "tempfile",
    "zipfile",
}
METHODS = {"read_text", "read_bytes", "iterdir", "rglob"}


def imported(tree: ast.AST) -> dict[str, str]:
    """Give what each imported name stands for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """Give the full name of `a.b.c`, with its first part as imported; "" for other expressions."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id).removeprefix("builtins.")
    if isinstance(node, ast.Attribute):
        base = dotted(node.value, names)
        return f"{base}.{node.attr}".removeprefix("builtins.") if base else ""
    return ""


def openings(source: str) -> list[str]:
    """Give the ways in which a module opens files, as `line: name`."""
    tree = ast.parse(source)
    names = imported(tree)
    found = [(0, name) for name in names.values() if name.partition(".")[0] in MODULES]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and dotted(node, names) in OPENERS:
            found.append((node.lineno, dotted(node, names)))
        elif isinstance(node, ast.Attribute) and node.attr in METHODS:
            found.append((node.lineno, node.attr))
        elif isinstance(node, ast.Call) and dotted(node.func, names) == "sqlite3.connect":
            # A database of a user's is deserialised into memory (design 3.9).
            where = node.args[0] if node.args else None
            if not (isinstance(where, ast.Constant) and where.value == ":memory:"):
                found.append((node.lineno, "sqlite3.connect"))
    return [f"{line}: {name}" for line, name in sorted(found)]


def modules() -> list[str]:
    return sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))


def behind_a_door(module: str) -> bool:
    return any(module == door or (door.endswith("/") and module.startswith(door)) for door in DOORS)


# The console is another program on another machine: it never meets a home.
@pytest.mark.parametrize(
    "module", [m for m in modules() if not behind_a_door(m) and not m.startswith("console/")]
)
def test_a_module_opens_no_file(module):
    """Everything outside the doors is free of opening calls."""
    assert openings((PACKAGE / module).read_text()) == []


def test_only_home_and_roles_know_the_door():
    """`Home.open` is called where an account's rights were taken on, or a person's own are meant."""
    callers = {
        module
        for module in modules()
        if not module.startswith("home/") and "Home.open(" in (PACKAGE / module).read_text()
    }
    assert all(module.startswith(("roles/", "cli/")) for module in callers)


@pytest.mark.parametrize(
    "source",
    [
        "open('x')",
        "import builtins\nbuiltins.open('x')",
        "import os\nos.open('x', 0)",
        "import os as o\no.scandir('x')",
        "from os import open as quietly\nquietly('x', 0)",
        "import io\nio.open('x')",
        "from io import FileIO\nFileIO('x')",
        "opener = open\nopener('x')",
        "from pathlib import Path\nPath('x').read_text()",
        "import shutil",
        "from tempfile import mkstemp",
        "def f(p): return p.read_bytes()",
        "import sqlite3\nsqlite3.connect('x.db')",
        "import os.path\nos.listdir('.')",
    ],
)
def test_the_walk_sees_every_way_in(source):
    """The check can fail: each of these ways is found."""
    assert openings(source)


@pytest.mark.parametrize(
    "source",
    [
        "home.open('x')",
        "from halod.home import Home\nHome.open('/', uid=0)",
        "import sqlite3\nsqlite3.connect(':memory:')",
        "import os\nos.path.join('a', 'b')\nos.close(3)",
        "def opened(): ...",
    ],
)
def test_the_walk_leaves_other_calls_alone(source):
    """What only sounds like opening a file is not reported."""
    assert openings(source) == []
