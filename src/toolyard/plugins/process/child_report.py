"""The end of one run of a child: its report, its answer with warnings, or a Failure with the cause and the remedy."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from toolyard.message import Message
from toolyard.plugins.process.pipes import ChildPipes
from toolyard.plugins.process.process_output import StderrRing
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import MAX_DEPTH, JsonObject
from toolyard.protocol.manifests.manifest import Limits
from toolyard.protocol.plugin_answers.plugin_output import Output, PrintedObject

_STDERR = 2048  # bytes of its end that a failure shows
_HEX = 64  # bytes of stdout that are shown as numbers when they are no text
_SEEN = 200  # characters of the last line of stderr that stand in a message
_python_module = re.compile(r"^ModuleNotFoundError: No module named '(\w+)", re.M)
_node_module = re.compile(r"Cannot find (?:module|package) '([^']+)'")
_node_version = re.compile(r"Node\.js v\d")
_python_syntax = re.compile(r"(?:Syntax|Indentation|Tab)Error\b")
_python_place = re.compile(r"^\s*File \"(?:[^\"\n]*/)?([^\"\n/]+)\", line (\d+)", re.MULTILINE)
_node_error = re.compile(r"(?:Uncaught |\[)?\w*(?:Error|Exception)\b.*: ")
_no_command = re.compile(r"([^\s:]+): (?:command )?not found|env: ['‘’\"]?([^'‘’\"\s:]+)['‘’\"]?: No such file")
_no_file = re.compile(r"(?:can't|cannot|Can't) open (?:file )?'?([^':\n]+)")
_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dotenv": "python-dotenv",
    "yaml": "pyyaml",
}
_SIGNALS = {
    signal.SIGKILL: (
        Message("possibly because of a memory limit"),
        Message("Ask for less at once, or raise limits.memoryMb."),
    ),
    signal.SIGXCPU: (
        Message("it used more CPU time than it may"),
        Message("Ask for less at once, or raise limits.cpuSeconds."),
    ),
    signal.SIGXFSZ: (
        Message("it wrote a larger file than it may"),
        Message("Write less, or raise limits.fileSizeMb."),
    ),
    signal.SIGSEGV: (
        Message("it crashed in native code"),
        Message("Look at its stderr and its native dependencies."),
    ),
}
_ANSWER = Message('A plugin answers with one JSON object such as {{"status": "success", "result": "..."}}.')
_UNFINISHED: Final = Message("did not finish")
HEAD = 2048  # bytes of stdout that a failure shows
_LINE = 200  # characters of a noise line that a warning shows
LINGER_S = 10.0  # for a process that has answered to exit by itself


@dataclass(frozen=True, slots=True)
class Survivors:
    """The processes of an answered call that continue; their outputs are read and discarded."""

    pid: int  # of the child that was started
    pipes: ChildPipes

    def close(self) -> None:
        """Close the pipes."""
        self.pipes.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReport:
    """The result of one run. A child that is still alive has no exit code yet."""

    limits: Limits
    stderr: StderrRing
    answer: JsonObject | None = None
    warnings: tuple[str, ...] = ()
    noise: str = ""
    exit_code: int | None = None
    signal: int | None = None
    stdout_head: bytes = b""
    stdout_bytes: int = 0
    bad_utf8_at: int | None = None
    too_large: bool = False
    too_deep: bool = False
    overrun: bool = False  # killed because it had too many processes
    survivors_killed: bool = False  # processes of it outlived its exit, and were killed
    survivors: Survivors | None = None  # or they still run


def build_report(
    pipes: ChildPipes,
    output: Output,
    code: int | None,
    *,
    limits: Limits,
    stderr: StderrRing,
    overrun: bool = False,
    head: int = HEAD,
) -> ChildReport:
    """Build the report of a child that has exited with ``code``, or has answered and lives on."""
    printed = output.last
    return ChildReport(
        limits=limits,
        stderr=stderr,
        answer=printed.value if printed else None,
        warnings=(*_output_warnings(output), *_exit_warnings(printed, code)),
        noise=output.noise,
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        stdout_head=pipes.head(head),
        stdout_bytes=output.size,
        bad_utf8_at=printed.bad_utf8_at if printed else None,
        too_deep=output.too_deep_at is not None,
        overrun=overrun,
    )


def build_overflow_report(pipes: ChildPipes, *, limits: Limits, stderr: StderrRing, head: int = HEAD) -> ChildReport:
    """Build the report of a child whose stdout is over its limit."""
    return ChildReport(
        limits=limits, stderr=stderr, stdout_head=pipes.head(head), stdout_bytes=pipes.stdout_size, too_large=True
    )


def build_receipt_report(
    pipes: ChildPipes, printed: PrintedObject, *, limits: Limits, stderr: StderrRing
) -> ChildReport:
    """Build the report of a child that has printed its receipt and lives on."""
    return ChildReport(
        limits=limits,
        stderr=stderr,
        answer=printed.value,
        warnings=printed.notes,
        noise=pipes.noise,
        stdout_head=pipes.head(HEAD),
        stdout_bytes=pipes.stdout_size,
        bad_utf8_at=printed.bad_utf8_at,
    )


def _output_warnings(output: Output) -> tuple[str, ...]:
    if output.last is None:
        return ()
    remarks = list(output.last.notes)
    if output.noise:
        first = output.noise.splitlines()[0][:_LINE]
        more = (
            Message(" (and more, {size} bytes in all)", size=output.noise_bytes)
            if output.noise_bytes > len(first.encode())
            else ""
        )
        remarks.append(
            Message(
                "STDOUT_NOISE: stdout is for the answer only; print this to stderr: {line}{more}", line=first, more=more
            )
        )
    if output.count > 1:
        remarks.append(
            Message("{count} JSON objects with a status were printed; the last one was used.", count=output.count)
        )
    if output.last.bad_utf8_at is not None:
        remarks.append(
            Message(
                "Byte {at} of stdout is not UTF-8; what could not be read was replaced.", at=output.last.bad_utf8_at
            )
        )
    return tuple(remarks)


def _exit_warnings(printed: PrintedObject | None, code: int | None) -> tuple[str, ...]:
    if printed is None:
        return ()
    if code is None:
        return (
            Message(
                "It answered but did not exit: the answer counts, and its process is stopped {seconds:g} s later.",
                seconds=LINGER_S,
            ),
        )
    status = printed.value["status"]
    if code == 0 and status == "error":
        return (Message("It reported an error but exited with code 0; the report counts."),)
    if code != 0 and status != "error":
        how = (
            Message("exited with code {code}", code=code)
            if code > 0
            else Message("was ended by signal {number}", number=-code)
        )
        return (Message("It reported {status} but {how}; the report counts.", status=str(status), how=how),)
    return ()


def require_answer(plugin: str, report: ChildReport) -> JsonObject:
    """Return the object that the plugin answered with. Raises Failure."""
    if report.answer is None or report.too_large:
        raise explain_failure(plugin, report)
    broken = report.bad_utf8_at is not None and report.answer["status"] == "success"
    return {**report.answer, "status": "partial"} if broken else report.answer


def explain_failure(plugin: str, report: ChildReport) -> Failure:
    """Return the failure of a plugin that ended without an answer."""
    if report.too_large:
        most = report.limits.stdout_bytes
        return _failure(
            Reason.OUTPUT_TOO_LARGE,
            Message("{plugin} printed more than {size} and was stopped.", plugin=plugin, size=_format_size(most)),
            Message("Ask for less, or have the plugin write a file and answer with its path."),
            report,
        )
    if report.overrun:
        return _failure(
            Reason.CRASHED,
            Message(
                "{plugin} started more than {most} processes and was stopped.",
                plugin=plugin,
                most=report.limits.processes,
            ),
            Message("Have it start fewer, or raise limits.processes."),
            report,
        )
    if report.signal is not None:
        return _signal_failure(plugin, report.signal, report)
    return _missing_dependency_failure(plugin, report) or _no_answer_failure(plugin, report)


def explain_missing_callback(stderr: StderrRing) -> Failure:
    """Return the failure of an asynchronous plugin that ended after its receipt, without having called back."""
    message = Message("Its process ended without a callback.")
    last = _last_stderr_line(stderr.last_text(_STDERR * 4))
    return Failure(Reason.CRASHED, _add_stderr(message, last), data={"stderr": stderr.last_text(_STDERR)})


def _signal_failure(plugin: str, number: int, report: ChildReport) -> Failure:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    why, hint = _SIGNALS.get(number, ("", Message("Look at its stderr.")))  # type: ignore[call-overload]
    message = Message(
        "{plugin} was ended by signal {number} ({name}) before it had answered.",
        plugin=plugin,
        number=number,
        name=name,
    )
    if why:
        message = Message(
            "{plugin} was ended by signal {number} ({name}), {why} before it had answered.",
            plugin=plugin,
            number=number,
            name=name,
            why=why,
        )
    return _failure(Reason.CRASHED, message, hint, report)


def _missing_dependency_failure(plugin: str, report: ChildReport) -> Failure | None:
    """Return the failure of a program that lacks something it needs to start."""
    if not report.exit_code:
        return None
    what, fix = _find_missing_dependency(report.stderr.last_text(_STDERR * 4), report.exit_code)
    return (
        _failure(Reason.START_FAILED, Message("{plugin} could not run: {what}.", plugin=plugin, what=what), fix, report)
        if what
        else None
    )


def _find_missing_dependency(stderr: str, exit_code: int) -> tuple[str, str]:
    """Return what is missing and how to get it."""
    if match := _python_module.search(stderr):
        name = match[1]
        often = _PACKAGES.get(name, name)
        return Message("it needs the Python package {name}", name=name), Message(
            "Install what provides it (often `pip install {name}`).", name=often
        )
    if match := _node_module.search(stderr):
        name = match[1]
        if name.startswith((".", "/")):
            return _missing_file(name), Message("Install the plugin again, or mend entryPoint.command.")
        return Message("it needs the Node package {name}", name=name), Message(
            "Run `npm install` in its folder (or `npm install {name}`).", name=name
        )
    if exit_code in {2, 127} and (match := _no_file.search(stderr)):
        return _missing_file(match[1]), Message("Install the plugin again, or mend entryPoint.command.")
    if exit_code in {126, 127}:
        match = _no_command.search(stderr)
        command = (match[1] or match[2]) if match else Message("a command it uses")
        problem = (
            Message("{command} was not found", command=command)
            if exit_code == 127
            else Message("{command} was not executable", command=command)
        )
        return problem, Message("Install {command}, or make it reachable by the PATH of plugins.", command=command)
    return "", ""


def _no_answer_failure(plugin: str, report: ChildReport) -> Failure:
    last = _last_stderr_line(report.stderr.last_text(_STDERR * 4))
    if report.exit_code and (last or report.stdout_bytes):
        message = Message(
            "{plugin} exited with code {exit_code} before it had answered.", plugin=plugin, exit_code=report.exit_code
        )
        return _failure(
            Reason.CRASHED,
            _add_stderr(message, last),
            "" if last else Message("Look at what it printed."),
            report,
        )
    if not report.stdout_head.strip():
        message = Message("{plugin} ended without printing anything on stdout.", plugin=plugin)
        if report.exit_code:
            message = Message(
                "{plugin} ended without printing anything on stdout (exit code {exit_code}).",
                plugin=plugin,
                exit_code=report.exit_code,
            )
        return _failure(Reason.NO_OUTPUT, _add_stderr(message, last), _ANSWER, report)
    if report.too_deep:
        message = Message("{plugin} printed JSON nested deeper than {levels} levels.", plugin=plugin, levels=MAX_DEPTH)
        return _failure(Reason.INVALID_OUTPUT, message, Message("Answer with a flatter object."), report)
    message = Message("{plugin} printed no complete JSON object with a status.", plugin=plugin)
    return _failure(Reason.INVALID_OUTPUT, _add_stderr(message, last), _ANSWER, report)


def _add_stderr(message: Message, last: str) -> Message:
    """Return a message with the last line of stderr, if there is one."""
    if not last:
        return message
    return Message("{message} Its stderr ends with: {line}", message=message, line=last[:_SEEN])


def _missing_file(name: str) -> Message:
    return Message("its file {name} is not there", name=name)


def _last_stderr_line(stderr: str) -> str:
    """Return the last line of stderr, without the version that Node.js prints below an error."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if lines and _node_version.match(lines[-1]):
        lines = [line for line in lines if _node_error.match(line)] or lines
    last = lines[-1] if lines else ""
    places = _python_place.findall(stderr) if _python_syntax.match(last) else []
    return f"{last} ({places[-1][0]}, line {places[-1][1]})" if places else last


