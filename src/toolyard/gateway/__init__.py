"""Chat: any model, any client, tools in between."""
