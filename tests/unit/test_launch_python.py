# SPDX-License-Identifier: Apache-2.0
"""uvx, uv and pipx: forms beyond the launch cases, and how each could be turned."""

import pytest

from halod.launch import identify


def outcome(command, *args):
    return identify(command, args).outcome


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        ("foo@1.2.0", "1.2.0"),
        ("Foo@1.2.0", "1.2.0"),
        ("foo[x]@1.2.0", "1.2.0"),
        ("foo==1.2.0", "1.2.0"),
        ("foo == 1.2.0", "1.2.0"),
        ("foo (==1.2.0)", "1.2.0"),
        ("foo[x,y]==1.2.0rc1", "1.2.0rc1"),
        ("foo===1.2.0", "1.2.0"),
        ("foo==1.2.0+local", "1.2.0+local"),
        ("foo==1!2.0", "1!2.0"),
    ],
)
def test_exact_requirements(spec, version):
    """Spellings of one exact version; a local version is another one."""
    found = identify("uvx", [spec])

    assert (found.outcome, found.identifier, found.version) == ("identified", "foo", version)


@pytest.mark.parametrize(
    "spec", ["foo", "foo@latest", "foo>=1", "foo~=1.2", "foo==1.*", "foo!=1", "foo>=1,<2", "foo==1,==1"]
)
def test_floating_requirements(spec):
    """Ranges, wildcards and nothing are unpinned."""
    found = identify("uvx", [spec])

    assert (found.outcome, found.identifier, found.version) == ("identified-unpinned", "foo", None)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "-",
        ".",
        "./foo",
        "/srv/foo",
        "foo@LATEST",
        "foo@ 1.2.0",
        "foo @1.2.0",
        " foo@1.2.0",
        "\tfoo@1.2.0",
        "foo[x] @1.2.0",
        "foo [x]@1.2.0",
        "foo@1.2.0\n",
        "foo@V1.2.0",
        "foo@>=1",
        "foo@./x",
        "foo @ ./x",
        "foo@1.2.0/x",
        "x.whl",
        "foo.tar.gz",
        "foo==",
        "foo==1.2.0 --index-url=https://e.example",
        "foo=1.2.0",
        "foo==1.2.0\n",
        "f\u043eo==1.2.0",
        "foo==\uff11.2.0",
        "foo\u200b==1.2.0",
        "foo-",
        "-foo",
        "${PKG}",
        "foo==${V}",
        "foo@<version>",
        "file:///x",
        "python",
        "python@3.12",
        "python3.12",
        "PyPy",
        "ipython",
        "sh",
        "bash==1",
        "mcp",
        "fastmcp==2",
        "f" * 3000,
    ],
)
def test_what_is_no_identity(spec):
    """Errors, local code, look-alikes, variables, interpreters and shells name no package."""
    assert outcome("uvx", spec) == "unidentifiable"


@pytest.mark.parametrize(
    ("spec", "ecosystem"),
    [
        ("git+https://h.example/x@" + "a" * 40, "git"),
        ("hg+https://h.example/x", "git"),
        ("https://h.example/x.whl", "wheel-url"),
        ("foo @ https://h.example/x.whl", "wheel-url"),
        ("foo@git+https://h.example/x", "git"),
    ],
)
def test_other_sources_are_unsafe(spec, ecosystem):
    """A repository and an archive run something else than an index says."""
    found = identify("uvx", [spec])

    assert (found.outcome, found.ecosystem) == ("identified-unsafe", ecosystem)


def test_an_empty_glued_value_is_not_the_next_word():
    """`uvx -p= 3.12 foo@1.2.0` runs the package called 3.12 (run with uv 0.13.9)."""
    found = identify("uvx", ["-p=", "3.12", "foo@1.2.0"])

    assert (found.identifier, found.version, found.args) == ("3-12", None, ("foo@1.2.0",))


@pytest.mark.parametrize("spec", ["foo@1.2.0 ", "foo[x ]@1.2.0", " foo==1.2.0"])
def test_blanks_that_uv_ignores(spec):
    """Blanks behind a version, in the extras and around a specifier change nothing (run with uv 0.13.9)."""
    found = identify("uvx", ["--from", spec, "foo"])

    assert (found.outcome, found.identifier, found.version) == ("identified", "foo", "1.2.0")


def test_marker_is_unsafe():
    """A marker decides on the machine whether anything is installed at all."""
    assert identify("uvx", ["foo==1.2.0; python_version<'3'"]).flags == ("marker",)


@pytest.mark.parametrize(
    "options",
    [
        ["-q"],
        ["-vv"],
        ["-qn"],
        ["--no-cache"],
        ["--isolated"],
        ["--color", "never"],
        ["-p3.11"],
        ["-p=3.11"],
        ["--python=3.12.1"],
        ["--no-config", "--offline"],
        ["--"],
    ],
)
def test_harmless_options(options):
    """The listed options change nothing."""
    assert outcome("uvx", *options, "foo@1.2.0") == "identified"
    assert outcome("uv", "tool", "run", *options, "foo@1.2.0") == "identified"


