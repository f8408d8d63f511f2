# SPDX-License-Identifier: Apache-2.0
"""docker, podman, nerdctl and dnx: grammar, mounts, and what can run something else."""

import pytest

from halod.launch import identify

DIGEST = "sha256:" + "ab" * 32
IMAGE = f"docker.io/acme/tool@{DIGEST}"


def run(*options, image=IMAGE, command="docker", after=()):
    return identify(command, ["run", *options, image, *after])


@pytest.mark.parametrize(
    "options",
    [
        ["-i", "--rm"],
        ["-it"],
        ["-iq"],
        ["--rm=true", "--init=false"],
        ["-i=true"],
        ["-it=false"],
        ["--read-only"],
        ["--name", "x"],
        ["--name=x"],
        ["--pull", "always"],
        ["--platform=linux/amd64"],
        ["--network", "bridge"],
        ["--net=my-net_1.2"],
        ["-p", "8080:80"],
        ["-p8080:80"],
        ["-l", "a=b"],
        ["-ip", "8080:80"],
        ["-e", "TOKEN"],
        ["-eTOKEN=x"],
        ["-ie", "TOKEN=x"],
        ["--env=TOKEN=x"],
        ["--env-file", "/dev/null"],
        ["-m512m"],
        ["--"],
    ],
)
def test_harmless_options(options):
    """The listed options change nothing, glued, attached or apart."""
    found = run(*options)

    assert (found.outcome, found.identifier, found.digest) == ("identified", "docker.io/acme/tool", DIGEST)


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        (["-d"], "unknown-option"),
        (["-id"], "unknown-option"),
        (["--rm=x"], "unknown-option"),
        (["--interactive=0"], "unknown-option"),
        (["--detach"], "unknown-option"),
        (["-P"], "unknown-option"),
        (["--quiet"], "unknown-option"),
        (["-u", "root"], "unknown-option"),
        (["-w/srv"], "unknown-option"),
        (["--pid", "host"], "unknown-option"),
        (["--network", "host"], "host-network"),
        (["--net=HOST"], "host-network"),
        (["--network", "container:x"], "unknown-option"),
        (["--network", "name=host"], "unknown-option"),
        (["--network", ""], "unknown-option"),
        (["--privileged"], "privileged"),
        (["--privileged=false"], "privileged"),
        (["--cap-add", "ALL"], "privileged"),
        (["--entrypoint="], "entrypoint-override"),
        (["--runtime", "x"], "code-injection"),
        (["--use-api-socket"], "docker-socket"),
        (["--env-file", ".env"], "env-injection"),
        (["--env-file=/dev/null/../x"], "env-injection"),
        (["-e", "NODE_OPTIONS=--require=/x"], "code-injection"),
        (["-e", "node_options"], "code-injection"),
        (["-e", "LD_PRELOAD=/x"], "code-injection"),
        (["-e", "PATH"], "path-override"),
        (["-e", "PATH="], "path-override"),
        (["-e", "PATH=/root/.local/bin:/usr/bin"], "path-override"),
        (["-ePath=/home/x/.local/bin"], "path-override"),
        (["-e", "NODE*"], "code-injection"),
        (["-e", "*"], "code-injection"),
        (["-e", "${X}=y"], "code-injection"),
        (["-e", "=x"], "code-injection"),
        (["--add-host", "h:1.2.3.4"], "network-override"),
        (["--unknown", "x"], "unknown-option"),
        (["-="], "unknown-option"),
    ],
)
def test_other_options_leave_a_flag(options, flag):
    """Everything else can change what runs, or is not known not to."""
    found = run(*options)

    assert flag in found.flags
    assert found.outcome == "identified-unsafe" or found.outcome == "unidentifiable"


@pytest.mark.parametrize(
    "options",
    [
        ["-v", "/srv:/data:ro"],
        ["-v/srv:/data"],
        ["--volume=/srv:/data"],
        ["--mount", "type=bind,src=/srv,dst=/data"],
    ],
)
def test_mounts_are_told(options):
    """A mount is host-mount, with source and target."""
    found = run(*options)

    assert found.flags == ("host-mount",)
    assert found.mounts == (("/srv", "/data"),)


