"""Access and permission in words: what a program may reach, how far that is enforced, what calls may run unasked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ConfinementLevel(StrEnum):
    """The extent to which a program is confined to its access. Levels are ordered: see ``reaches``."""

    NONE = "none"
    FILES = "files"  # files, memory and privileges are; something else is not
    FULL = "full"

    def reaches(self, minimum: "ConfinementLevel") -> bool:
        order = list(ConfinementLevel)
        return order.index(self) >= order.index(minimum)


class ConfinementRule(StrEnum):
    """The operator's rule for all programs: run them as far confined as this machine can, or not below a level."""

    AVAILABLE = "available"
    FILES = "files"
    REQUIRED = "required"

    @property
    def minimum(self) -> ConfinementLevel:
        levels = {self.FILES: ConfinementLevel.FILES, self.REQUIRED: ConfinementLevel.FULL}
        return levels.get(self, ConfinementLevel.NONE)


class ProjectAccess(StrEnum):
    NONE = "none"
    READ = "read"
    WRITE = "write"


class AccessChoice(StrEnum):
    """The owner's decision on what a plugin may reach."""

    STRICT = "strict"  # nothing beyond its own folder and its data folder, whatever it declares
    DECLARED = "declared"  # what its manifest declares, or what an old plugin seems to need
    READ_PROJECT = "read-project"  # also every file of the project, without changing it
    INSTALLATION = "installation"  # for a plugin of a VCPToolBox installation: reads all of it, writes what is shared
    WIDE = "wide"  # also the project, any host, local sockets, and the folders for temporary files of all programs
    UNCONFINED = "unconfined"  # everything that Toolyard itself can reach


ANY_HOST: Final = ("*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Everything that a program may reach beyond the system, its interpreter, its own folder and its data folder."""

    project: ProjectAccess = ProjectAccess.NONE
    read: tuple[str, ...] = ()  # paths: absolute, or relative to the project
    write: tuple[str, ...] = ()
    own_folder: ProjectAccess = ProjectAccess.READ
    network: tuple[str, ...] | None = None  # hosts; empty: none; None: it does not say
    unix_sockets: bool = False
    minimum: ConfinementLevel = ConfinementLevel.NONE


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
