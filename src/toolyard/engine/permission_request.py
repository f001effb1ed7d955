"""A permission request: one call with all that decides whether it may run."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Final

from toolyard.protocol.call import ToolCall, fold_name
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Risk, ToolSpec

_COMMAND = re.compile(r"command[0-9]*")
MAX_RULE_COMMAND: Final = 2000  # characters of the command, or the arguments, that a rule is about


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    call: ToolCall
    spec: ToolSpec
    fingerprint: str = ""  # of the plugin as it was reviewed
    touches_protected: bool = False  # it names a place that always needs a person's approval to write
    is_unattended: bool = False  # a person lets undoable calls of this chat run without asking

    @property
    def commands(self) -> tuple[str, ...]:
        """Return what a rule names: the commands, or of a tool with exact approval the complete arguments."""
        if self.spec.exact_approval:
            return (write_exact_arguments(self.call.arguments),)
        return find_commands(self.call.arguments)

    @property
    def asks_always(self) -> bool:
        """Return whether no rule can allow it."""
        return self.writes_protected or (
            self.spec.exact_approval
            and any(fold_name(name) in map(fold_name, self.spec.ask_always_with) for name in self.call.arguments)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name of the tool: a rule for one of them holds for all."""
        return tuple(dict.fromkeys((self.call.tool, self.spec.name, *self.spec.aliases)))

    @property
    def writes_protected(self) -> bool:
        """Return whether it writes to a place that always needs a person's approval."""
        return self.touches_protected and not self.is_read_only

    @property
    def is_read_only(self) -> bool:
        """Return whether it only reads."""
        looks = self.spec.reading_commands
        return self.spec.risk is Risk.READ or (bool(self.commands) and all(name in looks for name in self.commands))

    @property
    def fits_one_rule(self) -> bool:
        """Return whether one rule can express this request: for one command, and never for a protected place.

        A rule without a command is for all of them: it is never made from a call that names none, or an empty one, of
        a tool that has some.
        """
        if self.asks_always:
            return False
        if self.spec.exact_approval:
            return len(self.commands[0]) <= MAX_RULE_COMMAND
        if self.commands:
            return len(self.commands) == 1 and self.commands[0] != ""
        return not any(_COMMAND.fullmatch(fold_name(name)) for name in self.spec.parameter_names)

    @property
    def digest(self) -> str:
        parts = [self.call.tool, self.call.arguments, self.fingerprint, self.call.caller]
        if self.writes_protected:  # a yes from before a path led there is no yes for it now
            parts.append("protected")
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def write_exact_arguments(arguments: JsonObject) -> str:
    """Return arguments as one text that is the same for the same arguments, and for no others."""
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False)


def find_commands(arguments: JsonObject) -> tuple[str, ...]:
    """Return the commands that the arguments name: one, or several of a numbered batch."""
    named = (value for key, value in arguments.items() if _COMMAND.fullmatch(fold_name(key)))
    return tuple(dict.fromkeys(str(value) for value in named))
