# SPDX-License-Identifier: Apache-2.0
"""The table, third part: other terminal agents, and those of harnesses.md part 3 (confidence C unless noted).

Only data.
"""

from halod.harnesses.dialect import Dialect, Harness, Place

AMAZON_Q = Harness(
    id="amazon-q-cli",
    name="Amazon Q Developer CLI",
    dialect=Dialect(disabled="disabled"),
    places=(
        Place(path="~/.aws/amazonq/mcp.json"),
        Place(path="~/.aws/amazonq/cli-agents/*.json", role="agent"),
        Place(path="~/.aws/amazonq/agents/*.json", role="agent", confidence="C"),
        Place(path="~/.aws/amazonq/default.json", role="legacy", confidence="D"),
    ),
)

LM_STUDIO = Harness(
    id="lm-studio",
    name="LM Studio",
    dialect=Dialect(types=()),
    places=(
        Place(path="~/.lmstudio/mcp.json"),
        Place(path="~/.cache/lm-studio/mcp.json", role="legacy", confidence="C"),
    ),
)

_WARP_TABLES = ("/mcpServers", "/mcp_servers", "/servers", "/mcp/servers")
_WARP_DB = ("mcp_server_installations",)

WARP = Harness(
    id="warp",
    name="Warp",
    dialect=Dialect(cwd=("working_directory", "cwd"), urls=("url", "serverUrl"), types=()),
    places=(
        Place(path="~/.warp/.mcp.json", tables=_WARP_TABLES, first=True),
        Place(
            path="~/{.warp-oss,.warp-dev,.warp-preview}/.mcp.json",
            tables=_WARP_TABLES,
            first=True,
            confidence="C",
        ),
        Place(
            path="~/Library/Group Containers/2BBY89MBSN.dev.warp/Library/Application Support/"
            "dev.warp.Warp-Stable/warp.sqlite",
            format="sqlite",
            tables=_WARP_DB,
            reader="database",
        ),
        Place(
            path="~/.local/state/warp-terminal/warp.sqlite",
            format="sqlite",
            tables=_WARP_DB,
            reader="database",
        ),
        Place(path="~/.agents/.mcp.json", role="shared"),
    ),
)

_AMP_TABLES = ("/amp.mcpServers",)

AMP = Harness(
    id="amp",
    name="Amp",
    dialect=Dialect(types=(), both="url"),
    places=(
        Place(path="~/.config/amp/settings.json", format="jsonc", tables=_AMP_TABLES, confidence="B"),
        Place(
            path="~/.config/amp/settings.jsonc",
            format="jsonc",
            tables=_AMP_TABLES,
            confidence="B",
            shadow="~/.config/amp/settings.json",
        ),
    ),
)

FACTORY_DROID = Harness(
    id="factory-droid",
    name="Factory Droid",
    dialect=Dialect(both="type-else-command", typed=True, disabled="disabled"),
    places=(Place(path="~/.factory/mcp.json"),),
)

CRUSH = Harness(
    id="crush",
    name="Crush",
    # Go's JSON does not tell cases apart, and a shell expands every value (harnesses.md 25).
    dialect=Dialect(disabled="disabled", folded=True, substitutes=True),
    places=(
        # A script: never run, never guessed at (design 4).
        Place(path="~/.config/crush/crushrc", format="opaque", tables=(), reader="opaque"),
        Place(
            path="~/.config/crush/crush.json",
            tables=("/mcp", "/MCP", "/Mcp", "/mCp", "/mcP", "/MCp", "/McP", "/mCP"),
        ),
    ),
)

OPENCLAW = Harness(
    id="openclaw",
    name="OpenClaw",
    dialect=Dialect(
        cwd=("cwd", "workingDirectory"), types=("transport", "type"), both="command", enabled="enabled"
    ),
    places=(
        Place(path="~/.openclaw/openclaw.json", format="json5", tables=("/mcp/servers",)),
        Place(
            path="~/.clawdbot/clawdbot.json",
            role="legacy",
            format="json5",
            tables=("/mcp/servers",),
            confidence="D",
        ),
        # The registry of mcporter, which OpenClaw shares: spellings as its own schema lists them.
        Place(
            path="~/.mcporter/mcporter.{json,jsonc}",
            role="shared",
            format="jsonc",
            dialect=Dialect(
                command=("command", "executable"),
                urls=("baseUrl", "base_url", "url", "serverUrl", "server_url"),
                types=(),
                both="url",
                array=True,
                nullish=True,
            ),
        ),
    ),
)

