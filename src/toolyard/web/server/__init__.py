"""The server: its certificate and listener, how it starts and stops, and how others find it."""
