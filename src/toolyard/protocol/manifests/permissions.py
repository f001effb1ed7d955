"""The field ``permissions`` of a manifest: what a plugin may reach. It protects, so whatever is wrong in it refuses."""

from collections.abc import Iterator

from toolyard.message import Message
from toolyard.protocol.access import ANY_HOST, Access, ConfinementLevel, ProjectAccess
from toolyard.protocol.arguments import find_nearest
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.allowed_hosts import AllowedHosts
from toolyard.protocol.manifests.fields import Fields

_KEYS = ("project", "read", "write", "ownFolder", "network", "unixSockets", "confinement")
_MAX_ENTRIES = 100


def parse_permissions(fields: Fields) -> Access | None:
    """Return the declared access; None without one, and for the list of words that old manifests may have."""
    value = fields.value.get("permissions")
    if value is None or isinstance(value, list):
        return None
    inner = fields.nested("permissions", vital=True)
    _note_unknown(inner)
    return Access(
        project=_parse_folder_access(inner, "project", ProjectAccess.NONE),
        read=tuple(_parse_paths(inner, "read")),
        write=tuple(_parse_paths(inner, "write")),
        own_folder=_parse_folder_access(inner, "ownFolder", ProjectAccess.READ),
        network=_parse_network(inner),
        unix_sockets=inner.flag("unixSockets", default=False, vital=True),
        minimum=_parse_minimum(inner),
    )


def _note_unknown(fields: Fields) -> None:
    """Refuse a misspelt permission, which would protect less than was meant; warn of any other unknown one."""
    for name in (name for name in fields.value if name not in _KEYS):
        message = Message("manifest.unknown_permission", "'{name}' is not a permission.", name=name)
        if meant := find_nearest(name, _KEYS):
            fix = Message("manifest.did_you_mean_key", "Did you mean '{meant}'?", meant=meant)
            fields.note(name, message, fix, warning=False)
        else:
            known = Message("manifest.known_permissions", "Known are {known}.", known=", ".join(_KEYS))
            fields.note(name, message, known)


def _parse_folder_access(fields: Fields, name: str, default: ProjectAccess) -> ProjectAccess:
    value = fields.value.get(name)
    if value is None:
        return default
    if isinstance(value, str) and value in list(ProjectAccess):
        return ProjectAccess(value)
    _refuse(fields, name, Message("manifest.access_words", '"none", "read" or "write"'))
    return default


def _parse_paths(fields: Fields, name: str) -> Iterator[str]:
    expected = Message("manifest.list_of_paths", "a list of paths: absolute, or relative to the project")
    for text in _parse_list(fields, name, expected):
        if "\0" in text or ".." in text.split("/") or text.startswith("~"):
            _refuse(fields, name, expected)
        else:
            yield text


def _parse_network(fields: Fields) -> tuple[str, ...] | None:
    value = fields.value.get("network")
    if value is None:
        return None
    if value == "any":
        return ANY_HOST
    expected = Message(
        "manifest.list_of_hosts", '"any", or a list of hosts such as "api.example.com" or "*.example.com:8443"'
    )
    hosts = tuple(_parse_list(fields, "network", expected))
    try:
        AllowedHosts.parse(hosts)
    except ValueError:
        _refuse(fields, "network", expected)
    return hosts


def _parse_minimum(fields: Fields) -> ConfinementLevel:
    value = fields.value.get("confinement")
    if isinstance(value, str) and value in list(ConfinementLevel):
        return ConfinementLevel(value)
    if value is not None:
        _refuse(fields, "confinement", Message("manifest.level_words", '"none", "files" or "full"'))
    return ConfinementLevel.NONE


def _parse_list(fields: Fields, name: str, expected: Message) -> list[str]:
    value: Json = fields.value.get(name)
    if value is None:
        return []
    if isinstance(value, list) and len(value) <= _MAX_ENTRIES:
        texts = [item for item in value if isinstance(item, str) and item]
        if len(texts) == len(value):
            return texts
    _refuse(fields, name, expected)
    return []


def _refuse(fields: Fields, name: str, expected: Message) -> None:
    fields.note(
        name,
        Message("manifest.wrong_permission", "'permissions.{name}' is not what it has to be.", name=name),
        Message("manifest.write_permission", "Write {expected}.", expected=expected),
        warning=False,
    )
