"""The words of approvals: modes, states, effects of rules and reasons of decisions."""

from enum import StrEnum


class Mode(StrEnum):
    """The permission of chats, MCP clients and schedules."""

    ASK = "ask"  # reading runs, anything else asks
    AUTO = "auto"  # everything runs, but what touches a protected path asks
    READ_ONLY = "read-only"  # reading runs, anything else is refused
    DENY = "deny"  # nothing runs


class ApprovalState(StrEnum):
    """The state of an approval."""

    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"
    EXPIRED = "expired"  # nobody answered
    INTERRUPTED = "interrupted"  # the call that waited is gone


class DecisionReason(StrEnum):
    """The reason of a verdict; the risks of tools are reasons too."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    PROTECTED = "protected"
    ALLOW_RULE = "allow-rule"
    DENY_RULE = "deny-rule"
    AUTO_SAFE = "auto-safe"
    MODE = "mode"


class Effect(StrEnum):
    """The effect of a rule."""

    ALLOW = "allow"
    DENY = "deny"
