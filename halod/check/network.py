# SPDX-License-Identifier: Apache-2.0
"""What an endpoint's answer means. The only module of this room that knows the agent, and loads it late.

Pure but for `endpoints` and `canary`. A policy that is fetched is judged as the agent would judge it.
A URL is shown as its host only: its path and query are nobody's business.
"""

import base64
import os
from typing import TYPE_CHECKING, Final

from halod.check import files, machine
from halod.check.model import Check, Verdict, fault, ok, warning
from halod.check.policy import device
from halod.errors import UsageError
from halod.launch.urls import parse_url
from halod.settings import Settings, secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from halod.agent.policytrial import Tried
    from halod.agent.probe import Answered
    from halod.roles.identity import Ids

_ADVICE: Final = {
    "dns": "check the name in the URL, and this machine's name servers",
    "connection-refused": "check host and port, and that the server runs",
    "unreachable": "check the network and the routes of this machine",
    "timeout": "check that no firewall drops the connection silently, and whether a proxy is needed",
    "closed": "check that the port speaks TLS, and what lies between",
    "tls-unknown-ca": "name your CA's certificate with report.ca_file",
    "tls-expired": "check this machine's clock, then renew the server's certificate",
    "tls-hostname": "use the name in the certificate, or add this one to it",
    "tls-client-certificate": "set report.client_cert and report.client_key, or check that they are still valid",
    "tls-other": "the server must speak TLS 1.2 or later",
    "proxy": "check HTTPS_PROXY and NO_PROXY in the service's environment",
    "protocol": "check that the port is that of an HTTP server",
    "redirect": "write the final URL into the settings",
}
_REFUSED: Final = {
    "policy-malformed": "serve the file that halo sign wrote, as it is",
    "policy-unsigned": "compare policy.public_keys with what halo keygen --public KEY prints",
    "policy-foreign": "check policy.org, and what is served",
    "policy-older": "sign the policy anew, with a higher version",
    "policy-expired": "sign the policy anew, and check this machine's clock",
    "policy-invalid": "halo validate shows every fault",
}


def host_of(url: str) -> str:
    """Give `host` or `host:port` of a URL of the settings."""
    parts = parse_url(url)
    if parts is None:
        return "the server"
    return parts.host if parts.port is None else f"{parts.host}:{parts.port}"


def endpoints(settings: Settings, *, root: bool) -> list[Check]:
    """Ask the endpoints of the settings, as the agent's account when this is root."""
    checks = _meant(settings)
    wanted = [("report.url", settings.report.url), ("policy.url", settings.policy.url)]
    wanted = [(key, url) for key, url in wanted if url]
    from halod.agent.tls import tls_context

    report = settings.report
    hidden = [path for path in (report.ca_file, report.client_cert, report.client_key) if path]
    if any(files.is_out_of_reach(path) for path in hidden):
        reason = "not tried: this account cannot read the certificates or the key"
        return [*checks, *(warning(key, reason, files.AS_ROOT) for key, _ in wanted)]
    try:
        tls = tls_context(report.ca_file, report.client_cert, report.client_key)
    except UsageError as error:
        return [*checks, fault("report", error.message, error.advice)]
    ids = _ids(settings) if root and wanted else None
    if root and ids is None:
        return [*checks, *(warning(key, "not tried: the agent's account is missing") for key, _ in wanted)]
    from halod.agent import probe

    for key, url in wanted:
        bearer = _token(settings) if key == "report.url" else ""
        judge = _judge(settings) if key == "policy.url" else None
        said = probe.ask(url, tls, bearer=bearer, ids=ids, judge=judge)
        checks.append(words(key, host_of(url), said, token=bool(bearer)))
        if said.tried is not None:
            checks += _policy(settings, said.tried)
    return checks


def _judge(settings: Settings) -> "Callable[[bytes], Tried]":
    """Give what judges a policy as the agent would; without rights to the state, what it has seen is not known."""
    from halod.agent.devicefile import DeviceFile
    from halod.agent.policytrial import judge

    chosen, machine_is = settings.policy, settings.device
    keys = [base64.b64decode(key) for key in chosen.public_keys]
    return judge(keys, chosen.org, DeviceFile(settings.state.dir).peek(), machine_is.ring, machine_is.units)


def _policy(settings: Settings, tried: "Tried") -> list[Check]:
    """Say whether the policy that came would be taken, and whether it knows the device."""
    if tried.code:
        return [fault("policy", f"{tried.words} ({tried.code})", _REFUSED.get(tried.code, ""))]
    return [ok("policy", tried.words), *device(settings, tried.problems, tried.rings)]


def _meant(settings: Settings) -> list[Check]:
    """Point out what is allowed and hardly meant."""
    report = settings.report
    if not report.url:
        return [
            warning("report.url", "reports go nowhere: the status stays on this machine", "set report.url")
        ]
    if report.token_file or report.enroll_key_file or report.client_cert:
        return []
    return [
        warning(
            "report.token_file",
            "reports are sent without a token: the server cannot tell who sends them",
            "set report.token_file or report.enroll_key_file",
        )
    ]


def _ids(settings: Settings) -> "Ids | None":
    found = machine.entry(settings.device.agent_account)
    if found is None or found.pw_uid == 0:
        return None
    from halod.roles.identity import Ids

    return Ids(found.pw_uid, found.pw_gid, tuple(os.getgrouplist(found.pw_name, found.pw_gid)))


def _token(settings: Settings) -> str:
    """Give the token; "" when there is none or its file is faulty, which another check tells."""
    try:
        return secret.read(settings.report.token_file).text if settings.report.token_file else ""
    except OSError:
        return ""


def words(key: str, host: str, said: "Answered", *, token: bool) -> Check:
    """Say what came back: `token` tells whether one was shown."""
    if said.kind != "answer":
        return fault(key, f"{host}: {said.words}", _ADVICE.get(said.kind, ""))
    verdict, sentence, advice = _status(key, said.status, token=token)
    return Check(key, verdict, f"{host} {sentence} (HTTP {said.status})", advice)


def _status(key: str, status: int, *, token: bool) -> tuple[Verdict, str, str]:
    report = key == "report.url"
    if status in (401, 403):
        return _refused(status, report=report, token=token)
    if status in (404, 410):
        verdict: Verdict = "warning" if report else "fault"
        return verdict, "answers, but says that nothing is at this path", f"check the path of {key}"
    if status == 429 or status >= 500:
        return "warning", "is there, but not well", "look at the server; reports wait until it takes them"
    if status < 300 or (report and status in (400, 405, 411, 415, 422)):
        # A report is a POST; what a server says to this GET is not what it says to a report.
        return "ok", "answers", ""
    return "warning", "answers in a way that is not expected here", f"check {key}"


def _refused(status: int, *, report: bool, token: bool) -> tuple[Verdict, str, str]:
    if token:
        return "fault", "refuses the token", "check the token, and that the server has not blocked the device"
    if status == 401 and report:
        return "ok", "answers, and asks for a token", ""
    return "fault", "refuses the request", "check the server's access rules"


def canary(settings: Settings) -> Check:
    """Send a harmless test finding through the running agent, and say how far it came."""
    if not settings.report.url:
        return fault("canary", "there is no endpoint to send a test finding to", "set report.url")
    from halod.agent import canary as sender

    result = sender.send(settings)
    if result.outcome == "delivered":
        return ok("canary", result.message)
    make = warning if result.outcome == "unavailable" else fault
    return make("canary", result.message, result.advice)
