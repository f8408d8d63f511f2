# SPDX-License-Identifier: Apache-2.0
"""`halo mcp registry import` against a registry in another process: shapes, statuses, and all that can go wrong on the way."""

import json

import pytest

from halod.cli import halo
from halod.policy.importing import fetch as module
from halod.policy.importing import source
from halod.policy.importing.fetch import TRIES, fetch
from halod.policy.importing.model import ImportRefused
from halod.policy.load import parse
from tests.server.faults import FAULTS
from tests.support.certificates import Authority
from tests.support.registry import OFFICIAL, envelope, npm, oci, running, server


@pytest.fixture(scope="module")
def _process():
    with running() as registry:
        yield registry


@pytest.fixture
def registry(_process, monkeypatch):
    """The registry, and pauses that take no time."""
    _process.pauses = []
    monkeypatch.setattr(fetch, "__kwdefaults__", {**fetch.__kwdefaults__, "wait": _process.pauses.append})
    return _process


def run(registry, *words):
    return halo.main(["mcp", "registry", "import", "--registry-url", registry.origin, *words])


def entry(text):
    """The entry that a run printed, read as the whole of a policy's servers."""
    return parse(f"mcp:\n  servers:\n{text}".encode(), "halos.yaml").entries[0]


def refused(registry, capsys, *words):
    """What a run says that must not print an entry."""
    code = run(registry, *words)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert "fault inside" not in err
    return err


def test_a_name_gives_the_latest_version(registry, capsys):
    """What is printed can be pasted, and says where it came from."""
    name = registry.publish(envelope(server(npm())))
    assert run(registry, name) == 0
    out, err = capsys.readouterr()
    assert entry(out).package.identifier == "@acme/notes-mcp"
    assert (
        '- id: notes-mcp\n      package: {type: npm, identifier: "@acme/notes-mcp", version: 1.0.26}\n' in out
    )
    assert f"from {registry.origin}" in err
    assert "published 2026-10-01T00:00:00Z" in err
    assert "the latest version is 1.0.0" in err
    assert "the package has another version than the server, 1.0.26" in err


def test_the_address_is_encoded_whole(registry, capsys):
    """A slash in a name and a plus in a version are part of them."""
    registry.publish(envelope(server(npm(), version="1.0.0+x")), version="1.0.0+x")
    assert run(registry, "io.github.acme/notes-mcp@1.0.0+x") == 0
    path, headers = registry.log()[-1]
    assert path == "/v0.1/servers/io.github.acme%2Fnotes-mcp/versions/1.0.0%2Bx"
    assert headers["accept-encoding"] == "identity"
    assert "authorization" not in headers
    capsys.readouterr()


@pytest.mark.parametrize("schema", ["2025-09-16", "2025-09-29", "2025-10-11", "2025-10-17", "2025-12-11"])
def test_every_shape_since_camel_case(registry, capsys, schema):
    """A stored old version is read as it is."""
    name = registry.publish(envelope(server(npm(), schema=schema)))
    assert run(registry, name) == 0
    assert entry(capsys.readouterr().out).package.version == "1.0.26"


@pytest.mark.parametrize(
    "document",
    [
        server(npm(), schema="2025-07-09"),
        server({"registry_type": "npm", "identifier": "x", "version": "1.0.0"}, schema="2025-09-16"),
        {"name": "a.b/c", "version_detail": {"version": "1.0.0"}, "status": "active", "packages": []},
        server(remotes=[{"transport_type": "sse", "url": "https://x.example/"}]),
    ],
)
def test_the_first_shape_is_refused_by_its_name(registry, capsys, document):
    """snake_case is told from a document that is merely wrong."""
    registry.answer("/old.json", {"body": json.dumps(document)})
    assert "2025-07-09" in refused(registry, capsys, f"{registry.origin}/old.json")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (envelope(server(npm()), status="deleted"), "the registry has deleted this version"),
        (envelope(server(npm()), status="retired"), 'a status that is unknown, "retired"'),
        (envelope(server(npm()), status=None), "does not tell the status"),
        (envelope(server(npm(), status="active"), status=None), "does not tell the status"),
        (
            envelope(server(npm(), _meta={OFFICIAL: {"status": "active"}}), status=None),
            "does not tell the status",
        ),
        (
            envelope(server(npm()), status="deprecated", statusMessage="use b\x1b[2J"),
            "is deprecated: use b\\x1b[2J",
        ),
        (envelope(server(npm(), name="io.github.acme/Notes-mcp")), "about another server"),
    ],
)
def test_what_a_registry_says_of_a_version(registry, capsys, document, said):
    """Only the registry's own word counts, and only for the server that was asked for."""
    registry.answer(
        "/v0.1/servers/io.github.acme%2Fnotes-mcp/versions/latest", {"body": json.dumps(document)}
    )
    err = refused(registry, capsys, "io.github.acme/notes-mcp")
    assert said in err
    assert "\x1b" not in err


