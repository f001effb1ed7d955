"""Secrets out of what is echoed, stored or shown (S-91)."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.mask import MASK, describe_masked
from toolyard.protocol.message import Message

__all__ = ["MASK", "Mask"]

_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization|credentials?)$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_NAME = 60  # of those that are worth remembering: the same ones come again and again
_CONTAINERS = (dict, list)
_SHORTEST = 6  # a shorter "secret" would also hit ordinary words


class Mask:
    """Replaces every configured secret wherever it stands, and texts under names that only secrets have."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self._in_logs: re.Pattern[str] | None = None
        self._log_secrets: set[str] = set()
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Know some more, such as those of a plugin that is about to run."""
        new = {secret for secret in secrets if len(secret) >= _SHORTEST} - self._secrets
        if new:
            self._secrets |= new
            self._known = _pattern(self._secrets)
            self._in_logs = _pattern(self._secrets | self._log_secrets)

    def add_for_logs(self, secrets: Iterable[str]) -> None:
        """Know some that only logs must not have: results carry them, in links that are to open."""
        new = {secret for secret in secrets if len(secret) >= _SHORTEST} - self._log_secrets
        if new:
            self._log_secrets |= new
            self._in_logs = _pattern(self._secrets | self._log_secrets)

    @property
    def size(self) -> int:
        """How many secrets are known; they only become more."""
        return len(self._secrets)

    def text(self, text: str) -> str:
        if self._known is None:
            return text
        return text.map_text(self.text) if isinstance(text, Message) else self._known.sub(MASK, text)

    def log_text(self, text: str) -> str:
        return self._in_logs.sub(MASK, text) if self._in_logs else text

    def log_json(self, value: Json) -> Json:
        """As ``json``, for what is a log."""
        return _each_text(self.json(value), self.log_text)

    def known(self, value: Json) -> Json:
        """A value without the known secrets; whatever its names are, nothing else is touched."""
        return value if self._known is None else _each_text(value, self.text)

    def json(self, value: Json) -> Json:
        """Every call comes by here several times with all that it holds: so written as to be quick."""
        if isinstance(value, str):
            return self.text(value)
        known = self._known
        if isinstance(value, list):
            return [self.json(item) if known or isinstance(item, _CONTAINERS) else item for item in value]
        if not isinstance(value, dict):
            return value
        masked = dict(value)
        for key, inner in value.items():
            if isinstance(inner, str):
                if _known_name(key) if len(key) <= _LONGEST_NAME else _is_secret(key):
                    masked[key] = MASK
                elif known:
                    masked[key] = known.sub(MASK, inner)
            elif isinstance(inner, _CONTAINERS):
                masked[key] = self.json(inner)
        return masked

    def describe(self, value: Json) -> tuple[Json, list[JsonObject]]:
        """A value for people who decide: each mask tells how long a text it hides; and what is hidden where.

        Of what is hidden, ``at`` is the JSON pointer and ``characters`` their number.
        """
        hidden: list[JsonObject] = []
        return self._describe(value, "", hidden), hidden

    def _describe(self, value: Json, at: str, hidden: list[JsonObject], *, secret: bool = False) -> Json:
        if isinstance(value, list):
            return [self._describe(inner, f"{at}/{number}", hidden) for number, inner in enumerate(value)]
        if isinstance(value, dict):
            return {
                key: self._describe(inner, f"{at}/{_escaped(key)}", hidden, secret=_is_secret(key))
                for key, inner in value.items()
            }
        if not isinstance(value, str):
            return value
        found = [value] if secret and value else self._known.findall(value) if self._known else []
        if found:
            hidden.append({"at": at, "characters": sum(map(len, found))})
        if secret and value:
            return describe_masked(len(value))
        return self._known.sub(lambda one: describe_masked(len(one[0])), value) if self._known and found else value

    def restored(self, sent: Json, stored: Json) -> Json:
        """What comes back from somebody who was shown ``stored`` masked: what they left as shown is as stored."""
        return _restored(sent, stored, self.json(stored))


def _pattern(secrets: Iterable[str]) -> re.Pattern[str]:
    forms = {form for secret in secrets for form in _written(secret)}
    return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))


def _each_text(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    return {key: _each_text(inner, change) for key, inner in value.items()} if isinstance(value, dict) else value


def _written(secret: str) -> Iterator[str]:
    """A secret as it is, and as it stands in JSON, also in JSON that is a text of JSON."""
    yield secret
    for ascii_ in (False, True):
        once = json.dumps(secret, ensure_ascii=ascii_)[1:-1]
        yield from (once, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_)[1:-1])


def _restored(sent: Json, stored: Json, shown: Json) -> Json:
    if sent == shown:
        return stored
    if isinstance(sent, dict) and isinstance(stored, dict) and isinstance(shown, dict):
        return {key: _restored(value, stored.get(key), shown.get(key)) for key, value in sent.items()}
    if isinstance(sent, list) and isinstance(stored, list) and isinstance(shown, list) and len(sent) == len(stored):
        return [_restored(new, old, seen) for new, old, seen in zip(sent, stored, shown, strict=True)]
    return sent


def _escaped(key: str) -> str:
    """A key as a step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _is_secret(name: str) -> bool:
    return bool(_SECRET_NAME.search(name if name.islower() else _CAMEL.sub("_", name)))


_known_name = lru_cache(1024)(_is_secret)
