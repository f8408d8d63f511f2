# SPDX-License-Identifier: Apache-2.0
"""`sh -c` and `cmd /c` around one simple command (launchers.md 8).

Characters are filtered before a line is split: what a shell would treat as more than a plain word ends the
reading. `$`, `{`, `}` and `%` are refused in quotes too, because a harness expands variables before the shell
reads the line, and what they become can end a quotation.
"""

import re

from halod.launch.words import Words

_BARE = r"[A-Za-z0-9@/._:=+,~^-]"
_SINGLE = r"'[^'\x00-\x1f\x7f$`\\{}%]*'"
_DOUBLE = r"\"[^\"\x00-\x1f\x7f$`\\{}%!]*\""
_WORD = re.compile(rf"(?:{_BARE}|{_SINGLE}|{_DOUBLE})+")
_BLANKS = re.compile(r"[ \t]+")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_MAX_LINE = 64 * 1024
_CMD_REFUSED = re.compile(r"[&|<>^%!\x00-\x1f\x7f${}`]")
_OPTIONS = frozenset({"pipefail", "errexit", "nounset", "noglob"})
_LONG = frozenset({"--login", "--noprofile", "--norc", "--posix"})

Line = tuple[list[tuple[str, str]], list[str]]
"""Assignments in front of a command, and its words."""


def plain_words(line: str) -> list[tuple[str, str]] | None:
    """Split a line of plain words; gives (as written, without quotes) for each, None for anything else."""
    if len(line) > _MAX_LINE:
        return None
    out: list[tuple[str, str]] = []
    at, end = 0, len(line)
    while at < end:
        blank = _BLANKS.match(line, at)
        if blank is not None:
            at = blank.end()
            continue
        word = _WORD.match(line, at)
        if word is None or (word.end() < end and line[word.end()] not in " \t"):
            return None
        out.append((word[0], _QUOTED.sub(lambda found: found[1] or found[2] or "", word[0])))
        at = word.end()
    return out


def simple_command(line: str) -> Line | None:
    """Read a shell line that is one simple command with an optional `exec`; None for anything else."""
    words = plain_words(line)
    if not words:
        return None
    assignments: list[tuple[str, str]] = []
    at = 0
    while at < len(words) and (match := _ASSIGNMENT.match(words[at][0])) is not None:
        assignments.append((match[1], words[at][1][match.end() :]))
        at += 1
    if at < len(words) and words[at][0] == "exec":
        at += 1
    command = [plain for _raw, plain in words[at:]]
    return (assignments, command) if command else None


def shell_script(args: tuple[str, ...]) -> tuple[str | None, bool]:
    """Find the script of `sh [options] -c SCRIPT`; gives (script or None, whether it reads an interactive
    rc).
    """
    words = Words(args)
    wants_script = interactive = False
    while (word := words.next()) is not None and word[:1] in {"-", "+"} and len(word) > 1:
        if word == "--":
            word = words.next()
            break
        if word in _LONG:
            continue
        if word[0] == "+" or word[1] == "-" or not set(word[1:]) <= set("celuiof"):
            return None, False
        for letter in word[1:]:
            wants_script |= letter == "c"
            interactive |= letter == "i"
            if letter == "o" and words.next() not in _OPTIONS:
                return None, False
    return (word if wants_script else None), interactive


def cmd_command(args: tuple[str, ...]) -> list[str] | None:
    """Read `cmd /c WORDS` where nothing is special to cmd; the first word may be the whole line."""
    words = Words(args)
    while (word := words.next()) is not None and word.lower() in {"/d", "/s", "/q"}:
        pass
    if word is None or word.lower() != "/c":
        return None
    rest = words.rest()
    if not rest or any(_CMD_REFUSED.search(part) for part in rest):
        return None
    first = plain_words(rest[0]) if " " in rest[0] else [(rest[0], rest[0])]
    return [plain for _raw, plain in first] + list(rest[1:]) if first else None
