# SPDX-License-Identifier: Apache-2.0
"""Which unsafe things of a definition a registry entry answers (design 5, 6 and 7).

Invariants:

1. An unsafe flag counts unless the entry names its answer: `tolerate`, `bin`, `args`, `env`, or a mirror of
   the policy. A flag that this module has not heard of is never answered.
2. `tolerate: [host-mount]` never covers a mount that can put other code into the image, nor a way to the
   container engine.
"""

import posixpath
from collections.abc import Iterable

from halod.definition import Definition
from halod.drift.subject import Subject
from halod.launch.environment import judge as judge_key
from halod.launch.model import Launch
from halod.launch.urls import canonical_url, parse_url
from halod.policy.model import Entry

TOLERABLE = frozenset(
    {
        "host-mount",
        "privileged",
        "host-network",
        "env-injection",
        "path-override",
        "cwd-override",
        "from-flag",
        "package-flag",
    }
)
"""What `tolerate` may name (design 7). Said again here: a policy read by other code must not widen it."""

_PLAIN = frozenset({"identified", "identified-unpinned"})

# A mount onto or below one of these can replace what the image runs; `/lib64` and the like are `/lib`.
_CODE = ("/app", "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sbin", "/usr")
# Engine sockets lie below these; the names and folders are those of Docker, Podman, containerd, CRI-O, Docker
# Desktop, Colima, OrbStack and Rancher Desktop. Compared in lower case: macOS does not tell cases apart.
_SOCKET_TREES = ("/run", "/var/run", "/private/var/run")
_SOCKET_PARENTS = frozenset({"/", "/var", "/private", "/private/var"})
_SOCKET_NAMES = ("docker", "podman", "containerd", "crio", "buildkitd")
_SOCKET_FOLDERS = frozenset({".docker", ".colima", ".orbstack", ".rd", ".lima"})


def unanswered(subject: Subject, entry: Entry, mirrors: frozenset[str]) -> tuple[str, ...]:
    """Give what is unsafe about a command line that runs the entry's package, and that `entry` leaves open.

    `mirrors` are the policy's canonical URLs for the package's type. Sorted; empty when nothing is open.
    """
    launch = subject.launch
    # A key can be unsafe without a flag of its own: SSE_URL is a carrier's payload.
    unsafe = {*launch.unsafe_flags, *(flag for flag, _key in launch.unsafe_env)}
    open_flags = {flag for flag in unsafe if not _answers(launch, entry, flag, mirrors)}
    open_flags |= _open_features(subject.definition, entry)
    if entry.env is not None and not entry.env.issuperset(subject.env_keys):
        open_flags.add("env-unknown")
    if isinstance(entry.args, tuple) and launch.args != entry.args:
        open_flags.add("args-differ")
    return tuple(sorted(open_flags))


def unanswered_around(subject: Subject, entry: Entry) -> tuple[str, ...]:
    """Give what is unsafe around a command line, which `entry` pins as written (rule 1).

    The hash vouches for the words, those of an env wrapper or of `-e` among them; not for the entry's own
    environment, its cwd and its features. A cwd matters to every program that is not known to ignore it.
    """
    listed = entry.env or frozenset()
    outside = subject.outer_keys
    open_flags = {
        flag
        for flag, key in subject.launch.unsafe_env
        if key in outside and key not in listed and flag not in _tolerated(entry)
    }
    open_flags |= subject.injected - _tolerated(entry)
    open_flags |= _open_features(subject.definition, entry)
    if entry.env is not None and not entry.env.issuperset(subject.env_keys):
        open_flags.add("env-unknown")
    launch = subject.launch
    # A clean line of uvx or docker ignores its cwd; one that names files (`--with-requirements`, `-v ./x`) may not.
    by_cwd = "cwd-override" in launch.flags or launch.outcome not in _PLAIN
    if subject.definition.cwd and by_cwd and "cwd-override" not in _tolerated(entry):
        open_flags.add("cwd-override")
    return tuple(sorted(open_flags))