def test_another_version_is_refused(registry, capsys):
    """The version is the one that was asked for, byte for byte."""
    registry.publish(envelope(server(npm())), version="1.0")
    assert "about another version" in refused(registry, capsys, "io.github.acme/notes-mcp@1.0")


def test_a_deprecated_version_is_imported_when_it_is_allowed(registry, capsys):
    """With a warning."""
    name = registry.publish(envelope(server(npm()), status="deprecated"))
    assert run(registry, "--allow-deprecated", name) == 0
    out, err = capsys.readouterr()
    assert entry(out).package.type == "npm"
    assert "warning: this version is deprecated" in err


def test_lists(registry, capsys):
    """One item is taken; of several the one that is named; none because it stands first."""
    other = envelope(server(oci(), name="io.github.acme/other"))
    registry.answer(
        "/one", {"body": json.dumps({"servers": [envelope(server(npm()))], "metadata": {"nextCursor": "x"}})}
    )
    registry.answer("/two", {"body": json.dumps({"servers": [envelope(server(npm())), other]})})
    assert run(registry, f"{registry.origin}/one") == 0
    assert "further pages" in capsys.readouterr().err
    err = refused(registry, capsys, f"{registry.origin}/two")
    assert "  io.github.acme/other 1.0.0\n" in err
    assert run(registry, "--server", "io.github.acme/other@1.0.0", f"{registry.origin}/two") == 0
    assert entry(capsys.readouterr().out).package.type == "oci"
    assert "lists no such server" in refused(registry, capsys, "--server", "a.b/c", f"{registry.origin}/two")


def test_a_bare_document_says_that_its_status_is_unknown(registry, capsys):
    """It is imported, and nobody may think that a registry stands behind it."""
    document = {"body": json.dumps(server(npm(), status="deleted"))}
    registry.answer("/server.json?key=CANARYkey", document)
    assert run(registry, f"{registry.origin}/server.json?key=CANARYkey") == 0
    out, err = capsys.readouterr()
    assert "not verified: the status" in err
    assert "CANARY" not in out + err


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_busy_registry_is_asked_again(registry, capsys, status):
    """Retry-After is honoured, in seconds and as a date; without it the pauses grow."""
    busy = {"status": status}
    date = "Mon, 30 Nov 2026 09:15:02 GMT"
    later = {"Date": date, "Retry-After": "Mon, 30 Nov 2026 09:15:09 GMT"}
    good = {"body": json.dumps(server(npm()))}
    path = f"/busy{status}"
    registry.answer(path, {**busy, "headers": {"Retry-After": "3"}}, {**busy, "headers": later}, busy, good)
    assert run(registry, registry.origin + path) == 0
    assert registry.pauses[:2] == [3.0, 7.0]
    assert 2.0 <= registry.pauses[2] <= 4.0
    assert f"answers HTTP {status}; trying again in 3 s" in capsys.readouterr().err


