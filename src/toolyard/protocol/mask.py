"""The sign that replaces a secret, and what is secret in an address."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

MASK: Final = "[masked]"
_USER: Final = re.compile(r"(?:[A-Za-z][\w+.-]*://|(?<!\S))(\S+@)")
_QUERY: Final = re.compile(r"[?&]([^=&#\s]*)=([^&#\s]+)")
_SIGNS: Final = re.compile(r"\[masked(?:, [0-9]+ characters)?\]")


def describe_masked(length: int) -> str:
    """Return the sign for people who decide: it also says how long the hidden text is."""
    return f"[masked, {length} characters]"


def count_masks(text: str) -> int:
    return sum(1 for _ in _SIGNS.finditer(text))


def find_credentials(value: object) -> Iterator[tuple[str, str]]:
    """Yield what may be secret in the addresses of a value, as it is written there and as it is shown.

    That is the values of the query, then the user with the password, also of what is no address but was meant to be
    one. To be replaced in this order: an @ in the query is not the end of a user.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (*find_credentials(key), *find_credentials(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from find_credentials(inner)
    elif isinstance(value, str):
        yield from ((f"{name}={given}", f"{name}={MASK}") for name, given in _QUERY.findall(value))
        rest = _QUERY.sub(lambda found: found[0].removesuffix(found[2]) + MASK, value)
        yield from ((user[1], f"{MASK}@") for user in _USER.finditer(rest))
