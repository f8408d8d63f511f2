# SPDX-License-Identifier: Apache-2.0
"""The words of the pages: what kinds, reasons, harnesses and states are called. Pure tables and small look-ups.

Invariant: a value that no table has (of a newer agent) is shown as it came, never an error.
"""

from typing import Final

KINDS: Final = {
    "denied": "Denied",
    "unapproved": "Unapproved",
    "version-drift": "Version drift",
}
"""Kinds of findings, the gravest first."""

KIND_MEANING: Final = {
    "denied": "On the deny list. It should be removed now.",
    "unapproved": "Nobody has approved it.",
    "version-drift": "Approved, but at another version or in another form.",
}

EVENTS: Final = {"opened": "Opened", "changed": "Changed", "resolved": "Resolved"}

SCOPES: Final = {
    "user": "for everything this account does",
    "project": "for one project",
    "plugin": "brought by a plugin or extension",
    "agent": "brought by an agent or profile",
}

STATES: Final = {
    "reporting": "Reporting",
    "silent": "Silent",
    "partly": "Partly unread",
    "limited": "Limited",
}

STATE_MEANING: Final = {
    "reporting": "It reported lately.",
    "silent": "Nothing has come from it lately. What is shown is what it said last.",
    "partly": "Something on it could not be read, or it reports a fault. Nothing found there is not the same as clean.",
    "limited": "It named more than 1,000 different servers in 30 days, so further reports with new ones are refused.",
}

ORDERS: Final = {"devices": "Most devices", "last-seen": "Last change"}

HARNESSES: Final = {
    "amazon-q-cli": "Amazon Q Developer CLI",
    "amp": "Amp",
    "antigravity": "Google Antigravity",
    "augment": "Augment",
    "claude-code": "Claude Code",
    "claude-desktop": "Claude Desktop",
    "cline": "Cline",
    "codebuddy": "CodeBuddy",
    "codex": "Codex",
    "continue": "Continue",
    "copilot-cli": "GitHub Copilot CLI",
    "crush": "Crush",
    "cursor": "Cursor",
    "every-code": "Every Code",
    "factory-droid": "Factory Droid",
    "gemini-cli": "Gemini CLI",
    "goose": "Goose",
    "grok": "Grok Build",
    "halo": "Halo desktop",
    "hermes": "Hermes Agent",
    "jetbrains-ai-assistant": "JetBrains AI Assistant",
    "jetbrains-junie": "JetBrains Junie",
    "kilo-code": "Kilo Code",
    "kimi-code": "Kimi Code",
    "kiro": "Kiro",
    "lm-studio": "LM Studio",
    "mistral-vibe": "Mistral Vibe",
    "openclaw": "OpenClaw",
    "opencode": "OpenCode",
    "openhands": "OpenHands",
    "qoder": "Qoder",
    "qwen-code": "Qwen Code",
    "roo-code": "Roo Code",
    "snowflake-cortex": "Snowflake Cortex Code",
    "tabnine": "Tabnine",
    "trae": "Trae",
    "vscode": "VS Code",
    "warp": "Warp",
    "windsurf": "Windsurf",
    "zcode": "ZCode",
    "zed": "Zed",
}

REASONS: Final = {
    "changed": ("The file changed while it was read", "It is read again at the next scan."),
    "denied-by-system": (
        "The system refused, as macOS privacy protection does",
        "Give halod Full Disk Access with a privacy profile of your MDM.",
    ),
    "error": ("The system reported an error", "Look at the disk or mount behind the file."),
    "escapes-home": (
        "A link on the way leads out of the home",
        "Move the folder into the home, or let link_roots in halod.toml name where it may lead.",
    ),
    "hard-linked": (
        "The file belongs to another account and has several hard links",
        "Replace it by a copy that the account owns.",
    ),
    "home-unavailable": (
        "The account's home could not be opened",
        "Check that it exists, is mounted, and is no link.",
    ),
    "malformed": (
        "The file does not parse, so the tool may not read it either",
        "Mend the file at the place shown, or restore it.",
    ),
    "malformed-entry": (
        "The entry defines no server that can be run",
        "Complete the entry (a command or a URL, of the right type) or remove it.",
    ),
    "no-account": ("There is no such account on the machine", "Check the names in halod.toml."),
    "not-regular": (
        "A folder, pipe, socket or device stands where a file should",
        "Remove it, unless a tool needs it there.",
    ),
    "opaque": ("The config is a program, which halod does not run", "Review by hand what it sets up."),
    "symlink": (
        "The file is a symbolic link",
        "Put a regular file in its place, or let link_roots in halod.toml name where links may end.",
    ),
    "too-large": (
        "The file is larger than halod reads",
        "Raise max_file_bytes in halod.toml if it should be.",
    ),
    "too-many-entries": (
        "The folder has more entries than halod lists",
        "Clear the folder of what is not used.",
    ),
    "unreadable": ("halod may not read the file", "Mend the file's mode."),
    "worker-crashed": ("Reading this account failed", "Report it to the maintainers if it stays."),
    "worker-invalid": (
        "Reading this account gave an answer that halod does not accept",
        "Treat the account as not read, look at the machine, and report it.",
    ),
    "worker-timeout": (
        "Reading this account took too long",
        "Look for a slow or hanging mount in the home.",
    ),
    "wrong-owner": (
        "The file belongs to another account",
        "Give it back to the account (chown) after finding out who put it there.",
    ),
}
"""Why something could not be read, and what to do about it."""

