# SPDX-License-Identifier: Apache-2.0
"""Real processes: a console, a receiver of webhooks, the agent's own fetcher; on both engines."""

import contextlib
import http.client
import json
import os
import ssl
import subprocess
import sys
import time

import pytest

from halod.agent.fetch import Fetcher
from halod.agent.http import Client
from tests.console.support_ops import ROOT, SECRET, receiving
from tests.console.support_replicas import REPORT, Replica, document, finding
from tests.support.signing import KEY, NEW_KEY, envelope, pinned


def server(*words, config):
    """Run a command of halo-server beside the console."""
    code = "import sys; from halod.console.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *words, "--config", str(config)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def ask(replica, method, path, body=None, token=""):
    connection = http.client.HTTPConnection(*replica.address, timeout=30)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


@contextlib.contextmanager
def console(url, directory):
    """A console with a webhook and a pinned key; gives its settings, itself, its receiver."""
    with receiving() as receiver:
        secret = directory / "chat.secret"
        secret.write_text(SECRET)
        address = directory / "address"
        address.write_text(url)
        config = directory / "halo-server.toml"
        config.write_text(
            f'database_url_file = "{address}"\npolicy_keys = ["{pinned(KEY)[0]}"]\npolicy_org = "acme"\n'
            f'[[webhook]]\nname = "chat"\nurl = "{receiver.url}"\nsecret_file = "{secret}"\n'
        )
        for path in (secret, address):
            os.chmod(path, 0o600)
        replica = Replica(directory, "console", config)
        replica.start()
        try:
            yield config, replica, receiver
        finally:
            replica.close()


@pytest.fixture
def running(store_url, tmp_path):
    with console(store_url, tmp_path) as found:
        yield found


@pytest.fixture
def lite(sqlite_url, tmp_path):
    with console(sqlite_url, tmp_path) as found:
        yield found


def enrolled(config, replica, device):
    made = server("enroll-key", "create", "--name", "test", "--ring", "ring0", "--days", "1", config=config)
    assert made.returncode == 0, made.stderr
    body = {"device": device, "installId": "b" * 64, "hostname": "h", "os": "linux", "halod": "0.1.0"}
    status, answer = ask(replica, "POST", "/api/v1/enroll", body, made.stdout.split()[0])
    assert status == 201, answer
    return json.loads(answer)["token"]


def wait_for(receiver, count, replica):
    deadline = time.monotonic() + 90
    while len(receiver.log()) < count:
        assert time.monotonic() < deadline, replica.log()
        time.sleep(0.05)


def test_a_report_becomes_a_signed_webhook(running):
    """From the report to the receiver, by what is installed; nothing of the finding but what a status holds."""
    config, replica, receiver = running
    tried = server("webhooks", "test", "chat", config=config)
    assert (tried.returncode, tried.stdout) == (0, "chat: taken\n")
    device = "a" * 64
    token = enrolled(config, replica, device)
    assert ask(replica, "POST", REPORT, document(device, [finding("notes", 1)]), token)[0] == 204
    wait_for(receiver, 3, replica)
    log = receiver.log()
    assert all(one["valid"] for one in log)
    sent = {body["type"]: body for body in receiver.bodies()}
    assert sent.keys() == {"webhook.test", "finding.new", "definition.new"}
    assert sent["finding.new"]["data"]["finding"]["server"] == "notes"
    assert sent["finding.new"]["data"]["devices"][0]["device"] == device
    listed = server("webhooks", "list", "--state", "done", config=config)
    assert listed.stdout.count("finding.new") == 1
    assert replica.stop() == 0
    for secret in (SECRET, token):
        assert secret not in replica.log()


