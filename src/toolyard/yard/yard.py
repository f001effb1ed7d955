"""The composition root: a Config becomes a Yard. The only module that knows everyone."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, overload
from uuid import uuid4

from toolyard.config import Config
from toolyard.dialects import DIALECTS, NAMES_CALL, SHOWN_ONLY, encode, find_envelope
from toolyard.engine.cancel_scope import CancelScope
from toolyard.engine.check import check_call
from toolyard.engine.clock import Clock, SystemClock
from toolyard.engine.inline import go_to_event_loop
from toolyard.engine.journal import Journal
from toolyard.engine.masking import Mask
from toolyard.engine.ownership import IsAlive, identify_process, is_owner_alive, make_home_liveness
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.engine.unattended_queue import UnattendedQueue
from toolyard.errors import StorageError, UsageError
from toolyard.message import Message
from toolyard.plugins.process_records import ProcessRecords
from toolyard.protocol.call import Origin, ToolCall, find_signer, parse_arguments
from toolyard.protocol.envelope import Envelope, ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.store import Store
from toolyard.protocol.tool import ToolSpec
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import STATE, measure_used_bytes
from toolyard.tools.thread import in_thread
from toolyard.workspace.home_folder import restrict_home
from toolyard.workspace.private_home import keep_private
from toolyard.workspace.protected_paths import leads_to_protected_path
from toolyard.workspace.workspace import Workspace
from toolyard.yard.built_in import BuiltInTools
from toolyard.yard.mcp_source import McpSource
from toolyard.yard.plugin_source import HostOptions, PluginSource

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from toolyard.engine.approvals import Approvals
    from toolyard.engine.audit import Audit
    from toolyard.engine.backend import BackendRecorder
    from toolyard.engine.idempotency import Idempotency
    from toolyard.engine.model_view import ModelView
    from toolyard.engine.permission_request import PermissionRequest
    from toolyard.engine.recovery import RecoveryReport
    from toolyard.engine.retention import Retention, SweepResult
    from toolyard.engine.schedules import Schedules
    from toolyard.engine.tasks import Tasks
    from toolyard.engine.turns import Turns
    from toolyard.plugins.children import Children
    from toolyard.plugins.launch import Starter
    from toolyard.protocol.approval_record import Approval
    from toolyard.protocol.content import Blob, Media
    from toolyard.storage.media import MediaStore
    from toolyard.tools.project_files import ProjectFiles
    from toolyard.tools.unattended import Unattended
    from toolyard.workspace.file_versions import FileVersions
    from toolyard.workspace.folder_listing import FolderListing
    from toolyard.workspace.media_files import MediaFiles
    from toolyard.workspace.undo import UndoneFiles

_log = logging.getLogger(__name__)
Arguments: TypeAlias = Mapping[str, Any] | str
"""The arguments of a call; as a text, the JSON that a model wrote."""
_UNDO_S = 60.0  # to wait for other writers, all in all


class Yard:
    """The assembled program, for one event loop. Use it as ``async with``, or close it."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        store: Store | None = None,
        outside: HostOptions = HostOptions(),  # noqa: B008 it is frozen
    ) -> None:
        self.config = config
        self._zone: ZoneInfo | None = None  # that of the settings
        self._clock = clock = clock or SystemClock()
        self._workspace = workspace = Workspace(config.project)
        restrict_home(config.home)
        keep_private(config.home, workspace.root)
        self._built_in = BuiltInTools(config, workspace, clock.now)
        try:
            self._built_in.recover_writes()
        except BaseException:
            workspace.close()
            raise
        self.mask = mask = Mask(config.secrets)
        self.boot = identify_process()
        self.store: Store = store or SqliteStore(config.home / STATE)
        self.journal = Journal(self.store, clock, owner=self.boot.name, mask=mask, project=self.project)
        self._unattended_queue = UnattendedQueue()
        self.runs = ProcessRecords()
        self.plugins = PluginSource(
            config,
            lambda: self.tasks,
            reserved=self._built_in.names,
            replaceable=self._built_in.replaceable_names,
            keep_secret=mask.add,
            keep_from_logs=mask.add_for_logs,
            now=clock.now,
            runs=self.runs,
            report_progress=self.journal.record_progress,
            outside=outside,
        )
        self.mcp = McpSource(config, keep_secret=mask.add, monotonic=clock.monotonic, processes=self._processes)
        self.tools = Registry(self._built_in.tools, [] if outside.safe else [self.mcp, self.plugins])
        self._runner = Runner(
            self.tools,
            root=str(workspace.root),
            clock=clock,
            journal=self._make_recorder() if outside.outlives else self.journal,
            mask=mask,
            permit=self._permit,
            processes=self.runs.take,
            save_media=self._save_media,
        )
        self._caller = f"yard:{uuid4().hex}"
        self._outlives = outside.outlives
        self._resettled: set[asyncio.Task[None]] = set()  # keeps references
        self._closed = False

    @property
    def project(self) -> str:
        """The folder of the project, without links; calls and tasks are stored with it."""
        return str(self._workspace.root)

    def open_folder(self, path: str) -> int:
        """Return a descriptor of a folder of the project, for the caller to close. Raises Failure. Blocks."""
        return self._workspace.open_descriptor(path)

    def list_folder(self, path: str, *, nearest: bool = False) -> "FolderListing":
        """Return the entries of a folder of the project, or of the nearest one above. Raises Failure. Blocks."""
        from toolyard.workspace.folder_listing import list_folder, list_nearest_folder

        return (list_nearest_folder if nearest else list_folder)(self._workspace, path)

    @overload
    async def call(
        self, tool: str, arguments: Arguments | None = None, *, dialect: None = None, shown: bool = False
    ) -> Envelope: ...

    @overload
    async def call(
        self,
        tool: str,
        arguments: Arguments | None = None,
        *,
        dialect: str,
        shown: bool = False,
        tool_call_id: str | None = None,
    ) -> dict[str, Any]: ...

    @overload
    async def call(
        self,
        tool: str,
        arguments: Arguments | None = None,
        *,
        dialect: str | None = None,
        shown: bool = False,
        tool_call_id: str | None = None,
    ) -> Envelope | dict[str, Any]: ...

    async def call(
        self,
        tool: str,
        arguments: Arguments | None = None,
        *,
        dialect: str | None = None,
        shown: bool = False,
        tool_call_id: str | None = None,
    ) -> Envelope | dict[str, Any]:
        """Run a tool; the envelope, or a dict in ``dialect``. A failed tool is an envelope, no exception.

        ``arguments`` may be the JSON text that a model wrote. ``shown``: the result as a model sees it, not the full
        one. ``tool_call_id``: the model's id of the call, which the message in ``dialect`` answers.
        """
        require_dialect(dialect or "envelope", tool_call_id)
        call = self.request(tool, arguments or {}, tool_call_id=tool_call_id or "")
        outcome = await self.settle(call)
        if dialect is not None:
            return self.express(call, outcome, dialect, shown=shown)
        return self._model_view.to_shown(call, outcome).envelope if shown else outcome.envelope

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
            tool=self.tools.resolve_name(tool),
            use_id=tool_call_id,
            arguments=values,
            maid=find_signer(values),
            caller=caller or self._caller,
            origin=origin,
            force=force,
            unreadable=problem,
        )

    async def settle(self, call: ToolCall) -> Outcome:
        if self._closed:
            raise RuntimeError("this Yard is closed: open another one with toolyard.open_async()")
        try:
            return await self._runner.settle(call)
        finally:
            self._unattended_queue.release(call.id)

    async def find_outcome(self, call: ToolCall) -> Outcome | None:
        """Return the outcome of a call that began before, after it has ended if it runs here; None: it never began."""
        running = self._runner.find_running(call.id)
        if running is not None:
            return await asyncio.shield(running)
        return await self.journal.find_outcome(call, root=str(self._workspace.root))

    def _make_recorder(self) -> "BackendRecorder":
        from toolyard.engine.backend import BackendRecorder

        return BackendRecorder(self.journal, self._clock, mask=self.mask)

    @cached_property
    def _media_files(self) -> "MediaFiles":
        from toolyard.workspace.media_files import MediaFiles

        return MediaFiles(self._workspace)

    @cached_property
    def project_files(self) -> "ProjectFiles":
        from toolyard.tools.project_files import ProjectFiles

        return ProjectFiles(self._workspace, self.config.settings.fallback_encodings)

    @cached_property
    def _model_view(self) -> "ModelView":
        from toolyard.engine.model_view import ModelView
        from toolyard.workspace.outputs import Outputs

        direction = self.config.settings.truncation_direction
        return ModelView(Outputs(self._workspace), self._clock, mask=self.mask, direction=direction)

    @cached_property
    def _unattended(self) -> "Unattended":
        from toolyard.tools.unattended import Unattended

        specs = [tool.load().spec for tool in self._built_in.tools]
        return Unattended(self._workspace, specs, self.config.home, self._clock.now)

    @cached_property
    def tasks(self) -> "Tasks":
        from toolyard.engine.tasks import Tasks

        mask = self.mask.json
        return Tasks(self.store, self._clock, owner=self.journal.owner, mask=mask, project=self.project)

    @cached_property
    def approvals(self) -> "Approvals":
        from toolyard.engine.approvals import Approvals

        mode = self.config.settings.approval_mode
        return Approvals(self.store, self._clock, mode=mode, owner=self.journal.owner, mask=self.mask)

    @cached_property
    def audit(self) -> "Audit":
        from toolyard.engine.audit import Audit

        return Audit(self.store, self._clock)

    @cached_property
    def media(self) -> "MediaStore":
        from toolyard.storage.media import FOLDER, MediaStore

        return MediaStore(self.config.home / FOLDER, self._clock.now)

    @cached_property
    def idempotency(self) -> "Idempotency":
        from toolyard.engine.idempotency import Idempotency

        return Idempotency(self.store, self._clock, owner=self.journal.owner)

    @cached_property
    def turns(self) -> "Turns":
        from toolyard.engine.turns import Turns

        return Turns(self.store, self._clock, owner=self.journal.owner, mask=self.mask)

    @cached_property
    def schedules(self) -> "Schedules":
        from toolyard.engine.schedules import Schedules

        return Schedules(
            self.store, self._clock, zone=self.zone, owner=self.journal.owner, settle=self.settle,
            approve=self._approve_scheduled, mask=self.mask, own_command=self.config.own_command,
        )  # fmt: skip

    @property
    def zone(self) -> "ZoneInfo":
        """The zone of times without an offset."""
        return self._zone or self.config.zone

    @zone.setter
    def zone(self, zone: "ZoneInfo") -> None:
        self._zone = zone
        if "schedules" in self.__dict__:  # it is made when somebody asks for it
            self.schedules.zone = zone

    def take_owner_name(self, owner: str) -> None:
        """Own what begins from now on under this name: one host among many has a new one after it was lost."""
        self.journal.owner = owner
        for name in (
            "tasks",
            "approvals",
            "idempotency",
            "schedules",
            "turns",
        ):  # each is made when somebody asks for it
            if name in self.__dict__:
                getattr(self, name).owner = owner

    async def submit(self, call: ToolCall, *, at: str = "", cron: str = "") -> Outcome:
        """Run a call later, as ``timely_contact`` asks for: the receipt, or why not."""
        envelope = await self.schedules.submit_for_receipt(call, at=at, cron=cron)
        return Outcome(envelope=envelope, root=str(self._workspace.root), arguments=call.arguments)

    async def recover(self, alive: IsAlive | None = None) -> "RecoveryReport":
        """Settle what hosts that are not ``alive`` left behind. What goes on without them is for ``plugins.adopt``."""
        from toolyard.engine.recovery import Recovery

        recovery = Recovery(
            store=self.store, clock=self._clock, journal=self.journal, schedules=self.schedules,
            approvals=self.approvals, tasks=self.tasks, idempotency=self.idempotency, turns=self.turns,
            takes_over=self._outlives,
            is_detached=self._is_detached,
        )  # fmt: skip
        if alive is None:
            is_embedded = isinstance(self.store, SqliteStore)
            alive = make_home_liveness(self.config.home) if is_embedded else is_owner_alive
        report = await recovery.recover(alive)
        for approval in report.waiting:
            task = asyncio.ensure_future(self._resettle(approval))
            self._resettled.add(task)
            task.add_done_callback(self._resettled.discard)
        return report

    async def _resettle(self, approval: "Approval") -> None:
        """Settle the call of a question that a dead host had asked; it runs once it is allowed."""
        arguments = approval.arguments if isinstance(approval.arguments, dict) else {}
        call = ToolCall(
            id=approval.call_id, tool=approval.tool, arguments=arguments, maid=approval.maid, caller=approval.caller,
            origin=Origin.CHAT, chat=approval.chat or "",
        )  # fmt: skip
        try:
            await self.settle(call)
        except StorageError as error:
            _log.error("%s could not be settled after a crash: %s", call.id, error)
        finally:
            await self.approvals.withdraw(approval.id)

    async def sweep(self) -> "SweepResult":
        """Remove records and media that are older than the settings keep them."""
        await asyncio.to_thread(self.media.sweep)
        return await self._retention.sweep()

    async def is_over_size_limit(self) -> bool:
        """Return whether the state is larger than the settings allow, so that it is time for a sweep."""
        return await self._retention.is_too_large()

    @property
    def _retention(self) -> "Retention":
        from toolyard.engine.retention import Retention

        used = partial(asyncio.to_thread, measure_used_bytes, self.config.home / STATE)
        embedded = isinstance(self.store, SqliteStore)
        return Retention(
            self.store,
            self._clock,
            used=used if embedded else None,
            kept_s=self.config.settings.history_days * 86_400.0,
            max_bytes=self.config.settings.history_mib * 2**20,
        )

    def cancel(self, call_id: str) -> bool:
        return self._runner.cancel(call_id)

    async def stop_calls(self) -> None:
        """Cancel every call and wait until they have ended; bounded."""
        await self._runner.stop()

    async def undo(self, call_id: str, *, by: str = "") -> "UndoneFiles":
        """Put the files that a call changed back as they were. Raises Failure, and then nothing changed.

        It is refused when one of them was changed since. ``undo:CALL`` undoes the undoing. ``by``: who wants it.
        """
        if self._closed:
            raise RuntimeError("this Yard is closed: open another one with toolyard.open_async()")
        from toolyard.workspace.undo_records import PREFIX

        stop = CancelScope("undo", self._clock, _UNDO_S)
        try:
            undone = await in_thread(lambda: self._built_in.undo.restore(call_id, stop))
        except Failure as failure:
            if failure.code is ErrorCode.NOT_FOUND:
                raise await self._explain_no_undo(call_id, failure) from failure
            raise
        again = call_id.startswith(PREFIX)
        await self.journal.record_undo(call_id.removeprefix(PREFIX), by=by or self._caller, again=again)
        return undone

    async def _explain_no_undo(self, call_id: str, failure: Failure) -> Failure:
        """Return why nothing is known of the files of a call: it ran in another project, or there is no such call."""
        from toolyard.workspace.undo_records import PREFIX

        own_command = self.config.own_command
        call = await self.journal.get(call_id.removeprefix(PREFIX))
        project = str(call["project"]) if call else ""
        if project not in ("", self.project):
            command = own_command.in_project(project).format("journal undo", call_id)
            message = Message(
                "undo.other_project",
                "The call '{call_id}' ran in the project {project}, not in {here}.",
                call_id=call_id,
                project=project,
                here=self.project,
            )
            hint = Message("hint.undo_there", "Undo it there: {command}", command=command)
            return Failure(ErrorCode.NOT_FOUND, message, hint=hint)
        if call is None or call_id.startswith(PREFIX):
            message = Message("host.no_call_id", "No call has the id '{call_id}'.", call_id=call_id)
            hint = Message(
                "hint.list_calls", "List the calls with: {command}", command=own_command.format("journal list")
            )
            return Failure(ErrorCode.NOT_FOUND, message, hint=hint)
        return failure

    async def list_written_files(self, call_id: str) -> "list[FileVersions]":
        """Return the files that a call wrote, before and after it, as far as they are kept."""
        return await in_thread(
            lambda: self._built_in.undo.read_file_versions(call_id, self.config.settings.fallback_encodings)
        )

    async def can_undo(self, call_id: str) -> bool:
        return await in_thread(lambda: self._built_in.undo.is_possible(call_id))

    def express(
        self, call: ToolCall, outcome: Outcome, dialect: str, *, shown: bool = False, codes: bool = False
    ) -> dict[str, Any]:
        """Encode an outcome in a dialect; ``shown`` encodes what a model would see instead of the full result.

        ``codes`` adds the codes and the parameters of its sentences to an envelope, for clients that translate them.
        What goes out over HTTP has no exact secret of the host and its plugins in it, shown or not.
        """
        require_dialect(dialect)
        if shown or dialect in SHOWN_ONLY:
            outcome = self._model_view.to_shown(call, outcome)
        elif call.origin is Origin.HTTP:
            outcome = self._model_view.mask(outcome)
        encoded = encode(dialect, call, outcome, uuid=str(uuid4()))
        if not codes:
            return encoded
        if (envelope := find_envelope(dialect, encoded, outcome)) is not None:
            envelope.update(outcome.envelope.to_json())
        return encoded

    async def close(self) -> None:
        """Stop what still runs and let go of the project. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            if "schedules" in self.__dict__:  # it is made when somebody asks for it
                await self.schedules.close()
            await self.stop_calls()
            if "approvals" in self.__dict__:
                await self.approvals.close()
            await self.mcp.close()
            await self.plugins.close()
            await self.store.close()
            self._built_in.close()
            self._workspace.close()

    async def __aenter__(self) -> "Yard":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def load_media(self, source: str) -> "Media | None":
        """Return media of a result by the path that its ``data`` refers to; None if they are gone."""
        files = self._media_files
        return await in_thread(lambda: files.load(source))

    async def _save_media(self, media: "Media | Blob") -> None:
        files = self._media_files
        await in_thread(lambda: files.save(media, self._clock.now()))

    async def _approve_scheduled(self, call: ToolCall) -> str:
        """Require permission for a scheduled call as if it ran now."""
        tool = self.tools.get(call.tool)
        check_call(tool, call)
        return await self._require_permission(await self.build_permission_request(call, tool.spec))

    def _is_detached(self, plugin: str) -> bool:
        from toolyard.protocol.manifest import PluginType

        installed = self.plugins.plugins.get(plugin)
        manifest = installed.manifest if installed else None
        return manifest is not None and manifest.detached and manifest.type is PluginType.ASYNCHRONOUS

    def _processes(self) -> "tuple[Children, Starter]":
        """Return what starts MCP servers: they are child processes like those of plugins."""
        return self.plugins.host.children, self.plugins.host.starter

    async def build_permission_request(self, call: ToolCall, spec: ToolSpec) -> "PermissionRequest":
        """Return the call with what decides about it: a path counts by where it leads."""
        from toolyard.engine.permission_request import PermissionRequest

        ask = PermissionRequest(call=call, spec=spec, fingerprint=spec.fingerprint)
        if ask.is_read_only:
            return ask
        touches = await in_thread(lambda: leads_to_protected_path(call.arguments, self._workspace.list_destinations))
        return replace(ask, touches_protected=touches)

    async def _permit(self, call: ToolCall, spec: ToolSpec) -> ToolCall:
        ask = await self.build_permission_request(call, spec)
        await self._require_permission(ask)
        return replace(call, avoids_protected=not ask.writes_protected)

    async def _require_permission(self, ask: "PermissionRequest") -> str:
        """Return the digest of what may run; raises Failure when it may not."""
        call, spec = ask.call, ask.spec
        if call.auto_safe and call.origin is Origin.CHAT and not ask.writes_protected:
            await go_to_event_loop()  # its turn may have to be waited for
            if await self._unattended_queue.admit(call.id, partial(self._is_unattended, call, spec)):
                ask = replace(ask, is_unattended=True)
        return await self.approvals.require(ask, approved=call.approved)

    async def _is_unattended(self, call: ToolCall, spec: ToolSpec) -> bool:
        folders = [plugin.folder for plugin in self.plugins.plugins.all]
        guarded = (*folders, *self.mcp.list_programs(self._workspace.root))
        return await asyncio.to_thread(self._unattended.covers, spec, call.arguments, guarded)


def require_dialect(dialect: str, tool_call_id: str | None = None) -> None:
    """Raise UsageError for an unknown dialect, or one that has no place for the id of a call."""
    if tool_call_id and dialect in DIALECTS and dialect not in NAMES_CALL:
        raise UsageError(
            Message(
                "host.dialect_without_id",
                "a result in the dialect '{dialect}' names no call: pass tool_call_id with one of {names}",
                dialect=dialect,
                names=", ".join(NAMES_CALL),
            )
        )
    if dialect not in DIALECTS:
        raise UsageError(
            Message(
                "host.unknown_dialect",
                "unknown dialect '{dialect}': choose one of {names}",
                dialect=dialect,
                names=", ".join(DIALECTS),
            )
        )


def _require_call(tool: object, arguments: object) -> None:
    if not isinstance(tool, str) or not isinstance(arguments, Mapping | str):
        raise UsageError(
            Message(
                "host.invalid_call_arguments",
                "a call takes the tool's name as a string, and its arguments as a mapping or as JSON text",
            )
        )
