"""The parts of ``protocol.manifest``: values, its JSON, its fields, parameters, and what models read."""
