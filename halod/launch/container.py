# SPDX-License-Identifier: Apache-2.0
"""`docker run`, podman and nerdctl (launchers.md 6): pflag's grammar, the image, what is mounted and
injected.

Options end at the image. Booleans never take a separate value; every other option does. Only a digest pins.
"""

import posixpath
import re

from halod.launch.draft import Draft
from halod.launch.versions import reference
from halod.launch.words import MAX_OPERAND, Words, has_variable, listed, split_option

_HARMLESS_BOOLS = frozenset({"-i", "--interactive", "-t", "--tty", "--rm", "--init", "-q", "--read-only"})
_BOOLS = _HARMLESS_BOOLS | listed(
    """-d --detach --disable-content-trust --help --no-healthcheck --oom-kill-disable --privileged -P
    --publish-all --quiet --sig-proxy --use-api-socket"""
)
_PODMAN_BOOLS = listed(
    """--env-host --http-proxy --no-hosts --passwd --read-only-tmpfs --replace --rmi --tls-verify
    --unsetenv-all --rootfs --no-hostname"""
)
_SHORT_BOOLS = frozenset("ditqP")
_HARMLESS_VALUES = listed(
    """--name --platform --pull -p --publish -l --label --hostname --memory -m --cpus --pids-limit --restart
    --stop-timeout --shm-size"""
)
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ENV_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.:@/-]*")
_FLAGS = {
    "--privileged": "privileged",
    "--cap-add": "privileged",
    "--device": "privileged",
    "--security-opt": "privileged",
    "--entrypoint": "entrypoint-override",
    "--runtime": "code-injection",
    "--use-api-socket": "docker-socket",
    "--env-host": "env-injection",
    "--tls-verify": "network-override",
    "--add-host": "network-override",
    "--dns": "network-override",
}
_GLOBAL_VALUES = listed(
    """-H --host -c --context --config -l --log-level --tlscacert --tlscert --tlskey --url --connection
    --identity --root --runroot --storage-driver --storage-opt --address -a --namespace -n --data-root"""
)
_HARMLESS_GLOBALS = frozenset({"-l", "--log-level", "-D", "--debug"})
_IMAGE_ID = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_SOCKET = re.compile(
    r"(?:docker|podman|containerd|crio|buildkitd|dockershim)(?:-raw)?\.sock|docker_engine", re.IGNORECASE
)
_SOCKET_DIRECTORIES = frozenset({"/run", "/var/run", "/run/podman", "/run/containerd", "/private/var/run"})
_UNKNOWN_MOUNT = ("", "/")
# What a `PATH` inside an image may name: directories that no tolerated mount may cover (design 7).
_IMAGE_DIRECTORIES = frozenset({"/bin", "/usr/bin", "/usr/local/bin"})


def container(args: tuple[str, ...], draft: Draft, *, podman: bool) -> None:
    """Read `docker [global options] [container] run [options] IMAGE [words]`."""
    words = Words(args)
    word = words.next()
    while word is not None and word.startswith("-"):
        name, attached = split_option(word)
        draft.flags.add("unknown-option" if name in _HARMLESS_GLOBALS else "daemon-override")
        if name in _GLOBAL_VALUES:
            words.value(attached)
        word = words.next()
    if word == "container":
        word = words.next()
    if word == "run":
        draft.ecosystem = "oci"
        _run(words, draft, podman=podman)
    elif word in {"exec", "start", "attach"}:
        draft.kill("existing-container", ecosystem="none")
    elif word == "mcp" and words.rest()[:2] == ("gateway", "run") and not podman:
        draft.ecosystem, draft.identifier, draft.delegate = "none", "docker-mcp-gateway", True
        draft.flags.update(("carrier", "remote-catalog"))
    else:
        draft.kill("launch-error", ecosystem="none")


def _run(words: Words, draft: Draft, *, podman: bool) -> None:
    while (word := words.next()) is not None:
        if word == "--":
            word = words.next()
            break
        if not word.startswith("-") or word == "-":
            break
        if word.startswith("--"):
            name, attached = split_option(word)
            _option(name, attached, words, draft, podman=podman)
        else:
            _cluster(word[1:], words, draft, podman=podman)
    if word is None:
        draft.kill("launch-error")
        return
    draft.args = words.rest()
    if draft.args and "entrypoint-override" not in draft.flags:
        draft.flags.add("image-command")
    _image(word, draft, podman=podman)


def _cluster(letters: str, words: Words, draft: Draft, *, podman: bool) -> None:
    """Read glued short options; the first that takes a value takes the rest of the word, or the next one."""
    for place, letter in enumerate(letters):
        rest = letters[place + 1 :]
        name = f"-{letter}"
        if letter in _SHORT_BOOLS:
            if rest.startswith("="):
                _option(name, rest[1:], words, draft, podman=podman)
                return
            _option(name, None, words, draft, podman=podman)
            continue
        _option(name, (rest.removeprefix("=") if rest else None), words, draft, podman=podman)
        return


