"""Routes of plugins and MCP servers: lists, reviews, installing, and the files that plugins publish."""
