# SPDX-License-Identifier: Apache-2.0
"""Command pins of a policy: an absolute path and exact arguments.

Invariants:

1. An approved command line says by itself what runs: its program is an absolute path in normal form without a
   variable, and it is not a shell that is handed a program text.
2. No NUL and no other control character: the hash of a command line is taken of words separated by NUL.
"""

import re

from halod.policy.check import Checker
from halod.policy.yamlpos import Node, Text, kind, shown

SHELLS = frozenset({"ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "pwsh", "sh", "tcsh", "yash", "zsh"})
WRAPPERS = frozenset({
    "busybox", "chronic", "command", "doas", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo",
    "time", "timeout", "xargs",
})  # fmt: skip

_VARIABLE = re.compile(r"[$~{}`%]")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_TAKES_VALUE = re.compile(r"[-+][A-Za-z]*[oO]|--(?:rcfile|init-file)")
_SHORT_C = re.compile(r"-[A-Za-z]*[cC][A-Za-z]*")


def read_command(c: Checker, node: Node) -> tuple[str, ...] | None:
    """Read a `command` list: program and arguments."""
    words = read_arguments(c, node, "command")
    if words is None:
        return None
    if not words:
        c.add(node, "command: must not be empty")
        return None
    program = words[0]
    fault = _program_fault(program)
    if fault:
        c.add(node, f"command: {fault}")
        return None
    if _is_shell_text(words):
        c.add(node, "command: a shell with -c; put the line into a script and pin the script's path")
        return None
    return words


def read_arguments(c: Checker, node: Node, what: str) -> tuple[str, ...] | None:
    """Read a list of words as they stand on a command line: any text, also empty."""
    items = c.items(node, what, "words")
    if items is None:
        return None
    words = []
    for item in items:
        if not isinstance(item, Text) or kind(item) != "text":
            quotable = kind(item) in {"a number", "a boolean", "nothing"}
            c.expected(item, what, "text (put it in quotes)" if quotable else "text")
        elif _CONTROL.search(item.text):
            c.add(item, f"{what}: holds a control character")
        else:
            words.append(item.text)
    return tuple(words) if len(words) == len(items) else None


def _program_fault(program: str) -> str:
    if _VARIABLE.search(program):
        return f"the program {shown(program)} must not hold a variable or ~"
    if not program.startswith("/"):
        return f"the program {shown(program)} must be an absolute path"
    parts = program[1:].split("/")
    if not all(parts) or "." in parts or ".." in parts:
        return f"the program {shown(program)} must be a path without empty, . and .. parts"
    return ""


def _is_shell_text(words: tuple[str, ...]) -> bool:
    """Whether the line hands a program text to a shell, also behind `env`, `sudo` or the like."""
    names = [word.rsplit("/", 1)[-1] for word in words]
    start = 0
    if names[0] in WRAPPERS:
        start = next((n for n, name in enumerate(names) if n and name in SHELLS), len(names))
    if start == len(names) or names[start] not in SHELLS:
        return False
    value = False
    for word in words[start + 1 :]:
        if value:
            value = False
        elif _SHORT_C.fullmatch(word) or word.partition("=")[0] in {"--command", "--init-command"}:
            return True
        elif word == "--" or not word.startswith(("-", "+")):
            return False
        else:
            value = _TAKES_VALUE.fullmatch(word) is not None
    return False
