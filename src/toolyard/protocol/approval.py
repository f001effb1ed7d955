"""The words of approvals: modes, states, effects of rules."""

from enum import StrEnum


class Mode(StrEnum):
    """What a chat, an MCP client or a schedule may do."""

    ASK = "ask"  # reading runs, anything else asks
    AUTO = "auto"  # everything runs, but what touches a protected path asks
    READ_ONLY = "read-only"  # reading runs, anything else is refused
    DENY = "deny"  # nothing runs


class State(StrEnum):
    """Where an approval stands."""

    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"
    EXPIRED = "expired"  # nobody answered
    INTERRUPTED = "interrupted"  # the call that asked is gone


class Effect(StrEnum):
    """What a rule says."""

    ALLOW = "allow"
    DENY = "deny"