def test_patience_ends(registry, capsys):
    """After the last try, and at once when the server asks for more than a person will wait."""
    registry.answer("/down", {"status": 503})
    before = len(registry.log())
    assert f"answers HTTP 503, after {TRIES} tries" in refused(registry, capsys, f"{registry.origin}/down")
    assert len(registry.log()) == before + TRIES
    registry.answer("/down", {"status": 429, "headers": {"Retry-After": "3600"}})
    registry.pauses.clear()
    assert "come back in 3600 seconds" in refused(registry, capsys, f"{registry.origin}/down")
    assert registry.pauses == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 404}, "has no such document (HTTP 404)"),
        ({"status": 410}, "has no such document (HTTP 410)"),
        ({"status": 401, "body": "CANARY"}, "wants a login"),
        ({"status": 204}, "gives no document (HTTP 204)"),
        ({"status": 302}, "gives no document (HTTP 302)"),
        ({"status": 302, "headers": {"Location": "https://evil.example/x"}}, "another origin, evil.example"),
        ({"status": 302, "headers": {"Location": "http://localhost/x"}}, "another origin, localhost"),
        ({"status": 301, "headers": {"Location": "//evil.example/x"}}, "must be a plain https URL"),
        ({"status": 301, "headers": {"Location": "file:///etc/passwd"}}, "must be a plain https URL"),
        ({"status": 301, "headers": {"Location": "http://[::1"}}, "does not speak HTTP as expected"),
        ({"status": 308, "headers": {"Location": "/fault"}}, "redirects again and again"),
        ({"headers": {"Content-Encoding": "gzip"}, "body": "{}"}, "answers compressed"),
        ({"body": "{}" + " " * (1 << 20)}, "larger than 1 MiB"),
        ({"body": "<html>CANARY</html>"}, "is not JSON (line 1, column 1)"),
        ({"body": '{"name": "a", "name": "b"}'}, 'has the key "name" twice'),
        ({"body": '{"version": NaN}'}, "NaN or Infinity"),
        ({"body": '"\udcff"'}, "is not UTF-8"),
        ({"body": "[" * 100_000}, "nested too deep"),
        ({"body": "[" * 100 + "]" * 100}, "nested too deep"),
        ({"body": "[]"}, "is not a JSON object"),
        ({"body": "{}"}, "has no name and version"),
    ],
)
def test_answers_that_are_no_document(registry, capsys, answer, said):
    """Each is refused with its reason, and nothing of the body is repeated."""
    registry.answer("/fault", answer)
    err = refused(registry, capsys, f"{registry.origin}/fault")
    assert said in err
    assert "CANARY" not in err


def test_a_redirect_within_the_origin_is_followed(registry, capsys):
    """A path may move."""
    registry.answer("/here", {"status": 307, "headers": {"Location": "../there"}})
    registry.answer("/there", {"body": json.dumps(server(npm()))})
    assert run(registry, f"{registry.origin}/here") == 0
    assert "notes-mcp" in capsys.readouterr().out


@pytest.mark.parametrize("word", sorted(set(FAULTS) - {"cookie"}))
def test_every_fault_of_a_connection(registry, capsys, monkeypatch, word):
    """Whatever a server does, it ends soon and with a sentence."""
    monkeypatch.setattr(module, "SECONDS", 1.0)
    monkeypatch.setattr(module, "_READ", 0.3)
    registry.answer(f"/{word}", {"fault": word})
    err = refused(registry, capsys, f"{registry.origin}/{word}")
    assert err.count("\n") == 1
    assert "CANARY" not in err


def test_a_server_that_is_not_there(capsys):
    """Said with its host and port."""
    with running() as registry:
        origin = registry.origin
    assert halo.main(["mcp", "registry", "import", f"{origin}/x"]) == 2
    assert "cannot be reached" in capsys.readouterr().err


def test_certificates_are_verified(tmp_path, monkeypatch, capsys):
    """An authority that this machine does not know is refused; one that it knows is not."""
    authority = Authority(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running(cert=authority.issue("registry", address="127.0.0.1")) as registry:
        registry.answer("/server.json", {"body": json.dumps(server(npm()))})
        words = ["mcp", "registry", "import", f"{registry.origin}/server.json"]
        assert halo.main(words) == 2
        assert "certificate that this machine does not trust" in capsys.readouterr().err
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert halo.main(words) == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://mcp.acme.example/x",
        "https://user@mcp.acme.example/x",
        "https://mcp.acme.example/x#y",
        "https://mcp.acme.example/{x}",
        "https:/mcp.acme.example/x",
        "ftp://mcp.acme.example/x",
    ],
)
def test_urls_that_are_not_fetched(url, capsys):
    """Nothing is asked of them."""
    assert halo.main(["mcp", "registry", "import", url]) == 2
    assert "must be a plain https URL" in capsys.readouterr().err
    assert halo.main(["mcp", "registry", "import", "--registry-url", url, "a.b/c"]) == 2
    assert "must be a plain https URL" in capsys.readouterr().err
    with pytest.raises(ImportRefused):
        source.check_url(url, "it")
