# SPDX-License-Identifier: Apache-2.0
"""Programs of the machine that run what their arguments say.

Beside a package (`npx -p P BIN`, `uvx --from P BIN`, `pipx run --spec P BIN`) they run instead of it, because
BIN is looked up on PATH, or taken as a path, when the package does not bring it (launchers.md 2.1, 4; the paths
run with npm 11, uv 0.13.9 and pipx 1.18). Neither `bin` of a policy nor a tolerated flag may let one through.
"""

import re

from halod.launch.words import listed

_RUNNERS = listed(
    """sh bash zsh dash ash ksh fish csh tcsh mksh yash cmd powershell pwsh env node nodejs npm npx pnpm pnpx
    yarn bun bunx deno python pythonw pypy uv uvx pipx pip pyenv conda poetry ruby gem bundle perl php lua luajit
    java jshell osascript awk gawk mawk sed find xargs parallel sudo doas su ssh docker podman nerdctl dotnet dnx
    make curl wget busybox toybox time timeout nohup nice setsid stdbuf script expect tclsh watch chroot unshare
    nsenter systemd-run tsx ts-node go cargo git vim vi ed emacs gdb lldb R Rscript julia groovy scala kotlin
    mise asdf direnv nix nix-shell wsl open xdg-open at batch crontab tmux screen socat nc ncat command exec"""
)
_FOLDED = frozenset(name.casefold() for name in _RUNNERS)
_SUFFIX = re.compile(r"\.(?:exe|cmd|bat|ps1|com)$")
_VERSION = re.compile(r"-?[0-9][0-9.]*[a-z]?$")


def is_runner(program: str) -> bool:
    """Tell whether `program`, named beside a package, is no program of the package: a path, or a runner.

    Names are compared without case (macOS, Windows), `.exe` and version: `python3.12`, `BASH.EXE`.
    """
    if "/" in program or "\\" in program:
        return True
    name = _SUFFIX.sub("", program.casefold())
    bare = _VERSION.sub("", name)
    return name in _FOLDED or (len(bare) > 2 and bare in _FOLDED)  # `ed25519` is no `ed`
