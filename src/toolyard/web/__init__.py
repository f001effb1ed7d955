"""The server: HTTP and WebSocket routes, and the access control in front of them."""
