# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/ say what the program does: links, commands, words, examples."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from halod import cli as halod
from halod import settings
from halod.agent import cycle, database, faults, outbox_protocol, reply, state
from halod.cli import halo
from halod.console.settings.kinds import EVENTS
from halod.errors import EnvironmentFault, HalodError, UsageError
from halod.harnesses.table import HARNESSES, LOCATIONS
from halod.policy.load import PolicyError
from halod.roles import say
from halod.settings.model import TABLES
from halod.status import Reason, decode, encode
from tests.support.guard import HANG

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TROUBLE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
START = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)


def name(path):
    return str(path.relative_to(ROOT))


def run(program, *words):
    """What a command prints, at the width of the pages and without colour."""
    code = f"import sys; from halod.cli{'.halo' if program == 'halo' else ''} import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )
    return done.stdout + done.stderr


def anchors(page):
    """The anchors of a page's headings, as forges make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return found


# --- links and layout ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    """Every relative link names a file that is there, and a heading in it."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        if not other.exists() or (anchor and other.suffix == ".md" and anchor not in anchors(other)):
            dead.append(target)
    assert dead == []


def test_every_page_is_in_the_index():
    """A page that nobody can find is none."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"]
    assert [page for page in pages if f"]({page})" not in index] == []


def test_every_decision_is_in_its_index():
    """An ADR that exists is listed."""
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    records = [page.name for page in (ROOT / "docs" / "adr").glob("0*.md")]
    assert [record for record in records if f"]({record})" not in index] == []


# --- commands -----------------------------------------------------------------------------------------------


def commands():
    """Each (program, command, options) that a page writes as code."""
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for program, command, rest in re.findall(
            r"(?:^|[`$ /])(halod|halo) ([a-z]+)\b([^`\n|#&;]*)", text, re.MULTILINE
        ):
            options = re.findall(r"(?<=\s)--[a-z][a-z-]*", rest.partition(" -- ")[0])
            if options or command in (halod.COMMANDS if program == "halod" else halo.COMMANDS):
                found.add((program, command, tuple(options)))
    return sorted(found)


def test_commands_and_options_exist():
    """Every command that a page shows is there, with the options that it is shown with."""
    shown = commands()
    helps = {pair: run(*pair, "--help") for pair in {(program, command) for program, command, _ in shown}}
    missing = [pair for pair, text in helps.items() if not text.startswith(f"usage: {' '.join(pair)}")]
    unknown = [one for one in shown for option in one[2] if option not in helps[one[:2]]]

    assert len(helps) > 5
    assert (missing, unknown) == ([], [])


# --- words --------------------------------------------------------------------------------------------------


def error_codes():
    """Every errorCode that a status can have."""
    agent = ROOT / "halod" / "agent"
    source = "".join(
        (agent / file).read_text()
        for file in ("sources.py", "cycle.py", "loop.py", "fetched.py", "../policy/signed.py")
    )
    found = {cycle.LATE_ACCOUNTS[0], cycle.UNANSWERED[0], cycle.RELOAD[0], state.RESET, *database._ADVICE}
    return found | set(re.findall(r'"((?:policy|device|accounts|scan|state)-[a-z]+)"', source))


def test_error_codes_are_collected():
    """The collection has what it is known to have to have."""
    assert {"policy-unreadable", "policy-invalid", "device-unknown", "state-full"} <= error_codes()


WORDS = {
    "reason": set(get_args(Reason)),
    "errorCode": error_codes(),
    "outcome": set(get_args(faults.Kind))
    | {word for part in get_args(outbox_protocol.Outcome) for word in get_args(part)}
    | {"off"},
    "watcher": set(get_args(reply.WatcherWord)),
    "supervisor": set(say.EVENTS),
    "code": {
        kind.code for kind in (HalodError, UsageError, EnvironmentFault, PolicyError, settings.SettingsError)
    },
}


@pytest.mark.parametrize(("kind", "word"), [(kind, word) for kind in WORDS for word in sorted(WORDS[kind])])
def test_every_word_of_trouble_is_explained(kind, word):
    """What the program can say is wrong is on the page, as code."""
    assert f"`{word}`" in TROUBLE, kind


def test_the_page_explains_no_word_that_is_gone():
    """The first column of the tables of reasons and errorCodes has nothing else."""
    for title, known in (("reason", WORDS["reason"]), ("errorCode", WORDS["errorCode"])):
        table = TROUBLE.partition(f"\n| {title} |")[2].partition("\n\n")[0]
        rows = set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE))
        assert rows == known


def test_every_line_of_check_is_explained():
    """Names under which `halod check` tells something."""
    source = "".join(path.read_text() for path in sorted((ROOT / "halod" / "check").glob("*.py")))
    names = set(re.findall(r'\b(?:ok|warning|fault|make)\(\s*"([a-z_.]+)"', source))
    table = TROUBLE.partition("## What halod check says")[2].partition("\n## ")[0]
    assert len(names) > 8
    assert sorted(one for one in names if f"`{one}`" not in table) == []


def test_every_setting_is_on_its_page():
    """The settings page has a row for each key."""
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    keys = [key for table in TABLES for key in type(getattr(settings.Settings(), table)).__struct_fields__]
    assert [key for key in keys if f"| `{key}` |" not in page] == []


def test_settings_named_on_pages_exist():
    """`table.key` in running text is a key of the settings."""
    known = {
        f"{table}.{key}"
        for table in TABLES
        for key in type(getattr(settings.Settings(), table)).__struct_fields__
    }
    named = set(re.findall(rf"`((?:{'|'.join(TABLES)})\.[a-z_]+)`", "".join(map(Path.read_text, PAGES))))
    assert named
    named -= set(EVENTS)  # device.silent is an event of the console, not a setting
    assert sorted(one for one in named - known if not one.endswith((".py", ".db", ".yaml"))) == []


# --- examples and numbers -----------------------------------------------------------------------------------


def test_the_numbers_of_the_readme_are_those_of_the_table():
    """Tools exactly, places to the next ten."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tools, places = map(int, re.search(r"(\d+) AI tools in some (\d+) places", readme).groups())
    assert tools == len(HARNESSES)
    assert abs(places - len(LOCATIONS)) < 10


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", START, re.MULTILINE | re.DOTALL)


def test_getting_started_shows_a_real_run(tmp_path):
    """Every block of its first half is what the command prints for the file and policy that the page shows."""
    (tmp_path / "home").mkdir()
    config = tmp_path / "home" / ".claude.json"
    config.write_text(blocks("json")[0])
    policy = tmp_path / "halos.yaml"
    policy.write_text(blocks("yaml")[0])
    scan = ["halod", "scan", "--home", str(config.parent)]
    inventory, validated, drift, clean = [block.partition("\n") for block in blocks("console")[:4]]
    judged = [*scan, "--policy", str(policy), "--ring", "canary"]

    assert inventory[2] == run(*scan)
    assert validated[2] == run("halo", "validate", str(policy)).replace(str(policy), "halos.yaml")
    assert drift[2] == run(*judged)
    config.write_text(
        blocks("json")[0].replace('["@playwright/mcp@latest"]', '["-y", "@playwright/mcp@0.0.82"]')
    )
    assert clean[2] == run(*judged)


def test_the_report_on_the_privacy_page_is_valid():
    """The example is a status, of the present version, and says nothing that the page denies."""
    page = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    example = re.search(r"```json\n(.*?)```", page, re.DOTALL)[1].encode()
    status = decode(example)
    assert len(status.mcp_drift) == status.mcp_drift_total == 1
    assert set(json.loads(encode(status))) == set(json.loads(example))
