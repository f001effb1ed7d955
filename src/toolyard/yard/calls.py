"""The calls of a Yard: requested, permitted, settled, found again, cancelled and undone.

A call from a chat whose client lets undoable changes run unattended is judged in the ``UnattendedQueue``. What one of
them does can be undone as the files were when it was judged, so no other one may change them meanwhile. A call that is
not let through waits for a person and holds up nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from toolyard.engine.cancellation import CancelScope
from toolyard.engine.registry import Registry
from toolyard.engine.runner import FindProcess, KeepMedia, Runner, check_call
from toolyard.errors import UsageError
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.tool import Origin, Outcome, ToolCall, ToolSpec, find_signer, parse_arguments
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.changes.protected_paths import leads_to_protected_path
from toolyard.yard.built_in import BuiltInTools
from toolyard.yard.state import Basis, State

if TYPE_CHECKING:
    from toolyard.engine.rules import PermissionRequest
    from toolyard.tools.unattended import Unattended
    from toolyard.workspace.changes.file_versions import FileVersions
    from toolyard.workspace.changes.undo import UndoneFiles

Arguments: TypeAlias = Mapping[str, Any] | str
"""The arguments of a call; as a text, the JSON that a model wrote."""
_UNDO_S = 60.0  # to wait for other writers, all in all


class Calls:
    """``list_guarded`` are the plugins and programs that no unattended call may change."""

    def __init__(
        self,
        basis: Basis,
        state: State,
        tools: Registry,
        built_in: BuiltInTools,
        *,
        processes: FindProcess,
        keep_media: KeepMedia,
        list_guarded: Callable[[], Iterable[Path]],
    ) -> None:
        self._basis, self._state, self._tools, self._built_in = basis, state, tools, built_in
        self._list_guarded = list_guarded
        self._runner = Runner(
            tools,
            root=basis.project,
            clock=basis.clock,
            journal=state.journal,
            mask=basis.mask,
            permit=self._permit,
            processes=processes,
            keep_media=keep_media,
        )
        self._unattended_queue = UnattendedQueue()
        self._caller = f"yard:{uuid4().hex}"
        self._closed = False

    def request(
        self,
        tool: str,
        arguments: Arguments,
        *,
        caller: str | None = None,
        origin: Origin = Origin.PYTHON,
        force: bool = False,
        tool_call_id: str = "",
    ) -> ToolCall:
        """Make a call; arguments that a model wrote as text and that are no JSON fail when it is settled."""
        _require_call(tool, arguments)
        values, problem = parse_arguments(arguments) if isinstance(arguments, str) else (dict(arguments), "")
        return ToolCall(
            id=f"call_{uuid4().hex}",
            tool=self._tools.resolve_name(tool),
            use_id=tool_call_id,
            arguments=values,
            maid=find_signer(values),
            caller=caller or self._caller,
            origin=origin,
            force=force,
            unreadable=problem,
        )

    async def settle(self, call: ToolCall) -> Outcome:
        self._require_open()
        try:
            return await self._runner.settle(call)
        finally:
            self._unattended_queue.release(call.id)

    async def find_outcome(self, call: ToolCall) -> Outcome | None:
        """Return the outcome of a call that began before, after it has ended if it runs here; None: it never began."""
        running = self._runner.find_running(call.id)
        if running is not None:
            return await asyncio.shield(running)
        return await self._state.journal.find_outcome(call, root=self._basis.project)

    async def submit(self, call: ToolCall, *, at: str = "", cron: str = "") -> Outcome:
        """Run a call later, as ``timely_contact`` asks for: the receipt, or why not."""
        envelope = await self._state.schedules.submit_for_receipt(call, at=at, cron=cron)
        return Outcome(envelope=envelope, root=self._basis.project, arguments=call.arguments)

    def cancel(self, call_id: str) -> bool:
        """Stop a running call; False when it does not run here."""
        return self._runner.cancel(call_id)

    async def stop(self) -> None:
        """Cancel every call and wait until they have ended; bounded."""
        await self._runner.stop()

    async def close(self) -> None:
        """Run no call from now on, and stop those that run."""
        self._closed = True
        await self.stop()

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("this Yard is closed: open another one with toolyard.open_async()")

    # --- permission ---

    async def build_permission_request(self, call: ToolCall, spec: ToolSpec) -> "PermissionRequest":
        """Return the call with what decides about it: a path counts by where it leads."""
        from toolyard.engine.rules import PermissionRequest

        ask = PermissionRequest(call=call, spec=spec, fingerprint=spec.fingerprint)
        if ask.is_read_only:
            return ask
        find_destinations = self._basis.workspace.list_destinations
        touches = await in_thread(lambda: leads_to_protected_path(call.arguments, find_destinations))
        return replace(ask, touches_protected=touches)

    async def approve(self, call: ToolCall) -> str:
        """Require permission for a scheduled call as if it ran now; return the digest of what may run."""
        tool = self._tools.get(call.tool)
        check_call(tool, call)
        return await self._require_permission(await self.build_permission_request(call, tool.spec))

    async def _permit(self, call: ToolCall, spec: ToolSpec) -> ToolCall:
        ask = await self.build_permission_request(call, spec)
        await self._require_permission(ask)
        return replace(call, avoids_protected=not ask.writes_protected)

    async def _require_permission(self, ask: "PermissionRequest") -> str:
        """Return the digest of what may run; raises Failure when it may not."""
        call = ask.call
        may_be_unattended = call.auto_safe and call.origin is Origin.CHAT and not ask.writes_protected
        if may_be_unattended and await self._unattended_queue.admit(call.id, partial(self._is_unattended, ask)):
            ask = replace(ask, is_unattended=True)
        return await self._state.approvals.require(ask, approved=call.approved)

    async def _is_unattended(self, ask: "PermissionRequest") -> bool:
        guarded = tuple(self._list_guarded())
        return await asyncio.to_thread(self._unattended.covers, ask.spec, ask.call.arguments, guarded)

    @cached_property
    def _unattended(self) -> "Unattended":
        from toolyard.tools.unattended import Unattended

        specs = [tool.load().spec for tool in self._built_in.tools]
        return Unattended(self._basis.workspace, specs, self._basis.config.home, self._basis.clock.now)

    # --- undo ---

    async def undo(self, call_id: str, *, by: str = "") -> "UndoneFiles":
        """Put the files that a call changed back as they were. Raises Failure, and then nothing changed.

        It is refused when one of them was changed since. ``undo:CALL`` undoes the undoing. ``by``: who wants it.
        """
        self._require_open()
        from toolyard.workspace.changes.undo_records import PREFIX

        stop = CancelScope("undo", self._basis.clock, _UNDO_S)
        try:
            undone = await in_thread(lambda: self._built_in.undo.restore(call_id, stop))
        except Failure as failure:
            if failure.code is ErrorCode.NOT_FOUND:
                raise await self._explain_no_undo(call_id, failure) from failure
            raise
        again = call_id.startswith(PREFIX)
        await self._state.journal.record_undo(call_id.removeprefix(PREFIX), by=by or self._caller, again=again)
        return undone

    async def _explain_no_undo(self, call_id: str, failure: Failure) -> Failure:
        """Return why nothing is known of the files of a call: it ran in another project, or there is no such call."""
        from toolyard.workspace.changes.undo_records import PREFIX

        own_command = self._basis.config.own_command
        call = await self._state.journal.get(call_id.removeprefix(PREFIX))
        project = str(call["project"]) if call else ""
        if project not in ("", self._basis.project):
            command = own_command.in_project(project).format("journal undo", call_id)
            message = Message(
                "The call '{call_id}' ran in the project {project}, not in {here}.",
                call_id=call_id,
                project=project,
                here=self._basis.project,
            )
            return Failure(ErrorCode.NOT_FOUND, message, hint=Message("Undo it there: {command}", command=command))
        if call is None or call_id.startswith(PREFIX):
            message = Message("No call has the id '{call_id}'.", call_id=call_id)
            hint = Message("List the calls with: {command}", command=own_command.format("journal list"))
            return Failure(ErrorCode.NOT_FOUND, message, hint=hint)
        return failure

    async def can_undo(self, call_id: str) -> bool:
        return await in_thread(lambda: self._built_in.undo.is_possible(call_id))

    async def list_written_files(self, call_id: str) -> "list[FileVersions]":
        """Return the files that a call wrote, before and after it, as far as they are kept."""
        encodings = self._basis.config.settings.fallback_encodings
        return await in_thread(lambda: self._built_in.undo.read_file_versions(call_id, encodings))


def _require_call(tool: object, arguments: object) -> None:
    if not isinstance(tool, str) or not isinstance(arguments, Mapping | str):
        raise UsageError(
            Message("a call takes the tool's name as a string, and its arguments as a mapping or as JSON text")
        )


class UnattendedQueue:
    """One unattended call at a time, from the moment it is judged until it has ended."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._runs = ""  # the call whose turn it is

    async def admit(self, call_id: str, judge: Callable[[], Awaitable[bool]]) -> bool:
        """Wait for the call's turn and judge it; return whether it may run. An admitted call ends with ``release``."""
        await self._turn.acquire()
        try:
            admitted = await judge()
        except BaseException:
            self._turn.release()
            raise
        if admitted:
            self._runs = call_id
        else:
            self._turn.release()
        return admitted

    def release(self, call_id: str) -> None:
        if self._runs == call_id:
            self._runs = ""
            self._turn.release()
