# SPDX-License-Identifier: Apache-2.0
"""Wrappers, shells, programs by path, and bridges."""

import pytest

from halod.launch import identify
from halod.launch.paths import harmless_path, program, well_known_directory

NPX = ("npx", "-y", "foo@1.2.0")
LINE = "npx -y foo@1.2.0"


def outcome(command, *args, env=(), cwd=""):
    return identify(command, args, env, cwd).outcome


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("env", ["-i", *NPX]),
        ("env", ["-", *NPX]),
        ("env", ["-iv", *NPX]),
        ("env", ["--ignore-environment", "A=b", *NPX]),
        ("env", ["-uA", *NPX]),
        ("env", ["--unset=A", *NPX]),
        ("env", ["--unset", "A", *NPX]),
        ("env", ["-S", LINE]),
        ("env", ["-S", "A=b npx -y", "foo@1.2.0"]),
        ("env", [f"-S{LINE}"]),
        ("env", ["-vS", LINE]),
        ("env", [f"--split-string={LINE}"]),
        ("sh", ["-c", LINE]),
        ("sh", ["-c", "--", LINE]),
        ("sh", ["-c", f"exec {LINE}"]),
        ("sh", ["-c", f"A=b C='d e' {LINE} --x=\"y z\""]),
        ("sh", ["-c", "'npx' \"-y\" fo'o@1.2.0'"]),
        ("bash", ["-l", "-c", LINE, "$0"]),
        ("bash", ["-eo", "pipefail", "-c", LINE]),
        ("bash", ["--norc", "--noprofile", "-lc", LINE]),
        ("zsh", ["-lc", LINE]),
        ("cmd", ["/c", *NPX]),
        ("cmd", ["/d", "/s", "/C", LINE, "--x"]),
        ("cmd.exe", ["/c", "npx.cmd", "-y", "foo@1.2.0"]),
        (r"C:\Windows\System32\cmd.exe", ["/c", *NPX]),
        ("timeout", ["-k", "5", "--signal=KILL", "--foreground", "1.5m", *NPX]),
        ("gtimeout", ["10", *NPX]),
        ("nohup", ["--", *NPX]),
        ("nice", ["-n", "5", *NPX]),
        ("nice", ["-n5", *NPX]),
        ("nice", ["-5", *NPX]),
        ("nice", ["--adjustment=5", *NPX]),
        ("stdbuf", ["-oL", "--error=0", *NPX]),
        ("/usr/bin/env", ["nohup", "sh", "-c", LINE]),
    ],
)
def test_looked_through(command, args):
    """One simple command in a known wrapper is what the wrapper runs."""
    found = identify(command, args)

    assert (found.outcome, found.identifier, found.version) == ("identified", "foo", "1.2.0")
    assert "wrapper" in found.flags
    assert found.nested is not None


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("env", []),
        ("env", ["A=b"]),
        ("env", ["-P", "/tmp", *NPX]),
        ("env", ["-0", *NPX]),
        ("env", ["--ignore-env", *NPX]),
        ("env", ["--block-signal", *NPX]),
        ("env", ["-u"]),
        ("env", ["-", "-u", "x", *NPX]),
        ("env", ["-", "-S", LINE]),
        ("env", ["-i", "-", "--", *NPX]),
        ("env", ["-S", "npx -y $X"]),
        ("env", ["-S", "npx -y foo\\_bar"]),
        ("env", ["-S", "-S -S -S", "-S", "x"]),
        ("env", [f"-S-S'-S \"-S -S{LINE}\"'"]),
        ("sh", []),
        ("sh", ["-c"]),
        ("sh", ["-c", ""]),
        ("sh", ["-c", "  "]),
        ("sh", ["-c", "A=b"]),
        ("sh", ["-c", "exec"]),
        ("sh", ["x.sh"]),
        ("sh", ["-s"]),
        ("sh", ["-xc", LINE]),
        ("sh", ["-o", "posix", "-c", LINE]),
        ("sh", ["+e", "-c", LINE]),
        ("bash", ["--rcfile", "/tmp/x", "-c", LINE]),
        ("sh", ["-c", f"{LINE}; id"]),
        ("sh", ["-c", f"{LINE} & id"]),
        ("sh", ["-c", f"{LINE} | id"]),
        ("sh", ["-c", f"{LINE}\nid"]),
        ("sh", ["-c", f"{LINE}\rid"]),
        ("sh", ["-c", f"{LINE} > /tmp/x"]),
        ("sh", ["-c", f"{LINE} `id`"]),
        ("sh", ["-c", f"{LINE} $(id)"]),
        ("sh", ["-c", f"{LINE} '${{X:-x}}'"]),
        ("sh", ["-c", f"{LINE} '{{env:X}}'"]),
        ("sh", ["-c", f"{LINE} %X%"]),
        ("sh", ["-c", f'{LINE} "\\""']),
        ("sh", ["-c", f"{LINE} 'open"]),
        ("sh", ["-c", f"{LINE} a\\ b"]),
        ("sh", ["-c", f"{LINE} *"]),
        ("sh", ["-c", f"{LINE} #x"]),
        ("sh", ["-c", "npx\u00a0-y foo@1.2.0"]),
        ("sh", ["-c", f"if {LINE}"]),
        ("sh", ["-c", f"exec -a x {LINE}"]),
        ("sh", ["-c", f"A+=b {LINE}"]),
        ("sh", ["-c", LINE + " x" * 40000]),
        ("cmd", []),
        ("cmd", ["/c"]),
        ("cmd", ["/k", *NPX]),
        ("cmd", ["/v:on", "/c", *NPX]),
        ("cmd", ["/c", *NPX, "&", "calc"]),
        ("cmd", ["/c", f"{LINE} && calc"]),
        ("cmd", ["/c", *NPX, "%X%"]),
        ("cmd", ["/c", *NPX, "a|b"]),
        ("cmd", ["/c", *NPX, "^"]),
        ("cmd", ["/c", *NPX, "${X}"]),
        ("cmd", ["/c", "start x"]),
        ("cmd", ["/c", "npx *"]),
        ("powershell", ["-c", LINE]),
        ("fish", ["-c", LINE]),
        ("sudo", list(NPX)),
        ("xvfb-run", list(NPX)),
        ("timeout", list(NPX)),
        ("timeout", ["-x", "5", *NPX]),
        ("timeout", ["-s", "$X", "5", *NPX]),
        ("timeout", ["5"]),
        ("nice", ["-x", *NPX]),
        ("nice", ["-n", "x", *NPX]),
        ("nohup", []),
        ("stdbuf", ["-x", *NPX]),
        ("mise", list(NPX)),
        ("mise", ["x", "node@20"]),
        ("mise", ["x", "-C", "/x", "--", *NPX]),
        ("mise", ["x", "-c", LINE, "more"]),
        ("mise", ["x", "-c"]),
        ("mise", ["x", "${T}", "--", *NPX]),
        ("direnv", ["exec", "/x"]),
        ("direnv", ["allow", "/x", *NPX]),
        ("direnv", ["exec", "/x", "--", *NPX]),
        ("dotenvx", ["get", "--", *NPX]),
        ("dotenvx", ["run", *NPX]),
        ("dotenvx", ["run", "-fk", "x", "--", *NPX]),
        ("op", ["run", "--account", "x", "--", *NPX]),
        ("doppler", ["run", "--command"]),
        ("doppler", ["run", "--command", f"{LINE}; id"]),
        ("doppler", ["run", "--command", LINE, "--", "x"]),
        ("wsl", []),
        ("wsl", ["-d", "x", *NPX]),
        ("wsl", ["npx", "-y", "foo@1.2.0", ";", "id"]),
        ("wsl", ["~", *NPX]),
        ("nix", ["run", "x"]),
    ],
)
def test_not_looked_through(command, args):
    """More than one simple command, unknown options and unknown wrappers end the reading."""
    assert outcome(command, *args) == "unidentifiable"


