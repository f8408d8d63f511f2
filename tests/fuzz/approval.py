# SPDX-License-Identifier: Apache-2.0
"""Fuzz target "no false approval": approved definitions, mutated as an attacker would, judged by a real policy.

The property that may never break (design 5): what is approved runs the pinned thing. An approval of a mutant is right
only when `harmless` recognises it.
"""

import functools
import random
import unicodedata
from datetime import date

from halod.definition import Definition, FileRef
from halod.drift import Judge
from halod.policy.load import parse
from halod.policy.scope import scope
from tests.fuzz.choices import Choices
from tests.fuzz.harmless import DIGEST, HOUSE, harmless

TODAY = date(2026, 11, 30)
POLICY = f"""
org: acme
mcp:
  registries: {{npm: ["https://packages.acme.example/npm/"]}}
  servers:
    - {{id: npm-tool, package: {{type: npm, identifier: "@acme/tool", version: 1.2.0}}}}
    - {{id: pypi-tool, package: {{type: pypi, identifier: acme-tool, version: 1.2.0}}}}
    - {{id: image, package: {{type: oci, identifier: ghcr.io/acme/tool, version: 1.2.0, sha256: {DIGEST[7:]}}}}}
    - {{id: nuget-tool, package: {{type: nuget, identifier: Acme.Tool, version: 1.2.0}}}}
    - {{id: remote, package: {{type: npm, identifier: mcp-remote, version: 1.2.0}}}}
    - {{id: gateway, package: {{type: npm, identifier: supergateway, version: 1.2.0}}}}
    - {{id: proxy, package: {{type: pypi, identifier: mcp-proxy, version: 1.2.0}}}}
    - {{id: wiki, url: "https://mcp-wiki.internal.acme.example/mcp"}}
    - {{id: house, command: [/opt/acme/bin/house-mcp, --stdio]}}
""".encode()
URL = "https://mcp-wiki.internal.acme.example/mcp"
NPM, PYPI, IMAGE = "@acme/tool@1.2.0", "acme-tool@1.2.0", f"ghcr.io/acme/tool@{DIGEST}"
APPROVED = [
    ["npx", "-y", NPM], ["npx", NPM, "--x"], ["npm", "exec", "-y", NPM, "--", "--x"], ["npm", "x", "--", NPM],
    ["pnpm", "dlx", NPM], ["pnpx", NPM], ["yarn", "dlx", "-q", NPM], ["bunx", "--bun", NPM], ["bun", "x", NPM],
    ["deno", "run", "-A", f"npm:{NPM}"], ["deno", "x", "-y", f"npm:{NPM}"],
    ["uvx", "-q", PYPI], ["uvx", "--from", "acme-tool==1.2.0", "acme-tool", "x"], ["uv", "tool", "run", "acme-tool==1.2"],
    ["pipx", "run", "acme-tool==1.2.0", "x"], ["docker", "run", "-i", "--rm", IMAGE],
    ["docker", "run", "-i", "--rm", "-e", "TOKEN", "--name", "x", IMAGE], ["podman", "run", "-i", IMAGE],
    ["dnx", "Acme.Tool@1.2.0", "--yes", "--", "x"], ["dotnet", "tool", "exec", "acme.tool@1.2"], HOUSE,
    ["npx", "-y", "mcp-remote@1.2.0", URL, "--header", "A: b"], ["npx", "-y", "supergateway@1.2.0", "--sse", URL],
    ["npx", "-y", "supergateway@1.2.0", "--stdio", f"npx -y {NPM}"], ["uvx", "mcp-proxy@1.2.0", URL],
    ["uvx", "mcp-proxy@1.2.0", "--", "npx", "-y", NPM], ["npx", "-y", "mcp-remote@1.2.0", URL, "8080", "--debug"],
    ["uvx", "mcp-proxy@1.2.0", "--", "npx", "-y", "mcp-remote@1.2.0", URL], [URL], [URL],
    ["env", "A=b", "npx", "-y", NPM], ["sh", "-c", f"npx -y {NPM}"], ["cmd", "/c", "npx", "-y", NPM],
    ["timeout", "60", "uvx", PYPI], ["bash", "-lc", f"exec uvx {PYPI}"], ["nice", "-n", "5", "npx", NPM],
]  # fmt: skip

