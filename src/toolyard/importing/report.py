"""The report of an import: the items that were taken or left out, and why."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ItemKind(StrEnum):
    PLUGIN = "plugin"
    RULE = "rule"
    SCHEDULE = "schedule"
    TASK = "task"
    VARIABLE = "variable"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Item:
    what: ItemKind
    name: str
    why: str = ""


@dataclass(slots=True)
class ImportReport:
    took: list[Item] = field(default_factory=list)
    left: list[Item] = field(default_factory=list)
    shared_keys: dict[str, list[str]] = field(default_factory=dict)  # for the owner to write into config.toml

    def take(self, what: ItemKind, name: str, why: str = "") -> None:
        self.took.append(Item(what, name, why))

    def leave(self, what: ItemKind, name: str, why: str) -> None:
        self.left.append(Item(what, name, why))

    def to_dict(self) -> dict[str, Any]:
        def to_json(items: list[Item]) -> list[dict[str, str]]:
            return [{"what": item.what.value, "name": item.name, "why": item.why} for item in items]

        return {"took": to_json(self.took), "left": to_json(self.left), "shared_keys": self.shared_keys}
