# SPDX-License-Identifier: Apache-2.0
r"""The explicit list of what may be changed in an approved definition, written down apart from halod.launch.

`harmless` recognises the harmless variants of the definitions that the policy of `approval` approves, as
regular expressions over words joined by NUL. It is the oracle of the property test: whatever `judge` approves must be
recognised here. Facts: launchers.md 1, 2, 4, 5, 6, 7, 7a, 8, 9; design 5.
"""

import re
import shlex
from urllib.parse import urlsplit

DIGEST = "sha256:" + "0123456789abcdef" * 4
WIKI = ("mcp-wiki.internal.acme.example", "/mcp")
HOUSE = ["/opt/acme/bin/house-mcp", "--stdio"]

# --- environment -------------------------------------------------------------------------------------------

_FAMILIES = re.compile(
    r"(NPM_|NODE_|PYTHON|UV_|PIP_|PIPX_|BUN_|DENO_|YARN_|PNPM_|COREPACK_|DOCKER_|CONTAINER|LD_|DYLD_|GIT_|SSL_|OPENSSL_"
    r"|DOTNET_|NUGET_|JAVA_|RUBY|PERL|XDG_|BASH_FUNC)",
    re.IGNORECASE,
)
_HARMLESS_KEYS = {
    *"NODE_ENV NO_COLOR FORCE_COLOR PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE".split(),
    *"GIT_TOKEN GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL UV_PYTHON_PREFERENCE UV_NO_PROGRESS".split(),
}
_NAMED = {
    *"PATH HOME APPDATA BASH_ENV ENV SHELLOPTS GCONV_PATH BROWSER PAGER EDITOR VISUAL PUPPETEER_EXECUTABLE_PATH".split(),
    *"CHROME_PATH USERPROFILE LOCALAPPDATA VIRTUAL_ENV REGISTRY_AUTH_FILE JSR_URL HTTP_PROXY HTTPS_PROXY ALL_PROXY".split(),
    *"REQUESTS_CA_BUNDLE CURL_CA_BUNDLE SSE_URL COMSPEC PATHEXT CONTAINERS_REGISTRIES_CONF".split(),
}
_PATH = re.compile(r"(/usr/bin|/bin|/usr/local/bin|/opt/homebrew/bin|/home/dev/\.local/bin)/?")


def harmless_key(key, value):
    """Say whether an environment key has no say in what runs."""
    if not re.fullmatch(r"[A-Za-z_][!-<>-~]*", key) or "*" in key or "\0" in (value or ""):
        return False
    if key.upper() == "PATH":
        return value is not None and all(_PATH.fullmatch(entry) for entry in value.split(":"))
    plain = key.upper() in _HARMLESS_KEYS or key.upper().startswith(("GIT_AUTHOR_", "GIT_COMMITTER_"))
    return plain or not (_FAMILIES.match(key) or key.upper() in _NAMED)


# --- URLs --------------------------------------------------------------------------------------------------


def same_url(text):
    """Say whether a URL is a spelling of the approved one that every client reads alike."""
    if not re.fullmatch(r"[\x21-\x7e]+", text) or re.search(r"[\\$@?#{}]", text):
        return False
    try:
        split = urlsplit(text)
        port = split.port
    except ValueError:
        return False
    path = re.sub(
        r"%(2[DdEe]|[3][0-9]|[46][1-9A-Fa-f]|5[0-9AaFf]|7[0-9AaEe])", lambda m: chr(int(m[1], 16)), split.path
    )
    if re.search(r"%", path) or (re.search(r"(^|/)\.{1,2}(/|$)", path) and "%2" in split.path.lower()):
        return False
    out = []
    for step in path.split("/")[1:]:
        if step == "..":
            out[-1:] = []
        elif step != ".":
            out.append(step)
    return split.scheme == "https" and (split.hostname, "/" + "/".join(out)) == WIKI and port in {None, 443}


# --- launchers ---------------------------------------------------------------------------------------------