def _option(name: str, attached: str | None, words: Words, draft: Draft, *, podman: bool) -> None:
    if name in _BOOLS or (podman and name in _PODMAN_BOOLS):
        if name == "--rootfs":
            draft.kill("local-path", ecosystem="local")
        elif name not in _HARMLESS_BOOLS or attached not in {None, "true", "false"}:
            draft.flags.add(_FLAGS.get(name, "unknown-option"))
        return
    value = words.value(attached)
    if value is None:
        draft.kill("launch-error")
    else:
        _value_option(name, value, draft)


def _value_option(name: str, value: str, draft: Draft) -> None:
    if name in {"-e", "--env"}:
        _environment(value, draft)
    elif name == "--env-file":
        if value != "/dev/null":
            draft.flags.add("env-injection")
    elif name in {"--network", "--net"}:
        _network(value, draft)
    elif name in {"-v", "--volume", "--mount", "--tmpfs", "--volumes-from"}:
        _mount(name, value, draft)
    elif name not in _HARMLESS_VALUES:
        draft.flags.add(_FLAGS.get(name, "unknown-option"))


def _environment(text: str, draft: Draft) -> None:
    key, equals, value = text.partition("=")
    if _ENV_KEY.fullmatch(key) is None:
        draft.flags.add("code-injection")  # podman copies every variable that `-e NAME*` fits
    if key.upper() == "PATH" and not set(value.split(":")) <= _IMAGE_DIRECTORIES:
        draft.flags.add("path-override")  # a tolerated mount could fill a directory below a home
    draft.env.append((key, value if equals else None))


def _network(value: str, draft: Draft) -> None:
    if value.lower() == "host":
        draft.flags.add("host-network")
    elif _NETWORK.fullmatch(value) is None:
        draft.flags.add("unknown-option")


def _mount(name: str, value: str, draft: Draft) -> None:
    draft.flags.add("host-mount")
    if name == "--volumes-from":
        source, target = value, "/"
    elif name == "--tmpfs":
        source, target = "", value.partition(":")[0]
    elif name == "--mount":
        source, target = _mount_fields(value)
    else:
        source, target = _volume(value)
    if not target.startswith("/") or has_variable(target) or "\0" in target:
        target = "/"
    draft.mounts.append((source, "/" + posixpath.normpath(target).lstrip("/")))
    if (
        _SOCKET.search(value if name == "--mount" else source)
        or posixpath.normpath(source or ".") in _SOCKET_DIRECTORIES
    ):
        draft.flags.add("docker-socket")


def _volume(value: str) -> tuple[str, str]:
    """Read `[SOURCE:]TARGET[:OPTIONS]`; a Windows source keeps its drive. What has another shape hits `/`."""
    parts = value.split(":")
    if len(parts) > 2 and re.fullmatch("[A-Za-z]", parts[0]) and parts[1][:1] in {"/", "\\"}:
        # `C:\data:/app`; read without a drive it would be source, target, options: believe neither.
        return f"{parts[0]}:{parts[1]}", parts[2] if parts[1][:1] == "\\" and len(parts) <= 4 else "/"
    if len(parts) == 1:
        return "", parts[0]
    return (parts[0], parts[1]) if len(parts) <= 3 else (parts[0], "/")


def _mount_fields(value: str) -> tuple[str, str]:
    """Read the comma-separated fields of `--mount`; quoting, or a field twice, is not followed.

    Docker takes the last of two. Nor are the options of a volume followed: with `volume-opt=device=/` it is
    another source than `src` says.
    """
    if '"' in value or "\n" in value or "\r" in value:
        return _UNKNOWN_MOUNT
    source = target = ""
    for field in value.split(","):
        key, _, text = field.partition("=")
        key = key.strip().lower()
        if key in {"source", "src"}:
            source, again = text, source
        elif key in {"target", "dst", "destination"}:
            target, again = text, target
        else:
            again = key if key in {"volume-opt", "volume-driver"} else ""
        if again:
            return _UNKNOWN_MOUNT
    return source, target


def _image(text: str, draft: Draft, *, podman: bool) -> None:
    if has_variable(text) or len(text) > MAX_OPERAND:
        draft.kill("unresolved-variable", ecosystem="unknown")
        return
    by_id = _IMAGE_ID.fullmatch(text)
    if by_id is not None:
        draft.digest = f"sha256:{by_id[1]}"
        draft.flags.add("image-id")
        return
    image = reference(text)
    if image is None:
        draft.kill("launch-error")
        return
    draft.identifier, draft.digest = image.name, image.digest
    draft.requested = image.tag or (None if image.digest else "latest")
    if podman and image.short:
        draft.identifier = text.partition("@")[0].partition(":")[0]
        draft.flags.add("short-name")
    elif image.short and image.single and not image.digest:
        draft.flags.add("maybe-local-build")
