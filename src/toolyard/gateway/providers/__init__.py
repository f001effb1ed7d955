"""Model providers: their addresses and keys, requests to them, and the answers that come back."""
