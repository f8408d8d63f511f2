# SPDX-License-Identifier: Apache-2.0
"""Carriers (launchers.md 9): packages that connect to a URL or start another command for the client.

A carrier is never approved as itself. What it carries goes to `nested`; an option that is not known to be
harmless is `carrier-option`, and where several payloads, or none, can be read there is no `nested` at all.
"""

import re

from halod.launch.draft import Draft, describe_url
from halod.launch.model import Nested
from halod.launch.words import Words, has_variable, split_option
from halod.launch.wrappers import dotenvx

_PORT = re.compile(r"[0-9]{1,5}")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[^$%{}`\\\x00]*")
_REMOTE_TRANSPORTS = frozenset({"http-first", "sse-first", "http-only", "sse-only"})
_REMOTE_SWITCHES = frozenset({"--allow-http", "--debug"})
_GATEWAY_VALUES = frozenset({"--header", "--port", "--oauth2Bearer", "--logLevel"})
_GATEWAY_PAYLOADS = frozenset({"--stdio", "--sse", "--streamableHttp"})
_PROXY_VALUES = frozenset({"--transport", "--port", "--host", "--sse-port", "--sse-host"})
_INSPECTOR = re.compile(r"-e|--$|--(?:env|config|server|cli|transport|header|method|cwd|dev)|[$%{<]")
_OPENS_VARIABLE = frozenset("${%<")
_HTTP = ("http://", "https://")


def carry(draft: Draft) -> None:
    """Turn a draft whose package is a carrier into a delegate."""
    key = (draft.ecosystem or "", draft.identifier or "")
    found = _CARRIERS.get(key)
    if found is None or draft.dead:
        return
    reader, programs = found
    if draft.bin is not None and draft.bin.removesuffix(".exe") not in programs:
        return
    draft.delegate = True
    draft.flags.add("carrier")
    reader(draft)
    if draft.nested is not None and draft.nested.url is None:
        draft.temporary_copies()  # what it starts has the environment of this line, and may be bunx


def _url(url: str, draft: Draft) -> None:
    draft.nested = Nested(url=url)
    describe_url(url, draft.flags)


def _mcp_remote(draft: Draft) -> None:
    """`mcp-remote URL [PORT] [options]`: header pairs are taken out first, then the first word is the URL."""
    words = Words(draft.args)
    plain: list[str] = []
    while (word := words.next()) is not None:
        if word in {"--header", "--header-file"}:
            if words.next() is None or word == "--header-file":
                draft.flags.add("carrier-option")
        else:
            plain.append(word)
    url = plain[0] if plain else ""
    if not url.startswith(_HTTP) and not has_variable(url):
        draft.flags.add("carrier-option")
        return
    _url(url, draft)
    words = Words(tuple(plain[1:]))
    if _PORT.fullmatch(words.peek() or ""):
        words.next()
    while (word := words.next()) is not None:
        known = word in _REMOTE_SWITCHES or (word == "--transport" and words.next() in _REMOTE_TRANSPORTS)
        if not known:
            draft.flags.add("carrier-option")


def _value(words: Words) -> bool:
    """Take a value that its parser cannot take for an option; False, taking nothing, when there is none."""
    word = words.peek()
    if word is None or word[:1] == "-" or word[:1] in _OPENS_VARIABLE:
        return False
    words.next()
    return True


def _supergateway(draft: Draft) -> None:
    """Exactly one of `--stdio LINE` (run by a shell), `--sse URL`, `--streamableHttp URL`, read by yargs."""
    words = Words(draft.args)
    payloads: list[tuple[str, str]] = []
    while (word := words.next()) is not None:
        name, attached = split_option(word)
        if name in _GATEWAY_PAYLOADS:
            value = attached
            if value is None and (words.peek() or "-")[:1] != "-":
                value = words.next()
            payloads.append((name, value or ""))
        elif name not in _GATEWAY_VALUES or not (attached is not None or _value(words)):
            draft.flags.add("carrier-option")
    if len(payloads) != 1 or not payloads[0][1]:
        draft.flags.add("carrier-option")
    elif payloads[0][0] == "--stdio":
        draft.flags.add("shell")
        draft.nested = Nested(shell=payloads[0][1])
    else:
        _url(payloads[0][1], draft)


def _mcp_proxy(draft: Draft) -> None:
    """`mcp-proxy [options] URL` or `[options] [--] CMD [args]`, read by argparse; SSE_URL replaces a URL."""
    words = Words(draft.args)
    plain: list[str] = []
    while (word := words.next()) is not None and word != "--":
        if not word.startswith("-"):
            if word[:1] in _OPENS_VARIABLE:
                draft.flags.add("carrier-option")  # it could become an option
            plain.append(word)
        elif not _proxy_option(word, words):
            draft.flags.add("carrier-option")
    plain.extend(words.rest())
    if "--" in words.rest():
        draft.flags.add("carrier-option")  # releases of argparse drop a second one, or do not
    if not plain:
        _from_environment(draft)
    elif plain[0].startswith(_HTTP):
        _url(plain[0], draft)
        if len(plain) > 1:
            draft.flags.add("carrier-option")
    else:
        draft.nested = Nested(argv=tuple(plain))


def _proxy_option(word: str, words: Words) -> bool:
    """Take one option of mcp-proxy; False for one that is not harmless."""
    if word in {"-H", "--headers"}:
        return _value(words) and _value(words)
    name, attached = split_option(word)
    return name in _PROXY_VALUES and (attached is not None or _value(words))


def _from_environment(draft: Draft) -> None:
    for key, value in draft.env:
        if key.upper() == "SSE_URL" and value:
            _url(value, draft)
            return
    draft.flags.add("carrier-option")


def _mcpo(draft: Draft) -> None:
    """`mcpo [--host H] [--port P] -- CMD`."""
    words = Words(draft.args)
    while (word := words.next()) is not None and word != "--":
        name, attached = split_option(word)
        if name not in {"--host", "--port"} or not (attached is not None or _value(words)):
            draft.flags.add("carrier-option")
    if words.rest():
        draft.nested = Nested(argv=words.rest())


def _inspector(draft: Draft) -> None:
    """`@modelcontextprotocol/inspector CMD [args]`; its own options are not read.

    It takes them behind CMD too: `-e NODE_OPTIONS=…` there is the environment of CMD, and `--config` another
    server altogether.
    """
    if draft.args and not draft.args[0].startswith("-"):
        draft.nested = Nested(argv=draft.args)
    if draft.nested is None or any(map(_INSPECTOR.match, draft.args)):
        draft.flags.add("carrier-option")


def _dotenvx(draft: Draft) -> None:
    draft.flags.update(("env-injection", "wrapper"))
    inside = dotenvx(draft.args)
    if inside is not None and inside.words:
        draft.env.extend(inside.env)
        draft.nested = Nested(argv=inside.words)


def _cross_env(draft: Draft) -> None:
    """`cross-env A=b CMD` is carried as `env A=b CMD`, so that what it sets is judged."""
    draft.flags.add("wrapper")
    count = 0
    while count < len(draft.args) and _ASSIGNMENT.fullmatch(draft.args[count]):
        count += 1
    if draft.args[count:] and "=" not in draft.args[count] and not draft.args[count].startswith("-"):
        draft.nested = Nested(argv=("env", *draft.args))
    else:
        draft.flags.add("carrier-option")


def _catalogue(draft: Draft) -> None:
    draft.flags.add("remote-catalog")


def _opaque(draft: Draft) -> None:
    draft.flags.add("carrier-option")


_CARRIERS = {
    ("npm", "mcp-remote"): (_mcp_remote, {"mcp-remote", "mcp-remote-client"}),
    ("npm", "supergateway"): (_supergateway, {"supergateway"}),
    ("npm", "@modelcontextprotocol/inspector"): (_inspector, {"mcp-inspector", "inspector"}),
    ("npm", "@smithery/cli"): (_catalogue, {"smithery", "cli"}),
    ("npm", "@dotenvx/dotenvx"): (_dotenvx, {"dotenvx"}),
    ("npm", "cross-env"): (_cross_env, {"cross-env"}),
    ("npm", "mcp-proxy"): (_opaque, {"mcp-proxy"}),
    ("npm", "mcporter"): (_opaque, {"mcporter"}),
    ("npm", "@mcpjam/inspector"): (_opaque, {"inspector"}),
    ("pypi", "mcp-proxy"): (_mcp_proxy, {"mcp-proxy"}),
    ("pypi", "mcpo"): (_mcpo, {"mcpo"}),
    ("pypi", "mcpm"): (_catalogue, {"mcpm"}),
}
