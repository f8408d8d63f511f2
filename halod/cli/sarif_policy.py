# SPDX-License-Identifier: Apache-2.0
"""The faults and warnings of a policy as SARIF 2.1.0, for the page of a pull request. Pure.

A file that is named relative to the working directory is a URI relative to the base id %SRCROOT%, which readers
take for the root of the repository; any other is an absolute `file:` URI.
"""

import posixpath
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from halod import __version__
from halod.cli import sarif_log
from halod.policy.repository import Located

_RULES: Final = (
    (
        "policy-fault",
        "error",
        "Fault in the policy",
        "The policy is not valid: agents refuse all of it until this is mended.",
    ),
    (
        "policy-warning",
        "warning",
        "Doubtful in the policy",
        "Allowed, and hardly what was meant.",
    ),
)


def document(faults: list[Located], warnings: list[Located], directory: str) -> dict[str, Any]:
    """Give the SARIF log: one run, a result for each fault and warning.

    `directory` is the absolute working directory. Fingerprints are of a file, a message and the n-th of these
    in the file, so that a result stays the same when lines above it come or go.
    """
    seen: dict[tuple[str, str], int] = {}
    results = [_result("policy-fault", one, directory, seen) for one in faults]
    results += [_result("policy-warning", one, directory, seen) for one in warnings]
    return sarif_log.log(
        sarif_log.driver("halo", __version__, _RULES), {"executionSuccessful": True}, results, {}
    )


def _result(rule: str, one: Located, directory: str, seen: dict[tuple[str, str], int]) -> dict[str, Any]:
    key = (one.file, one.message)
    seen[key] = number = seen.get(key, 0) + 1
    uri, base = _uri(one.file, directory)
    result = sarif_log.result(_RULES, rule, one.message[:1].upper() + one.message[1:])
    result["locations"] = sarif_log.place(uri, base, one.line, one.column)
    digest = sha256(
        "\0".join((uri, one.message, str(number))).encode("utf-8", "backslashreplace")
    ).hexdigest()
    result["partialFingerprints"] = {"haloFault/v1": digest[:32]}
    return result


def _uri(file: str, directory: str) -> tuple[str, str]:
    """Give a file's URI and its base id; what is no file (`<stdin>`) is a relative URI alone."""
    path = posixpath.normpath(file)
    if path.startswith(("/", "../")) or path == "..":
        path = posixpath.normpath(posixpath.join(directory, path))
        return "file://" + quote(path.encode("utf-8", "backslashreplace"), safe="/"), ""
    uri = quote(path.encode("utf-8", "backslashreplace"), safe="/")
    return uri, "%SRCROOT%"
