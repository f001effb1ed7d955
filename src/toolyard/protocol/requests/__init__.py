"""The language of tool requests in text, in parts: its marks, one block, the prose around blocks."""
