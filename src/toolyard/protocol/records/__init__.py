"""Stored values: each reads its record, writes it, and is sent to clients as JSON."""