OPTIONS = """-y --yes -q --quiet -s --silent --prefer-offline --prefer-online --loglevel --loglevel=error --loglevel=x -p
    --parseable -c -w -i -f -e -v -H -C -S -u -P -U -a -n -g -d -D -h -A -t -m -l -yp -yq -ys -qy -iv -it -ie -itq --p --ye
    --reg --regist --package --package=evil@1.0.0 --call --call=id --registry --registry=https://evil.example/
    --registry=https://packages.acme.example/npm/ --userconfig=/tmp/x --@acme:registry=https://evil.example/
    --node-options=--require=/tmp/x.js --script-shell=/tmp/sh --shell=/tmp/sh --prefix=/tmp/x --prefix --workspace=x
    --tag=x --before=2000-01-01 --https-proxy=http://evil.example --cafile=/x --no-install --no --no-yes --no-audit
    --no-fund --yes=false --yes=true -y=evil@1.0.0 -q=evil@1.0.0 --quiet=evil --from --from=evil --with --with=evil
    --with-requirements=/x --overrides=/x --constraints=/x --index=https://e --default-index=https://evil.example
    --extra-index-url=https://evil.example --index-url=https://evil.example --find-links=/x --python=/tmp/python
    --python=pypy --python=3.12 -p3.12 --color=never --isolated --refresh --offline --no-progress --no-config
    --no-env-file --no-cache --config-file=/x --directory=/x --project=/x --env-file=/x --env-file=/dev/null --spec
    --spec=evil --pip-args=--index-url=x --backend=x --entrypoint=sh --entrypoint --volume=/x:/app -v/x:/app
    --mount=type=bind,src=/x,dst=/app --tmpfs=/app --volumes-from=x --privileged --network=host --net=container:x
    --network=bridge --pid=host --cap-add=ALL --device=/dev/x --runtime=x --security-opt=x --use-api-socket --rootfs
    --env-host --name --name=x --platform=x --pull=always --label=a -la=b --hostname=x --memory=1g --rm --rm=false --init
    -eNODE_OPTIONS=--require=/x --env=LD_PRELOAD=/x --env=PATH=/x -ePYTHONPATH -eA=b -e* --env=${X}=1 --add-host=h:1
    --context=x --host=tcp://evil.example --config=/x --source --source=https://evil.example --add-source=x
    --configfile=x --version=2.0.0 --prerelease --interactive --source:https://evil.example @evil.rsp --import-map=/x
    --preload=/x --require=/x --cert=/x --lock=/x -L --shell-mode --dir=/x --cwd=/x --cwd --bun --bun=x --allow-net
    --allow-all --allow-run=x --unknown --unknown=x -X - --- -- --header --transport --allow-http --debug --resource
    --token-endpoint=https://evil.example/ --sse --streamableHttp --stdio --sse=https://evil.example/ --port=1 --headers
    --header-file --named-server --foreground --preserve-status -k -P/tmp -S-x --split-string=x --chdir=/x --unset=A -uA
    --login --norc --rcfile=/x -lc -ic -o pipefail /v:on /k /d /s /q""".split()
WORDS = """evil evil@1.0.0 ${X} $X {env:X} %X% true false null NODE_OPTIONS=--require=/x PATH=/tmp/x PATH=/usr/bin A=b sh
    exec run x dlx tool npx uvx && | ; > ` $(id) .. ./x /tmp/x ~ C:\\x file:x npm:evil git+https://evil.example/x
    https://evil.example/ https://evil.example/x.tgz acme-tool acme/tool @acme/tool @acme/tool@latest @acme/tool@^1.2.0
    @acme/tool@npm:evil@1.0.0 evil@npm:@acme/tool@1.2.0 acme-tool[x]==1.2.0 acme-tool==1.2.* acme-tool@latest 8080 5 3.12
    error never ghcr.io/acme/tool ghcr.io/acme/tool:1.2.0 acme/tool@sha256:x mcp-remote@1.2.0 python bash""".split()
ODD = [
    "",
    " ",
    "\n",
    "a b",
    "\u200b",
    "\uff0dy",
    "\u2010y",
    "-y\u200b",
    "--yes\n",
    "-\u0443",
    "\0",
    "-",
    "=",
    "@",
    ":",
]
VOCABULARY = [*OPTIONS, *WORDS, *ODD, NPM, PYPI, IMAGE, URL, "Acme.Tool@1.2.0"]
KEYS = """TOKEN ACME_KEY NODE_ENV NO_COLOR PYTHONUNBUFFERED GIT_TOKEN GIT_AUTHOR_NAME UV_NO_PROGRESS PATH Path HOME
    npm_config_registry NPM_CONFIG_@acme:registry NPM_CONFIG_USERCONFIG NPM_X NODE_OPTIONS node_options NODE_PATH NODE_X
    PYTHONPATH PYTHONX UV_INDEX_URL UV_X PIP_INDEX_URL PIPX_HOME BUN_OPTIONS BUN_X DENO_DIR YARN_RC_FILENAME PNPM_HOME
    COREPACK_X DOCKER_HOST docker_context CONTAINER_HOST LD_PRELOAD LD_X DYLD_INSERT_LIBRARIES GIT_SSH_COMMAND SSL_CERT_FILE
    OPENSSL_CONF DOTNET_STARTUP_HOOKS NUGET_PACKAGES JAVA_TOOL_OPTIONS RUBYOPT PERL5OPT XDG_CONFIG_HOME APPDATA BASH_ENV ENV
    SHELLOPTS GCONV_PATH BROWSER PAGER EDITOR PUPPETEER_EXECUTABLE_PATH HTTPS_PROXY http_proxy REQUESTS_CA_BUNDLE SSE_URL
    USERPROFILE BASH_FUNC_npx%% A=B""".split()
