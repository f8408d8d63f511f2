# SPDX-License-Identifier: Apache-2.0
"""The table, first part: the terminal agents that most people use (harnesses.md 1 to 6, 24, 12, 15).

Only data. The order of entries and of places numbers the locations: add at the end of a tuple.
"""

from halod.harnesses.dialect import Dialect, Harness, Place

_MANIFEST = ("/mcpServers",)
_PLUGIN = ("/mcpServers", "/")

# harnesses.md 1: skipped by Claude Code whatever they define.
_CLAUDE_RESERVED = frozenset(
    {"workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"}
)
_CLAUDE_TABLES = ("/mcpServers", "/projects/*/mcpServers")
_CLAUDE_ALSO = ("/projects/*/disabledMcpServers",)

CLAUDE_CODE = Harness(
    id="claude-code",
    name="Claude Code",
    dialect=Dialect(both="type-else-command", typed=True),
    places=(
        Place(
            path="~/.claude.json",
            tables=_CLAUDE_TABLES,
            also=_CLAUDE_ALSO,
            off="disabledMcpServers",
            reserved=_CLAUDE_RESERVED,
        ),
        # Read and written instead of ~/.claude.json where it exists, so it has the same tables ("Checked").
        Place(
            path="~/.claude/.config.json",
            tables=_CLAUDE_TABLES,
            also=_CLAUDE_ALSO,
            off="disabledMcpServers",
            reserved=_CLAUDE_RESERVED,
        ),
        Place(path="~/.mcp.json", scope="project", reserved=_CLAUDE_RESERVED),
        Place(path="~/.claude/plugins/cache/*/*/*/.mcp.json", role="plugin", tables=_PLUGIN),
        Place(
            path="~/.claude/plugins/cache/*/*/*/.claude-plugin/plugin.json",
            role="plugin",
            tables=_MANIFEST,
            reader="manifest",
        ),
        Place(path="~/.claude/plugins/cache/*/*/*/**", role="plugin", tables=_PLUGIN, pointed=True),
        Place(path="~/.claude/skills/*/.mcp.json", role="plugin", tables=_PLUGIN, reader="skill"),
        Place(
            path="~/.claude/skills/*/.claude-plugin/plugin.json",
            role="plugin",
            tables=_MANIFEST,
            reader="manifest",
        ),
        Place(path="~/.claude/skills/*/**", role="plugin", tables=_PLUGIN, pointed=True),
        Place(
            path="~/.claude/plugins/marketplaces/*/.claude-plugin/marketplace.json",
            role="plugin",
            tables=("/plugins",),
            reader="catalogue",
        ),
        Place(
            path="~/.claude/agents/*.md",
            role="agent",
            format="markdown+yaml-frontmatter",
            tables=("/mcpServers[]",),
            reserved=_CLAUDE_RESERVED,
        ),
        Place(
            path="~/.claude/settings.json",
            role="state",
            tables=("/enabledPlugins", "/disabledMcpjsonServers"),
        ),
        Place(path="~/.claude/plugins/installed_plugins.json", role="state", tables=("/plugins",)),
        Place(path="~/.claude/plugins/known_marketplaces.json", role="state", tables=("/",)),
    ),
)

_CODEX_PLUGIN = ("/mcpServers", "/mcp_servers", "/")

