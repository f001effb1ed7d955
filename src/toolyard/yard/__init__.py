"""The composition root: everything that is put together to make a Yard, and nothing else.

yard           a Config becomes a Yard: its tools, its calls, its results, its state
calls          requested, permitted, settled, found again, cancelled and undone
results        outcomes in a dialect, and their media
state          the journal and all else that is stored, each part made when it is first asked for
built_in       the built-in tools, each imported when it is first looked up
plugin_source  the tools of plugin folders
mcp_source     the tools of MCP servers
chat           a Chat for a Yard: its model providers, and what a chat may use of the Yard
"""
