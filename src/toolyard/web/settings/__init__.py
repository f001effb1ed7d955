"""The settings while the server runs: the file as clients edit it, its changes, and what takes effect at once."""
