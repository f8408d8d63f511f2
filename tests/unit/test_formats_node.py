# SPDX-License-Identifier: Apache-2.0
"""Where Node is present: a JSON file that Node reads is read by us, and the same servers come out of it.

The harnesses are Node programs: a file that they read and we call malformed would hide its servers.
"""

import base64
import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fuzz.mutate import mutate
from tests.support.guard import HANG
from tests.support.homes import gaps, read

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: nothing to compare with")
ASSETS = Path(__file__).parents[1] / "assets" / "harnesses"

# What a simple client in Node makes of ~/.cursor/mcp.json: a name with a command and texts as arguments, or a URL.
PROGRAM = """
const plain = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const lines = require('fs').readFileSync(0, 'utf8').trim().split('\\n');
for (const line of lines) {
  let text = Buffer.from(line, 'base64').toString('utf8');
  if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
  let root = null;
  try { root = JSON.parse(text); } catch { console.log('refused'); continue; }
  const table = plain(root) && plain(root.mcpServers) ? root.mcpServers : {};
  const found = [];
  for (const [name, entry] of Object.entries(table)) {
    if (!plain(entry) || 'type' in entry || 'transport' in entry) continue;
    const args = entry.args === undefined ? [] : entry.args;
    const texts = Array.isArray(args) && args.every((word) => typeof word === 'string' && !word.includes('\\0'));
    const command = typeof entry.command === 'string' && entry.command && !entry.command.includes('\\0');
    const url = typeof entry.url === 'string' && entry.url && !entry.url.includes('\\0');
    if (command && texts && entry.url === undefined) found.push([name, entry.command, ...args]);
    else if (url && entry.command === undefined && entry.args === undefined) found.push([name, entry.url]);
  }
  console.log(JSON.stringify(found));
}
"""
SEEDS = [
    b'{"mcpServers":{"a":{"command":"npx","args":["-y","x@1.2.0","\\ud83d\\ude00"]},"b":{"url":"https://x.example/mcp"}}}',
    b'\xef\xbb\xbf{"mcpServers":{"a":{"command":"x \xff"},"a":{"command":"y"},"\\u0061":{"command":"z","args":[]}},"n":[1e3,-0]}',
    b'{"other":"\\ud83d","mcpServers":{"\xc3\xa9\\ud800":{"command":"\xe2\x80\xa8","args":["","\\\\","\\/"],"env":{"A":"b"}}}}\n',
]


def test_what_node_reads_is_read_and_gives_the_same_servers():
    """Mutants of fixtures: for each that Node reads, every server that is plainly one is found with the same words."""
    dice = random.Random(20261130)
    fixtures = [path.read_bytes() for path in sorted(ASSETS.glob("*/*/home/**/mcp.json"))]
    pool = SEEDS + [data for data in fixtures if len(data) < 4000]
    cases = [mutate(dice, dice.choice(pool), pool, 8000) for _ in range(5000)] + pool
    fed = "\n".join(base64.b64encode(case).decode() or "IA==" for case in cases)
    answer = subprocess.run(
        [NODE, "-e", PROGRAM], input=fed, capture_output=True, text=True, timeout=HANG, check=True
    )
    accepted = servers = 0
    for case, line in zip(cases, answer.stdout.split("\n")[: len(cases)], strict=True):
        if line == "refused":
            continue
        accepted += 1
        reading = read({".cursor/mcp.json": case})
        if not isinstance(json.loads(case.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")), dict):
            continue  # a document that is no table of anything
        assert all(reason == "malformed-entry" or _odd(case) for _, _, reason in gaps(reading)), case
        ours = {
            (one.name, *((one.command, *one.args) if one.transport == "stdio" else (one.url,)))
            for one in (found.definition for found in reading.found)
        }
        theirs = {tuple(item) for item in json.loads(line)}
        assert theirs <= ours, case
        servers += len(theirs)
    assert accepted > 300
    assert servers > 200


def _odd(case):
    """A table of another type is told as a malformed file, which Node's client would only see later."""
    root = json.loads(case.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))
    return not isinstance(root.get("mcpServers", {}), dict)
