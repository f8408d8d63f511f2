# SPDX-License-Identifier: Apache-2.0
"""uvx, `uv tool run` and `uv run` (launchers.md 4).

clap is strict: no abbreviations, an unknown option is an error and nothing runs. Options behind the operand
go to the tool. The working directory does not matter to uvx; `uv run` runs the project in it.
"""

import re

from halod.launch.draft import Draft
from halod.launch.pypispec import INTERPRETERS, SHELLS, is_python, read_pypi
from halod.launch.runners import is_runner
from halod.launch.versions import pypi_name
from halod.launch.words import Words, has_variable, listed, split_option

_HARMLESS = listed(
    """-q --quiet -v --verbose -n --no-cache --isolated --refresh --offline --no-progress --no-config
    --no-env-file"""
)
_HARMLESS_LETTERS = frozenset("qvn")
_COLORS = frozenset({"auto", "always", "never"})
_PYTHON_VERSION = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,2}")

_VALUES: dict[str, str] = {
    name: flag
    for flag, names in {
        "extra-packages": "-w --with --with-editable --with-requirements",
        "version-override": """-c --constraints --constraint -b --build-constraints --build-constraint
            --overrides --override --resolution --prerelease --prerelease-package --fork-strategy
            --exclude-newer --exclude-newer-package -P --upgrade-package --upgrade-group""",
        "registry-override": "--index --default-index -i --index-url --extra-index-url -f --find-links",
        "config-override": """--index-strategy --cache-dir --config-file --directory --project
            --keyring-provider""",
        "env-injection": "--env-file",
        "network-override": "--allow-insecure-host --trusted-host",
        "unknown-option": """--python-platform --torch-backend --no-sources-package --reinstall-package
            --link-mode -C --config-setting --config-settings --config-settings-package
            --config-setting-package --no-build-isolation-package --no-build-package --no-binary-package
            --refresh-package --python-fetch --python-preference""",
    }.items()
    for name in names.split()
}
_FLAGS = listed(
    """-U --upgrade --reinstall --no-index --native-tls --system-certs --no-native-tls --no-build --no-binary
    --compile-bytecode --managed-python --no-managed-python --no-sources --no-python-downloads --no-isolation
    --allow-python-downloads --no-build-isolation --preview --no-preview --lfs --verify-hashes --strict
    --show-resolution --no-cache-dir --force-reinstall --no-refresh --no-offline"""
)
_NAME_END = re.compile(r"[@=<>~!\[;( \t]")


def uvx(args: tuple[str, ...], draft: Draft) -> None:
    """Read `uvx [options] REQUIREMENT [args]` and `uvx --from REQUIREMENT BIN [args]`."""
    draft.ecosystem = "pypi"
    _tool(Words(args), draft)


def uv(args: tuple[str, ...], draft: Draft) -> None:
    """Read `uv tool run …` and `uv run …`; other commands of uv are no servers."""
    draft.ecosystem = "pypi"
    words = Words(args)
    misplaced: list[str] = []
    word = _options(words, draft, misplaced, [])
    if word == "tool" and _options(words, draft, misplaced, []) == "run" and not misplaced:
        _tool(words, draft)
    elif word == "run":
        _run(words, draft)
    else:
        draft.kill("launch-error")


def _tool(words: Words, draft: Draft) -> None:
    sources: list[str] = []
    operand = _options(words, draft, sources, [])
    draft.args = words.rest()
    if operand is None or draft.dead:
        draft.kill("launch-error")
    elif len(sources) == 1:
        _from(sources[0], operand, draft)
    elif sources:
        draft.kill("launch-error")
    else:
        read_pypi(operand, draft, at_version=True)
        _program(_NAME_END.split(operand, maxsplit=1)[0], draft)


def _from(source: str, program: str, draft: Draft) -> None:
    """Read `--from X BIN`: a program the package does not bring is looked up on PATH, so BIN counts."""
    read_pypi(source, draft, at_version=True)
    draft.bin = program
    bare = program.removesuffix(".exe")
    if draft.ecosystem != "pypi" or draft.identifier is None or pypi_name(bare) != draft.identifier:
        draft.flags.add("from-flag")
    _program(bare, draft)
    if "from-flag" in draft.flags and not draft.dead and is_runner(program):
        draft.kill("command-not-from-package")


