"""One call as those see it who decide whether it may run."""

import hashlib
import json
import re
from dataclasses import dataclass

from toolyard.protocol.call import ToolCall, fold_name
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Risk, ToolSpec

_COMMAND = re.compile(r"command[0-9]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    call: ToolCall
    spec: ToolSpec
    fingerprint: str = ""  # of the plugin as it was reviewed
    touches_protected: bool = False  # it names a place where only a person may let it write
    unattended: bool = False  # a person lets such calls of this chat run: all that it does can be undone

    @property
    def commands(self) -> tuple[str, ...]:
        return commands_in(self.call.arguments)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of the tool: a rule for one of them holds for all."""
        return tuple(dict.fromkeys((self.call.tool, self.spec.name, *self.spec.aliases)))

    @property
    def protected(self) -> bool:
        """Whether it writes where only a person may say so."""
        return self.touches_protected and not self.reads

    @property
    def reads(self) -> bool:
        """Whether it only looks."""
        looks = self.spec.reading_commands
        return self.spec.risk is Risk.READ or (bool(self.commands) and all(name in looks for name in self.commands))

    @property
    def fits_one_rule(self) -> bool:
        """Whether one rule can say what is asked: for one command, and never for a protected place.

        A rule without a command is for all of them: it is never made from a call that names none, or an empty one, of
        a tool that has some.
        """
        if self.protected:
            return False
        if self.commands:
            return len(self.commands) == 1 and self.commands[0] != ""
        return not any(_COMMAND.fullmatch(fold_name(name)) for name in self.spec.parameter_names)

    @property
    def digest(self) -> str:
        parts = [self.call.tool, self.call.arguments, self.fingerprint, self.call.caller]
        if self.protected:  # a yes from before a path led there is no yes for it now
            parts.append("protected")
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def commands_in(arguments: JsonObject) -> tuple[str, ...]:
    """What a tool of several commands is asked to do: one of them, or each of a numbered batch."""
    named = (value for key, value in arguments.items() if _COMMAND.fullmatch(fold_name(key)))
    return tuple(dict.fromkeys(str(value) for value in named))
