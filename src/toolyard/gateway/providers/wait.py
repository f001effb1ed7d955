"""A wait for a model provider: the pause before it is asked again, or the turn to another provider."""

from collections.abc import Callable
from dataclasses import dataclass

from toolyard.gateway.faults import ChatFault
from toolyard.protocol.json import JsonObject

_PREFIX = "upstream_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderWait:
    provider: str
    fault: ChatFault  # the reason
    pause_s: float = 0.0
    attempt: int = 0  # the number of the next attempt at this provider, and of how many
    attempts: int = 0
    next_provider: str = ""  # asked instead

    def to_event(self) -> JsonObject:
        """Return the wait for clients that draw it; ``status`` is the provider's own, if it answered with one."""
        status = self.fault.code.removeprefix(_PREFIX)
        event: JsonObject = {
            "type": "provider.fallback" if self.next_provider else "provider.retry",
            "provider": self.provider,
            "code": self.fault.code,
            "status": int(status) if status.isdecimal() else None,
        }
        if self.next_provider:
            return event | {"next": self.next_provider}
        return event | {"pause_s": round(self.pause_s, 3), "attempt": self.attempt, "attempts": self.attempts}


WaitListener = Callable[[ProviderWait], None]


def ignore_wait(_: ProviderWait) -> None:
    """Do nothing, for callers whose client is not told."""
