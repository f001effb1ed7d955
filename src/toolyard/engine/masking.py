"""Secrets out of what is echoed, stored or shown (S-91)."""

import re
from collections.abc import Iterable

from toolyard.protocol.json import Json

MASK = "[masked]"
_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization|credentials?)$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHORTEST = 6  # a shorter "secret" would also hit ordinary words


class Mask:
    """Replaces every configured secret wherever it stands, and texts under names that only secrets have."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        long = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, long))) if long else None

    def text(self, text: str) -> str:
        return self._known.sub(MASK, text) if self._known else text

    def json(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {key: MASK if _is_secret(key, inner) else self.json(inner) for key, inner in value.items()}
        return value


def _is_secret(name: str, value: Json) -> bool:
    return isinstance(value, str) and bool(_SECRET_NAME.search(_CAMEL.sub("_", name)))