@pytest.mark.parametrize(
    ("command", "args", "flag"),
    [
        ("env", ["NODE_OPTIONS=--require=/x", *NPX], "code-injection"),
        ("env", ["-S", "npm_config_registry=https://r.example npx -y", "foo@1.2.0"], "registry-override"),
        ("env", ["-C", "/x", *NPX], "cwd-override"),
        ("env", ["--chdir=/x", *NPX], "cwd-override"),
        ("env", ["A b=c", *NPX], "code-injection"),
        ("sh", ["-c", f"NODE_OPTIONS=x {LINE}"], "code-injection"),
        ("sh", ["-c", f"PATH=/tmp/x {LINE}"], "path-override"),
        ("bash", ["-ic", LINE], "env-injection"),
        ("wsl", ["--exec", *NPX], "env-injection"),
        ("wsl", ["--", *NPX], "env-injection"),
        ("mise", ["x", "npm:npx@1", "--", *NPX], "extra-packages"),
        ("mise", ["x", "node@20", "python@3.12", "--", *NPX], "env-injection"),
        ("mise", ["exec", "--command=npx -y foo@1.2.0"], "env-injection"),
        ("dotenvx", ["run", "-f", ".env", "-e", "NODE_OPTIONS=x", "--", *NPX], "code-injection"),
        ("dotenvx", ["run", "-e", "PATH", "--", *NPX], "path-override"),
        ("op", ["run", "--env-file=.env", "--no-masking", "--", *NPX], "env-injection"),
        ("doppler", ["run", "-c", "x", "-p", "y", "--", *NPX], "env-injection"),
        ("timeout", ["5", "env", "LD_PRELOAD=/x", *NPX], "code-injection"),
    ],
)
def test_what_wrappers_add_is_judged(command, args, flag):
    """A wrapper's assignments, directory and hidden environment count like the entry's own."""
    found = identify(command, args)

    assert found.outcome == "identified-unsafe"
    assert flag in found.flags


