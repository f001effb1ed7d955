"""Commands of Toolyard in hints, with the options that reach the home which a hint is about."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """The command line of Toolyard for one home."""

    home: Path | None = None  # None: the default one, which needs no option

    def format(self, words: str) -> str:
        """Return a command that can be pasted into any shell of this user, such as ``toolyard doctor``."""
        return f"toolyard {words}{self.home_option}"

    @property
    def home_option(self) -> str:
        """The option that reaches the home, with a space before it; empty for the default home."""
        if self.home is None:
            return ""
        import shlex  # only a hint needs it

        return f" --home {shlex.quote(str(self.home))}"


FOR_DEFAULT_HOME: Final = OwnCommand()
