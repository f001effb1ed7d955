"""Views: stored values as the JSON that clients read."""
