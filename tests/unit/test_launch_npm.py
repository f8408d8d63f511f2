# SPDX-License-Identifier: Apache-2.0
"""npx, npm, pnpm, yarn, bun and deno: forms beyond the launch cases, and how each could be turned."""

import pytest

from halod.launch import identify


def outcome(command, *args, env=(), cwd=""):
    return identify(command, args, env, cwd).outcome


def flags(command, *args, env=(), cwd=""):
    return identify(command, args, env, cwd).flags


@pytest.mark.parametrize(
    "spec",
    [
        "foo@1.2.0",
        "foo@v1.2.0",
        "foo@=1.2.0",
        "foo@=v1.2.0",
        "foo@1.2.0+build.7",
        "foo@ 1.2.0\n",
    ],
)
def test_exact_spellings_of_one_version(spec):
    """All of these are version 1.2.0 to npm, and nothing else."""
    found = identify("npx", ["-y", spec])

    assert (found.outcome, found.identifier, found.version) == ("identified", "foo", "1.2.0")


@pytest.mark.parametrize(
    "spec",
    [
        "foo",
        "foo@",
        "foo@latest",
        "foo@LATEST",
        "foo@1",
        "foo@1.2",
        "foo@1.2.x",
        "foo@^1.2.0",
        "foo@>=1.2.0 <2",
        "foo@1.2.0 - 1.3.0",
        "foo@1.2.0 || 1.3.0",
        "foo@*",
        "foo@01.2.0",
        "foo@1.2.0.0",
    ],
)
def test_floating_specs_are_unpinned(spec):
    """A range, a tag, a loose form or nothing never counts as the exact version."""
    found = identify("npx", ["-y", spec])

    assert (found.outcome, found.identifier, found.version) == ("identified-unpinned", "foo", None)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "@",
        "@s",
        "@s/",
        "foo@@1",
        "foo@1@2",
        " foo@1.2.0",
        "foo@1.2.0\u200b",
        "f\u043eo@1.2.0",
        "\uff46oo@1.2.0",
        "foo@\uff11.2.0",
        "foo\u00ad@1.2.0",
        "foo@1.2.0\0",
        "foo\n@1.2.0",
        ".foo@1.2.0",
        "_foo@1.2.0",
        "foo@workspace:1.2.0",
        "foo@catalog:",
        "jsr:@s/n@1.2.0",
        "foo@npm:",
        "foo@npm:b@d@1",
        "npm:",
        "${PKG}",
        "foo@${V:-1.2.0}",
        "foo@{env:V}",
        "foo@%V%",
        "$PKG",
        "foo@<version>",
        "foo@file:x",
        "foo@./x",
        "u/r@1.0.0",
        "C:/x",
        "~/x",
        "..",
        "foo.tar.gz",
        "foo@x.tgz",
        "foo@" + "9" * 3000,
        "f" * 215,
    ],
)
def test_what_is_no_identity(spec):
    """Errors, look-alikes, variables and local code name no package."""
    found = identify("npx", ["-y", spec])

    assert found.outcome == "unidentifiable" or found.identifier not in {"foo", "\uff46oo"}
    assert found.outcome != "identified"


@pytest.mark.parametrize(
    ("spec", "ecosystem", "flag"),
    [
        ("u/r", "git", "vcs-source"),
        ("foo@u/r", "git", "vcs-source"),
        ("github:u/r", "git", "vcs-source"),
        ("gist:0123", "git", "vcs-source"),
        ("git+ssh://git@h.example/u/r.git", "git", "vcs-source"),
        ("https://github.com/u/r", "git", "vcs-source"),
        ("me@git.example.com:u/r.git", "git", "vcs-source"),
        ("https://files.example.com/foo.tgz", "tarball", "url-source"),
        ("foo@https://files.example.com/x", "tarball", "url-source"),
        ("npm:bar@1.0.0", "npm", "alias"),
        ("foo@npm:bar", "npm", "alias"),
        ("foo@NPM:bar@1.0.0", "npm", "alias"),
    ],
)
def test_other_sources_are_unsafe(spec, ecosystem, flag):
    """A repository, a tarball and an alias run something else than the name says."""
    found = identify("npx", [spec])

    assert (found.outcome, found.ecosystem) == ("identified-unsafe", ecosystem)
    assert flag in found.flags


