"""Media of tool results in a chat: as links, as Markdown, and as markers for models."""
