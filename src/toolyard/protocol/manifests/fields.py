"""The members of one object of a manifest, read by their types.

What has a wrong type is noted with its path and counts as missing. It is a warning, as long as the plugin runs without
it just as safely; a field that protects or that nothing works without is ``vital``: then the manifest is refused.
"""

import json
import math
from collections.abc import Collection, Iterator

from toolyard.message import Message
from toolyard.protocol.arguments import find_nearest
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest_json import Fault, JsonPath

_WORDS = {
    bool: Message("manifest.true_or_false", "true or false"),
    int: Message("manifest.number", "a number"),
    float: Message("manifest.number", "a number"),
    str: Message("manifest.text", "a text"),
    list: Message("manifest.list", "a list"),
    dict: Message("manifest.object", "an object"),
}


class Fields:
    def __init__(self, value: JsonObject, path: JsonPath, faults: list[Fault]) -> None:
        self.value, self.path, self.faults = value, path, faults

    def note(self, name: str | int | None, message: str, fix: str, *, warning: bool = True) -> None:
        path = self.path if name is None else (*self.path, name)
        self.faults.append(Fault(message=message, fix=fix, path=path, warning=warning))

    def note_missing(self, name: str, fix: str, known: Collection[str]) -> None:
        """Refuse an object without this member, and name a misspelt one that is not ``known``."""
        full_name = ".".join(str(part) for part in (*self.path, name))
        written = find_nearest(name, [key for key in self.value if key not in known])
        if written is None:
            self.note(None, Message("manifest.missing", "'{name}' is missing.", name=full_name), fix, warning=False)
        else:
            message = Message(
                "manifest.misspelt_key",
                "'{full_name}' is missing, and '{written}' is not known.",
                full_name=full_name,
                written=written,
            )
            self.note(
                written,
                message,
                Message("manifest.write_instead", "Did you mean '{name}'? Write it instead.", name=name),
                warning=False,
            )

    def note_misspelt(self, known: Collection[str]) -> None:
        """Warn of unknown members that are almost spelt like an absent known one."""
        absent = [name for name in known if name not in self.value]
        noted = {fault.path for fault in self.faults}
        for name in self.value:
            if name in known or (*self.path, name) in noted:
                continue
            if meant := find_nearest(name, absent, like=0.8):
                self.note(
                    name,
                    Message("manifest.unknown_key", "'{name}' is not known. It is ignored.", name=name),
                    Message("manifest.did_you_mean_key", "Did you mean '{meant}'?", meant=meant),
                )

    def text(self, name: str, default: str = "") -> str:
        value = self.value.get(name)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool):
            return json.dumps(value)
        if not isinstance(value, str):
            self._note_wrong_type(name, Message("manifest.text", "a text"), vital=False)
            return default
        return value

    def flag(self, name: str, *, default: bool, vital: bool = False) -> bool:
        value = self.value.get(name)
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        if isinstance(value, bool):
            return value
        if value is not None:
            self._note_wrong_type(name, Message("manifest.true_or_false", "true or false"), vital=vital)
        return default

    def number(self, name: str, low: float, high: float, *, integer: bool = False, vital: bool = False) -> float | None:
        """Return a number, also one written as text; None when it is missing or not from ``low`` to ``high``."""
        value = self.value.get(name)
        if value is None:
            return None
        number = to_number(value)
        if number is None or not low <= number <= high or (integer and not number.is_integer()):
            kind = (
                Message("manifest.whole_number", "a whole number")
                if integer
                else Message("manifest.number", "a number")
            )
            self._note_wrong_type(
                name,
                Message("manifest.number_in_range", "{kind} from {low:g} to {high:g}", kind=kind, low=low, high=high),
                vital=vital,
            )
            return None
        return number

    def nested(self, name: str, *, vital: bool = False) -> "Fields":
        value = self.value.get(name)
        if value is not None and not isinstance(value, dict):
            self._note_wrong_type(name, Message("manifest.object", "an object"), vital=vital)
        return Fields(value if isinstance(value, dict) else {}, (*self.path, name), self.faults)

    def items(self, name: str) -> Iterator[tuple[int, Json]]:
        value = self.value.get(name)
        if value is not None and not isinstance(value, list):
            self._note_wrong_type(name, Message("manifest.list", "a list"), vital=False)
        yield from enumerate(value if isinstance(value, list) else [])

    def _note_wrong_type(self, name: str, expected: str, *, vital: bool) -> None:
        value = self.value[name]
        shown_value = (
            json.dumps(value, ensure_ascii=False) if isinstance(value, str | int | float) else describe_kind(value)
        )
        shown_value = shown_value if len(shown_value) <= 60 else shown_value[:57] + "..."
        message = (
            Message("manifest.wrong_value", "'{name}' is {value}.", name=name, value=shown_value)
            if vital
            else Message("manifest.ignored_value", "'{name}' is {value}. It is ignored.", name=name, value=shown_value)
        )
        self.note(
            name,
            message,
            Message("manifest.make_or_remove", "Make it {expected}, or remove it.", expected=expected),
            warning=not vital,
        )


def to_number(value: Json) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def describe_kind(value: Json) -> str:
    return "null" if value is None else _WORDS[type(value)]