@pytest.mark.parametrize(
    "options",
    [
        ["--yes=true"],
        ["-Y"],
        ["--YES"],
        ["--offline"],
        ["--verbose"],
        ["-d"],
        ["--foreground-scripts"],
        ["--ignore-scripts"],
        ["--prefer-offline=true"],
        ["--loglevel"],
        ["--loglevel", "loud"],
        ["--loglevel=loud"],
        ["--loglevel="],
        ["--no-audit", "-y"],
        ["--json=x"],
        ["-"],
        ["-yq", "-y"],
        ["--cache", "/tmp/c"],
        ["--tag", "beta"],
        ["--before=2020-01-01"],
        ["-w", "pkg"],
        ["--proxy", "http://p.example"],
        ["--@s:registry=https://r.example/"],
        ["--replace-registry-host=never"],
        ["--git", "/tmp/git"],
        ["--ignore-existing"],
    ],
)
def test_npx_options_that_are_not_listed_are_unsafe(options):
    """Whatever is not on the short list of harmless options, in its exact spelling, is never approved."""
    assert outcome("npx", *options, "foo@1.2.0") not in {"identified", "identified-unpinned"}
    assert outcome("npm", *options, "exec", "foo@1.2.0") not in {"identified", "identified-unpinned"}
    assert outcome("npm", "exec", *options, "foo@1.2.0") not in {"identified", "identified-unpinned"}


@pytest.mark.parametrize("option", ["-y", "--yes", "-q", "--quiet", "-s", "--silent", "--prefer-offline"])
def test_npx_harmless_options(option):
    """The listed options change nothing, before the package of npx and anywhere for npm exec."""
    assert outcome("npx", option, "foo@1.2.0") == "identified"
    assert outcome("npm", "exec", option, "foo@1.2.0") == "identified"
    assert outcome("npm", "exec", "foo@1.2.0", option) == "identified"


def test_npx_package_flag_names_a_program():
    """With --package the operand is a program, and only what the package brings may be answered."""
    found = identify("npx", ["-y", "--package", "@acme/tools@2.1.0", "github-mcp", "--x"])

    assert (found.outcome, found.identifier, found.version) == ("identified-unsafe", "@acme/tools", "2.1.0")
    assert (found.flags, found.bin, found.args) == (("package-flag",), "github-mcp", ("--x",))
    assert flags("npx", "-p", "a@1.0.0", "-p", "b@1.0.0", "x") == ("extra-packages", "package-flag")


@pytest.mark.parametrize("program", ["sh", "node", "bash", "python3", "npx", "env", "", "${BIN}"])
def test_npx_package_flag_with_a_program_of_the_machine(program):
    """A shell or interpreter beside --package runs instead of the package, whatever an entry tolerates."""
    assert outcome("npx", "-p", "foo@1.2.0", program, "-c", "id") == "unidentifiable"


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["-y"],
        ["--"],
        ["-p", "foo@1.2.0"],
        ["-p", "foo@1.2.0", "-c", "id"],
        ["--call=id", "foo@1.2.0"],
        ["-yq", "foo@1.2.0", "-c", "id"],
    ],
)
def test_npx_without_a_package_is_nothing(args):
    """An error, an interactive shell or a shell line is no identity."""
    assert outcome("npx", *args) == "unidentifiable"


def test_npx_window_behind_a_displaced_operand_closes_at_a_word():
    """The options are read behind the operand only up to the next plain word."""
    found = identify("npx", ["--no-fund", "foo@1.2.0", "-y", "stop", "--registry=https://r.example/"])

    assert found.flags == ("displaced-separator",)
    assert found.args == ("stop", "--registry=https://r.example/")
    assert "unknown-option" in flags("npx", "--no-fund", "foo@1.2.0", "--offline")


def test_registries_are_kept_as_written():
    """What names a registry is kept for the policy's mirrors, one text for each cause."""
    found = identify(
        "npx",
        ["--registry", "https://a.example/", "foo@1.2.0"],
        {"npm_config_registry": "https://b.example/", "npm_config_@s:registry": ""},
    )

    assert found.registries == ("https://a.example/", "https://b.example/", "")
    assert found.line_flags == ("registry-override",)