HERMES = Harness(
    id="hermes",
    name="Hermes Agent",
    dialect=Dialect(types=("transport",), both="url", enabled="enabled", split=True),
    places=(
        Place(path="~/.hermes/config.yaml", format="yaml-1.1", tables=("/mcp_servers",)),
        Place(
            path="~/.hermes/profiles/*/config.yaml",
            format="yaml-1.1",
            tables=("/mcp_servers",),
            scope="agent",
        ),
    ),
)

HALO = Harness(
    id="halo",
    name="Halo desktop",
    # `command` holds the URL where `transport` names a remote one (harnesses.md 31).
    dialect=Dialect(types=("transport",), enabled="halod status", shape="halo"),
    places=(
        Place(
            path="~/{.halo,.halo-dev,.halo-enterprise}/halo.db",
            format="sqlite",
            tables=("installed_apps",),
            reader="database",
        ),
        Place(path="~/.halo/config.json", role="legacy", dialect=Dialect(disabled="disabled")),
    ),
)

PART_3 = (
    Harness(
        id="grok",
        name="Grok Build",
        dialect=Dialect(enabled="enabled"),
        places=(Place(path="~/.grok/config.toml", format="toml", tables=("/mcp_servers",), confidence="C"),),
    ),
    Harness(
        id="kimi-code",
        name="Kimi Code",
        dialect=Dialect(enabled="enabled"),
        places=(Place(path="~/.kimi-code/mcp.json", confidence="C"),),
    ),
    Harness(
        id="qoder",
        name="Qoder",
        # Checked with the real client: the URL wins, `disabled` is honoured.
        dialect=Dialect(both="url", disabled="disabled"),
        places=(Place(path="~/.qoder/settings.json", format="jsonc", confidence="A"),),
    ),
    Harness(
        id="codebuddy",
        name="CodeBuddy",
        dialect=Dialect(disabled="disabled"),
        places=(
            Place(
                path="~/{.codebuddy/.mcp.json,.codebuddy/mcp.json,.codebuddy.json}",
                confidence="C",
                also=("/disabledMcpServers",),
                off="disabledMcpServers",
            ),
        ),
    ),
    Harness(
        id="mistral-vibe",
        name="Mistral Vibe",
        # Its argv is the list or the line of `command`, then `args`.
        dialect=Dialect(types=("transport", "type"), array=True, appended=True),
        places=(
            Place(path="~/.vibe/config.toml", format="toml", tables=("/mcp_servers[]",), confidence="C"),
        ),
    ),
    Harness(
        id="zcode",
        name="ZCode",
        places=(
            Place(path="~/.zcode/cli/config.json", format="jsonc", tables=("/mcp/servers",), confidence="C"),
            Place(path="~/.agents/mcp.json", role="shared", confidence="C"),
        ),
    ),
    Harness(
        id="tabnine",
        name="Tabnine",
        dialect=Dialect(urls=("httpUrl", "url")),
        places=(Place(path="~/.tabnine/agent/settings.json", format="jsonc"),),
    ),
    Harness(
        id="snowflake-cortex",
        name="Snowflake Cortex Code",
        places=(Place(path="~/.snowflake/cortex/mcp.json", tables=("/mcpServers", "/"), confidence="C"),),
    ),
    Harness(
        id="openhands",
        name="OpenHands",
        places=(
            Place(
                path="~/.openhands/config.toml",
                format="toml",
                tables=("/mcp",),
                confidence="C",
                reader="openhands",
            ),
        ),
    ),
    Harness(
        id="every-code",
        name="Every Code",
        dialect=Dialect(env_names=("env_vars",), types=(), enabled="enabled"),
        places=(Place(path="~/.code/config.toml", format="toml", tables=("/mcp_servers",), confidence="C"),),
    ),
)

MORE = (
    AMAZON_Q,
    LM_STUDIO,
    WARP,
    AMP,
    FACTORY_DROID,
    CRUSH,
    OPENCLAW,
    HERMES,
    HALO,
    *PART_3,
)
