"""Next steps after a failure, added by the host where the plugin itself names none (002 §4).

Whether its confinement stopped it, and in which respect, shows in what it printed.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolyard.confinement.profile import Network, Profile
from toolyard.message import Message, join_sentences
from toolyard.own_command import OwnCommand
from toolyard.plugins.package.plugin_settings import PluginSetting
from toolyard.protocol.envelope import Failure
from toolyard.protocol.plugin_answers.plugin_result import has_next_step, step_after_error

_BREAK = re.compile(r"[^a-z0-9]+")
REFUSED_PATHS: Final = "refused_paths"  # in the context of a result or failure
_PRINTED = ("stderr", "stdout")  # in the data of a failure
_REFUSED = re.compile(r"Permission denied|Operation not permitted|Read-only file system|\bE(?:ACCES|PERM|ROFS)\b", re.I)
_UNREACHABLE = re.compile(
    r"Network is unreachable|Temporary failure in name resolution|Name or service not known|Could not resolve host"
    r"|Toolyard's proxy|\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND)\b",
    re.I,
)
_NETWORK_WORDS = re.compile(r"\b(?:connect\w*|sockets?|urlopen|https?|network|fetch|dns|getaddrinfo)\b", re.I)


@dataclass(frozen=True, slots=True)
class PluginAdvisor:
    """The facts about a plugin by which a failure of it is explained."""

    plugin: str
    settings: Sequence[PluginSetting]
    profile: Profile | None  # that it ran under
    own_command: OwnCommand
    missing_paths: Sequence[str] = ()  # that it may write, and that do not exist
    refused_host: str = ""  # that it was just kept from

    def add_next_step(self, failure: Failure) -> None:
        """Add a next step to a failure that has none: the settings or the access it is about, else its arguments."""
        step = self._suggest_settings(failure) or self._suggest_access(failure)
        if not step and (failure.hint or has_next_step(failure.text or failure.message)):
            return
        failure.hint = join_sentences(failure.hint, step or step_after_error(self.plugin))

    def _suggest_settings(self, failure: Failure) -> str:
        lacking = [one.key for one in self.settings if one.is_missing and _is_about(failure, one.key)]
        if not lacking:
            return ""
        return Message("It needs settings that its owner has not set: {names}.", names=", ".join(lacking))

    def _suggest_access(self, failure: Failure) -> str:
        if self.profile is None:
            return ""
        limited = self.profile.network is not Network.ANY
        texts = (failure.message, failure.text, *_printed_texts(failure))
        refused = failure.context.get(REFUSED_PATHS)
        if isinstance(refused, list) and not self.refused_host:
            return join_sentences(
                describe_refusal([str(path) for path in refused]), allow_more(self.plugin, self.own_command)
            )
        denial = AccessDenial.NETWORK if self.refused_host else find_denial(texts, limited_network=limited)
        if denial is None:
            return ""
        more = allow_more(self.plugin, self.own_command)
        if denial is AccessDenial.NETWORK:
            host = self.refused_host or Message("that host")
            why = Message(
                "Its access does not include {host}: permissions.network in its manifest names those it may reach.",
                host=host,
            )
        elif self.missing_paths:
            why = Message("It may write {paths}, which does not exist: create it.", paths=", ".join(self.missing_paths))
        else:
            why = Message("It tried to reach something that its access does not include.")
        return join_sentences(why, more)


def describe_refusal(paths: Sequence[str]) -> Message:
    """Say which files a plugin was kept from, whatever it made of that."""
    return Message("Its access does not include {paths}, which it tried to reach.", paths=", ".join(paths))


def allow_more(plugin: str, own_command: OwnCommand) -> Message:
    """Say how the owner of a plugin allows it more."""
    allow = own_command.format("plugin allow", plugin, "--access", "wide")
    return Message("Its owner can allow more: {command}.", command=allow)


def _printed_texts(failure: Failure) -> tuple[str, ...]:
    return tuple(str(failure.data.get(name, "")) for name in _PRINTED)


def _is_about(failure: Failure, key: str) -> bool:
    """Return whether a failure mentions a setting: by its name, also in printed text, or by all its words together."""
    words = [word for word in _BREAK.split(key.lower()) if word]
    phrase = re.compile(r"[\W_]*".join(map(re.escape, words)), re.IGNORECASE)
    return any(key in text for text in (failure.message, *_printed_texts(failure))) or bool(
        words and phrase.search(failure.message)
    )


class AccessDenial(StrEnum):
    """The part of its access that a program seems to lack."""

    FILES = "files"
    NETWORK = "network"


def find_denial(texts: Iterable[str], *, limited_network: bool) -> AccessDenial | None:
    """Return what a confined program seems to lack; None: nothing of that.

    A program whose network is open cannot lack it; one without any is told EACCES when it makes a socket.
    """
    for text in texts:
        refused = _REFUSED.search(text)
        if limited_network and (_UNREACHABLE.search(text) or (refused and _NETWORK_WORDS.search(text))):
            return AccessDenial.NETWORK
        if refused:
            return AccessDenial.FILES
    return None