VALUES = ["x", "", "/tmp/x", "/usr/bin:/bin", "/usr/bin", "/tmp/x:/usr/bin", URL, "--require=/tmp/x.js"]
LOOKALIKES = {
    "a": "\u0430\uff41\u1d00A", "c": "\u0441\uff43", "e": "\u0435\uff45", "l": "1I\u217c", "m": "\uff4d\u217f",
    "o": "\u043e0\uff4f", "t": "\uff54T", "1": "l\uff11\u0661", "2": "\uff12", "0": "O\uff10\u0660", "@": "\uff20\ufe6b",
    "/": "\uff0f\u2215\\", ".": "\u3002\uff0e\u2024", "-": "\u2010\uff0d\u2212_", "=": "\uff1d", ":": "\uff1a", "n": "\u0578",
}  # fmt: skip
HIDDEN = ["\u200b", "\u200d", "\u00ad", "\ufeff", "\u0301", "\u0327", "\u202e", "\0", "\n", "\r", "\t", " ", "\u00a0",
          "\x7f", "\ud83d", "/", "@", ":", "#", "+", "v", "=", ".", "%", "?", "\\", "%2e", "..", "0", "x"]  # fmt: skip
DIRECTORIES = ["/usr/bin/", "/opt/homebrew/bin/", "/home/dev/.local/bin/", "/tmp/", "./", "../", "bin/", "~/",
               "/usr/bin/../../tmp/", "//", "node_modules/.bin/", "\\tmp\\", "C:", "C:\\x\\", "${X}/"]  # fmt: skip
FEATURES = ["headers-helper", "env-file", "inline-code", "tls-off", "auth-endpoint", "sandbox-off"]


@functools.cache
def judge():
    return Judge(scope(parse(POLICY, "halos.yaml"), "", (), TODAY))


def mutant(choices, most=4):
    """One approved definition with some changes."""
    words = list(choices.one(APPROVED))
    env, cwd, features = [], "", set()
    for _ in range(choices.number(most) + 1):
        kind = choices.number(20)
        if kind < 16:
            words = _change(choices, words, kind)
        elif kind == 16:
            env.append((_key(choices), choices.one(VALUES)))
        elif kind == 17:
            cwd = choices.one(["/tmp/x", ".", " ", "/srv"])
        elif kind == 18 and choices.chance(30):
            features.add(choices.one(FEATURES))
        else:
            words = _wrap(choices, words)
    return build(words, env, cwd, features)


def build(words, env=(), cwd="", features=()):
    """A definition of words: a single one that looks like a URL is http."""
    http = len(words) == 1 and "npx" not in words[0] and "house" not in words[0]
    return Definition(
        harness="cursor", file=FileRef(0), name="n", scope="user", transport="http" if http else "stdio",
        command="" if http else words[0] if words else "", args=() if http else words[1:],
        url=words[0] if http else "", env=env, cwd=cwd, features=frozenset(features),
    )  # fmt: skip


def _key(choices):
    key = choices.one(KEYS)
    kind = choices.number(8)
    if kind == 0:
        return key.swapcase()
    if kind == 1:
        return key + choices.one(["X", "_", "\u200b", "=", " ", "\n"])
    return key


def _change(choices, words, kind):
    at = choices.number(len(words) + 1) if kind < 5 else choices.number(max(len(words), 1))
    word = words[at] if at < len(words) else ""
    if kind < 4:
        return [*words[:at], choices.one(VOCABULARY), *words[at:]]
    if kind == 4:
        return [*words[:at], choices.one(OPTIONS), choices.one(VOCABULARY), *words[at:]]
    if not words:
        return words
    return [
        *words[:at],
        *_reworked(choices, word, kind, words[at + 1 : at + 2]),
        *words[at + 1 + (kind == 5) :],
    ]


