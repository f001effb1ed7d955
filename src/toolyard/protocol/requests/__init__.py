"""The language of tool requests in text, in parts: what its marks look like, one block, the prose around blocks."""
