"""Tests of a VCPToolBox installation in place."""