def unanswered_beside(definition: Definition, entry: Entry, *, carried: bool) -> tuple[str, ...]:
    """Give what is unsafe beside a URL, and that `entry`, which pins the URL, leaves open.

    Design 6 asks rules 2 and 3 too for no unsafe environment key: a harness may start a helper with it. What
    a bridge carries has the bridge's environment, which was judged with the bridge.
    """
    open_flags = _open_features(definition, entry)
    if not carried:
        keys = [(key, judge_key(key, value)) for key, value in definition.env]
        listed = entry.env or frozenset()
        open_flags |= {
            flag for key, flag in keys if flag and key not in listed and flag not in _tolerated(entry)
        }
        if entry.env is not None and any(key not in entry.env for key, _flag in keys):
            open_flags.add("env-unknown")
    return tuple(sorted(open_flags))


def _tolerated(entry: Entry) -> frozenset[str]:
    return entry.tolerate & TOLERABLE


def _open_features(definition: Definition, entry: Entry) -> set[str]:
    """An env-file is environment that halod cannot see: it is `env-injection`, and answered like it."""
    answered = {"env-file"} if "env-injection" in _tolerated(entry) else set()
    return {feature for feature in definition.features if feature not in answered}


def _answers(launch: Launch, entry: Entry, flag: str, mirrors: frozenset[str]) -> bool:
    if flag not in launch.line_flags and _listed(launch, entry, flag):
        return True
    if flag == "image-command":
        return entry.args is not None  # an exact list is compared by the caller
    if flag == "registry-override":
        return _all_listed(launch.registries, mirrors)
    if flag == "host-mount":
        harmless = bool(launch.mounts) and all(map(_harmless_mount, launch.mounts))
        return harmless and flag in entry.tolerate
    if flag in {"package-flag", "from-flag"} and entry.package is not None and entry.package.bin:
        return launch.bin == entry.package.bin or flag in entry.tolerate
    return flag in _tolerated(entry)


def _listed(launch: Launch, entry: Entry, flag: str) -> bool:
    """Every environment key that raises `flag` is named by the entry, and at least one raises it."""
    keys = {key for cause, key in launch.unsafe_env if cause == flag}
    return entry.env is not None and bool(keys) and keys <= entry.env


def _all_listed(registries: Iterable[str], mirrors: frozenset[str]) -> bool:
    """Every registry named is one of the policy's mirrors, and at least one is named."""
    named = list(registries)
    return bool(named) and all(canonical(text) in mirrors for text in named)


def canonical(text: str) -> str:
    """Give the canonical form of a URL, or "" when it has none."""
    parts = parse_url(text)
    return (canonical_url(parts) or "") if parts is not None else ""


def _harmless_mount(mount: tuple[str, str]) -> bool:
    source, target = mount
    if any(char in text for text in mount for char in "$%{}\\"):
        return False  # a variable can expand to anything, to "/x:/app" too
    return _harmless_target(target) and _harmless_source(source)


def _harmless_target(target: str) -> bool:
    if not target.startswith("/"):
        return False
    path = "/" + posixpath.normpath(target).lstrip("/")
    if path in {"/", "/etc"} or path.startswith("/etc/ld.so."):
        return False
    return not any(path == code or path.startswith(code + "/") for code in _CODE) and not _is_socket(path)


def _harmless_source(source: str) -> bool:
    path = posixpath.normpath(source) if source else ""
    if path.startswith("/"):
        path = "/" + path.lstrip("/")
    path = path.lower()
    if path.split("/", 1)[0] == "..":
        return False
    if path in _SOCKET_PARENTS or _is_socket(path):
        return False
    return not any(path == tree or path.startswith(tree + "/") for tree in _SOCKET_TREES)


def _is_socket(path: str) -> bool:
    parts = path.lower().split("/")
    return not _SOCKET_FOLDERS.isdisjoint(parts) or (
        parts[-1].endswith(".sock") and parts[-1].startswith(_SOCKET_NAMES)
    )
