"""Tool names for clients that allow only letters, digits, ``_`` and ``-``.

``plain_name`` gives the same name every time, and one that no other tool gets. It stands alone because every start of a
command needs it, and nothing of the formats of tools.
"""

import hashlib
import re
from typing import Final

LONGEST_NAME: Final = 64
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STEM = LONGEST_NAME - 9  # room for a hyphen and eight digits
_HASHED = re.compile(r"-[0-9a-f]{8}\Z")


def plain_name(name: str) -> str:
    """Return ``name`` itself when every client accepts it; else its plain characters and part of its hash."""
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{re.sub('[^A-Za-z0-9_-]', '_', name)[:_STEM]}-{digest}"


def has_hash(name: str) -> bool:
    """Return whether ``name`` ends like one that ``plain_name`` has made from another."""
    return _HASHED.search(name) is not None
