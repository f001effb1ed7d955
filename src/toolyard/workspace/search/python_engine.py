"""The search engine for hosts without ripgrep: our own interpreter, with nothing but this package."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from toolyard.workspace.search.batch import Batch
from toolyard.workspace.search.process import SearchProcess
from toolyard.workspace.search.ripgrep import Query

_PACKAGES = str(Path(__file__).parents[3])
_RUN = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from toolyard.workspace.search.python_search import main; main()"
)  # fmt: skip


class PythonEngine:
    first_batch = largest_batch = 4000  # one interpreter's work for some tens of milliseconds, so that starting it pays
    parallel_batches = min(os.cpu_count() or 1, 8)

    def search(self, query: Query, batch: Batch, folder: int) -> SearchProcess:
        from tempfile import TemporaryFile  # slow to import and seldom needed

        pieces = [(piece.below, list(piece.files), piece.whole) for piece in batch.parts]
        with TemporaryFile() as job:  # not a pipe: it must not wait for us while we wait for it
            job.write(json.dumps(pieces).encode())
            job.seek(0)
            return SearchProcess(_build_command(query, "batch"), folder, stdin=job)

    def search_file(self, query: Query, file: int, folder: int) -> SearchProcess:
        return SearchProcess(_build_command(query, "file"), folder, stdin=file)


def _build_command(query: Query, mode: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _RUN, _PACKAGES, json.dumps(asdict(query)), mode]