def test_two_replicas_send_each_webhook_once(postgres_url, tmp_path):
    """Both queue what is reported to them, one of them sends; when it ends, the other goes on at once."""
    with console(postgres_url, tmp_path) as (config, first, receiver):
        second = Replica(tmp_path, "second", config)
        second.start()
        try:
            devices = {"a" * 64: first, "b" * 64: second}
            tokens = {device: enrolled(config, to, device) for device, to in devices.items()}
            for number, (device, to) in enumerate(devices.items()):
                body = document(device, [finding(f"server-{number}", 1)])
                assert ask(to, "POST", REPORT, body, tokens[device])[0] == 204
            wait_for(receiver, 4, second)
            assert first.stop() == 0
            body = document("b" * 64, [finding("server-1", 1), finding("later", 1)])
            assert ask(second, "POST", REPORT, body, tokens["b" * 64])[0] == 204
            wait_for(receiver, 6, second)
            identities = [one["headers"]["webhook-id"] for one in receiver.log()]
            assert len(identities) == len(set(identities)) == 6
        finally:
            second.close()


def test_agents_fetch_what_was_published(lite, tmp_path):
    """With the agent's own client: nothing, the policy, unchanged, a newer one."""
    config, replica, _ = lite
    taken = []

    class Source:
        etag = ""

        def take(self, body, etag):
            self.etag = etag
            taken.append(body)

        def unchanged(self):
            taken.append("unchanged")

        def failed(self, words):
            taken.append(words)

        def refresh(self):
            class Nothing:
                policy, code = None, ""

            return Nothing

        def followed(self):
            class Followed:
                version = 0

            return Followed

    url = f"{replica.url}/api/v1/policy"
    client = Client(url, ssl.create_default_context())
    fetcher = Fetcher(url, client, Source(), interval=900, say=lambda *_, **__: None, told=lambda: None)
    fetcher.turn()
    for version in (7, 8):
        file = tmp_path / f"{version}.signed"
        file.write_bytes(envelope(version=version))
        published = server("publish", str(file), config=config)
        assert published.returncode == 0, published.stderr
        assert f"acme, version {version}, expires " in published.stdout
        fetcher.turn()
        fetcher.turn()
    client.close()
    assert taken == [
        "the policy cannot be fetched: the server answers with HTTP status 404",
        envelope(version=7), "unchanged", envelope(version=8), "unchanged",
    ]  # fmt: skip


def test_what_may_not_be_published_is_told_in_one_line(lite, tmp_path):
    """And changes nothing; a file that is none is told, too."""
    config, replica, _ = lite
    file = tmp_path / "stranger.signed"
    file.write_bytes(envelope(NEW_KEY))
    for path, words in ((file, "none of the keys in policy_keys"), (tmp_path / "missing", "cannot read")):
        done = server("publish", str(path), config=config)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    assert ask(replica, "GET", "/api/v1/policy")[0] == 404


def test_webhooks_on_the_command_line(lite):
    """A secret, what is not there, and a receiver that does not take it."""
    config, _, receiver = lite
    secret = server("webhooks", "secret", config=config)
    assert secret.stdout.startswith("whsec_")
    assert server("webhooks", "list", config=config).stdout == "there are no deliveries\n"
    assert server("webhooks", "retry", "--hook", "chat", config=config).returncode == 1
    assert server("webhooks", "discard", "7", config=config).returncode == 1
    assert server("webhooks", "test", "unknown", config=config).returncode == 2
    receiver.plan("500")
    failed = server("webhooks", "test", "chat", config=config)
    assert (failed.returncode, failed.stdout) == (1, "chat: status-500\n")


def test_serve_refuses_a_webhook_that_cannot_be_sent_to(tmp_path):
    """Before it listens, and in one line."""
    secret = tmp_path / "secret"
    secret.write_text("CANARY")
    os.chmod(secret, 0o600)
    config = tmp_path / "halo-server.toml"
    config.write_text(
        f'database_url = "sqlite:///{tmp_path}/console.db"\n'
        f'[[webhook]]\nname = "chat"\nurl = "https://chat.acme.example/"\nsecret_file = "{secret}"\n'
    )
    done = server("serve", config=config)
    assert done.returncode == 2
    assert 'the webhook "chat" has a secret_file without a secret in it' in done.stderr
    assert "CANARY" not in done.stderr
