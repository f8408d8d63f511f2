# SPDX-License-Identifier: Apache-2.0
"""Programs that start another program (launchers.md 8): which command line is inside, and what they add.

Only wrappers whose options are known are looked through; any other option, and any other wrapper, ends the
reading. Those that load an environment halod cannot see raise `env-injection`.
"""

import re
from collections.abc import Callable

from halod.launch.shells import cmd_command, plain_words, shell_script, simple_command
from halod.launch.words import Words, has_variable, split_option

_DURATION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?[smhd]?")
_NUMBER = re.compile(r"[+-]?[0-9]{1,3}")
_SIGNAL = re.compile(r"[A-Za-z0-9+-]{1,16}")
_BUFFER = re.compile(r"-[ioe](?:L|[0-9]{1,9}[KM]?)|--(?:input|output|error)=(?:L|[0-9]{1,9}[KM]?)")
_RUNTIME = re.compile(
    r"(?:node|nodejs|python|bun|deno|uv|pnpm|yarn|go|java|ruby|dotnet)(?:@[0-9][0-9.]*|@latest|@lts)?"
)


class Inside:
    """The command line inside a wrapper: its words, what the wrapper sets, and the flags it raises."""

    __slots__ = ("cwd", "env", "flags", "words")

    def __init__(self, words: list[str] | tuple[str, ...], *flags: str) -> None:
        self.words = tuple(words)
        self.flags = {"wrapper", *flags}
        self.env: list[tuple[str, str | None]] = []
        self.cwd = ""


Reader = Callable[[tuple[str, ...]], Inside | None]


def unwrap(name: str, args: tuple[str, ...]) -> Inside | None:
    """Look into a wrapper; None when `name` is none, or what it starts cannot be told."""
    reader = _WRAPPERS.get(name)
    inside = reader(args) if reader is not None else None
    return inside if inside is not None and inside.words else None


def is_wrapper(name: str) -> bool:
    """Tell whether `name` is a wrapper that `unwrap` knows."""
    return name in _WRAPPERS


def _env(args: tuple[str, ...]) -> Inside | None:
    """`env [-i] [-u N] [-C D] [-S LINE] [--] [N=V]… CMD`; the words of `-S` are read as if written there.

    Behind a lone `-` GNU takes `-S` for a program, BSD for an option.
    """
    inside = Inside(())
    words = Words(args)
    rounds = 0
    while (word := words.next()) is not None and word.startswith("-"):
        if word == "--":
            word = words.next()
            break
        line = _env_option(word, words, inside)
        if line is None or (word == "-" and (words.peek() or "").startswith("-")):
            return None
        if line:
            split = plain_words(line)
            rounds += 1
            if split is None or rounds > 4:
                return None
            words = Words((*(plain for _raw, plain in split), *words.rest()))
    while word is not None and "=" in word:
        key, _, value = word.partition("=")
        inside.env.append((key, value))
        word = words.next()
    if word is not None:
        inside.words = (word, *words.rest())
    return inside


def _env_option(word: str, words: Words, inside: Inside) -> str | None:
    """Take one option of env: "" when done, the line of `-S`, or None for an option that is not known."""
    if word in {"-", "--ignore-environment", "--debug"}:
        return ""
    if word.startswith("--"):
        name, attached = split_option(word)
        letter = {"--unset": "u", "--chdir": "C", "--split-string": "S"}.get(name, "")
    else:
        plain = word[1:].lstrip("iv")
        letter, attached = plain[:1], plain[1:] or None
        if not letter:
            return ""
    if letter not in {"u", "C", "S"} or (value := words.value(attached)) is None:
        return None
    if letter == "S":
        return value
    if letter == "C":
        inside.cwd = value
    return ""


def _shell(args: tuple[str, ...]) -> Inside | None:
    script, interactive = shell_script(args)
    inside = _line(script) if script is not None else None
    if inside is not None and interactive:
        inside.flags.add("env-injection")
    return inside


def _line(script: str, *flags: str) -> Inside | None:
    found = simple_command(script)
    if found is None:
        return None
    inside = Inside(found[1], "shell", *flags)
    inside.env.extend(found[0])
    return inside


def _cmd(args: tuple[str, ...]) -> Inside | None:
    words = cmd_command(args)
    return Inside(words, "windows-shell") if words is not None else None


def _wsl(args: tuple[str, ...]) -> Inside | None:
    """Words go to the shell of the distribution, unless `--exec`: then each must be plain."""
    if args[:1] in {("-e",), ("--exec",)}:
        return Inside(args[1:], "env-injection")
    words = args[1:] if args[:1] == ("--",) else args
    if not words or words[0].startswith(("-", "~")):
        return None
    return _line(" ".join(words), "env-injection")


