# SPDX-License-Identifier: Apache-2.0
"""A receiver of webhooks in a process of its own, which does what it is told, good or bad.

    python -m tests.console.receiver --secret whsec_…  [--cert FILE]

Commands come as lines of JSON on stdin, answers go as lines of JSON to stdout. It checks signatures with its own few
lines, from the text of the Standard Webhooks specification.
"""

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import ssl
import sys
import threading

ANSWERS = {
    "ok": b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    "500": b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
    "503": b"HTTP/1.1 503 Busy\r\nRetry-After: 900\r\nContent-Length: 0\r\n\r\n",
    "400": b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n",
    "410": b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
    "redirect": b"HTTP/1.1 307 Elsewhere\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
    "cookie": b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n",
    "garbled": b"SSH-2.0-nonsense\r\n\r\n",
    "early": b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
}


class Receiver:
    def __init__(self, secret):
        self.key = base64.b64decode(secret.removeprefix("whsec_"))
        self.plan = ["ok"]
        self.log = []
        self.held = []

    async def serve(self, reader, writer):
        try:
            await self._one(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def _one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {}
        for line in head[1:]:
            name, colon, value = line.partition(":")
            if colon:
                headers[name.lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        word = self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]
        self.log.append(
            {
                "line": head[0],
                "headers": headers,
                "body": body.decode(),
                "valid": self.valid(headers, body),
                "did": word,
            }
        )
        if word in ANSWERS:
            writer.write(ANSWERS[word])
        elif word == "hang":
            await reader.read()  # until the sender gives up
        elif word == "drip":
            for byte in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.05)
        elif word == "flood-body":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
        elif word == "flood-head":
            writer.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                writer.write(b"X-Y: " + b"z" * 8000 + b"\r\n")
                await writer.drain()
        elif word == "cut":
            pass
        else:
            raise AssertionError(word)
        await writer.drain()

    def valid(self, headers, body):
        signed = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + body
        mine = base64.b64encode(hmac.new(self.key, signed, hashlib.sha256).digest()).decode()
        return any(
            hmac.compare_digest(one, f"v1,{mine}") for one in headers.get("webhook-signature", "").split(" ")
        )


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--secret", required=True)
    parser.add_argument("--cert")
    args = parser.parse_args()
    receiver = Receiver(args.secret)
    context = None
    if args.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(args.cert)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=context)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    say({"port": server.sockets[0].getsockname()[1]})

    def command(line):
        asked = json.loads(line)
        if "plan" in asked:
            receiver.plan = asked["plan"]
        if "forget" in asked:
            receiver.log = []
        say({"answer": receiver.log})

    def listen():
        for line in sys.stdin:
            loop.call_soon_threadsafe(command, line)
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=listen, daemon=True).start()
    await ended.wait()


def say(document):
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