@pytest.mark.parametrize(
    "options",
    [
        ["--quiet=x"],
        ["-U"],
        ["-qU"],
        ["--upgrade"],
        ["--no-index"],
        ["--python", "/tmp/python"],
        ["-p", "cpython-3.11"],
        ["-p"],
        ["-p="],
        ["-qp="],
        ["-p=="],
        ["-p=", "3.12"],
        ["--python=", "3.12"],
        ["--color", "x"],
        ["-x"],
        ["-qx"],
        ["--fro", "bar"],
        ["--with", "bar"],
        ["--with=bar"],
        ["-w", "bar"],
        ["-wbar"],
        ["-c", "c.txt"],
        ["--overrides", "o.txt"],
        ["--index=https://i.example/"],
        ["-i", "https://i.example/"],
        ["-fhttps://i.example/"],
        ["--index-strategy", "unsafe-best-match"],
        ["--config-file", "u.toml"],
        ["--env-file", ".env"],
        ["--directory", "/x"],
        ["--allow-insecure-host", "h"],
        ["-C", "a=b"],
        ["--prerelease=allow"],
        ["--from", "bar"],
        ["--from", "foo@1.2.0", "--from", "bar"],
    ],
)
def test_other_options_are_never_clean(options):
    """An option that is not listed makes the definition unsafe, or clap refuses it and nothing runs."""
    found = identify("uvx", [*options, "foo@1.2.0"])

    assert found.outcome in {"identified-unsafe", "unidentifiable"}
    assert found.outcome == "unidentifiable" or found.unsafe_flags


@pytest.mark.parametrize(
    ("source", "program", "expected"),
    [
        ("foo-mcp==1.2.0", "foo-mcp", "identified"),
        ("foo_mcp==1.2.0", "foo-mcp", "identified"),
        ("foo.mcp==1.2.0", "foo.mcp.exe", "identified"),
        ("foo-mcp==1.2.0", "other", "identified-unsafe"),
        ("foo-mcp==1.2.0", "./foo-mcp", "unidentifiable"),
        ("foo-mcp==1.2.0", "/bin/sh", "unidentifiable"),
        ("foo-mcp==1.2.0", "perl", "unidentifiable"),
        ("foo-mcp==1.2.0", "node20", "unidentifiable"),
        ("foo-mcp==1.2.0", "foo-mcp.exe.exe", "identified-unsafe"),
        ("foo-mcp==1.2.0", "foo-mcp@1.2.0", "identified-unsafe"),
        ("foo-mcp==1.2.0", "f\u043eo-mcp", "identified-unsafe"),
        ("foo-mcp==1.2.0", "${BIN}", "unidentifiable"),
        ("foo-mcp==1.2.0", "python3", "unidentifiable"),
        ("foo-mcp==1.2.0", "python.exe", "unidentifiable"),
        ("foo-mcp==1.2.0", "BASH", "unidentifiable"),
        ("sh==1.2.0", "sh", "unidentifiable"),
        ("mcp==1.2.0", "mcp", "unidentifiable"),
        ("./x", "foo-mcp", "unidentifiable"),
        ("", "foo-mcp", "unidentifiable"),
    ],
)
def test_from(source, program, expected):
    """`--from P BIN` is P only when BIN is P's own program: anything else may come from PATH."""
    found = identify("uvx", ["--from", source, program])

    assert found.outcome == expected
    assert found.bin == program


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["pip", "install", "x"],
        ["tool", "install", "x"],
        ["tool"],
        ["run"],
        ["run", "x.py"],
        ["run", "-m", "foo"],
        ["run", "--", "x"],
        ["run", "-s", "x.py"],
        ["run", "https://h.example/x.py"],
        ["run", "--no-project", "--with", "foo==1", "--with", "bar", "foo"],
        ["run", "--no-project", "--with-editable", ".", "foo"],
        ["run", "--no-project", "--with", "foo==1", "python", "-c", "x"],
        ["run", "--no-project", "--with", "mcp==1", "mcp", "run", "x.py"],
        ["run", "--no-project", "--with", "foo@1.2.0", "foo"],
    ],
)
def test_uv_that_is_local(args):
    """Other commands of uv, and `uv run` in all but one form, run local code."""
    assert outcome("uv", *args) == "unidentifiable"


def test_uv_run_with_names_a_package_but_is_unsafe():
    """The one form of `uv run` that names a package still looks programs up elsewhere."""
    found = identify("uv", ["run", "--no-project", "--with", "foo-mcp==1.2.0", "foo-mcp", "x"])

    assert (found.outcome, found.identifier, found.version) == ("identified-unsafe", "foo-mcp", "1.2.0")
    assert (found.flags, found.args) == (("with-flag",), ("x",))
    other = identify("uv", ["run", "--no-project", "--with", "foo-mcp==1.2.0", "curl"])
    assert "command-not-from-package" in other.flags


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["run", "foo[x]==1.2.0", "--spec", "evil"], "identified"),
        (["run", "foo@1.2.0"], "unidentifiable"),
        (["run", "./foo"], "unidentifiable"),
        (["run", "-q", "foo==1.2.0"], "identified-unsafe"),
        (["run", "--pip-args=--index-url=https://i.example", "foo==1.2.0"], "identified-unsafe"),
        (["run", "-i", "https://i.example", "foo==1.2.0"], "identified-unsafe"),
        (["run", "--spec", "foo==1.2.0", "python"], "unidentifiable"),
        (["run", "--spec=foo==1.2.0", "other"], "identified-unsafe"),
        (["run", "--spec"], "unidentifiable"),
        (["run", "mcp==1.0"], "unidentifiable"),
        (["run"], "unidentifiable"),
        (["install", "foo"], "unidentifiable"),
        ([], "unidentifiable"),
    ],
)
def test_pipx(args, expected):
    """For pipx there is no harmless option, and `--spec` always names the program apart."""
    assert outcome("pipx", *args) == expected
