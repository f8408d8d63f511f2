# SPDX-License-Identifier: Apache-2.0
"""Environment keys that can change what runs (design 5, launchers.md 10).

Invariants:

1. Keys are compared without case: npm reads `npm_config_*` in any case, and Windows has no case at all.
2. A family is unsafe as a whole but for the exceptions named in the contract; nothing else of it is harmless.
3. A key that cannot be a plain name (blanks, `=`, NUL, not ASCII) is unsafe: `NODE_OPTIONS=--require=x` as a
   key becomes that variable when a process is started.
"""

import re

from halod.launch.paths import harmless_path
from halod.launch.words import listed

_PLAIN_KEY = re.compile(r"[A-Za-z_][!-<>-~]*")

_HARMLESS = listed(
    """NODE_ENV NO_COLOR FORCE_COLOR PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE
    GIT_TOKEN UV_PYTHON_PREFERENCE UV_NO_PROGRESS"""
)
_HARMLESS_PREFIXES = ("GIT_AUTHOR_", "GIT_COMMITTER_")

# What each family can do, by prefix; the longest that fits names the flag. The second half is what review
# found: version managers whose shims are believed, build tools run at installation, loaders of runtimes.
_FAMILIES: dict[str, str] = {
    "NPM_": "config-override",
    "NODE_": "code-injection",
    "PYTHON": "code-injection",
    "UV_": "config-override",
    "PIP_": "config-override",
    "PIPX_": "config-override",
    "BUN_": "config-override",
    "DENO_": "config-override",
    "YARN_": "config-override",
    "PNPM_": "config-override",
    "COREPACK_": "config-override",
    "DOCKER_": "daemon-override",
    "CONTAINER": "daemon-override",
    "LD_": "code-injection",
    "DYLD_": "code-injection",
    "GIT_": "config-override",
    "SSL_": "network-override",
    "OPENSSL_": "code-injection",
    "DOTNET_": "code-injection",
    "NUGET_": "config-override",
    "JAVA_": "code-injection",
    "RUBY": "code-injection",
    "PERL": "code-injection",
    "XDG_": "config-override",
    "BASH_": "code-injection",
    "JSR_": "registry-override",
    "MISE_": "config-override",
    "RTX_": "config-override",
    "ASDF_": "config-override",
    "VOLTA_": "config-override",
    "FNM_": "config-override",
    "PYENV_": "config-override",
    "NODENV_": "config-override",
    "NVM_": "config-override",
    "PODMAN_": "daemon-override",
    "NERDCTL_": "daemon-override",
    "CORECLR_": "code-injection",
    "COR_": "code-injection",
    "COMPLUS_": "code-injection",
    "MSBUILD": "code-injection",
    "ELECTRON_": "code-injection",
    "BUNDLE_": "code-injection",
    "BUNDLER_": "code-injection",
    "PHP_INI": "code-injection",
    "LUA_": "code-injection",
    "ERL_": "code-injection",
    "ELIXIR_": "code-injection",
    "JULIA_": "code-injection",
    "GUILE_": "code-injection",
    "TS_NODE": "code-injection",
    "TSX_": "code-injection",
    "S6_": "code-injection",
    "CARGO_": "code-injection",
    "RUSTUP_": "code-injection",
    "CMAKE": "code-injection",
    "PKG_CONFIG": "code-injection",
    "SETUPTOOLS_": "code-injection",
    "DISTUTILS_": "code-injection",
    "HATCH_BUILD_": "code-injection",
    "PDM_": "config-override",
    "NIX_LD": "code-injection",
    "GTK_": "code-injection",
    "QT_": "code-injection",
    "GIO_": "code-injection",
    "PLAYWRIGHT_DOWNLOAD": "network-override",
    "PUPPETEER_DOWNLOAD": "network-override",
}
_LENGTHS = tuple(sorted({len(prefix) for prefix in _FAMILIES}, reverse=True))

_NAMES: dict[str, str] = {
    key: flag
    for flag, keys in {
        "path-override": "PATH PATHEXT",
        "prefix-override": "PREFIX DESTDIR",
        "config-override": """HOME USERPROFILE HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA PROGRAMDATA
            ALLUSERSPROFILE NETRC REGISTRY_AUTH_FILE VIRTUAL_ENV CONDA_PREFIX INIT_CWD CNI_PATH NETCONFPATH
            WSLENV N_PREFIX PROTO_HOME""",
        "code-injection": """BASH_ENV ENV SHELLOPTS BASHOPTS GCONV_PATH BROWSER PAGER EDITOR VISUAL LESSOPEN
            PUPPETEER_EXECUTABLE_PATH CHROME_PATH CHROME_BIN CHROMIUM_PATH COMSPEC SHELL ZDOTDIR FPATH PS4
            PROMPT_COMMAND NULLCMD READNULLCMD IFS CDPATH GLOBIGNORE MODULE_PATH PSMODULEPATH
            SYSTEMROOT WINDIR SYSTEMDRIVE PROGRAMFILES COMMONPROGRAMFILES __PYVENV_LAUNCHER__ __PROTO__
            GLIBC_TUNABLES LOCPATH NLSPATH SSH_ASKPASS SUDO_ASKPASS SUDO_EDITOR CLASSPATH _JAVA_OPTIONS
            JDK_JAVA_OPTIONS MAVEN_OPTS PHPRC TCLLIBPATH CC CXX CPP CPATH AR AS LD NM RANLIB MAKE MAKEFLAGS
            MAKEFILES GNUMAKEFLAGS CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LIBRARY_PATH C_INCLUDE_PATH
            CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH RUSTC RUSTC_WRAPPER RUSTFLAGS GOFLAGS GODEBUG LIBPATH
            SHLIB_PATH             LD32_LIBRARY_PATH LIBGL_DRIVERS_PATH GEM_HOME GEM_PATH R_HOME R_PROFILE
            R_PROFILE_USER
            R_ENVIRON R_ENVIRON_USER R_LIBS R_LIBS_USER""",
        "network-override": """HTTP_PROXY HTTPS_PROXY ALL_PROXY FTP_PROXY NO_PROXY NOPROXY PROXY HTTPPROXY
            HTTPSPROXY REQUESTS_CA_BUNDLE CURL_CA_BUNDLE CURL_HOME SSLKEYLOGFILE HOSTALIASES LOCALDOMAIN
            RES_OPTIONS RESOLV_HOST_CONF GOPROXY""",
        "daemon-override": "STORAGE_DRIVER STORAGE_OPTS",
        "carrier-option": "SSE_URL",
    }.items()
    for key in keys.split()
}
_SUFFIXES: tuple[tuple[str, str], ...] = (
    ("_HTTP_PROXY", "network-override"),
    ("_HTTPS_PROXY", "network-override"),
    ("CA_BUNDLE", "network-override"),
    ("_EXECUTABLE_PATH", "code-injection"),
    ("_LIBRARY_PATH", "code-injection"),
    ("_BINARY_PATH", "code-injection"),
    ("_DYLIB_PATH", "code-injection"),
    ("_ENGINE_LIBRARY", "code-injection"),
    ("_ENGINE_BINARY", "code-injection"),
    ("_NODEJS_PATH", "code-injection"),
    ("_BROWSERS_PATH", "code-injection"),
)

