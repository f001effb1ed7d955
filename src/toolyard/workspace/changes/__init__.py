"""Changes of the project's files: written whole or not at all, under locks, several or none, and undone on request."""
