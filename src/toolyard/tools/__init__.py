"""Built-in tools, one file each, with the text the model reads beside it (name.py + name.md)."""
