"""OpenAI Responses: what its clients ask and get, and how its providers are asked."""
