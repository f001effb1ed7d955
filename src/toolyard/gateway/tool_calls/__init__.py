"""The tool calls of a reply: native or in text, run, and answered to the model."""
