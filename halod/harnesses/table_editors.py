# SPDX-License-Identifier: Apache-2.0
"""The table, second part: editors, their extensions and desktop programs (harnesses.md 5, 7 to 20, 26 to 28).

Only data. `<VSC>` stands for the data folder of VS Code and of everything built on it, on both systems
(harnesses.md, "How to read it"); `table` expands it.
"""

from halod.harnesses.dialect import Dialect, Harness, Place

_APP = "~/{Library/Application Support,.config}/"
_PLUGIN = ("/mcpServers", "/")
_VSCODE_TABLES = ("/servers", "/mcpServers")
_SETTINGS_TABLES = ("/mcp/servers", "/mcp.servers")

CURSOR = Harness(
    id="cursor",
    name="Cursor",
    places=(
        Place(path="~/.cursor/mcp.json", format="jsonc"),
        Place(
            path="~/.cursor/plugins/{cache,local}/**/{mcp.json,.mcp.json}",
            role="plugin",
            format="jsonc",
            tables=_PLUGIN,
            confidence="B",
        ),
        # Where Cursor may read ("fallback" in harnesses.json): read like files of older releases.
        Place(
            path=_APP + "Cursor/User/mcp.json",
            role="legacy",
            format="jsonc",
            tables=("/mcpServers", "/servers"),
            confidence="C",
        ),
        Place(
            path=_APP + "Cursor/User/profiles/*/mcp.json",
            role="legacy",
            format="jsonc",
            tables=("/mcpServers", "/servers"),
            confidence="C",
        ),
        Place(
            path=_APP + "Cursor/User/settings.json",
            role="legacy",
            format="jsonc",
            tables=_SETTINGS_TABLES,
            confidence="C",
        ),
    ),
)

_DESKTOP = _APP + "{Claude,Claude-3p}/"

CLAUDE_DESKTOP = Harness(
    id="claude-desktop",
    name="Claude Desktop",
    # Remote servers are cloud connectors; a URL in the file is judged all the same.
    dialect=Dialect(types=()),
    places=(
        Place(path=_DESKTOP + "claude_desktop_config.json", confidence="B"),
        Place(
            path=_DESKTOP + "Claude Extensions/*/manifest.json",
            role="plugin",
            tables=("/server", "/name"),
            confidence="B",
            reader="desktop",
        ),
        Place(
            path=_DESKTOP + "Claude Extensions Settings/*.json",
            role="state",
            tables=("/isEnabled",),
            confidence="B",
        ),
    ),
)

_VSCODE_DIALECT = Dialect()

VSCODE = Harness(
    id="vscode",
    name="VS Code",
    dialect=_VSCODE_DIALECT,
    places=(
        Place(path="<CODE>/User/mcp.json", format="jsonc", tables=("/servers",)),
        Place(path="<CODE>/User/profiles/*/mcp.json", format="jsonc", tables=("/servers",)),
        Place(path="<CODE>/User/settings.json", role="legacy", format="jsonc", tables=_SETTINGS_TABLES),
        Place(path="~/.vscode/mcp.json", role="legacy", format="jsonc", tables=("/servers",), confidence="C"),
    ),
)

WINDSURF = Harness(
    id="windsurf",
    name="Windsurf (Devin Desktop)",
    aliases=("devin-desktop", "devin-cli", "cascade"),
    dialect=Dialect(urls=("serverUrl", "url"), types=("transport", "type"), disabled="disabled"),
    places=(
        Place(path="~/.config/devin/mcp_config.json", confidence="B"),
        Place(path="~/.config/devin/config.json", role="legacy", format="jsonc", confidence="B"),
        Place(path="~/.codeium/windsurf/mcp_config.json", role="legacy"),
        Place(path="~/.codeium/windsurf-next/mcp_config.json", role="legacy", confidence="C"),
        Place(path="~/.codeium/mcp_config.json", role="legacy"),
        Place(path="~/.windsurf/mcp_config.json", role="legacy", confidence="C"),
    ),
)

_CLINE_MARK = "__vscodeLegacyMcpSettingsMigration"

CLINE = Harness(
    id="cline",
    name="Cline",
    dialect=Dialect(types=("type", "transportType"), typed=True, disabled="disabled", shape="cline"),
    places=(
        Place(path="~/.cline/data/settings/cline_mcp_settings.json", also=("/" + _CLINE_MARK,)),
        Place(path="~/.cline/mcp.json", role="legacy", confidence="C"),
        Place(
            path="<VSC>/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            role="legacy",
            migrated=_CLINE_MARK,
            also=("/" + _CLINE_MARK,),
        ),
        Place(
            path="~/Documents/Cline/MCP/cline_mcp_settings.json",
            role="legacy",
            confidence="C",
            migrated=_CLINE_MARK,
            also=("/" + _CLINE_MARK,),
        ),
        Place(path="~/.cline/data/globalState.json", role="state", tables=("/" + _CLINE_MARK,)),
    ),
)

_ROO = Dialect(typed=True, disabled="disabled")