def test_wrapper_keys_reach_the_program():
    """The keys a wrapper sets are told, for an entry's `env` list."""
    found = identify("env", ["B=1", "NODE_PATH=/x", *NPX], [("A", "1")])

    assert found.env_keys == ("A", "B", "NODE_PATH")
    assert found.unsafe_env == (("code-injection", "NODE_PATH"),)
    assert found.line_flags == ()


def test_nesting_is_bounded():
    """A tower of wrappers ends the reading."""
    assert outcome("nohup", *["nohup"] * 4, *NPX) == "identified"
    assert outcome("nohup", *["nohup"] * 40, *NPX) == "unidentifiable"


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/npx",
        "/bin/npx",
        "/usr/local/bin/npx",
        "/opt/homebrew/bin/npx",
        "/root/.bun/bin/npx",
        "/home/dev/.local/bin/npx",
        "/Users/dev/.nvm/versions/node/v22.1.0/bin/npx",
        "/home/dev/.local/share/mise/installs/node/22/bin/npx",
        "/home/dev/.local/share/fnm/x/y/npx",
        "/home/dev/.fnm/npx",
        "/home/dev/.asdf/shims/npx",
        r"C:\Program Files\nodejs\npx.cmd",
        "c:/users/Dev/appdata/roaming/npm/NPX.CMD",
    ],
)
def test_trusted_paths(command):
    """A launcher in a well-known directory is the launcher."""
    found = identify(command, ["-y", "foo@1.2.0"])

    assert (found.outcome, found.flags) == ("identified", ("absolute-launcher",))


