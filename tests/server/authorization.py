# SPDX-License-Identifier: Apache-2.0
"""An authorization server for public clients: `python -m tests.server.authorization [--cert PEM]`, loopback only.

Device authorization (RFC 8628) and refresh with rotation: a refresh token that comes twice ends its family, as RFC
9700 section 4.14 has it. Prints its port as a line of JSON. Each line on stdin is a command, answered by a line on
stdout; the end of stdin ends it. Commands: {"plan": {PLACE: [what]}} says what the next requests to a place get, and
then "ok" again; {"set": {name: value}} changes the server; {"seed": resource} gives a refresh token; {"log": true}.

Places: `metadata`, `device`, `token`. What: "ok"; an error code of OAuth; a word of `faults`; {"merge": {…}}, the right
answer with other members (null takes one away); or {"status", "headers", "body"}.
"""

import contextlib
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

from tests.server.faults import FAULTS

CLIENT = "halo-public"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
METADATA = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self):
        self.serve("metadata" if self.path in self.server.metadata_at else "", {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        self.serve({"/device": "device", "/token": "token"}.get(self.path, ""), dict(parse_qsl(body)))

    def serve(self, place, form):
        self.close_connection = True
        server = self.server
        with server.lock:
            planned = server.plan.get(place) or ["ok"]
            what = planned.pop(0)
            server.log.append({"method": self.command, "path": self.path, "place": place, "form": form})
            status, document = self.right(place, form) if what == "ok" or "merge" in what else (0, {})
        headers, body = {"Content-Type": "application/json"}, None
        if isinstance(what, dict) and "merge" in what:
            document = {k: v for k, v in {**document, **what["merge"]}.items() if v is not None}
        elif isinstance(what, dict):
            status, headers, body = what.get("status", 200), what.get("headers", {}), what.get("body", "")
        elif what in FAULTS:
            with contextlib.suppress(OSError):
                FAULTS[what](self.connection)
            return
        elif what != "ok":
            status, document = 400, {"error": what, "error_description": "CANARYdescription"}
        with contextlib.suppress(OSError):
            self.send(status, headers, (json.dumps(document) if body is None else body).encode())

    def send(self, status, headers, data):
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def right(self, place, form):
        """What a server that does nothing wrong answers."""
        server = self.server
        if place == "metadata":
            return 200, {
                "issuer": server.issuer,
                "token_endpoint": f"{server.origin}/token",
                "device_authorization_endpoint": f"{server.origin}/device",
                "grant_types_supported": [DEVICE, "refresh_token"],
            }
        if place == "":
            return 404, {"error": "not_found"}
        if form.get("client_id") != CLIENT:
            return 401, {"error": "invalid_client"}
        if place == "device":
            server.number += 1
            code = f"CANARYdevice{server.number}"
            server.codes[code] = form.get("resource")
            return 200, {
                "device_code": code,
                "user_code": f"WDJB-{server.number}",
                "verification_uri": f"{server.origin}/activate",
                "expires_in": server.code_lasts,
                "interval": server.interval,
            }
        return self.token(form)

    def token(self, form):
        server = self.server
        if form.get("grant_type") == DEVICE:
            resource = server.codes.get(form.get("device_code"))
            if resource is None:
                return 400, {"error": "expired_token"}
            if server.confirm_after > 0:
                server.confirm_after -= 1
                return 400, {"error": "authorization_pending"}
            del server.codes[form["device_code"]]
            family = f"family{server.number}"
        else:
            known = server.refreshes.pop(form.get("refresh_token"), None)
            if known is None:
                if form.get("refresh_token") in server.used:
                    server.reused += 1
                    server.refreshes.clear()
                return 400, {"error": "invalid_grant"}
            server.used.add(form["refresh_token"])
            resource, family = known
        if form.get("resource") != resource:
            return 400, {"error": "invalid_target"}
        return 200, server.issue(resource, family)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        self.lock = threading.Lock()
        self.plan = {}
        self.log = []
        self.codes = {}
        self.refreshes = {}
        self.used = set()
        self.number = self.reused = self.confirm_after = 0
        self.code_lasts, self.interval, self.lasts = 600, 1, 3600
        self.metadata_at = list(METADATA)
        super().__init__(("127.0.0.1", 0), Handler)
        self.origin = self.issuer = ""

    def issue(self, resource, family):
        self.number += 1
        refresh = f"CANARYrefresh{self.number}"
        self.refreshes[refresh] = (resource, family)
        return {
            "access_token": f"CANARYaccess{self.number}",
            "token_type": "Bearer",
            "expires_in": self.lasts,
            "refresh_token": refresh,
        }

    def handle_error(self, request, client_address):
        pass  # handshakes that a client breaks off


def obey(server, command):
    with server.lock:
        server.plan.update(command.get("plan", {}))
        for name, value in command.get("set", {}).items():
            setattr(server, name, value)
        if "seed" in command:
            return server.issue(command["seed"], "seeded")["refresh_token"]
        return {"log": server.log, "reused": server.reused} if "log" in command else None


def main():
    server = Server()
    scheme = "http"
    if "--cert" in sys.argv:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[sys.argv.index("--cert") + 1])
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    server.origin = server.issuer = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"answer": obey(server, json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
