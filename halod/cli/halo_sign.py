# SPDX-License-Identifier: Apache-2.0
"""`halo sign`: a policy in an envelope that agents believe, wherever it was fetched from."""

import argparse
import os
import re
import secrets
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from halod.cli import signing_key
from halod.errors import UsageError
from halod.policy.load import MAX_BYTES as MOST_POLICY
from halod.policy.load import parse, read_file
from halod.policy.signed import (
    VERSION_LIMIT,
    Payload,
    Refused,
    countersign,
    key_id,
    public_bytes,
    read_payload,
    sign,
)

DESCRIPTION = """\
Sign a policy (halos.yaml) for delivery over policy.url: one envelope (DSSE, Ed25519) with the policy, its org, a
version that only grows, and the time at which it expires. A policy with faults is not signed.
Agents take it when one of their pinned keys has signed, it is of their organisation, no older than what they
have seen, and not expired; else the last good one goes on."""
EXAMPLES = """\
examples:
  halo sign --key halos.key                        halos.yaml into halos.yaml.signed, good for 90 days
  halo sign --key halos.key --expires 2027-06-30   good until the end of that day (UTC)
  halo sign --key old.key --key new.key            two signatures, while agents change from one key to the other
  halo sign --add --key new.key halos.yaml.signed  one more signature; content and version stay

Without --version it is one more than that in the output file, or the seconds since 1970 when there is none.
Exit codes: 0 signed, 2 not. docs/signing.md has the form of the envelope, and how keys are changed."""

_SPAN = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="halos.yaml",
        help="the policy, - for standard input; with --add the signed one (halos.yaml)",
    )
    parser.add_argument(
        "--key", metavar="FILE", action="append", required=True, help="a private key; may be repeated"
    )
    parser.add_argument("--version", metavar="N", type=_version, help="the version, higher than any before")
    parser.add_argument(
        "--expires",
        metavar="WHEN",
        help="12h, 90d, 8w, 2027-06-30 or 2027-06-30T12:00:00Z (90d)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="where the envelope goes, - for standard output (FILE.signed)"
    )
    parser.add_argument("--add", action="store_true", help="add signatures to an envelope that is there")


def run(args: argparse.Namespace) -> int:
    """Sign and write.

    Raises:
        UsageError: the policy, a key or an option cannot be used, or the envelope not be written.
    """
    keys = [signing_key.read(path) for path in args.key]
    if len({key_id(public_bytes(key)) for key in keys}) < len(keys):
        raise UsageError("the same key is given twice")
    data = sys.stdin.buffer.read(MOST_POLICY + 1) if args.file == "-" else read_file(args.file)
    out = args.out or ("-" if args.file == "-" else args.file if args.add else f"{args.file}.signed")
    if args.add:
        if args.version is not None:
            raise UsageError("--add leaves the version as it is", advice="sign the policy anew instead")
        if args.expires is not None:
            raise UsageError("--add leaves the expiry as it is", advice="sign the policy anew instead")
        if read_payload(data).expires <= datetime.now(UTC):
            raise UsageError("that policy has expired", advice="sign it anew")
        envelope = countersign(data, keys)
    else:
        envelope = sign(_payload(args, data, out), keys)
    _write(out, envelope)
    content = read_payload(envelope)
    words = (
        f"{content.org}, version {content.version}, expires {_text(content.expires)},"
        f" {parse(content.policy.encode(), 'policy').digest}"
    )
    (sys.stderr if out == "-" else sys.stdout).write(f"{'signed' if out == '-' else out}: {words}\n")
    return 0


def _payload(args: argparse.Namespace, data: bytes, out: str) -> Payload:
    name = "<stdin>" if args.file == "-" else args.file
    policy = parse(data, name)
    if not policy.org:
        raise UsageError(
            f"{name} names no org, and a signed policy is for one organisation",
            advice="add a line such as org: acme",
        )
    issued = datetime.now(UTC).replace(microsecond=0)
    return Payload(
        org=policy.org,
        version=_next(args.version, out, policy.org, issued),
        issued=issued,
        expires=_expiry("90d" if args.expires is None else args.expires, issued),
        policy=data.decode(),
    )


def _next(wanted: int | None, out: str, org: str, issued: datetime) -> int:
    """Give the version: the one that is wanted, if it is higher than what the output file has, or one that is."""
    before = 0
    if out != "-" and os.path.lexists(out):
        content = _there(out)
        before = content.version if content.org == org else 0
    if wanted is None:
        return before + 1 if before else max(1, int(issued.timestamp()))
    if wanted <= before:
        raise UsageError(
            f"version {wanted} is not higher than version {before} in {out}, and agents take no older one",
            advice=f"leave --version out, or use {before + 1}",
        )
    return wanted


def _there(out: str) -> Payload:
    """Read the envelope that would be replaced. What is no file is not waited for."""
    if os.path.exists(out) and not os.path.isfile(out):
        raise UsageError(
            f"{out} is there, and is no file", advice="name another one with --out; - is standard output"
        )
    try:
        return read_payload(read_file(out))
    except Refused as refused:
        raise UsageError(
            f"{out} is there, and is none: {refused.message}",
            advice="name another file with --out, or remove it",
        ) from None


def _version(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,15}", text) or int(text) >= VERSION_LIMIT:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {VERSION_LIMIT - 1}")
    return int(text)


def _expiry(text: str, issued: datetime) -> datetime:
    try:
        expires = _moment(text, issued)
    except (ValueError, OverflowError):
        expires = None
    if expires is None:
        raise UsageError(
            "--expires: expected a span such as 90d, a day such as 2027-06-30 or a time such as 2027-06-30T12:00:00Z"
        )
    if expires <= issued:
        raise UsageError("--expires: that time is over", advice="an expired policy is taken by no agent")
    return expires


def _moment(text: str, issued: datetime) -> datetime | None:
    """Give the time that is meant, None when none is. Raises ValueError or OverflowError for what no calendar has."""
    if span := _SPAN.fullmatch(text):
        return issued + int(span[1]) * _UNITS[span[2]]
    if _DAY.fullmatch(text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC) + timedelta(days=1)
    return datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None


def _write(out: str, envelope: bytes) -> None:
    """Write the envelope: a file that is there is replaced as a whole."""
    if out == "-":
        sys.stdout.buffer.write(envelope)
        return
    beside = f"{out}.{secrets.token_hex(4)}.new"
    try:
        with open(beside, "xb") as file:
            file.write(envelope)
        os.replace(beside, out)
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            os.unlink(beside)
        why = os.strerror(error.errno or 0) if isinstance(error, OSError) else "no path"
        raise UsageError(f"cannot write {out}: {why}") from None


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
