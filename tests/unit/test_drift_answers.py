# SPDX-License-Identifier: Apache-2.0
"""What a registry entry answers: tolerate, bin, args, env, listed mirrors (design 5 to 7)."""

import pytest

from halod.policy.model import Entry
from tests.support.drift import DIGEST, OCI, judged, launch, npm_entry, stdio

MIRROR = "https://packages.acme.example/npm/"


def _kind(found, *entries, definition=None, **more):
    return judged(found, *entries, definition=definition, **more).kind


def _unsafe(*flags, **fields):
    return launch(outcome="identified-unsafe", flags=tuple(sorted(flags)), **fields)


# --- tolerate ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flag",
    [
        "privileged",
        "host-network",
        "env-injection",
        "path-override",
        "cwd-override",
        "from-flag",
        "package-flag",
    ],
)
def test_a_tolerated_flag_does_not_disqualify(flag):
    """Rule 6, as rules 4 and 5."""
    tolerant = npm_entry(tolerate=frozenset({flag}))
    assert _kind(_unsafe(flag), npm_entry()) == "unapproved"
    assert _kind(_unsafe(flag), tolerant) == "approved"
    assert _kind(_unsafe(flag, version="9.0.0"), tolerant) == "version-drift"
    assert _kind(_unsafe(flag, version=None), tolerant) == "version-drift"


@pytest.mark.parametrize(
    "flag",
    ["code-injection", "extra-packages", "alias", "entrypoint-override", "docker-socket", "registry-override",
     "version-dependent", "carrier-option", "env-unknown", "args-differ", "never-heard-of"],
)  # fmt: skip
def test_nothing_else_can_be_tolerated(flag):
    """`tolerate` accepts a closed list; a policy from elsewhere must not widen it."""
    assert _kind(_unsafe(flag), npm_entry(tolerate=frozenset({flag}))) == "unapproved"


def test_every_flag_needs_its_answer():
    """One left open is enough, and only that one is told."""
    tolerant = npm_entry(tolerate=frozenset({"privileged"}))
    assert judged(_unsafe("privileged", "host-network"), tolerant).flags == ("host-network",)


def test_an_env_file_is_tolerated_as_env_injection():
    """A file of environment that halod does not read."""
    definition = stdio(features=frozenset({"env-file"}))
    assert _kind(launch(), npm_entry(), definition=definition) == "unapproved"
    tolerant = npm_entry(tolerate=frozenset({"env-injection"}))
    assert _kind(launch(), tolerant, definition=definition) == "approved"
    more = stdio(features=frozenset({"env-file", "sandbox-off"}))
    assert judged(launch(), tolerant, definition=more).flags == ("sandbox-off",)


# --- host mounts ------------------------------------------------------------------------------------------------


def _image(*mounts, flags=("host-mount",)):
    return _unsafe(
        *flags,
        ecosystem="oci",
        identifier=OCI.identifier,
        version=None,
        digest=f"sha256:{DIGEST}",
        mounts=mounts,
    )


MOUNTING = Entry(id="img", package=OCI, tolerate=frozenset({"host-mount"}))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("/home/dev/data", "/data"),
        ("/Users/dev", "/Users/dev"),
        ("./data", "/data"),
        ("notes", "/data/"),
        ("~/notes", "/workspace/x"),
        ("/srv/app", "/application"),
        ("/srv/x", "/optional"),
        ("/srv/x", "/etc/grafana"),
        ("/var/lib/notes", "/data"),
        ("/runner", "/data"),
    ],
)
def test_a_tolerated_mount_of_data_is_fine(source, target):
    """What `tolerate: [host-mount]` is for."""
    assert _kind(_image((source, target)), MOUNTING) == "approved"
    assert _kind(_image((source, target)), Entry(id="img", package=OCI)) == "unapproved"


@pytest.mark.parametrize(
    "target",
    ["/", "//", "///", "/.", "/x/..", "/app", "/app/", "//app", "/./app", "/x/../app", "/app/node_modules", "/usr",
     "/usr/local/bin", "/opt/x", "/bin", "/bin/sh", "/lib", "/lib/x86_64-linux-gnu", "/lib64", "/sbin", "/etc",
     "/etc/ld.so.preload", "/etc/x/../ld.so.preload", "/../usr", "app", "", "${TARGET}", "/data/$X", "%T%",
     "C:\\app", "/var/run/docker.sock", "/x/docker.sock"],
)  # fmt: skip
def test_a_mount_over_code_is_never_tolerated(target):
    """A mount there can replace what the image runs, in whatever spelling."""
    assert judged(_image(("/home/dev/x", target)), MOUNTING).flags == ("host-mount",)