CODEX = Harness(
    id="codex",
    name="Codex CLI",
    # Both halves in one entry: Codex refuses the whole file ("Checked"), so the worse half counts.
    dialect=Dialect(env_names=("env_vars",), types=(), enabled="enabled"),
    places=(
        Place(path="~/.codex/config.toml", format="toml", tables=("/mcp_servers",), also=("/plugins",)),
        # An overlay may switch a server of config.toml; it is live only with --profile.
        Place(
            path="~/.codex/*.config.toml",
            format="toml",
            tables=("/mcp_servers",),
            scope="agent",
            dialect=Dialect(
                env_names=("env_vars",),
                types=(),
                enabled="enabled",
                toggles=frozenset({"enabled", "required"}),
            ),
        ),
        Place(
            path="~/.codex/agents/*.toml",
            role="agent",
            format="toml",
            tables=("/mcp_servers",),
            dialect=Dialect(
                env_names=("env_vars",),
                types=(),
                enabled="enabled",
                toggles=frozenset({"enabled", "required"}),
            ),
        ),
        # A table `mcp_servers` in a plugin does not load ("Checked").
        Place(
            path="~/.codex/plugins/cache/*/*/*/.mcp.json",
            role="plugin",
            tables=_CODEX_PLUGIN,
            dead=("/mcp_servers",),
        ),
        Place(
            path="~/.codex/plugins/cache/*/*/*/.codex-plugin/plugin.json",
            role="plugin",
            tables=_MANIFEST,
            reader="manifest",
        ),
        Place(
            path="~/.codex/plugins/cache/*/*/*/.claude-plugin/plugin.json",
            role="plugin",
            tables=_MANIFEST,
            reader="manifest",
            confidence="B",
        ),
        Place(
            path="~/.codex/plugins/cache/*/*/*/**",
            role="plugin",
            tables=_CODEX_PLUGIN,
            dead=("/mcp_servers",),
            pointed=True,
        ),
    ),
)

GEMINI_CLI = Harness(
    id="gemini-cli",
    name="Gemini CLI",
    dialect=Dialect(urls=("httpUrl", "url", "tcp"), both="url", ordered=True),
    places=(
        Place(
            path="~/.gemini/settings.json",
            format="jsonc",
            also=("/mcp/allowed", "/mcp/excluded", "/mcp/serverCommand"),
        ),
        Place(
            path="~/.gemini/extensions/*/gemini-extension.json",
            role="plugin",
            format="jsonc",
            also=("/name",),
        ),
        Place(
            path="~/.gemini/agents/*.md",
            role="agent",
            format="markdown+yaml-frontmatter",
            tables=("/mcp_servers", "/mcpServers"),
        ),
        Place(path="~/.gemini/mcp-server-enablement.json", role="state", tables=("/",)),
        Place(path="~/.gemini/extensions/extension-enablement.json", role="state", tables=("/",)),
        Place(
            path="~/.gemini/extensions/*/.gemini-extension-install.json",
            role="state",
            tables=("/type",),
            confidence="B",
        ),
    ),
)

_COPILOT = "~/.copilot/installed-plugins/*/*/"

COPILOT_CLI = Harness(
    id="copilot-cli",
    name="GitHub Copilot CLI",
    dialect=Dialect(both="type-else-command", typed=True),
    places=(
        Place(path="~/.copilot/mcp-config.json", format="jsonc"),
        Place(path=_COPILOT + ".mcp.json", role="plugin", tables=_PLUGIN),
        Place(path=_COPILOT + "mcp.json", role="plugin", tables=_PLUGIN),
        Place(path=_COPILOT + ".github/mcp.json", role="plugin"),
        Place(
            path=_COPILOT + ".vscode/mcp.json",
            role="plugin",
            format="jsonc",
            tables=("/servers", "/mcpServers"),
        ),
        # harnesses.md 4: VS Code's form of a container's servers.
        Place(
            path=_COPILOT + ".devcontainer/devcontainer.json",
            role="plugin",
            format="jsonc",
            tables=("/customizations/vscode/mcp/servers",),
            confidence="C",
        ),
        Place(path=_COPILOT + "plugin.json", role="plugin", tables=_MANIFEST, reader="manifest"),
        Place(
            path=_COPILOT + ".plugin/plugin.json",
            role="plugin",
            tables=_MANIFEST,
            reader="manifest",
            confidence="B",
        ),
        Place(
            path=_COPILOT + ".github/plugin/plugin.json",
            role="plugin",
            tables=_MANIFEST,
            reader="manifest",
            confidence="B",
        ),
        Place(
            path=_COPILOT + ".claude-plugin/plugin.json",
            role="plugin",
            tables=_MANIFEST,
            reader="manifest",
            confidence="B",
        ),
        Place(path=_COPILOT + "**", role="plugin", tables=_PLUGIN, pointed=True),
        Place(
            path="~/.copilot/agents/*.agent.md",
            role="agent",
            format="markdown+yaml-frontmatter",
            tables=("/mcp-servers",),
        ),
        Place(
            path="~/.copilot/settings.json",
            role="state",
            format="jsonc",
            tables=("/disabledMcpServers", "/enabledPlugins"),
        ),
        Place(path="~/.copilot/config.json", role="state", format="jsonc", tables=("/installed_plugins",)),
    ),
)

