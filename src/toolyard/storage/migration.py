"""A step from one format of a store to the next.

A store has a tuple of them, and its format is how many of them it has been through. To change the tables of a store,
append a migration to its tuple: never change one that was released. The first makes the tables of format 1.
"""

from typing import NamedTuple


class Migration(NamedTuple):
    summary: str  # what is different afterwards
    sql: str  # statements, each ended by ";"; none when only the meaning of what is stored changes

    def statements(self) -> list[str]:
        return [statement for part in self.sql.split(";") if (statement := part.strip())]
