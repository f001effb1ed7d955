"""Plugin manifests: ``plugin-manifest.json`` as a value, and that value as a tool.

manifest         the values
manifest_parser  the text of a manifest to a Manifest and its problems, with
  manifest_json    its JSON, strict and with positions
  fields           the members of an object by their types, and the words that people use for types
  commands         the commands and their parameters, also from descriptions written for models
  config_schema    the settings
  permissions      what a plugin may reach
safe_text        texts that a model reads and a person can check
spec             a manifest as a tool
"""
