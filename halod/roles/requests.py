# SPDX-License-Identifier: Apache-2.0
"""What the supervisor grants an agent: it checks every number before it acts on it, and knows no names.

An agent that asks for anything else is broken or was taken over, which ends the service. What is left to an
agent that was taken over: it may have the worker's fixed code look in any directory, with any ids and groups
but uid 0, for locations of its choice, and learn what an answer says (design 3): redacted names, hosts, hashes.
Whether ids and home belong together is not checked: the password database may lie on a network, and neither
this process nor a fork of it asks one (design 3).
"""

from collections.abc import Sequence
from typing import Final

from halod.roles.protocol import MAX_ACCOUNTS, Broken, Target

_MOST_ID: Final = 2**32 - 2  # (uid_t) -1 means "leave unchanged" to setresuid(2)
_MOST_GROUPS: Final = 65536  # NGROUPS_MAX of Linux
_LONGEST_PATH: Final = 4096


def check(targets: Sequence[Target], *, root: bool) -> None:
    """Check the accounts of one request; `root` says that workers take these ids on. Raises Broken."""
    _require(len(targets) <= MAX_ACCOUNTS)
    _require(len({target.key for target in targets}) == len(targets))
    for target in targets:
        _require(target.key >= 0)
        _require(0 <= target.uid <= _MOST_ID and not (root and target.uid == 0))
        _require(0 <= target.gid <= _MOST_ID)
        _require(len(target.groups) <= _MOST_GROUPS)
        _require(all(0 <= group <= _MOST_ID for group in target.groups))
        _require(target.home.startswith("/") and len(target.home) <= _LONGEST_PATH)
        _require("\0" not in target.home and ".." not in target.home.split("/"))


def _require(holds: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise Broken("request")