@pytest.mark.parametrize(
    "command",
    [
        "./npx",
        "../npx",
        "bin/npx",
        "node_modules/.bin/npx",
        "~/.local/bin/npx",
        "/npx",
        "/tmp/npx",
        "/usr/sbin/npx",
        "/usr/bin/x/npx",
        "/usr/bin/../../tmp/npx",
        "/usr/bin/./npx",
        "//usr/bin/npx",
        "/home/npx",
        "/home/.local/bin/npx",
        "/home/a/b/.local/bin/npx",
        "/home/../.local/bin/npx",
        "/home/${U}/.local/bin/npx",
        "/Home/dev/.local/bin/npx",
        "/usr/bin\\npx",
        r"\usr\bin\npx",
        r"D:\Windows\System32\npx.cmd",
        "C:npx",
        "NPX",
        "npx.cmd.exe",
        "npx\u200b",
        "\uff4epx",
        "npx-for-claude",
        "npx\n",
        "",
        "npx" * 1000,
        "${NPX}",
        "$NPX",
        "%NPX%",
        "{env:NPX}",
        "<npx>",
    ],
)
def test_other_paths_and_names_are_no_launcher(command):
    """Anything else could be any program."""
    assert outcome(command, "-y", "foo@1.2.0") == "unidentifiable"


def test_wrapper_by_an_odd_path_is_no_wrapper():
    """`/tmp/x/env` is any program, whatever it seems to start."""
    assert outcome("/tmp/x/env", *NPX) == "unidentifiable"


@pytest.mark.parametrize("command", [LINE, " npx -y foo@1.2.0", "npx", "npx\t-y"])
def test_command_line_in_command(command):
    """A whole line in `command` is split by some clients only, so nothing but a hash can approve it."""
    args = [] if "foo" in command else ["foo@1.2.0"]
    found = identify(command, args)

    if command == "npx":
        assert found.outcome == "identified"
    else:
        assert (found.outcome, found.flags) == ("launcher-version-dependent", ("command-line-in-command",))


@pytest.mark.parametrize(
    "command", ["/opt/My Tools/x", "npx -y foo; id", "tool --x", "env A=b", "a b\u00a0c"]
)
def test_command_lines_that_name_nothing(command):
    """A path with blanks, or a line that is more than a command, is unidentifiable."""
    assert outcome(command) == "unidentifiable"


def test_path_is_judged_by_its_entries():
    """PATH is harmless when every entry is well known; an empty entry is the working directory."""
    assert harmless_path("/usr/bin:/bin:/opt/homebrew/bin:/home/dev/.bun/bin/")
    assert harmless_path(r"C:\Windows\System32;C:\Program Files\nodejs")
    for value in (
        "",
        ":/bin",
        "/bin:",
        "/bin::/usr/bin",
        "/bin:.",
        "/bin:$PATH",
        "/bin:${PATH}",
        "/bin:~/bin",
        "/bin:/sbin",
        "C:/Windows/System32",
        r"C:\Windows\System32;bin",
        r"/bin;C:\Windows\System32",
        "/bin:" * 5000 + "/bin",
    ):
        assert not harmless_path(value), value


def test_well_known_directories_end_where_they_end():
    """No prefix, no case folding on Unix, no oversized text."""
    assert not well_known_directory("/usr/bin2")
    assert not well_known_directory("/USR/bin")
    assert not well_known_directory("/home/a/" + "x" * 5000)
    assert not well_known_directory("")
    assert not well_known_directory("/")


def test_program_names():
    """The name of a program, and whether its path is believed."""
    assert program("npx") == ("npx", False, True)
    assert program("npx.CMD") == ("npx", False, True)
    assert program(".exe") == (".exe", False, True)
    assert program("/bin/sh") == ("sh", True, True)
    assert program("x/sh") == ("sh", False, False)
    assert program(r"C:\Windows\System32\CMD.EXE") == ("cmd", True, True)


