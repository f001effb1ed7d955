"""A structured reply as something to look at: HTML, Markdown, terminal text."""