@pytest.mark.parametrize(
    ("options", "mount"),
    [
        (["-v", "/data"], ("", "/data")),
        (["-v", "vol:/data/../app"], ("vol", "/app")),
        (["-v", "/srv://app/"], ("/srv", "/app")),
        (["-v", "/srv:${X}"], ("/srv", "/")),
        (["-v", "${X}"], ("", "/")),
        (["-v", "/srv:app"], ("/srv", "/")),
        (["-v", r"C:\x:/data"], (r"C:\x", "/data")),
        (["-v", "C:/x:/data"], ("C:/x", "/")),
        (["-v", "a:b:c:d"], ("a", "/")),
        (["--tmpfs", "/app:rw"], ("", "/app")),
        (["--volumes-from", "other"], ("other", "/")),
        (["--mount", 'type=bind,"src=/a,b",dst=/data'], ("", "/")),
        (["--mount", "dst=/data,target=/app"], ("", "/")),
        (["--mount", "type=volume,dst=/data,volume-opt=device=/x"], ("", "/")),
        (["--mount", "type=volume,src=x,volume-opt=device=/x,dst=/data"], ("", "/")),
        (["--mount", "src=x,dst=/data,Volume-Driver=other"], ("", "/")),
        (["--mount", "type=bind,src=/srv,src=/x,dst=/data"], ("", "/")),
        (["--mount", "type=bind,source=/srv,dst=/data,src=/x"], ("", "/")),
        (["--mount", "type=volume,src=x,volume-nocopy,dst=/data"], ("x", "/data")),
        (["--mount", ""], ("", "/")),
    ],
)
def test_odd_mounts_hit_the_root(options, mount):
    """A target is normalised; what cannot be told counts as `/`, which nothing may tolerate."""
    assert run(*options).mounts == (mount,)


@pytest.mark.parametrize(
    "source",
    ["/var/run/docker.sock", "/run/../run/podman.sock", "/run", "/var/run/", "//./pipe/docker_engine"],
)
def test_sockets(source):
    """A container socket, or the folder that holds it, is named."""
    assert "docker-socket" in run("-v", f"{source}:/s").flags


@pytest.mark.parametrize(
    "fields",
    [
        "src=/srv,src=/var/run/docker.sock,dst=/s",
        "type=volume,src=x,volume-opt=o=bind,volume-opt=device=/run/docker.sock,dst=/s",
    ],
)
def test_sockets_behind_other_fields(fields):
    """Docker takes the last `src`, and a volume's options before its name (run with docker 28.2)."""
    assert "docker-socket" in run("--mount", fields).flags


def test_a_path_of_the_image_itself():
    """Directories that no tolerated mount may cover are harmless in a PATH for the image."""
    assert run("-e", "PATH=/usr/local/bin:/usr/bin:/bin").outcome == "identified"


def test_words_behind_the_image():
    """They are a command for the image, whatever they begin with; with an entrypoint they are its words."""
    assert run(after=["--x"]).flags == ("image-command",)
    assert run(after=[""]).args == ("",)
    assert run("--entrypoint", "sh", after=["-c"]).flags == ("entrypoint-override",)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("redis", "docker.io/library/redis"),
        ("docker.io/redis", "docker.io/library/redis"),
        ("index.docker.io/acme/x", "docker.io/acme/x"),
        ("acme/x", "docker.io/acme/x"),
        ("acme/x:1.0", "docker.io/acme/x"),
        ("localhost/x", "localhost/x"),
        ("localhost:5000/a/x", "localhost:5000/a/x"),
        ("GHCR/x", "GHCR/x"),
        ("[::1]:5000/x", "[::1]:5000/x"),
        ("ghcr.io/a/b__c-d.e", "ghcr.io/a/b__c-d.e"),
    ],
)
def test_references(image, name):
    """The registry and `library/` are filled in by the rules of the reference grammar."""
    assert run(image=f"{image}@{DIGEST}").identifier == name


@pytest.mark.parametrize(
    "image",
    [
        "",
        "Acme/X y",
        "acme/X",
        "acme//x",
        "/x",
        "acme/x:",
        "acme/x:${TAG}",
        "${IMAGE}",
        "acme/x@sha256:abc",
        f"acme/x@sha512:{'ab' * 64}",
        f"acme/x@{DIGEST.upper()}",
        f"acme/x@{DIGEST}@{DIGEST}",
        f"acme/x@{DIGEST}\n",
        "acm\u0435/x",
        "acme/x\u200b",
        "docker://acme/x",
        "dir:/srv/x",
        "a" * 300,
        "a/" * 1500 + "x",
    ],
)
def test_what_is_no_image(image):
    """Errors, variables and look-alikes name no image."""
    assert run(image=image).outcome == "unidentifiable"


def test_image_ids_are_local():
    """64 hex digits are the id of a local image, not a registry's digest."""
    found = run(image="ab" * 32)

    assert (found.outcome, found.identifier, found.digest) == ("identified-unsafe", None, DIGEST)
    assert found.flags == ("image-id",)


def test_tag_alone_is_unpinned():
    """A tag can move; the digest decides beside one."""
    assert run(image="acme/x:1.0").outcome == "identified-unpinned"
    assert run(image="acme/x:1.0").requested == "1.0"
    assert run(image=f"acme/x:1.0@{DIGEST}").outcome == "identified"


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["run"],
        ["run", "-i"],
        ["run", "--"],
        ["run", "--name"],
        ["ps"],
        ["compose", "run", "x"],
        ["container", "exec", "x"],
        ["attach", "x"],
        ["mcp", "catalog"],
        ["-H"],
        ["--unknown", "run", IMAGE],
    ],
)
def test_docker_commands_that_are_no_image(args):
    """What starts no image of its own is unidentifiable, or at least unsafe."""
    assert identify("docker", args).outcome in {"unidentifiable", "identified-unsafe"}


