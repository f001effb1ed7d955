"""Plugins: folders with a manifest whose commands run in child processes."""
