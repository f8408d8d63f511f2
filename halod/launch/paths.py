# SPDX-License-Identifier: Apache-2.0
"""Which program a `command` names: launchers by name, and the directories whose programs are believed.

A path is a claim: `/tmp/x/npx` is any program. Only the directories of launchers.md 1 count, and the same
list decides whether a `PATH` is harmless. Nothing here looks at the disk.
"""

import re
import unicodedata

_DIRECTORIES = re.compile(
    r"/(?:usr/(?:local/)?)?bin"
    r"|/opt/homebrew/bin"
    r"|(?:/home/[\w.@+ -]+|/Users/[\w.@+ -]+|/root)/(?:"
    r"\.local/bin|\.cargo/bin|\.bun/bin|\.deno/bin|\.volta/bin|\.asdf/shims"
    r"|\.nvm/versions/node/[^/]+/bin"
    r"|\.local/share/mise/shims|\.local/share/mise/installs(?:/[^/]+)*"
    r"|\.local/share/fnm(?:/[^/]+)*|\.fnm(?:/[^/]+)*)"
)
_WINDOWS_DIRECTORIES = re.compile(
    r"c:/windows/system32|c:/program files/nodejs|c:/users/[\w.@+ -]+/appdata/roaming/npm"
)
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_SUFFIXES = (".exe", ".cmd", ".bat", ".ps1", ".com")
_ODD = re.compile(r"[\x00-\x1f\x7f$%{}<>*?\"|`]|//|(?:^|/)\.\.?(?:/|$)")
_MAX_PATH = 4096


def well_known_directory(path: str) -> bool:
    """Tell whether `path` is one of the directories whose launchers are believed (one trailing `/` is
    ignored).
    """
    if len(path) > _MAX_PATH:
        return False
    if _DRIVE.match(path):
        path = path.replace("\\", "/").lower()
        pattern = _WINDOWS_DIRECTORIES
    else:
        pattern = _DIRECTORIES
    if len(path) > 1 and path.endswith("/"):
        path = path[:-1]
    # An invisible mark or a full-width letter in the name of a home is nobody's spelling.
    plain = path.isascii() or (path.isprintable() and unicodedata.is_normalized("NFKC", path))
    return plain and _ODD.search(path) is None and pattern.fullmatch(path) is not None


def harmless_path(value: str) -> bool:
    """Tell whether every entry of a `PATH` is a well-known directory; an empty entry is the working
    directory.
    """
    if len(value) > _MAX_PATH:
        return False
    windows = value[1:3] == ":\\"
    separator = ";" if windows else ":"
    start = 0
    while True:
        end = value.find(separator, start)
        entry = value[start:] if end < 0 else value[start:end]
        if not well_known_directory(entry) or windows != (entry[1:3] == ":\\"):
            return False
        if end < 0:
            return True
        start = end + 1


def program(command: str) -> tuple[str, bool, bool]:
    """Give (name, absolute, trusted) for a command word.

    The name has no directory and no Windows suffix, and is lower-case only for a Windows path. A bare name is
    trusted as far as `PATH` is; a relative path never is.
    """
    windows = _DRIVE.match(command) is not None
    slash = max(command.rfind("/"), command.rfind("\\"))
    name = command[slash + 1 :]
    if windows:
        name = name.lower()
    for suffix in _SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            name = name[: -len(suffix)]
            break
    if slash < 0:
        return name, False, True
    absolute = windows or command.startswith("/")
    if "\\" in command and not windows:
        return name, absolute, False
    directory = command[:slash] or "/"
    if directory[-1] in "/\\":  # `/usr/bin//npx`: exactly these directories, spelled as they are
        return name, absolute, False
    return name, absolute, absolute and well_known_directory(directory)