def _program(name: str, draft: Draft) -> None:
    """Kill what is no server's own program: an interpreter, a shell, or a package that only runs its
    arguments.
    """
    if has_variable(name):
        draft.kill("unresolved-variable")
    elif is_python(name):
        draft.kill("interpreter")
    elif name.lower() in SHELLS:
        draft.kill("command-not-from-package", "shell")
    elif draft.ecosystem == "pypi" and draft.identifier in INTERPRETERS:
        draft.kill("interpreter-package")


def _options(words: Words, draft: Draft, sources: list[str], extra: list[str]) -> str | None:
    """Take options up to the operand and give the operand; an unknown option is an error of clap's."""
    while (word := words.next()) is not None:
        if word == "--":
            return words.next()
        if not word.startswith("-") or word == "-":
            return word
        if word in _HARMLESS:
            continue
        if not word.startswith("--"):
            if not _cluster(word[1:], words, draft, extra):
                return None
            continue
        name, attached = split_option(word)
        if name == "--from":
            sources.append(words.value(attached) or "")
        elif not _option(name, attached, words, draft, extra):
            return None
    return None


def _cluster(letters: str, words: Words, draft: Draft, extra: list[str]) -> bool:
    """Read glued short options; the first that takes a value takes the rest of the word."""
    for place, letter in enumerate(letters):
        if letter in _HARMLESS_LETTERS:
            continue
        rest, name = letters[place + 1 :], f"-{letter}"
        attached = (
            rest.removeprefix("=") if rest else None
        )  # clap: `-p=` is an empty value, not the next word
        if name in _FLAGS:
            draft.flags.add("unknown-option")
            continue
        return _option(name, attached, words, draft, extra)
    return True


def _option(name: str, attached: str | None, words: Words, draft: Draft, extra: list[str]) -> bool:
    if name in {"-p", "--python"}:
        if _PYTHON_VERSION.fullmatch(words.value(attached) or "") is None:
            draft.flags.add("interpreter")
    elif name == "--color":
        if words.value(attached) not in _COLORS:
            draft.kill("launch-error")
    elif name in _VALUES:
        flag, value = _VALUES[name], words.value(attached)
        if flag == "registry-override":
            draft.registry(value)
        elif flag == "extra-packages":
            extra.append((value or "") if name in {"-w", "--with"} else "")
        if flag != "registry-override":
            draft.flags.add(flag)
    elif name in _FLAGS and attached is None:
        draft.flags.add("unknown-option")
    else:
        draft.kill("launch-error")
        return False
    return True


def _run(words: Words, draft: Draft) -> None:
    """`uv run` runs local code, but for `--no-project --with NAME==V [-m] CMD`, which names a package too."""
    extra: list[str] = []
    no_project = module = False
    while (word := words.peek()) is not None:
        words.next()
        if word == "--no-project":
            no_project = True
        elif word in {"-m", "--module"}:
            module = True
        elif word.startswith("-") and word not in {"-", "--"}:
            name, attached = split_option(word)
            if not _option(name, attached, words, draft, extra):
                return
        else:
            break
    program = words.next() if word == "--" else word
    if program is None:
        draft.kill("launch-error")
    elif program.startswith(("http://", "https://")):
        draft.kill("remote-script", ecosystem="url-script")
    elif not no_project or len(extra) != 1 or not extra[0]:
        draft.kill("local-path", ecosystem="local")
    else:
        _with(extra[0], program, words, draft, module=module)


def _with(requirement: str, program: str, words: Words, draft: Draft, *, module: bool) -> None:
    draft.flags.discard("extra-packages")
    draft.flags.add("with-flag")
    read_pypi(requirement, draft, at_version=False)
    draft.bin, draft.args = program, words.rest()
    if module:
        draft.flags.add("module")
    if draft.identifier in INTERPRETERS or is_python(program) or program in SHELLS:
        draft.kill("interpreter-package")
    elif not module and pypi_name(program) != draft.identifier:
        draft.flags.add("command-not-from-package")
