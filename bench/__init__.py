"""Measurements side by side with peers and limits, as ratios: ``make bench``."""
