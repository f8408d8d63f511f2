# SPDX-License-Identifier: Apache-2.0
"""What a cycle can vouch for: is a finding that is not there any more gone, or was it not looked at?

A finding is resolved only when its file was read, or is absent, by a worker that ended well (design 8). A
file is absent when it was neither read nor hidden by something that could not be read. Invariants:

1. In doubt the answer is no: a finding that stays stale too long is a nuisance, one that vanishes a lie.
2. Names of files are as reported, so that they can be compared with findings; nothing here is sent.
"""

import msgspec

from halod.status import Finding


class Blind(msgspec.Struct, frozen=True, kw_only=True):
    """Something of a harness that was not read.

    `file` is a file, or with `below` a folder all of which counts; `server` narrows a file to the entries of
    that name. `plugins` stands for all that plugins of the harness bring: the record of them was not read.
    """

    harness: str
    file: str = ""
    below: bool = False
    server: str = ""
    plugins: bool = False

    def hides(self, finding: Finding) -> bool:
        """Tell whether the finding could be in what was not read, even though its file was read."""
        if self.harness != finding.harness:
            return False
        if self.plugins:
            return finding.scope == "plugin"
        same = not self.below and self.file == finding.file
        return same and self.server in {"", finding.server}

    def hides_folder(self, finding: Finding) -> bool:
        """Tell whether the finding's file, if it was not read, may be there all the same."""
        if not self.below or self.harness != finding.harness:
            return False
        return finding.file == self.file or finding.file.startswith(self.file + "/")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One account in one cycle.

    `well` says that its worker ended well and reached the home. `read` are (harness, file). `harnesses` are
    those that were looked for, None for all.
    """

    user: str
    well: bool
    read: frozenset[tuple[str, str]] = frozenset()
    blind: tuple[Blind, ...] = ()
    harnesses: frozenset[str] | None = None

    def vouches(self, finding: Finding) -> bool:
        """Tell whether a finding of this account would have been found if it were still there."""
        if not self.well or finding.user != self.user:
            return False
        if self.harnesses is not None and finding.harness not in self.harnesses:
            return False
        if any(blind.hides(finding) for blind in self.blind):
            return False
        if (finding.harness, finding.file) in self.read:
            return True
        return not any(blind.hides_folder(finding) for blind in self.blind)
