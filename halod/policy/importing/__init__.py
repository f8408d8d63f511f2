# SPDX-License-Identifier: Apache-2.0
"""From an MCP server's registry document (server.json) to one entry of a policy.

`source` tells a name from a URL and a file, `fetch` gets a document, `strictjson` and `document` read it, `choose`
decides what is pinned, by the words that `naming` knows, `arguments` says what a launch as documented would do,
`entry` writes it down.
Nothing here writes a file, and only `fetch` touches the network.
"""
