# SPDX-License-Identifier: Apache-2.0
"""`pnpm dlx`, pnpx, `yarn dlx`, bunx and `bun x` (launchers.md 3).

The bare `dlx SPEC` is the only form that all releases read alike; an option in between is read as the package
by some of them, which makes the definition dependent on the launcher's version.
"""

from halod.launch.draft import Draft
from halod.launch.npm import initializer, with_packages
from halod.launch.npmspec import read_npm
from halod.launch.words import Words, split_option

_VALUE_FLAGS = {
    "--registry": "registry-override",
    "--userconfig": "config-override",
    "--globalconfig": "config-override",
    "--config": "config-override",
    "--prefix": "prefix-override",
    "--dir": "prefix-override",
    "-C": "prefix-override",
    "--cwd": "prefix-override",
    "--env-file": "env-injection",
    "--minimum-release-age": "version-override",
    "--ca": "network-override",
    "--cafile": "network-override",
    "--preload": "code-injection",
    "--require": "code-injection",
    "-r": "code-injection",
    "--import": "code-injection",
}


def pnpm(args: tuple[str, ...], draft: Draft) -> None:
    """Read `pnpm [options] dlx SPEC` and `pnpm create X`; every other command runs local code."""
    draft.ecosystem = "npm"
    draft.local_copies()
    words = Words(args)
    packages: list[str] = []
    while (word := words.next()) is not None and word.startswith("-"):
        name, attached = split_option(word)
        if name in {"-c", "--shell-mode"}:
            draft.kill("shell")
        elif name == "--package":
            packages.append(words.value(attached) or "")
        else:
            _option(name, attached, words, draft)
    if word == "dlx":
        _dlx(words, packages, draft)
    elif word == "create" and not packages:
        operand = words.next()
        if operand is None or operand.startswith(("-", "create-")):
            draft.kill("launch-error")
            return
        draft.args = words.rest()
        read_npm(initializer(operand), draft)
    else:
        draft.kill("local-path", ecosystem="local")


def pnpx(args: tuple[str, ...], draft: Draft) -> None:
    """Read `pnpx SPEC`, which is `pnpm dlx SPEC`."""
    draft.ecosystem = "npm"
    draft.local_copies()
    _dlx(Words(args), [], draft)


def _dlx(words: Words, packages: list[str], draft: Draft) -> None:
    """Read what follows `dlx`: pnpm 8 and 9 take any word for the package, later ones know some options."""
    while (word := words.next()) is not None and word.startswith("-"):
        draft.dependent = True
        if word == "--":
            word = words.next()
            break
        name, attached = split_option(word)
        if name in {"-c", "--shell-mode"}:
            draft.kill("shell")
        elif name == "--package":
            packages.append(words.value(attached) or "")
        elif word not in {"-y", "--yes", "-s", "--silent"}:
            _option(name, attached, words, draft)
    _run(word, words.rest(), packages, draft)


def yarn(args: tuple[str, ...], draft: Draft) -> None:
    """Read `yarn dlx [-q] [-p PKG]… SPEC`; yarn 1 has no dlx, every other command runs local code."""
    draft.ecosystem = "npm"
    draft.local_copies()
    words = Words(args)
    if words.next() != "dlx":
        draft.kill("local-path", ecosystem="local")
        return
    packages: list[str] = []
    while (word := words.next()) is not None and word.startswith("-"):
        name, attached = split_option(word)
        if name in {"-p", "--package"}:
            packages.append(words.value(attached) or "")
        elif word != "-q":
            _option(name, attached, words, draft)
    _run(word, words.rest(), packages, draft, berry=True)


def bun(args: tuple[str, ...], draft: Draft) -> None:
    """Read `bun x …`; every other command of bun runs local code."""
    if args[:1] == ("x",):
        bunx(args[1:], draft)
    else:
        draft.kill("local-path", ecosystem="local")


def bunx(args: tuple[str, ...], draft: Draft) -> None:
    """Read `bunx [--bun] SPEC`: `-p` is ignored by releases before 1.2."""
    draft.ecosystem = "npm"
    draft.local_copies()
    draft.temporary_copies()
    words = Words(args)
    packages: list[str] = []
    while (word := words.next()) is not None and word.startswith("-"):
        name, attached = split_option(word)
        if name in {"-p", "--package"}:
            draft.dependent = True
            packages.append(words.value(attached) or "")
        elif word not in {"--bun", "-y"}:
            _option(name, attached, words, draft)
    _run(word, words.rest(), packages, draft)


def _option(name: str, attached: str | None, words: Words, draft: Draft) -> None:
    """Note an option that is not harmless. A flag that can be tolerated never stands alone here."""
    flag = _VALUE_FLAGS.get(name, "unknown-option")
    value = words.value(attached) if name in _VALUE_FLAGS else None
    if flag == "registry-override":
        draft.registry(value)
        return
    draft.flags.add(flag)
    if flag == "env-injection":
        draft.flags.add("unknown-option")


def _run(
    operand: str | None, rest: tuple[str, ...], packages: list[str], draft: Draft, *, berry: bool = False
) -> None:
    draft.args = rest
    if operand is None:
        draft.kill("launch-error")
    elif packages:
        with_packages(packages, operand, draft, berry=berry)
    else:
        read_npm(operand, draft, berry=berry)
