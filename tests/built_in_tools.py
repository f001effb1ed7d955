"""The names of the built-in tools, as the contract has them."""

from typing import Final

BUILT_IN_TOOLS: Final = (
    "ApplyPatch", "Edit", "FileOperator", "Glob", "Grep", "LS", "MultiEdit", "NotebookEdit", "Read", "WebFetch",
    "Write",
)  # fmt: skip
READ_ONLY_TOOLS: Final = ("Glob", "Grep", "LS", "Read")