def test_npm_exec_reads_options_behind_the_package():
    """Until `--` any word can be an option of npm's, or become one."""
    assert outcome("npm", "exec", "foo@1.2.0", "--flag") == "identified-unsafe"
    assert outcome("npm", "exec", "foo@1.2.0", "${X}") == "identified-unsafe"
    assert outcome("npm", "exec", "foo@1.2.0", "--", "${X}", "--flag") == "identified"
    assert outcome("npm", "exec", "foo@1.2.0", "-y", "false", "x") == "identified-unsafe"
    assert outcome("npm", "exec", "foo@1.2.0", "-c", "id") == "unidentifiable"
    assert outcome("npm", "exec", "--package=foo@1.2.0", "--", "foo") == "identified-unsafe"
    assert outcome("npm", "exec", "--no-yes", "foo@1.2.0") == "identified-unsafe"


@pytest.mark.parametrize(
    ("args", "identifier"),
    [
        (["init", "foo@1.2.0"], "create-foo"),
        (["create", "@s/foo@1.2.0"], "@s/create-foo"),
        (["init", "@s@1.2.0"], "@s/create"),
    ],
)
def test_npm_init_runs_an_initializer(args, identifier):
    """`npm init X` runs create-X."""
    found = identify("npm", args)

    assert (found.outcome, found.identifier, found.version) == ("identified", identifier, "1.2.0")


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["run", "start"],
        ["start"],
        ["init"],
        ["--", "exec", "foo@1.2.0"],
        ["exec"],
        ["-c", "x", "exec", "f"],
    ],
)
def test_npm_commands_that_run_local_code(args):
    """Every other command of npm, and an incomplete one, is unidentifiable."""
    assert outcome("npm", *args) == "unidentifiable"


def test_npm_initializer_of_a_repository_stays_one():
    """`npm init user/repo` runs the repository."""
    assert outcome("npm", "init", "u/r") == "identified-unsafe"


@pytest.mark.parametrize("command", ["npx", "pnpx", "bunx"])
def test_cwd_matters_to_launchers_that_prefer_local_copies(command):
    """A working directory can hold another copy of the package, or settings."""
    assert flags(command, "foo@1.2.0", cwd="/srv") == ("cwd-override",)
    assert outcome(command, "foo@1.2.0", cwd="/srv") == "identified-unsafe"


def test_cwd_matters_to_the_other_launchers():
    """deno.json, a file named like the app, a tool manifest: all lie in the working directory."""
    assert flags("deno", "run", "npm:foo@1.2.0", cwd=".") == ("cwd-override",)
    assert flags("pipx", "run", "foo==1.2.0", cwd=".") == ("cwd-override",)
    assert flags("dnx", "Foo@1.2.0", cwd=".") == ("cwd-override",)
    assert flags("npm", "exec", "foo@1.2.0", cwd=".") == ("cwd-override",)
    assert flags("yarn", "dlx", "foo@1.2.0", cwd=".") == ("cwd-override",)
    assert flags("uvx", "foo@1.2.0", cwd=".") == ()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["dlx", "-y", "foo@1.2.0"], "launcher-version-dependent"),
        (["dlx", "--registry=https://r.example/", "foo@1.2.0"], "identified-unsafe"),
        (["--silent", "dlx", "foo@1.2.0"], "identified-unsafe"),
        (["--dir", "/x", "dlx", "foo@1.2.0"], "identified-unsafe"),
        (["dlx", "-c", "foo"], "unidentifiable"),
        (["-c", "dlx", "foo"], "unidentifiable"),
        (["dlx"], "unidentifiable"),
        (["exec", "foo"], "unidentifiable"),
        (["create", "foo@1.2.0"], "identified"),
        (["create", "create-foo@1.2.0"], "unidentifiable"),
        (["create"], "unidentifiable"),
        (["dlx", "tsx", "x.ts"], "unidentifiable"),
        (["--package=foo@1.2.0", "create", "x"], "unidentifiable"),
    ],
)
def test_pnpm(args, expected):
    """Only the bare `dlx SPEC` is read alike by every pnpm."""
    assert outcome("pnpm", *args) == expected


