"""How Read shows files that are not plain text."""