@pytest.mark.parametrize(
    "options",
    [["-H", "tcp://h"], ["--context=x"], ["--config", "/x"], ["-D"], ["-l", "debug"], ["--tls"], ["-c", "x"]],
)
def test_global_options_are_unsafe(options):
    """Another daemon, another configuration."""
    assert identify("docker", [*options, "run", IMAGE]).outcome == "identified-unsafe"


def test_podman_and_nerdctl():
    """Podman resolves short names by its own settings and has booleans of its own."""
    assert run(command="podman").outcome == "identified"
    assert run(command="podman", image=f"acme/x:1@{DIGEST}").flags == ("short-name",)
    assert run("--env-host", command="podman").flags == ("env-injection",)
    assert run("--replace", command="podman").flags == ("unknown-option",)
    assert run("--rootfs", command="podman", image="/srv").outcome == "unidentifiable"
    assert identify("podman", ["mcp", "gateway", "run"]).outcome == "unidentifiable"
    assert run(command="nerdctl", image=f"acme/x@{DIGEST}").outcome == "identified"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["Foo.Bar@1.0", "-y"], "identified"),
        (["-y", "foo.bar@1.0.0.0"], "identified"),
        (["foo.bar@1.0.0+meta", "--yes", "x"], "identified"),
        (["-v", "q", "foo.bar@1.0"], "identified"),
        (["foo.bar@"], "identified-unpinned"),
        (["foo.bar@[1.0,2.0)"], "identified-unpinned"),
        (["foo.bar@1.*"], "identified-unpinned"),
        (["foo.bar", "--version", "1.0.0"], "identified-unsafe"),
        (["foo.bar@1.0", "--version", "1.0.0"], "unidentifiable"),
        (["foo.bar@1.0", "--prerelease"], "unidentifiable"),
        (["foo.bar@1.0", "-v", "x"], "identified-unsafe"),
        (["foo.bar@1.0", "-v:q"], "identified-unsafe"),
        (["foo.bar@1.0", "--source:https://s.example"], "identified-unsafe"),
        (["foo.bar@1.0", "--add-source=https://s.example"], "identified-unsafe"),
        (["foo.bar@1.0", "--configfile", "x"], "identified-unsafe"),
        (["foo.bar@1.0", "-d"], "identified-unsafe"),
        (["foo.bar@1.0", "--yes", "true", "x"], "identified-unsafe"),
        (["foo.bar@1.0", "@more.rsp"], "identified-unsafe"),
        (["foo.bar@1.0", "--", "@more.rsp"], "identified-unsafe"),
        (["foo.bar@1.0", "${X}"], "identified-unsafe"),
        (["foo.bar@1.0", "--", "${X}"], "identified"),
        (["@more.rsp", "foo.bar@1.0"], "unidentifiable"),
        (["foo.bar@\u0661.0"], "unidentifiable"),
        (["f\u043eo.bar@1.0"], "unidentifiable"),
        (["${X}@1.0"], "unidentifiable"),
        (["foo.bar@${X}"], "unidentifiable"),
        (["[env:A=b]", "foo.bar@1.0"], "unidentifiable"),
        (["", "foo.bar@1.0"], "unidentifiable"),
        ([], "unidentifiable"),
    ],
)
def test_dnx(args, expected):
    """Options are read on both sides of the package; ids have no case, versions are normalised."""
    assert identify("dnx", args).outcome == expected
    assert identify("dotnet", ["tool", "exec", *args]).outcome == expected
    assert identify("dotnet", ["dnx", *args]).outcome == expected


def test_dnx_normal_forms():
    """1.0 is 1.0.0 is 1.0.0.0, and labels have no case."""
    versions = {
        identify("dnx", [f"Foo@{text}"]).version for text in ("1.0", "1.0.0", "1.0.0.0", "01.0+x", "1")
    }

    assert versions == {"1.0.0"}
    assert identify("dnx", ["Foo@1.2.3.4-RC.1"]).version == "1.2.3.4-rc.1"
    assert identify("dnx", ["Foo@1.0"]).args == ()
    assert identify("dnx", ["Foo@1.0", "a", "--", "-b"]).args == ("a", "-b")


def test_dotnet_itself_is_local():
    """`dotnet x.dll`, `dotnet run` and `dotnet tool run` run what lies on the machine."""
    for args in ([], ["x.dll"], ["run"], ["tool", "run", "x"], ["tool"]):
        assert identify("dotnet", args).outcome == "unidentifiable"
