# SPDX-License-Identifier: Apache-2.0
"""The errors that reach a person.

    HalodError
    ├── UsageError        the command line, settings or policy is wrong      exit 2
    └── EnvironmentFault  the machine does not let halod do its work         exit 2

Library code raises one of these (or a family of its own that the caller turns into one of these); only
`halod.cli` prints and exits. A message says what, where and what was expected, starts in lower case, ends
without a period and never holds a piece of a user's file: the privacy boundary (design 8) includes errors.
"""


class HalodError(Exception):
    """An error with a stable slug, an exit code and advice for the person who reads it.

    `code` is the slug that a status carries as `errorCode`; `advice` says what to do, or is empty.
    """

    code = "error"
    exit_code = 2

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class UsageError(HalodError):
    """The command line, the settings or the policy is wrong: the reader can mend it."""

    code = "usage"


class EnvironmentFault(HalodError):
    """The machine does not let halod work: rights, a missing directory, an unsafe installation."""

    code = "environment"
