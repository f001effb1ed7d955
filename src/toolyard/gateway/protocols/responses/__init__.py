"""OpenAI's Responses protocol."""
