# SPDX-License-Identifier: Apache-2.0
"""`dnx`, `dotnet dnx`, `dotnet tool exec` (launchers.md 7).

Options are read on both sides of the package, until `--`; a `@file` there is a response file with more of
them.
"""

import re

from halod.launch.draft import Draft
from halod.launch.versions import canonical_identifier, nuget_version
from halod.launch.words import MAX_OPERAND, Words, has_variable, listed, split_option

_HARMLESS = frozenset({"-y", "--yes", "--prerelease", "--interactive"})
_BOOLEANS = frozenset({"true", "false", "True", "False"})
_VERBOSITIES = listed("q quiet m minimal n normal d detailed diag diagnostic")
_VALUE_FLAGS = {
    "--source": "registry-override",
    "--add-source": "registry-override",
    "--configfile": "config-override",
    "--framework": "unknown-option",
    "-a": "unknown-option",
    "--arch": "unknown-option",
    "--verbosity": "unknown-option",
    "-v": "unknown-option",
}
_RANGE = re.compile(r"[\[(]?[0-9A-Za-z.*, -]*[\])]?")


def dotnet(args: tuple[str, ...], draft: Draft) -> None:
    """Read `dotnet dnx …` and `dotnet tool exec|execute …`; everything else of dotnet is local code."""
    if args[:1] == ("dnx",):
        dnx(args[1:], draft)
    elif args[:1] == ("tool",) and args[1:2] in {("exec",), ("execute",)}:
        dnx(args[2:], draft)
    else:
        draft.kill("ambient-install", ecosystem="local")


def dnx(args: tuple[str, ...], draft: Draft) -> None:
    """Read `dnx PACKAGE[@VERSION] [options] [-- args]`."""
    draft.ecosystem = "nuget"
    draft.local_copies()
    words = Words(args)
    plain: list[str] = []
    version: str | None = None
    while (word := words.next()) is not None and word != "--":
        if word.startswith("@"):
            draft.flags.add("config-override")  # a response file
        if not word.startswith("-"):
            if plain and has_variable(word):
                draft.flags.add("unresolved-variable")  # it could become an option
            plain.append(word)
        elif word.partition("=")[0] == "--version":
            version = words.value(split_option(word)[1]) or ""
            draft.flags.add("version-override")
        else:
            _option(word, words, draft)
    rest = words.rest()
    if any(argument.startswith("@") for argument in rest):
        draft.flags.add("config-override")
    draft.args = (*plain[1:], *rest)
    if not plain:
        draft.kill("launch-error")
        return
    _package(plain[0], version, draft)
    if draft.version is not None and "--prerelease" in args:
        draft.kill("launch-error")


def _option(word: str, words: Words, draft: Draft) -> None:
    if words.peek() in _BOOLEANS:
        draft.flags.add("unknown-option")  # System.CommandLine takes it for the value of the switch
    if word in _HARMLESS or (word == "-v" and words.peek() in _VERBOSITIES and words.next()):
        return
    name, attached = split_option(word)
    if ":" in name and attached is None:
        name, _, attached = name.partition(":")
    flag = _VALUE_FLAGS.get(name, "unknown-option")
    value = words.value(attached) if name in _VALUE_FLAGS else None
    if flag == "registry-override":
        draft.registry(value)
    else:
        draft.flags.add(flag)


def _package(text: str, option: str | None, draft: Draft) -> None:
    if has_variable(text) or has_variable(option or "") or len(text) > MAX_OPERAND:
        draft.kill("unresolved-variable", ecosystem="unknown")
        return
    name, _at, version = text.partition("@")
    identifier = canonical_identifier("nuget", name)
    if identifier is None or (version and option is not None):
        draft.kill("launch-error")
        return
    draft.identifier = identifier
    wanted = version or option or ""
    if not wanted:
        return
    draft.version = nuget_version(wanted)
    if draft.version is None:
        if _RANGE.fullmatch(wanted) is None:
            draft.kill("launch-error")
        draft.requested = wanted
    elif draft.version != wanted:
        draft.requested = wanted