def _mise(args: tuple[str, ...]) -> Inside | None:
    """`mise exec|x [TOOL@V]… -- CMD` or `-c LINE`: tools that are no runtimes add packages."""
    words = Words(args)
    if words.next() not in {"exec", "x"}:
        return None
    flags = ["env-injection"]
    while (word := words.next()) is not None and word != "--":
        name, attached = split_option(word)
        if name in {"-c", "--command"}:
            line = words.value(attached)
            return _line(line, *flags) if line is not None and not words.rest() else None
        if word.startswith("-") or has_variable(word):
            return None
        if _RUNTIME.fullmatch(word) is None:
            flags.append("extra-packages")
    return Inside(words.rest(), *flags)


def _direnv(args: tuple[str, ...]) -> Inside | None:
    """`direnv exec DIR CMD`: no `--` in between, which direnv would try to run."""
    if args[:1] != ("exec",) or len(args) < 3 or args[1].startswith("-"):
        return None
    return Inside(args[2:], "env-injection")


def _injector(
    options: frozenset[str], switches: frozenset[str] = frozenset(), *, line: bool, assigns: bool = False
) -> Reader:
    """Build a reader for `NAME run [options] -- CMD`, with `--command LINE` if it has that form."""

    def read(args: tuple[str, ...]) -> Inside | None:
        words = Words(args)
        if words.next() != "run":
            return None
        env: list[tuple[str, str | None]] = []
        while (word := words.next()) is not None and word != "--":
            name, attached = split_option(word)
            if line and name == "--command":
                text = words.value(attached)
                return _line(text, "env-injection") if text is not None and not words.rest() else None
            if assigns and name in {"-e", "--env"}:
                key, equals, value = (words.value(attached) or "").partition("=")
                env.append((key, value if equals else None))
            elif name in options:
                words.value(attached)
            elif word not in switches:
                return None
        inside = Inside(words.rest(), "env-injection")
        inside.env = env
        return inside

    return read


def _timeout(args: tuple[str, ...]) -> Inside | None:
    words = Words(args)
    while (word := words.next()) is not None and word.startswith("-"):
        name, attached = split_option(word)
        if name in {"-s", "--signal", "-k", "--kill-after"}:
            value = words.value(attached) or ""
            if _SIGNAL.fullmatch(value) is None and _DURATION.fullmatch(value) is None:
                return None
        elif word not in {"--foreground", "--preserve-status", "-v", "--verbose"}:
            return None
    if word is None or _DURATION.fullmatch(word) is None:
        return None
    return Inside(words.rest())


def _nohup(args: tuple[str, ...]) -> Inside | None:
    return Inside(args[1:] if args[:1] == ("--",) else args)


def _nice(args: tuple[str, ...]) -> Inside | None:
    words = Words(args)
    while (word := words.peek()) is not None and word.startswith("-"):
        words.next()
        name, attached = split_option(word)
        if name in {"-n", "--adjustment"}:
            if _NUMBER.fullmatch(words.value(attached) or "") is None:
                return None
        elif not (word.startswith("-n") and _NUMBER.fullmatch(word[2:])) and not _NUMBER.fullmatch(word[1:]):
            return None
    return Inside(words.rest())


def _stdbuf(args: tuple[str, ...]) -> Inside | None:
    words = Words(args)
    while (word := words.peek()) is not None and word.startswith("-"):
        words.next()
        if _BUFFER.fullmatch(word) is None:
            return None
    return Inside(words.rest())


_SHELLS = ("sh", "bash", "zsh", "dash", "ash", "ksh")
dotenvx = _injector(frozenset({"-f", "--env-file"}), line=False, assigns=True)
_WRAPPERS: dict[str, Reader] = {
    "env": _env,
    **dict.fromkeys(_SHELLS, _shell),
    "cmd": _cmd,
    "wsl": _wsl,
    "mise": _mise,
    "direnv": _direnv,
    "dotenvx": dotenvx,
    "op": _injector(frozenset({"--env-file"}), frozenset({"--no-masking"}), line=False),
    "doppler": _injector(frozenset({"-c", "--config", "-p", "--project"}), line=True),
    "infisical": _injector(frozenset({"--env", "--path", "--projectId"}), line=True),
    "timeout": _timeout,
    "gtimeout": _timeout,
    "nohup": _nohup,
    "nice": _nice,
    "stdbuf": _stdbuf,
}
