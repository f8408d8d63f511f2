# SPDX-License-Identifier: Apache-2.0
"""The machines of the demonstration and who works at them. Nobody here exists."""

import hashlib
from typing import Final

import msgspec

from halod.console.demo import draw

_FIRST: Final = (
    *(
        "amara",
        "bjorn",
        "chiara",
        "daniyar",
        "elif",
        "farid",
        "greta",
        "hyun",
        "ines",
        "jonas",
        "kavya",
        "leila",
    ),
    *(
        "marek",
        "nadia",
        "oskar",
        "priya",
        "quim",
        "rosa",
        "sefa",
        "tomas",
        "uma",
        "vera",
        "wanda",
        "yusuf",
        "zoe",
    ),
)
_LAST: Final = (
    "ahlberg",
    "benali",
    "castel",
    "dorn",
    "eriksen",
    "fontaine",
    "gruber",
    "horvat",
    "iwata",
    "jansen",
)
_UNITS: Final = (("engineering",), ("engineering", "payments"), ("design",), ("data",), ("support",), ())
_UNIT_WEIGHTS: Final = (44, 14, 12, 12, 12, 6)
_PREFIX: Final = {"engineering": "eng", "design": "dsn", "data": "dat", "support": "sup"}
_RINGS: Final = ("ring0-harness-team", "ring1-canary", "ring2-early", "ring3-ga")
_RING_WEIGHTS: Final = (4, 12, 26, 58)
_RELEASES: Final = ("0.1.0", "0.1.0", "0.1.0", "0.0.9")
_HARNESSES: Final = (
    ("claude-code", "~/.claude.json", 30),
    ("cursor", "~/.cursor/mcp.json", 22),
    ("vscode", "~/.config/Code/User/mcp.json", 14),
    ("codex", "~/.codex/config.toml", 11),
    ("claude-desktop", "~/.config/Claude/claude_desktop_config.json", 8),
    ("gemini-cli", "~/.gemini/settings.json", 6),
    ("windsurf", "~/.codeium/windsurf/mcp_config.json", 4),
    ("opencode", "~/.config/opencode/opencode.json", 3),
    ("zed", "~/.config/zed/settings.json", 2),
)
_MACOS_FILES: Final = {
    "vscode": "~/Library/Application Support/Code/User/mcp.json",
    "claude-desktop": "~/Library/Application Support/Claude/claude_desktop_config.json",
}


class Harness(msgspec.Struct, frozen=True):
    """An AI tool on a machine, and its file."""

    id: str
    file: str


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One device, as it stays over the whole story."""

    number: int
    device: str
    hostname: str
    os: str
    halod: str
    user: str
    ring: str
    units: tuple[str, ...]
    harnesses: tuple[Harness, ...]
    joined: int
    """Day of the story on which it enrolled."""


def machine(number: int) -> Machine:
    """Give machine `number`; the same number gives the same machine."""
    units = draw.weighted(_UNITS, _UNIT_WEIGHTS, number, "units")
    macos = draw.number(number, "os") < (0.95 if "design" in units else 0.6)
    kind = "mbp" if macos else draw.pick(("ws", "ws", "nuc"), number, "kind")
    prefix = _PREFIX.get(units[0], "gen") if units else "gen"
    first, last = draw.pick(_FIRST, number, "first"), draw.pick(_LAST, number, "last")
    return Machine(
        number=number,
        device=hashlib.sha256(f"demonstration device {number}".encode()).hexdigest(),
        hostname=f"{prefix}-{kind}-{number:03}",
        os="macos" if macos else "linux",
        halod=draw.pick(_RELEASES, number, "release"),
        user=f"{first}.{last}",
        ring=draw.weighted(_RINGS, _RING_WEIGHTS, number, "ring"),
        units=units,
        harnesses=_harnesses(number, macos=macos),
        joined=0 if draw.number(number, "early") < 0.82 else draw.between(1, 12, number, "joined"),
    )


def _harnesses(number: int, *, macos: bool) -> tuple[Harness, ...]:
    wanted = draw.between(1, 4, number, "harnesses")
    chosen: dict[str, Harness] = {}
    weights = [weight for _, _, weight in _HARNESSES]
    for turn in range(3 * wanted):
        name, file, _ = draw.weighted(_HARNESSES, weights, number, "harness", turn)
        chosen.setdefault(name, Harness(name, _MACOS_FILES.get(name, file) if macos else file))
        if len(chosen) == wanted:
            break
    return tuple(chosen[name] for name in sorted(chosen))
