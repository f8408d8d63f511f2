# SPDX-License-Identifier: Apache-2.0
"""A worker in which hostile code runs: what it tries is refused, and what others try on it too.

The hostile code is the `scan` callable. It reports what happened by the answer's `files` (a number) or as the
`name` of rows: the errno's name, or "allowed".
"""

import ctypes
import errno
import os
import signal
import socket
import sys

import pytest

from halod.roles import supervisor, worker
from halod.roles.answer import Answer, Row
from tests.support.guard import until
from tests.support.roles import GID, UID, UNHURRIED, children, descriptors, make_home, public_directory

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to change ids"),
]

LIBC = ctypes.CDLL(None, use_errno=True)


def row(name):
    return Row(
        location=0, parts=(), name=name, transport="stdio", host="", sha256="", scope="user", enabled=True,
        secret=False, kind="inventory",
    )  # fmt: skip


def attempt(work):
    """Do something forbidden; say how that went."""
    try:
        result = work()
    except OSError as error:
        return errno.errorcode[error.errno]
    except RuntimeError:
        return "RuntimeError"
    return f"allowed:{result!r}"


def call(name, *arguments):
    """Call libc, and raise what it says."""
    result = getattr(LIBC, name)(*arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


def run(home, scan, **changes):
    fields = {"uid": UID, "gid": GID, "groups": (GID,), "home": home, **changes}
    (outcome,) = supervisor.run([worker.Job(**fields)], scan, limits=UNHURRIED)
    return outcome


def tries(home, attempts, **changes):
    """Run attempts in a worker; give how each went."""

    def scan(_home, _job):
        return Answer(rows=tuple(row(attempt(work)) for work in attempts))

    outcome = run(home, scan, **changes)
    assert outcome.failure is None
    assert outcome.answer.sandbox == "full"
    return [one.name for one in outcome.answer.rows]


@pytest.fixture
def place():
    with public_directory() as made:
        yield made


@pytest.fixture
def home(place):
    return make_home(place)


def test_the_home_is_read_as_its_account(home):
    def scan(opened, _job):
        ids = {*os.getresuid(), *os.getresgid(), *os.getgroups()}
        assert ids == {UID, GID}
        return Answer(files=len(opened.read(".claude.json").data))

    outcome = run(home, scan)
    assert outcome.answer == Answer(files=os.path.getsize(f"{home}/.claude.json"))


def test_root_does_not_come_back(home):
    attempts = [
        lambda: os.setuid(0),
        lambda: os.seteuid(0),
        lambda: os.setresuid(0, 0, 0),
        lambda: os.setgid(0),
        lambda: os.setgroups([0]),
        lambda: call("setfsuid", -1) and None,
        lambda: call("unshare", 0x10000000),  # CLONE_NEWUSER
        lambda: call("setns", 3, 0),
    ]
    assert tries(home, attempts) == ["EPERM"] * len(attempts)


def test_every_capability_is_gone(home):
    from halod.roles import libc

    assert tries(home, [libc.capabilities]) == ["allowed:False"]
    assert tries(home, [libc.capabilities], uid=UID) == ["allowed:False"]


def test_there_is_no_network(home):
    kinds = [
        (socket.AF_INET, socket.SOCK_STREAM),
        (socket.AF_INET6, socket.SOCK_DGRAM),
        (socket.AF_UNIX, socket.SOCK_STREAM),
        (socket.AF_NETLINK, socket.SOCK_RAW),
    ]
    attempts = [lambda kind=kind: socket.socket(*kind) for kind in kinds]
    assert tries(home, [*attempts, socket.socketpair]) == ["EPERM"] * 5


def test_nothing_is_executed_and_no_process_or_thread_made(home):
    import _thread

    attempts = [
        lambda: os.execv("/bin/true", ["true"]),
        lambda: os.execve(0, ["x"], {}),
        os.fork,
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        lambda: _thread.start_new_thread(print, ()),
    ]
    assert tries(home, attempts) == ["EPERM", "EPERM", "EPERM", "EPERM", "RuntimeError"]


def test_nothing_is_written_anywhere(home):
    file = f"{home}/.claude.json"
    before = os.stat(file)
    attempts = [
        lambda: os.open(file, os.O_WRONLY),
        lambda: os.open(file, os.O_RDWR | os.O_APPEND),
        lambda: os.open(file, os.O_RDONLY | os.O_TRUNC),
        lambda: os.open(f"{home}/new", os.O_RDONLY | os.O_CREAT),
        lambda: os.open("/tmp/CANARY-new", os.O_WRONLY | os.O_CREAT),
        lambda: os.open(home, os.O_TMPFILE | os.O_RDWR),
        lambda: os.open("/proc/self/oom_score_adj", os.O_WRONLY),
        lambda: os.open("/proc/self/mem", os.O_RDWR),
        lambda: os.open("/dev/null", os.O_WRONLY),
        lambda: os.truncate(file, 0),
        lambda: os.unlink(file),
        lambda: os.rename(file, f"{file}.bak"),
        lambda: os.mkdir(f"{home}/dir"),
        lambda: os.symlink("a", f"{home}/link"),
        lambda: os.link(file, f"{home}/hard"),
        lambda: os.mkfifo(f"{home}/fifo"),
        lambda: os.chmod(file, 0o777),
        lambda: os.chown(file, UID, GID),
        lambda: os.utime(file),
        lambda: os.setxattr(file, "user.x", b"y"),
        lambda: os.memfd_create("x"),
    ]
    assert tries(home, attempts) == ["EPERM"] * len(attempts)
    after = os.stat(file)
    assert (after.st_mtime_ns, after.st_ctime_ns, after.st_mode) == (
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_mode,
    )
    assert sorted(os.listdir(home)) == [".claude.json"]


def test_nothing_outside_the_home_is_read(home, place):
    other = make_home(place, name="other")
    outside = [
        "/etc/passwd", "/etc/shadow", "/root", "/", "/tmp", "/proc/self/environ", "/proc/self/maps", "/proc",
        "/dev/null", "/dev/urandom", os.__file__, f"{other}/.claude.json", other, f"{home}/../other/.claude.json",
    ]  # fmt: skip
    attempts = [lambda path=path: os.open(path, os.O_RDONLY) for path in outside]
    inside = [
        lambda: len(os.read(os.open(f"{home}/.claude.json", os.O_RDONLY), 7)),
        lambda: os.listdir(home),
    ]
    assert tries(home, attempts) == ["EACCES"] * len(outside)
    assert tries(home, inside) == ["allowed:7", "allowed:['.claude.json']"]


def test_no_other_process_is_touched(home):
    pid = os.fork()
    if pid == 0:
        try:
            os.setresgid(GID, GID, GID)
            os.setresuid(UID, UID, UID)
            signal.pause()
        finally:
            os._exit(0)
    try:
        attempts = [
            lambda: os.kill(pid, signal.SIGTERM),
            lambda: os.kill(os.getppid(), 0),
            lambda: os.kill(-1, signal.SIGTERM),
            lambda: os.killpg(pid, signal.SIGTERM),
            lambda: call("ptrace", 16, pid, 0, 0),
            lambda: call("ptrace", 0, 0, 0, 0),
            lambda: call("process_vm_readv", pid, None, 0, None, 0, 0),
            lambda: call("process_vm_writev", pid, None, 0, None, 0, 0),
            lambda: os.pidfd_open(pid),
            lambda: call("prlimit64", pid, 7, None, None),
            lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
            lambda: os.sched_setaffinity(pid, {0}),
            lambda: call("fcntl", 3, 8, pid),
            lambda: call("shmget", 0, 4096, 0o1600),
        ]
        assert tries(home, attempts) == ["EPERM"] * len(attempts)
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_what_belongs_to_the_administrator_stays_so(home):
    attempts = [
        lambda: call("mount", b"x", b"/", b"tmpfs", 0, None),
        lambda: call("umount2", b"/proc", 0),
        lambda: os.chroot(home),
        lambda: (
            call("syscall", 250, 0, 0, 0, 0, 0) if os.uname().machine == "x86_64" else call("syscall", 219, 0)
        ),
        lambda: call("syscall", 425, 1, 0),  # io_uring_setup
        lambda: call("syscall", 321, 0, 0, 0) if os.uname().machine == "x86_64" else call("syscall", 280, 0),
        lambda: call("syscall", 323, 0) if os.uname().machine == "x86_64" else call("syscall", 282, 0),
        lambda: call("syscall", 437, 3, b".", 0, 0),  # openat2
    ]
    assert tries(home, attempts) == ["EPERM"] * len(attempts)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 is a convention of x86_64")
def test_another_calling_convention_ends_the_worker(home):
    assert run(home, lambda *_: call("syscall", 0x40000000 + 39)).failure == "worker-crashed"


def test_limits_bind_the_worker(home):
    import resource

    def scan(_home, _job):
        kinds = ("CPU", "AS", "NOFILE", "FSIZE", "CORE")
        soft = [resource.getrlimit(getattr(resource, f"RLIMIT_{kind}"))[0] for kind in kinds]
        assert soft == [15, 1024**3, 128, 0, 0]
        assert descriptor_numbers() == [0, 1, 2, 3, 4]
        assert os.getsid(0) == os.getpid()
        return Answer(files=1)

    def descriptor_numbers():
        # The home's own descriptor lies above; /proc cannot be listed any more.
        held = []
        for number in range(128):
            try:
                os.fstat(number)
            except OSError:
                continue
            held.append(number)
        return held[:5]

    outcome = run(home, scan)
    assert outcome.failure is None


def test_memory_is_bounded(home):
    assert run(home, lambda *_: bytearray(2 * 1024**3)).failure == "worker-crashed"


def test_root_is_read_without_capabilities_and_under_landlock(place):
    home = make_home(place, uid=0, gid=0)
    from halod.roles import libc

    attempts = [
        libc.capabilities,
        os.getuid,
        lambda: os.listdir(home),
        lambda: os.open("/etc/shadow", os.O_RDONLY),
        lambda: os.open("/root", os.O_RDONLY),
        lambda: os.open(f"{home}/.claude.json", os.O_WRONLY),
        lambda: os.setuid(UID),
        lambda: os.kill(os.getppid(), 0),
        os.fork,
        lambda: call("prctl", 24, 7, 0, 0, 0),  # PR_CAPBSET_DROP needs a capability
    ]
    assert tries(home, attempts, uid=0, gid=0, groups=(0,)) == [
        "allowed:False",
        "allowed:0",
        "allowed:['.claude.json']",
        "EACCES",
        "EACCES",
        "EPERM",
        "EPERM",
        "EPERM",
        "EPERM",
        "EPERM",
    ]


def test_an_owner_without_a_password_entry_is_read(home):
    assert run(home, lambda *_: Answer(files=1), listed=False).answer == Answer(files=1)


@pytest.mark.parametrize("change", ["absent", "file", "closed"])
def test_a_home_that_cannot_be_opened(home, change):
    path = home
    if change == "absent":
        path = f"{home}/absent"
    elif change == "file":
        path = f"{home}/.claude.json"
    else:
        os.chown(home, 0, 0)
        os.chmod(home, 0o700)
    assert run(path, lambda *_: Answer(files=1)).failure == "home-unavailable"


# -- what others try on it ---------------------------------------------------------------------------


def _as_account(work):
    """Do something in a process of the account, with no ties to the worker; give the errno, 0 when it worked."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(GID, GID, GID)
            os.setresuid(UID, UID, UID)
            try:
                work()
            except OSError as error:
                os.write(writer, bytes([error.errno]))
            else:
                os.write(writer, b"\0")
        finally:
            os._exit(0)
    os.close(writer)
    said = os.read(reader, 1)
    os.close(reader)
    os.waitpid(pid, 0)
    return errno.errorcode.get(said[0], said[0])


def test_the_account_cannot_look_into_its_worker(home):
    before = set(children())
    pool = supervisor.Pool(lambda *_: signal.pause(), limits=UNHURRIED)
    try:
        pool.submit(worker.Job(uid=UID, gid=GID, home=home))
        pool.step()
        (pid,) = set(children()) - before
        until(lambda: _seccomp_mode(pid) == "2")
        attacks = {
            "attach": lambda: call("ptrace", 16, pid, 0, 0),
            "seize": lambda: call("ptrace", 0x4206, pid, 0, 0),
            "mem": lambda: os.open(f"/proc/{pid}/mem", os.O_RDONLY),
            "environ": lambda: os.read(os.open(f"/proc/{pid}/environ", os.O_RDONLY), 10),
            "maps": lambda: os.read(os.open(f"/proc/{pid}/maps", os.O_RDONLY), 10),
            "pipe": lambda: os.open(f"/proc/{pid}/fd/3", os.O_WRONLY),
            "cwd": lambda: os.readlink(f"/proc/{pid}/cwd"),
            "vm": lambda: _read_memory(pid),
            "pidfd": lambda: call("syscall", 438, os.pidfd_open(pid), 3, 0),
        }
        refused = {name: _as_account(attack) for name, attack in attacks.items()}
        assert set(refused.values()) <= {"EPERM", "EACCES"}, refused
        assert _as_account(lambda: os.kill(pid, 0)) == 0, "the account's own uid, so the attacks were its own"
    finally:
        pool.close()
    assert set(children()) == before


def _read_memory(pid):
    class Vector(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    buffer = ctypes.create_string_buffer(8)
    local = Vector(ctypes.addressof(buffer), 8)
    remote = Vector(id(pid), 8)
    return call("process_vm_readv", pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)


def _seccomp_mode(pid):
    """Give a process's seccomp mode; empty when it is gone, or waits to be reaped."""
    try:
        with open(f"/proc/{pid}/status") as status:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
    except OSError:
        return ""
    return "" if fields["State"].startswith("Z") else fields["Seccomp"]


def test_a_worker_ends_with_its_supervisor(home):
    reader, writer = os.pipe()
    supervising = os.fork()
    if supervising == 0:
        try:
            os.close(reader)
            pool = supervisor.Pool(lambda *_: signal.pause(), limits=UNHURRIED)
            pool.submit(worker.Job(uid=UID, gid=GID, home=home))
            pool.step()
            (pid,) = children()
            until(lambda: _seccomp_mode(pid) == "2")
            os.write(writer, str(pid).encode())
            signal.pause()
        finally:
            os._exit(0)
    os.close(writer)
    pid = int(os.read(reader, 20))
    os.close(reader)
    assert _seccomp_mode(pid) == "2"
    os.kill(supervising, signal.SIGKILL)
    os.waitpid(supervising, 0)
    until(lambda: _seccomp_mode(pid) != "2")


def test_an_ordinary_callers_worker_is_confined_too(place):
    home = make_home(place)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(GID, GID, GID)
            os.setresuid(UID, UID, UID)
            outcomes = tries(
                home,
                [os.getuid, lambda: os.open("/etc/passwd", os.O_RDONLY), socket.socket, os.fork],
                trusted_links=False,
            )
            os.write(writer, repr(outcomes).encode())
        finally:
            os._exit(0)
    os.close(writer)
    said = os.read(reader, 1000).decode()
    os.close(reader)
    os.waitpid(pid, 0)
    assert said == repr([f"allowed:{UID}", "EACCES", "EPERM", "EPERM"])


def test_a_scan_leaves_no_descriptor_and_no_zombie(home):
    before = descriptors()
    for _ in range(3):
        run(home, lambda *_: Answer(files=1))
    assert descriptors() == before
    assert children() == []
