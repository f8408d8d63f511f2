# SPDX-License-Identifier: Apache-2.0
"""How the console is deployed: the unit, the container file and the manifests, held to their tools and to rules of ours.

No container is built and no cluster is asked here; docs/console-operations.md says so.
"""

import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import kubernetes_validate
import pytest
import yaml

from halod.console.settings import check_listen
from halod.console.settings.reading import parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "packaging" / "console"
UNIT = HERE / "halo-server.service"
CONTAINER = HERE / "Containerfile"
MANIFESTS = sorted(path for path in (HERE / "kubernetes").glob("*.yaml") if path.name != "kustomization.yaml")
KUSTOMIZATION = yaml.safe_load((HERE / "kubernetes" / "kustomization.yaml").read_text())
OBJECTS = [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text())]

analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (.ci/run installs it)"
)


def named(kind, name):
    (found,) = (one for one in OBJECTS if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


# --- systemd ------------------------------------------------------------------------------------------------


def directives():
    lines = [line for line in UNIT.read_text().splitlines() if line and line[0] not in "#["]
    return [tuple(line.split("=", 1)) for line in lines]


@analyze
def test_the_unit_is_closed():
    """Systemd's own analysis gives an exposure of at most 1.1."""
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=11", str(UNIT)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    exposure = re.search(r"exposure level for halo-server.service: ([0-9.]+)", done.stdout)
    assert 0 < float(exposure[1]) <= 1.1


@analyze
def test_the_unit_is_valid(tmp_path):
    """Systemd understands every line, apart from the program, which is not installed here."""
    unit = tmp_path / "halo-server.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text(), flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_unit_runs_as_an_account_that_is_made():
    """Without a right, in a state directory of its own; nothing starts before there are settings."""
    unit = dict(directives())
    account = (HERE / "sysusers.d" / "halo-server.conf").read_text()
    assert f'\nu {unit["User"]} - "' in account
    assert (unit["CapabilityBoundingSet"], unit["AmbientCapabilities"]) == ("", "")
    assert (unit["StateDirectory"], unit["StateDirectoryMode"]) == ("halo-server", "0700")
    config = unit["ConditionPathExists"]
    assert unit["ExecStart"] == f"/opt/halo-server/bin/halo-server serve --config {config}"
    assert "disable halo-server.service" in (HERE / "systemd-preset" / "90-halo-server.preset").read_text()


def test_every_open_directive_has_its_reason():
    comments = " ".join(line for line in UNIT.read_text().splitlines() if line.startswith("#"))
    for name in ("PrivateNetwork=", "IPAddressDeny=", "CAP_NET_BIND_SERVICE"):
        assert name in comments


# --- the container ------------------------------------------------------------------------------------------


def instructions():
    """The instructions of the container file, continued lines joined."""
    text = re.sub(r"\\\n", " ", CONTAINER.read_text())
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    return [(word.upper(), re.sub(r"\s+", " ", rest).strip()) for word, rest in lines]


def test_hadolint_has_nothing_to_say():
    program = pathlib.Path(sys.executable).parent / "hadolint"
    done = subprocess.run(
        [str(program), "--no-color", str(CONTAINER)], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_container_runs_as_nobody_special_and_without_what_built_it():
    """Two stages; the last has no pip, a number for its account, a health check without a shell."""
    words = instructions()
    stages = [at for at, (word, _) in enumerate(words) if word == "FROM"]
    last = dict(words[stages[-1] :])
    assert len(stages) == 2
    assert not any(word == "ADD" for word, _ in words)
    assert last["USER"] == "10001:10001"
    assert last["COPY"] == "--from=build /opt/halo-server /opt/halo-server"
    assert "pip uninstall --yes pip" in " ".join(rest for word, rest in words if word == "RUN")
    for word in ("HEALTHCHECK", "ENTRYPOINT", "CMD"):
        assert '["' in last[word]
    assert "/healthz" in last["HEALTHCHECK"]


def test_what_is_installed_is_locked():
    installs = re.findall(
        r"pip install ([^&]+)", " ".join(rest for word, rest in instructions() if word == "RUN")
    )
    assert len(installs) == 3
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)


def test_the_build_sees_what_it_needs_and_nothing_else():
    """Each file that is copied is there, and let through; so is what the wheel puts in."""
    ignore = (HERE / "Containerfile.dockerignore").read_text().splitlines()
    let_in = [line[1:] for line in ignore if line.startswith("!")]
    copied = [
        source.rstrip("/")
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert ignore[1] == "*"
    assert sorted(copied) == sorted(let_in)
    assert [path for path in copied if not (ROOT / path).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = [
        *wheel["packages"],
        *wheel["force-include"],
        project["project"]["readme"],
        *project["project"]["license-files"],
    ]
    assert [path for path in needed if not any(fnmatch.fnmatch(path, f"{one}*") for one in copied)] == []


# --- Kubernetes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.30", kubernetes_validate.latest_version()])
@pytest.mark.parametrize("one", OBJECTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_every_object_is_one_of_kubernetes(one, version):
    """By the schemas of the oldest release that is meant and of the newest that is known; unknown fields are faults."""
    kubernetes_validate.validate(one, version, strict=True)


def test_the_kustomization_has_every_file():
    assert sorted(KUSTOMIZATION["resources"]) == [path.name for path in MANIFESTS]


def pods():
    """Every pod that is described: the owner's name, its labels, its specification."""
    for one in OBJECTS:
        spec = one.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            template = spec["template"]
            yield one["metadata"]["name"], template["metadata"]["labels"], template["spec"]


PODS = list(pods())


@pytest.mark.parametrize(("labels", "spec"), [pod[1:] for pod in PODS], ids=[pod[0] for pod in PODS])
def test_every_pod_is_restricted(labels, spec):
    """The `restricted` profile of Kubernetes, and a root file system that cannot be written."""
    security = spec["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] > 0
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        assert not container["image"].endswith(":latest")
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        claims = {"data"} if labels["app.kubernetes.io/component"] == "database" else set()
        assert mounted == {volume["name"] for volume in spec["volumes"]} | claims
    assert (
        named("Namespace", "halo-server")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        == "restricted"
    )


def test_secrets_are_referred_to_and_never_there():
    """No Secret is in the files, no value of one in an environment."""
    assert [one for one in OBJECTS if one["kind"] == "Secret"] == []
    for _, _, spec in PODS:
        for volume in spec["volumes"]:
            if "secret" in volume:
                assert volume["secret"]["defaultMode"] & 0o007 == 0
        for container in spec["containers"]:
            for variable in container.get("env", ()):
                assert "PASSWORD" not in variable["name"] or variable["name"].endswith("_FILE")


def test_everything_selects_what_it_means():
    """Service, budget and policies find the pods by their labels."""
    labels = {one["app.kubernetes.io/component"]: one for _, one, _ in PODS}
    assert labels.keys() == {"console", "database", "migration", "backup"}

    def finds(selector, component):
        return selector.items() <= labels[component].items()

    assert finds(named("Service", "halo-server")["spec"]["selector"], "console")
    assert finds(named("Service", "postgres")["spec"]["selector"], "database")
    assert finds(named("PodDisruptionBudget", "halo-server")["spec"]["selector"]["matchLabels"], "console")
    assert finds(named("Deployment", "halo-server")["spec"]["selector"]["matchLabels"], "console")
    assert not finds(named("Service", "halo-server")["spec"]["selector"], "migration")
    for name, component in (("console", "console"), ("database", "database")):
        assert finds(named("NetworkPolicy", name)["spec"]["podSelector"]["matchLabels"], component)
    assert named("NetworkPolicy", "nothing")["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }


def test_the_console_is_two_that_are_asked_how_they_are():
    """Liveness and readiness at their own addresses; a roll-out takes none away before another is ready."""
    spec = named("Deployment", "halo-server")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert (
        container["livenessProbe"]["httpGet"]["path"]
        == container["startupProbe"]["httpGet"]["path"]
        == "/healthz"
    )
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > 45


def test_the_settings_in_the_cluster_are_settings():
    """Without a fault, allowed to listen, and the files that they name are mounted from keys of the secret."""
    text = named("ConfigMap", "halo-server")["data"]["halo-server.toml"]
    settings = parse(text.encode(), "halo-server.toml", files=False)
    check_listen(settings)
    named_files = [
        settings.database_url_file,
        settings.oidc.client_secret_file,
        settings.webhooks[0].secret_file,
    ]
    assert all(path.startswith("/etc/halo-server/secrets/") for path in named_files)
    told = (HERE / "kubernetes" / "configmap.yaml").read_text()
    assert all(f"--from-file={path.rpartition('/')[2]}" in told for path in named_files)
    ingress = named("Ingress", "halo-server")["spec"]["rules"][0]["host"]
    assert settings.public_url == f"https://{ingress}"
