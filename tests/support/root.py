# SPDX-License-Identifier: Apache-2.0
"""A root of a test's own: this machine's files, with every change in a directory of the test (overlayfs).

Each command runs in a mount and PID namespace of its own, so nothing that it starts outlives it and nothing that it
changes is seen outside. The network is the machine's.
"""

import os
import pathlib
import subprocess

from tests.support.guard import HANG

# $1 upper, $2 work, $3 where it is mounted; the rest is the command. Homes of root's, where a Python may lie, are
# covered: what runs inside has none but its own.
_ENTER = """
set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=/,upperdir=$1,workdir=$2" "$3"
mount --rbind /dev "$3/dev"
mount -t proc proc "$3/proc"
mount -t tmpfs tmpfs "$3/root"
mount -t tmpfs tmpfs "$3/tmp"
mount -t tmpfs tmpfs "$3/run"
test -z "$4" || { mkdir -p "$3$4"; mount --rbind "$4" "$3$4"; }
merged=$3
shift 4
exec chroot "$merged" "$@"
"""


class Root:
    """`changes` holds what differs from the machine; `shared` is visible inside under its own path."""

    def __init__(self, folder: pathlib.Path, shared: pathlib.Path):
        self.changes = folder / "changes"
        self._work, self._merged, self._shared = folder / "work", folder / "merged", shared
        for path in (self.changes, self._work, self._merged):
            path.mkdir(parents=True)

    def run(self, *command, code=0, timeout=HANG, **environment):
        """Run a command inside; give what it printed. Fails when the exit code is another than `code`."""
        done = subprocess.run(
            self.words(*command),
            capture_output=True,
            text=True,
            timeout=timeout,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", **environment},
            check=False,
            stdin=subprocess.DEVNULL,
            cwd="/",
        )
        assert code is None or done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def words(self, *command):
        """Give the words that run a command inside."""
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _ENTER, "enter"]
        places = [str(self.changes), str(self._work), str(self._merged), str(self._shared)]
        return [*enter, *places, *(str(word) for word in command)]

    def path(self, name: str) -> pathlib.Path:
        """Where a changed file lies, seen from outside."""
        return self.changes / name.lstrip("/")

    def changed(self) -> set[str]:
        """Every file, link and directory that was made, changed or removed; directories only when new."""
        found = set()
        for path in self.changes.rglob("*"):
            name = "/" + str(path.relative_to(self.changes))
            if path.is_symlink() or not path.is_dir() or not os.path.lexists(name):
                found.add(name)
        return found


def possible(folder: pathlib.Path) -> str:
    """Say why this machine cannot do it; "" when it can."""
    if os.geteuid() != 0:
        return "only root can mount a root of its own"
    done = subprocess.run(
        Root(folder / "try", folder).words("true"), capture_output=True, text=True, check=False, timeout=HANG
    )
    return "" if done.returncode == 0 else f"no overlay file system here: {done.stderr.strip()}"