@pytest.mark.parametrize(
    "source",
    ["/", "//", "/..", "/var/run/docker.sock", "//var//run/docker.sock", "/var/run/../run/docker.sock", "/run",
     "/run/", "/var", "/var/run", "/private/var/run/docker.sock", "/VAR/RUN/Docker.sock", "/run/user/501/podman/podman.sock",
     "/home/dev/.docker/run", "/Users/dev/.docker/run/docker.sock", "/Users/dev/.colima/default", "~/.orbstack/run",
     "../../../var/run/docker.sock", "../..", "/run/containerd/containerd.sock", "${SOCKET}", "{x}", "x\\y",
     "docker.sock"],
)  # fmt: skip
def test_a_mount_of_the_engine_is_never_tolerated(source):
    """A way to the container engine is root on this machine."""
    assert judged(_image((source, "/data")), MOUNTING).flags == ("host-mount",)


def test_every_mount_is_looked_at():
    """One harmless mount does not cover for another; a mount that was not understood is none of these."""
    assert _kind(_image(("/srv/a", "/a"), ("/srv/b", "/app")), MOUNTING) == "unapproved"
    assert _kind(_image(), MOUNTING) == "unapproved"


def test_a_socket_flag_is_never_tolerated():
    """`docker-socket` is a flag of its own beside `host-mount`."""
    found = _image(("/srv/a", "/a"), flags=("docker-socket", "host-mount"))
    assert judged(found, MOUNTING).flags == ("docker-socket",)


# --- bin --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["package-flag", "from-flag"])
def test_bin_answers_a_program_named_apart(flag):
    """`npx -p PKG BIN`, `uvx --from PKG BIN`, `pipx run --spec PKG BIN` when BIN is the entry's."""
    entry = npm_entry(bin="github-mcp")
    assert _kind(_unsafe(flag, bin="github-mcp"), entry) == "approved"
    assert _kind(_unsafe(flag, bin="github-mcp", version="1.0.0"), entry) == "version-drift"
    for other in ("sh", "GitHub-mcp", "github-mcp.exe", None, ""):
        assert _kind(_unsafe(flag, bin=other), entry) == "unapproved"
    assert _kind(_unsafe(flag, bin=""), npm_entry()) == "unapproved"
    assert _kind(_unsafe(flag, bin=None), npm_entry()) == "unapproved"


def test_bin_answers_nothing_else():
    """Another registry is still another registry."""
    assert _kind(_unsafe("package-flag", "alias", bin="x"), npm_entry(bin="x")) == "unapproved"


# --- args -------------------------------------------------------------------------------------------------------


def test_words_after_an_image_need_args():
    """`args: any`, or the exact list."""
    found = _unsafe(
        "image-command", ecosystem="oci", identifier=OCI.identifier, version=None, digest=f"sha256:{DIGEST}",
        args=("-t", "stdio"),
    )  # fmt: skip
    assert _kind(found, Entry(id="img", package=OCI)) == "unapproved"
    assert _kind(found, Entry(id="img", package=OCI, args="any")) == "approved"
    assert _kind(found, Entry(id="img", package=OCI, args=("-t", "stdio"))) == "approved"
    assert judged(found, Entry(id="img", package=OCI, args=("-t",))).flags == ("args-differ",)


def test_an_exact_list_pins_the_arguments_of_a_package():
    """What the program does with its arguments is its own business, unless the entry pins them."""
    assert _kind(launch(args=("--x",)), npm_entry()) == "approved"
    assert _kind(launch(args=("--x",)), npm_entry(args="any")) == "approved"
    assert _kind(launch(args=("--x",)), npm_entry(args=("--x",))) == "approved"
    assert judged(launch(args=("--x", "--y")), npm_entry(args=("--x",))).flags == ("args-differ",)
    assert judged(launch(), npm_entry(args=("--x",))).flags == ("args-differ",)
    assert _kind(launch(), npm_entry(args=())) == "approved"
    assert _kind(launch(args=("--x",)), npm_entry(args=())) == "unapproved"


# --- env --------------------------------------------------------------------------------------------------------


