"""Searching the project: which files a search looks at, and who looks into them."""
