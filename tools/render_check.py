# SPDX-License-Identifier: Apache-2.0
"""`make render-check`: the real clients read what `halo plan` renders, and list what they allow and block.

    python tools/render_check.py [--clients DIR]

Installs Claude Code, Codex, Gemini CLI and OpenCode from npm into a directory of its own (or takes them from DIR, a
prefix of `npm install --prefix`). Each client then runs `mcp list` in a fresh home, without a login, with a server of
the person's own, `rogue`. The files lie where the client looks for them: in a mount namespace with a copy of /etc, so
that the machine's own is not touched, and in a network namespace, so that nothing is reached. What a server would
start is a stand-in that ends at once. Needs Linux, root, npm and, for the installation, the network.

Exit codes: 0 each client lists and blocks what it should; 1 one does not; 2 the check cannot run here.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from halod.policy.load import examine
from halod.policy.rendering.manifest import Plan, plan

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("@anthropic-ai/claude-code", "@openai/codex", "@google/gemini-cli", "opencode-ai")
POLICY = ROOT / "tests" / "assets" / "rendering" / "halos.yaml"
INSTALL_SECONDS = 900
LIST_SECONDS = 120
ROGUE = "rogue"
HOME = {
    ".claude.json": '{"mcpServers": {"rogue": {"command": "/opt/rogue"}}}',
    ".codex/config.toml": '[mcp_servers.rogue]\ncommand = "/opt/rogue"\n',
    ".gemini/settings.json": '{"mcpServers": {"rogue": {"command": "/opt/rogue"}}}',
    ".config/opencode/opencode.json": '{"mcp": {"rogue": {"type": "local", "command": ["/opt/rogue"]}}}',
}
LISTS = {
    "claude-code": ["claude", "mcp", "list"],
    "codex": ["codex", "mcp", "list", "--json"],
    "gemini-cli": ["gemini", "mcp", "list"],
    "opencode": ["opencode", "mcp", "list"],
}
STAND_INS = ("npx", "uvx", "dnx", "docker", "halo")
CASES = ("allowlist", "no servers", "warn")


def main() -> int:
    """Run every client in every case and print what it said."""
    parser = argparse.ArgumentParser(description="What the real clients make of the rendered files.")
    parser.add_argument("--clients", metavar="DIR", help="an npm prefix that has the clients already")
    parser.add_argument("--inside", metavar="DIR", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        print(json.dumps(inside(Path(args.inside), Path(args.clients))))
        return 0
    missing = [name for name in ("unshare", "mount", "npm") if shutil.which(name) is None]
    if sys.platform != "linux" or os.geteuid() != 0 or missing:
        print(f"render-check: not run: needs Linux, root, unshare, mount and npm {missing or ''}")
        return 2
    with tempfile.TemporaryDirectory(prefix="render-check-") as work:
        clients = Path(args.clients) if args.clients else install(Path(work) / "clients")
        wrong = sum(check(case, Path(work) / case.replace(" ", "-"), clients) for case in CASES)
    print(f"render-check: {'every client does as it should' if not wrong else f'{wrong} clients differ'}")
    return 1 if wrong else 0


def install(prefix: Path) -> Path:
    """Install the clients; the versions that came are printed."""
    prefix.mkdir()
    words = [
        "npm",
        "install",
        "--prefix",
        str(prefix),
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        *PACKAGES,
    ]
    subprocess.run(words, check=True, timeout=INSTALL_SECONDS)
    return prefix


def rendered(case: str) -> Plan:
    """Render the policy of the tests as one case wants it."""
    text = POLICY.read_text(encoding="utf-8")
    if case == "no servers":
        text = text.partition("  servers:")[0]
    if case == "warn":
        text = text.replace("mode: allowlist", "mode: warn")
    policy, _, problems = examine(text.encode())
    if policy is None:
        raise SystemExit(f"render-check: the policy of the tests is not valid: {problems}")
    return plan(policy, "canary", ("payments",), date(2026, 11, 30), ("linux",))


def defined(made: Plan) -> dict[str, set[str]]:
    """Give the servers that each client should list, by name."""
    import tomli

    found: dict[str, set[str]] = {name: set() for name in LISTS}
    for file in made.files:
        match file.path.rpartition("/")[2], file.path:
            case "managed-mcp.json", _:
                found["claude-code"] = set(json.loads(file.content)["mcpServers"])
            case "managed_config.toml", _:
                found["codex"] = set(tomli.loads(file.content.decode()).get("mcp_servers", {}))
            case "settings.json", _:
                found["gemini-cli"] = set(json.loads(file.content)["mcpServers"])
            case "opencode.json", _:
                found["opencode"] = set(json.loads(file.content)["mcp"])
    return found


def check(case: str, work: Path, clients: Path) -> int:
    """Run one case; gives how many clients did not do as they should."""
    made = rendered(case)
    for file in made.files:
        path = work / "rendered" / file.path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        path.chmod(int(file.mode, 8))
    words = [sys.executable, __file__, "--inside", str(work), "--clients", str(clients)]
    done = subprocess.run(
        ["unshare", "--mount", "--net", *words], check=True, capture_output=True, timeout=LIST_SECONDS * 5
    )
    wrong = 0
    expected = defined(made)
    for client, (listed, blocked) in json.loads(done.stdout).items():
        # OpenCode has no allowlist; in mode `warn` nobody blocks.
        keeps_out = case != "warn" and client != "opencode"
        good = set(listed) == expected[client] | (set() if keeps_out else {ROGUE}) and set(blocked) <= {ROGUE}
        wrong += not good
        print(f"{case:<11} {client:<12} {'as it should' if good else 'DIFFERS'}")
        print(f"    allowed: {', '.join(sorted(listed)) or 'none'}")
        print(f"    kept out: {', '.join(sorted(blocked)) or (ROGUE if ROGUE not in listed else 'none')}")
    return wrong


def inside(work: Path, clients: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Run in the namespaces: put the files into a copy of /etc, mount it, ask each client."""
    etc, home, programs = work / "etc", work / "home", work / "bin"
    shutil.copytree("/etc", etc, symlinks=True)
    shutil.copytree(work / "rendered" / "etc", etc, dirs_exist_ok=True)
    subprocess.run(["mount", "--bind", str(etc), "/etc"], check=True)
    for name, text in HOME.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    programs.mkdir()
    for name in STAND_INS:
        (programs / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    (work / "project").mkdir()
    node = os.path.dirname(shutil.which("node") or "/usr/bin/node")
    env = {"HOME": str(home), "PATH": f"{programs}:{node}:/usr/bin:/bin", "CI": "1", "NO_COLOR": "1"}
    found = {}
    for client, (program, *words) in LISTS.items():
        done = subprocess.run(
            [str(clients / "node_modules" / ".bin" / program), *words],
            cwd=work / "project",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIST_SECONDS,
            check=False,
        )
        found[client] = understood(client, done.stdout, done.stdout + done.stderr)
    return found


def understood(client: str, output: str, everything: str) -> tuple[list[str], list[str]]:
    """Give the names that a client lists, and those that it says it blocks."""
    if client == "codex":
        rows = json.loads(output)
        on = [row["name"] for row in rows if row["enabled"]]
        return on, [row["name"] for row in rows if not row["enabled"]]
    text = re.sub(r"\x1b\[[0-9;]*m", "", everything)
    if client == "claude-code":
        return re.findall(r"^([^\s:]+): .* - \S", text, re.MULTILINE), []
    if client == "gemini-cli":
        blocked = re.findall(r"^⛔ ([^\s:]+): ", text, re.MULTILINE)
        return re.findall(r"^[^\w\s⛔] ([^\s:]+): ", text, re.MULTILINE), blocked
    return re.findall(r"^\S+\s+[✗✓○⚠] (\S+) (?:failed|connected|disabled|needs)", text, re.MULTILINE), []


if __name__ == "__main__":
    sys.exit(main())
