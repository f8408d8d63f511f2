# SPDX-License-Identifier: Apache-2.0
"""What drift says about one definition: closed vocabularies only, so that a worker may send it.

Invariant: nothing in a Verdict is text of the user's but `host`, which may leave as it is (design 8).
`detail` and `fix` are made from a Verdict on the other side of the pipe (`drift.words`).
"""

from typing import Final, Literal, get_args

import msgspec

from halod.launch.model import Outcome

Kind = Literal["approved", "version-drift", "unapproved", "denied"]
Note = Literal[
    "",
    # version-drift
    "unpinned",
    "other-version",
    "url-differs",
    # version-drift or unapproved
    "bridge-to-approved",
    # unapproved
    "approved-with-unsafe",
    "launcher-version",
    "carries-approved",
    "carries-unapproved",
    "other-ring",
    "expired",
    "other-path",
    "other-port",
    "borrowed-id",
    "desktop-extension",
    "not-comparable",
    "unidentifiable",
    "not-listed",
    # denied
    "denied-package",
    "denied-host",
    "denied-url",
    "denied-hash",
]
NOTES: Final[frozenset[str]] = frozenset(get_args(Note))
SEVERITY: Final[dict[str, int]] = {"approved": 0, "version-drift": 1, "unapproved": 2, "denied": 3}
"""Kinds from harmless to bad: `max` by it gives the worse."""

URL_DIFFERENCES: Final = ("scheme", "userinfo", "query", "fragment", "trailing-slash")
"""What may differ for a URL to be `url-differs`, in the order of the words."""


class Verdict(msgspec.Struct, frozen=True):
    """The answer of rules 0 to 8 (design 6) for one definition.

    entry    the id of the registry entry that approves it or that it comes close to, or ""; for `denied` the
             position of the deny entry in `registry.deny`, in decimal digits (deny entries have no id)
    note     why, where the kind alone does not say it
    flags    with `approved-with-unsafe` what the entry does not answer; with `url-differs` what differs
    outcome  that of the launch; "" for http
    host     where an http definition connects to, "" when it cannot be told, and "" for stdio
    """

    kind: Kind
    entry: str = ""
    note: Note = ""
    flags: tuple[str, ...] = ()
    outcome: Outcome | Literal[""] = ""
    host: str = ""