_NPM_TAIL = r"@[ \t\r\n\f\v]*=?v?1\.2\.0(\+[0-9A-Za-z.-]+)?[ \t\r\n\f\v]*"
_LEVEL = "(silent|error|warn|notice|http|info|verbose|silly|timing)"
_MIRROR = r"(?i:https://packages\.acme\.example)(?::443|:)?/npm/"
_NPX = rf"(\0(-y|--yes|-q|--quiet|-s|--silent|--prefer-offline|--prefer-online|--loglevel[=\0]{_LEVEL}|--registry[=\0]{_MIRROR}))*"
_NPM = _NPX.replace("(-y|", "(-p|--parseable|-y|", 1)
_VERSION = r"(0!)?0*1\.0*2(\.0+)*"
_PYTHON = r"(?:[ \t]*(?:cpython|python)?@?)?3(?:\.\d+){0,2}"
_UV = (
    r"(\0(-[qvn]+|--quiet|--verbose|--no-cache|--isolated|--refresh|--offline|--no-progress|--no-config|--no-env-file"
    rf"|--color[=\0](auto|always|never)|(-[qvn]*p[=]?\0?|--python[=\0]){_PYTHON}))*(\0--)?"
)
_TRUTH = "(=(true|false|1|0|t|f|T|F|TRUE|FALSE|True|False))?"
_DOCKER_FLAG = re.compile(
    rf"-[itq]+{_TRUTH}|--(interactive|tty|rm|init|quiet|read-only){_TRUTH}|--env-file=/dev/null"
)
_DOCKER_VALUE = re.compile(
    r"--(?P<long>name|platform|pull|label|hostname|memory|cpus|pids-limit|restart|stop-timeout|shm-size|publish|network|net"
    r"|env|env-file)(?P<equals>=.*)?|-[itq]*(?P<short>[plmhe])(?P<glued>.*)",
    re.DOTALL,
)
_ANY = r"(\0.*)?"


def _pypi(name):
    words = "[-_.]+".join(name.split("-"))
    return rf"[ \t]*(?i:{words})[ \t]*(\[[A-Za-z0-9 ,._-]*\])?[ \t]*(@[ \t]*[vV]?{_VERSION}|={{2,3}}[ \t]*[vV]?{_VERSION}[ \t]*,?|\([ \t]*={{2,3}}[ \t]*[vV]?{_VERSION}[ \t]*\))[ \t]*"


def _rules(npm, pypi):
    """The lines that run one npm package or one PyPI package, up to and with the package."""
    pin = re.escape(npm) + _NPM_TAIL
    return {
        "npx": rf"{_NPX}(\0--)?\0{pin}",
        "npm": rf"{_NPM}\0(exec|x){_NPM}(\0--)?\0{pin}",
        "pnpm": rf"(\0--registry={_MIRROR})*\0dlx\0{pin}",
        "pnpx": rf"\0{pin}",
        "yarn": rf"\0dlx(\0-q|\0--registry={_MIRROR})*\0{re.escape(npm)}@(npm:)?[ \t\r\n\f\v]*=?v?1\.2\.0(\+[0-9A-Za-z.-]+)?[ \t\r\n\f\v]*",
        "bunx": rf"(\0(--bun|-y|--registry={_MIRROR}))*\0{pin}",
        "bun": rf"(\0(--bun|-y|--registry={_MIRROR}))*\0x(\0(--bun|-y|--registry={_MIRROR}))*\0{pin}",
        "deno": rf"(\0(run|x))?(\0(-A|--allow-[a-z-]*(=[^\0]*)?|-q|-y))*\0npm:/?{pin}",
        "uvx": rf"{_UV}(\0--from[=\0]{_pypi(pypi)}{_UV})?\0({_pypi(pypi)}|(?i:{'[-_.]+'.join(pypi.split('-'))}))",
        "uv": rf"{_UV}\0tool{_UV}\0run{_UV}(\0--from[=\0]{_pypi(pypi)}{_UV})?\0({_pypi(pypi)}|(?i:{'[-_.]+'.join(pypi.split('-'))}))",
        "pipx": rf"\0run\0{_pypi(pypi)}",
    }


_TOOL = _rules("@acme/tool", "acme-tool")
_PROGRAM = re.compile(
    r"(?:(?:/usr/bin|/bin|/usr/local/bin|/opt/homebrew/bin|/home/[\w.@+ -]+/\.local/bin)/)?([a-z0-9]+)(?:\.(?:exe|cmd|bat|ps1|com))?",
    re.IGNORECASE,
)
_NPM_LAUNCHERS = frozenset("npx npm pnpm pnpx yarn bunx bun deno pipx".split())
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_IMAGE = rf"ghcr\.io/acme/tool(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?@{DIGEST}"
_NUGET = r"(?i:acme\.tool)@0*1\.0*2(\.0+){0,2}(\+[0-9A-Za-z.-]+)?"
_DNX = r"(\0(-y|--yes|--prerelease|--interactive|(-v|--verbosity)[=:\0][a-z]+))*"


