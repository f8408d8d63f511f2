# SPDX-License-Identifier: Apache-2.0
"""An OpenID provider that keeps to the specification until a test tells it not to.

Written for tests of a client: it has one user, shows no page, and plays every fault that a broken or hostile provider,
or somebody between, could have. Real providers are tried elsewhere (tests/server/django_provider.py).
"""

import base64
import contextlib
import hashlib
import http.server
import json
import secrets
import threading
import time
import urllib.parse

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

CLIENT = "halo"
_FACTORY = {"RS256": lambda: RSAKey.generate_key(2048), "ES256": lambda: ECKey.generate_key("P-256")}
_KEYS = {}


def shared_key(name, algorithm="RS256"):
    """A key by name, made once: making RSA keys is what would make such tests slow."""
    if (name, algorithm) not in _KEYS:
        _KEYS[name, algorithm] = _FACTORY[algorithm]()
    return _KEYS[name, algorithm]


class Provider:
    """The provider, at `issuer`. What a test changes:

    claims: laid over those of the ID token; None removes one.
    header: laid over that of the ID token.
    tamper: text of the ID token -> what is sent in its place.
    metadata: laid over the discovery document; None removes a member.
    answers: path -> function of the handler that answers in its place.
    user, userinfo: what the ID token and the userinfo answer say of the user.
    """

    def __init__(self, *, algorithm="RS256", secret=""):
        self.algorithm = algorithm
        self.secret = secret
        self.key, self.kid = shared_key("first", algorithm), "first"
        self.published = [("first", self.key)]
        self.user = {"sub": "u1", "preferred_username": "dev", "groups": ["staff"]}
        self.userinfo = {}
        self.claims, self.header, self.metadata, self.answers = {}, {}, {}, {}
        self.tamper = None
        self.asked = []
        self.authorizations = []
        self._codes = {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @contextlib.contextmanager
    def running(self):
        """Serve for as long as the block lasts."""
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(10)

    def rotate(self, name):
        """Sign with a new key, and publish it only."""
        self.key, self.kid = shared_key(name, self.algorithm), name
        self.published = [(name, self.key)]

    def agree(self, location):
        """Do what a person does at the provider; gives the query with which the browser is sent back."""
        address, _, query = location.partition("?")
        assert address == f"{self.issuer}/authorize"
        given = dict(urllib.parse.parse_qsl(query))
        code = secrets.token_urlsafe(16)
        self._codes[code] = given
        return {"code": code, "state": given["state"]}

    def discovery(self):
        here = self.issuer
        found = {
            "issuer": here,
            "authorization_endpoint": f"{here}/authorize",
            "token_endpoint": f"{here}/token",
            "jwks_uri": f"{here}/jwks",
            "userinfo_endpoint": f"{here}/userinfo",
            "end_session_endpoint": f"{here}/logout",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self.algorithm],
            "code_challenge_methods_supported": ["S256"],
            **self.metadata,
        }
        return {name: value for name, value in found.items() if value is not None}

    def jwks(self):
        public = [{**key.as_dict(private=False), "kid": kid, "use": "sig"} for kid, key in self.published]
        return {"keys": public}

    def id_token(self, given, access, *, key=None):
        now = int(time.time())
        at_hash = base64.urlsafe_b64encode(hashlib.sha256(access.encode()).digest()[:16]).decode().rstrip("=")
        claims = {
            "iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": given.get("nonce"),
            "at_hash": at_hash, **self.user, **self.claims,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.kid, "typ": "JWT", **self.header}
        header = {name: value for name, value in header.items() if value is not None}
        made = jwt.encode(header, claims, key or self.key, algorithms=[self.algorithm])
        return made if self.tamper is None else self.tamper(made)

    def exchange(self, form, authorization):
        """Answer a token request: status and document."""
        given = self._codes.pop(form.get("code", ""), None)
        client = form.get("client_id", ""), form.get("client_secret", "")
        if authorization.startswith("Basic "):
            pair = base64.b64decode(authorization[6:]).decode().partition(":")
            client = urllib.parse.unquote(pair[0]), urllib.parse.unquote(pair[2])
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if client != (CLIENT, self.secret):
            return 401, {"error": "invalid_client", "error_description": "CANARY-description"}
        if (
            given is None
            or given["code_challenge"] != challenge.decode().rstrip("=")
            or given["code_challenge_method"] != "S256"
            or given["redirect_uri"] != form.get("redirect_uri")
            or form.get("grant_type") != "authorization_code"
        ):
            return 400, {"error": "invalid_grant", "error_description": "CANARY-description"}
        access = "CANARY-access-" + secrets.token_urlsafe(16)
        return 200, {"access_token": access, "token_type": "Bearer", "id_token": self.id_token(given, access)}

    def _handler(provider):  # noqa: N805 - the handler has a self of its own
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # a connection for each answer: none stays open behind a test

            def do_GET(self):
                self.answer()

            def do_POST(self):
                self.answer()

            def answer(self):
                path = self.path.partition("?")[0]
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                provider.asked.append(path)
                if path in provider.answers:
                    provider.answers[path](self)
                elif path == "/.well-known/openid-configuration":
                    self.say(200, provider.discovery())
                elif path == "/jwks":
                    self.say(200, provider.jwks())
                elif path == "/token":
                    form = dict(urllib.parse.parse_qsl(body))
                    provider.authorizations.append(self.headers.get("Authorization", ""))
                    self.say(*provider.exchange(form, self.headers.get("Authorization", "")))
                elif path == "/userinfo":
                    good = self.headers.get("Authorization", "").startswith("Bearer CANARY-access-")
                    self.say(200 if good else 401, {"sub": provider.user["sub"], **provider.userinfo})
                else:
                    self.say(404, {})

            def say(self, status, document, **headers):
                data = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(data)

            def log_message(self, *_):
                pass

        return Handler
