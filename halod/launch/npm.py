# SPDX-License-Identifier: Apache-2.0
"""npx, `npm exec`, `npm x`, `npm init` and `npm create` (launchers.md 2).

npx puts `--` before its operand, so what follows belongs to the tool; `npm exec` reads its own options
anywhere until `--`. Both prefer what lies in the working directory.
"""

from halod.launch.draft import Draft
from halod.launch.npmoptions import HARMLESS, displaces, glued, log_level, take
from halod.launch.npmspec import read_npm
from halod.launch.runners import is_runner
from halod.launch.words import Words, has_variable, split_option

_PACKAGE = frozenset({"--package", "-p"})
_CALL = frozenset({"-c", "--call"})
_BOOLEANS = frozenset({"true", "false", "null"})
_VALUELESS = frozenset({"-q", "-y", "-s", "-d", "-dd", "-ddd"})


def npx(args: tuple[str, ...], draft: Draft) -> None:
    """Read `npx [options] SPEC [args]` and `npx -p SPEC… BIN [args]`."""
    draft.ecosystem = "npm"
    draft.local_copies()
    words = Words(args)
    packages: list[str] = []
    while (word := words.next()) is not None:
        if word == "--":
            _operand(words.next(), words.rest(), packages, draft)
            return
        if not word.startswith("-"):
            _operand(word, words.rest(), packages, draft)
            return
        if word in HARMLESS or _log_level(word, words):
            continue
        name, attached = split_option(word)
        if name in _CALL:
            draft.kill("shell")
            return
        if name in _PACKAGE:
            packages.append(words.value(attached) or "")
        elif name in _VALUELESS and attached is not None:
            draft.flags.add("shorthand-with-value")
            _operand(attached, words.rest(), packages, draft)
            return
        elif _npx_option(word, words, draft):
            _displaced(words, packages, draft)
            return
    draft.kill("launch-error")


def _npx_option(word: str, words: Words, draft: Draft) -> bool:
    """Take an option that is not harmless; True when npx-cli then loses the operand that follows."""
    letters = glued(word)
    if letters is not None and "p" in letters:
        draft.dependent = True
    kind = take(word, words, draft)
    following = words.peek()
    lost = displaces(word) and following is not None and not following.startswith("-")
    if kind == "unknown" or (kind == "known" and not lost):
        draft.flags.add("unknown-option")
    if lost and not draft.dependent:
        draft.flags.add("displaced-separator")
    return lost


def _displaced(words: Words, packages: list[str], draft: Draft) -> None:
    """Read an operand without its separator: npm reads the options after it too, to the next plain word."""
    operand = words.next()
    while (word := words.peek()) is not None and word.startswith("-") and word != "--":
        words.next()
        name, attached = split_option(word)
        if name in _CALL:
            draft.kill("shell")
        elif name == "--package":
            draft.flags.update(("extra-packages", "package-flag"))
            words.value(attached)
        elif word not in HARMLESS and take(word, words, draft) != "flagged":
            draft.flags.add("unknown-option")
    _operand(operand, words.rest(), packages, draft)


def _operand(operand: str | None, rest: tuple[str, ...], packages: list[str], draft: Draft) -> None:
    """Settle what runs: the operand, or with `--package` the program it names."""
    draft.args = rest
    if operand is None:
        draft.kill("shell" if packages else "launch-error")
    elif packages:
        with_packages(packages, operand, draft)
    else:
        read_npm(operand, draft)


def with_packages(packages: list[str], program: str, draft: Draft, *, berry: bool = False) -> None:
    """Note `--package P… BIN`: the first package is the identity, the operand a program looked up on PATH."""
    draft.flags.add("package-flag")
    if len(packages) > 1:
        draft.flags.add("extra-packages")
    draft.bin = program
    read_npm(packages[0], draft, berry=berry)
    if has_variable(program) or not program:
        draft.kill("unresolved-variable")
    elif is_runner(program):
        draft.kill("command-not-from-package")


def npm(args: tuple[str, ...], draft: Draft) -> None:
    """Run through `npm [options] exec|x …` and `npm init|create …`; all others run local code."""
    words = Words(args)
    draft.ecosystem = "npm"
    draft.local_copies()
    while (word := words.next()) is not None:
        if not word.startswith("-"):
            break
        if split_option(word)[0] in _CALL or not _npm_option(word, words, draft):
            draft.kill("launch-error")
            return
    if word in {"exec", "x"}:
        _exec(words, draft, create=False)
    elif word in {"init", "create", "innit"}:
        _exec(words, draft, create=True)
    else:
        draft.kill("local-path", "shell", ecosystem="local")


def _exec(words: Words, draft: Draft, *, create: bool) -> None:
    """Read what follows `exec`: options count before and after the operand, until `--`."""
    plain: list[str] = []
    packages: list[str] = []
    while (word := words.next()) is not None:
        if word == "--":
            plain.extend(words.rest())
            break
        if not word.startswith("-"):
            if plain and has_variable(word):
                draft.flags.add("unresolved-variable")
            plain.append(word)
            continue
        name, attached = split_option(word)
        if name in _CALL:
            draft.kill("shell")
            return
        if name == "--package":
            packages.append(words.value(attached) or "")
        elif not _npm_option(word, words, draft):
            draft.kill("launch-error")
            return
        if words.peek() in _BOOLEANS:
            draft.flags.add("unknown-option")  # nopt takes it for the value of the switch before it
    operand = plain[0] if plain else None
    if create and operand is not None:
        operand = initializer(operand)
    _operand(operand, tuple(plain[1:]), packages, draft)


def _npm_option(word: str, words: Words, draft: Draft) -> bool:
    if word in HARMLESS or word in {"-p", "--parseable"} or _log_level(word, words):
        return True
    if word == "--":
        return False
    if take(word, words, draft) != "flagged":
        draft.flags.add("unknown-option")
    return True


def _log_level(word: str, words: Words) -> bool:
    if word == "--loglevel" and log_level(words.peek()):
        words.next()
        return True
    return word.startswith("--loglevel=") and log_level(word[11:])


def initializer(spec: str) -> str:
    """Give the package behind `npm init X`: `create-X`, `@s/create-X`, `@s/create`; what is no name stays.

    A source (`user/repo`, a URL, a path) is no name and keeps its meaning.
    """
    at = spec.find("@", 1)
    name, version = (spec[:at], spec[at:]) if at > 0 else (spec, "")
    scope, slash, rest = name.partition("/")
    if name.startswith("@"):
        return f"{scope}/create-{rest}{version}" if slash else f"{scope}/create{version}"
    return spec if slash or ":" in spec else f"create-{name}{version}"