def _reworked(choices, word, kind, following):
    """The words that stand for one word after a change; kind 5 swallows the word behind it."""
    place = choices.number(len(word) + 1)
    if kind == 5:  # glued, or with an equals sign between
        return [word + choices.one(["", "=", " ", ","]) + "".join(following)]
    if kind == 6:
        return [word[:place], word[place:]]
    if kind == 7:
        return []
    if kind == 8:
        return [word, word]
    if kind == 9:  # abbreviated
        return [word[:place] or word]
    if kind == 10:
        return [word[:place] + choices.one(HIDDEN) + word[place:]]
    if kind == 11 and word:
        char = word[place - 1]
        return (
            [word[: place - 1] + choices.one(LOOKALIKES.get(char, char.swapcase())) + word[place:]]
            if place
            else [word]
        )
    if kind == 12:
        return [
            unicodedata.normalize(
                choices.one(["NFD", "NFKD", "NFC", "NFKC"]), word.replace("o", "o\u0308", 1)
            )
        ]
    if kind == 13:
        return [word.replace("1.2.0", choices.one(["1.2", "v1.2.0", "=1.2.0", "1.2.0+x", "1.2.0-x", "^1.2.0", "latest", "1.2.x",
                "01.2.0", "1.2.00", "1.2.0.0", "npm:evil@1.2.0", "1.2.0/x", "1.2.0#x", "*", " 1.2.0 ", "1!1.2", "=1.2.0,<2"]))]  # fmt: skip
    if kind == 14:
        return [choices.one(DIRECTORIES) + word + choices.one(["", ".exe", ".cmd", "/", " ", "\n", ".x"])]
    return _url(choices, word)


def _url(choices, word):
    old, new = choices.one(
        [("https", "http"), ("https:", "HTTPS:"), ("example/", "example:443/"), ("example/", "example:8443/"), ("/mcp", "/mcp/"),
         ("/mcp", "/./mcp"), ("/mcp", "/x/../mcp"), ("/mcp", "/%6Dcp"), ("/mcp", "/%2e/mcp"), ("/mcp", "//mcp"), ("//", "//u:p@"),
         ("/mcp", "/mcp?x"), ("/mcp", "/mcp#x"), ("example", "EXAMPLE"), ("example", "example."), ("example", "ex\u0430mple"),
         ("//", "/\\"), ("//", "///"), ("/mcp", "\\mcp"), ("example", "example@evil.example"), ("acme", "acme\t"), ("/mcp", "/mcp;x"),
         ("/mcp", "/mcp%00"), ("/mcp", "/mcp%20"), (".example", ".example.evil.example"), ("wiki", "xn--wiki-"), ("/mcp", "/MCP"),
         ("/mcp", "/${X}"), ("example", "${X:-example}"), ("example", "example:")]
    )  # fmt: skip
    return [word.replace(old, new, 1)]


def _wrap(choices, words):
    line = " ".join(words)
    return choices.one(
        [
            ["env", *words], ["env", "-i", *words], ["env", f"{_key(choices)}={choices.one(VALUES)}", *words], ["sh", "-c", line],
            ["bash", "-lc", line], ["sh", "-c", line + choices.one(["; id", " && id", "\nid", " | id", "", " #x", " $X"])],
            ["cmd", "/c", *words], ["cmd", "/c", line], ["timeout", "5", *words], ["nohup", *words], ["nice", *words],
            ["stdbuf", "-oL", *words], ["mise", "x", "--", *words], ["direnv", "exec", ".", *words], ["op", "run", "--", *words],
            ["dotenvx", "run", "--", *words], ["sudo", *words], ["wsl", *words], ["uvx", "mcp-proxy@1.2.0", "--", *words],
            ["uvx", "mcp-proxy@1.2.0", *words], ["npx", "-y", "supergateway@1.2.0", "--stdio", line], ["env", "-S", line],
            ["npx", "-y", "mcp-remote@1.2.0", *words], [line], ["npx", *words], ["uvx", *words], ["env", "-C", "/tmp/x", *words],
        ]
    )  # fmt: skip


def run(data):
    """Judge one mutant: an approval must be one of those that are listed as harmless."""
    check(mutant(Choices(data)))


def check(definition):
    if any("\0" in word for word in (definition.command, *definition.args, definition.url)):
        return False  # no definition: a reader calls the entry malformed
    if judge().judge(definition).kind == "approved":
        assert harmless(definition), "a false approval, or a harmless change that is not on the list"
        return True
    return False


def sample(count, seed):
    """`count` mutants from a seed; gives how many stayed approved."""
    dice = random.Random(seed)
    return sum(check(mutant(Choices(dice.randbytes(48)))) for _ in range(count))


TARGETS = {"approval": run}
