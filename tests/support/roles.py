# SPDX-License-Identifier: Apache-2.0
"""Help for tests of forked code: run a function in a child of its own, and homes of a throw-away account.

A worker is measured for coverage in two ways. Its steps run one by one in `in_child`, which hands what the
child covered back to the parent; the order of the steps runs in the test process with a recorder in place of
`System`. Nothing is measured in a fully confined worker: it could not write its figures anywhere.
"""

import contextlib
import gc
import os
import pathlib
import pickle
import sys
import tempfile

from halod.roles.limits import Limits
from tests.support.guard import LONG, memory_directory

UID = 12345
GID = 12345
UNHURRIED = Limits(wall=LONG, grace=LONG)
"""A worker's limits where no test is about its time: a machine may stand still."""


def in_child(work, *, keep=None):
    """Run `work(*keep)` in a forked child and give what it returns, which must pickle.

    `keep`, a list, receives the descriptor of the result pipe: for work that closes descriptors.
    Raises AssertionError with the child's own words when the work raises.
    """
    reader, writer = os.pipe()
    if keep is not None:
        keep.append(writer)
    pid = os.fork()
    if pid == 0:
        try:
            try:
                result = True, work()
            except BaseException as error:
                result = False, f"{type(error).__name__}: {error}"
            _write(writer if not keep else keep[-1], pickle.dumps((result, _covered())))
        finally:
            os._exit(0)
    os.close(writer)
    data = _read(reader)
    os.close(reader)
    assert os.waitpid(pid, 0)[1] == 0
    (well, result), covered = pickle.loads(data)
    _merge(covered)
    assert well, result
    return result


def _collector():
    library = sys.modules.get("coverage")  # the benchmarks run where it is not installed
    measuring = None if library is None else library.Coverage.current()
    return None if measuring is None else measuring._collector


def _covered():
    collector = _collector()
    return {} if collector is None else {name: list(lines) for name, lines in collector.data.items()}


def _merge(covered):
    collector = _collector()
    for name, lines in covered.items():
        collector.data.setdefault(name, set()).update(lines)


def _write(descriptor, data):
    while data:
        data = data[os.write(descriptor, data) :]


def _read(descriptor):
    data = b""
    while chunk := os.read(descriptor, 65536):
        data += chunk
    return data


@contextlib.contextmanager
def public_directory():
    """Give a directory that every account may pass: pytest keeps its own to the user who runs the tests.

    It lies in memory where it can: services and workers have seconds of their own, which no disk may use up.
    """
    with tempfile.TemporaryDirectory(dir=memory_directory()) as made:
        os.chmod(made, 0o711)
        yield pathlib.Path(made)


def make_home(parent, uid=UID, gid=GID, name="home"):
    """Make a home with one file."""
    home = parent / name
    home.mkdir()
    file = home / ".claude.json"
    file.write_text('{"mcpServers": {"CANARY-name": {"command": "CANARY-command"}}}')
    if os.geteuid() == 0:
        os.chown(home, uid, gid)
        os.chown(file, uid, gid)
    return str(home)


def descriptors():
    """Give the open descriptors of this process; what other tests have dropped is closed first."""
    gc.collect()
    return sorted(int(name) for name in os.listdir("/dev/fd") if is_open(int(name)))


def open_files():
    """Give what each open descriptor of this process stands for: a number that is used anew is not the same file."""
    found = {}
    for number in descriptors():
        with contextlib.suppress(OSError):  # closed since it was listed
            status = os.fstat(number)
            found[number] = (status.st_dev, status.st_ino)
    return found


def is_open(descriptor):
    """Whether a descriptor is open: the one that made a listing is not any more."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def children(parent=None):
    """Give the process ids of a process's children, zombies too; without one, of this process's."""
    parent = parent or os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat:
                    fields = stat.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append(int(name))
    return found
