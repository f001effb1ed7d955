"""The server: HTTP, WebSocket, and who may use them."""
