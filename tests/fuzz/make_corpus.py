# SPDX-License-Identifier: Apache-2.0
"""Write tests/fuzz/corpus anew: small seeds for each target, taken from the fixtures of the unit tests.

python -m tests.fuzz.make_corpus
"""

import hashlib
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import msgspec

from halod.harnesses import HARNESSES
from halod.roles import protocol
from halod.roles.scan import Task, answer
from tests.fuzz.approval import POLICY
from tests.fuzz.homes import IDS, registry
from tests.support.homes import read as read_memory

HERE = Path(__file__).resolve().parent
ASSETS = HERE.parents[0] / "assets"
SUFFIXES = {
    "json": ".json",
    "jsonc": ".json",
    "json-pruned": ".json",
    "toml": ".toml",
    "yaml": ".yaml",
    "xml": ".xml",
}
MORE = {
    "json": [b"\xef\xbb\xbf{}", b'{"mcpServers":{"a":{"args":["\\ud83d",1e3,0.50]}},}', b"// c\n[1]", b'{"a":1,"a":2}', b"null"],
    "json5": [b"{a:'x',b:.5,c:+0x1F,d:[1,],/*c*/e:\"\\\n\"}", b"{mcpServers:{a:{command:'npx',args:['-y',],},},}", b"// x\nnull"],
    "toml": [b'[mcpServers.a]\ncommand = "x"\nargs = [0.50, 1e3, 1979-05-27]\n', b"\xef\xbb\xbfa.b = 'x'\r\n[[t]]\nk = '''\nx'''\n"],
    "yaml": [b"mcpServers:\n  a: {command: x, args: [off, 22:22, 0x1f, ~]}\n", b"---\n- a: |\n    x\n  b: >-\n    y\n...\n", b"a: &x 1\nb: *x\n"],
    "frontmatter": [b"---\nmcpServers:\n  a:\n    command: npx\n---\n# T\n", b"# T\n", b"---\n"],
    "xml": [b'<application><component name="x"><option name="a" value="b"/></component></application>', b"<?xml version='1.0'?><a><![CDATA[x]]></a>"],
    "url": [b"https://mcp-wiki.internal.acme.example:443/a/../mcp?q=%41#f", b"http://[::1]:80/", b"https://u:p@xn--mnchen-3ya.example",
            b"HTTPS:\\\\1.2.3.4", b"https://${X}/mcp", "https://b\u00fccher.example/".encode()],
    "names": [b"playwright", b"~/x/mail@acme.example", b"sk-ant-api03-abc", b"AbCdEf0123456789AbCdEf0123456789", "\u202ea\u200b".encode()],
    "policy": [POLICY, b"org: a\nrings: [r]\nunits: {e: {}, p: {parent: e}}\nmcp: {mode: warn}\n", b"mcp: {servers: [{id: A, url: 'http://x'}]}\n"],
}  # fmt: skip


def put(name, data):
    folder = HERE / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)


def databases():
    """A small database of each kind, with a log that is not yet applied."""
    for table, columns in (
        ("installed_apps", "spec_id, status, spec_json, user_config_json"),
        ("mcp_server_installations", "templatable_mcp_server"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.db"
            db = sqlite3.connect(path, isolation_level=None)
            db.executescript("PRAGMA page_size=512; PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0")
            db.execute(f"CREATE TABLE {table}({columns})")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            spec = json.dumps(
                {"type": "mcp", "name": "n", "mcp_server": {"command": "npx", "args": ["CANARY"]}}
            )
            values = (
                ("a", "running", spec, "{}")
                if "spec_id" in columns
                else (
                    json.dumps(
                        {
                            "name": "n",
                            "template": {"json": {"mcpServers": {"a": {"url": "https://x.example"}}}},
                        }
                    ),
                )
            )
            db.execute(f"INSERT INTO {table} VALUES({','.join('?' * len(values))})", values)
            image, log = path.read_bytes(), path.with_name("x.db-wal").read_bytes()
            db.close()
        padded = image + bytes(-len(image) % 256)
        put("sqlite", (len(padded) // 256).to_bytes(2, "big") + padded + log)
        put("sqlite", b"\0\0" + image)


def main():
    shutil.rmtree(HERE / "corpus", ignore_errors=True)
    for name, many in MORE.items():
        for data in many:
            put(name, data)
    for data in MORE["yaml"]:
        put("yaml-1.1", data)
    number = {harness: at for at, harness in enumerate(IDS)}
    for folder in sorted(ASSETS.glob("harnesses/*/*/home")):
        harness = folder.parents[1].name
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size <= 1500]
        for path in files[:3]:
            data = path.read_bytes()
            for name, suffix in SUFFIXES.items():
                if (
                    path.suffix in {suffix, ".yml" if suffix == ".yaml" else suffix}
                    and len(list((HERE / "corpus" / name).glob("*"))) < 12
                ):
                    put(name, data)
            if harness in number:
                put("reader", bytes([number[harness], 0, len(data) % 256]) + data)
    for at in range(0, len(HARNESSES), 5):
        put("reader", bytes([at, 0, 0]) + MORE["json"][1] + b"\x1e" + MORE["yaml"][0])
    databases()
    good = {
        ".cursor/mcp.json": b'{"mcpServers":{"a":{"command":"npx","args":["-y","x@1.2.0"]},"b":{"url":"https://x.example/"},"c":1}}',
        ".gemini/settings.json": b"{",
    }
    for first, judged in ((b"\0", None), (b"\xff", registry())):
        put("answer", first + msgspec.msgpack.encode(answer(read_memory(good), Task.of(judged))))
    for message in (
        protocol.Ready(),
        protocol.Words("x"),
        protocol.Scan(1, (), b"x"),
        protocol.Changed(1, (2, 3)),
        protocol.Go(),
    ):
        put("frames", protocol.frame(message))
    for at in range(12):
        put("approval", bytes([at * 3, 1, at, 7, 3, 9, at, 2]))
        put("launch", bytes([3, 10, at * 7, 10, at, 90, 2, 65, 66, 0, 1, 65, 5, at]))
        put("home-names", bytes([at, 2, 3, 97, 98, 99, 1, 120, at % 3]))


if __name__ == "__main__":
    main()
