"""Folders that VCPToolBox keeps in its root and its plugins share: pictures, diaries, results.

An old manifest declares nothing, so the folders that a plugin needs are read from its code: it names the folder, and
it names the project's root. A program that works in several processes needs their shared memory, which is a folder
too. A review shows all that, and the owner may allow fewer or more.
"""

import re
from dataclasses import dataclass, field

WRITABLE = frozenset({"image", "file", "dailynote", "knowledge", "VCPAsyncResults", "VCPTimedContacts", "DebugLog"})
SHARED_MEMORY = "/dev/shm"  # noqa: S108 where the locks of processes are files
READABLE = frozenset({"Agent", "TVStxt"})
_ROOT = re.compile(rb"""PROJECT_BASE_PATH|\.\./\.\.|['"]\.\.['"]|parent\.parent|parents\[""")
_FOLDER = re.compile(rb"""['"/](%s)['"/]""" % "|".join(sorted(WRITABLE | READABLE)).encode())
_PROCESSES = re.compile(rb"\bmultiprocessing\b|\bProcessPoolExecutor\b")


@dataclass(slots=True)
class FolderMentions:
    """The shared folders and the root that the code of a plugin has named so far."""

    names: set[str] = field(default_factory=set)
    names_root: bool = False
    shares_memory: bool = False

    def scan(self, code: bytes) -> None:
        self.names.update(match[1].decode() for match in _FOLDER.finditer(code))
        self.names_root = self.names_root or bool(_ROOT.search(code))
        self.shares_memory = self.shares_memory or bool(_PROCESSES.search(code))

    def result(self) -> frozenset[str]:
        folders = self.names if self.names_root else set()
        return frozenset({*folders, SHARED_MEMORY} if self.shares_memory else folders)
