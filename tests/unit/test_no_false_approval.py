# SPDX-License-Identifier: Apache-2.0
"""The property that may never break: a changed command line does not keep an approved identity by accident.

Approved command lines are mutated the way an attacker would: an option put in anywhere, words glued or split,
look-alike characters, environment keys, other programs of the same name. Whatever is still `identified` with the
same identity must be on the short lists below, which say for each launcher what is harmless and where.
"""

import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.drift.flags import FLAGS
from halod.launch import identify
from halod.launch.model import INFORMATIONAL


def words_of(text):
    return text.split()


DIGEST = "sha256:" + "0123456789abcdef" * 4
TOLERABLE = frozenset(
    words_of(
        "host-mount privileged host-network env-injection path-override cwd-override from-flag package-flag"
    )
)

NPX = frozenset(
    words_of("-y --yes -q --quiet -s --silent --prefer-offline --prefer-online --loglevel=error --")
)
UVX = frozenset(
    words_of(
        "-q --quiet -v --verbose -n --no-cache --isolated --refresh --offline --no-progress --no-config --no-env-file "
        "-p3.12 --python=3.12 --color=never --"
    )
)
DOCKER = frozenset(
    words_of(
        "-i --interactive -t --tty --rm --init -q --read-only --name=x --platform=x --pull=always --network=bridge "
        "--net=x -p80:80 --publish=80:80 -la=b --label=a=b -eA=b --env=A=b --hostname=x --memory=1g -m1g --cpus=1 "
        "--pids-limit=1 --restart=no --stop-timeout=1 --shm-size=1g --env-file=/dev/null "
        "-p= -qp= -l= -m= --"
    )
)
# An option that takes a value swallows the harmless option behind it: the image is still the image.
DOCKER_VALUES = frozenset(words_of("--name --platform --pull --label -l -p --hostname -m --cpus"))
DNX = frozenset(words_of("-y --yes --interactive --"))

# name -> (command, words, index of the package, harmless words before it, harmless words behind it)
APPROVED = {
    "npx": ("npx", ["-y", "@acme/tool@1.2.0", "--x"], 1, NPX, None),
    "npm exec": (
        "npm",
        ["exec", "-y", "@acme/tool@1.2.0", "--", "--x"],
        2,
        NPX | {"-p", "--parseable"},
        NPX | {"-p"},
    ),
    "pnpm": ("pnpm", ["dlx", "@acme/tool@1.2.0", "--x"], 1, frozenset(), None),
    "pnpx": ("pnpx", ["@acme/tool@1.2.0"], 0, frozenset(), None),
    "yarn": ("yarn", ["dlx", "-q", "@acme/tool@1.2.0"], 2, {"-q"}, None),
    "bunx": ("bunx", ["--bun", "@acme/tool@1.2.0"], 1, {"--bun", "-y"}, None),
    "deno": (
        "deno",
        ["run", "-A", "npm:@acme/tool@1.2.0"],
        2,
        {"-A", "-q", "--allow-net", "--allow-all"},
        None,
    ),
    "uvx": ("uvx", ["-q", "acme-tool@1.2.0", "--x"], 1, UVX, None),
    "uvx from": ("uvx", ["--from", "acme-tool==1.2.0", "acme-tool", "--x"], 1, UVX, None),
    "uv tool run": ("uv", ["tool", "run", "acme-tool==1.2.0"], 2, UVX, None),
    "pipx": ("pipx", ["run", "acme-tool==1.2.0", "x"], 1, frozenset(), None),
    "docker": (
        "docker",
        ["run", "-i", "--rm", f"ghcr.io/acme/tool@{DIGEST}"],
        3,
        DOCKER | DOCKER_VALUES,
        frozenset(),
    ),
    "podman": (
        "podman",
        ["run", "-i", f"ghcr.io/acme/tool@{DIGEST}"],
        2,
        DOCKER | DOCKER_VALUES,
        frozenset(),
    ),
    "dnx": ("dnx", ["Acme.Tool@1.2.0", "--yes", "--", "x"], 0, DNX, DNX),
    "env": ("env", ["A=b", "npx", "-y", "@acme/tool@1.2.0"], 3, NPX | {"-i", "-", "C=d", "-v"}, None),
    "timeout": ("timeout", ["60", "npx", "-y", "@acme/tool@1.2.0"], 3, NPX | {"--foreground", "-v"}, None),
    "cmd": ("cmd", ["/c", "npx", "-y", "@acme/tool@1.2.0"], 3, NPX | {"/d", "/s", "/q"}, None),
}
NAMES = list(APPROVED)