@pytest.mark.parametrize(
    ("args", "flags", "nested"),
    [
        (["https://h/x", "9000", "--debug"], (), "https://h/x"),
        (["--header", "A: b", "https://h/x", "--header", "C: ${D}"], (), "https://h/x"),
        (["http://localhost:1/x", "--allow-http"], ("loopback", "plain-http"), "http://localhost:1/x"),
        (["${URL}"], (), "${URL}"),
        (["http://[bad"], (), "http://[bad"),
        (["https://h/x", "--transport", "sse-only"], (), "https://h/x"),
        (["https://h/x", "--transport"], ("carrier-option",), "https://h/x"),
        (["https://h/x", "--transport", "--header", "A:", "b"], ("carrier-option",), "https://h/x"),
        (["https://h/x", "--transport", "${T}"], ("carrier-option",), "https://h/x"),
        (["https://h/x", "https://i/y"], ("carrier-option",), "https://h/x"),
        (["https://h/x", "--token-endpoint", "https://evil"], ("carrier-option",), "https://h/x"),
        (["https://h/x", "--header=A: b"], ("carrier-option",), "https://h/x"),
        (["https://h/x", "--header"], ("carrier-option",), "https://h/x"),
        (["--header-file", "f", "https://h/x"], ("carrier-option",), "https://h/x"),
        (["--debug", "https://h/x"], ("carrier-option",), None),
        ([], ("carrier-option",), None),
        (["file:///x"], ("carrier-option",), None),
    ],
)
def test_mcp_remote(args, flags, nested):
    """The first word that is no header is the URL; only listed options are harmless."""
    found = identify("npx", ["mcp-remote@0.1.29", *args])

    assert found.outcome == "delegate"
    assert set(found.flags) == {"carrier", *flags}
    assert (found.nested.url if found.nested else None) == nested


@pytest.mark.parametrize(
    ("args", "flags", "nested"),
    [
        (["--sse", "https://h/x"], (), ("url", "https://h/x")),
        (["--streamableHttp=https://h/x", "--port=80", "--logLevel", "none"], (), ("url", "https://h/x")),
        (["--stdio", "npx foo"], ("shell",), ("shell", "npx foo")),
        (["--stdio"], ("carrier-option",), None),
        (["--stdio", "--sse", "https://h/x"], ("carrier-option",), None),
        (["--stdio", "a", "--stdio", "b"], ("carrier-option",), None),
        (["--header", "--stdio", "--sse", "https://h/x"], ("carrier-option",), None),
        (["--header", "${H}", "--sse", "https://h/x"], ("carrier-option",), ("url", "https://h/x")),
        (["--streamable-http", "https://h/x"], ("carrier-option",), None),
        (["--cors", "--sse", "https://h/x"], ("carrier-option",), ("url", "https://h/x")),
        ([], ("carrier-option",), None),
    ],
)
def test_supergateway(args, flags, nested):
    """Exactly one payload, and yargs never takes an option for a value."""
    found = identify("npx", ["supergateway@4.0.0", *args])

    assert found.outcome == "delegate"
    assert set(found.flags) == {"carrier", *flags}
    assert (found.nested and (nested[0], getattr(found.nested, nested[0]))) == nested


@pytest.mark.parametrize(
    ("args", "flags", "nested"),
    [
        (["https://h/x", "--port", "1"], (), "https://h/x"),
        (["-H", "A", "b", "https://h/x"], (), "https://h/x"),
        (["-H", "A", "${B}", "https://h/x"], ("carrier-option",), None),
        (["--no-verify-ssl", "https://h/x"], ("carrier-option",), "https://h/x"),
        (["-e", "A", "b", "--", "npx", "x"], ("carrier-option",), None),
        (["https://h/x", "more"], ("carrier-option",), "https://h/x"),
        (["npx", "x"], (), ("npx", "x")),
        (["--", "npx", "-y", "x"], (), ("npx", "-y", "x")),
        (["--", "npx", "--", "x"], ("carrier-option",), ("npx", "--", "x")),
        (["${CMD}", "x"], ("carrier-option",), ("${CMD}", "x")),
        ([], ("carrier-option",), None),
        (["--named-server", "a", "npx x"], ("carrier-option",), None),
    ],
)
def test_mcp_proxy(args, flags, nested):
    """argparse: headers take two values, and a command goes on behind `--`."""
    found = identify("uvx", ["mcp-proxy==0.9.0", *args])

    assert found.outcome == "delegate"
    assert set(found.flags) == {"carrier", *flags}
    if nested is not None:
        assert found.nested is not None
        assert nested in (found.nested.url, found.nested.argv)


