# SPDX-License-Identifier: Apache-2.0
"""Hand-made definitions, launches and entries for the tests of drift."""

from collections.abc import Callable

import msgspec

from halod.definition import Definition, FileRef, stdio_sha256
from halod.drift import Judge, Verdict
from halod.launch.model import Launch
from halod.launch.urls import canonical_url, parse_url
from halod.policy.model import Deny, Entry, Package, Registry

DIGEST = "ab" * 32
OTHER_DIGEST = "cd" * 32
WIKI_URL = "https://mcp-wiki.internal.acme.example/mcp"

NPM = Package(type="npm", identifier="@acme/tools", version="1.2.0", version_text="1.2.0")
OCI = Package(
    type="oci", identifier="docker.io/acme/tools", sha256=DIGEST, version="1.2.0", version_text="1.2.0"
)
BRIDGE = Package(type="npm", identifier="mcp-remote", version="0.1.29", version_text="0.1.29")


def stdio(command: str = "npx", *args: str, **more: object) -> Definition:
    """A command of a user-level file; keywords go to Definition."""
    return _definition(transport="stdio", command=command, args=args, **more)


def http(url: str = WIKI_URL, **more: object) -> Definition:
    """A URL of a user-level file."""
    return _definition(transport="http", url=url, **more)


def _definition(**fields: object) -> Definition:
    base = {"harness": "cursor", "file": FileRef(0), "name": "mine", "scope": "user"}
    return Definition(**{**base, **fields})


def launch(**fields: object) -> Launch:
    """An identified npm launch of NPM at its pin, changed by `fields`; flags sort and count as the line's."""
    base = {"ecosystem": "npm", "identifier": NPM.identifier, "version": NPM.version, "outcome": "identified"}
    merged = {**base, **fields}
    if merged.get("flags") and "line_flags" not in merged:
        by_keys = {flag for flag, _ in merged.get("unsafe_env", ())}
        merged["line_flags"] = tuple(flag for flag in merged["flags"] if flag not in by_keys)
    return Launch(**merged)


def url_entry(url: str = WIKI_URL, **fields: object) -> Entry:
    """An entry that pins a URL."""
    parts = parse_url(url)
    assert parts is not None
    canonical = canonical_url(parts)
    assert canonical is not None
    return Entry(**{"id": "wiki", "url": url, "canonical_url": canonical, **fields})


def npm_entry(**fields: object) -> Entry:
    """An entry that pins NPM, with the keys of `fields`; `bin` goes to its package."""
    program = fields.pop("bin", "")
    package = msgspec.structs.replace(NPM, bin=program)
    return Entry(**{"id": "tools", "package": package, **fields})


def command_entry(*command: str, **fields: object) -> Entry:
    """An entry that pins an exact command."""
    digest = stdio_sha256(command[0], command[1:])
    return Entry(**{"id": "house-tool", "command": command, "definition_sha256": digest, **fields})


def registry(*entries: Entry, **fields: object) -> Registry:
    """A registry of these entries."""
    return Registry(entries=entries, **fields)


def deny(**fields: object) -> Registry:
    """A registry that approves NPM and the wiki, and denies one thing."""
    return registry(npm_entry(), url_entry(), deny=(Deny(**fields),))


def fake(answer: Launch | dict[str, Launch]) -> Callable[..., Launch]:
    """An `identify` that answers with a Launch, or with one by command."""

    def identify(command: str, args: object, env: object, cwd: str) -> Launch:
        return answer if isinstance(answer, Launch) else answer[command]

    return identify


def judged(
    found: Launch | dict[str, Launch], *entries: Entry, definition: Definition | None = None, **more: object
) -> Verdict:
    """Judge a definition whose launch is `found`."""
    subject = definition if definition is not None else stdio()
    return Judge(registry(*entries, **more), fake(found)).judge(subject)