ROO_CODE = Harness(
    id="roo-code",
    name="Roo Code (Zoo Code)",
    aliases=("zoo-code",),
    dialect=_ROO,
    places=(
        Place(path="<VSC>/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        Place(
            path="<VSC>/User/globalStorage/zoocodeorganization.zoo-code/settings/mcp_settings.json",
            confidence="B",
        ),
        Place(
            path="<VSC>/User/globalStorage/rooveterinaryinc.roo-cline/settings/cline_mcp_settings.json",
            role="legacy",
        ),
    ),
)

ZED = Harness(
    id="zed",
    name="Zed",
    # `disabled` is ignored by Zed. An entry without command and URL sets up an extension's server.
    dialect=Dialect(types=(), enabled="enabled", shape="zed"),
    places=(
        Place(path="~/.config/zed/settings.json", format="jsonc", tables=("/context_servers",)),
        Place(
            path="~/.var/app/dev.zed.Zed/config/zed/settings.json",
            format="jsonc",
            tables=("/context_servers",),
            confidence="D",
        ),
    ),
)

CONTINUE = Harness(
    id="continue",
    name="Continue",
    places=(
        Place(path="~/.continue/config.yaml", format="yaml", tables=("/mcpServers[]",)),
        Place(
            path="~/.continue/mcpServers/**/*.json",
            format="jsonc",
            tables=("/mcpServers", "/projects/*/mcpServers", "/"),
            single=True,
        ),
        Place(path="~/.continue/mcpServers/*.{yaml,yml}", format="yaml", tables=("/mcpServers[]",)),
        Place(
            path="~/.continue/{assistants,agents,configs}/*.{yaml,yml}",
            format="yaml",
            tables=("/mcpServers[]",),
        ),
        Place(
            path="~/.continue/config.json",
            role="legacy",
            format="jsonc",
            tables=("/mcpServers[]", "/experimental/modelContextProtocolServers[]"),
            dialect=Dialect(shape="cline"),
            confidence="D",
        ),
    ),
)

KIRO = Harness(
    id="kiro",
    name="Kiro",
    dialect=Dialect(types=(), disabled="disabled"),
    places=(
        Place(path="~/.kiro/settings/mcp.json", tables=("/mcpServers", "/powers/mcpServers")),
        Place(path="~/.kiro/agents/*.json", role="agent"),
        Place(path="~/.kiro/powers/installed/*/mcp.json", role="plugin", confidence="B"),
    ),
)

JUNIE = Harness(
    id="jetbrains-junie",
    name="JetBrains Junie",
    dialect=Dialect(types=()),
    places=(
        Place(path="~/.junie/mcp/mcp.json", confidence="B"),
        Place(path="~/.junie/mcp/*.json", confidence="C"),
    ),
)

JETBRAINS_AI = Harness(
    id="jetbrains-ai-assistant",
    name="JetBrains AI Assistant",
    places=(
        Place(path="~/.ai/mcp/mcp.json", tables=_PLUGIN, confidence="B"),
        Place(
            path=_APP + "JetBrains/*/options/llm.mcpServers.xml",
            role="legacy",
            format="xml",
            tables=("McpApplicationServerCommands",),
            confidence="B",
            reader="jetbrains",
            dialect=Dialect(types=(), enabled="enabled"),
        ),
        Place(
            path="~/.config/github-copilot/intellij/mcp.json",
            format="jsonc",
            tables=("/servers",),
            confidence="B",
        ),
    ),
)

ANTIGRAVITY = Harness(
    id="antigravity",
    name="Google Antigravity",
    dialect=Dialect(urls=("serverUrl", "url"), types=(), disabled="disabled"),
    places=(
        Place(path="~/.gemini/config/mcp_config.json", confidence="B"),
        Place(path="~/.gemini/config/plugins/*/mcp_config.json", role="plugin", confidence="B"),
        Place(path="~/.gemini/{antigravity,antigravity-cli}/mcp_config.json", role="legacy", confidence="B"),
        Place(path="~/.gemini/antigravity-ide/mcp_config.json", role="legacy", confidence="C"),
    ),
)

TRAE = Harness(
    id="trae",
    name="Trae",
    aliases=("trae-cn",),
    dialect=Dialect(types=()),
    places=(
        Place(path="~/Library/Application Support/{Trae,Trae CN}/User/mcp.json", confidence="B"),
        Place(path="~/.config/{Trae,Trae CN}/User/mcp.json", confidence="C"),
        Place(path=_APP + "{TRAE SOLO,TRAE SOLO CN}/User/mcp.json", confidence="C"),
    ),
)

AUGMENT = Harness(
    id="augment",
    name="Augment",
    dialect=Dialect(both="type-stdio-else-url", typed=True, disabled="disabled"),
    places=(
        Place(path="~/.augment/settings.json"),
        Place(
            path="<VSC>/User/globalStorage/augment.vscode-augment/augment-global-state/mcpServers.json",
            tables=("/[]",),
            confidence="B",
        ),
    ),
)

EDITORS = (
    CURSOR,
    CLAUDE_DESKTOP,
    VSCODE,
    WINDSURF,
    CLINE,
    ROO_CODE,
    ZED,
    CONTINUE,
    KIRO,
    JUNIE,
    JETBRAINS_AI,
    ANTIGRAVITY,
    TRAE,
    AUGMENT,
)
