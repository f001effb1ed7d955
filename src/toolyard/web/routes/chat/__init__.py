"""Routes of chat: its protocols, models, stored chats, prompts, attachments, structured replies."""
