"""A model's reply: parsed as it arrives, and filtered for the client."""