def harmless(definition):
    """Say whether a definition is an approved one, or differs from one only in what is listed here."""
    if definition.features or not all(harmless_key(key, value) for key, value in definition.env):
        return False
    if definition.transport == "http":
        return same_url(definition.url)
    return _line([definition.command, *definition.args], definition.cwd, 0)


def _line(words, cwd, depth):
    if depth > 6 or not words:
        return False
    if words == HOUSE:
        return not cwd
    match = _PROGRAM.fullmatch(words[0])
    if match is None or (match[1] != match[1].lower()):
        return False
    name, tail = match[1], "".join(f"\0{word}" for word in words[1:])
    if name in _NPM_LAUNCHERS and cwd:
        return False
    if name in _TOOL and re.fullmatch(_TOOL[name] + _ANY, tail, re.DOTALL):
        return True
    if name in _CONTAINERS:
        return _container(tail)
    if name == "dnx" or (name == "dotnet" and re.match(r"\0(dnx|tool\0(exec|execute))\0", tail)):
        return (
            re.fullmatch(
                rf"(\0dnx|\0tool\0exec(ute)?)?{_DNX}\0{_NUGET}{_DNX}(\0--(\0.*)?|\0([^-].*)?)?",
                tail,
                re.DOTALL,
            )
            is not None
        )
    return _wrapped(name, words[1:], cwd, depth + 1) or _bridged(name, tail, cwd, depth + 1)


def _container(tail):
    words = tail.split("\0")[1:]
    words = words[words[:1] == ["container"] :]
    if words[:1] != ["run"]:
        return False
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        match = _DOCKER_VALUE.fullmatch(words[at])
        at += 1
        if match is None:
            if _DOCKER_FLAG.fullmatch(words[at - 1]) is None:
                return False
            continue
        value = match["equals"] if match["long"] else match["glued"]
        if not value:
            value, at = words[at] if at < len(words) else "", at + 1
        if not _docker_value(match["long"] or match["short"], value.removeprefix("=")):
            return False
    rest = words[at + (words[at : at + 1] == ["--"]) :]
    return len(rest) == 1 and re.fullmatch(_IMAGE, rest[0]) is not None


def _docker_value(name, value):
    """Say whether the value of an option of `docker run` changes nothing of what runs."""
    if name in {"network", "net"}:
        return re.match("host$|container|ns:", value) is None
    if name == "env-file":
        return value == "/dev/null"
    if name in {"env", "e"}:
        key, equals, text = value.partition("=")
        return harmless_key(key, text if equals else None)
    return True


# --- wrappers (launchers.md 8) -----------------------------------------------------------------------------


def _wrapped(name, words, cwd, depth):
    if name == "env":
        return _env(words, cwd, depth)
    if name in {"sh", "bash", "zsh", "dash", "ash", "ksh"}:
        match = re.match(
            r"((\0(-[lefuc]+|--login|--noprofile|--norc|--posix|[-+]?-[lefuc]*o\0(pipefail|errexit|nounset|noglob)))*(?<=[a-z])(\0--)?)\0",
            "".join(f"\0{word}" for word in words) + "\0",
        )
        rest = words[match[1].count("\0") :] if match else []
        return bool(rest) and _shell(rest[0], cwd, depth)
    if name == "cmd":
        while words and words[0].lower() in {"/d", "/s", "/q"}:
            words = words[1:]
        if (
            not words
            or words[0].lower() != "/c"
            or any(re.search(r"[&|<>^%!\x00-\x1f${}`]", word) for word in words)
        ):
            return False
        first = _split(words[1]) if words[1:] and " " in words[1] else words[1:2]
        return bool(first) and _line(first + words[2:], cwd, depth)
    if name in {"timeout", "gtimeout"}:
        found = re.fullmatch(
            r"((\0(--foreground|--preserve-status|-v|--verbose|(-k|-s|--signal|--kill-after)[=\0]?[A-Za-z0-9.+-]+))*\0[0-9.]+[smhd]?)\0.*",
            "".join(f"\0{word}" for word in words),
            re.DOTALL,
        )
        return found is not None and _line(words[found[1].count("\0") :], cwd, depth)
    if name == "nohup":
        return _line(words[1:] if words[:1] == ["--"] else words, cwd, depth)
    if name == "nice":
        found = re.match(
            r"(\0(-n[=\0]?[+-]?\d+|--adjustment[=\0][+-]?\d+|-[+-]?\d+))*",
            "".join(f"\0{word}" for word in words),
        )
        return _line(words[found[0].count("\0") :], cwd, depth)
    if name == "stdbuf":
        while words and re.fullmatch(r"-[ioe](L|\d+[KM]?)|--(input|output|error)=(L|\d+[KM]?)", words[0]):
            words = words[1:]
        return _line(words, cwd, depth)
    return False


