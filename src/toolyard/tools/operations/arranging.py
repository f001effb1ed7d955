"""CopyFile, MoveFile, RenameFile, DeleteFile and CreateDirectory: where things are."""

from toolyard.message import Message, join_sentences
from toolyard.protocol.tool import Result
from toolyard.tools.operations.command import Request
from toolyard.workspace.changes.arranger import Arranger, Placement
from toolyard.workspace.changes.trash import RETENTION, Trash
from toolyard.workspace.changes.undo import Undo
from toolyard.workspace.changes.undo_records import Deleted


def describe_taken_name(placed: Placement) -> Message:
    return Message("The name '{name}' was taken.", name=placed.requested)


class Arranging:
    def __init__(self, arranger: Arranger, trash: Trash, undo: Undo) -> None:
        self._arranger, self._trash, self._undo = arranger, trash, undo

    def copy_file(self, request: Request) -> Result:
        source, destination = request["source"], request["destination"]
        placed = self._arranger.copy(source, destination, request.checkpoint, access=request.access)
        return self._build_result(
            request, placed, Message("Copied '{source}' to '{path}'.", source=source, path=placed.path)
        )

    def move_file(self, request: Request) -> Result:
        source, destination = request["source"], request["destination"]
        placed = self._arranger.move(source, destination, request.checkpoint, access=request.access)
        return self._build_result(
            request, placed, Message("Moved '{source}' to '{path}'.", source=source, path=placed.path)
        )

    def rename_file(self, request: Request) -> Result:
        source, destination = request["source"], request["destination"]
        placed = self._arranger.move(source, destination, request.checkpoint, exactly=True, access=request.access)
        return self._build_result(
            request, placed, Message("Renamed '{source}' to '{path}'.", source=source, path=placed.path)
        )

    def delete_file(self, request: Request) -> Result:
        trashed = self._trash.move_to_trash(request["path"], request.checkpoint, access=request.access)
        self._undo.record_changes(request.call.id, [Deleted(trashed.path, trashed.id)])
        return Result(
            data={"applied": True, "path": trashed.path, "trash_id": trashed.id},
            text=Message(
                "Deleted '{path}'. It is kept for {days} days in the trash as {id}.",
                path=trashed.path,
                days=RETENTION.days,
                id=trashed.id,
            ),
            context={"path_resolved": trashed.path},
        )

    def create_directory(self, request: Request) -> Result:
        folder = self._arranger.make_folder(request["path"], access=request.access)
        path, made = folder.path, folder.made > 0
        if made:
            self._undo.record_changes(request.call.id, [folder])
        return Result(
            data={"applied": True, "path": path, "created": made},
            text=Message("Created the folder '{path}'.", path=path)
            if made
            else Message("The folder '{path}' exists already.", path=path),
            context={"path_resolved": path},
        )

    def _build_result(self, request: Request, placed: Placement, done: str) -> Result:
        self._undo.record_changes(request.call.id, [placed.change])
        if placed.is_renamed:
            done = join_sentences(done, describe_taken_name(placed))
        return Result(
            data={
                "applied": True,
                "source": request["source"],
                "path": placed.path,
                "originalPath": placed.requested,
                "renamed": placed.is_renamed,
            },
            text=done,
            context={"path_resolved": placed.path},
        )
