# SPDX-License-Identifier: Apache-2.0
"""The words after `--package`, and which packages of a document they fit. Pure.

A package is named by its type, by TYPE=IDENTIFIER, by TYPE=IDENTIFIER@VERSION, or by its number in the document.
Invariants:

1. What is written byte for byte as the document has it goes before what only compares equal.
2. `options` gives for each package words that fit it and no other one: it asks `fitting` itself. Two that differ in
   nothing that can be named so have their number.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from halod.launch.versions import canonical_identifier, reference
from halod.policy.importing.model import Candidate, Remote

SUPPORTED: Final = ("npm", "pypi", "nuget", "oci")
STREAMABLE: Final = "streamable-http"

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,5}")
_PASTES: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]{1,250}")
"""What any shell takes as one word without quotes, and any terminal shows as it is."""


def is_number(which: str) -> bool:
    """Tell whether the words are the number of a package or an endpoint."""
    return _NUMBER.fullmatch(which) is not None


def fitting(packages: Sequence[Candidate], which: str) -> list[Candidate]:
    """Give the packages that the words fit; "" fits all that can be pinned.

    A number fits its package whatever that is, everything else only packages of the SUPPORTED types. An image
    is also named without its tag, its digest or both, and what is named of them has to be the same.
    """
    if is_number(which):
        return [one for one in packages if str(one.number) == which]
    kind, equals, name = which.partition("=")
    of_kind = [one for one in packages if one.type in SUPPORTED and kind in {"", one.type}]
    if not equals:
        return of_kind
    exact = [one for one in of_kind if name == one.identifier or (one.version and name == _full(one))]
    return exact or [one for one in of_kind if _equals(one, name)]


def options(packages: Sequence[Candidate]) -> dict[Candidate | Remote, str]:
    """Give the option that chooses each package, the shortest in words that say most; none for one with a fault."""
    return {
        one: "--package "
        + next(
            (
                which
                for which in _words(one)
                if _PASTES.fullmatch(which) and fitting(packages, which) == [one]
            ),
            str(one.number),
        )
        for one in packages
        if one.type in SUPPORTED and not one.fault
    }


def remote_options(remotes: Sequence[Remote]) -> dict[Candidate | Remote, str]:
    """Give the option that chooses each endpoint that speaks what can be pinned."""
    return {one: f"--remote {one.number}" for one in remotes if one.type == STREAMABLE and not one.fault}


def _full(one: Candidate) -> str:
    return f"{one.identifier}@{one.version}"


def _words(one: Candidate) -> Iterator[str]:
    yield one.type
    yield f"{one.type}={one.identifier}"
    if one.version:
        yield f"{one.type}={_full(one)}"


def _equals(one: Candidate, name: str) -> bool:
    """Tell whether a name that is written otherwise is that of a package: `My_Tool` is `my-tool` for PyPI."""
    if one.type == "oci":
        asked, image = reference(name), reference(one.identifier)
        return (
            asked is not None
            and image is not None
            and asked.name == image.name
            and asked.tag in {None, image.tag}
            and asked.digest in {None, image.digest}
        )
    canonical = canonical_identifier(one.type, one.identifier)
    if canonical is None:
        return False
    bare, at, version = name.rpartition("@")
    if at and bare:
        return version == one.version and canonical_identifier(one.type, bare) == canonical
    return canonical_identifier(one.type, name) == canonical
