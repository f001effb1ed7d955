"""Stored parts of chats: conversations, assistants, prompts, turns, responses, the answers of idempotent requests."""
