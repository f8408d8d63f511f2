# SPDX-License-Identifier: Apache-2.0
"""Which environment keys are unsafe, and how they are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halod.launch import identify
from halod.launch.environment import judge


def words_of(text):
    return text.split()


FAMILIES = words_of(
    "NPM_ NODE_ PYTHON UV_ PIP_ PIPX_ BUN_ DENO_ YARN_ PNPM_ COREPACK_ DOCKER_ CONTAINER LD_ DYLD_ GIT_ SSL_ "
    "OPENSSL_ DOTNET_ NUGET_ JAVA_ RUBY PERL XDG_"
)
NAMES = words_of(
    "PATH HOME APPDATA BASH_ENV ENV SHELLOPTS GCONV_PATH BROWSER PAGER EDITOR VISUAL PUPPETEER_EXECUTABLE_PATH "
    "CHROME_PATH JSR_URL VIRTUAL_ENV REGISTRY_AUTH_FILE USERPROFILE LOCALAPPDATA BASH_FUNC_x%% ComSpec PATHEXT "
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE SSE_URL "
    "SystemRoot CONTAINERS_REGISTRIES_CONF NODE_EXTRA_CA_CERTS GIT_SSH_COMMAND GIT_CONFIG_COUNT PREFIX DESTDIR CC "
    "ZDOTDIR PS4 SHELL MISE_ENV ASDF_NODE_VERSION VOLTA_HOME GLIBC_TUNABLES CORECLR_PROFILER_PATH CLASSPATH "
    "AWS_CA_BUNDLE GLOBAL_AGENT_HTTP_PROXY PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH X_LIBRARY_PATH "
    "ESBUILD_BINARY_PATH PLAYWRIGHT_NODEJS_PATH PLAYWRIGHT_BROWSERS_PATH PRISMA_QUERY_ENGINE_LIBRARY NODENV_ROOT NVM_DIR __proto__"
)
HARMLESS = words_of(
    "NODE_ENV NO_COLOR FORCE_COLOR PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE GIT_TOKEN "
    "GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL UV_PYTHON_PREFERENCE UV_NO_PROGRESS API_KEY GITHUB_TOKEN TZ LANG LC_ALL "
    "DEBUG LOG_LEVEL DATABASE_URL TMPDIR MCP_PROXY_NAME HOMEPAGE PATHS npm"
)


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_unsafe_in_any_case(family):
    """No key of a family is harmless but the named exceptions."""
    for key in (family + "X", (family + "x").lower(), (family + "SOME_THING").title()):
        assert judge(key, "1") is not None, key


@pytest.mark.parametrize("key", NAMES)
def test_names_are_unsafe_in_any_case(key):
    """The listed names, and those that review found."""
    assert judge(key, "/tmp/x")
    assert judge(key.lower(), "/tmp/x")


@pytest.mark.parametrize("key", HARMLESS)
def test_harmless_keys(key):
    """Settings and secrets of servers stay free of alarm."""
    assert judge(key, "x") is None


@pytest.mark.parametrize(
    ("key", "flag"),
    [
        ("NPM_CONFIG_REGISTRY", "registry-override"),
        ("npm_config_@acme:registry", "registry-override"),
        ("npm_config_script-shell", "code-injection"),
        ("npm_config_userconfig", "config-override"),
        ("NPM_CONFIG_PACKAGE", "extra-packages"),
        ("npm_config_tag", "version-override"),
        ("npm_config_prefix", "prefix-override"),
        ("npm_config_https_proxy", "network-override"),
        ("UV_EXTRA_INDEX_URL", "registry-override"),
        ("UV_OVERRIDE", "version-override"),
        ("DOCKER_HOST", "daemon-override"),
        ("HOME", "config-override"),
        ("PATH", "path-override"),
        ("https_proxy", "network-override"),
    ],
)
def test_flags_by_key(key, flag):
    """The flag says what the key can do."""
    assert judge(key, "x") == flag


@pytest.mark.parametrize(
    "key",
    [
        "",
        "A B",
        " A",
        "A\n",
        "A=B",
        "NODE_OPTIONS=--require=/x",
        "=",
        "A\0",
        "\uff30\uff21\uff34\uff28",
        "P\u0410TH",
        "A*",
        "\ud800",
    ],
)
def test_keys_that_are_no_plain_name_are_unsafe(key):
    """Such a key can become another variable once a process is started."""
    assert judge(key, "x") == "code-injection"


def test_values_that_matter():
    """A NUL ends a value early; PATH is judged by its entries, and cannot be when it is not seen."""
    assert judge("A", "x\0NODE_OPTIONS=y") == "code-injection"
    assert judge("PATH", "/usr/bin:/bin") is None
    assert judge("Path", "/usr/bin:/bin") is None
    assert judge("PATH", "/usr/bin:") == "path-override"
    assert judge("PATH", None) == "path-override"


@pytest.mark.parametrize("key", ["TMPDIR", "TEMP", "tmp"])
def test_a_directory_for_temporary_files_is_the_cache_of_bunx(key):
    """Release 1.2 and 1.3 run the package that lies there, whatever the registry holds; the others do not."""
    env = {key: "/tmp/x"}
    for command, args in (("bunx", ("foo@1.2.0",)), ("bun", ("x", "foo@1.2.0"))):
        found = identify(command, args, env)
        assert (found.flags, found.unsafe_env) == (("config-override",), (("config-override", key),))
    assert identify("env", (f"{key}=/tmp/x", "bunx", "foo@1.2.0")).flags == ("config-override", "wrapper")
    assert identify("npx", ("foo@1.2.0",), env).outcome == "identified"


def test_a_directory_for_temporary_files_reaches_what_is_carried():
    """A carrier's line can set it for a bunx inside; beside a URL it means nothing."""
    inside = ("TMPDIR=/tmp/x", "uvx", "mcp-proxy@0.9.0")
    assert "config-override" in identify("env", (*inside, "--", "bunx", "foo@1.2.0")).flags
    assert "config-override" not in identify("env", (*inside, "https://mcp.example.com/")).flags


def test_unsafe_keys_are_told_once_with_their_flag():
    """Keys are told as written, each flag with each key, for pairs as well as mappings."""
    pairs = [("HOME", "/x"), ("A", "1"), ("HOME", "/y"), ("home", "/z")]
    found = identify("npx", ["foo@1.2.0"], pairs)

    assert found.env_keys == ("HOME", "A", "home")
    assert found.unsafe_env == (("config-override", "HOME"), ("config-override", "home"))
    assert found.flags == ("config-override",)
    assert found.line_flags == ()
    assert identify("npx", ["foo@1.2.0"], dict(pairs)).flags == found.flags


@given(st.text(max_size=30), st.none() | st.text(max_size=30))
def test_no_key_raises(key, value):
    """Any key and value is judged, and the case of a plain key does not matter."""
    flag = judge(key, value)

    assert flag is None or flag
    if key.isascii():
        assert judge(key.upper(), value) == judge(key.lower(), value)
