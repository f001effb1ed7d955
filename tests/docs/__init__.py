"""Tests of the documentation: its site, its numbers, its pictures, and the tutorial typed as it is written."""
