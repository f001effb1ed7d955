"""Masking: secrets removed from everything that is echoed, stored or shown (S-91).

A secret is found as it is, and as JSON, URLs and Base64 write it, in texts and in the names of members. ``MASK`` is the
sign in its place. In an address the values of the query and the user are taken for secrets.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject

if TYPE_CHECKING:
    from toolyard.protocol.records.approval_record import HiddenText


MASK: Final = "[masked]"
_USER: Final = re.compile(r"(?:[A-Za-z][\w+.-]*://|(?<!\S))(\S+@)")
_QUERY: Final = re.compile(r"[?&]([^=&#\s]*)=([^&#\s]+)")
_SIGNS: Final = re.compile(r"\[masked(?:, [0-9]+ characters)?\]")
_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization|credentials?)$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_NAME = 60  # of those that are worth remembering: the same ones come again and again
_CONTAINERS = (dict, list)
_LONG = 1000  # characters of a text that is worth a first look for each secret
_MAX_FORMS = 250  # of secrets that are looked for one by one, which takes a tenth of the pattern's time
_SHORTEST = 6  # a shorter "secret" would also hit ordinary words
_PERCENT = re.compile("%[0-9A-F]{2}")


class Mask:
    """Replaces every configured secret anywhere in a value, and texts under names that only secrets have."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._forms: list[str] = []
        self._known: re.Pattern[str] | None = None
        self._in_logs: re.Pattern[str] | None = None
        self._log_secrets: set[str] = set()
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Add secrets, such as those of a plugin that is about to run."""
        new = {secret for secret in secrets if len(secret) >= _SHORTEST} - self._secrets
        if new:
            self._secrets |= new
            self._forms = _list_forms(self._secrets)
            self._known = _compile_pattern(self._forms)
            self._in_logs = _compile_pattern(_list_forms(self._secrets | self._log_secrets))

    def add_for_logs(self, secrets: Iterable[str]) -> None:
        """Add secrets that are masked in logs only: results carry them in links that must work."""
        new = {secret for secret in secrets if len(secret) >= _SHORTEST} - self._log_secrets
        if new:
            self._log_secrets |= new
            self._in_logs = _compile_pattern(_list_forms(self._secrets | self._log_secrets))

    @property
    def size(self) -> int:
        """Return the number of known secrets; it never shrinks."""
        return len(self._secrets)

    def text(self, text: str) -> str:
        if self._known is None:
            return text
        if isinstance(text, Message):
            return text.map_text(self.text)
        if len(text) > _LONG and len(self._forms) <= _MAX_FORMS and not any(form in text for form in self._forms):
            return text  # found out ten times faster than by the pattern
        return self._known.sub(MASK, text)

    def log_text(self, text: str) -> str:
        return self._in_logs.sub(MASK, text) if self._in_logs else text

    def log_json(self, value: Json) -> Json:
        """Mask a value for a log."""
        return _map_texts(self.json(value), self.log_text)

    def mask_known(self, value: Json) -> Json:
        """Mask the known secrets in a value, whatever its names are."""
        return value if self._known is None else _map_texts(value, self.text)

    def json(self, value: Json) -> Json:
        """Mask a value. Hot path: every call passes several times, so it is written for speed (bench row ``calls``)."""
        if isinstance(value, str):
            return self.text(value)
        known = self._known
        if isinstance(value, list):
            return [self.json(item) if known or isinstance(item, _CONTAINERS) else item for item in value]
        if not isinstance(value, dict):
            return value
        masked = dict(value) if known is None or not known.search("\n".join(value)) else _map_names(value, self.text)
        for key, inner in zip(list(masked), value.values(), strict=True):
            if isinstance(inner, str):
                if _is_short_secret_name(key) if len(key) <= _LONGEST_NAME else _is_secret_name(key):
                    masked[key] = MASK
                elif known:
                    masked[key] = known.sub(MASK, inner)
            elif isinstance(inner, _CONTAINERS):
                masked[key] = self.json(inner)
        return masked

    def describe(self, value: Json) -> "tuple[Json, list[HiddenText]]":
        """Mask a value for a person who decides: each mask says how long its text is. Also return what is hidden."""
        hidden: list[HiddenText] = []
        return self._describe(value, "", hidden), hidden

    def _describe(self, value: Json, at: str, hidden: "list[HiddenText]", *, secret: bool = False) -> Json:
        if isinstance(value, list):
            return [self._describe(inner, f"{at}/{number}", hidden) for number, inner in enumerate(value)]
        if isinstance(value, dict):
            return {
                key: self._describe(inner, f"{at}/{_escape_pointer(key)}", hidden, secret=_is_secret_name(key))
                for key, inner in _map_names(value, self.text).items()
            }
        if not isinstance(value, str):
            return value
        secrets = [value] if secret and value else self._known.findall(value) if self._known else []
        if secrets:
            from toolyard.protocol.records.approval_record import HiddenText  # most calls ask nobody

            hidden.append(HiddenText(at=at, characters=sum(map(len, secrets))))
        if secret and value:
            return describe_masked(len(value))
        return self._known.sub(lambda one: describe_masked(len(one[0])), value) if self._known and secrets else value

    def restore(self, sent: Json, stored: Json) -> Json:
        """Return ``sent`` with the masks that a client left unchanged replaced by the values of ``stored``."""
        return _restore(sent, stored, self.json(stored))


def _list_forms(secrets: Iterable[str]) -> list[str]:
    """Return every form in which the secrets may be written, the longest first."""
    return sorted({form for secret in secrets for form in _escaped_forms(secret)}, key=len, reverse=True)


def _compile_pattern(forms: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, forms)))


def _map_texts(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(item, change) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _map_texts(inner, change) for key, inner in _map_names(value, change).items()}


def _map_names(value: JsonObject, change: Callable[[str], str]) -> JsonObject:
    """Return an object with changed names, in their order; two that become alike stay two."""
    changed: JsonObject = {}
    for key, inner in value.items():
        name = new = change(key)
        number = 1
        while name in changed or (name != key and name in value):
            number += 1
            name = f"{new} {number}"
        changed[name] = inner
    return changed


def _escaped_forms(secret: str) -> Iterator[str]:
    """Yield a secret verbatim, as JSON and JSON inside JSON write it, as URLs write it, and as Base64 does."""
    yield secret
    yield from _percent_forms(secret)
    yield from _base64_forms(secret.encode(errors="surrogatepass"))
    for ascii_ in (False, True):
        once = json.dumps(secret, ensure_ascii=ascii_)[1:-1]
        yield from (once, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_)[1:-1])


def _percent_forms(secret: str) -> Iterator[str]:
    """Yield a secret as a path, a query and a form of a URL write it, in either case."""
    for form in (
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    ):
        yield from (form, _PERCENT.sub(lambda code: code[0].lower(), form))


def _base64_forms(secret: bytes) -> Iterator[str]:
    """Yield what Base64 always makes of a secret, alone or at any place in other bytes, as after "user:"."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(secret).decode()
        for before in range(3):
            whole = encode(bytes(before) + secret).decode()
            begin = -(-before * 8 // 6)  # a character that also has bits of what is before or after is left out
            yield whole[begin : (before + len(secret)) * 8 // 6]


def _restore(sent: Json, stored: Json, shown: Json) -> Json:
    if sent == shown:
        return stored
    if isinstance(sent, dict) and isinstance(stored, dict) and isinstance(shown, dict):
        names = dict(zip(shown, stored, strict=True))  # names are masked too, in their order
        return {
            names.get(key, key): _restore(value, stored.get(names.get(key, key)), shown.get(key))
            for key, value in sent.items()
        }
    if isinstance(sent, list) and isinstance(stored, list) and isinstance(shown, list) and len(sent) == len(stored):
        return [_restore(new, old, seen) for new, old, seen in zip(sent, stored, shown, strict=True)]
    return sent


def _escape_pointer(key: str) -> str:
    """Escape a key as a step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _is_secret_name(name: str) -> bool:
    return bool(_SECRET_NAME.search(name if name.islower() else _CAMEL.sub("_", name)))


_is_short_secret_name = lru_cache(1024)(_is_secret_name)


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
