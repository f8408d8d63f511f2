# SPDX-License-Identifier: Apache-2.0
"""A registry of MCP servers that replays what it is told: `python -m tests.server.registry [--cert PEM]`, loopback only.

Prints its port as a line of JSON. Each line on stdin is a command, answered by a line on stdout; the end of stdin ends
it. Commands: {"answers": {path: [answer]}} says what each path gives, the last answer again and again; {"log": true} gives
the requests so far. An answer is {"status": 200, "headers": {}, "body": ""} or {"fault": word of `faults`}.
"""

import contextlib
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.server.faults import FAULTS

NOTHING = [{"status": 404, "body": '{"title":"Not Found","status":404}'}]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self):
        self.close_connection = True
        self.server.requests.append(
            [self.path, {name.lower(): value for name, value in self.headers.items()}]
        )
        with self.server.lock:
            planned = self.server.answers.get(self.path, NOTHING)
            answer = planned[0] if len(planned) == 1 else planned.pop(0)
        with contextlib.suppress(OSError):  # a client that has heard enough goes away
            if "fault" in answer:
                FAULTS[answer["fault"]](self.connection)
            else:
                self.answer(**answer)

    def answer(self, *, status=200, headers=None, body=""):
        data = body.encode("utf-8", "surrogateescape")
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        self.answers = {}
        self.requests = []
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request, client_address):
        pass  # handshakes that a client breaks off


def main():
    server = Server()
    if "--cert" in sys.argv:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[sys.argv.index("--cert") + 1])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        with server.lock:
            server.answers.update(command.get("answers", {}))
        print(json.dumps({"answer": server.requests if "log" in command else None}), flush=True)


if __name__ == "__main__":
    main()
