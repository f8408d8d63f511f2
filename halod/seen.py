# SPDX-License-Identifier: Apache-2.0
"""What a cycle can vouch for: is a finding that is not there any more gone, or was it not looked at?

A finding is resolved only when its file was read, or is absent, by a worker that ended well (design 8). A
file is absent when it was neither read nor hidden by something that could not be read. Invariants:

1. In doubt the answer is no: a finding that stays stale too long is a nuisance, one that vanishes a lie.
2. Names of files are as reported, so that they can be compared with findings; nothing here is sent.
"""

import msgspec

from halod.status import Finding


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One account in one cycle.

    `well` says that its worker ended well and reached the home. `read` are files: (harness, file). `unread`
    are files, or entries of one name in them: (harness, file, server or ""). `hidden` are folders, (harness,
    folder), in which files that were not read may lie. `plugins` are harnesses whose record of plugins was
    not read, so that what plugins bring is not known. `harnesses` are those that were looked for, None for
    all.
    """

    user: str
    well: bool
    read: frozenset[tuple[str, str]] = frozenset()
    unread: frozenset[tuple[str, str, str]] = frozenset()
    hidden: frozenset[tuple[str, str]] = frozenset()
    plugins: frozenset[str] = frozenset()
    harnesses: frozenset[str] | None = None

    def vouches(self, finding: Finding) -> bool:
        """Tell whether a finding of this account would have been found if it were still there."""
        harness, file = finding.harness, finding.file
        if not self.well or finding.user != self.user:
            return False
        if self.harnesses is not None and harness not in self.harnesses:
            return False
        if (harness, file, "") in self.unread or (harness, file, finding.server) in self.unread:
            return False
        if finding.scope == "plugin" and harness in self.plugins:
            return False
        if (harness, file) in self.read:
            return True
        names = file.split("/")
        return not any(
            (harness, "/".join(names[:count])) in self.hidden for count in range(1, len(names) + 1)
        )