def _env(words, cwd, depth):
    words = list(words)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":
            break
        if re.fullmatch(r"-[iv]*|--ignore-environment|--debug", word):
            continue
        match = re.fullmatch(r"(?:-[iv]*([uCS])|--(unset|chdir|split-string)(?==|$))=?(.*)", word, re.DOTALL)
        if match is None:
            return False
        letter = match[1] or {"unset": "u", "chdir": "C", "split-string": "S"}[match[2]]
        value = match[3] or ("" if "=" in word else words.pop(0) if words else "")
        if letter == "C":
            cwd = value
        if letter == "S":
            value = word.split("S", 1)[1] or value if match[1] else value
            inner = _split(value)
            if inner is None:
                return False
            words = inner + words
    while words and "=" in words[0]:
        if not harmless_key(*words.pop(0).partition("=")[::2]):
            return False
    return _line(words, cwd, depth)


def _split(text):
    """The words of a line that every shell splits alike; None for any other."""
    if not re.fullmatch(r"[A-Za-z0-9@/._:=+,~^ \t'\"-]*", text):
        return None
    try:
        return shlex.split(text)
    except ValueError:
        return None


def _shell(text, cwd, depth):
    words = _split(text)
    while words and re.match(r"[A-Za-z_][A-Za-z0-9_]*=", words[0]):
        if not harmless_key(*words.pop(0).partition("=")[::2]):
            return False
    if words and words[0] == "exec":
        words = words[1:]
    return bool(words) and _line(words, cwd, depth)


# --- bridges (launchers.md 9) ------------------------------------------------------------------------------

_REMOTE = _rules("mcp-remote", "none")
_GATEWAY = _rules("supergateway", "none")
_PROXY = _rules("none", "mcp-proxy")
_HEADER = r"(\0--header\0[^\0]*)*"
_REMOTE_TAIL = rf"{_HEADER}\0(?P<url>[^-\0][^\0]*){_HEADER}(\0\d{{1,5}})?(\0--header\0[^\0]*|\0--transport\0[^\0-][^\0]*|\0--allow-http|\0--debug)*"
_GATEWAY_OPTION = r"(\0--(header|port|oauth2Bearer|logLevel)(=[^\0]*|\0([^-\0][^\0]*)?))*"
_GATEWAY_TAIL = rf"{_GATEWAY_OPTION}\0--((sse|streamableHttp)[=\0](?P<url>[^\0]*)|stdio[=\0](?P<line>[^\0]*)){_GATEWAY_OPTION}"
_PROXY_OPTION = r"(\0--(transport|port|host|sse-port|sse-host)(=[^\0]*|\0([^-\0][^\0]*)?)|\0(-H|--headers)\0([^-\0][^\0]*)?\0([^-\0][^\0]*)?)*"
_PROXY_TAIL = rf"{_PROXY_OPTION}(\0--)?\0(?P<argv>[^-].*)"


def _bridged(name, tail, cwd, depth):
    for rules, rest in ((_REMOTE, _REMOTE_TAIL), (_GATEWAY, _GATEWAY_TAIL), (_PROXY, _PROXY_TAIL)):
        if name not in rules:
            continue
        start = rules[name] + (r"(\0--)?" if name == "npm" else "")
        for found in (re.fullmatch(start + rest, tail, re.DOTALL),):
            if found is None:
                continue
            parts = found.groupdict()
            if parts.get("url"):
                return same_url(parts["url"])
            if parts.get("line"):
                return _shell(parts["line"], cwd, depth)
            if parts.get("argv"):
                return _carried(parts["argv"].split("\0"), cwd, depth)
    return False


def _carried(words, cwd, depth):
    """What mcp-proxy starts: a URL with nothing else but options of its own, or a line of plain words."""
    if words[0].startswith(("http://", "https://")):
        rest = "".join(f"\0{word}" for word in words[1:])
        return same_url(words[0]) and re.fullmatch(_PROXY_OPTION + r"(\0--)?", rest) is not None
    plain = re.sub(_PROXY_OPTION, "", "".join(f"\0{word}" for word in words)).split("\0")[1:]
    plain = [word for at, word in enumerate(plain) if word != "--" or "--" in plain[:at]]
    return _line(plain, cwd, depth) or _line(words, cwd, depth)
