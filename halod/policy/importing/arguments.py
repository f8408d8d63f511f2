# SPDX-License-Identifier: Apache-2.0
"""What a package would launch with the arguments and variables that its document gives, by the rules of `launch`.

None of them is part of the pin. But a config that is written by the document is judged with them, so what
disqualifies it is said at the import, and so is an argument that makes the launcher run something else. Pure.
"""

from typing import Final

from halod.launch import Launch, identify
from halod.launch.environment import judge
from halod.launch.versions import exact_version, same_version
from halod.policy.importing.model import Argument, Candidate

_LAUNCHERS: Final = {"npm": "npx", "pypi": "uvx", "nuget": "dnx", "oci": "docker"}
_HINTS: Final = {"npm": {"npx", "bunx"}, "pypi": {"uvx"}, "nuget": {"dnx"}, "oci": {"docker", "podman"}}


def documented(one: Candidate, package: dict[str, str]) -> Launch | None:
    """Identify the command line that the document describes; None when its launcher is not one known for the type.

    `package` is the pin. A `docker` without `run` gets one.
    """
    hint = one.hint or _LAUNCHERS[one.type]
    if hint not in _HINTS[one.type]:
        return None
    runtime = words(one.runtime)
    if one.type == "oci" and runtime[:1] != ["run"]:
        runtime = ["run", *runtime]
    return identify(hint, [*runtime, _spec(package), *words(one.arguments)])


def runs_another(launch: Launch, package: dict[str, str]) -> bool:
    """Tell whether a launch names another package, version or image than the pin, as far as it can be told."""
    if launch.outcome == "unidentifiable" or launch.identifier is None:
        return True
    if launch.identifier != package["identifier"]:
        return True
    if package["type"] == "oci":
        return launch.digest != f"sha256:{package['sha256']}"
    pinned = exact_version(package["type"], package["version"])
    return (
        launch.version is None or pinned is None or not same_version(package["type"], launch.version, pinned)
    )


def unsafe_variables(one: Candidate) -> list[tuple[str, str]]:
    """Give (flag, name) for each variable of the document that can change what runs."""
    judged = [(judge(variable.name, None), variable.name) for variable in one.environment]
    return [(flag, name) for flag, name in judged if flag is not None]


def words(arguments: tuple[Argument, ...]) -> list[str]:
    """Give the words of several arguments, in order."""
    return [word for argument in arguments for word in argument.words]


def _spec(package: dict[str, str]) -> str:
    if package["type"] == "oci":
        return f"{package['identifier']}@sha256:{package['sha256']}"
    return f"{package['identifier']}@{package['version']}"