# Words that point a launcher somewhere else, or that one parser takes for an option and another for an operand.
HOSTILE = [
    *words_of("""-p -c -w -i -f -e -v -H -C -S -u -P -U -a -n -g -d -D -h -yp -yq -ys -qy -iv -it -ie --p --ye --reg --regist
    --package --package=evil@1.0.0 --call --call=id --registry --registry=https://evil.example/ --userconfig=/tmp/x
    --@acme:registry=https://evil.example/ --node-options=--require=/tmp/x.js --script-shell=/tmp/sh --shell=/tmp/sh
    --prefix=/tmp/x --prefix --workspace=x --tag=x --before=2000-01-01 --https-proxy=http://evil.example --cafile=/x
    --no-install --no --no-yes --no-audit --no-fund --yes=false --yes=true -y=evil@1.0.0 -q=evil@1.0.0 --quiet=evil
    --from --from=evil --with --with=evil --with-requirements=/x --overrides=/x --constraints=/x --index=https://e
    --default-index=https://evil.example --extra-index-url=https://evil.example --index-url=https://evil.example
    --find-links=/x --python=/tmp/python --python=pypy --config-file=/x --directory=/x --project=/x --env-file=/x
    --spec --spec=evil --pip-args=--index-url=x --backend=x --entrypoint=sh --entrypoint --volume=/x:/app -v/x:/app
    --mount=type=bind,src=/x,dst=/app --tmpfs=/app --volumes-from=x --privileged --network=host --net=container:x
    --pid=host --cap-add=ALL --device=/dev/x --runtime=x --security-opt=x --use-api-socket --rootfs --env-host
    -eNODE_OPTIONS=--require=/x --env=LD_PRELOAD=/x --env=PATH=/x -ePYTHONPATH -e* --env=${X}=1 --add-host=h:1
    --context=x --host=tcp://evil.example --config=/x --source --source=https://evil.example --add-source=x
    --configfile=x --version=2.0.0 --prerelease --source:https://evil.example @evil.rsp --import-map=/x --preload=/x
    --require=/x --cert=/x --config=/x --lock=/x -L --shell-mode --silent --dir=/x --cwd=/x --cwd --bun=x
    -p= -qp= -w= -i= -n= -q= -l= -m= -e= -v= -C= -f= -c= 3.12 1.2.0
    --unknown --unknown=x -X - --- -- evil evil@1.0.0 ${X} $X {env:X} %X% true false null NODE_OPTIONS=--require=/x
    PATH=/tmp/x A=b sh exec run x npx node -P/tmp -S-x --split-string=x --chdir=/x --unset=A -uA --block-signal
    /v:on /k & && | ; > ` $(id) .. ./x /tmp/x ~ C:\\x file:x npm:evil git+https://evil.example/x"""),
    *["", " ", "\n", "a b", "\u200b", "\uff0dy", "\u2010y", "-y\u200b", "--yes\n", "-\u0443"],
]


def identity(found):
    return found.ecosystem, found.identifier, found.version, found.digest


def wanted(name):
    command, words, *_ = APPROVED[name]
    found = identify(command, words)
    assert found.outcome == "identified", name
    return identity(found)


def approvable(found, expected):
    """Tell whether a pin, with all that an entry can tolerate, could approve this."""
    same = identity(found) == expected
    return (
        same and found.outcome in {"identified", "identified-unsafe"} and set(found.unsafe_flags) <= TOLERABLE
    )


def clean(found, expected):
    return approvable(found, expected) and set(found.flags) <= INFORMATIONAL


@pytest.mark.parametrize("name", NAMES)
def test_a_word_put_in_before_the_package(name):
    """Only the listed options may stand before the package; nothing else leaves the definition clean."""
    command, words, package, harmless, _ = APPROVED[name]
    expected = wanted(name)
    for place, word in itertools.product(range(package + 1), HOSTILE):
        mutated = [*words[:place], word, *words[place:]]
        if clean(identify(command, mutated), expected):
            assert word in harmless or _known(name, word, place, mutated), (place, word)


