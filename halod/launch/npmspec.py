# SPDX-License-Identifier: Apache-2.0
"""npm package specs (launchers.md 2.2): what `foo@1.2.0`, `foo@npm:bar@1` or `user/repo` make a launcher
fetch.

Only `NAME`, `NAME@VERSION`, `NAME@RANGE` and `NAME@TAG` with plain characters name a package of the registry.
Everything else that npm would understand is another source, and what it would not understand is no identity.
"""

import re

from halod.launch.draft import Draft
from halod.launch.versions import npm_name, npm_version
from halod.launch.words import MAX_OPERAND, has_variable, listed

_COMPARATOR = re.compile(
    r"(?:[\^~]|~>|[<>]=?|=)?v?(?:[0-9]+|[xX*])"
    r"(?:\.(?:[0-9]+|[xX*])(?:\.(?:[0-9]+|[xX*])(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)?)?"
)
_OPERATOR_BLANK = re.compile(r"([\^~=]|~>|[<>]=?) +")
_BLANKS = re.compile(" +")
_TAG = re.compile(r"[A-Za-z0-9~][A-Za-z0-9._~-]{0,127}")
_ARCHIVE = re.compile(r"\.(?:tgz|tar\.gz|tar)$", re.IGNORECASE)
_URL = re.compile(r"(?:git\+)?[a-z]+:", re.IGNORECASE)
_LOCAL = re.compile(r"[./\\]|~(?:[/\\]|$)|[A-Za-z]:|file:")
_SHORTCUT = re.compile(
    r"(?:(github|gitlab|bitbucket|gist):)?([^\s:@%/#\\]+(?:/[^\s:@%/#\\]+)?)(?:#(.*))?", re.DOTALL
)
_SCP = re.compile(r"(git(?=@)|[A-Za-z0-9._-]+(?=@[^:]*\.))@([A-Za-z0-9.-]+):([^#]+)(?:#(.*))?", re.DOTALL)
_GIT_HOSTS = re.compile(
    r"https?://(?:www\.)?(?:github\.com|gitlab\.com|bitbucket\.org|gist\.github\.com)/[^/]+/[^/]+$"
)
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

# Packages that only run what their arguments name (launchers.md 0 rule 5, 9): never an identity of their own.
INTERPRETERS = listed(
    """tsx ts-node ts-node-dev tsnd node bun deno npm npx pnpm yarn esno esmo jiti sucrase swc-node vite-node
    zx nodemon concurrently electron cross-env-shell dotenv-cli env-cmd run-script-os pm2 forever npm-run-all
    @babel/node @swc-node/cli @babel/cli fastmcp pnpx esbuild-runner bunx babel-node nyc c8 wait-on
    start-server-and-test npm-run-all2 corepack @swc/cli coffee-script coffeescript livescript"""
)


def read_npm(text: str, draft: Draft, *, berry: bool = False) -> None:
    """Read a spec into `draft`; what is no identity kills it. `berry` allows yarn's `NAME@npm:RANGE`."""
    draft.ecosystem = "npm"
    if has_variable(text):
        draft.kill("unresolved-variable", ecosystem="unknown")
        return
    if not text or len(text) > MAX_OPERAND or "\0" in text:
        draft.kill("launch-error")
        return
    name, selector = _split(text)
    if name is None:
        _read_source(text, draft)
    elif npm_name(name) is None:
        draft.kill("launch-error")
    elif selector is None:
        draft.identifier = name
    elif berry and selector[:4] == "npm:" and (_is_range(selector[4:]) or npm_version(selector[4:])):
        _read_selector(name, selector[4:], draft)
        draft.requested = selector
    else:
        _read_selector(name, selector, draft)
    if draft.ecosystem == "npm" and draft.identifier in INTERPRETERS:
        draft.kill("interpreter-package")


