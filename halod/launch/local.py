# SPDX-License-Identifier: Apache-2.0
"""Programs that are no launchers: why nothing can be said of them. They are always unidentifiable."""

import re

from halod.launch.draft import Draft
from halod.launch.words import listed

_PYTHON = re.compile(r"(?:python|pythonw|pypy)[0-9.]*")
_SCRIPTS = listed("node nodejs ruby perl php lua tsx ts-node Rscript julia")
_INLINE = listed("-e --eval -p --print -r -c -E")
_INJECT = listed("-r --require --import --loader --experimental-loader --env-file -I -M")


def describe(name: str, args: tuple[str, ...], draft: Draft) -> None:
    """Kill the draft with what its words show: a module, inline code, a file, another host."""
    first = args[0] if args else ""
    if name == "ssh":
        draft.kill("remote-host", "shell", ecosystem="none")
    elif name in {"nix", "nix-shell", "go", "cargo", "brew", "guix", "flatpak", "snap"}:
        draft.kill("unsupported-ecosystem", ecosystem="nix" if name.startswith("nix") else "unknown")
    elif _PYTHON.fullmatch(name):
        if first == "-m":
            draft.kill("ambient-install", "module", ecosystem="python-module")
        else:
            draft.kill("inline-code" if first == "-c" else "local-path", ecosystem="local")
    elif name in _SCRIPTS:
        if any(word.partition("=")[0] in _INJECT for word in args[:8]):
            draft.flags.add("code-injection")
        draft.kill("inline-code" if first in _INLINE else "local-path", ecosystem="local")
        if any("/node_modules/" in word for word in args[:8]):
            draft.flags.add("ambient-install")
    else:
        draft.kill("local-path", ecosystem="local")
