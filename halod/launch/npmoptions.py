# SPDX-License-Identifier: Apache-2.0
"""npm's own options: which take a value, and what each can do (launchers.md 2.1, 2.3, 7a).

The table exists to find the operand behind an option that makes the definition unsafe anyway. What is
harmless is the short list HARMLESS, as exact words; an option that is not on it always leaves a flag.
"""

import re

from halod.launch.draft import Draft
from halod.launch.words import Words, listed, split_option

HARMLESS = frozenset(
    {"-y", "--yes", "-q", "--quiet", "-s", "--silent", "--prefer-offline", "--prefer-online"}
)
_LOG_LEVELS = frozenset({"silent", "error", "warn", "notice", "http", "info", "verbose", "silly"})

_FLAGS: dict[str, str] = {
    name: flag
    for flag, names in {
        "registry-override": "registry replace-registry-host",
        "config-override": "userconfig globalconfig cache scope auth-type access",
        "prefix-override": "prefix workspace location local-prefix",
        "code-injection": "node-options script-shell shell git editor viewer node-gyp init-module",
        "version-override": "tag before min-release-age enjoy-by",
        "network-override": "proxy https-proxy http-proxy noproxy ca cafile cert key local-address",
    }.items()
    for name in names.split()
}
_OTHER_VALUES = listed(
    """_auth allow-directory allow-file allow-git allow-remote allow-scripts also audit-level cache-max
    cache-min cidr cpu depth diff diff-dst-prefix diff-src-prefix diff-unified expect-result-count expires
    fetch-retries fetch-retry-factor fetch-retry-maxtimeout fetch-retry-mintimeout fetch-timeout heading
    include init-author-email init-author-name init-author-url init-license init-type init-version
    install-strategy libc lockfile-version logs-dir logs-max maxsockets message name omit only os otp
    pack-destination preid provenance-file save-prefix sbom-format sbom-type searchexclude searchlimit
    searchopts searchstaleness tag-version-prefix umask user-agent which loglevel package call"""
)
_VALUES = _OTHER_VALUES.union(_FLAGS)
SWITCHES = listed(
    """all allow-same-version audit bin-links browser color commit-hooks description dev dry-run engine-strict
    force foreground-scripts format-package-lock fund git-tag-version global global-style if-present
    ignore-scripts include-staged include-workspace-root include-attestations install-links json
    legacy-bundling legacy-peer-deps link long offline omit-lockfile-registry-resolved optional package-lock
    package-lock-only parseable prefer-dedupe prefer-offline prefer-online production progress provenance
    read-only rebuild-bundle save save-bundle save-dev save-exact save-optional save-peer save-prod shrinkwrap
    sign-git-commit sign-git-tag strict-peer-deps strict-ssl timing unicode update-notifier usage version
    versions workspaces workspaces-update yes ignore-existing shell-auto-fallback always-spawn no-install
    quiet help q v h y s d dd ddd a f g l S B D E O P iwr ws silent verbose desc porcelain readonly"""
)
_SHORTHANDS = listed("q v h y s d dd ddd a f g l S B D E O P iwr ws silent verbose desc porcelain readonly")
_SHORT_VALUES = {"C": "prefix", "w": "workspace", "L": "location", "m": "message", "reg": "registry"}
_SHORTHAND_LETTERS = frozenset("yqsdpaglfSBDEOP")
_SCOPED = re.compile(r"@[^:]+:registry")


def resolve(key: str) -> str:
    """Give the full name of an option that takes a value: shorthands and unambiguous abbreviations."""
    if key in _SHORT_VALUES:
        return _SHORT_VALUES[key]
    if key in _VALUES or key in SWITCHES or len(key) < 2:
        return key
    found = [name for name in _VALUES if name.startswith(key)]
    found += [name for name in SWITCHES if name not in _SHORTHANDS and name.startswith(key)]
    return found[0] if len(found) == 1 else key


def log_level(value: str | None) -> bool:
    """Tell whether `value` is a level that `--loglevel` really takes."""
    return value in _LOG_LEVELS


def glued(word: str) -> str | None:
    """Give the letters of a cluster of value-less shorthands such as `-yq`, or None."""
    letters = word[1:]
    if word[:1] == "-" and len(letters) > 1 and letters not in {"dd", "ddd", "ws"}:
        return letters if set(letters) <= _SHORTHAND_LETTERS else None
    return None


def take(word: str, words: Words, draft: Draft) -> str:
    """Read one npm option that is not harmless and take its value, if it has one.

    Gives "flagged" when the option has a flag of its own, "known" for a switch of npm's, "unknown" otherwise.
    """
    name, attached = split_option(word.lstrip("-"))
    key = resolve(name)
    scoped = _SCOPED.fullmatch(key) is not None
    value = words.next() if attached is None and (scoped or key in _VALUES) else attached
    flag = "registry-override" if scoped else _FLAGS.get(key)
    if flag == "registry-override":
        draft.registry(value)
    elif flag is not None:
        draft.flags.add(flag)
    elif key in _NO_INSTALL or (key == "yes" and attached is not None):
        draft.flags.add("no-install")
    else:
        known = key in SWITCHES or key.removeprefix("no-") in SWITCHES or glued(word) is not None
        return "known" if known and attached is None else "unknown"
    return "flagged"


def displaces(word: str) -> bool:
    """Tell whether npx-cli takes the operand behind `word` for its value, while npm does not (launchers.md
    2.1).

    npx-cli then fails to put its `--` before the operand, and npm reads the options that follow it.
    """
    name, attached = split_option(word.lstrip("-"))
    key = resolve(name) if name in _SHORT_VALUES else name
    return attached is None and key not in SWITCHES and resolve(key) not in _VALUES


_NO_INSTALL = frozenset({"no-install", "no", "no-yes", "n"})