def _known(name, word, place, mutated):
    """The rest of what is harmless, case by case."""
    before = mutated[:place]
    if name == "env" and place <= 1:  # options and assignments of env itself
        return word in {"A=b", "-uA", "--unset=A", "-iv"} or (
            word in {"-u", "-S"} and mutated[place + 1] == "A=b"
        )
    if name in {"docker", "podman"} and "run" in before:
        swallowed = mutated[place + 1 : place + 2]
        is_value = before[-1] in DOCKER_VALUES
        return is_value or (word == "-e" and swallowed[0] in {"-i", "--rm"}) or word == "-it"
    return False


@pytest.mark.parametrize("name", NAMES)
def test_what_could_be_tolerated_is_what_it_says(name):
    """An option that an entry may tolerate raises the flag of its kind and hides nothing else."""
    command, words, package, _, _ = APPROVED[name]
    expected = wanted(name)
    for place, word in itertools.product(range(package + 1), HOSTILE):
        found = identify(command, [*words[:place], word, *words[place:]])
        if approvable(found, expected) and not clean(found, expected):
            kinds = {flag for flag in found.flags if flag not in INFORMATIONAL}
            assert kinds <= _kinds(word), (place, word, kinds)


def _kinds(word):
    """What may be tolerated of each hostile word; every other word must raise more than that."""
    mounts = ("--volume", "-v", "--mount", "--tmpfs", "--volumes-from")
    if word.startswith(mounts) or word == "-iv":
        return {"host-mount"}
    if word in {"--package", "--package=evil@1.0.0", "-p"}:
        return {"package-flag"}
    if word in {"--spec", "--from"}:
        return {"from-flag"}
    if word in {"--privileged", "--cap-add=ALL", "--device=/dev/x", "--security-opt=x"}:
        return {"privileged"}
    if word == "--network=host":
        return {"host-network"}
    if word.startswith(("--env-file", "--env-host")):
        return {"env-injection"}
    if word in {"--env=PATH=/x", "PATH=/tmp/x", "-PATH"}:
        return {"path-override"}
    if word in {"-C", "-C=", "--chdir=/x"}:
        return {"cwd-override"}
    return set()


@pytest.mark.parametrize("name", [name for name in NAMES if APPROVED[name][4] is not None])
def test_a_word_put_in_behind_the_package(name):
    """Where the launcher reads its options behind the package too, the same holds there."""
    command, words, package, _, harmless = APPROVED[name]
    expected = wanted(name)
    end = words.index("--") if "--" in words else len(words)
    for place, word in itertools.product(range(package + 1, end + 1), HOSTILE):
        if clean(identify(command, [*words[:place], word, *words[place:]]), expected):
            is_option = word.startswith("-") and word != "--"
            assert word in harmless or not is_option, (place, word)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_nothing_may_follow_an_image(name):
    """Any word behind an image is a command."""
    command, words, _, _, _ = APPROVED[name]
    for word in HOSTILE:
        assert identify(command, [*words, word]).flags == ("image-command",), word


LOOKALIKES = {
    "a": "\u0430\uff41\u1d00", "c": "\u0441\uff43", "e": "\u0435\uff45", "l": "1I\u217c", "m": "\uff4d\u217f",
    "o": "\u043e0\uff4f", "t": "\uff54", "1": "l\uff11\u0661", "2": "\uff12", "0": "O\uff10\u0660", "@": "\uff20\ufe6b",
    "/": "\uff0f\u2215\\", ".": "\u3002\uff0e\u2024", "-": "\u2010\uff0d\u2212_", "=": "\uff1d", ":": "\uff1a",
}  # fmt: skip
ADDED = [
    "\u200b",
    "\u200d",
    "\u00ad",
    "\ufeff",
    "\u0301",
    "\u202e",
    "\0",
    "\n",
    "\r",
    "\t",
    " ",
    "\u00a0",
    "\x7f",
]


