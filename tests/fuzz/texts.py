# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets for small texts: command lines, URLs, names, the policy, frames between the processes."""

import re
import unicodedata

from halod.definition import Definition, FileRef
from halod.drift import FLAGS, NOTES, Judge, words
from halod.launch import canonical_url, identify, parse_url, whatwg_host
from halod.launch.model import INFORMATIONAL
from halod.policy.load import examine
from halod.policy.scope import scope
from halod.roles import protocol
from halod.secrets_hint import secret_in_definition
from halod.status import check_file_parts, clean, file_part, is_name, server_name
from tests.fuzz.approval import TODAY, VOCABULARY
from tests.fuzz.choices import Choices
from tests.fuzz.homes import registry

PROGRAMS = [
    *"npx npm pnpm pnpx yarn bunx bun deno uvx uv pipx docker podman nerdctl dnx dotnet env sh bash cmd wsl mise direnv".split(),
    *"dotenvx op doppler infisical timeout nohup nice stdbuf node python x /usr/bin/npx /tmp/npx".split(),
]  # fmt: skip


def definition(choices):
    words_ = [
        choices.one(VOCABULARY) if choices.chance(70) else choices.text() for _ in range(choices.number(9))
    ]
    env = [(choices.text(), choices.text()) for _ in range(choices.number(3))]
    return Definition(
        harness="cursor", file=FileRef(0), name=choices.text(), scope="user", transport="stdio",
        command=choices.one(PROGRAMS) if choices.chance(80) else choices.text(20), args=words_, env=env,
        cwd=choices.text(6) if choices.chance(10) else "",
    )  # fmt: skip


def launch(data):
    """Any command line: one answer, in closed words, that shows nothing; a verdict and its words."""
    subject = definition(Choices(data))
    found = identify(subject.command, subject.args, subject.env, subject.cwd)
    assert found == identify(subject.command, subject.args, subject.env, subject.cwd)
    assert list(found.flags) == sorted(set(found.flags))
    assert set(found.flags) <= FLAGS
    assert set(found.line_flags) <= set(found.flags)
    if found.outcome in {"identified", "identified-unpinned"}:
        assert set(found.flags) <= INFORMATIONAL
        assert not found.unsafe_env
    if found.outcome == "identified":
        assert found.version or found.digest
    assert repr(found) == "<Launch>"
    verdict(subject)


def verdict(subject):
    said = Judge(registry()).judge(subject)
    assert said.note in NOTES
    assert set(said.flags) <= FLAGS
    assert said.host == "" or subject.transport == "http"
    name = server_name(subject.name)
    detail, fix = words(
        said, server=name, transport=subject.transport, sha256=subject.sha256, registry=registry()
    ) if said.kind != "approved" else ("", "")  # fmt: skip
    assert not re.search("[\x00-\x1f\x7f]", detail + fix)
    assert isinstance(secret_in_definition(subject), bool)


def url(data):
    """Any URL: parts that are their own canonical form's parts, a host that may leave."""
    text = data.decode("utf-8", "surrogateescape")
    host, parts = whatwg_host(text), parse_url(text)
    assert not re.search(r"[\x00-\x20#%/<>?@\\^|\x7f]", host)  # WHATWG: what no domain holds
    if parts is not None:
        assert parts == parse_url(text)
        own = parts.host + ("" if parts.port is None else f":{parts.port}")
        assert host in {own, ""}, "two parsers, two hosts"
        canonical = canonical_url(parts)
        if canonical is not None:
            assert host == own
            again = parse_url(canonical)
            assert again == parts
            assert canonical_url(again) == canonical
            assert canonical.isascii()
    subject = Definition(
        harness="cursor", file=FileRef(0), name="n", scope="user", transport="http", url=text, command=""
    )
    verdict(subject)


def names(data):
    """Any text as a name: what leaves is short, printable and passes unchanged when it is given in again."""
    text = (
        data.decode("utf-8", "surrogatepass" if data[:1] > b"\x7f" else "surrogateescape")
        if _decodes(data)
        else ""
    )
    shown = server_name(text)
    assert server_name(shown) == shown
    assert is_name(shown)
    assert len(shown) <= 128
    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in shown)
    assert clean(clean(text)) == clean(text)
    part = file_part(text)
    if all(text.split("/")):
        assert check_file_parts((part,)), "a redacted folder that is not believed"
    assert "://" not in shown


def _decodes(data):
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data[:1] <= b"\x7f"
    return True


def policy(data):
    """Any bytes as a policy: faults with places, or a policy whose every entry judges."""
    found, _, problems = examine(data)
    assert (found is None) == bool(problems)
    lines = (
        data.count(b"\n")
        + data.count(b"\r")
        + len(re.findall("[\x85\u2028\u2029]", data.decode("utf-8", "replace")))
        + 2
    )
    for problem in problems:
        assert 1 <= problem.line <= lines
        assert problem.column >= 1
        assert not re.search("[\x00-\x1f\x7f]", problem.message)
    if found is not None:
        here = scope(found, found.rings[0] if found.rings else "", [name for name, _ in found.units], TODAY)
        judge = Judge(here)
        for entry in found.entries:
            probe = Definition(
                harness="cursor", file=FileRef(0), name=entry.id, scope="user",
                transport="http" if entry.url else "stdio", url=entry.url,
                command=entry.command[0] if entry.command else "npx", args=entry.command[1:] or ("x",),
            )  # fmt: skip
            assert judge.judge(probe).note in NOTES


def frames(data):
    """Any bytes as what the other process says: messages, or Broken."""
    for side in ("agent", "supervisor"):
        reading = protocol.Reader(side)
        try:
            for at in range(0, len(data), 7):
                for message in reading.feed(data[at : at + 7]):
                    assert protocol.Reader(side).feed(protocol.frame(message)) == [message]
        except protocol.Broken as fault:
            assert fault.__cause__ is None


TARGETS = {"launch": launch, "url": url, "names": names, "policy": policy, "frames": frames}
