"""Turns: what happens between a request and the end of its answer, the log of it, and what clients see of that."""
