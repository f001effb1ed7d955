"""Readers of files that are not plain text."""
