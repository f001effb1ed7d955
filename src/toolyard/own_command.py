"""Commands of Toolyard in hints, with the options that reach what a hint is about, from any shell and any folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """The command line of Toolyard for one home and, where it matters, one project."""

    home: Path | None = None  # None: the default one, which needs no option
    project: Path | None = None  # None: the folder in which whoever reads the hint stands
    plugins: tuple[Path, ...] = ()  # the plugin folders that were given for this run

    def format(self, words: str, *arguments: str) -> str:
        """Return a command that can be pasted into any shell of this user, such as ``toolyard doctor``.

        The ``arguments`` follow the words, quoted where a shell needs that.
        """
        import shlex  # only a hint needs it

        return f"toolyard {' '.join([words, *map(shlex.quote, arguments)])}{self.options}"

    @property
    def for_home(self) -> "OwnCommand":
        """The command for what belongs to the home, whatever the project: keys, approvals, a call by its id."""
        return OwnCommand(self.home)

    def in_project(self, project: str) -> "OwnCommand":
        """Return the command for another project of the same home."""
        return OwnCommand(self.home, Path(project))

    @property
    def options(self) -> str:
        """The options that every command needs, with a space before each; empty if it needs none."""
        import shlex

        folders = (("home", self.home), ("project", self.project), *(("plugins", folder) for folder in self.plugins))
        return "".join(f" --{name} {shlex.quote(str(folder))}" for name, folder in folders if folder is not None)


FOR_DEFAULT_HOME: Final = OwnCommand()
