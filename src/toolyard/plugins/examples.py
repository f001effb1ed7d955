"""The example calls in a manifest: the request blocks of its examples and descriptions, parsed as a model's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifest import Command, Manifest
from toolyard.protocol.manifests.manifest_json import JsonPath
from toolyard.protocol.markers import parse_requests

COMMANDS = ("capabilities", "invocationCommands")
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    path: JsonPath  # of the text that has it
    command: Command
    tool: str = ""
    arguments: JsonObject = field(default_factory=dict)
    problem: str = ""  # why it is no call

    @property
    def is_template(self) -> bool:
        """True when it is in a description, where blocks often show the form only."""
        return self.path[-1] == "description"


def parse_examples(manifest: Manifest) -> Iterator[Example]:
    """Yield every request block, in the order of the manifest."""
    for number, command in enumerate(manifest.commands):
        for name in ("description", "example"):
            path: JsonPath = (*COMMANDS, number, name)
            for request in parse_requests(_FENCE.sub("", getattr(command, name))):
                if request["ok"]:
                    arguments = request["args"] if isinstance(request["args"], dict) else {}
                    yield Example(path=path, command=command, tool=str(request["tool"]), arguments=arguments)
                else:
                    yield Example(
                        path=path, command=command, tool=str(request["tool"]), problem=str(request["problem"])
                    )
