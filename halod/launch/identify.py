# SPDX-License-Identifier: Apache-2.0
"""`identify`: from a command line to the Launch, through wrappers down to a launcher (design 5).

Invariants:

1. Pure: no I/O, no state; the same input gives the same answer, and no text makes it raise.
2. Only launchers and wrappers known by name are read; every other program is unidentifiable.
3. What a wrapper sets is judged with the entry's own environment; depth and work are bounded.
"""

from collections.abc import Iterable, Mapping, Sequence

from halod.launch.bridges import carry
from halod.launch.container import container
from halod.launch.deno import deno
from halod.launch.dotnet import dnx, dotnet
from halod.launch.draft import Draft
from halod.launch.local import describe
from halod.launch.model import Launch, Nested
from halod.launch.npm import npm, npx
from halod.launch.paths import program
from halod.launch.pipx_python import pipx
from halod.launch.pnpm_yarn_bun import bun, bunx, pnpm, pnpx, yarn
from halod.launch.shells import plain_words
from halod.launch.uv import uv, uvx
from halod.launch.words import MAX_OPERAND, has_placeholder
from halod.launch.wrappers import is_wrapper, unwrap

_MAX_DEPTH = 6
_MAX_WORDS = 2048


def _docker(args: tuple[str, ...], draft: Draft) -> None:
    container(args, draft, podman=False)


def _podman(args: tuple[str, ...], draft: Draft) -> None:
    container(args, draft, podman=True)


_LAUNCHERS = {
    "npx": npx,
    "npm": npm,
    "pnpm": pnpm,
    "pnpx": pnpx,
    "yarn": yarn,
    "bun": bun,
    "bunx": bunx,
    "deno": deno,
    "uvx": uvx,
    "uv": uv,
    "pipx": pipx,
    "docker": _docker,
    "nerdctl": _docker,
    "podman": _podman,
    "dnx": dnx,
    "dotnet": dotnet,
}


def identify(
    command: str,
    args: Sequence[str],
    env: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    cwd: str = "",
) -> Launch:
    """Tell what a stdio definition launches. Never raises; in doubt the outcome says so.

    `env` is the entry's environment as pairs or a mapping; `cwd` the working directory it asks for, or "".
    """
    pairs: list[tuple[str, str | None]] = list(env.items() if isinstance(env, Mapping) else env)
    return _read(command, tuple(args), pairs, cwd, 0).finish()


def _read(
    command: str, args: tuple[str, ...], env: list[tuple[str, str | None]], cwd: str, depth: int
) -> Draft:
    draft = Draft(env, cwd)
    if len(command) > MAX_OPERAND or len(args) > _MAX_WORDS or depth > _MAX_DEPTH:
        draft.kill("launch-error")
        return draft
    if has_placeholder(command):
        draft.kill("unresolved-variable", ecosystem="unknown")
        return draft
    name, absolute, trusted = program(command)
    launcher = _LAUNCHERS.get(name)
    if launcher is not None:
        launcher(args, draft)
        carry(draft)
        if absolute:
            draft.flags.add("absolute-launcher")
    elif is_wrapper(name):
        draft = _unwrapped(name, args, draft, depth)
    elif any(blank in command for blank in " \t"):
        return _split(command, args, draft, depth)
    else:
        describe(name, args, draft)
        return draft
    if not trusted:
        draft.kill("untrusted-launcher-path")
    return draft


def _unwrapped(name: str, args: tuple[str, ...], outer: Draft, depth: int) -> Draft:
    inside = unwrap(name, args)
    if inside is None:
        outer.kill("shell", "wrapper", ecosystem="none")
        return outer
    words = inside.words
    draft = _read(words[0], words[1:], outer.env + inside.env, inside.cwd or outer.cwd, depth + 1)
    draft.flags |= inside.flags
    if not draft.delegate:
        draft.nested = Nested(argv=words)
    elif inside.cwd:
        # What a carrier carries may prefer a local copy, whatever the carrier does.
        draft.flags.add("cwd-override")
    return draft


def _split(command: str, args: tuple[str, ...], outer: Draft, depth: int) -> Draft:
    """Read a whole command line in `command`: some clients split it, others look for a file of that name."""
    words = [plain for _raw, plain in plain_words(command) or ()]
    if not words:
        outer.kill("local-path", "command-line-in-command", ecosystem="local")
        return outer
    draft = _read(words[0], (*words[1:], *args), outer.env, outer.cwd, depth + 1)
    draft.flags.add("command-line-in-command")
    draft.dependent = True
    return draft
