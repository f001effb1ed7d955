"""HTML entities in place of the quotes of a reply: ``{&quot;content&quot;: &quot;Hello&quot;}``.

Such a text was escaped for a page as a whole, once. So the characters that are escaped for pages are all restored,
once; other entities are the author's own.
"""

import html
import re

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_QUOTE = re.compile(r"[{\[,:：]\s*&(?:quot|apos|#0*(?:34|39)|#x0*(?:22|27));", re.IGNORECASE)
_ESCAPED = re.compile(r"&(?:quot|apos|lt|gt|amp|#0*(?:34|38|39|60|62)|#x0*(?:22|26|27|3c|3e));", re.IGNORECASE)


def has_entity_quotes(text: str) -> bool:
    """Return whether a key or a text begins with an entity where JSON has a quote."""
    return "&" in text and _QUOTE.search(_STRING.sub('""', text)) is not None


def unescape_entities(text: str) -> str:
    return _ESCAPED.sub(lambda entity: html.unescape(entity[0].lower()), text)
