"""For authors of plugins: a new one, its test cases, its problems that are found without running it."""
