"""Full results that were too long to show, stored in the output folder.

Each is stored twice under one name: ``.json`` has the envelope, ``.txt`` the text in pages. No name is ever used twice.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import count

from toolyard.crashpoint import crashpoint
from toolyard.protocol.truncation import StoredOutput
from toolyard.workspace.ignore import OUTPUT_FOLDER
from toolyard.workspace.output_folder import open_output_folder, remove_old_files, write_draft
from toolyard.workspace.workspace import Workspace

_NAME = re.compile(r"tool_\d{8}_\d{6}_[A-Za-z0-9_-]*(?:_\d+)?\.(?:json|txt)")


class Outputs:
    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root

    def save(self, tool: str, envelope: str, text: str, now: datetime) -> StoredOutput:
        """Store a result, its envelope as JSON and its text. Raises OSError when it cannot be stored."""
        with open_output_folder(self._root) as folder:
            remove_old_files(folder, _NAME, now)
            with write_draft(folder, envelope.encode()) as whole, write_draft(folder, text.encode()) as pages:
                crashpoint("output.draft-written")
                stem = _publish_pair(folder, whole, pages, _list_stems(tool, now))
            return StoredOutput(f"{OUTPUT_FOLDER}/{stem}.json", f"{OUTPUT_FOLDER}/{stem}.txt")


def _list_stems(tool: str, now: datetime) -> Iterator[str]:
    stem = f"tool_{now:%Y%m%d_%H%M%S}_{re.sub('[^A-Za-z0-9_-]', '', tool)[:64]}"
    yield stem
    yield from (f"{stem}_{number}" for number in count(2))


def _publish_pair(folder: int, whole: str, pages: str, stems: Iterator[str]) -> str:
    """Link both drafts under the first stem that is free for both."""
    for stem in stems:
        with suppress(FileExistsError):
            os.link(pages, f"{stem}.txt", src_dir_fd=folder, dst_dir_fd=folder)
            try:
                os.link(whole, f"{stem}.json", src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(f"{stem}.txt", dir_fd=folder)
                raise
            return stem
    raise FileExistsError  # the stems are endless
