# SPDX-License-Identifier: Apache-2.0
"""`deno run` and `deno x` (launchers.md 3): an `npm:` or `jsr:` specifier, a URL, or a file."""

import re

from halod.launch.draft import Draft
from halod.launch.npmspec import read_npm
from halod.launch.versions import npm_version
from halod.launch.words import MAX_OPERAND, Words, has_variable, split_option

_ALLOW = re.compile(r"--allow-[a-z]+(?:-[a-z]+)*")
_VALUE_FLAGS = {
    "--import-map": "import-map",
    "--config": "config-override",
    "-c": "config-override",
    "--preload": "code-injection",
    "--require": "code-injection",
    "--import": "code-injection",
    "--cert": "network-override",
    "--env-file": "env-injection",
    "--ext": "unknown-option",
    "--conditions": "unknown-option",
    "--seed": "unknown-option",
    "--location": "unknown-option",
    "--node-modules-linker": "unknown-option",
    "--min-dep-age": "version-override",
    "--minimum-dependency-age": "version-override",
    "-L": "unknown-option",
    "--log-level": "unknown-option",
}


def deno(args: tuple[str, ...], draft: Draft) -> None:
    """Read `deno [run] [options] MAIN` and `deno x [-y] MAIN`; a deno.json in the cwd can remap it."""
    draft.local_copies()
    words = Words(args)
    command = words.next() if words.peek() in {"run", "x"} else "run"
    packages = False
    while (word := words.next()) is not None and word.startswith("-"):
        name, attached = split_option(word)
        if word in {"-A", "-q"} or _ALLOW.fullmatch(name) or (command == "x" and word == "-y"):
            continue
        if command == "x" and name in {"-p", "--package"}:
            packages = True
            words.value(attached)
            draft.flags.update(("package-flag", "extra-packages"))
        elif name in _VALUE_FLAGS:
            words.value(attached)
            draft.flags.update(
                (_VALUE_FLAGS[name], "unknown-option") if "env" in name else (_VALUE_FLAGS[name],)
            )
        else:
            draft.flags.add("unknown-option")
    draft.args = words.rest()
    if word is None or packages:
        draft.kill("launch-error")
    else:
        _main(word, draft)


def _main(word: str, draft: Draft) -> None:
    if has_variable(word) or len(word) > MAX_OPERAND:
        draft.kill("unresolved-variable", ecosystem="unknown")
    elif word.startswith("npm:"):
        _npm(word[4:].removeprefix("/"), draft)
    elif word.startswith("jsr:"):
        spec = word[4:].removeprefix("/")
        at = spec.find("@", 1)
        draft.ecosystem, draft.identifier = "jsr", spec if at < 0 else spec[:at]
        draft.version = npm_version(spec[at + 1 :]) if at > 0 else None
    elif word.startswith(("http://", "https://")):
        draft.kill("remote-script", ecosystem="url-script")
    else:
        draft.kill("local-path", ecosystem="local")


def _npm(spec: str, draft: Draft) -> None:
    """Read `name[@version][/program]`: a path behind the version names another program of the package."""
    scope = spec.find("/") + 1 if spec.startswith("@") else 0
    slash = spec.find("/", scope) if scope or not spec.startswith("@") else -1
    if slash >= 0:
        spec, draft.bin = spec[:slash], spec[slash + 1 :]
        draft.flags.add("package-flag")
    read_npm(spec, draft)
    if draft.requested is not None and draft.requested[:1] in {"v", "=", " ", "\t"}:
        draft.version = None  # no version to deno: `v1.2.0` is a tag, the others are errors
    if draft.ecosystem != "npm" or "alias" in draft.flags:
        draft.kill("launch-error")