def canonical_words(name, text):
    """What the ecosystem itself takes for the same package and version, written down independently."""
    if name == "dnx":
        return re.sub(r"^(acme\.tool)@0*1\.0*2(\.0+){0,2}(\+[0-9a-z.-]+)?$", "same", text.lower()) == "same"
    if name in {"docker", "podman"}:
        return re.fullmatch(rf"ghcr\.io/acme/tool(:[\w.-]+)?@{DIGEST}", text, re.ASCII) is not None
    if name.startswith("uv") or name == "pipx":
        exact = r"(0!)?0*1\.0*2(\.0+)*"
        pattern = rf"acme[-_.]+tool(\[[a-z]+\])?@v?{exact}[ \t]*"  # a blank in front of the @ makes it a path
        pattern += rf"|[ \t]*acme[-_.]+tool(\[[a-z]+\])?[ \t]*={{2,3}}[ \t]*v?{exact},?[ \t]*"
        return re.fullmatch(pattern, text, re.IGNORECASE) is not None
    core = text.removeprefix("npm:").removeprefix("/") if name == "deno" else text
    core = core.replace("@npm:", "@", 1) if name == "yarn" else core
    match = re.fullmatch(r"@acme/tool@([ \t\r\n\f\v]*)=?v?1\.2\.0(\+[0-9A-Za-z.-]+)?[ \t\r\n\f\v]*", core)
    return match is not None


@pytest.mark.parametrize("name", NAMES)
def test_look_alikes_and_hidden_characters(name):
    """One character changed or added in the package never leaves the same package, but by its own rules."""
    command, words, package, _, _ = APPROVED[name]
    expected, text = wanted(name), words[package]
    changed = set()
    for at, char in enumerate(text):
        changed |= {text[:at] + other + text[at + 1 :] for other in LOOKALIKES.get(char, "")}
        changed |= {text[:at] + text[at + 1 :], text[:at] + char.swapcase() + text[at + 1 :]}
        changed |= {
            text[:at] + added + text[at:] for added in [*ADDED, char, "/", "@", "npm:", ":", "#", "+", "v"]
        }
    changed |= {
        text + added for added in [*ADDED, ".tgz", "/x", "@x", "#x", ";x", ",", "!", "*", "-1", ".0", "+b"]
    }
    changed -= {text}
    for other in sorted(changed):
        found = identify(command, [*words[:package], other, *words[package + 1 :]])
        program = "package-flag" in found.flags and name == "deno"  # `npm:pkg@1.2.0/program`
        if approvable(found, expected) and not program:
            assert canonical_words(name, other), ascii(other)


@pytest.mark.parametrize("name", NAMES)
def test_two_words_glued_or_one_word_split(name):
    """Gluing words together or splitting one never keeps a clean identity before the package."""
    command, words, package, _, _ = APPROVED[name]
    expected = wanted(name)
    for at in range(package):
        glued = [*words[:at], words[at] + words[at + 1], *words[at + 2 :]]
        assert not clean(identify(command, glued), expected), glued
    for at in range(1, len(words[package])):
        split = [*words[:package], words[package][:at], words[package][at:], *words[package + 1 :]]
        if clean(identify(command, split), expected):
            assert canonical_words(name, words[package][:at]), (
                split
            )  # dnx: 1.2 is 1.2.0, and `.0` an argument


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "key",
    words_of(
        "NPM_CONFIG_REGISTRY npm_config_@acme:registry Npm_Config_Userconfig NODE_OPTIONS node_options NODE_PATH PYTHONPATH "
        "UV_INDEX_URL uv_default_index PIP_INDEX_URL PIPX_HOME BUN_OPTIONS YARN_RC_FILENAME PNPM_HOME DENO_DIR JSR_URL "
        "DOCKER_HOST docker_context CONTAINER_HOST LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES DOTNET_STARTUP_HOOKS "
        "NUGET_PACKAGES HOME USERPROFILE XDG_CONFIG_HOME APPDATA BASH_ENV ENV SHELLOPTS BASH_FUNC_npx%% HTTPS_PROXY "
        "https_proxy SSL_CERT_FILE GIT_SSH_COMMAND PATH Path PREFIX SHELL GCONV_PATH"
    ),
)
def test_environment_of_the_entry(name, key):
    """No launcher's environment is taken for harmless."""
    command, words, _, _, _ = APPROVED[name]

    assert not clean(identify(command, words, {key: "/tmp/x"}), wanted(name))
    assert not clean(identify("env", [f"{key}=/tmp/x", command, *words]), wanted(name))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "prefix",
    [
        "/tmp/",
        "./",
        "../",
        "bin/",
        "~/",
        "/usr/bin/../../tmp/",
        "//",
        "node_modules/.bin/",
        "\\tmp\\",
        "C:",
        "${X}/",
    ],
)
def test_other_programs_of_the_same_name(name, prefix):
    """A program of the launcher's name elsewhere is any program."""
    command, words, _, _, _ = APPROVED[name]

    assert identify(prefix + command, words).outcome == "unidentifiable"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "odd", ["{}\u200b", "\u200b{}", " {}", "{} ", "{}\n", "{}\0", "{}.x", "x{}", "{}/", "${{X}}{}"]
)
def test_other_spellings_of_the_program(name, odd):
    """Only the exact name of a launcher is that launcher."""
    command, words, _, _, _ = APPROVED[name]

    assert identify(odd.format(command), words).outcome not in {"identified", "identified-unsafe", "delegate"}


