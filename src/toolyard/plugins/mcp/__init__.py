"""MCP servers as plugins: declared in files, reviewed by the owner, started when one of their tools is called."""