# Exact members of a family that do something else than the family's flag says. npm reads `-` and `_` alike.
_MEMBERS: dict[str, str] = {
    key: flag
    for flag, keys in {
        "registry-override": """BUN_CONFIG_REGISTRY PNPM_CONFIG_REGISTRY YARN_NPM_REGISTRY_SERVER
            YARN_REGISTRY UV_DEFAULT_INDEX UV_INDEX_URL UV_INDEX UV_EXTRA_INDEX_URL UV_FIND_LINKS
            PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS NPM_CONFIG_REGISTRY NPM_CONFIG_REG""",
        "code-injection": """NPM_CONFIG_NODE_OPTIONS NPM_CONFIG_SCRIPT_SHELL NPM_CONFIG_SHELL NPM_CONFIG_CALL
            NPM_CONFIG_GIT NPM_CONFIG_NODE_GYP NPM_CONFIG_EDITOR NPM_CONFIG_VIEWER NPM_CONFIG_ONLOAD_SCRIPT
            NPM_NODE_EXECPATH NPM_EXECPATH BUN_OPTIONS BUN_INSPECT_PRELOAD BUN_INSPECT UV_PYTHON UV_ENV_FILE
            PIPX_DEFAULT_PYTHON""",
        "extra-packages": """NPM_CONFIG_PACKAGE NPM_CONFIG_INCLUDE UV_WITH UV_WITH_EDITABLE
            UV_WITH_REQUIREMENTS""",
        "version-override": """NPM_CONFIG_TAG NPM_CONFIG_BEFORE NPM_CONFIG_ENJOY_BY NPM_CONFIG_MIN_RELEASE_AGE
            UV_OVERRIDE UV_CONSTRAINT UV_BUILD_CONSTRAINT UV_PRERELEASE UV_RESOLUTION UV_EXCLUDE_NEWER
            UV_FORK_STRATEGY PIP_CONSTRAINT PIP_REQUIREMENT PIP_PRE""",
        "prefix-override": """NPM_CONFIG_PREFIX NPM_CONFIG_WORKSPACE NPM_CONFIG_WORKSPACES NPM_CONFIG_GLOBAL
            NPM_CONFIG_LOCATION NPM_CONFIG_LOCAL_PREFIX""",
        "network-override": """NPM_CONFIG_PROXY NPM_CONFIG_HTTPS_PROXY NPM_CONFIG_HTTP_PROXY
            NPM_CONFIG_NOPROXY NPM_CONFIG_CA NPM_CONFIG_CAFILE NPM_CONFIG_CERT NPM_CONFIG_KEY
            NPM_CONFIG_STRICT_SSL NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED NODE_USE_ENV_PROXY
            DENO_CERT DENO_TLS_CA_STORE
            UV_INSECURE_HOST UV_NATIVE_TLS PIP_TRUSTED_HOST PIP_PROXY PIP_CERT""",
    }.items()
    for key in keys.split()
}
_SCOPED_REGISTRY = re.compile(r"NPM_CONFIG_@.+:REGISTRY")


def judge(key: str, value: str | None) -> str | None:
    """Give the flag of an unsafe environment key, or None for a harmless one.

    `value` is None when it is taken from an environment that cannot be seen (`docker run -e PATH`).
    """
    if _PLAIN_KEY.fullmatch(key) is None or "*" in key or (value is not None and "\0" in value):
        return "code-injection"
    upper = key.upper()
    if upper == "PATH" and value is not None and harmless_path(value):
        return None
    named = _NAMES.get(upper) or _MEMBERS.get(upper.replace("-", "_"))
    return named if named is not None else _judge_family(upper)


def _judge_family(upper: str) -> str | None:
    family = next((found for size in _LENGTHS if (found := _FAMILIES.get(upper[:size]))), None)
    if family is None:
        return next((flag for suffix, flag in _SUFFIXES if upper.endswith(suffix)), None)
    if upper in _HARMLESS or upper.startswith(_HARMLESS_PREFIXES):
        return None
    if _SCOPED_REGISTRY.fullmatch(upper):
        return "registry-override"
    return family
