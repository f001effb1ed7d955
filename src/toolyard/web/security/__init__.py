"""Security: who may use the server, what a request may contain, and the middleware that enforces both."""
