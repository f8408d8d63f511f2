# SPDX-License-Identifier: Apache-2.0
"""Tokens of a person for MCP servers with `auth: {mode: halos}`: what `halo mcp token` prints.

settings   halo.toml: the organisation's authorization server
resource   the canonical address of an MCP server (RFC 8707)
http       one request, bounded
metadata   the authorization server's endpoints (RFC 8414, OpenID Connect Discovery)
grants     device authorization (RFC 8628) and refresh, and what an answer must be
store      tokens on disk, and the lock that refreshing takes
obtain     the order of all that

Only `halo` imports this package: no agent, scan or worker ever holds a person's token.
"""
