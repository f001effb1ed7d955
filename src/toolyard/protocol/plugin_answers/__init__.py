"""Answers of plugins: the objects in what they print, and the results that these mean."""
