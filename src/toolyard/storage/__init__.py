"""Durable state: the homes of a Store."""