def test_dependent_reading_is_never_left_with_tolerable_flags():
    """What an entry can tolerate must not turn a version-dependent line into an approved one."""
    found = identify("pnpm", ["dlx", "--", "foo@1.2.0"], {"PATH": "/tmp/x"})

    assert found.outcome == "identified-unsafe"
    assert found.flags == ("path-override", "version-dependent")


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        ("yarn", ["foo"], "unidentifiable"),
        ("yarn", ["dlx"], "unidentifiable"),
        ("yarn", ["dlx", "foo@npm:^1.0.0"], "identified-unpinned"),
        ("yarn", ["dlx", "foo@npm:bar@1.0.0"], "identified-unsafe"),
        ("yarn", ["dlx", "-y", "foo@1.2.0"], "identified-unsafe"),
        ("yarn", ["dlx", "-p", "a@npm:1.0.0", "x"], "identified-unsafe"),
        ("bunx", ["-y", "--bun", "foo@1.2.0"], "identified"),
        ("bunx", ["--cwd", "evil@1.0.0", "foo@1.2.0"], "identified-unsafe"),
        ("bunx", ["--silent", "foo@1.2.0"], "identified-unsafe"),
        ("bunx", [], "unidentifiable"),
        ("bun", ["x"], "unidentifiable"),
        ("bun", ["--bun", "x", "foo@1.2.0"], "unidentifiable"),
        ("pnpx", ["--package", "foo@1.2.0", "foo"], "launcher-version-dependent"),
    ],
)
def test_yarn_and_bun(command, args, expected):
    """The other npm launchers, option by option."""
    assert outcome(command, *args) == expected


def test_bun_env_file_is_never_only_tolerable():
    """Old releases take the value of an option for the package: a tolerable flag must not stand alone."""
    assert flags("bunx", "--env-file", "evil@1.0.0", "foo@1.2.0") == ("env-injection", "unknown-option")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["run", "-A", "-q", "--allow-net=h", "npm:foo@1.2.0", "--x"], "identified"),
        (["run", "--allow-Run=x", "npm:foo@1.2.0"], "identified-unsafe"),
        (["npm:@s/foo@1.2.0"], "identified"),
        (["run", "npm:@s"], "unidentifiable"),
        (["x", "npm:foo@1.2.0"], "identified"),
        (["run", "-y", "npm:foo@1.2.0"], "identified-unsafe"),
        (["run", "-Aq", "npm:foo@1.2.0"], "identified-unsafe"),
        (["run", "--preload", "x.ts", "npm:foo@1.2.0"], "identified-unsafe"),
        (["run", "--env-file", "npm:foo@1.2.0", "npm:foo@1.2.0"], "identified-unsafe"),
        (["run", "npm:foo@1.2.0/other"], "identified-unsafe"),
        (["run", "npm:@s/foo@1.2.0/bin/x"], "identified-unsafe"),
        (["run", "npm:foo@npm:bar@1.0.0"], "unidentifiable"),
        (["run", "npm:u/r#x"], "identified-unsafe"),
        (["run", "jsr:@s/n"], "identified-unpinned"),
        (["run", "--allow-net", "example.com", "npm:foo@1.2.0"], "unidentifiable"),
        (["task", "start"], "unidentifiable"),
        (["x", "-p", "bar", "npm:foo@1.2.0"], "unidentifiable"),
        (["run"], "unidentifiable"),
        (["run", "npm:${X}@1.2.0"], "unidentifiable"),
    ],
)
def test_deno(args, expected):
    """Permissions of deno take values only with `=`; an import map can name anything."""
    assert outcome("deno", *args) == expected


def test_deno_path_behind_the_package_is_another_program():
    """The path names a program of the package: only an entry's `bin` could answer it."""
    found = identify("deno", ["run", "npm:@s/foo@1.2.0/bin/x"])

    assert (found.identifier, found.version, found.bin) == ("@s/foo", "1.2.0", "bin/x")
    assert found.flags == ("package-flag",)


@pytest.mark.parametrize("spec", ["npm:foo@v1.2.0", "npm:foo@=1.2.0", "npm:foo@ 1.2.0", "npm:@a/foo@v1.2.0"])
def test_what_is_no_version_to_deno(spec):
    """`v1.2.0` is a dist-tag to deno, `=1.2.0` an error (run with deno 2.9.6); npm takes both for 1.2.0."""
    found = identify("deno", ("run", "-A", spec))

    assert (found.outcome, found.version) == ("identified-unpinned", None)