def _failure(reason: Reason, message: str, hint: str, report: ChildReport) -> Failure:
    data: JsonObject = {
        "stdout": report.stdout_head.decode("utf-8", "replace"),
        "stderr": report.stderr.last_text(_STDERR),
    }
    if report.exit_code is not None:
        data["exit_code"] = report.exit_code
    if report.signal is not None:
        data["signal"] = report.signal
    if reason is Reason.INVALID_OUTPUT and "\ufffd" in str(data["stdout"]):
        data["stdout_hex"] = report.stdout_head[:_HEX].hex(" ")
    return Failure(reason, message, hint=hint, data=data)


def _format_size(size: int) -> str:
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size} bytes"


@asynccontextmanager
async def limit_run_time(plugin: str, seconds: float, what: str = _UNFINISHED) -> AsyncIterator[asyncio.Timeout]:
    """Raise Failure(TIMEOUT) when the block takes longer; its cancellation ends what it started."""
    try:
        async with asyncio.timeout(seconds) as limit:
            yield limit
    except TimeoutError as error:
        raise Failure(
            ErrorCode.TIMEOUT,
            Message("{plugin} {what} within {seconds:g} s and was stopped.", plugin=plugin, what=what, seconds=seconds),
            hint=Message("Ask for less at once, or raise communication.timeout in its manifest."),
        ) from error


def release_timeout(limit: asyncio.Timeout) -> float:
    """Return the seconds that are left and end the timeout: the caller now enforces the limit itself."""
    when, now = limit.when(), asyncio.get_running_loop().time()
    limit.reschedule(None)
    return max(0.0, (now if when is None else when) - now)
