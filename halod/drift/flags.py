# SPDX-License-Identifier: Apache-2.0
"""Every flag in words: what a person reads in `halod explain` and in docs/verdicts.md.

The keys are the closed vocabulary of flags: those of a launch, the features of a definition, and those that
drift adds. A worker's answer with another flag is not believed.
"""

from typing import Final

_LAUNCH: Final[dict[str, str]] = {
    # informational
    "wrapper": "another program starts it",
    "shell": "a shell reads the command line",
    "windows-shell": "cmd reads the command line",
    "absolute-launcher": "the launcher is named by its path in a well-known directory",
    "extras": "optional parts of the package are asked for",
    "maybe-local-build": "an image name without a namespace is often one built on this machine",
    "plain-http": "the connection is not encrypted",
    "loopback": "the server is on this machine",
    "carrier": "the package is only a bridge; what it leads to counts too",
    "remote-catalog": "what it runs is decided by a catalogue elsewhere",
    "name-is-label": "the name written is only a label for another source",
    # the source is another one
    "registry-override": "the package comes from a registry or index that is not the usual one",
    "config-override": "a configuration file of the launcher is named, which can change the source",
    "version-override": "something besides the package decides its version",
    "alias": "another package answers to this name",
    "vcs-source": "it is built from a repository, not from a published package",
    "url-source": "it is downloaded from a URL, not from a registry",
    "image-id": "a local image id says nothing about where the image came from",
    "short-name": "the engine's own settings decide which registry this short image name means",
    "import-map": "an import map can put another module in the place of the package",
    "marker": "a condition decides whether the package is installed at all",
    "prefix-override": "the launcher works in another prefix, whose own copy it may prefer",
    "network-override": "a proxy, certificate or name service between the launcher and its source is changed",
    "daemon-override": "another container engine runs the image",
    "untrusted-launcher-path": "the launcher is a file in a directory where anybody may put one",
    "unsupported-ecosystem": "the registry pins no packages of this kind",
    # other code runs as well, or instead
    "code-injection": "something beside the package can make it run other code",
    "extra-packages": "further packages are installed beside it",
    "with-flag": "further packages are installed beside it",
    "package-flag": "the package and the program to run are named apart, so another program can be run",
    "from-flag": "the package and the program to run are named apart, so another program can be run",
    "command-not-from-package": "the program need not come from the package",
    "command-from-env": "the environment decides what is run",
    "interpreter": "an interpreter runs what it is given",
    "interpreter-package": "the package is an interpreter; what it is given is what runs",
    "inline-code": "the code stands in the definition itself",
    "module": "a module of some installed environment is run",
    "remote-script": "a script is downloaded and run",
    "ambient-install": "it runs whatever is installed on this machine",
    "local-path": "it runs a file on this machine",
    "command-line-in-command": "some clients split this line, others run a file of that name",
    "version-dependent": "releases of the launcher read this differently",
    "displaced-separator": "the launcher reads options behind the package as its own here",
    "shorthand-with-value": "the launcher takes this option's value for the package",
    "unknown-option": "an option that is not known to be harmless",
    "no-install": "only a copy already on this machine is run",
    "path-override": "PATH decides which program is started",
    "env-injection": "environment that halod cannot see reaches the program",
    "cwd-override": "the launcher prefers a copy in the working directory that is set",
    "unresolved-variable": "a variable stands where the package or program should",
    "carrier-option": "an option of the bridge that is not known to be harmless",
    # containers
    "image-command": "words after the image can replace what it runs",
    "entrypoint-override": "another program than the image's own is run",
    "existing-container": "an existing container is used, whatever is in it",
    "host-mount": "a folder of this machine is mounted into the container",
    "docker-socket": "the container controls the container engine",
    "privileged": "the container has rights over this machine",
    "host-network": "the container shares this machine's network",
    "remote-host": "it runs on another machine",
    # URLs, launch errors
    "encoded-dot-segment": "clients read this path differently",
    "url-template": "a placeholder stands in the URL",
    "userinfo": "credentials stand in the URL",
    "launch-error": "the launcher refuses this command line",
}
_FEATURES: Final[dict[str, str]] = {
    "headers-helper": "a program of the user's makes the headers",
    "env-file": "environment is loaded from a file that halod does not read",
    "tls-off": "certificates are not checked as usual, or a proxy stands in between",
    "auth-endpoint": "credentials are sent to an endpoint named in the definition",
    "sandbox-off": "the tool's sandbox is switched off for this server",
}
_OURS: Final[dict[str, str]] = {
    "env-unknown": "an environment key that the registry entry does not list",
    "args-differ": "other arguments than the registry entry lists",
    "scheme": "another scheme",
    "query": "another query",
    "fragment": "a fragment",
    "trailing-slash": "a slash at the end, or none",
}

FLAG_WORDS: Final[dict[str, str]] = {**_LAUNCH, **_FEATURES, **_OURS}
"""One line for each flag: why it is unsafe, or what it tells."""
FLAGS: Final[frozenset[str]] = frozenset(FLAG_WORDS)
UNKNOWN_FLAG: Final = "not known to be harmless"
