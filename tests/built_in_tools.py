"""The names of the built-in tools, as the first sentence of docs/tools.md has them."""

import re
from pathlib import Path
from typing import Final

_PAGE = (Path(__file__).parents[1] / "docs/tools.md").read_text("utf-8")
_SENTENCE = _PAGE[_PAGE.index("Of the built-in tools,") :].split(". ")[0].split(".\n")[0]

BUILT_IN_TOOLS: Final = tuple(sorted(re.findall(r"`(\w+)`", _SENTENCE)))
READ_ONLY_TOOLS: Final = tuple(sorted(re.findall(r"`(\w+)`", _SENTENCE.split(" are read-only")[0])))
