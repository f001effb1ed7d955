"""Registry and runner: the only place a tool runs."""
