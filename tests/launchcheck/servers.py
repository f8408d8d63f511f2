# SPDX-License-Identifier: Apache-2.0
"""Loopback package servers whose every package, of any name and version, is a program that says what it is.

    python -m tests.launchcheck.servers

Two origins, `honest` and `EVIL`, each as an npm and a Python registry. Prints the four URLs as one JSON line, then
serves until its standard input ends. A program prints `RAN origin name version` and ends.
"""

import base64
import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

VERSIONS = ("1.0.0", "1.1.0", "1.2.0", "1.2.1", "2.0.0")


def npm_tarball(origin, name, version):
    """Make a package, the same bytes each time: it is made for its hash first, and perhaps in the next second for itself."""
    program = f"#!/usr/bin/env node\nconsole.log('RAN {origin} {name} {version}');\n"
    about = {"name": name, "version": version, "bin": {name.rpartition("/")[2]: "cli.js"}}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, text in (("package/package.json", json.dumps(about)), ("package/cli.js", program)):
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(text.encode()), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(out.getvalue(), mtime=0)


def npm_answer(origin, base, path):
    tarball = re.fullmatch(r"/-t/(.+)/([^/]+)\.tgz", path)
    if tarball:
        return "application/octet-stream", npm_tarball(origin, *tarball.groups())
    name = path.strip("/")
    if not name or name.startswith("-"):
        return None
    versions = {}
    for version in VERSIONS:
        digest = base64.b64encode(hashlib.sha512(npm_tarball(origin, name, version)).digest()).decode()
        versions[version] = {
            "name": name,
            "version": version,
            "bin": {name.rpartition("/")[2]: "cli.js"},
            "dist": {"tarball": f"{base}/-t/{name}/{version}.tgz", "integrity": f"sha512-{digest}"},
        }
    body = {"name": name, "dist-tags": {"latest": "2.0.0", "next": "2.0.0"}, "versions": versions}
    return "application/json", json.dumps(body).encode()


def wheel(origin, name, version):
    module = name.replace("-", "_")
    files = {
        f"{module}/__init__.py": f"def main():\n    print('RAN {origin} {name} {version}')\n",
        f"{module}/__main__.py": "from . import main\nmain()\n",
        f"{module}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{module}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: halod-test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{module}-{version}.dist-info/entry_points.txt": f"[console_scripts]\n{name} = {module}:main\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text.encode())}\n"
        for path, text in files.items()
    )
    files[f"{module}-{version}.dist-info/RECORD"] = record + f"{module}-{version}.dist-info/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), text)
    return out.getvalue()


def pypi_answer(origin, base, path):
    found = re.fullmatch(r"/-w/([^/]+)/([^/]+)/[^/]+\.whl", path)
    if found:
        return "application/octet-stream", wheel(origin, *found.groups())
    name = path.removeprefix("/simple").strip("/")
    if not re.fullmatch(r"[a-z0-9-]+", name):
        return None
    links = "".join(
        f'<a href="{base}/-w/{name}/{version}/{name.replace("-", "_")}-{version}-py3-none-any.whl">'
        f"{name.replace('-', '_')}-{version}-py3-none-any.whl</a>\n"
        for version in VERSIONS
    )
    return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()


class Listening(ThreadingHTTPServer):
    request_queue_size = 128  # two launchers open dozens of connections at once, and try none twice


def server(origin, answer):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            host, port = self.server.server_address[:2]
            found = answer(origin, f"http://{host}:{port}", unquote(self.path.split("?")[0]))
            kind, body = found or ("text/plain", b"nothing here")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server asks for

        def log_message(self, *_args):
            pass

    listening = Listening(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{listening.server_address[1]}"


def main():
    urls = {}
    for origin in ("honest", "EVIL"):
        urls[f"{origin} npm"] = server(origin, npm_answer) + "/"
        urls[f"{origin} pypi"] = server(origin, pypi_answer) + "/simple/"
    print(json.dumps(urls), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
