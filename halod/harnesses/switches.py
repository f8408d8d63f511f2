# SPDX-License-Identifier: Apache-2.0
"""The harnesses that switch servers on and off in another place than the entry (design 4, `enabled`).

Each function looks at what was found of its harness and reads the files of role `state` that concern it, only
when something was found that they could switch. An entry that no switch names counts as enabled.
"""

from collections.abc import Callable
from typing import Final

from halod.harnesses import claude, cline, codex, copilot, desktop, gemini
from halod.harnesses.scan import Scan

SWITCHES: Final[dict[str, Callable[[Scan], None]]] = {
    "claude-code": claude.apply,
    "codex": codex.apply,
    "gemini-cli": gemini.apply_gemini,
    "qwen-code": gemini.apply_qwen,
    "copilot-cli": copilot.apply,
    "claude-desktop": desktop.apply,
    "cline": cline.apply,
}