NOT_COVERED: Final = {
    "project-files": "files in repositories (.mcp.json and the like)",
    "cloud-connectors": "connectors kept in a vendor's cloud",
    "environment-overrides": "config folders moved by environment variables",
    "plugin-sources": "plugins that run from a folder outside the home",
}
"""What no scan of a home can see."""

FAULTS: Final = {
    "policy-malformed": "The policy that it fetched could not be read.",
    "policy-unsigned": "The policy that it fetched is not signed with a key that it knows.",
    "policy-foreign": "The policy that it fetched is another organisation's.",
    "policy-older": "It was offered a policy older than the one it has, and refused it.",
    "policy-expired": "Its policy has expired.",
}
"""`errorCode` of a status, where it is worth more words than the device's own."""

ACTIONS: Final = {
    "device.accept": "Accepted a device",
    "device.enroll": "Enrolled",
    "device.refuse": "Refused a device",
    "device.wait": "Waits for a decision",
    "enroll-key.create": "Made an enrolment key",
    "enroll-key.revoke": "Revoked an enrolment key",
    "export": "Exported",
    "login": "Signed in",
    "login-link.create": "Made a login link",
    "login.refused": "Was not let in",
    "logout": "Signed out",
    "logout.everywhere": "Signed out everywhere",
    "policy.publish": "Published a policy",
    "token.create": "Made a token",
    "token.revoke": "Revoked a token",
    "webhook.discard": "Dropped a delivery",
    "webhook.retry": "Sent a delivery again",
}
"""Actions of the audit log in words; another is shown as it is."""

HOOK_EVENTS: Final = {
    "finding.new": "new finding",
    "definition.new": "definition never seen before",
    "device.silent": "device fell silent",
    "device.back": "device is back",
    "coverage.lost": "coverage lost",
    "events.folded": "many events in one",
}

DELIVERY: Final = {"dead": "Dead", "due": "Due", "done": "Delivered"}

DELIVERY_ERRORS: Final = {
    "cut-off": "the connection broke off",
    "failed": "it failed",
    "garbled": "the answer was no HTTP",
    "gone": "the receiver wants no more (410)",
    "no-such-host": "its name cannot be resolved",
    "proxy": "the proxy refused",
    "redirect": "the receiver redirects, which is not followed",
    "refused": "the connection was refused",
    "timed-out": "no answer in time",
    "tls": "its certificate does not hold",
    "unreachable": "it cannot be reached",
}

ROLES: Final = {
    "VIEWER": "viewer",
    "OPERATOR": "operator",
    "ADMIN": "admin",
    "NONE": "nobody",
}

PROBLEMS: Final = {
    400: (
        "That address is not right",
        "Something in it is not what this page takes. Start again from the list.",
    ),
    401: ("Sign in first", "This page is for people of your organisation."),
    403: ("Not for your role", "Ask whoever looks after this console if you need it."),
    404: ("Nothing is here", "It may have been resolved or forgotten, or the address has a slip in it."),
    405: ("That cannot be done here", "Go back and try again from the page."),
    408: ("That took too long", "Try again; if it happens twice, look at the network between."),
    409: ("Someone was faster", "What you saw has changed since. Load the page again."),
    413: ("Too much at once", "What was sent is larger than this page takes."),
    415: ("Not in that form", "Go back and try again from the page."),
    421: ("Not under this name", "Use the address that the console goes by."),
    422: ("That cannot be taken as it is", "Go back, mend what is named, and send it again."),
    429: ("Too many requests", "Wait a moment, then load the page again."),
    500: (
        "The console failed",
        "It is not your doing, and nothing was changed. What went wrong is in the console's log.",
    ),
    503: ("Not available now", "The console or its database is being looked after. Try again in a minute."),
}
"""Error pages: what to call it, and what a person does next."""


def harness(name: str) -> str:
    """Give what a harness is called; its id when it is not known."""
    return HARNESSES.get(name, name)


def reason(name: str) -> tuple[str, str]:
    """Give a reason in words and what to do about it."""
    return REASONS.get(name, (name, "This console does not know the reason: it may be older than the agent."))


def delivery_error(name: str) -> str:
    """Give in words why a webhook was not delivered."""
    if name.startswith("status-"):
        return f"the receiver answered {name.removeprefix('status-')}"
    return DELIVERY_ERRORS.get(name, name)


def plural(count: int, one: str, many: str = "") -> str:
    """Give "1 device", "12,345 devices"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
