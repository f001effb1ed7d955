"""Offering tools to a model: which of them, natively or as a listing in its prompt."""
