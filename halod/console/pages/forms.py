# SPDX-License-Identifier: Apache-2.0
"""Forms of the pages: what was filled in, checked; every fault is a `Problem` 422 in words of ours."""

from typing import Final

from halod.console.call import Call
from halod.console.problem import Problem
from halod.console.security import csrf
from halod.status import clean

NAME_LIMIT: Final = 128


def fields(call: Call) -> dict[str, str]:
    """Give the fields of a form. Raises Problem 400 or 415."""
    return csrf.form_fields(call.request.headers.get("content-type", ""), call.body)


def name(given: dict[str, str], field: str, label: str) -> str:
    """Give a name of 1 to 128 characters that is clean as it is."""
    text = given.get(field, "").strip()
    if not text or len(text) > NAME_LIMIT or clean(text, NAME_LIMIT) != text:
        raise Problem(422, f"{label} needs a name of 1 to {NAME_LIMIT} plain characters")
    return text


def optional(given: dict[str, str], field: str, label: str) -> str:
    """Give a text of at most 128 characters, or ""."""
    text = given.get(field, "").strip()
    if len(text) > NAME_LIMIT or clean(text, NAME_LIMIT) != text:
        raise Problem(422, f"{label} is a text of at most {NAME_LIMIT} plain characters")
    return text


def number(given: dict[str, str], field: str, label: str, *, least: int, most: int) -> int:
    """Give a whole number within bounds."""
    text = given.get(field, "").strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most):
        raise Problem(422, f"{label} is a whole number from {least} to {most}")
    return int(text)


def row_id(call: Call, parameter: str) -> int:
    """Give the number in an address. Raises Problem 404."""
    text = call.request.path_params[parameter]
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 19):
        raise Problem(404)
    return int(text)
