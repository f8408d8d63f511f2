# SPDX-License-Identifier: Apache-2.0
"""Drift with the real `identify`, over the launch cases and the acceptance cases beside the checkout."""

import json
from datetime import date
from pathlib import Path

import pytest

from halod.definition import Definition, FileRef
from halod.drift import FLAGS, Judge, words
from halod.launch import identify
from halod.launch.model import INFORMATIONAL
from halod.policy.load import load
from halod.policy.model import Entry, Package
from halod.policy.scope import scope
from tests.support.drift import registry

SHARED = Path(__file__).resolve().parents[3] / "shared"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared folder beside the checkout")


def _launch_cases():
    if not SHARED.is_dir():
        return []
    return json.loads((SHARED / "launch_cases.json").read_text("utf-8"))["cases"]


def _definition(case, **more):
    return Definition(
        harness="cursor",
        file=FileRef(0),
        name=case.get("id", ""),
        scope="user",
        transport="stdio" if "command" in case else "http",
        command=case.get("command", ""),
        args=case.get("args", ()),
        url=case.get("url", ""),
        env=tuple(case.get("env", {}).items()),
        cwd=case.get("cwd", ""),
        **more,
    )


def _pin(case):
    """An entry that pins exactly what the case is said to launch, as far as a registry can."""
    expect = case["expect"]
    kind, name = expect.get("ecosystem"), expect.get("identifier")
    if kind not in {"npm", "pypi", "oci", "nuget"} or not name:
        return None
    digest = (expect.get("digest") or "").removeprefix("sha256:")
    version = expect.get("version") or ("" if kind == "oci" else "9.9.9")
    return Entry(
        id="pin", package=Package(type=kind, identifier=name, version=version, sha256=digest or "0" * 64)
    )


@pytest.mark.parametrize("case", [c for c in _launch_cases() if "command" in c], ids=lambda case: case["id"])
def test_a_launch_case_is_approved_by_its_exact_pin_or_not_at_all(case):
    """What the launch cases call identified is approved by its pin; unpinned drifts; nothing else is approved."""
    pin = _pin(case)
    verdict = Judge(registry(*[pin] if pin else [])).judge(_definition(case))
    outcome = case["expect"]["outcome"]
    if outcome == "identified" and pin is not None:
        assert (verdict.kind, verdict.entry) == ("approved", "pin")
    elif outcome == "identified-unpinned" and pin is not None:
        assert (verdict.kind, verdict.entry) == ("version-drift", "pin")
    else:
        assert verdict.kind == "unapproved"
    unsafe = set(case["expect"]["flags"]) - INFORMATIONAL
    if outcome == "identified-unsafe" and pin is not None and unsafe:
        assert unsafe <= set(verdict.flags)


@pytest.mark.parametrize("case", [c for c in _launch_cases() if "command" in c], ids=lambda case: case["id"])
def test_every_flag_of_a_launch_is_in_the_vocabulary(case):
    """A worker's answer with another flag would not be believed."""
    assert set(case["expect"]["flags"]) <= FLAGS
    launch = identify(case["command"], case["args"], tuple(case.get("env", {}).items()), case.get("cwd", ""))
    assert set(launch.flags) <= FLAGS
    assert {flag for flag, _ in launch.unsafe_env} <= FLAGS


def _servers(node):
    """Every table of a JSON config that looks like an entry: name and what it holds."""
    if not isinstance(node, dict):
        return
    for key in ("mcpServers", "servers"):
        for name, entry in (node.get(key) or {}).items() if isinstance(node.get(key), dict) else ():
            if isinstance(entry, dict):
                yield name, entry
    for value in node.values():
        yield from _servers(value)


# Cases that are about which files and entries count, not about judging one.
_ABOUT_READING = ("02-", "04-", "05-", "13-", "73-", "75-", "78-", "84-", "85-", "88-", "101-", "119-")


def _entry_kind(entry):
    """Give stdio or http for an entry that any reader reads alike, else None."""
    args = entry.get("args", [])
    plain = isinstance(args, list) and all(isinstance(word, str) for word in args)
    if isinstance(entry.get("command"), str) and plain and {"url", "serverUrl", "httpUrl"}.isdisjoint(entry):
        return "stdio"
    if isinstance(entry.get("url"), str) and set(entry) <= {"type", "url", "headers"}:
        return "http"
    return None


def _rows():
    """(folder, case, name, entry, expected kind) of the acceptance cases that plain JSON can be read from."""
    for path in sorted(SHARED.glob("cases/*/case.json")) if SHARED.is_dir() else ():
        case = json.loads(path.read_text("utf-8"))
        if path.parent.name.startswith(_ABOUT_READING) or not (path.parent / "halos.yaml").exists():
            continue
        kinds = {
            (Path(row["file"]).name, row["server"]): row["kind"] for row in case["expect"].get("findings", ())
        }
        for file in sorted(path.parent.glob("home/**/*.json")):
            try:
                tree = json.loads(file.read_text("utf-8"))
            except ValueError:
                continue  # comments: the readers' business
            for name, entry in _servers(tree):
                if _entry_kind(entry) is not None:
                    yield path.parent, case, name, entry, kinds.get((file.name, name))


@pytest.mark.parametrize("row", list(_rows()), ids=lambda row: f"{row[0].name}-{row[2]}"[:60])
def test_an_acceptance_case_is_judged_as_it_says(row):
    """What is expected as a finding has that kind, and everything else is approved."""
    folder, case, name, entry, kind = row
    args = dict(zip(case["args"][::2], case["args"][1::2], strict=True))
    units = [args["--unit"]] if "--unit" in args else []
    policy = scope(load(str(folder / "halos.yaml")), args.get("--ring", ""), units, date(2026, 11, 30))
    fields = {key: entry[key] for key in ("command", "args", "url", "cwd") if key in entry}
    env = {key: str(value) for key, value in (entry.get("env") or {}).items()}
    verdict = Judge(policy).judge(_definition({**fields, "env": env, "id": name}))
    assert verdict.kind == (kind or "approved")
    detail, fix = words(verdict, server="", transport="stdio", sha256="0" * 64, registry=policy)
    assert "CANARY" not in repr(verdict) + detail + fix