def test_a_list_of_keys_is_an_allow_list():
    """Any other key is `env-unknown`, also of a wrapper or of -e; the entry without a list allows them."""
    entry = npm_entry(env=frozenset({"GITHUB_TOKEN", "GITHUB_HOST"}))
    listed = stdio(env=[("GITHUB_TOKEN", "CANARY")])
    other = stdio(env=[("GITHUB_TOKEN", "CANARY"), ("EXTRA", "CANARY")])
    assert _kind(launch(env_keys=("GITHUB_TOKEN",)), entry, definition=listed) == "approved"
    assert _kind(launch(), entry) == "approved"
    assert judged(launch(), entry, definition=other).flags == ("env-unknown",)
    assert judged(launch(env_keys=("FROM_WRAPPER",)), entry).flags == ("env-unknown",)
    assert judged(launch(env_keys=("github_token",)), entry).flags == ("env-unknown",)
    assert _kind(launch(env_keys=("FROM_WRAPPER",)), npm_entry()) == "approved"
    assert judged(launch(env_keys=("X",)), npm_entry(env=frozenset())).flags == ("env-unknown",)


def test_an_unsafe_key_is_answered_by_its_name():
    """Every key that raises the flag must be listed."""
    found = _unsafe(
        "code-injection",
        env_keys=("NODE_OPTIONS", "NODE_PATH"),
        unsafe_env=(("code-injection", "NODE_OPTIONS"), ("code-injection", "NODE_PATH")),
    )
    assert _kind(found, npm_entry(env=frozenset({"NODE_OPTIONS", "NODE_PATH"}))) == "approved"
    assert _kind(found, npm_entry(env=frozenset({"NODE_OPTIONS"}))) == "unapproved"
    assert _kind(found, npm_entry()) == "unapproved"


def test_a_listed_key_does_not_answer_an_option_that_raises_the_same_flag():
    """`--registry` beside a listed NPM_CONFIG_REGISTRY is still another registry."""
    fields = {
        "env_keys": ("NPM_CONFIG_REGISTRY",),
        "unsafe_env": (("registry-override", "NPM_CONFIG_REGISTRY"),),
        "registries": ("https://evil.example/", MIRROR),
    }
    entry = npm_entry(env=frozenset({"NPM_CONFIG_REGISTRY"}))
    assert _kind(_unsafe("registry-override", **fields), entry) == "approved"
    assert (
        _kind(_unsafe("registry-override", line_flags=("registry-override",), **fields), entry)
        == "unapproved"
    )


# --- mirrors ----------------------------------------------------------------------------------------------------


def _from(*registries, **fields):
    return _unsafe("registry-override", registries=registries, **fields)


NPM_MIRRORS = {"mirrors": (("npm", (MIRROR,)), ("pypi", ("https://packages.acme.example/pypi/",)))}


@pytest.mark.parametrize("spelled", [MIRROR, "HTTPS://Packages.Acme.Example:443/npm/"])
def test_a_listed_mirror_is_no_override(spelled):
    """Compared as canonical URLs."""
    assert _kind(_from(spelled), npm_entry(), **NPM_MIRRORS) == "approved"
    assert _kind(_from(spelled, version=None), npm_entry(), **NPM_MIRRORS) == "version-drift"
    assert _kind(_from(spelled, MIRROR), npm_entry(), **NPM_MIRRORS) == "approved"


@pytest.mark.parametrize(
    "registries",
    [
        (),
        ("",),
        ("https://packages.acme.example/npm",),
        ("http://packages.acme.example/npm/",),
        ("https://packages.acme.example/pypi/",),
        ("https://packages.acme.example.evil.example/npm/",),
        ("https://u@packages.acme.example/npm/",),
        ("https://packages.acme.example/npm/?x",),
        ("https://packages.acme.example/npm/#x",),
        ("${REGISTRY}",),
        ("/tmp/wheels",),
        (MIRROR, "https://evil.example/"),
        (MIRROR, ""),
        (f"{MIRROR} https://evil.example/",),
    ],
)
def test_anything_but_listed_mirrors_is_an_override(registries):
    """Every registry named must be listed, for this ecosystem."""
    assert judged(_from(*registries), npm_entry(), **NPM_MIRRORS).flags == ("registry-override",)


def test_without_mirrors_every_registry_is_an_override():
    """A policy that lists none."""
    assert _kind(_from(MIRROR), npm_entry()) == "unapproved"
