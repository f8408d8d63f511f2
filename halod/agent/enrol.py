# SPDX-License-Identifier: Apache-2.0
"""Enrolment: an organisation's key is exchanged once for this device's own token (design 9).

The token is bound to (device, install id). `device` is no secret; the install id is random, made once on this
machine. A device that the server knows shows its old token when it has one; without it the server may answer
202 and wait until an operator accepts the device. docs/report-api.md is the contract.
"""

from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from halod.agent.devicefile import Device
from halod.agent.http import Answer, Client
from halod.agent.outbox_protocol import Outbox
from halod.settings.secret import is_token

API: Final = "/api/v1/"
_TRANSIENT: Final = frozenset({408, 425, 429})


class About(msgspec.Struct, frozen=True):
    """What the server is told of this machine: the same values as in a status."""

    device: str
    hostname: str
    os: str
    halod: str


class _Request(msgspec.Struct, rename="camel", omit_defaults=True):
    device: str
    install_id: str
    hostname: str
    os: str
    halod: str
    old_token: str = ""


class _Grant(msgspec.Struct):
    """What the agent reads of a 201: other fields (`expires`) are for people."""

    token: str


class Enrolled(msgspec.Struct, frozen=True):
    """How a request for a token ended. `failed`: the server is busy or broken, which passes by itself."""

    outcome: Literal["enrolled", "enrolment-pending", "enrolment-refused", "enrolment-malformed", "failed"]
    answer: Answer


def enrol_url(report_url: str) -> str:
    """Give the address for enrolment that belongs to a report URL.

    It is `/api/v1/enroll` below what precedes the last `/api/v1/` of the report URL's path, or at the root of
    the server when there is no such part: a console below a prefix is found, and so is one behind a report URL
    of its own choosing. The query is dropped.
    """
    parts = urlsplit(report_url)
    prefix, found, _rest = parts.path.rpartition(API)
    return urlunsplit((parts.scheme, parts.netloc, f"{prefix if found else ''}{API}enroll", "", ""))


class Enrolment:
    """Asks for a token with the organisation's key. Speaks only when `ask` is called."""

    def __init__(self, report_url: str, key: str, about: About) -> None:
        """`key` must have passed `is_token`."""
        self._url = enrol_url(report_url)
        self._key = key
        self._about = about

    def __repr__(self) -> str:
        """Tell nothing: a key is inside."""
        return "Enrolment()"

    def ask(self, client: Client, outbox: Outbox) -> Enrolled:
        """Ask once; a granted token is kept durably before this returns.

        Raises:
            Fault: there was no answer.
            EnvironmentFault: the token cannot be kept. The server may have given it out: the next request, without
                the old token, may then be pending.
        """
        about, kept = self._about, outbox.device
        body = _Request(
            device=about.device,
            install_id=kept.install_id,
            hostname=about.hostname,
            os=about.os,
            halod=about.halod,
            old_token=kept.token,
        )
        answer = client.send("POST", self._url, bearer=self._key, body=msgspec.json.encode(body))
        if answer.status == 202:
            _note(outbox, kept, "pending")
            return Enrolled("enrolment-pending", answer)
        if answer.status in _TRANSIENT or answer.status >= 500:
            return Enrolled("failed", answer)
        if answer.status not in {200, 201}:
            _note(outbox, kept, "refused")
            return Enrolled("enrolment-refused", answer)
        token = _granted(answer)
        if not token:
            return Enrolled("enrolment-malformed", answer)
        outbox.update_device(token=token, enrolment="enrolled")
        return Enrolled("enrolled", answer)


def _note(outbox: Outbox, kept: Device, enrolment: Literal["pending", "refused"]) -> None:
    if kept.enrolment != enrolment:
        outbox.update_device(enrolment=enrolment)


def _granted(answer: Answer) -> str:
    """Give the token of an answer, or "" when there is none that can be used."""
    try:
        token = msgspec.json.decode(answer.body, type=_Grant).token
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return ""
    return token if is_token(token) else ""