WORDS = st.sampled_from(HOSTILE) | st.text(max_size=12)


@given(st.sampled_from(NAMES), st.lists(WORDS, max_size=4), st.integers(0, 2**16))
@settings(max_examples=500)
def test_several_words_put_in_anywhere(name, extra, seed):
    """Combinations before the package: a clean result has only harmless words, and values they take, in it."""
    command, words, package, harmless, _ = APPROVED[name]
    expected = wanted(name)
    dice = random.Random(seed)
    mutated, at = list(words), package
    for word in extra:
        mutated.insert(dice.randint(0, at), word)
        at += 1
    found = identify(command, mutated)
    if not clean(found, expected):
        return
    strange = [word for word in extra if word not in harmless]
    if name in {"docker", "podman"} or command in {"env", "cmd"}:
        strange = [word for word in strange if word.startswith("--") and "=" in word and word not in harmless]
        taken = {
            mutated[i + 1] for i, word in enumerate(mutated[:-1]) if word in DOCKER_VALUES | {"-e", "-u"}
        }
        strange = [word for word in strange if word not in taken and word != "--unset=A"]
    assert not strange, mutated


@given(
    st.sampled_from([APPROVED[name][0] for name in NAMES] + ["sh", "bash", "mise", "node", "x"])
    | st.text(max_size=20),
    st.lists(WORDS, max_size=6),
    st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), max_size=3),
    st.text(max_size=5),
)
@settings(max_examples=500)
def test_any_definition(command, args, env, cwd):
    """Nothing raises, the same input gives the same answer, and a clean outcome carries no unsafe flag."""
    found = identify(command, args, env, cwd)

    assert found == identify(command, tuple(args), list(env), cwd)
    assert list(found.flags) == sorted(set(found.flags))
    if found.outcome in {"identified", "identified-unpinned"}:
        assert not found.unsafe_flags
        assert not found.unsafe_env
    if found.outcome == "identified-unsafe":
        assert found.unsafe_flags
    if found.outcome == "identified":
        assert found.version or found.digest
    assert set(found.line_flags) <= set(found.flags)
    assert set(found.flags) <= FLAGS  # what a worker may answer
    assert repr(found) == "<Launch>"


@pytest.mark.parametrize("size", [1_000_000])
@pytest.mark.parametrize("name", NAMES)
def test_huge_words_are_bounded(name, size):
    """A megabyte in any place is answered without work that grows with its square."""
    command, words, package, _, _ = APPROVED[name]
    for text in (
        "a" * size,
        "$" * size,
        "%a" * (size // 2),
        "<" * size,
        "@" * size,
        "-" * size,
        "a " * (size // 2),
    ):
        for place in (0, package, len(words) - 1):
            identify(command, [*words[:place], text, *words[place + 1 :]])
    identify(command, [*words, *["-x"] * 100_000])
    identify("a" * size, words)
    identify(command, words, {"PATH": "/bin:" * (size // 5), "a" * size: "x"})