_OPENCODE_TABLES = ("/mcp", "/mcp/servers")
# `env`, `args` and a plain command are read too: an entry pasted in Claude's form is refused by OpenCode
# today, but what it would launch is plain (case 14).
_OPENCODE = Dialect(
    env=("environment", "env"),
    array=True,
    typed=True,
    disabled="disabled",
    enabled="enabled",
    toggles=frozenset({"enabled", "disabled"}),
)

OPENCODE = Harness(
    id="opencode",
    name="OpenCode",
    dialect=_OPENCODE,
    places=(
        Place(
            path="~/.config/opencode/opencode.{json,jsonc}",
            format="jsonc",
            tables=_OPENCODE_TABLES,
            reader="opencode",
        ),
        Place(
            path="~/.config/opencode/config.json",
            role="legacy",
            format="jsonc",
            tables=("/mcp",),
            reader="opencode",
        ),
        Place(
            path="~/.opencode/opencode.{json,jsonc}",
            format="jsonc",
            tables=_OPENCODE_TABLES,
            reader="opencode",
        ),
        Place(
            path="~/opencode.{json,jsonc}",
            format="jsonc",
            tables=_OPENCODE_TABLES,
            reader="opencode",
            scope="project",
        ),
    ),
)

# Kilo ignores `disabled` and refuses the envelope of OpenCode 2 ("Checked").
_KILO = Dialect(
    env=("environment", "env"),
    array=True,
    typed=True,
    enabled="enabled",
    toggles=frozenset({"enabled", "disabled"}),
)
KILO_LEGACY = Dialect(disabled="disabled")

KILO_CODE = Harness(
    id="kilo-code",
    name="Kilo Code",
    dialect=_KILO,
    places=(
        Place(
            path="~/{.config/kilo,.kilo,.kilocode}/{kilo,opencode}.{json,jsonc}",
            format="jsonc",
            tables=("/mcp",),
        ),
        Place(
            path="~/.config/kilo/config.json", role="legacy", format="jsonc", tables=("/mcp",), confidence="C"
        ),
        Place(path="~/{kilo,opencode}.{json,jsonc}", format="jsonc", tables=("/mcp",), scope="project"),
        Place(path="~/.kilocode/cli/global/settings/mcp_settings.json", role="legacy", dialect=KILO_LEGACY),
        Place(
            path="<VSC>/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
            role="legacy",
            dialect=KILO_LEGACY,
        ),
    ),
)

QWEN_CODE = Harness(
    id="qwen-code",
    name="Qwen Code",
    dialect=Dialect(urls=("httpUrl", "url"), types=(), both="url", ordered=True),
    places=(
        Place(path="~/.qwen/settings.json", format="jsonc", also=("/mcp/allowed", "/mcp/excluded")),
        Place(
            path="~/.qwen/extensions/*/qwen-extension.json",
            role="plugin",
            format="jsonc",
            also=("/name",),
            confidence="D",
        ),
        Place(path="~/.qwen/extensions/extension-enablement.json", role="state", tables=("/",)),
        Place(
            path="~/.qwen/extensions/*/.qwen-extension-install.json",
            role="state",
            tables=("/type",),
            confidence="B",
        ),
    ),
)

GOOSE = Harness(
    id="goose",
    name="Goose",
    dialect=Dialect(
        command=("cmd",),
        env=("envs",),
        env_names=("env_keys",),
        urls=("uri",),
        typed=True,
        enabled="enabled",
        shape="goose",
    ),
    places=(
        Place(path="~/.config/goose/config.yaml", format="yaml", tables=("/extensions",)),
        Place(path="~/.agents/plugins/*/.mcp.json", role="plugin", confidence="B", dialect=Dialect()),
    ),
)

CORE = (CLAUDE_CODE, CODEX, GEMINI_CLI, COPILOT_CLI, OPENCODE, KILO_CODE, QWEN_CODE, GOOSE)
