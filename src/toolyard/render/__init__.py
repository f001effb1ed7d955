"""Renderings of a structured reply: HTML, Markdown, terminal text."""