def _split(text: str) -> tuple[str | None, str | None]:
    """Split off the name as npm does; no name when the whole text is a source."""
    at = text.find("@", 1)
    name = text[:at] if at > 0 else text
    if _URL.match(text) or _SCP.fullmatch(text):
        return None, None
    if name[0] != "@" and ("/" in name or "\\" in name or _ARCHIVE.search(name)):
        return None, None
    if at > 0:
        return name, text[at + 1 :] or None
    return (name, None) if npm_name(name) else (None, None)


def _read_selector(name: str, selector: str, draft: Draft) -> None:
    exact = npm_version(selector)
    if exact is not None:
        draft.identifier, draft.version = name, exact
        draft.requested = None if exact == selector else selector
    elif _is_range(selector) or (_TAG.fullmatch(selector) and not _ARCHIVE.search(selector)):
        draft.identifier, draft.requested = name, selector
    elif selector[:4].lower() == "npm:":
        _read_alias(selector, draft)
    else:
        if npm_name(name) is not None:
            draft.flags.add("name-is-label")
        _read_source(selector, draft)


def _is_range(selector: str) -> bool:
    """Tell whether `selector` is a plain range: comparators, `A - B`, alternatives with `||`."""
    for part in selector.split("||"):
        low, hyphen, high = part.partition(" - ")
        words = (
            [low.strip(" "), high.strip(" ")]
            if hyphen
            else _BLANKS.split(_OPERATOR_BLANK.sub(r"\1", part.strip(" ")))
        )
        if not all(_COMPARATOR.fullmatch(word) for word in words):
            return False
    return True


def _read_alias(text: str, draft: Draft) -> None:
    """`npm:other@1.0.0`: `other` runs, the left name is a label. An alias of an alias is an error."""
    name, selector = _split(text[4:]) if text[4:] else (None, None)
    if name is None or npm_name(name) is None:
        draft.kill("alias", "launch-error")
        return
    draft.identifier = name
    draft.version = npm_version(selector) if selector else None
    draft.requested = text
    draft.flags.add("alias")


def _read_source(text: str, draft: Draft) -> None:
    """Read what is no name of the registry: a path, a git repository, a tarball, or an error."""
    if text[:4].lower() == "npm:":
        _read_alias(text, draft)
        return
    lower = text.lower()
    if _LOCAL.match(text) and not _URL_SCHEME.match(lower):
        draft.kill("local-path", ecosystem="local")
        return
    scp = _SCP.fullmatch(text)
    shortcut = _SHORTCUT.fullmatch(text)
    if lower.startswith(("git+", "git:", "ssh:")) or (
        lower.startswith("http") and _GIT_HOSTS.match(text.partition("#")[0])
    ):
        base, _, ref = text.partition("#")
        _git(base, ref, text, draft)
    elif lower.startswith(("http://", "https://")):
        draft.ecosystem, draft.identifier = "tarball", text
        draft.flags.add("url-source")
    elif scp is not None:
        _git(f"git+ssh://{scp[1]}@{scp[2]}/{scp[3]}", scp[4] or "", text, draft)
    elif shortcut is not None and (shortcut[1] or "/" in shortcut[2]) and not _ARCHIVE.search(shortcut[2]):
        _git(f"{shortcut[1] or 'github'}:{shortcut[2]}", shortcut[3] or "", text, draft)
    elif "/" in text or "\\" in text or _ARCHIVE.search(text):
        draft.kill("local-path", ecosystem="local")
    else:
        draft.kill("launch-error")


_URL_SCHEME = re.compile(r"(?:git\+)?[a-z]{2,}:(?!file)(?<!file:)")


def _git(base: str, ref: str, text: str, draft: Draft) -> None:
    draft.ecosystem, draft.identifier = "git", base
    draft.version = ref if _COMMIT.fullmatch(ref) else None
    if "name-is-label" in draft.flags:
        draft.requested = text
    elif draft.version is None:
        draft.requested = ref or None
    draft.flags.add("vcs-source")