def test_sse_url_is_payload_and_unsafe():
    """SSE_URL is carried, and unsafe by its key although it has no flag of its own on a bridge."""
    found = identify("uvx", ["mcp-proxy==0.9.0"], {"SSE_URL": "https://h/x"})

    assert (found.outcome, found.flags) == ("delegate", ("carrier",))
    assert found.unsafe_env == (("carrier-option", "SSE_URL"),)
    assert found.nested is not None
    assert found.nested.url == "https://h/x"
    assert identify("npx", ["foo@1.2.0"], {"SSE_URL": "x"}).flags == ("carrier-option",)


@pytest.mark.parametrize(
    ("args", "nested"),
    [
        (["@modelcontextprotocol/inspector@1.0.0", "npx", "x"], ("npx", "x")),
        (["@modelcontextprotocol/inspector@1.0.0", "--cli", "npx", "x"], None),
        (["cross-env@1.0.0", "NODE_OPTIONS=x", "npx", "y"], ("env", "NODE_OPTIONS=x", "npx", "y")),
        (["cross-env@1.0.0", "A=$B", "npx", "y"], None),
        (["cross-env@1.0.0"], None),
        (["@dotenvx/dotenvx@1.0.0", "get"], None),
        (["@dotenvx/dotenvx@1.0.0", "run", "-e", "LD_PRELOAD=x", "--", "npx", "y"], ("npx", "y")),
        (["mcp-proxy@1.0.0", "node", "x.js"], None),
        (["-p", "mcp-remote@0.1.29", "mcp-remote-client", "https://h/x"], None),
    ],
)
def test_other_npm_carriers(args, nested):
    """A carrier is a delegate, never identified as itself."""
    found = identify("npx", args)

    assert found.outcome == "delegate"
    assert (found.nested.argv if found.nested else None) == nested
    if "LD_PRELOAD=x" in args:
        assert "code-injection" in found.flags


def test_python_carriers():
    """What follows `--` is carried by mcpo; catalogues carry what is not here."""
    assert identify("uvx", ["mcpo", "--port", "1", "--", "uvx", "x"]).nested.argv == ("uvx", "x")
    assert "carrier-option" in identify("uvx", ["mcpo", "--config", "c", "--", "uvx", "x"]).flags
    assert identify("uvx", ["mcpo"]).nested is None
    assert "remote-catalog" in identify("uvx", ["mcpm", "run", "x"]).flags
    assert identify("uvx", ["--from", "mcp-proxy==1", "other", "https://h"]).outcome == "identified-unsafe"


def test_bridge_in_a_wrapper_is_still_a_bridge():
    """A wrapper does not hide the URL behind it."""
    found = identify("env", ["A=b", "npx", "mcp-remote@0.1.29", "https://h/x"])

    assert found.outcome == "delegate"
    assert found.nested is not None
    assert found.nested.url == "https://h/x"


@pytest.mark.parametrize(
    ("command", "args", "flag"),
    [
        ("python3", ["-c", "x"], "inline-code"),
        ("python3", ["-m", "x"], "module"),
        ("python3", ["x.py"], "local-path"),
        ("node", ["-e", "x"], "inline-code"),
        ("node", ["--require", "x", "y.js"], "code-injection"),
        ("node", ["/x/node_modules/y/z.js"], "ambient-install"),
        ("ssh", ["h", "npx"], "remote-host"),
        ("go", ["run", "x"], "unsupported-ecosystem"),
        ("/opt/x", [], "local-path"),
    ],
)
def test_local_programs_say_why(command, args, flag):
    """Programs that are no launchers are unidentifiable, with a reason."""
    found = identify(command, args)

    assert found.outcome == "unidentifiable"
    assert flag in found.flags
