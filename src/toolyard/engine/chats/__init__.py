"""What chats keep: conversations, assistants, prompts, turns and responses, and the answers of idempotent requests."""
