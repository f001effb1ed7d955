"""The parts of ``protocol.manifest``: values, JSON, fields, parameters, and the texts for models."""
