"""The composition root: everything that is put together to make a Yard, and nothing else.

built_in       the built-in tools, each imported when it is first looked up
plugin_source  the tools of plugin folders
mcp_source     the tools of MCP servers
yard           a Config becomes a Yard: store, journal, approvals, registry, runner
chat           a Chat for a Yard: its model providers, and what a chat may use of the Yard
"""
