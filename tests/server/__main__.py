# SPDX-License-Identifier: Apache-2.0
"""The reference server as a process of its own: `python -m tests.server [options]`, loopback only.

Prints its port as a line of JSON. Each further line on stdin is a command, answered by a line on stdout; the
end of stdin ends it. Commands: {"plan": [words]} says what happens to the next requests, the last word
again and again; {"log": true} gives what was asked and answered; {"transitions": true}; {"newest": true};
{"policy": text} is what is served as the signed policy, {"policy_plan": [words]} the same as "plan" for
those who ask for it; {"accept" | "reject": device}; {"revoke" | "expire": token}; {"awaited": true} gives the ports of the clients that
are connected and whose first request is not in the log.

Words: `ok` (the reference answers), `lost` (it takes the report, and closes without an answer), `lost-hang`
(takes it and hangs), a fault of `faults`, or a status with headers: `503`, `429 Retry-After: 2`.
"""

import argparse
import contextlib
import json
import socket
import socketserver
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler

from tests.server.faults import FAULTS, wait_until_gone
from tests.server.reference import MOST_BYTES, POLICY, Console
from tests.support.guard import LONG


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = LONG

    def do_POST(self):
        size = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(min(size, MOST_BYTES + 1))
        word = self.server.next_word(self.path)
        entry = {
            "method": self.command,
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": body.decode("utf-8", "replace"),
            "word": word,
            "status": 0,
            "connection": self.client_address[1],
            "complete": len(body) == size,
        }
        self.server.note(entry)
        if size > MOST_BYTES or word in FAULTS:
            self.close_connection = True
        if entry["complete"] or size > MOST_BYTES:
            self._answer(word, entry, body)
        else:
            self.close_connection = True  # the other side ended in the middle of its request

    do_GET = do_POST  # noqa: N815 - the name is http.server's

    def _answer(self, word, entry, body):
        if word in {"ok", "lost", "lost-hang"}:
            status, headers, answer = self.server.console.handle(
                self.command, self.path, entry["headers"], body
            )
            entry["status"] = status
            if word == "ok":
                self._send(status, headers, answer)
            elif word == "lost-hang":
                wait_until_gone(self.connection)
            else:
                self.close_connection = True
        elif word in FAULTS:
            FAULTS[word](self.connection)
        else:
            number, _, rest = word.partition(" ")
            entry["status"] = int(number)
            name, _, value = rest.partition(": ")
            self._send(int(number), {name: value} if name else {}, b"")

    def _send(self, status, headers, body):
        self.send_response_only(status)
        self.send_header("Date", self.date_time_string())
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        if status not in {204, 304}:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, console, context):
        self.console = console
        self.context = context
        self.lock = threading.Lock()
        self.plan = ["ok"]
        self.policy_plan = ["ok"]
        self.log = []
        self.awaited = set()
        super().__init__(("127.0.0.1", 0), Handler)

    def next_word(self, path):
        with self.lock:
            plan = self.policy_plan if path == POLICY else self.plan
            return plan[0] if len(plan) == 1 else plan.pop(0)

    def note(self, entry):
        with self.lock:
            self.log.append(entry)
            self.awaited.discard(entry["connection"])

    def finish_request(self, request, client_address):
        """Shake hands in the connection's own thread: a client that hangs holds nobody else."""
        with self.lock:
            self.awaited.add(client_address[1])
        try:
            if self.context is not None:
                request.settimeout(LONG)
                request = self.context.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)
        except (OSError, ValueError):
            pass  # the other side went away, which is what many tests are about
        finally:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
            request.close()
            with self.lock:
                self.awaited.discard(client_address[1])

    def handle_error(self, request, client_address):
        print("the test server failed", file=sys.stderr)


def obey(server, command):
    console = server.console
    with server.lock:
        if "plan" in command:
            server.plan = list(command["plan"])
        if "policy_plan" in command:
            server.policy_plan = list(command["policy_plan"])
        if "policy" in command:
            console.policy = command["policy"].encode()
        if "log" in command:
            return server.log
        if "awaited" in command:
            return sorted(server.awaited)
        if "transitions" in command:
            return console.transitions
        if "newest" in command:
            return console.newest
    for name in ("accept", "reject", "revoke", "expire"):
        if name in command:
            getattr(console, name)(command[name])
    return None


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--token", action="append", default=[])
    parser.add_argument("--enrol-key", default="")
    parser.add_argument("--cert")
    parser.add_argument("--client-ca")
    return parser.parse_args()


def main():
    options = arguments()
    context = None
    if options.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert)
        if options.client_ca:
            context.load_verify_locations(options.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    server = Server(Console(options.token, options.enrol_key), context)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"answer": obey(server, json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
