"""Imports of state from other tool hosts into a home. The source is only read."""
