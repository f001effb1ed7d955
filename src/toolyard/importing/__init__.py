"""State of other hosts, taken over into a home. The source is only read."""
